"""Classifiers with dependency trees, and the largest margin they can meet."""

import numpy as np
from scipy.sparse import diags_array

from maxent import ChowLiuClassifier, MEDTreeClassifier
from maxent.discrimination import SpanningTrees, max_margin

from .common import Fitted, Measured, profile
from .data import letters, signs


class TreeClassifier(Fitted):
    """Two classes; 400 x 25 letters is the size of the splice sites."""

    params = (
        profile(
            [("fixed", 400, 25), ("dirichlet", 400, 25), ("fixed", 2000, 25)],
            [("fixed", 10000, 60), ("dirichlet", 10000, 60)],
        ),
    )
    param_names = ("parameters, rows, columns",)

    def data(self, case):
        self.parameters, *size = case
        self.X, self.y, self.X_test, self.y_test = letters(*size)

    def estimator(self):
        # a level that the tables alone do not give all rows
        return MEDTreeClassifier(self.parameters, C=1.0, level=4.0)


class ChowLiu(Fitted):
    """The most likely tree of each class; no solver, so no tolerance."""

    params = (profile([(2000, 25)], [(10000, 60)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = letters(*size)

    def estimator(self):
        return ChowLiuClassifier()

    def work(self, tol=None):
        """Fit."""
        return super().work()

    def objective(self, result):
        """Mutual information of all pairs of columns."""
        return result.information_.sum()


class LargestMargin(Measured):
    """Bounds from both sides, by cutting planes."""

    params = (profile([(100, 12)], [(400, 25)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        X, y, *_ = letters(*size, test=10)
        sizes = [4] * size[1]
        self.blocks = [
            SpanningTrees.fit(X[y == k], n_categories=sizes).block(X) for k in (1, 0)
        ]
        sign = signs(y)
        self.maps = [diags_array(sign), diags_array(-sign)]

    def work(self, tol=1e-6):
        return max_margin(self.blocks, self.maps, tol=tol)

    def objective(self, result):
        return float(np.mean([result.lower, result.upper]))
