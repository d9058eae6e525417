"""
Find the states of a series
===========================

A pump is idle, works, or runs hot; two sensors are read every minute, and some readings
are missing. Which state was it in, how many states are there, and what comes next?
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent.displays import StatePathDisplay
from maxent.models import GaussianHMM

truth = GaussianHMM(
    start=[0.8, 0.2, 0.0],
    transition=[[0.96, 0.04, 0.0], [0.03, 0.95, 0.02], [0.0, 0.10, 0.90]],
    mean=[[20.0, 0.1], [45.0, 1.0], [65.0, 1.2]],
    cov=[np.diag([9.0, 0.002]), np.diag([25.0, 0.02]), np.diag([20.0, 0.05])],
)
days, states = truth.sample(12, 200, random_state=4, return_states=True)
rng = np.random.default_rng(0)
for day in days:
    day[rng.random(day.shape) < 0.1] = np.nan
train, test = days[:8], days[8:]

# %%
# The likelihood of other days chooses the number of states.

numbers = range(1, 7)
models = [GaussianHMM.fit(train, n, random_state=0, tol=1e-4) for n in numbers]
scores = [model.log_likelihood(test).sum() for model in models]
model = models[int(np.argmax(scores))]
print("states:", model.n_states)
print("mean temperature and flow:", model.emission.mean.round(2).tolist())

# %%
# One of the other days: readings, and the probability of each state at every minute.

hot = int(np.argmax(model.emission.mean[:, 0]))
idle = int(np.argmin(model.emission.mean[:, 0]))
names = [{idle: "idle", hot: "hot"}.get(k, "at work") for k in range(model.n_states)]
display = StatePathDisplay.from_model(model, test[0], state_names=names)
display.ax_[0].set_title("temperature (upper) and flow (lower line) of a new day")
plt.show()

# %%
# How often the most likely path is in the right state, and the state of the next
# minute.

paths, _ = model.viterbi(test)
order = np.argsort(model.emission.mean[:, 0])  # idle, at work, hot
rank = np.argsort(order)
found = np.concatenate([rank[path] for path in paths])
right = np.mean(found == np.concatenate(states[8:]))
print(f"right state in {right:.1%} of the minutes")
last = model.posterior(test)[0][-1]
for name, share in zip(names, last @ model.transition, strict=True):
    print(f"next minute {name}: {share:.2f}")
