"""Base class of kernel machines: kernels, support rows, decision values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import CertifiedState, check_fitted
from maxent._support.progress import progress_of
from maxent._support.results import relayed, store_certificate, warn_not_converged
from maxent._support.threads import (
    effective_threads,
    single_threaded_blas,
    threads_of,
)
from maxent._support.typing import FloatArray, IntArray
from maxent._support.validation import names_of_columns
from maxent.discrimination._approximation import (
    NystroemFeatures,
    check_approximation,
    is_approximated,
)
from maxent.discrimination._equal_rows import EqualRows
from maxent.discrimination._far_rows import at_zero, near_zero
from maxent.discrimination.duals._definiteness import warn_indefinite
from maxent.discrimination.duals._signed_dual import solve_signed
from maxent.discrimination.duals.class_pairs import CLASS_WEIGHT_VARIANCE
from maxent.discrimination.duals.linear_dual import solve_linear
from maxent.discrimination.grams.kernel_parameters import (
    check_features,
    check_kernel,
    resolve_gamma,
    warn_of_gram,
    warn_of_one_entry,
)
from maxent.discrimination.grams.vector_kernels import (
    KernelValues,
    VectorKernel,
    kernel_of_rows,
)

_LINEAR_SOLVERS = ("coordinate", "newton")
_OF_ROWS = ("support_", "support_vectors_", "dual_coef_")
_LINEAR_STEPS = 5000  # epochs of coordinate ascent; max_iter counts steps of two rows


class KernelMachineMixin(CertifiedState):
    """Fitted state and prediction of f(x) = dual_coef_ @ k(support, x) + intercept_."""

    support_: IntArray
    support_vectors_: Any  # an array, or CSR
    dual_coef_: FloatArray
    intercept_: FloatArray
    coef_: FloatArray
    gamma_: float
    approximation_gap_: float
    approximation_gap_estimate_: FloatArray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._has_kernel("precomputed")
        tags.input_tags.pairwise = self._has_kernel("precomputed")
        return tags

    def _has_kernel(self, name):
        """True if the kernel is the named one; it may also be a function."""
        return isinstance(self.kernel, str) and self.kernel == name

    def _spare_attributes(self):
        """Names of the fitted attributes that a compact model file leaves out."""
        if self._has_kernel("linear"):
            return _OF_ROWS
        if self._has_kernel("precomputed"):
            return ()
        raise ValueError(
            f"compact=True leaves out the training rows, and {type(self).__name__} "
            f"with kernel={self.kernel!r} predicts by them; save it without "
            "compact=True, or fit with kernel='linear'."
        )

    def _is_compact(self):
        """True if the machine was loaded from a compact model file."""
        state = vars(self)
        return "coef_" in state and not any(name in state for name in _OF_ROWS)

    def _check_machine_parameters(self):
        """Checked (bias, tol)."""
        v.check_positive("C", self.C)
        v.check_count("max_iter", self.max_iter)
        v.check_positive("cache_size", self.cache_size)
        v.check_number("sharpness", self.sharpness)
        v.check_choice(
            "solver", self.solver, ("auto", "interior", "smo", *_LINEAR_SOLVERS)
        )
        v.check_jobs(self.n_jobs)
        check_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        check_approximation(self)
        return v.check_bias(self.bias), v.check_positive("tol", self.tol)

    def _validated(self, X, *y, **options):
        """Checked X, or X and y: dense or CSR, in either precision."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries
            return validated(
                self,
                X,
                *y,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                **options,
            )

    def _rows_to_fit(self, X, keep):
        """All features or the whole kernel matrix, checked, and its rows to fit."""
        if self._has_kernel("precomputed"):
            X = v.check_gram(X)
        else:
            check_features(X, self.kernel, names_of_columns(self))
            warn_of_gram(self.kernel, X)
        return X, X if len(keep) == X.shape[0] else self._some_rows(X, keep)

    def _some_rows(self, data, rows):
        """Features of some rows, or the kernel matrix between them."""
        if self._has_kernel("precomputed"):
            return data[np.ix_(rows, rows)]
        return data[rows]

    def _approximated(self, X, data):
        """X and its rows to fit, as features of the approximation if one is asked."""
        if self.approximation is None:
            return X, data
        features = NystroemFeatures(data, self)
        return features, features

    def _near_zero(self, data, bias):
        """Rows to solve with, and their origin if a linear machine is far from zero."""
        if not self._has_kernel("linear") or is_approximated(data):
            return data, None
        return near_zero(data, bias)

    def _solve(self, data, problem, tol, store, unit=1.0, init=None, gram=None):
        """DualResult with signed multipliers, by the solver that suits the kernel.

        Progress is shown in the units of the targets, of which the problem's is `unit`;
        `store` is that of :func:`progress_of`. Signed multipliers `init` are a start. A
        caller with several problems may have the matrix of the rows, `gram`.
        """
        callback = progress_of(self, store, unit=unit**2)
        along = vars(self).get("_along")
        if along is not None:
            init, gram = along.start(problem), self._gram_along(along, data, problem)
        kernel = None if gram is None else gram.kernel
        result = self._solve_rows(data, problem, tol, callback, init, kernel, gram)
        if along is not None:
            along.note(problem, result.lam)
        return result

    def _gram_along(self, along, data, problem):
        """The matrix that fits at several C share; None where it would not serve."""
        if is_approximated(data) or self._has_kernel("linear"):
            return None
        if self.solver not in ("auto", "smo") or EqualRows.of(data, problem):
            return None
        make_kernel = partial(self._kernel, data)
        return along.matrix_of(make_kernel, problem.bias)

    def _solve_rows(
        self, data, problem, tol, callback, init=None, kernel=None, gram=None
    ):
        """As `_solve`, with the callback; a kernel that is not linear may be given."""
        if kernel is None and not self._has_kernel("precomputed"):
            equal = EqualRows.of(data, problem)
            if equal is not None:
                return self._solve_distinct(data, equal, tol, callback, init)
        if self._goes_linear(data, problem):
            steps = min(self.max_iter, _LINEAR_STEPS)
            with threads_of(self.n_jobs):
                result = solve_linear(
                    data.values if is_approximated(data) else data,
                    problem,
                    tol=tol,
                    max_iter=steps,
                    init=None if init is None else np.abs(init),
                    solver=self.solver,
                    callback=callback,
                    check=is_approximated(data),  # others are checked
                )
            if steps < self.max_iter and result.max_iter is None:
                result.max_iter = steps
            return result
        return solve_signed(
            self._kernel(data) if kernel is None else kernel,
            problem,
            tol=tol,
            kkt_tol=tol,
            max_iter=self.max_iter,
            init=init,
            solver=self.solver,
            cache_size=self.cache_size,
            callback=callback,
            gram=gram,
        )

    def _solve_distinct(self, data, equal, tol, callback, init):
        """As `_solve_rows`, of rows that are equal as one."""

        def spread(result):
            result.lam = equal.spread(result.lam)
            return result

        callback = relayed(callback, lambda report: report.translated(spread))
        init = None if init is None else equal.gathered(init)
        rows = data[equal.first]
        return spread(self._solve_rows(rows, equal.problem, tol, callback, init))

    def _goes_linear(self, data, problem):
        if is_approximated(data):
            return True
        if not self._has_kernel("linear"):
            if self.solver in _LINEAR_SOLVERS:
                raise ValueError(
                    f"solver={self.solver!r} needs kernel='linear'; with "
                    f"kernel={self.kernel!r} use 'auto', 'interior' or 'smo'."
                )
            return False
        if self.solver in _LINEAR_SOLVERS:
            return True
        if self.solver != "auto":
            return False
        n, d = data.shape
        if sp.issparse(data):  # of documents a matrix of inner products costs more
            return n > (100 if d > n else 2000)
        # hinges take the interior point, which costs more per row and per column
        smooth = problem.margin.unit_potential.smooth
        return n > max(400 if smooth else 1000, 4 * d) and d <= (
            2000 if smooth else 500
        )

    def _gamma(self, data, sample):
        """Number for gamma; a kernel without one costs no pass over the data."""
        if self.kernel in ("linear", "precomputed") or callable(self.kernel):
            data, sample = data[:0], None
        warn_of_one_entry(self.gamma, data, names_of_columns(self))
        return resolve_gamma(self.gamma, data, sample)

    def _kernel(self, data):
        if is_approximated(data):
            return VectorKernel(data.values, "linear")
        return kernel_of_rows(
            data,
            self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            n_jobs=self.n_jobs,
        )

    def _store(self, result, coefficients, b, keep, X, origin=None):
        if is_approximated(X):
            self._store_landmarks(result, coefficients, b, keep, X)
            return
        inside = np.flatnonzero((coefficients != 0).any(axis=0))
        self.support_ = keep[inside]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, inside])
        self.intercept_ = np.asarray(b, dtype=np.float64)
        self._keep_rows(X)
        if self._has_kernel("linear"):
            if result.coef is None:
                rows = self.support_vectors_
                rows = rows if origin is None else rows - origin
                self.coef_ = np.asarray(self.dual_coef_ @ rows)
            else:
                self.coef_ = np.atleast_2d(result.coef)
            self.intercept_ = at_zero(self.intercept_, self.coef_, origin)
        store_certificate(self, result)

    def _warn_of_end(self, result, X):
        """Warn of a fit that has no certificate, or not the one that was asked for.

        `X` are its features, or None for a kernel matrix.
        """
        name = type(self).__name__
        if np.isnan(result.gap):
            warn_indefinite(name, result)
        elif not result.converged:
            warn_not_converged(name, result, float(self.tol), self.max_iter, X)

    def _keep_rows(self, X):
        """Keep the support vectors, as far as predictions need them."""
        if self._has_kernel("precomputed"):
            self.support_vectors_ = np.empty((0, 0))
            return
        # a linear machine predicts by coef_: the rows need no copy of their own
        shared = self._has_kernel("linear") and len(self.support_) == X.shape[0]
        self.support_vectors_ = X if shared else X[self.support_]

    def _store_landmarks(self, result, coefficients, b, keep, features):
        """Fitted state of a machine on features: landmarks in place of support rows."""
        weights = result.coef
        if weights is None:
            weights = coefficients @ features.values
        self._store_map(features.map, keep[features.rows], weights, b)
        store_certificate(self, result)

    def _store_map(self, features, support, weights, b):
        """The machine of weights of features, as one on the landmarks."""
        self.support_, self.support_vectors_ = support, features.landmarks
        self.dual_coef_ = features.coefficients(np.atleast_2d(weights))
        self.intercept_ = np.asarray(b, dtype=np.float64)

    def _store_approximation(self, result, coefficients, features):
        """Bound and estimate of what the approximation costs the primal objective.

        `coefficients` (outputs, n) are signed multipliers, of several outputs those of
        class scores.
        """
        half = 0.5 if len(coefficients) == 1 else 0.5 / CLASS_WEIGHT_VARIANCE
        bound, estimate, error = features.lost_norm(coefficients)
        # no objective is negative, so no machine is further from the best than its own
        most = result.objective + result.gap
        self.approximation_gap_ = float(np.minimum(result.gap + half * bound, most))
        self.approximation_gap_estimate_ = np.array(
            [min(result.gap + half * estimate, most), half * error]
        )

    def _scores(self, X, outputs):
        """Decision values (n, outputs) of validated features."""
        self._check_fitted_arrays(outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._raw_scores(X) + self.intercept_
        if not np.isfinite(scores).all():
            self._refuse_overflow(X)
        return scores

    def _refuse_overflow(self, X):
        raise ValueError(
            f"X has entries as large as {np.abs(X).max():.3g}, and decision values "
            "overflow; scale X as the training rows were scaled."
        )

    def _raw_scores(self, X):
        if self._has_kernel("linear"):
            return np.asarray(X @ self.coef_.T)
        with single_threaded_blas():
            return self._kernel_values(X).times(self.dual_coef_.T)

    def _kernel_values(self, X):
        """KernelValues between rows and the support vectors."""
        rows = self.support_vectors_
        if self._has_kernel("precomputed"):
            X, rows = X[:, self.support_], None
        threads = effective_threads(self.n_jobs)
        kernel = self.kernel, self.gamma_, self.degree, self.coef0
        return KernelValues(X, rows, *kernel, threads)

    def _check_fitted_arrays(self, outputs, coefficients=None):
        """Check the arrays of `outputs` scores, of as many rows of coefficients."""
        # loaded models are untrusted, and so are their parameters
        check_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        v.check_jobs(self.n_jobs)
        v.check_nonnegative("gamma_", self.gamma_)
        check_fitted("intercept_", self.intercept_, (outputs,))
        d, linear = self.n_features_in_, self._has_kernel("linear")
        if linear:
            check_fitted("coef_", self.coef_, (outputs, d), once=True)
        if linear and self._is_compact():
            return
        m = np.size(self.support_)
        check_fitted("support_", self.support_, (m,), kind="iu")
        check_fitted("dual_coef_", self.dual_coef_, (coefficients or outputs, m))
        if linear:
            return
        if not self._has_kernel("precomputed"):
            rows = self.support_vectors_
            check_fitted("support_vectors_", rows, (m, d), once=True, sparse=True)
        elif m and (self.support_.min() < 0 or self.support_.max() >= d):
            raise ValueError(
                "the fitted model is inconsistent: support_ names rows outside of "
                f"n_features_in_={d}. Fit it again."
            )
