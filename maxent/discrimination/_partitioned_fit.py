"""Linear machines, and approximate kernel machines, fitted to rows block by block."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from maxent._partitions.partition_checks import (
    read_partitions,
    rows_of_weight,
    sample_of,
)
from maxent._support import validation as v
from maxent._support.progress import progress_of
from maxent._support.random_state import as_generator
from maxent._support.results import store_certificate
from maxent.discrimination._approximation import NystroemMap, landmark_rows
from maxent.discrimination.duals._local_ascent import local_ascent
from maxent.discrimination.duals._partitioned_linear import solve_partitioned
from maxent.discrimination.duals._signed_problem import in_units
from maxent.discrimination.grams.kernel_parameters import (
    LARGEST_FEATURE,
    resolve_gamma,
)

_SAMPLE = 1 << 16  # rows of the start, at most
_SAMPLE_ENTRIES = 4_000_000
_STEPS = 500  # Newton steps, or rounds; smooth losses take ten


class PartitionedFit:
    """The rows of a Dask array or RowBlocks, and a linear machine fitted to them.

    Parameters
    ----------
    estimator : MEDClassifier or MEDRegressor
    X : Dask array or RowBlocks
    y, sample_weight : Dask arrays or arrays
    kind : {"labels", "targets"}
    margin : MarginPrior
    """

    def __init__(self, estimator, X, y, sample_weight, kind, margin):
        self._check_settings(estimator, margin)
        self.estimator = estimator
        self.parts, self.summary = read_partitions(
            X, y, sample_weight, kind, LARGEST_FEATURE
        )

    @cached_property
    def sample(self):
        """Rows of the start (X, y, weight), weighted to stand for all."""
        size = min(_SAMPLE, max(_SAMPLE_ENTRIES // max(self.parts.n_columns, 1), 1000))
        return sample_of(self.parts, self.summary.lengths, size)

    @staticmethod
    def _check_settings(estimator, margin):
        """Refuse what partitions cannot do, before the first pass over the rows."""
        approximate = estimator.approximation is not None
        if not (approximate or estimator._has_kernel("linear")):
            raise ValueError(
                f"X comes in blocks, and kernel={v.shown(estimator.kernel)} needs all "
                "rows at once; use kernel='linear', or approximation='nystroem', or "
                "X.compute()."
            )
        solvers = ("auto", "newton", "coordinate")[: 2 if approximate else 3]
        if estimator.solver not in solvers:
            raise ValueError(
                f"solver={v.shown(estimator.solver)} needs all rows at once; use "
                f"{' or '.join(map(repr, solvers))} for rows in blocks."
            )
        if not margin.unit_potential.finite_loss:
            raise ValueError(
                f"margin={v.shown(estimator.margin)} has no finite loss, which a fit "
                "to rows in blocks needs; use margin='hinge' with a large C."
            )
        v.check_class_weight(getattr(estimator, "class_weight", None))

    @cached_property
    def features(self):
        """NystroemMap of landmarks from the sample; None for a linear kernel.

        Sets the gamma of the estimator.
        """
        estimator = self.estimator
        if estimator.approximation is None:
            return None
        X = self.sample[0]
        rng = as_generator(estimator.random_state)
        estimator.gamma_ = self._gamma(X)
        return NystroemMap(X[landmark_rows(X.shape[0], estimator, rng)], estimator)

    def _gamma(self, X):
        """Number for gamma; "scale" is that of all rows."""
        gamma = self.estimator.gamma
        if gamma != "scale" or callable(self.estimator.kernel):
            return resolve_gamma("auto" if gamma == "scale" else gamma, X)
        middle = float(X.mean())
        total, first, second = self.parts.total(_moments_of_entries, middle)
        variance = second / total - (first / total) ** 2
        return 1.0 / (self.parts.n_columns * variance) if variance > 1e-290 else 1.0

    def classes(self, class_weight):
        """(classes, factor by class) of the rows of positive weight."""
        classes = self.summary.classes
        if len(classes) == 1:
            raise ValueError(
                f"y contains one class only ({v.shown(classes[0])}) among rows of "
                "positive weight; add rows of another class."
            )
        if len(classes) > 2:
            self._check_several(len(classes))
        total = self.summary.class_weight
        return classes, v.class_factors(class_weight, classes, total)

    def _check_several(self, m):
        """Refuse what a joint machine of several classes in blocks cannot be."""
        estimator = self.estimator
        if estimator.multi_class == "ovo":
            raise ValueError(
                f"multi_class='ovo' fits a machine for every pair of {m} classes, and "
                "rows in blocks take one for all; use multi_class='joint'."
            )
        if estimator.solver == "coordinate":
            raise ValueError(
                f"solver='coordinate' does not solve {m} classes of rows in blocks; "
                "use solver='newton' or 'auto'."
            )

    def solve(self, rows, tol):
        """DualResult of PartRows; stores the fitted state."""
        estimator, unit = self.estimator, rows.unit

        def store(model, result):
            result = in_units(result, unit)
            _store(model, result, self.parts.n_columns, rows)
            return result

        callback = progress_of(estimator, store, unit=unit**2)
        steps = min(estimator.max_iter, _STEPS)
        options = {"tol": tol, "max_iter": steps, "callback": callback}
        if estimator.solver == "coordinate":
            mean = self.summary.squares / self.summary.n
            result = local_ascent(self.parts, rows, mean, **options)
        else:
            sparse = sp.issparse(self.sample[0])
            result = solve_partitioned(
                self.parts, rows, self.sample, sparse=sparse, **options
            )
        if steps < estimator.max_iter:
            result.max_iter = steps
        return store(estimator, result)


def _store(model, result, n_columns, rows):
    """Fitted state without multipliers: these stay in the partitions."""
    model.n_features_in_ = n_columns
    b = np.atleast_1d(result.bias + rows.centre)
    if rows.features is None:
        model.coef_, model.intercept_ = np.atleast_2d(result.coef), b
        model.support_ = np.empty(0, dtype=np.intp)
        model.dual_coef_ = np.empty((len(b), 0))
        model.support_vectors_ = np.empty((0, n_columns))
        model.gamma_ = 0.0
    else:
        unknown = np.full(rows.features.landmarks.shape[0], -1)
        model._store_map(rows.features, unknown, result.coef, b)
        model.approximation_gap_ = np.nan
        model.approximation_gap_estimate_ = np.full(2, np.nan)
    store_certificate(model, result)


def _moments_of_entries(X, y, weight, middle):
    """Sums over the entries of the weights, and weighted ones of x and its square."""
    X, _, weight = rows_of_weight(X, y, weight)
    X = (X.toarray() if sp.issparse(X) else X).astype(np.float64) - middle
    sums = weight @ X.sum(axis=1), weight @ np.einsum("ij,ij->i", X, X)
    return float(weight.sum() * X.shape[1]), *map(float, sums)
