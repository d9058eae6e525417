"""Kernel between switching linear dynamical systems."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import one_seed, stream_of
from maxent.kernels._lists import check_horizons, check_models
from maxent.kernels._unit_diagonal import exponential, log_scaled
from maxent.kernels.pairs._gaussian_parts import check_one_power
from maxent.kernels.pairs._lds_pairs import pair_parts
from maxent.models.systems.switching import SwitchingLDS

Array = NDArray[np.float64]


class SwitchingPaths:
    """Switching systems with the paths of regimes that represent each of them.

    Kernels of lists that keep their paths are blocks of one positive semidefinite
    matrix, whatever the number of paths. The kernel of each model with itself is kept
    too, so that kernels with new models do not compute it again. ``paths[:3]`` are the
    first three models with their paths.

    Parameters
    ----------
    models : list of SwitchingLDS
    horizon : int
        T >= 0: paths have T regimes.
    n_paths : int or None, default=8
        Paths drawn for each model; None takes all of them, with their probabilities.
    random_state : int, Generator, RandomState or None, default=None
        Every model draws from a stream of its own, which belongs to its parameters: its
        paths do not depend on the other models, and equal models have the same paths.

    Attributes
    ----------
    models : list of SwitchingLDS
    horizon : int
    paths : list of ndarray of int (n_paths, T)
    log_weights : list of ndarray (n_paths,)
        Logarithms of weights that sum to one.
    log_paths : list of ndarray (n_paths,)
        Log-probabilities of the paths.
    """

    def __init__(
        self,
        models: Sequence[SwitchingLDS],
        *,
        horizon: int,
        n_paths: int | None = 8,
        random_state: Any = None,
    ) -> None:
        self.models = check_models("models", models, SwitchingLDS)
        horizons, one = check_horizons(horizon)
        if not one:
            raise ValueError(f"horizon={v.shown(horizon)} must be one integer.")
        self.horizon = int(horizons[0])
        self.paths: list[NDArray[np.intp]] = []
        self.log_weights: list[Array] = []
        self.log_paths: list[Array] = []
        self._own: dict[tuple[float, str], Array] = {}
        if n_paths is not None:
            n_paths = v.check_count("n_paths", n_paths)
        seed = one_seed(random_state)
        for model in self.models:
            if n_paths is None:
                paths = model.all_paths(self.horizon)
                log_paths = model.log_path(paths)
                possible = log_paths > -np.inf
                paths, log_paths = paths[possible], log_paths[possible]
                log_weights = log_paths
            else:
                rng = stream_of(seed, model)
                paths = model.sample_paths(n_paths, self.horizon, rng)
                log_paths = model.log_path(paths)
                log_weights = np.full(n_paths, -np.log(n_paths))
            self.paths.append(paths)
            self.log_paths.append(log_paths)
            self.log_weights.append(log_weights)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, which: slice) -> SwitchingPaths:
        """Some of the models, with their paths."""
        if not isinstance(which, slice):
            raise TypeError(f"[{v.shown(which)}]: select models by a slice.")
        out = copy.copy(self)
        out.models, out.paths = self.models[which], self.paths[which]
        out.log_paths = self.log_paths[which]
        out.log_weights = self.log_weights[which]
        out._own = {key: own[which] for key, own in self._own.items()}
        if not out.models:
            raise ValueError(f"[{which}] selects none of {len(self)} models.")
        return out

    def log_self(
        self,
        powers: Array,
        power: Literal["observations", "joint"] = "observations",
        n_jobs: int | None = None,
    ) -> Array:
        """Log kernels of every model with itself, by its own paths.

        The pairs of paths are filtered once for all powers that are not known yet.

        Parameters
        ----------
        powers : ndarray (n_powers,)
        power : {"observations", "joint"}, default="observations"
        n_jobs : int, optional
            Threads.

        Returns
        -------
        ndarray (n_models, n_powers)
        """
        new = [rho for rho in powers.tolist() if (rho, power) not in self._own]
        found = np.empty((len(new), len(self)))
        horizons = np.array([self.horizon], dtype=np.intp)
        weights = [self._weights(rho, power) for rho in new]
        for i, (model, paths) in enumerate(zip(self.models, self.paths)):
            if not new:
                break
            parts = pair_parts(model._compiled(paths), None, horizons, n_jobs)
            for k, rho in enumerate(new):
                w = weights[k][i]
                L = parts.log_kernel(rho)[..., 0]
                found[k, i] = logsumexp(L + w[:, None] + w)
        self._own.update(zip([(rho, power) for rho in new], found))
        return np.stack([self._own[rho, power] for rho in powers.tolist()], axis=1)

    def _weights(self, rho: float, power: str) -> list[Array]:
        """Logarithms of the weights of the paths."""
        if power == "observations":
            return self.log_weights
        return [w + (rho - 1.0) * p for w, p in zip(self.log_weights, self.log_paths)]

    def _arrays(self) -> list[Any]:
        return [
            arrays
            for model, paths in zip(self.models, self.paths)
            for arrays in model._compiled(paths)
        ]


def switching_lds_kernel(
    P: Sequence[SwitchingLDS] | SwitchingPaths,
    Q: Sequence[SwitchingLDS] | SwitchingPaths | None = None,
    *,
    rho: float = 0.5,
    horizon: int | None = None,
    n_paths: int | None = 8,
    power: Literal["observations", "joint"] = "observations",
    log: bool = False,
    normalize: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Array:
    """Return the product kernel of switching systems, by shared paths of regimes.

    k = sum_{q,q'} w(q) w'(q') int p(x | q)^rho p'(x | q')^rho dx

    Parameters
    ----------
    P, Q : list of SwitchingLDS, or SwitchingPaths
        Numbers of states and regimes may differ. Q None is P. To compare new models
        with old ones, whose paths must be the same in all calls, pass
        :class:`SwitchingPaths`, or one integer as `random_state`.
    rho : float, default=0.5
        Power > 0.
    horizon : int, optional
        T >= 0: sequences have T + 1 observations. Needed unless P has it.
    n_paths : int or None, default=8
        Paths drawn once for each model; all pairs of them are compared. None takes all
        paths with their probabilities, which is exact.
    power : {"observations", "joint"}, default="observations"
        What is raised to rho for each path: with "observations" the law of the
        sequence given the path, w = p(q); with "joint" the law of both, w = p(q)^rho.
        The same at rho = 1; neither is the kernel of the marginal laws elsewhere.
    log : bool, default=False
        Return logarithms.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself.
    random_state : int, Generator, RandomState or None, default=None
        For the paths, as in :class:`SwitchingPaths`.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray (len(P), len(Q))
        Positive semidefinite for any number of paths. Drawn paths make the diagonal too
        large by a share of order 1 / n_paths.

    Raises
    ------
    ValueError
        For models over different spaces, and too many paths to enumerate.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 5.1.

    Examples
    --------
    >>> from maxent.kernels import switching_lds_kernel
    >>> from maxent.models import SwitchingLDS
    >>> def model(a):
    ...     return SwitchingLDS(
    ...         [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], [[[a]], [[-a]]],
    ...         [[[0.2]], [[0.2]]], [[1.0]], [[0.1]], [0.0], [[1.0]])
    >>> P = [model(0.1), model(0.5), model(0.9)]
    >>> switching_lds_kernel(P, horizon=5, n_paths=None, normalize=True).round(3)
    array([[1.   , 0.975, 0.862],
           [0.975, 1.   , 0.93 ],
           [0.862, 0.93 , 1.   ]])
    """
    rho = check_one_power(rho)
    v.check_choice("power", power, ("observations", "joint"))
    options = {"n_paths": n_paths, "random_state": one_seed(random_state)}
    left = _with_paths("P", P, horizon, options)
    right = left if Q is None else _with_paths("Q", Q, left.horizon, options)
    check_models("Q", right.models, SwitchingLDS, like=left.models)
    if right.horizon != left.horizon:
        raise ValueError(
            f"P has horizon={left.horizon} but Q has horizon={right.horizon}; kernels "
            "compare sequences of one length."
        )
    other = None if Q is None else right
    powers = np.array([rho])
    L = log_kernels(left, other, powers, power, n_jobs)[..., 0]
    if Q is None:
        left._own.setdefault((rho, power), np.diagonal(L).copy())
    if normalize:
        own = left.log_self(powers, power, n_jobs)[:, 0]
        new = None if Q is None else right.log_self(powers, power, n_jobs)[:, 0]
        L = log_scaled(L, own, new)
    return L if log else exponential(L)


def _with_paths(name, models, horizon, options):
    if isinstance(models, SwitchingPaths):
        if horizon not in (None, models.horizon):
            raise ValueError(
                f"horizon={horizon} but {name} has paths for horizon={models.horizon}."
            )
        return models
    if horizon is None:
        raise ValueError("horizon=None: give the horizon, an integer >= 0.")
    models = check_models(name, models, SwitchingLDS)
    return SwitchingPaths(models, horizon=horizon, **options)


def log_kernels(
    left: SwitchingPaths,
    right: SwitchingPaths | None,
    powers: Array,
    power: str,
    n_jobs: int | None,
) -> Array:
    """Log kernels (n, m, n_powers): those of all pairs of paths, summed by blocks.

    The pairs of paths are filtered once for all powers.
    """
    horizons = np.array([left.horizon], dtype=np.intp)
    parts = pair_parts(
        left._arrays(), None if right is None else right._arrays(), horizons, n_jobs
    )
    other = left if right is None else right
    i = np.cumsum([0, *(len(p) for p in left.paths)])[:-1]
    j = np.cumsum([0, *(len(p) for p in other.paths)])[:-1]
    out = np.empty((len(left), len(other), len(powers)))
    for k, rho in enumerate(powers.tolist()):
        rows = np.concatenate(left._weights(rho, power))
        columns = np.concatenate(other._weights(rho, power))
        L = parts.log_kernel(rho)[..., 0] + rows[:, None] + columns
        out[..., k] = _block_logsumexp(L, i, j)
    if right is None:
        a, b = np.tril_indices(len(out), -1)
        out[a, b] = out[b, a]
    return out


def _block_logsumexp(L: Array, i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
    """log sum exp of the blocks of L that start at rows i and columns j."""
    top = np.maximum.reduceat(np.maximum.reduceat(L, i, axis=0), j, axis=1)
    shift = np.where(top > -np.inf, top, 0.0)
    sizes = (np.diff([*i, L.shape[0]]), np.diff([*j, L.shape[1]]))
    scaled = np.exp(L - shift.repeat(sizes[0], axis=0).repeat(sizes[1], axis=1))
    sums = np.add.reduceat(np.add.reduceat(scaled, i, axis=0), j, axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + shift)
