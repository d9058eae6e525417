"""Rows without labels, doubted labels, and a machine of one's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent import MEDGaussianClassifier, MEDPartialLabelClassifier

rng = np.random.default_rng(0)
y = np.arange(40) % 2
X = rng.normal(size=(40, 2)) + 4.0 * y[:, None]

model = MEDPartialLabelClassifier(class_prior="labelled", step=1.0)
model.fit(X, np.where(np.arange(40) < 10, y, -1))
means: NDArray[np.float64] = model.label_mean_
print(means.shape, model.transduction_[:3], model.converged_, model.predict(X)[:3])

doubted = MEDPartialLabelClassifier(MEDGaussianClassifier(level=2.0), max_rounds=5)
print(doubted.fit(X, label_prior=np.where(y, 0.9, 0.1)).objective_history_)
