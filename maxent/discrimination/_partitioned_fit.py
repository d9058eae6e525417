"""Linear machines fitted to Dask arrays, block by block."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from maxent._support import validation as v
from maxent._support.kernel_parameters import LARGEST_FEATURE
from maxent._support.partitions import (
    check_partitions,
    is_partitioned,
    partitions_of,
    sample_of,
)
from maxent._support.progress import progress_of
from maxent._support.results import store_certificate
from maxent.discrimination._class_rows import check_class_keys
from maxent.discrimination.duals._local_ascent import local_ascent
from maxent.discrimination.duals._partitioned_linear import solve_partitioned
from maxent.discrimination.duals._signed_problem import (
    in_units,
)

_SAMPLE = 1 << 16  # rows of the start, at most
_SAMPLE_ENTRIES = 4_000_000
_STEPS = 500  # Newton steps, or rounds; smooth losses take ten


def data_is_partitioned(X, y, sample_weight):
    """Whether to fit by partitions; refuses Dask targets of other rows."""
    if is_partitioned(X):
        return True
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None and is_partitioned(value):
            raise TypeError(
                f"{name} is a Dask array and X is not; make X one too, with "
                f"dask.array.from_array(X, chunks=...), or pass {name}.compute()."
            )
    return False


class PartitionedFit:
    """The rows of a Dask array, and a linear machine fitted to them.

    Parameters
    ----------
    estimator : MEDClassifier or MEDRegressor
    X, y, sample_weight : Dask arrays, or for the latter two also arrays
    kind : {"labels", "targets"}
    """

    def __init__(self, estimator, X, y, sample_weight, kind):
        if not estimator._has_kernel("linear"):
            raise ValueError(
                f"X is a Dask array, and kernel={v.shown(estimator.kernel)} needs all "
                "rows at once; use kernel='linear', or features that approximate the "
                "kernel (sklearn.kernel_approximation), or X.compute()."
            )
        if estimator.solver not in ("auto", "newton", "coordinate"):
            raise ValueError(
                f"solver={v.shown(estimator.solver)} needs all rows at once; use "
                "'auto', 'newton' or 'coordinate' for Dask arrays."
            )
        if y is None:
            raise ValueError("y is None; the fit needs a target for each row.")
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}; expected (n_samples, n_features)."
            )
        self.estimator = estimator
        self.parts = partitions_of(X, y, sample_weight, names=("y", "sample_weight"))
        self.summaries = check_partitions(self.parts, kind, LARGEST_FEATURE)
        self.n = sum(s.n for s in self.summaries)
        if not self.n:
            raise ValueError("sample_weight is zero for every row; keep some rows.")
        size = min(_SAMPLE, max(_SAMPLE_ENTRIES // max(self.parts.n_columns, 1), 1000))
        lengths = [s.n for s in self.summaries]
        self.sample = sample_of(self.parts, lengths, size)
        self.sparse = sp.issparse(self.sample[0])

    def classes(self, class_weight):
        """(classes, factor by class) of the rows of positive weight."""
        v.check_class_weight(class_weight)
        labels = np.concatenate([s.labels for s in self.summaries])
        weights = np.concatenate([s.label_weight for s in self.summaries])
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(
                f"y has {len(classes)} classes ({v.shown(classes.tolist())}); a fit to "
                "a Dask array takes two. For more use one machine for each class "
                "against the others, or MaxEntClassifier."
            )
        if class_weight is None:
            return classes, np.ones(2)
        check_class_keys(class_weight, classes)
        return classes, compute_class_weight(
            class_weight,
            classes=classes,
            y=classes,
            sample_weight=np.bincount(codes, weights, 2),
        )

    def solve(self, rows, tol):
        """DualResult of :class:`PartRows`; stores the fitted state."""
        estimator, unit = self.estimator, rows.unit
        if not rows.margin.unit_potential.finite_loss:
            raise ValueError(
                f"margin={v.shown(estimator.margin)} has no finite loss, which a fit "
                "to a Dask array needs; use margin='hinge' with a large C."
            )

        def store(model, result):
            result = in_units(result, unit)
            _store(model, result, self.parts.n_columns, rows.centre)
            return result

        callback = progress_of(estimator, store, unit=unit**2)
        steps = min(estimator.max_iter, _STEPS)
        options = {"tol": tol, "max_iter": steps, "callback": callback}
        if estimator.solver == "coordinate":
            mean = sum(s.squares for s in self.summaries) / self.n
            result = local_ascent(self.parts, rows, mean, **options)
        else:
            result = solve_partitioned(
                self.parts, rows, self.sample, sparse=self.sparse, **options
            )
        if steps < estimator.max_iter:
            result.max_iter = steps
        return store(estimator, result)


def _store(model, result, n_columns, centre):
    """Fitted state without multipliers: these stay in the partitions."""
    model.n_features_in_ = n_columns
    model.coef_ = np.atleast_2d(result.coef)
    model.intercept_ = np.array([result.bias + centre])
    model.support_ = np.empty(0, dtype=np.intp)
    model.dual_coef_ = np.empty((1, 0))
    model.support_vectors_ = np.empty((0, n_columns))
    model.gamma_ = 0.0
    store_certificate(model, result)
