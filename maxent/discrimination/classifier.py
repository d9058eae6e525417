"""MEDClassifier: large-margin classification with a margin prior and a certificate."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from maxent._support import validation as v
from maxent._support.results import warn_not_converged
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.vector_kernels import VectorKernel, apply_kernel, resolve_gamma
from maxent.discrimination.kernel_dual import binary_problem, solve_signed
from maxent.discrimination.margins import classification_margin
from maxent.discrimination.multiclass import solve_multiclass


def _has_probabilities(self):
    margin = self.margin
    name = margin if isinstance(margin, str) else getattr(margin, "name", None)
    level = 0.0 if isinstance(margin, str) else getattr(margin, "level", 0.0)
    if name == "logistic" and level == 0.0:
        return True
    raise AttributeError(
        f"predict_proba is defined by margin='logistic' with level 0 only, not by "
        f"margin={margin!r}; wrap the estimator in "
        "sklearn.calibration.CalibratedClassifierCV for calibrated probabilities."
    )


class MEDClassifier(ClassifierMixin, BaseEstimator):
    """Maximum entropy discrimination with a kernel: an SVM with a margin prior.

    Among all distributions over linear (or kernel) classifiers and margins it takes
    the one closest to the prior whose average discriminant meets the average margin
    on every row. The result is a large-margin machine whose loss is the conjugate of
    the margin prior, trained to a proven duality gap.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
    C : float, default=1.0
        Upper bound of every multiplier and slope of the loss far below the margin,
        as in SVC. Any C > 0.
    margin : str or MarginPrior, default="exponential"
        "exponential", "erlang", "laplace", "gaussian" (loss C d**2 / 2), "logistic"
        (loss C log(1 + exp(-m)), defines predict_proba), "hinge" (the classical SVM),
        "fixed" (hard margins), or a margin prior object.
    sharpness : float, default=10.0
        How closely the smooth loss follows the hinge, > 1; used by "exponential",
        "erlang" and "laplace". ``sharpness = C`` is the machine of JMJ (1999) with
        c = C; ``sharpness -> inf`` is SVC(C).
    bias : {"flat", None} or float, default="flat"
        Prior of the bias: flat, none, or Gaussian with this variance.
    solver : {"auto", "interior", "smo"}, default="auto"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        Kernel parameters, as in SVC.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of a class.
    tol : float, default=1e-3
        Tolerance of the optimality condition in margin units and of the relative
        duality gap; both must hold.
    max_iter : int, default=10_000_000
    cache_size : float, default=500
        Memory for kernel values, in MB.
    n_jobs : int, optional
        Threads of the kernel computations. Results do not depend on it.
    verbose : bool or int, default=False
        Print iterations, objective and gap as they are certified.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    support_ : ndarray of int (n_support,)
        Rows with a nonzero multiplier.
    support_vectors_ : ndarray or CSR (n_support, n_features)
        Their features (empty for kernel="precomputed").
    dual_coef_ : ndarray (1, n_support) or (n_classes, n_support)
        Signed multipliers, label included: the decision function is
        ``dual_coef_ @ k(support, x) + intercept_``.
    intercept_ : ndarray (1,) or (n_classes,)
        The bias, with plus sign.
    coef_ : ndarray (1, n_features) or (n_classes, n_features)
        Weights, for kernel="linear" only.
    duality_gap_ : float
        Primal minus dual objective at the solution, recomputed in double precision.
    objective_ : float
        Dual objective, a lower bound of the primal one.
    loo_bound_ : float
        Share of support vectors, a bound of the leave-one-out error (NaN where the
        bound does not hold).
    gamma_ : float
        The kernel's gamma as a number.
    n_iter_, converged_, n_features_in_, feature_names_in_
        As usual; ``converged_`` is True only if the tolerance was met.

    See Also
    --------
    MEDRegressor : The same for targets.
    MEDFeatureSelector : Linear classification with random switches.

    Notes
    -----
    Time is between O(n_support * n) and O(n**2) kernel values plus as many
    working-set steps as an SVM needs; memory is at most `cache_size` plus copies of
    the features. The posterior over weights has the prior covariance, so its spread
    says nothing about the data and is not offered.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, Theorem 2.

    Examples
    --------
    >>> from maxent import MEDClassifier
    >>> from maxent.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> model = MEDClassifier(kernel="linear", C=10).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-3 * (1 + model.objective_))
    True
    """

    def __init__(
        self,
        kernel="rbf",
        C=1.0,
        *,
        margin="exponential",
        sharpness=10.0,
        bias="flat",
        solver="auto",
        gamma="scale",
        degree=3,
        coef0=0.0,
        class_weight=None,
        tol=1e-3,
        max_iter=10_000_000,
        cache_size=500,
        n_jobs=None,
        verbose=False,
    ):
        self.kernel = kernel
        self.C = C
        self.margin = margin
        self.sharpness = sharpness
        self.bias = bias
        self.solver = solver
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X, y, sample_weight=None):
        """Fit the machine.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features), or (n_samples, n_samples) \
for kernel="precomputed"
        y : array-like (n_samples,)
            Two or more classes.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self
        """
        margin, bias, tol = self._check_parameters()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight, factor = self._row_weights(codes, y, sample_weight)
        keep = np.flatnonzero(weight > 0)
        m = len(self.classes_)
        present = np.unique(codes[keep])
        if len(present) < 2:
            raise ValueError(
                f"y contains one class only ({self.classes_[present].tolist()}) among "
                "rows of positive weight; the classifier needs two classes."
            )
        if len(present) < m:
            # classes without weight can never be predicted
            self.classes_, m = self.classes_[present], len(present)
            factor = factor[present]
            codes = np.searchsorted(present, codes)
        if self.kernel == "precomputed":
            X = v.check_gram(X)
            data = X if len(keep) == len(X) else X[np.ix_(keep, keep)]
        else:
            data = X if len(keep) == X.shape[0] else X[keep]
        self.gamma_ = resolve_gamma(
            self.gamma, data, None if sample_weight is None else weight[keep]
        )
        codes = codes[keep]
        weight = weight[keep] * factor[codes] * margin.unit_weight(self.C)
        kernel = VectorKernel(
            data,
            self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            n_threads=effective_threads(self.n_jobs),
        )
        if m == 2:
            result, coefficients, b = self._fit_binary(
                kernel, codes, margin, bias, weight, tol
            )
        else:
            result, beta = solve_multiclass(
                kernel,
                codes,
                m,
                margin,
                bias,
                weight,
                tol=tol,
                max_iter=min(self.max_iter, 500),
            )
            coefficients, b = beta.T, result.bias
        self._store(result, coefficients, b, keep, X, margin)
        if not result.converged:
            warn_not_converged("MEDClassifier", result, tol, self.max_iter)
        return self

    def _check_parameters(self):
        v.check_positive("C", self.C)
        tol = v.check_positive("tol", self.tol)
        v.check_count("max_iter", self.max_iter)
        v.check_positive("cache_size", self.cache_size)
        margin = classification_margin(self.margin, self.sharpness)
        return margin, v.check_bias(self.bias), tol

    def _row_weights(self, codes, y, sample_weight):
        """(weights of the rows, factor of each class)."""
        weight = v.check_weights(sample_weight, len(codes))
        weight = np.ones(len(codes)) if weight is None else weight
        factor = np.ones(len(self.classes_))
        if self.class_weight is not None:
            factor = compute_class_weight(
                self.class_weight,
                classes=self.classes_,
                y=y,
                sample_weight=None if sample_weight is None else weight,
            )
            if not (np.isfinite(factor) & (factor > 0)).all():
                raise ValueError(
                    f"class_weight={self.class_weight!r} must be finite and > 0 for "
                    "every class."
                )
        return weight, factor

    def _fit_binary(self, kernel, codes, margin, bias, weight, tol):
        y = np.where(codes == 1, 1.0, -1.0)
        problem = binary_problem(y, margin, bias, weight)
        result = solve_signed(
            kernel,
            problem,
            tol=tol,
            kkt_tol=tol,
            max_iter=self.max_iter,
            solver=self.solver,
            cache_size=self.cache_size,
            callback=self._progress(),
        )
        return result, result.lam[None, :], np.array([result.bias])

    def _progress(self):
        if not self.verbose:
            return None

        def show(n_iter, objective, gap):
            print(f"MEDClassifier: {n_iter} steps, J={objective:.6g}, gap={gap:.2e}")

        return show

    def _store(self, result, coefficients, b, keep, X, margin):
        inside = np.flatnonzero((coefficients != 0).any(axis=0))
        self.support_ = keep[inside]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, inside])
        self.intercept_ = np.asarray(b, dtype=np.float64)
        if self.kernel == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = X[self.support_]
        if self.kernel == "linear":
            self.coef_ = self.dual_coef_ @ self.support_vectors_
        self.duality_gap_ = float(result.gap)
        self.objective_ = float(result.objective)
        self.n_iter_ = int(result.n_iter)
        self.converged_ = result.converged
        self.objective_history_ = np.array([h[1] for h in result.history])
        self.loo_bound_ = (
            len(inside) / len(keep) if np.isfinite(margin.prior_mean) else np.nan
        )

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"

        Returns
        -------
        ndarray (n,) for two classes (positive for ``classes_[1]``), else (n, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        self._check_fitted_arrays()
        if self.kernel == "linear":
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            if self.kernel == "precomputed":
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
            scores += self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _check_fitted_arrays(self):
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        expected = (outputs, len(self.support_))
        if self.dual_coef_.shape != expected or self.intercept_.shape != (outputs,):
            raise ValueError(
                f"the fitted model is inconsistent: dual_coef_ has shape "
                f"{self.dual_coef_.shape}, expected {expected}. Fit it again."
            )
        if self.kernel != "precomputed" and self.support_vectors_.shape != (
            len(self.support_),
            self.n_features_in_,
        ):
            raise ValueError(
                "the fitted model is inconsistent: support_vectors_ has shape "
                f"{self.support_vectors_.shape}. Fit it again."
            )

    def predict(self, X):
        """Class labels.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)

        Returns
        -------
        ndarray (n,)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Class probabilities; only for the logistic margin prior.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)

        Returns
        -------
        ndarray (n, n_classes)
            Rows sum to one. Two classes: ``sigmoid(rate * f)``.
        """
        from scipy.special import expit

        scores = self.decision_function(X)
        rate = getattr(self.margin, "rate", 1.0)
        if scores.ndim == 1:
            return np.column_stack([expit(-rate * scores), expit(rate * scores)])
        return _coupled_probabilities(rate * scores)


def _coupled_probabilities(scores):
    """Softmax of the scores: log-odds of any two classes are their score difference."""
    scores = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    return p / p.sum(axis=1, keepdims=True)
