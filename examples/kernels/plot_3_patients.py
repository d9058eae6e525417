"""
Compare patients by all their readings
======================================

Every patient has another number of readings, in no order that matters, so that no table
of columns holds them. A Gaussian for each patient, and the kernel between Gaussians,
compare patients whole: here two kinds have the same means, and differ in how their
readings vary.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from maxent.families import Gaussian
from maxent.kernels import product_kernel

rng = np.random.default_rng(0)
kinds = ["steady", "labile"]
y = np.repeat([0, 1], 40)


def visits(kind):
    """Blood pressure of one patient, upper and lower, at 8 to 60 visits."""
    own_mean = rng.normal([130, 82], [9, 6])
    spread, together = ((9, 0.75), (14, 0.25))[kind]
    cov = spread**2 * np.array([[1, 0.7 * together], [0.7 * together, 0.5]])
    return rng.multivariate_normal(own_mean, cov, size=rng.integers(8, 61))


patients = [visits(kind) for kind in y]
print("visits of the first patients:", *(len(x) for x in patients[:8]))

# %%
# One Gaussian a patient, as one batch, and the kernel between all pairs. A few readings
# say little of a covariance: two imagined ones, which vary as those of all patients do,
# steady it.

pooled = np.cov(np.concatenate([x - x.mean(axis=0) for x in patients]).T)
means = np.array([x.mean(axis=0) for x in patients])
covs = [((len(x) - 1) * np.cov(x.T) + 2 * pooled) / (len(x) + 1) for x in patients]
laws = Gaussian(means, np.array(covs))
K = product_kernel(laws, rho=0.5, normalize=True)

# %%
# The same machine on the means alone, as a table would have them, and on the kernel.
# Means say nothing; the law of the readings does.

folds = StratifiedKFold(10, shuffle=True, random_state=0)
scaled = (means - means.mean(axis=0)) / means.std(axis=0)
by_mean = cross_val_score(SVC(C=10), scaled, y, cv=folds)
by_law = cross_val_score(SVC(C=100, kernel="precomputed"), K, y, cv=folds)
print(
    f"recognised by their means: {by_mean.mean():.0%},",
    f"by the kernel: {by_law.mean():.0%}",
)

# %%
# Two patients with their Gaussians, and all patients on a map made of the kernel.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
for kind, name, colour in zip((0, 1), kinds, ("#35618f", "#c2571a")):
    i = max(np.flatnonzero(y == kind), key=lambda k: len(patients[k]))
    axes[0].plot(*patients[i].T, ".", color=colour, label=f"a {name} patient")
    size, axis = np.linalg.eigh(laws[i].cov)
    angle = np.degrees(np.arctan2(*axis[::-1, 1]))
    width, height = 4 * np.sqrt(size[::-1])
    axes[0].add_patch(
        Ellipse(laws[i].mean, width, height, angle=angle, fill=False, ec=colour, lw=2)
    )
axes[0].set(xlabel="upper blood pressure", ylabel="lower", title="all visits of two")
axes[0].legend(loc="upper left")
place = KernelPCA(4, kernel="precomputed").fit_transform(K)
best = np.argsort([-abs(np.corrcoef(p, y)[0, 1]) for p in place.T])[:2]
for kind, name, colour in zip((0, 1), kinds, ("#35618f", "#c2571a")):
    axes[1].plot(*place[y == kind][:, best].T, "o", color=colour, ms=5, label=name)
axes[1].set(
    xlabel="kernel component", ylabel="another", title="80 patients by the kernel"
)
axes[1].legend()
plt.show()
