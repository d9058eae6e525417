"""Heights of two groups: maximum entropy on all rows, with labels, and without."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture
from maxent.families import Gaussian

rng = np.random.default_rng(3)
group = np.repeat([0, 1], [120, 100])
heights = rng.normal(np.where(group == 0, 161.0, 182.0), 5.0)[:, None]
grid = np.linspace(140, 205, 300)[:, None]

one = LMEGaussianMixture(1).fit(heights)
labelled = [Gaussian.fit(heights[group == k]) for k in (0, 1)]
latent = LMEGaussianMixture(2, n_init=20, random_state=0).fit(heights)

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
curves = (
    ("all rows", [np.exp(one.score_samples(grid))]),
    (
        "with labels",
        [np.mean(group == k) * np.exp(labelled[k].log_prob(grid)) for k in (0, 1)],
    ),
    (
        "without labels (latent)",
        list(latent.predict_proba(grid).T * np.exp(latent.score_samples(grid))),
    ),
)
for ax, (title, parts) in zip(axes, curves):
    ax.hist(heights[:, 0], bins=25, density=True, color="0.85")
    for part, color in zip(parts, ("#0072b2", "#d55e00")):
        ax.plot(grid[:, 0], part, c=color, lw=1)
    ax.plot(grid[:, 0], np.sum(parts, axis=0), c="0.1", lw=1.5)
    ax.set(title=title, xlabel="height, cm")
axes[0].set_ylabel("density")
plt.show()
