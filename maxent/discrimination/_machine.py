"""What classifier and regressor share: kernels, support rows, decision values."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from maxent._support import validation as v
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.vector_kernels import (
    VectorKernel,
    apply_kernel,
    check_kernel,
    resolve_gamma,
)
from maxent.discrimination._signed import solve_signed
from maxent.discrimination.linear_dual import solve_linear

_LINEAR_SOLVERS = ("coordinate", "newton")


def class_rows(name, y, sample_weight, class_weight):
    """Classes, codes and weights of the rows that count.

    Returns
    -------
    classes : ndarray (m,)
        Classes with positive weight, at least two.
    keep : ndarray of int
        Rows of positive weight.
    codes : ndarray of int (len(keep),)
    sample : ndarray (len(keep),)
        Sample weights.
    weight : ndarray (len(keep),)
        Sample weights times class weights.
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    sample = v.check_weights(sample_weight, len(codes))
    sample = np.ones(len(codes)) if sample is None else sample
    keep = np.flatnonzero(sample > 0)
    present = np.unique(codes[keep])
    if len(present) < 2:
        raise ValueError(
            f"y contains one class only ({classes[present].tolist()}) among rows of "
            f"positive weight; {name} needs two classes."
        )
    factor = np.ones(len(classes))
    if class_weight is not None:
        factor = compute_class_weight(
            class_weight,
            classes=classes,
            y=y,
            sample_weight=None if sample_weight is None else sample,
        )
        if not (np.isfinite(factor) & (factor > 0)).all():
            raise ValueError(
                f"class_weight={class_weight!r} must be finite and > 0 for every class."
            )
    # classes without weight can never be predicted
    codes = np.searchsorted(present, codes[keep])
    sample = sample[keep]
    return classes[present], keep, codes, sample, sample * factor[present][codes]


class KernelMachineMixin:
    """Fitted state and prediction of f(x) = dual_coef_ @ k(support, x) + intercept_."""

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
        return v.check_bias(self.bias), v.check_positive("tol", self.tol)

    def _solve(self, data, problem, tol):
        """DualResult with signed multipliers, by the road that suits the kernel."""
        if self._goes_linear(data, problem):
            solver = self.solver if self.solver != "interior" else "auto"
            return solve_linear(
                data,
                problem,
                tol=tol,
                max_iter=min(self.max_iter, 5000),
                solver=solver,
                callback=self._progress(),
            )
        return solve_signed(
            self._kernel(data),
            problem,
            tol=tol,
            kkt_tol=tol,
            max_iter=self.max_iter,
            solver=self.solver,
            cache_size=self.cache_size,
            callback=self._progress(),
        )

    def _goes_linear(self, data, problem):
        if not (isinstance(self.kernel, str) and self.kernel == "linear"):
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
        if sp.issparse(data):
            return n > 2000
        smooth = problem.margin.name not in ("hinge", "fixed")
        return n > 400 and smooth and n > 4 * d and d <= 2000

    def _gamma(self, data, sample):
        """Number for gamma; a kernel without one costs no pass over the data."""
        if self.kernel in ("linear", "precomputed") or callable(self.kernel):
            data, sample = data[:0], None
        return resolve_gamma(self.gamma, data, sample)

    def _kernel(self, data):
        return VectorKernel(
            data,
            self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            n_threads=effective_threads(self.n_jobs),
        )

    def _progress(self):
        if not self.verbose:
            return None
        name = type(self).__name__

        def show(n_iter, objective, gap):
            print(f"{name}: {n_iter} steps, J={objective:.6g}, gap={gap:.2e}")

        return show

    def _store(self, result, coefficients, b, keep, X):
        inside = np.flatnonzero((coefficients != 0).any(axis=0))
        self.support_ = keep[inside]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, inside])
        self.intercept_ = np.asarray(b, dtype=np.float64)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            # a linear machine predicts by coef_: the rows need no copy of their own
            shared = self.kernel == "linear" and len(inside) == X.shape[0]
            self.support_vectors_ = X if shared else X[self.support_]
        if isinstance(self.kernel, str) and self.kernel == "linear":
            if result.coef is None:
                self.coef_ = np.asarray(self.dual_coef_ @ self.support_vectors_)
            else:
                self.coef_ = np.atleast_2d(result.coef)
        self.duality_gap_ = float(result.gap)
        self.objective_ = float(result.objective)
        self.n_iter_ = int(result.n_iter)
        self.converged_ = result.converged
        self.objective_history_ = np.array([h[1] for h in result.history])

    def _scores(self, X, outputs):
        """Decision values (n, outputs) of validated features."""
        self._check_fitted_arrays(outputs)
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return np.asarray(X @ self.coef_.T) + self.intercept_
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            X = X[:, self.support_]
        with single_threaded_blas():
            scores = apply_kernel(
                X,
                self.support_vectors_,
                self.dual_coef_.T,
                self.kernel,
                gamma=self.gamma_,
                degree=self.degree,
                coef0=self.coef0,
                n_threads=effective_threads(self.n_jobs),
            )
        return scores + self.intercept_

    def _check_fitted_arrays(self, outputs):
        # loaded models are untrusted, and so are their parameters
        check_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        v.check_jobs(self.n_jobs)
        v.check_nonnegative("gamma_", self.gamma_)
        m, d = np.size(self.support_), self.n_features_in_
        v.check_fitted("support_", self.support_, (m,), kind="iu")
        v.check_fitted("dual_coef_", self.dual_coef_, (outputs, m))
        v.check_fitted("intercept_", self.intercept_, (outputs,))
        if isinstance(self.kernel, str) and self.kernel == "linear":
            v.check_fitted("coef_", self.coef_, (outputs, d), once=True)
        elif not isinstance(self.kernel, str) or self.kernel != "precomputed":
            rows = self.support_vectors_
            v.check_fitted("support_vectors_", rows, (m, d), once=True, sparse=True)
        elif m and (self.support_.min() < 0 or self.support_.max() >= d):
            raise ValueError(
                "the fitted model is inconsistent: support_ names rows outside of "
                f"n_features_in_={d}. Fit it again."
            )
