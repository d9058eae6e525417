"""Product kernels of families and of mixtures.

    families    log int p^rho q^rho, by `log_affinity`
    mixtures    log sum_{g,h} (w_g w'_h)^rho int p_g^rho q_h^rho

The mixtures' is the power of the joint law of component and observation; the same as
the power of the marginal law for rho = 1.

Source: Jebara, Kondor & Howard (2004), sections 3 and 4.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent.families import ExponentialFamily, Multinomial
from maxent.families._batch import concatenated
from maxent.families._pairs import mirrored
from maxent.families.gaussian import AnyGaussian
from maxent.kernels.pairs._gaussian_parts import GaussianParts
from maxent.kernels.pairs._length_law import LengthLaw
from maxent.kernels.pairs._routes import Array, Call, Route, refuse_infinite

_BLOCK = 16  # distributions whose affinities with themselves are read off one Gram
_MOST_PAIRS = 1 << 22  # of components at a time


class FamilyRoute(Route):
    """Batches (n,), or (n, d) of independent coordinates."""

    sequences = False

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        batch = models
        if not isinstance(models, ExponentialFamily):
            batch = _one_batch(name, models)
        if len(batch.batch_shape) not in (1, 2) or not all(batch.batch_shape):
            raise ValueError(
                f"{name} has batch shape {batch.batch_shape}; (n,) is expected, or "
                "(n, d) for d independent coordinates each."
            )
        if like is not None:
            like._check_comparable(batch)
            if batch.batch_shape[1:] != like.batch_shape[1:]:
                raise ValueError(
                    f"{name} has batch shape {batch.batch_shape} but P has "
                    f"{like.batch_shape}; they need the same number of coordinates."
                )
        return batch

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        for side, batch in (("P", P), ("Q", Q)):
            if batch is not None:
                name = call.named[side]
                at = [list(i) for i in np.ndindex(batch.batch_shape)]
                members = [name + str(i) for i in at]
                refuse_infinite(name, batch, call.rho, members)
                for r in call.rho:  # families without a formula say so
                    batch._take(np.zeros(1, dtype=int)).log_affinity(
                        batch._take(np.zeros(1, dtype=int)), float(r)
                    )

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.zeros((len(P), len(P if Q is None else Q), 1, len(call.rho)))
        for p, q in coordinates(P, Q):
            with single_threaded_blas():
                out[:, :, 0] += _affinities(p, q, call.rho)
        return out

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        out = np.zeros((len(P), 1, len(call.rho)))
        for p, _ in coordinates(P, None):
            for k, r in enumerate(call.rho):
                out[:, 0, k] += own_affinities(p, float(r))
        return out

    def sum_lengths(self, P: Any, Q: Any, call: Call, law: LengthLaw) -> Any:
        """Sums over totals of multinomials: logs (n, m, powers), and of either self."""
        if not isinstance(P, Multinomial):
            raise ValueError(
                f"length_law={law.shown} sums over the totals of Multinomial; "
                f"{type(P).__name__} has no length. Use length_law=None."
            )
        mean = P.total
        law.check_mean(mean)
        p, q = draws = [None if B is None else B._draw for B in (P, Q)]
        totals = Call(call.rho, None, named=call.named)
        log_b = self.log_kernel(p, q, totals)[:, :, 0]
        own = [None if B is None else self.log_self(B, 0, totals)[:, 0] for B in draws]
        for side, values in zip("PQ", own):
            if values is not None:
                law.check_totals(call.named[side], values, mean, call.rho)
        return tuple(
            None if L is None else law.over_totals(L, mean)
            for L in (log_b, own[0], own[1])
        )


def _one_batch(name, models):
    """A batch from a list of single distributions."""
    models = list(models)
    if not models:
        raise ValueError(f"{name}=[] has no model; pass one at least.")
    for i, one in enumerate(models):
        if not isinstance(one, ExponentialFamily) or one.batch_shape:
            raise TypeError(
                f"{name}[{i}]={v.shown(one)} is no single distribution, as all must "
                "be: a batch is passed as it is, without a list."
            )
        models[0]._check_comparable(one)
    return concatenated([one._flat() for one in models])


def coordinates(P, Q):
    """Batches of one axis, one for every independent coordinate."""
    if len(P.batch_shape) == 1:
        return [(P, Q)]
    return [(P[:, d], None if Q is None else Q[:, d]) for d in range(P.batch_shape[1])]


def _affinities(P, Q, powers):
    """(n, m, powers); of Gaussians all powers from one pass."""
    Q = P if Q is None else Q
    if isinstance(P, AnyGaussian) and len(powers) > 1:
        log_det, distance = P._pair_terms(Q)
        parts = GaussianParts(P._d, P._log_det, Q._log_det, log_det, distance)
        L = parts.log_kernel(powers)
        if Q is P:
            i, j = np.tril_indices(len(L), -1)
            L[i, j] = L[j, i]
        return L
    return np.stack([P.log_affinity(Q, float(r)) for r in powers], axis=-1)


def own_affinities(P: Any, rho: float) -> Array:
    """log int p^(2 rho) of every member (n,)."""
    if rho == 0.5:
        return np.zeros(len(P))
    parts = [P[lo : lo + _BLOCK] for lo in range(0, len(P), _BLOCK)]
    with single_threaded_blas():
        return np.concatenate([np.diagonal(p.log_affinity(p, rho)) for p in parts])


class MixtureRoute(Route):
    """Sums over all pairs of components."""

    methods = ("auto",)
    sequences = False
    space = "event_shape"

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        models = super().checked(name, models, like)
        first = (like or models)[0].components
        for i, model in enumerate(models):
            if type(model.components) is not type(first):
                raise TypeError(
                    f"{name}[{i}] has {type(model.components).__name__} components, "
                    f"the first model {type(first).__name__}: all must be of one "
                    "family."
                )
            first._check_comparable(model.components)
        return models

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        for side, models in (("P", P), ("Q", Q)):
            for i, model in enumerate(models or ()):
                name = f"component {{}} of {call.named[side]}[{i}]"
                members = [name.format(h) for h in range(model.n_components)]
                refuse_infinite(name, model.components, call.rho, members)

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        left = _Components(P)
        right = left if Q is None else _Components(Q)
        out = np.empty((len(P), len(right.at) - 1, 1, len(call.rho)))
        size = max(1, _MOST_PAIRS // len(right.log_weights))
        for part in left.groups(size):
            own = left.part(part)
            for k, r in enumerate(call.rho):
                with single_threaded_blas():
                    L = own.batch.log_affinity(right.batch, float(r))
                L += float(r) * (own.log_weights[:, None] + right.log_weights)
                L = np.logaddexp.reduceat(L, right.at[:-1], axis=1)
                out[part, :, 0, k] = np.logaddexp.reduceat(L, own.at[:-1], axis=0)
        if Q is None:
            for k in range(len(call.rho)):
                out[:, :, 0, k] = mirrored(out[:, :, 0, k])
        return out

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        return np.stack([self.log_kernel([p], None, call)[0, 0] for p in P])


class _Components:
    """Components of many mixtures, one after the other; those of weight zero left out.

    Mixture i has the components at[i] to at[i + 1].
    """

    def __init__(self, models):
        kept = [np.flatnonzero(m.weights > 0) for m in models]
        self._batches = [m.components[k] for m, k in zip(models, kept)]
        self._logs = [m._log_weights[k] for m, k in zip(models, kept)]
        self.batch = concatenated(self._batches)
        self.log_weights = np.concatenate(self._logs)
        self.at = np.cumsum([0, *map(len, kept)])

    def groups(self, size):
        """Slices of models that have about `size` components together."""
        lo, out = 0, []
        while lo < len(self.at) - 1:
            hi = int(np.searchsorted(self.at, self.at[lo] + size, side="right")) - 1
            out.append(slice(lo, max(hi, lo + 1)))
            lo = out[-1].stop
        return out

    def part(self, models):
        """Components of some of the models."""
        own = object.__new__(_Components)
        own.batch = concatenated(self._batches[models])
        own.log_weights = np.concatenate(self._logs[models])
        own.at = self.at[models.start : models.stop + 1] - self.at[models.start]
        return own
