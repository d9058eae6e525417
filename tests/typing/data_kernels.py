"""Scores, words and divergences, as a caller with mypy --strict uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent.families import Categorical, Poisson
from maxent.kernels import (
    FisherScores,
    heat_kernel,
    js_kernel,
    kl_kernel,
    marginalized_kernel,
    product_kernel,
    repair_kernel,
    spectrum_features,
    spectrum_kernel,
)
from maxent.models import CategoricalHMM

model = CategoricalHMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]])
strings = ["ABAB", "BBAA"]
codes = [[0, 1, 0], [1, 1, 1]]

scores = FisherScores(model, representation="overcomplete", n_jobs=1)
U: NDArray[np.float64] = scores.fit().transform(codes)
print(U.shape, scores.get_feature_names_out())

K: NDArray[np.float64] = spectrum_kernel(strings, k=2, alphabet="AB", normalize=True)
print(K, spectrum_features(strings, 2, alphabet="AB").shape)
K = marginalized_kernel(codes, model=model, order=2)
K = js_kernel(Categorical([[0.5, 0.5], [0.1, 0.9]]), gamma=2.0)
K = heat_kernel([[0.5, 0.5], [0.1, 0.9]], t=0.1, method="exact", log=True)
K = kl_kernel(Poisson([1.0, 2.0]), repair=True, normalize=True)
K = repair_kernel(product_kernel(Poisson([1.0, 2.0])))
print(K)
