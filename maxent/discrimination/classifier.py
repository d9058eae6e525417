"""MEDClassifier: large-margin classification with a margin prior and a certificate."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxent._partitions.partition_checks import data_is_partitioned
from maxent._partitions.partitions import is_partitioned, mapped
from maxent._support import validation as v
from maxent._support.fitted import check_fitted_classes, fresh_state
from maxent._support.progress import with_progress
from maxent._support.typing import (
    ArrayLike,
    Bias,
    ClassWeight,
    FloatArray,
    Gamma,
    Kernel,
    MarginName,
    MatrixLike,
    NDArray,
    RandomState,
)
from maxent.discrimination._class_rows import class_rows, labels_of, leave_one_out_bound
from maxent.discrimination._kernel_machine import KernelMachineMixin
from maxent.discrimination._margin_parameters import classification_margin
from maxent.discrimination._partitioned_fit import PartitionedFit
from maxent.discrimination._probabilities import ProbabilitiesMixin
from maxent.discrimination._several_classes import SeveralClassesMixin
from maxent.discrimination.duals._partitioned_classes import PartClassRows
from maxent.discrimination.duals._partitioned_linear import PartRows
from maxent.discrimination.duals._signed_problem import (
    binary_problem,
)
from maxent.discrimination.margins.base import MarginPrior


class MEDClassifier(
    SeveralClassesMixin,
    KernelMachineMixin,
    ProbabilitiesMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Maximum entropy discrimination with a kernel: an SVM with a margin prior.

    Among all distributions over linear (or kernel) classifiers and margins it takes
    the one closest to the prior whose average discriminant meets the average margin
    on every row. The result is a large-margin machine whose loss is the conjugate of
    the margin prior, trained to a proven duality gap.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        As in SVC; a callable gets two blocks of rows and returns their kernel block.
        A kernel that is found not to be positive semidefinite ("sigmoid" often is not)
        has no certificate: ``duality_gap_`` is NaN, and a warning is given.
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
    solver : {"auto", "interior", "smo", "coordinate", "newton"}, default="auto"
        The last two need kernel="linear" or an `approximation`, and "smo" needs the
        exact kernel; the joint machine of several classes takes no "newton".
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the squared distance ("rbf") or of the inner product ("poly",
        "sigmoid"), >= 0. "scale" is ``1 / (n_features * X.var())``, in which a
        row of weight w counts as w rows; "auto" is
        ``1 / n_features``.
    degree : int, default=3
        Of the "poly" kernel, 0 to 64.
    coef0 : float, default=0.0
        Constant added to the inner product, for "poly" and "sigmoid".
    approximation : {None, "nystroem"}, default=None
        "nystroem" fits within the span of the kernel at `n_components` rows, which
        takes a few passes over the rows: see :ref:`nystroem`. Not for "linear" and
        "precomputed".
    n_components : int, default=300
        Landmarks of the approximation, a random subset of the rows; at most all.
    random_state : int, Generator, RandomState or None, default=None
        Chooses the landmarks.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of a class.
    multi_class : {"auto", "joint", "ovo"}, default="auto"
        Machine of three or more classes: "joint" is one problem with a constraint for
        every wrong class of every row; "ovo" trains a two-class machine for every pair
        of classes and takes votes, as SVC does. "auto" is "joint" where one machine is
        needed, for the probabilities of a logistic margin prior at level 0 and for an
        approximation, and for linear machines on sparse rows, such as texts, where it
        is more accurate; otherwise "ovo", which is faster and on five data sets no less
        accurate.
    tol : float, default=1e-3
        Tolerance of the optimality condition in margin units and of the relative
        duality gap; both must hold.
    max_iter : int, default=10_000_000
        Bound on the steps of the solver.
    cache_size : float, default=500
        Memory for kernel values, in MB. A bound for working sets; an interior point on
        the active rows may take up to 100 MB where that is more, and solver="interior"
        three matrices of all rows, whatever the bound.
    n_jobs : int, optional
        Threads of the kernel computations. Results do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    support_ : ndarray of int (n_support,)
        Rows with a nonzero multiplier; with an approximation the landmarks, which
        `support_vectors_` and `dual_coef_` are then of, too; -1 for rows in blocks.
    support_vectors_ : ndarray or CSR (n_support, n_features)
        Their features (empty for kernel="precomputed").
    dual_coef_ : ndarray (1, n_support), (n_classes, n_support) or \
(n_classes - 1, n_support)
        Signed multipliers, label included: the decision function is
        ``dual_coef_ @ k(support, x) + intercept_``. With multi_class="ovo" the support
        vectors lie class by class, and row k has the multipliers of the machines
        against the k-th of the other classes, as in SVC; the sign is that of the later
        class of the pair.
    intercept_ : ndarray (1,), (n_classes,) or (n_pairs,)
        The bias, which enters with a plus sign.
    coef_ : ndarray (1, n_features), (n_classes, n_features) or (n_pairs, n_features)
        Weights, for kernel="linear" only. Pairs are in the order (0, 1), (0, 2), ...,
        (1, 2), ...
    n_support_ : ndarray of int (n_classes,)
        Support vectors of each class, for "ovo" of three or more classes.
    multi_class_ : str
        "joint" or "ovo", for three or more classes.
    duality_gap_ : float
        Primal minus dual objective at the solution, recomputed in double precision;
        with multi_class="ovo" the sum over the pairs.
    objective_ : float
        Dual objective, a lower bound of the primal one; the sum over the pairs.
    loo_bound_ : float
        Share of support vectors among the rows of positive weight: a bound of the
        leave-one-out error of this machine, that is, with the kernel and the weight of
        every remaining row held fixed. Each refit has ``gamma=model.gamma_`` and the
        class weights of the whole data; where gamma="scale" or class_weight="balanced"
        are computed anew without the row left out, the error may be larger. NaN where
        the bound does not hold: for the logistic prior, for a fit that has not
        converged, and where multipliers do not determine a flat bias (hinge, all at
        zero or at their upper bound); and for rows in blocks.
    objective_history_ : ndarray
        Dual objective at each certification.
    approximation_gap_ : float
        With an approximation: bound of the primal objective of this machine over the
        least one with the exact kernel, `duality_gap_` included. NaN if the kernel is
        found not to be positive semidefinite, and for rows in blocks.
    approximation_gap_estimate_ : ndarray (2,)
        Estimate of the sharpest such bound that these multipliers give, from pairs of
        rows in random blocks, and its standard error; 0 if `approximation_gap_` is
        that bound already, as it is below 20,000 multipliers that are not zero.
    gamma_ : float
        The kernel's gamma as a number.
    n_iter_, converged_, n_features_in_, feature_names_in_
        As usual; ``converged_`` is True only if the tolerance was met.

    See Also
    --------
    MEDRegressor : The same for targets.
    MEDFeatureSelector : Linear classification with random switches.
    solve_kernel_dual : The solver behind it, for arrays.

    Notes
    -----
    Time is between O(n_support * n) and O(n**2) kernel values plus as many working-set
    steps as an SVM needs; memory is at most `cache_size` plus copies of the features.
    With ``approximation="nystroem"`` and m landmarks, time is O(n m (m + n_features))
    and memory 4 n m bytes. Let P and D be the primal and dual objective of the machine
    and its multipliers, signed: a; K the exact and N the approximate kernel matrix. The
    machine is one of the exact kernel, with the same P. K - N is positive semidefinite,
    and a is feasible for the exact dual, which is ``D - a' (K - N) a / 2`` there and at
    most the least exact primal objective: P exceeds the latter by no more than
    ``P - D + a' (K - N) a / 2``. `approximation_gap_` is this number, or for many rows
    a bound of it: ``a' (K - N) a <= (sum_B sqrt(a_B' (K - N)_BB a_B))**2`` for blocks B
    of the rows. It is never more than P.

    The posterior over weights has the prior covariance, so its spread does not depend
    on the data and is not offered.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, Theorem 2.
    Williams & Seeger (2001), Using the Nyström method to speed up kernel machines.

    Examples
    --------
    >>> from maxent import MEDClassifier
    >>> from maxent.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> model = MEDClassifier(kernel="linear", C=10).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-3 * (1 + model.objective_))
    True
    """

    classes_: NDArray[Any]
    loo_bound_: float

    def __init__(
        self,
        kernel: Kernel = "rbf",
        C: float = 1.0,
        *,
        margin: MarginName | MarginPrior = "exponential",
        sharpness: float = 10.0,
        bias: Bias = "flat",
        solver: Literal["auto", "interior", "smo", "coordinate", "newton"] = "auto",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Literal["nystroem"] | None = None,
        n_components: int = 300,
        random_state: RandomState = None,
        class_weight: ClassWeight = None,
        multi_class: Literal["auto", "joint", "ovo"] = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000_000,
        cache_size: float = 500,
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.margin = margin
        self.sharpness = sharpness
        self.bias = bias
        self.solver = solver
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approximation = approximation
        self.n_components = n_components
        self.random_state = random_state
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fresh_state
    @with_progress
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features), or (n_samples, n_samples) \
for kernel="precomputed"
            Features, or the kernel matrix of the training rows. With kernel="linear"
            or an `approximation` also rows in blocks, a Dask array or
            :class:`~maxent.RowBlocks`: see :doc:`/guide/dask`.
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
            For a parameter outside its domain, NaN or infinity, features too large for
            double precision, one class only, or margin="fixed" on data that cannot be
            separated.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        """
        bias, tol = self._check_machine_parameters()
        v.check_choice("multi_class", self.multi_class, ("auto", "joint", "ovo"))
        margin = classification_margin(self.margin, self.sharpness)
        if data_is_partitioned(X, y, sample_weight):
            return self._fit_partitioned(X, y, sample_weight, margin, bias, tol)
        X, y = self._validated(X, y)
        self.classes_, keep, codes, sample, weight = class_rows(
            "MEDClassifier", y, sample_weight, self.class_weight
        )
        X, data = self._rows_to_fit(X, keep)
        self.gamma_ = self._gamma(data, None if sample_weight is None else sample)
        self._check_pairs()
        columns = None if self._has_kernel("precomputed") else X
        X, data = self._approximated(X, data)
        weight = weight * margin.unit_weight(self.C)
        if len(self.classes_) == 2:
            fit = self._fit_two
        else:
            self.multi_class_ = self._multi_class(data)
            fit = self._fit_pairs if self.multi_class_ == "ovo" else self._fit_joint
        result = fit(X, keep, data, codes, margin, bias, weight, tol)
        self._warn_of_end(result, columns)
        return self

    def _fit_two(self, X, keep, data, codes, margin, bias, weight, tol):
        """Fit the machine of two classes."""
        data, origin = self._near_zero(data, bias)

        def store(model, result):
            b = np.array([result.bias])
            model._store(result, result.lam[None, :], b, keep, X, origin)

        problem = binary_problem(2.0 * codes - 1.0, margin, bias, weight)
        result = self._solve(data, problem, tol, store)
        store(self, result)
        if self.approximation is not None:
            self._store_approximation(result, result.lam[None, :], data)
        self.loo_bound_ = leave_one_out_bound(result, codes, margin, bias, weight)
        return result

    def _fit_partitioned(self, X, y, sample_weight, margin, bias, tol):
        """Fit to rows in blocks."""
        data = PartitionedFit(self, X, y, sample_weight, "labels", margin)
        self.classes_, factor = data.classes(self.class_weight)
        factor = factor * margin.unit_weight(self.C)
        kind = PartRows
        if len(self.classes_) > 2:
            kind, self.multi_class_ = PartClassRows, "joint"
        rows = kind(margin, bias, factor, self.classes_, features=data.features)
        result = data.solve(rows, tol)
        self.loo_bound_ = np.nan
        self._warn_of_end(result, None if result.converged else data.sample[0])
        return self

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Decision values.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"
            Rows to classify, or their kernel values with all training rows.

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            Two classes: positive for ``classes_[1]``, in margin units. More: one
            score per class; the largest decides. With multi_class="ovo" the score is
            the votes for the class, and a share between -1/3 and 1/3 that ranks
            classes of equally many votes.
        """
        check_is_fitted(self)
        m = check_fitted_classes(self.classes_)
        outputs = 1 if m == 2 else m
        if is_partitioned(X):
            columns = None if m == 2 else m
            n_features = self.n_features_in_
            return mapped(self.decision_function, X, columns, n_features=n_features)
        X = self._validated(X, reset=False)
        if m > 2 and self._by_pairs():
            return self._pair_decisions(m).votes(X)
        scores = self._scores(X, outputs)
        return scores[:, 0] if outputs == 1 else scores

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        check_is_fitted(self)
        if is_partitioned(X):
            kind, d = self.classes_.dtype, self.n_features_in_
            return mapped(self.predict, X, dtype=kind, n_features=d)
        return labels_of(self.decision_function(X), self.classes_)
