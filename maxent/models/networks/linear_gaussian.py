"""Linear Gaussian networks.

    x_i ~ N(b_i + sum_j B_ij x_j, S_i)   over the parents j of node i

With the nodes in topological order B is strictly lower triangular by blocks, and all
nodes together are Gaussian with mean (I - B)^{-1} b and covariance
(I - B)^{-1} blkdiag(S) (I - B)^{-T}.

Source: Jebara, Kondor & Howard (2004), section 4.4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from maxent._inputs.frames import columns_of_nodes
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import Gaussian, _checks
from maxent.families._gaps import patterns
from maxent.models import _state_space as checks
from maxent.models._chain_input import check_init
from maxent.models._criteria import NONE_HELD, RowCriteria, covariance_parameters
from maxent.models._graphs import Graph, NetGraph
from maxent.models._holding import as_given, n_coordinates
from maxent.models._partial import rows_in_part
from maxent.models.base import Model, maximize_by_em
from maxent.models.networks import _network_input as net_input
from maxent.models.networks._factor_input import check_observed, node_names
from maxent.models.networks._linear_gaussian_em import NetworkProblem

_LOG_2PI = math.log(2.0 * math.pi)

Array = NDArray[np.float64]
Order = Sequence[str] | Sequence[tuple[str, int]]


class LinearGaussianNetwork(NetGraph, RowCriteria, Model):
    """Directed network of Gaussian nodes with linear dependence.

    Each node is a vector ``x_i ~ N(b_i + sum_j B_ij x_j, S_i)``; the sum is over its
    parents.

    Parameters
    ----------
    order : sequence of str, or of (str, int)
        Names of the nodes, parents before children; with sizes, for nodes that are
        vectors.
    coefficients : mapping {(child, parent): array-like}, or array-like (D, D)
        B: blocks by node, or the whole matrix over all D coordinates.
    offsets : mapping {node: array-like}, array-like (D,), or float, default=0
        b.
    covs : mapping {node: array-like}, array-like (D, D), or float, default=1
        S: one symmetric positive semidefinite matrix per node, the matrix with these
        blocks, or the variance of every coordinate.
    observed : sequence of str, optional
        Observed nodes, in the order of their columns in the data; None is all nodes.

    Attributes
    ----------
    n_features : int
        Columns of the data: coordinates of the observed nodes.
    mean, cov : ndarray
        Mean (D,) and covariance (D, D) of all nodes.
    fit_result : EMResult or None

    See Also
    --------
    maxent.kernels.linear_gaussian_kernel : Kernel between such networks.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.4.

    Examples
    --------
    A hidden cause of two measurements:

    >>> from maxent.models import LinearGaussianNetwork
    >>> net = LinearGaussianNetwork(
    ...     ["cause", "a", "b"],
    ...     coefficients={("a", "cause"): 2.0, ("b", "cause"): -1.0},
    ...     covs={"cause": 1.0, "a": 0.5, "b": 0.5},
    ...     observed=["a", "b"])
    >>> net.marginal().cov
    array([[ 4.5, -2. ],
           [-2. ,  1.5]])
    >>> net.posterior([[2.0, -1.0]])[0].round(3)
    array([[0.909]])
    """

    _names = ("order", "coefficients", "offsets", "covs", "observed")

    order: tuple[tuple[str, int], ...]
    coefficients: Array
    offsets: Array
    covs: Array
    observed: tuple[str, ...]

    def __init__(
        self,
        order: Order,
        coefficients: Mapping[tuple[str, str], ArrayLike] | ArrayLike,
        offsets: Mapping[str, ArrayLike] | ArrayLike = 0.0,
        covs: Mapping[str, ArrayLike] | ArrayLike = 1.0,
        observed: Sequence[str] | None = None,
    ) -> None:
        nodes = net_input.check_order(order)
        place = net_input.places(nodes)
        names = [name for name, _ in nodes]
        shown = check_observed(observed, names)
        self._set(
            order=nodes,
            coefficients=net_input.coefficient_matrix(coefficients, place),
            offsets=net_input.offset_vector(offsets, place),
            covs=net_input.covariance_matrix(covs, place),
            observed=shown,
        )

    @functools.cached_property
    def _place(self) -> dict[str, slice]:
        return net_input.places(self.order)

    @functools.cached_property
    def _shown(self) -> NDArray[np.intp]:
        """Coordinates of the observed nodes."""
        index = np.arange(len(self.offsets))
        return np.concatenate([index[self._place[name]] for name in self.observed])

    @property
    def n_features(self) -> int:
        """Columns of the data."""
        return len(self._shown)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the data: the observed nodes.

        Those of a node of several coordinates are "name[0]", "name[1]", ... Data frames
        have them in any order; arrays have their columns in this one.
        """
        sizes = dict(self.order)
        return [
            name if sizes[name] == 1 else f"{name}[{i}]"
            for name in self.observed
            for i in range(sizes[name])
        ]

    def _graph(self):
        place = self._place
        nodes = {
            name: {
                "observed": name in self.observed,
                "size": size,
                "offset": self.offsets[place[name]],
                "cov": self.covs[place[name], place[name]],
            }
            for name, size in self.order
        }
        edges = {
            (parent, child): {
                "coefficient": self.coefficients[place[child], place[parent]]
            }
            for child in nodes
            for parent in nodes
            if self.coefficients[place[child], place[parent]].any()
        }
        return Graph(True, nodes, edges)

    def _rows(self, X: ArrayLike) -> Array:
        """Checked rows (n, n_features), NaN where an entry is missing."""
        rows = columns_of_nodes("X", X, tuple(self.feature_names))
        return rows_in_part(rows, self.n_features)

    @functools.cached_property
    def _total(self) -> Array:
        """(I - B)^{-1}."""
        D = len(self.offsets)
        return solve_triangular(
            np.eye(D) - self.coefficients, np.eye(D), lower=True, unit_diagonal=True
        )

    @functools.cached_property
    def mean(self) -> Array:
        """Mean of all nodes, (D,)."""
        return self._total @ self.offsets

    @functools.cached_property
    def cov(self) -> Array:
        """Covariance of all nodes, (D, D)."""
        cov = self._total @ self.covs @ self._total.T
        return 0.5 * (cov + cov.T)

    def marginal(self, nodes: str | Iterable[str] | None = None) -> Gaussian:
        """Joint distribution of some nodes.

        Parameters
        ----------
        nodes : str or iterable of str, optional
            None takes the observed ones.

        Returns
        -------
        Gaussian

        Raises
        ------
        ValueError
            If a node is unknown, or the covariance is singular.
        """
        shown = self._shown
        if nodes is not None:
            index = np.arange(len(self.offsets))
            for name in (nodes := node_names("nodes", nodes)):
                if name not in self._place:
                    raise ValueError(
                        f"nodes={v.shown(list(nodes))} has {name!r}, which is no node: "
                        f"choose from {v.shown(list(self._place))}."
                    )
            shown = np.concatenate([index[self._place[name]] for name in nodes])
        return Gaussian(self.mean[shown], self.cov[np.ix_(shown, shown)])

    def log_likelihood(self, X: ArrayLike) -> Array:
        """Log-density of every row of the observed nodes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            NaN where an entry is missing: the density is that of the others.

        Returns
        -------
        ndarray (n_samples,)
        """
        X = self._rows(X)
        if not np.isnan(X).any():
            return self.marginal().log_prob(X)
        out = np.zeros(len(X))
        for o, _, rows in patterns(X):
            at = self._shown[o]
            own = Gaussian(self.mean[at], self.cov[np.ix_(at, at)])
            out[rows] = own.log_prob(X[np.ix_(rows, o)])
        return out

    def posterior(self, X: ArrayLike) -> tuple[Array, Array]:
        """Distribution of the hidden nodes given the observed ones.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            NaN where an entry is missing.

        Returns
        -------
        mean : ndarray (n_samples, n_hidden)
            Hidden nodes in their order.
        cov : ndarray (n_hidden, n_hidden)
            The same for all rows; (n_samples, n_hidden, n_hidden) if entries of X are
            missing.
        """
        X = self._rows(X)
        hidden = np.setdiff1d(np.arange(len(self.offsets)), self._shown)
        mean, cov = self._all_given(X)
        return mean[:, hidden], cov[..., hidden[:, None], hidden]

    @overload
    def impute(self, X: ArrayLike, *, return_cov: Literal[False] = ...) -> Array: ...
    @overload
    def impute(
        self, X: ArrayLike, *, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...
    def impute(self, X: ArrayLike, *, return_cov: bool = False) -> Any:
        """Rows with every missing entry at its mean given what is observed of the row.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            NaN where an entry is missing.
        return_cov : bool, default=False
            Return the covariances of the entries, too.

        Returns
        -------
        X : ndarray (n_samples, n_features)
            In the order of `feature_names`.
        cov : ndarray (n_samples, n_features, n_features)
            Only if `return_cov`; zero in the rows and columns of observed entries.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent.models import LinearGaussianNetwork
        >>> net = LinearGaussianNetwork(["a", "b"], {("b", "a"): 2.0})
        >>> net.impute([[1.0, np.nan], [np.nan, 5.0]])
        array([[1., 2.],
               [2., 5.]])
        """
        mean, cov = self._all_given(self._rows(X))
        shown = self._shown
        if not return_cov:
            return mean[:, shown]
        cov = np.broadcast_to(cov, (len(mean), *cov.shape[-2:]))
        return mean[:, shown], cov[:, shown[:, None], shown]

    def _free_parameters(self, held=NONE_HELD):
        """A Gaussian without structure has the most."""
        none = self._holdable()
        B, b, covs = (
            held.get(name, np.zeros(shape, bool)) for name, shape in none.items()
        )
        free = int(np.count_nonzero(~b)) + int(np.count_nonzero(self.coefficients[~B]))
        squares, own = np.zeros_like(B), np.zeros_like(B)
        for (name, size), kept in zip(self.order, covs):
            at = self._place[name]
            own[at, at] = np.tri(size, dtype=bool) & kept
            free += 0 if kept else covariance_parameters(size)
            # origin, unit and rotation of a hidden node are no parameters
            if name not in self.observed:
                squares[at, at] = True
                free -= size * (size + 1)

        def moved(T: Array, u: Array) -> Array:
            slopes = T @ self.coefficients - self.coefficients @ T
            offsets = T @ self.offsets + u - self.coefficients @ u
            spread = T @ self.covs + self.covs @ T.T
            return np.concatenate([slopes[B], offsets[b], spread[own]])

        free += n_coordinates(moved, squares, np.diagonal(squares))
        return min(free, self.n_features + covariance_parameters(self.n_features))

    def _holdable(self):
        """Shapes of masks of parameters that may stay in a fit."""
        D = len(self.offsets)
        return {"coefficients": (D, D), "offsets": (D,), "covs": (len(self.order),)}

    def _all_given(self, X):
        """Means (n, D) of all nodes given the observed ones, and covariance (D, D).

        The covariance is (n, D, D) if entries of X are missing.
        """
        if not np.isnan(X).any():
            return self._given(self._shown, X)
        mean = np.tile(self.mean, (len(X), 1))
        cov = np.tile(self.cov, (len(X), 1, 1))
        for o, _, rows in patterns(X):
            mean[rows], cov[rows] = self._given(self._shown[o], X[np.ix_(rows, o)])
        return mean, cov

    def _given(self, shown, X):
        """Means (n, D) and covariance (D, D) of all nodes given these coordinates."""
        L = _checks.cholesky(
            "the covariance of the observed nodes",
            self.cov[np.ix_(shown, shown)],
            "Add variance to the observed nodes.",
        )
        half = solve_triangular(L, self.cov[shown], lower=True)
        white = solve_triangular(L, (X - self.mean[shown]).T, lower=True)
        mean = self.mean + white.T @ half
        mean[:, shown] = X
        cov = self.cov - half.T @ half
        cov[shown] = cov[:, shown] = 0.0
        return mean, cov

    def sample(
        self, n: int, random_state: Any = None, *, return_hidden: bool = False
    ) -> Array | tuple[Array, Array]:
        """Draw rows.

        Parameters
        ----------
        n : int
            Number of rows, >= 1.
        random_state : int, Generator, RandomState or None, default=None
        return_hidden : bool, default=False
            Return the hidden nodes too.

        Returns
        -------
        ndarray (n, n_features)
        hidden : ndarray (n, n_hidden)
            Only if `return_hidden`.
        """
        rng = as_generator(random_state)
        noise = rng.normal(size=(v.check_count("n", n), len(self.offsets)))
        noise = self.offsets + noise @ checks.root(self.covs).T
        all_nodes = noise @ self._total.T
        X = all_nodes[:, self._shown]
        if not return_hidden:
            return X
        return X, np.delete(all_nodes, self._shown, axis=1)

    # -- fits --------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        order: Order,
        parents: Mapping[str, Sequence[str]],
        observed: Sequence[str] | None = None,
        *,
        weights: ArrayLike | None = None,
        prior: float = 0.0,
        init: LinearGaussianNetwork | None = None,
        fixed: Any = None,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit a network of given structure: regressions, and EM with hidden nodes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Columns of the observed nodes, in the order of `observed`; NaN where an
            entry is missing. Columns of a data frame are those of the nodes that they
            name, "name[0]", "name[1]", ... of a vector.
        order : sequence of str, or of (str, int)
            Nodes, parents before children.
        parents : mapping {node: sequence of str}
            Parents of the nodes that have some.
        observed : sequence of str, optional
            None is all nodes.
        weights : array-like (n_samples,), optional
            Weights >= 0 of the rows.
        prior : float, default=0
            Pseudo-observations, >= 0, of the covariance of every node: the identity for
            hidden nodes, the variances of the columns for observed ones.
        init : LinearGaussianNetwork, optional
            First start, of the same nodes, with coefficients of the given parents only.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`: "coefficients", "offsets", "covs"; or
            {name: boolean mask}, True where an entry (of "covs", a node) stays, in the
            form of an array or by node: ``{"covs": {"a": True}, "coefficients": {("b",
            "a"): True}}``.
        n_init : int, default=1
            Starts; coefficients of hidden nodes are random without `init` and in those
            after the first.
        max_iter : int, default=1000
            EM steps at most.
        tol : float, default=1e-6
            A run ends once a step gains at most `tol` nats per observed value.
        callback : callable(n_iter, objective, gain), optional
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        LinearGaussianNetwork

        Raises
        ------
        ValueError
            If the structure has a parent that does not come before its child, or a
            covariance is singular without prior.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.
        """
        v.check_stop(tol, max_iter)
        nodes = net_input.check_order(order)
        prior = v.check_nonnegative("prior", prior)
        D = sum(size for _, size in nodes)
        if init is not None:
            check_init(init, LinearGaussianNetwork)
            observed = init.observed if observed is None else observed
        net = cls(nodes, np.zeros((D, D)), 0.0, np.eye(D), observed)
        above = net_input.check_parents(parents, nodes)
        held = net_input.check_start(init, net, above, fixed)
        problem = NetworkProblem(net, X, above, weights, prior, held)
        first = None if init is None else problem.inward(init)
        rng = as_generator(random_state)
        starts = (
            problem.start(rng, first, k == 0)
            for k in range(v.check_count("n_init", n_init))
        )
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            size=problem.size,
        )
        B, b, S = problem.outward(best)
        if init is not None:  # what is held has the same bits
            old = init.coefficients, init.offsets, init.covs
            B, b, S = map(as_given, (B, b, S), old, problem.masks)
        return (
            cls(nodes, B, b, S, net.observed)
            ._with_result(result)
            ._with_held(held)
            ._warned(tol, max_iter)
        )
