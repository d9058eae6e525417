"""A classifier in a pipeline and a grid search, its probabilities and certificate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxent
from maxent import MEDClassifier
from maxent.datasets import load_crabs
from maxent.discrimination import LogisticMargin

X, y = load_crabs(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

machine = MEDClassifier(kernel="linear", C=10.0, margin=LogisticMargin(2.0), tol=1e-4)
machine.fit(X_train, y_train, sample_weight=np.ones(len(y_train)))
labels: NDArray[np.int64] = machine.predict(X_test)
values: NDArray[np.float64] = machine.decision_function(X_test)
probabilities: NDArray[np.float64] = machine.predict_proba(X_test)
gap: float = machine.duality_gap_
print(maxent.__version__, float(machine.score(X_test, y_test)), gap, machine.loo_bound_)

search = GridSearchCV(
    make_pipeline(StandardScaler(), MEDClassifier(class_weight="balanced")),
    {"medclassifier__C": [1.0, 10.0], "medclassifier__margin": ["exponential"]},
    cv=3,
)
search.fit(X_train, y_train)
print(search.best_params_)


def support_share(model: MEDClassifier, rows: ArrayLike) -> float:
    """Share of rows that carry a multiplier."""
    return float(len(model.support_) / np.shape(rows)[0])


print(support_share(machine, X_train))
