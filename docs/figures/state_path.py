"""A drawn sequence with its state posteriors, and EM runs from several starts."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.displays import StatePathDisplay
from maxent.models import CategoricalHMM

truth = CategoricalHMM(
    [0.5, 0.5],
    [[0.95, 0.05], [0.1, 0.9]],
    [[0.35, 0.15, 0.15, 0.35], [0.1, 0.4, 0.4, 0.1]],
    alphabet="ACGT",
)
strings, states = truth.sample(40, 70, random_state=1, return_states=True)
model = CategoricalHMM.fit(strings, 2, alphabet="ACGT", random_state=0)

fig = plt.figure(figsize=(8.5, 5.4), layout="constrained")
upper, lower = fig.subfigures(2, 1, height_ratios=[3, 2])
axes = upper.subplots(2, 1, height_ratios=[1, 3], sharex=True)
rich = int(np.argmax(model.emission.prob[:, 1]))
names = ["GC-rich" if k == rich else "AT-rich" for k in range(2)]
StatePathDisplay.from_model(model, strings[0], state_names=names, ax=axes)
axes[0].set_title("One of 40 strings and the states that the fitted model sees in it")

ax = lower.subplots()
for seed in range(6):
    run = CategoricalHMM.fit(
        strings, 2, alphabet="ACGT", n_init=1, random_state=seed
    ).fit_result
    ax.plot(run.objective_history, lw=1.2, label=f"start {seed}")
ax.set(xlabel="EM step", ylabel="log-likelihood + log prior", xscale="symlog")
ax.legend(fontsize="x-small", ncols=2, frameon=False)

plt.show()
