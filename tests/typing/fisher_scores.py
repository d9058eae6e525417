"""Fisher kernels between scores, and their features in a pipeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from maxent import FisherFeatures, MEDClassifier
from maxent.kernels import fisher_kernel

rng = np.random.default_rng(0)
y = np.arange(60) % 2
X = rng.normal(size=(60, 2)) + 2 * y[:, None]
scores = (X - X.mean(axis=0)) @ np.linalg.inv(np.cov(X.T))

K: NDArray[np.float64] = fisher_kernel(scores, information="diagonal", center=True)
between = fisher_kernel(scores[:10], scores, reference=scores, ridge=0.1, n_jobs=1)
print(K.shape, between.shape)

features = FisherFeatures(np.eye(2), ridge=0.01).fit(scores)
whitened: NDArray[np.float64] = features.transform(scores)
print(whitened.shape, features.factor_)
machine = make_pipeline(FisherFeatures("identity"), MEDClassifier(kernel="linear"))
print(machine.fit(scores, y).score(scores, y))
