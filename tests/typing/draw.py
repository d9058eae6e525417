"""Displays of a pipeline and of a grid search, on axes of one's own."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier, MEDTreeClassifier
from maxent.datasets import load_crabs
from maxent.discrimination import ExponentialMargin, dual_path
from maxent.displays import (
    BoundaryComparisonDisplay,
    DualPathDisplay,
    EdgeWeightsDisplay,
    MarginPriorDisplay,
    MEDBoundaryDisplay,
    ROCComparisonDisplay,
    TreeGraphDisplay,
)

X, y = load_crabs(return_X_y=True)
X = X[:, :2]
pipeline = make_pipeline(StandardScaler(), MEDClassifier(C=10.0)).fit(X, y)
search = GridSearchCV(MEDClassifier(), {"C": [1.0, 10.0]}, cv=3).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
boundary = MEDBoundaryDisplay.from_estimator(pipeline, X, y, grid_resolution=30)
boundary.plot(left, legend=False)
ROCComparisonDisplay.from_estimators(
    {"pipeline": pipeline, "search": search.best_estimator_}, X, y
).plot(right)
BoundaryComparisonDisplay.from_estimators(
    {
        "small C": MEDClassifier(C=0.1).fit(X, y),
        "large C": MEDClassifier(C=9).fit(X, y),
    },
    X,
    y,
    grid_resolution=30,
).plot()
MarginPriorDisplay([ExponentialMargin(5.0)], C=5.0).plot()

signs = np.where(y == 1, 1, -1)
path = dual_path(X @ X.T, signs, ExponentialMargin(5.0), [0.1, 1.0])
DualPathDisplay.from_results([0.1, 1.0], path).plot(tol=1e-6)

letters = np.array(list("ab"))[(np.median(X, axis=0) < X).astype(int)]
trees = MEDTreeClassifier().fit(np.column_stack([letters, letters[::-1]]), y)
EdgeWeightsDisplay.from_estimator(
    trees, np.column_stack([letters, letters[::-1]]), y
).plot()
TreeGraphDisplay.from_estimator(trees).plot()
plt.close("all")
