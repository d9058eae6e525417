"""Feature selection as a classifier, as a step, and with names of columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier, MEDFeatureSelector

rng = np.random.default_rng(0)
y = np.where(np.arange(100) % 2, "yes", "no")
X = rng.normal(size=(100, 6))
X[y == "yes", 0] += 2.0

selector = MEDFeatureSelector(0.5, C=10.0, bias=4.0).fit(X, y)
kept = selector.get_support()
chance: NDArray[np.float64] = selector.inclusion_proba_
print(kept, chance, selector.predict(X)[:3], selector.coef_)

steps = make_pipeline(
    StandardScaler(), MEDFeatureSelector(0.5), MEDClassifier(kernel="linear")
)
print(steps.fit(X, y).score(X, y))
