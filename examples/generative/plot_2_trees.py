"""
Classify categories by trees
============================

Each class has a distribution over all dependency trees of the columns. Here the classes
differ only in which columns go together, which naive Bayes cannot see.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import CategoricalNB

from maxent import ChowLiuClassifier, MEDTreeClassifier
from maxent.displays import EdgeWeightsDisplay, TreeGraphDisplay

COLUMNS = 12


def two_groupings(n, seed):
    """Codes 0..3; class 1 pairs halves of the columns, class 0 even and odd ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    columns = np.arange(COLUMNS)
    group = np.where(y[:, None] == 1, columns // 6, columns % 2)
    leader = np.take_along_axis(rng.integers(0, 4, size=(n, 2)), group, axis=1)
    noise = rng.integers(0, 4, size=(n, COLUMNS))
    return np.where(rng.random((n, COLUMNS)) < 0.6, leader, noise), y


# %%
# Few training rows, many test rows.

X, y = two_groupings(200, seed=0)
X_test, y_test = two_groupings(2000, seed=99)
trees = MEDTreeClassifier(C=1.0, level=4.0)
for name, model in {
    "naive Bayes": CategoricalNB(min_categories=4),
    "Chow-Liu trees": ChowLiuClassifier(),
    "all trees, for margins": trees,
}.items():
    model.fit(X, y)
    print(f"{name}: test error {100 * np.mean(model.predict(X_test) != y_test):.1f} %")

# %%
# What has been learnt: edge weights beside mutual informations, and the likely edges.

EdgeWeightsDisplay.from_estimator(trees, X, y)
plt.show()

# %%

TreeGraphDisplay.from_estimator(trees)
plt.show()
