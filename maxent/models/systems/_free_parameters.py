"""Parameters of a linear system that a fit may change, and their coordinates.

Entries are held one by one. Covariances that are fitted whole have the coordinates of a
Cholesky factor with logarithms on its diagonal, diagonal ones the logarithms of
variances, so that every vector of coordinates is a system.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent.families._checks import least_of_correlation
from maxent.models._holding import Mask, n_coordinates
from maxent.models._state_space import Parameters

Array = NDArray[np.float64]
COVARIANCES = ("transition_cov", "observation_cov", "initial_cov")
_DEFINITE = 1e-13  # least eigenvalue of a correlation that is not rounding


@dataclass(frozen=True)
class Held:
    """Entries that a fit keeps.

    Attributes
    ----------
    masks : Parameters
        True where an entry is kept.
    diagonal : frozenset of str
        Covariances that are fitted as diagonal ones.
    """

    masks: Parameters
    diagonal: frozenset[str]

    @classmethod
    def of(
        cls,
        fixed: Mapping[str, Mask],
        p: Parameters,
        diagonal: Iterable[str] = (),
    ) -> Held:
        """From masks by name, in the shapes of these parameters."""
        diagonal = frozenset(diagonal)
        masks: dict[str, Any] = {
            name: np.zeros(np.shape(X), bool) for name, X in p._asdict().items()
        }
        for name in diagonal:  # beside the diagonal there are zeros
            masks[name] = ~np.eye(len(masks[name]), dtype=bool)
        for name, mask in fixed.items():
            masks[name] = masks[name] | mask
        free = p.diffuse
        masks["initial_cov"] |= free | free[:, None]
        masks["initial_mean"] |= free
        held = cls(Parameters(**masks), diagonal)
        for name in COVARIANCES:
            held._check_covariance(name, free)
        held._check_reach(p)
        return held

    def _check_reach(self, p: Parameters) -> None:
        """Refuse free entries that change how states without a prior are seen.

        The diffuse likelihood is that of the data less a regression on these states.
        With regressors that a fit chooses it has no maximum, and compares nothing.
        """
        reached = p.diffuse
        for _ in range(len(reached)):
            reached = reached | (p.transition[:, reached] != 0.0).any(axis=1)
        for name in ("transition", "observation"):
            free = reached & (~self.mask(name)).any(axis=0)
            if free.any():
                j = int(np.argmax(free))
                raise ValueError(
                    f"state {j} begins without a prior, or follows such a state, so "
                    f"column {j} of {name} must be held: give init= and hold it by "
                    f"fixed=, as fixed=['transition', 'observation'], or begin with a "
                    "finite initial_cov."
                )

    def _check_covariance(self, name: str, diffuse: Mask) -> None:
        mask = self.mask(name)
        inner = mask
        if name == "initial_cov":
            inner = mask[np.ix_(~diffuse, ~diffuse)]
        if name not in self.diagonal and inner.any() and not inner.all():
            raise ValueError(
                f"fixed[{name!r}] holds {np.count_nonzero(mask)} of {mask.size} entries"
                f": a full covariance is held as a whole or not at all; with "
                f"{name}_type='diagonal' its variances are held one by one."
            )

    def mask(self, name: str) -> Mask:
        """Entries of a parameter that are kept."""
        array: Mask = getattr(self.masks, name)
        return array

    def every(self, name: str) -> bool:
        """True if no entry of a parameter may change."""
        return bool(self.mask(name).all())

    @functools.cached_property
    def _blocks(self) -> dict[str, tuple[Mask, Any]]:
        """Free coordinates of every covariance, and the index of their block."""
        blocks = {
            name: np.asarray(~self.mask(name).all(axis=1)) for name in COVARIANCES
        }
        return {
            name: (block, ... if block.all() else np.ix_(block, block))
            for name, block in blocks.items()
        }

    def block(self, name: str) -> Mask:
        """Coordinates of a covariance of which some entry may change."""
        return self._blocks[name][0]

    def inner(self, name: str) -> Any:
        """Index of the block of a covariance that may change."""
        return self._blocks[name][1]


def n_held(each: Sequence[tuple[Parameters, Mapping[str, Mask]]]) -> int:
    """Number of free parameters that masks take from systems with the same states.

    Entries that only tell the coordinates of the states take none: by holding them
    the others are not less free. A state that begins without a prior counts as one
    parameter, as its first value would (Durbin & Koopman 2012, section 7.4).
    """
    each = [(p, _beside_diffuse(p, held)) for p, held in each]
    taken = sum(
        int(np.count_nonzero(_triangle(name, mask)))
        for _, held in each
        for name, mask in held.items()
    )
    n = len(each[0][0].initial_mean)

    def moved(T: Array, u: Array) -> Array:
        parts = [np.zeros(0)]
        for p, held in each:
            change = _moved(p, T, u)
            parts += [change[k][_triangle(k, m)] for k, m in held.items()]
        return np.concatenate(parts)

    return taken - n_coordinates(moved, np.ones((n, n), bool), np.ones(n, bool))


def _triangle(name, mask):
    """The mask, of a covariance that of its lower triangle."""
    return np.tril(mask) if name in COVARIANCES else mask


def _beside_diffuse(p, held):
    """Masks that also hold what a state without a prior has not."""
    free = p.diffuse
    if not free.any():
        return held
    held = dict(held)
    held["initial_cov"] = held.get("initial_cov", False) | free | free[:, None]
    held["initial_mean"] = held.get("initial_mean", False) & ~free
    return held


def _moved(p, T, u):
    """Changes of the parameters as states s become s + T s + u, of the first order."""
    A, C, free = p.transition, p.observation, p.diffuse
    P = np.where(free | free[:, None], 0.0, p.initial_cov)
    change = {
        "transition": T @ A - A @ T,
        "transition_cov": T @ p.transition_cov + p.transition_cov @ T.T,
        "observation": -C @ T,
        "observation_cov": np.zeros_like(p.observation_cov),
        "initial_mean": T @ p.initial_mean + u,
        # what a state without a prior adds to another one leaves none to that
        "initial_cov": T @ P + P @ T.T,
        "transition_offset": T @ p.transition_offset + u - A @ u,
        "observation_offset": -C @ u,
        "transition_input": T @ p.transition_input,
        "observation_input": np.zeros_like(p.observation_input),
    }
    cross = free & ~free[:, None]
    added = np.where(cross, T, 0.0)
    change["initial_cov"] = np.where(
        free | free[:, None], added + added.T, change["initial_cov"]
    )
    return change


# -- coordinates -----------------------------------------------------------------------
@dataclass(frozen=True)
class Coordinates:
    """Vectors of the free entries of parameters near a point.

    Covariances of the point that are singular are left as they are.
    """

    at: Parameters
    held: Held
    covs: tuple[str, ...]

    @classmethod
    def of(cls, p: Parameters, held: Held) -> Coordinates:
        """For points that differ from p in what is free."""
        covs = []
        for name in COVARIANCES:
            block = held.block(name)
            cov = getattr(p, name)[held.inner(name)]
            diagonal = name in held.diagonal
            if (
                block.any()
                and (np.diagonal(cov) > 0).all()
                and (diagonal or least_of_correlation(cov) > _DEFINITE)
            ):
                covs.append(name)
        return cls(p, held, tuple(covs))

    def _linear(self):
        return [name for name in Parameters._fields if name not in COVARIANCES]

    def pack(self, p: Parameters) -> Array:
        """Vector of a point."""
        parts = [
            getattr(p, name)[~self.held.mask(name)].ravel() for name in self._linear()
        ]
        for name in self.covs:
            cov = getattr(p, name)[self.held.inner(name)]
            if name in self.held.diagonal:
                parts.append(np.log(np.diagonal(cov)))
                continue
            L = np.linalg.cholesky(cov)
            np.fill_diagonal(L, np.log(np.diagonal(L)))
            parts.append(L[np.tril_indices(len(L))])
        return np.concatenate(parts)

    def unpack(self, vector: Array) -> Parameters:
        """Point of a vector."""
        new, at = {}, 0
        for name in self._linear():
            free = ~self.held.mask(name)
            size = int(np.count_nonzero(free))
            array = np.array(getattr(self.at, name))
            array[free] = vector[at : at + size]
            new[name], at = array, at + size
        for name in self.covs:
            block = self.held.block(name)
            n = int(np.count_nonzero(block))
            size = n if name in self.held.diagonal else n * (n + 1) // 2
            own = vector[at : at + size]
            array, at = np.array(getattr(self.at, name)), at + size
            if name in self.held.diagonal:
                array[block, block] = np.exp(own)
            else:
                L = np.zeros((n, n))
                L[np.tril_indices(n)] = own
                np.fill_diagonal(L, np.exp(np.diagonal(L)))
                array[self.held.inner(name)] = L @ L.T
            new[name] = array
        return self.at._replace(**new)

    def pull(self, p: Parameters, derivatives: Parameters) -> Array:
        """Derivatives by the coordinates, from those by the entries of parameters."""
        parts = [
            getattr(derivatives, name)[~self.held.mask(name)].ravel()
            for name in self._linear()
        ]
        for name in self.covs:
            both = self.held.inner(name)
            cov, G = getattr(p, name)[both], getattr(derivatives, name)[both]
            if name in self.held.diagonal:
                parts.append(np.diagonal(G) * np.diagonal(cov))
                continue
            L = np.linalg.cholesky(cov)
            own = (G + G.T) @ L
            np.fill_diagonal(own, np.diagonal(own) * np.diagonal(L))
            parts.append(own[np.tril_indices(len(L))])
        return np.concatenate(parts)

    def names(self) -> list[tuple[str, tuple[int, ...]]]:
        """Parameter and entry of every free entry; covariances by their triangles."""
        found = []
        for name in self._linear():
            found += [(name, tuple(i)) for i in np.argwhere(~self.held.mask(name))]
        for name in self.covs:
            own = np.flatnonzero(self.held.block(name))
            if name in self.held.diagonal:
                found += [(name, (i, i)) for i in own]
            else:
                found += [
                    (name, (i, j)) for k, i in enumerate(own) for j in own[: k + 1]
                ]
        return [(name, tuple(int(i) for i in at)) for name, at in found]

    def jacobian(self, p: Parameters) -> Array:
        """Derivatives of the entries that `names` lists by the coordinates.

        Each row is the gradient of one entry, which has a derivative of one by itself.
        """
        rows = []
        zero = Parameters(*(np.zeros(np.shape(X)) for X in p))
        for name, at in self.names():
            one = np.array(getattr(zero, name))
            one[at] += 0.5 if name in COVARIANCES else 1.0
            if name in COVARIANCES:
                one[at[::-1]] += 0.5
            rows.append(self.pull(p, zero._replace(**{name: one})))
        return np.array(rows)
