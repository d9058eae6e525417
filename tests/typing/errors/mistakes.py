"""What a type checker must refuse; both must report the marked lines and no other."""

from __future__ import annotations

import numpy as np

import maxent
from maxent import (
    ChowLiuClassifier,
    MEDClassifier,
    MEDOutlierDetector,
    MEDRegressor,
)
from maxent.datasets import load_crabs
from maxent.discrimination import ExponentialMargin, solve_dual
from maxent.families import Gaussian, Poisson
from maxent.kernels import fisher_kernel

X, y = load_crabs(return_X_y=True)

# parameters
MEDClassifier(c=3)  # error
MEDClassifier(kernel="rfb")  # error
MEDClassifier(C="ten")  # error
MEDClassifier("rbf", 1.0, "exponential")  # error
MEDRegressor(eps=0.1)  # error
ChowLiuClassifier(class_prior="flat")  # error
MEDOutlierDetector(quantile="0.2")  # error
load_crabs(target="age")  # error
ExponentialMargin("sharp")  # error
fisher_kernel(np.eye(3), information="full")  # error
Poisson(mean=3.0)  # error

# methods and functions
MEDClassifier().fit(X)  # error
MEDClassifier().fit(X, y, weights=y)  # error
solve_dual(X @ X.T, y)  # error
Poisson(1.0).kl(Gaussian([0.0], [[1.0]]))  # error
Poisson(1.0).sample()  # error
Poisson(1.0).rate = 2.0  # error
maxent.load()  # error
print(maxent.discriminate)  # error
