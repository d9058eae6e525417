"""MEDRegressor: kernel regression with a tolerance tube and a margin prior."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import check_targets
from maxent._optimize.rows import BOTH
from maxent._partitions.partition_checks import data_is_partitioned
from maxent._partitions.partitions import is_partitioned, mapped
from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent._support.progress import with_progress
from maxent._support.typing import (
    ArrayLike,
    Bias,
    FloatArray,
    Gamma,
    Kernel,
    MarginName,
    MatrixLike,
    RandomState,
)
from maxent.discrimination._constant_fits import warn_of_constant
from maxent.discrimination._kernel_machine import KernelMachineMixin
from maxent.discrimination._margin_parameters import regression_margin
from maxent.discrimination._partitioned_fit import PartitionedFit
from maxent.discrimination.duals._partitioned_linear import PartRows
from maxent.discrimination.duals._signed_problem import (
    SignedProblem,
    in_units,
)
from maxent.discrimination.margins.base import MarginPrior

_SMALLEST_UNIT = 1e-100  # its square is still a number
_LARGEST_TARGET = 1e15  # beyond it no digits are left to tell a residual from zero


class MEDRegressor(KernelMachineMixin, RegressorMixin, BaseEstimator):
    """Maximum entropy discrimination for regression: a smooth, certified SVR.

    Every row has two constraints, one for each side of a tolerance tube; the loss of
    a residual r is ``ell(r) + ell(-r)`` with ell the conjugate of the margin prior
    at level ``-epsilon``.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        As in SVC; a callable gets two blocks of rows and returns their kernel block.
        A kernel that is found not to be positive semidefinite ("sigmoid" often is not)
        has no certificate: ``duality_gap_`` is NaN, and a warning is given.
    C : float, default=1.0
        Upper bound of every multiplier and slope of the loss far from the target
        (for the Gaussian prior the factor of ``r**2 / 2``).
    epsilon : float, default=0.1
        Half width of the tolerance tube, >= 0, in target units. With "exponential"
        residuals up to ``epsilon + 1 / sharpness`` cost nothing; with
        "uniform_exponential" those up to the prior mean of the tolerance.
    margin : str or MarginPrior, default="exponential"
        "exponential", "erlang", "laplace" (pseudo-Huber at epsilon=0), "gaussian"
        (kernel ridge with alpha = 1 / C at epsilon=0), "uniform_exponential" (the
        prior of Jebara & Jaakkola), "hinge" (the classical SVR), or a margin prior
        whose mean is not positive.
    sharpness : float, default=10.0
        Rate of the prior, > 0, in 1 / target units: how closely the smooth loss
        follows the tube's corners. Not used by "gaussian" and "hinge".
    bias : {"flat", None} or float, default="flat"
        Prior of the bias: flat, none, or Gaussian with this variance.
    solver : {"auto", "interior", "smo", "coordinate", "newton"}, default="auto"
        The last two need kernel="linear" or an `approximation`, and "smo" needs the
        exact kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel parameter, as for :class:`MEDClassifier`.
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
    tol : float, default=1e-3
        Tolerance of the optimality condition and of the relative duality gap; both
        must hold. They are measured in units of the targets' typical size s: a
        violation of the optimality condition is at most ``tol * s``, and the gap at
        most ``tol * (s**2 + objective_)``. s is the median distance of the targets
        from their median (from zero unless the bias is flat), rounded to a power of
        two, so that fits scale with the targets if C, epsilon and 1 / sharpness do.
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
    support_, support_vectors_, intercept_, coef_, duality_gap_, objective_, \
objective_history_, n_iter_, converged_, gamma_, approximation_gap_, \
approximation_gap_estimate_, n_features_in_
        As for :class:`MEDClassifier`.
    dual_coef_ : ndarray (1, n_support)
        Signed multipliers: ``f(x) = dual_coef_ @ k(support, x) + intercept_``.

    See Also
    --------
    MEDClassifier : The same for classes.

    Notes
    -----
    C, epsilon and sharpness are in target units, whatever the targets' size:
    standardise the target, or choose them to suit it.

    References
    ----------
    Jebara & Jaakkola (2000), Feature selection and dualities in maximum entropy
    discrimination, section on regression; the constant missing from its potential is
    on the errata page.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDRegressor
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = MEDRegressor(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.3)
    True
    """

    def __init__(
        self,
        kernel: Kernel = "rbf",
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        margin: MarginName
        | Literal["uniform_exponential"]
        | MarginPrior = "exponential",
        sharpness: float = 10.0,
        bias: Bias = "flat",
        solver: Literal["auto", "interior", "smo", "coordinate", "newton"] = "auto",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Literal["nystroem"] | None = None,
        n_components: int = 300,
        random_state: RandomState = None,
        tol: float = 1e-3,
        max_iter: int = 10_000_000,
        cache_size: float = 500,
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
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
            Targets, finite.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity, and features or targets
            too large for double precision.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        UserWarning
            If all predictions are nearly the same while the targets differ: their
            range is below a thousandth of the targets' standard deviation.
        """
        bias, tol = self._check_machine_parameters()
        margin = regression_margin(self.margin, self.sharpness, self.epsilon)
        if data_is_partitioned(X, y, sample_weight):
            return self._fit_partitioned(X, y, sample_weight, margin, bias, tol)
        X, y = self._validated(X, y, y_numeric=True)
        y = check_targets(y)
        v.check_range("y", y, at=True)
        weight = v.check_weights(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        keep = np.flatnonzero(weight > 0)
        X, data = self._rows_to_fit(X, keep)
        self.gamma_ = self._gamma(data, None if sample_weight is None else weight[keep])
        columns, rows = None if self._has_kernel("precomputed") else X, X
        X, data = self._approximated(X, data)
        data, origin = self._near_zero(data, bias)
        centre, target = _centred(y[keep], bias)
        weight = weight[keep] * margin.unit_weight(self.C)
        problem = _tube_problem(target, margin, bias, weight)
        unit = _unit_of(target)

        def store(model, result):
            result = in_units(result, unit)
            b = np.array([result.bias + centre])
            model._store(result, result.lam[None, :], b, keep, X, origin)
            return result

        result = self._solve(data, problem.in_units_of(unit), tol, store, unit)
        result = store(self, result)
        if self.approximation is not None:
            self._store_approximation(result, result.lam[None, :], data)
        self._warn_of_end(result, columns)
        if result.converged:
            warn_of_constant(self, rows, y, keep)
        return self

    def _fit_partitioned(self, X, y, sample_weight, margin, bias, tol):
        """Fit to rows in blocks; the sample gives origin and unit."""
        data = PartitionedFit(self, X, y, sample_weight, "targets", margin)
        centre, target = _centred(data.sample[1].astype(np.float64), bias)
        rows = PartRows(
            margin,
            bias,
            margin.unit_weight(self.C),
            centre=centre,
            unit=_unit_of(target),
            features=data.features,
        )
        result = data.solve(rows, tol)
        self._warn_of_end(result, None if result.converged else data.sample[0])
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predicted targets.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"
            Rows, or their kernel values with all training rows.

        Returns
        -------
        ndarray (n,)
            In target units.
        """
        check_is_fitted(self)
        if is_partitioned(X):
            return mapped(self.predict, X, n_features=self.n_features_in_)
        X = self._validated(X, reset=False)
        return self._scores(X, 1)[:, 0]


def _centred(y, bias):
    """A number that a flat bias adds to all predictions, and the targets less that.

    Far targets would make the solver's residuals large: count from the middle.
    """
    centre = float(np.median(y)) if bias == "flat" else 0.0
    target = y - centre
    v.check_range("y", target, _LARGEST_TARGET)
    return centre, target


def _tube_problem(target, margin, bias, weight):
    """SignedProblem with a constraint for each side of the tube of every row."""
    n = len(target)
    return SignedProblem(
        margin,
        np.full(n, margin.level),
        np.full(n, margin.rate),
        weight,
        target,
        np.full(n, BOTH, dtype=np.int8),
        bias,
    )


def _unit_of(target):
    """A power of two near the median size of the targets, near the mean if that is 0.

    A power of two, so that nothing is rounded.
    """
    size = np.abs(target)
    typical = float(np.median(size)) or float(np.mean(size))
    if not typical > _SMALLEST_UNIT:
        return 1.0
    return float(np.exp2(np.round(np.log2(typical))))
