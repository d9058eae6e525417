"""
Compare time series by their dynamics
=====================================

A linear dynamical system for each series, and the kernel between the laws of whole
stretches of it. Single steps say little here, longer stretches more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from maxent.datasets import make_switching_series
from maxent.kernels import lds_affinity_parts
from maxent.models import LinearDynamicalSystem

series, y, _ = make_switching_series(random_state=0)
models = LinearDynamicalSystem.fit_many(series, n_states=2, tol=1e-3)

# %%
# One pass gives the kernel at every length; cross-validation chooses.

horizons = np.array([0, 1, 2, 4, 6, 9, 14, 19, 24])
folds = StratifiedKFold(10, shuffle=True, random_state=0)
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for method, label in (("joint", "law of the stretch"), ("per_step", "single steps")):
    parts = lds_affinity_parts(models, horizon=horizons, method=method)
    kernels = np.moveaxis(np.exp(parts.log_normalized(0.02)), 2, 0)
    machine = SVC(C=100, kernel="precomputed")
    error = [1 - cross_val_score(machine, K, y, cv=folds).mean() for K in kernels]
    axes.plot(horizons + 1, error, marker="o", label=label)
axes.set(xlabel="length of the stretches", ylabel="error, 10 folds", ylim=(0, 0.55))
axes.legend()
plt.show()
