"""
Train Gaussians for their boundary
==================================

A Gaussian for each class has a quadratic boundary. Maximum likelihood fits the
densities; maximum entropy discrimination moves them for the margin of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.svm import SVC

from maxent import MEDGaussianClassifier
from maxent.datasets import load_breast_cancer_wisconsin
from maxent.displays import BoundaryComparisonDisplay

data = load_breast_cancer_wisconsin()
X = data.data[:200] - data.data[:200].mean(axis=0)
y = data.target_names[data.target[:200]]

# %%
# Two principal coordinates of 200 tumour cases, and three ways to a quadratic boundary.

Z = X @ np.linalg.svd(X, full_matrices=False)[2][:2].T
models = {
    "SVM, quadratic kernel": SVC(kernel="poly", degree=2, coef0=1.0),
    "maximum likelihood": QuadraticDiscriminantAnalysis(),
    "MED": MEDGaussianClassifier(),
}
for model in models.values():
    model.fit(Z, y)

# %%
# Regions of each, with the rows.

display = BoundaryComparisonDisplay.from_estimators(models, Z, y)
for ax in display.ax_:
    ax.set_xlabel("first principal coordinate")
display.ax_[0].set_ylabel("second principal coordinate")
plt.show()
