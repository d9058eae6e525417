"""Estimators: fit, predict, memory, score, fingerprint."""

import numpy as np

from maxent import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDPartialLabelClassifier,
    MEDRegressionSelector,
    MEDRegressor,
)

from .common import Fitted, profile
from .data import classification, regression, sparse_text


class KernelClassifier(Fitted):
    """Two classes, RBF kernel, C = 10."""

    params = (profile([(300, 20), (2000, 20)], [(5000, 20), (5000, 200), (20000, 20)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = classification(*size)

    def estimator(self):
        return MEDClassifier(C=10.0, n_jobs=1)


class MulticlassClassifier(Fitted):
    """Four or ten classes in one joint problem, RBF kernel."""

    params = (profile([(200, 4)], [(1000, 4), (1000, 10)]),)
    param_names = ("rows, classes",)

    def data(self, size):
        n, classes = size
        self.X, self.y, self.X_test, self.y_test = classification(
            n, 20, classes=classes
        )

    def estimator(self):
        return MEDClassifier(C=10.0, n_jobs=1)


class SparseLinearClassifier(Fitted):
    """CSR features, linear kernel, penalised bias: coordinate ascent."""

    params = (
        profile([(20000, 20000)], [(200000, 50000)]),
        ["exponential", "hinge", "logistic"],
    )
    param_names = ("rows, columns", "margin")

    def data(self, size, margin):
        self.margin = margin
        self.X, self.y, self.X_test, self.y_test = sparse_text(*size)

    def estimator(self):
        return MEDClassifier("linear", C=1.0, margin=self.margin, bias=1.0)


class DenseLinearClassifier(Fitted):
    """Many rows, few columns, linear kernel, flat bias: primal Newton."""

    params = (
        profile([(20000, 50)], [(500000, 50)]),
        ["exponential", "logistic"],
    )
    param_names = ("rows, columns", "margin")

    def data(self, size, margin):
        self.margin = margin
        self.X, self.y, self.X_test, self.y_test = classification(*size)

    def estimator(self):
        return MEDClassifier("linear", C=1.0, margin=self.margin)


class Regressor(Fitted):
    """Regression with a tube, RBF kernel."""

    params = (profile([(300, 5), (1500, 5)], [(5000, 20)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = regression(*size)

    def estimator(self):
        return MEDRegressor(C=10.0, epsilon=0.1, n_jobs=1)


class FeatureSelector(Fitted):
    """Linear classification with switches."""

    params = (profile([(300, 100), (2000, 50)], [(2000, 1000)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = classification(*size)

    def estimator(self):
        return MEDFeatureSelector(C=1.0)


class RegressionSelector(FeatureSelector):
    """Linear regression with switches."""

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = regression(*size)

    def estimator(self):
        return MEDRegressionSelector(C=1.0)


class PartialLabels(Fitted):
    """RBF kernel, nine rows in ten without a label."""

    params = (profile([(1000, 20)], [(4000, 20)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = classification(*size)
        self.y = np.where(np.arange(len(self.y)) % 10, -1, self.y)

    def estimator(self):
        return MEDPartialLabelClassifier(MEDClassifier(n_jobs=1))
