"""
Follow a machine over C
=======================

``dual_path`` solves the same problem at every C, each from the answer of the one
before. Objective, support, duality gap and held-out error show where more C
stops to help.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from maxent.datasets import load_crabs
from maxent.discrimination import ExponentialMargin, dual_path
from maxent.displays import DualPathDisplay

X, y = load_crabs(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.where(y == 1, 1.0, -1.0)
train = np.arange(len(y)) % 2 == 0
K = rbf_kernel(X, X[train], gamma=0.2)

# %%
# Seventeen problems on half of the rows; the other half says what they are worth.

C = np.logspace(-1, 3, 17)
path = dual_path(
    K[train], y[train], ExponentialMargin(rate=10.0), C, tol=1e-6, solver="smo"
)
DualPathDisplay.from_results(
    C, path, y=y[train], K_test=K[~train], y_test=y[~train], tol=1e-6
)
plt.show()
