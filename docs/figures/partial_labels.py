"""Two crescents with six labels: the boundary without and with the other rows."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxent import MEDClassifier, MEDPartialLabelClassifier

X, y = make_moons(200, noise=0.08, random_state=3)
X = np.round(X, 6)
labelled = np.concatenate([np.flatnonzero(y == k)[[0, 30, 60]] for k in (0, 1)])
part = np.full(200, -1)
part[labelled] = y[labelled]
machine = MEDClassifier(gamma=3.0, C=3.0, bias=1.0)
few = MEDClassifier(**machine.get_params()).fit(X[labelled], y[labelled])
model = MEDPartialLabelClassifier(machine).fit(X, part)

grid = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.1, 1.6, 90)), 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
titles = ("six labelled rows alone", "with 194 rows without a label")
for ax, found, title in zip(axes, (few, model), titles, strict=True):
    f = found.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contour(grid[..., 0], grid[..., 1], f, levels=[0.0], colors="k")
    ax.scatter(*X.T, s=9, c="0.7")
    for k, (marker, colour) in enumerate((("o", "#0072b2"), ("s", "#e69f00"))):
        ax.scatter(*X[part == k].T, s=55, marker=marker, c=colour, edgecolor="k")
    ax.set(title=title, aspect="equal")
plt.show()
