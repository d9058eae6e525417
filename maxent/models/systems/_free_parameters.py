"""Parameters of a linear system that a fit may change, and their coordinates.

Entries are held one by one. Covariances that are fitted whole have the coordinates of a
Cholesky factor with logarithms on its diagonal, diagonal ones the logarithms of
variances, so that every vector of coordinates is a system.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.families._checks import least_of_correlation
from maxent.models._state_space import Parameters

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
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
        fixed: Any,
        p: Parameters,
        diagonal: Iterable[str] = (),
    ) -> Held:
        """From names, or a dict of masks by name, for parameters of these shapes."""
        diagonal = frozenset(diagonal)
        masks: dict[str, Any] = {
            name: np.zeros(np.shape(X), bool) for name, X in p._asdict().items()
        }
        for name in diagonal:  # beside the diagonal there are zeros
            masks[name] = ~np.eye(len(masks[name]), dtype=bool)
        for name, mask in named(fixed).items():
            masks[name] = masks[name] | _checked_mask(name, mask, masks[name].shape)
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


def named(fixed: Any) -> dict[str, Any]:
    """Masks by name, from names or such a dict; names are checked."""
    if isinstance(fixed, str):
        fixed = (fixed,)
    masks = dict(fixed) if isinstance(fixed, Mapping) else dict.fromkeys(fixed, True)
    for name in masks:
        if name not in Parameters._fields:
            raise ValueError(
                f"fixed={v.shown(fixed)} has no parameter {name!r}: choose from "
                f"{', '.join(Parameters._fields)}."
            )
    return masks


def _checked_mask(name: str, mask: Any, shape: tuple[int, ...]) -> Mask:
    array = np.asarray(mask)
    if array.dtype != bool:
        raise ValueError(
            f"fixed[{name!r}]={v.shown(mask)} must be True, or an array of booleans "
            "that are True where an entry is held."
        )
    if array.ndim == 1 and len(shape) == 2 and name in COVARIANCES:
        if array.shape != shape[:1]:
            raise ValueError(
                f"fixed[{name!r}] has {len(array)} variances; the system has "
                f"{shape[0]} of them."
            )
        return np.diag(array)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"fixed[{name!r}] has shape {array.shape}, but the parameter {shape}."
        ) from None


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
