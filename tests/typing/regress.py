"""A regressor on rows as lists and as arrays, and its tube."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent import MEDRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(60, 1))
y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=60)

model = MEDRegressor(C=5.0, epsilon=0.1, gamma=1.0, bias=None).fit(X, y)
curve: NDArray[np.float64] = model.predict(np.linspace(-2.0, 2.0, 50)[:, None])
print(curve.shape, model.score(X, y), model.duality_gap_)

small = MEDRegressor(kernel="linear", max_iter=1000)
small.fit([[0.0], [1.0], [2.0]], [0.0, 1.1, 1.9])
print(small.predict([[3.0]])[0], small.coef_)
