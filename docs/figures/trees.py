"""Two classes that differ in which columns go together: weights, edges, errors."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import CategoricalNB

from maxent import ChowLiuClassifier, MEDTreeClassifier
from maxent.displays import EdgeWeightsDisplay, TreeGraphDisplay

COLUMNS = 12
DRAWS = 3


def two_groupings(n, seed):
    """Codes 0..3; class 1 pairs halves of the columns, class 0 even and odd ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    columns = np.arange(COLUMNS)
    group = np.where(y[:, None] == 1, columns // 6, columns % 2)
    leader = np.take_along_axis(rng.integers(0, 4, size=(n, 2)), group, axis=1)
    noise = rng.integers(0, 4, size=(n, COLUMNS))
    return np.where(rng.random((n, COLUMNS)) < 0.6, leader, noise), y


trees = MEDTreeClassifier(C=1.0, level=4.0, tol=1e-4)  # enough for a picture
models = {
    "naive Bayes": CategoricalNB(min_categories=4),
    "Chow-Liu trees": ChowLiuClassifier(),
    "MED trees": trees,
}
X_test, y_test = two_groupings(2000, 99)
sizes = [100, 200, 400, 800]
errors = np.empty((len(models), len(sizes), DRAWS))
for draw in range(DRAWS):
    X, y = two_groupings(sizes[-1], draw)
    for i, model in enumerate(models.values()):
        for j, n in enumerate(sizes):
            model.fit(X[:n], y[:n])
            errors[i, j, draw] = np.mean(model.predict(X_test) != y_test)

fig, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="none")
fig.subplots_adjust(left=0.02, right=0.98, top=0.92, wspace=0.3)
EdgeWeightsDisplay.from_estimator(trees, X, y, ax=axes[0])
TreeGraphDisplay.from_estimator(trees, ax=axes[1])
for name, error in zip(models, errors, strict=True):
    axes[2].plot(sizes, 100 * error.mean(axis=1), ".-", label=name)
axes[2].set(xscale="log", ylim=(0, 60), xlabel="rows to train", ylabel="test error, %")
axes[2].set_xticks(sizes, sizes)
axes[2].minorticks_off()
axes[2].legend(fontsize="small", loc="lower left")
axes[2].set_title("Mean over three draws")
plt.show()
