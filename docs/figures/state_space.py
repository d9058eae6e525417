"""A level behind noisy values with a gap, and intervals of the steps to come."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.models import LinearDynamicalSystem

truth = LinearDynamicalSystem([[1.0]], [[0.15]], [[1.0]], [[1.0]], [5.0], [[0.0]])
x, level = truth.sample(1, 120, random_state=4, return_states=True)
y, level = x[0][:100, 0], level[0][:, 0]
seen = y.copy()
seen[45:60] = np.nan

init = LinearDynamicalSystem([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[np.inf]])
held = ["transition", "observation", "transition_offset", "observation_offset"]
model = LinearDynamicalSystem.fit(seen, init=init, fixed=held, prior=0)
states, ahead = model.posterior(seen)[0], model.forecast(seen, 20)[0]

fig, ax = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
mean, width = states.mean[:, 0], 1.645 * np.sqrt(states.cov[:, 0, 0])
t, later = np.arange(100), np.arange(100, 120)
ax.plot(t, seen, "o", ms=3, color="0.6", label="observed")
ax.plot(np.arange(120), level, color="0.2", lw=1.0, label="true level")
ax.plot(t, mean, label="level given all values")
ax.fill_between(t, mean - width, mean + width, alpha=0.2, color="C0")
ax.plot(later, ahead.mean[:, 0], color="C1", label="forecast of values, 90 %")
ax.fill_between(
    later, ahead.lower[:, 0], ahead.upper[:, 0], alpha=0.2, color="C1", lw=0
)
ax.axvspan(44.5, 59.5, color="0.93", zorder=0)
ax.set(xlabel="step", ylabel="value", xlim=(0, 119))
ax.legend(fontsize="small", frameon=False, ncols=2, loc="upper left")

plt.show()
