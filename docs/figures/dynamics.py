"""Normalised kernels of two autoregressions, and errors over the horizon."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from maxent.datasets import make_switching_series
from maxent.kernels import lds_affinity_parts
from maxent.models import LinearDynamicalSystem

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")

# x_t = a x_{t-1} + noise with the same variance of every observation
P = [
    LinearDynamicalSystem([[a]], [[1 - a * a]], [[1.0]], [[0.01]], [0.0], [[1.0]])
    for a in (0.9, 0.5, 0.0, -0.5, -0.9)
]
T = np.arange(0, 31)
parts = lds_affinity_parts(P, horizon=T)
for j, a in ((1, "0.5"), (2, "0"), (3, "-0.5"), (4, "-0.9")):
    left.plot(T + 1, np.exp(parts.log_normalized(0.5)[0, j]), label=f"a = {a}")
left.axhline(1.0, color="0.6", ls="--", label="single observations")
left.set(xlabel="length of the sequences", ylabel="kernel with a = 0.9", ylim=(0, 1.05))
left.legend(fontsize="small", frameon=False, loc="lower right", bbox_to_anchor=(1, 0.2))
left.set_title("Autoregressions of equal variance")

series, y, _ = make_switching_series(random_state=0)
models = LinearDynamicalSystem.fit_many(series, n_states=2, tol=1e-3)
horizons = [0, 1, 2, 4, 6, 9, 14, 19, 24]
folds = StratifiedKFold(10, shuffle=True, random_state=0)
for method, label in (("joint", "joint law"), ("per_step", "single observations")):
    parts = lds_affinity_parts(models, horizon=horizons, method=method)
    K = np.exp(parts.log_normalized(0.02))
    error = [
        1 - cross_val_score(SVC(C=100, kernel="precomputed"), k, y, cv=folds).mean()
        for k in np.moveaxis(K, 2, 0)
    ]
    right.plot(np.array(horizons) + 1, error, marker="o", label=label)
right.set(xlabel="length of the sequences", ylabel="error, 10 folds", ylim=(0, 0.55))
right.legend(fontsize="small", frameon=False)
right.set_title("Switching series, one system each")
plt.show()
