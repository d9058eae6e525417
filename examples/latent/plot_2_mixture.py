"""
Groups that nobody labelled
===========================

A mixture of three Gaussians from many starts. Each feasible model is a candidate; the
entropy chooses among them, and is compared with the choice by likelihood.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture
from maxent.displays import CandidatesDisplay

rng = np.random.default_rng(0)
means = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
group = rng.integers(3, size=50)
X = means[group] + rng.normal(size=(50, 2)) * [np.sqrt(2), 1]
model = LMEGaussianMixture(
    3, n_init=200, init_params="random_from_data", random_state=0
).fit(X)

# %%
# Rows by their most likely group, drawn over the density.

grid = np.stack(np.meshgrid(np.linspace(-5, 5, 100), np.linspace(-7, 7, 100)), 2)
density = np.exp(model.score_samples(grid.reshape(-1, 2))).reshape(100, 100)
figure, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
axes.contour(grid[..., 0], grid[..., 1], density, levels=8, colors="0.7", linewidths=1)
for k, colour in enumerate(("#0072b2", "#e69f00", "#009e73")):
    axes.scatter(*X[model.predict(X) == k].T, s=18, c=colour)
axes.set(xlabel="column 0", ylabel="column 1")
plt.show()

# %%
# Where the starts ended: entropy against likelihood, both choices marked.

CandidatesDisplay.from_estimator(model)
plt.show()
