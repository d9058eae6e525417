"""Conditional maximum entropy: multinomial logistic regression for dense and text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import check_labels, validated
from maxent._partitions.partition_checks import (
    data_is_partitioned,
    read_partitions,
)
from maxent._partitions.partitions import is_partitioned, mapped
from maxent._support import validation as v
from maxent._support.fitted import (
    FittedState,
    check_fitted,
    check_fitted_classes,
    check_scores,
    fresh_state,
)
from maxent._support.progress import CallbacksMixin, progress_of, with_progress
from maxent._support.results import Status
from maxent._support.threads import with_single_threaded_blas
from maxent._support.typing import ClassWeight, MatrixLike
from maxent._support.underflow import allow_underflow
from maxent._support.validation import names_of_columns, user_stacklevel
from maxent.latent._softmax import (
    ConditionalDual,
    PartitionedRows,
    moved,
    newton_cg,
    origins,
    rows_of,
    spreads,
    sums_of_columns,
)

Array = NDArray[np.float64]

_PROGRAM_UP_TO = 2e5  # entries: half a second of linear programming
_FAR = 5.0  # log-odds that some row has where weights grow without bound
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class MaxEntClassifier(CallbacksMixin, FittedState, ClassifierMixin, BaseEstimator):
    """Conditional maximum entropy classifier (multinomial logistic regression).

    Of all conditional distributions p(y|x) whose means of the features x 1[y = k] equal
    those of the training rows, up to what the penalty allows, the one of largest
    conditional entropy: ``p(k|x) = exp(w_k . x + b_k) / Z(x)``.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, > 0, that of
        :class:`sklearn.linear_model.LogisticRegression`: the variance s2 of the papers
        is C times the sum of the sample weights. inf leaves the weights free, which
        needs classes that no linear function separates.
    fit_intercept : bool, default=True
        Add a feature 1[y = k], not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    tol : float, default=1e-6
        Largest unmet moment that ends the fit, in standard deviations given the rows.
    max_iter : int, default=100
        Bound on the Newton steps.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    coef_ : ndarray (1, n_features) or (n_classes, n_features)
        Weights; of class 1 alone for two classes.
    intercept_ : ndarray (1,) or (n_classes,)
        Biases.
    classes_ : ndarray (n_classes,)
        Labels.
    residual_ : float
        Certificate: the largest ``|E f_i - eta_i + lam_i / s2|``, in units as for
        `tol`.
    objective_ : float
        Dual: mean loss plus penalty.
    objective_history_ : ndarray
        Its value after each step.
    n_iter_, converged_, n_features_in_
        Newton steps; whether the residual is within `tol` and there is a maximum.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : The same model, other solvers.
    fit_maxent : Distributions over enumerated states.

    Notes
    -----
    A pass costs O(nonzeros x classes). Sparse rows are read once for both directions
    of a product, by a kernel that Numba compiles at the first sparse fit.

    References
    ----------
    Berger, Della Pietra & Della Pietra (1996), A maximum entropy approach to natural
    language processing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxent import MaxEntClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(MaxEntClassifier().fit(X, y).score(X, y), 3)
    0.973
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fresh_state
    @with_progress
    @with_single_threaded_blas
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MaxEntClassifier:
        """Fit the weights.

        Parameters
        ----------
        X : array-like, sparse, Dask array or RowBlocks (n_samples, n_features)
            Features; those in blocks of rows are visited block by block.
        y : array-like (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity, or one class only.

        Warns
        -----
        ConvergenceWarning
            If the residual is above `tol`, and if C is inf and the likelihood has no
            maximum (not looked for in data in blocks).
        """
        C = v.check_positive("C", self.C, allow_inf=True)
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        v.check_class_weight(self.class_weight)
        blocks = data_is_partitioned(X, y, sample_weight)
        read = self._read_parts if blocks else self._read_rows
        rows, origin, spread, total = read(X, y, sample_weight)
        K, intercept = len(self.classes_), bool(self.fit_intercept)
        options = K, total, C * total, intercept, spread
        dual = ConditionalDual(rows, len(origin), *options)

        def store(model, found):
            x, value, residual, n_iter = found
            W, b = dual.weights(x)
            model.coef_, model.intercept_ = np.ascontiguousarray(W.T), b - origin @ W
            model.objective_, model.residual_ = float(value), float(residual)
            model.n_iter_, model.converged_ = int(n_iter), bool(residual <= tol)

        *found, status, history = newton_cg(
            dual, np.zeros(dual.size), tol, max_iter, progress_of(self, store)
        )
        store(self, found)
        self.objective_history_ = np.array([h[1] for h in history])
        end = f"objective {self.objective_:.6g}, residual {self.residual_:.1e}"
        self._progress.closing(status, "newton", self.n_iter_, end)
        if status is Status.STOPPED:
            return self
        free = np.isinf(C) and not blocks
        if free and self._has_no_maximum(rows, dual, found[0]):
            self.converged_ = False
            self._warn_of_separation()
        elif not self.converged_:
            self._warn(status, tol, max_iter)
        return self

    def _has_no_maximum(self, rows, dual, x):
        W, b = dual.full(x)
        return _is_separated(rows.X, rows.y, W, b, bool(self.fit_intercept))

    def _read_rows(self, X, y, sample_weight):
        """Loss passes, origins and units of the columns, and sum of the weights."""
        X, labels = validated(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True
        )
        v.check_range("X", X, at=True, columns=names_of_columns(self))
        check_labels(labels)
        weight = v.check_weights(sample_weight, X.shape[0])
        weight = np.ones(X.shape[0]) if weight is None else weight
        keep = weight > 0
        if not keep.all():
            X, labels, weight = X[keep], labels[keep], weight[keep]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._check_classes()
        weight = weight * self._class_factors(np.bincount(codes, weight))[codes]
        origin = origins(X)
        centred = moved(X, origin)
        spread = spreads(origin, *sums_of_columns(centred, weight))
        if self.fit_intercept:
            X = centred
        else:
            origin = np.zeros_like(origin)
        rows = rows_of(X, codes, weight, len(self.classes_))
        return rows, origin, spread, float(weight.sum())

    def _read_parts(self, X, y, sample_weight):
        """Rows in partitions, checked, with origin, spread and total weight."""
        parts, summary = read_partitions(X, y, sample_weight, "labels", v.LARGEST_ENTRY)
        self.classes_, weights = summary.classes, summary.class_weight
        self._check_classes()
        factor = self._class_factors(weights)
        self.n_features_in_ = parts.n_columns
        options = summary.lengths, bool(self.fit_intercept)
        rows = PartitionedRows(parts, self.classes_, factor, *options)
        return rows, rows.origin, rows.spread, float(factor @ weights)

    def _check_classes(self):
        if len(self.classes_) < 2:
            raise ValueError(
                "MaxEntClassifier needs two classes; y contains one class only "
                f"({v.shown(self.classes_[0])}); add rows of another class."
            )

    def _class_factors(self, total):
        """Factor of each class, of a total weight."""
        return v.class_factors(self.class_weight, self.classes_, total)

    def _warn_of_separation(self):
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            "MaxEntClassifier: at C=inf the likelihood has no maximum, because a "
            "linear function of X separates the classes, or a part of their rows. The "
            f"weights are those at residual {self.residual_:.1e} and grow without "
            "bound as tol falls. Give a finite C.",
            ConvergenceWarning,
            stacklevel=user_stacklevel(),
        )

    def _warn(self, status, tol, max_iter):
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        remedy = f"raise max_iter (now {max_iter}) or tol, or lower C"
        if status is Status.STALLED:
            remedy = "rounding allows no further progress: raise tol or scale X"
        warnings.warn(
            f"MaxEntClassifier stopped with status {status.value!r} after "
            f"{self.n_iter_} steps: residual {self.residual_:.2e} reached, tol={tol:g} "
            f"asked; {remedy}.",
            ConvergenceWarning,
            stacklevel=user_stacklevel(),
        )

    @allow_underflow
    def decision_function(self, X: MatrixLike) -> Array:
        """Exponents of the classes.

        Parameters
        ----------
        X : array-like or sparse (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            Two classes: the log-odds of ``classes_[1]``.
        """
        check_is_fitted(self)
        m = check_fitted_classes(self.classes_)
        outputs = 1 if m == 2 else m
        if is_partitioned(X):
            columns = None if m == 2 else m
            n_features = self.n_features_in_
            return mapped(self.decision_function, X, columns, n_features=n_features)
        X = validated(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_fitted("coef_", self.coef_, (outputs, self.n_features_in_))
        check_fitted("intercept_", self.intercept_, (outputs,))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        scores = check_scores(scores, X)
        return scores[:, 0] if outputs == 1 else scores

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Most probable labels.

        Parameters
        ----------
        X : array-like or sparse (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        check_is_fitted(self)
        if is_partitioned(X):
            kind, d = self.classes_.dtype, self.n_features_in_
            return mapped(self.predict, X, dtype=kind, n_features=d)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    @allow_underflow
    def predict_log_proba(self, X: MatrixLike) -> Array:
        """Logs of the class probabilities.

        Parameters
        ----------
        X : array-like or sparse (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n, n_classes)
            log p(y|x).
        """
        check_is_fitted(self)
        if is_partitioned(X):
            m, d = len(self.classes_), self.n_features_in_
            return mapped(self.predict_log_proba, X, m, n_features=d)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return scores - logsumexp(scores, axis=1, keepdims=True)

    @allow_underflow
    def predict_proba(self, X: MatrixLike) -> Array:
        """Class probabilities.

        Parameters
        ----------
        X : array-like or sparse (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n, n_classes)
            p(y|x); rows sum to one.
        """
        return np.exp(self.predict_log_proba(X))


def _is_separated(X, y, W, b, intercept):
    """True if the likelihood of the rows has no maximum.

    That is so if linear functions of the features separate the classes, or if some rows
    lie beyond a boundary that all others are on or beyond: the likelihood grows along a
    direction B with (B_y - B_k) . x >= 0 for all rows and k, and > 0 for some. Nothing
    is found of rows that are separated in part, beyond the size of the program.

    Parameters
    ----------
    X : ndarray or csr_array (n, d)
    y : ndarray of int (n,)
        Classes.
    W, b : ndarray (d, K), (K,)
        Weights that nearly maximise the likelihood.
    intercept : bool
        Whether b is free.

    References
    ----------
    Albert & Anderson (1984), On the existence of maximum likelihood estimates in
    logistic regression models. Konis (2007), Linear programming algorithms for
    detecting separated data in binary logistic regression models.
    """
    scores = np.asarray(X @ W) + b
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores[rows, y] = -np.inf
    margin = own - scores.max(axis=1)
    if (margin > 0).all():
        return True
    entries = X.nnz if sp.issparse(X) else X.size
    if margin.max() < _FAR or entries * (len(b) - 1) > _PROGRAM_UP_TO:
        return False
    return _has_direction(_differences(X, y, len(b), intercept))


def _differences(X, y, K, intercept):
    """Rows x (e_y - e_k), k != y, of features on a scale of one."""
    X = sp.csr_array(X)
    scale = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-300)
    X = X @ sp.diags_array(1.0 / scale)
    if intercept:
        X = sp.hstack([X, np.ones((len(y), 1))]).tocsr()
    eye = np.eye(K)
    parts = []
    for k in range(K):
        for other in range(K):
            if other != k:
                parts.append(sp.kron((eye[k] - eye[other])[None], X[y == k]))
    return sp.vstack(parts).tocsr()


def _has_direction(A):
    """True if some B has A B >= 0, > 0 in some rows."""
    found = linprog(
        -np.asarray(A.sum(axis=0)).ravel(),
        A_ub=-A,
        b_ub=np.zeros(A.shape[0]),
        bounds=(-1.0, 1.0),
        options=_EXACT,
    )
    if not found.success:
        return False
    margin = A @ found.x
    return bool(margin.max() > 1e-4 and margin.min() > -1e-8)
