"""States of a series of counts and measurements, what was missing, and a forecast."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.families import Gaussian, Poisson, Product
from maxent.models import HiddenMarkovModel

states = Product({0: Poisson([2.0, 9.0]), 1: Gaussian([[36.8], [38.6]], [[[0.1]]])})
truth = HiddenMarkovModel([0.9, 0.1], [[0.95, 0.05], [0.1, 0.9]], states)
(x,), (z,) = truth.sample(1, 90, random_state=4, return_states=True)
seen = x.copy()
seen[30:45, 1] = np.nan  # no temperature was taken

kinds = {0: Poisson, 1: Gaussian}
model = HiddenMarkovModel.fit(seen, 2, family=kinds, random_state=0).order_states()
filled, variance = model.impute(seen, return_variance=True)
ahead = model.forecast(seen, 15)[0]
t, later = np.arange(90), np.arange(90, 105)

fig, axes = plt.subplots(3, 1, figsize=(8.5, 5.4), sharex=True, layout="constrained")
axes[0].bar(t, x[:, 0], color="tab:gray")
axes[0].fill_between(later, ahead.lower[:, 0], ahead.upper[:, 0], alpha=0.3)
axes[0].plot(later, ahead.mean[:, 0])
axes[0].set(ylabel="visits", title="A count, and its forecast")
axes[1].plot(t, seen[:, 1], "k.", ms=4, label="seen")
gap = np.isnan(seen[:, 1])
spread = 1.645 * np.sqrt(variance[0][gap, 1])
axes[1].errorbar(
    t[gap], filled[0][gap, 1], spread, fmt="o", ms=3, lw=0.8, label="filled in"
)
axes[1].fill_between(
    later, ahead.lower[:, 1], ahead.upper[:, 1], alpha=0.3, label="forecast, 90 %"
)
axes[1].plot(later, ahead.mean[:, 1])
axes[1].set(ylabel="temperature", title="A temperature, of which 15 are missing")
axes[1].legend(fontsize="x-small", ncols=3, frameon=False)
axes[2].plot(t, model.posterior(seen)[0][:, 1], label="posterior")
axes[2].plot(t, model.filter(seen)[0][:, 1], lw=0.8, label="filter")
axes[2].plot(later, ahead.states[:, 1], label="forecast")
axes[2].step(t, z, "k", lw=0.5, where="mid", label="truth")
axes[2].set(xlabel="step", ylabel="P(ill)")
axes[2].legend(fontsize="x-small", ncols=4, frameon=False)

plt.show()
