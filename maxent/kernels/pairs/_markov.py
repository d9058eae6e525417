"""Product kernels between Markov chains.

Both chains see the same symbols, so that the recursion runs over contexts c of m
symbols:

    v(c) = (start(c) start'(c))^rho,
    v(c') <- sum_{c -> c' by o} v(c) (P(c, o) P'(c, o))^rho,      k = sum_c v(c)

Source: Jebara, Kondor & Howard (2004), section 8.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent.families import Categorical
from maxent.families._pairs import tiles
from maxent.kernels.pairs._routes import Array, Call, ModelRoute
from maxent.models.chains.markov import MarkovChain

# The product of a sum above _FADED with entries of both chains above _TINY does not
# underflow. What is below them may be all that the zeros of later steps leave.
_TINY = 1e-50
_FADED = 1e-200


class MarkovRoute(ModelRoute):
    """Chains of one alphabet; a lower order is a special case of a higher one."""

    space = "n_symbols"
    together = 16

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        models = super().checked(name, models, like)
        check_letters(name, models, (like or models)[0].alphabet)
        return models

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        super().check_call(P, Q, call)
        _check_memory(max(model.order for model in [*P, *(Q or ())]), P, Q)

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        order = max(model.order for model in [*P, *(Q or ())])
        left = _tables(P, order)
        right = left if Q is None else _tables(Q, order)
        assert call.horizons is not None
        out = np.empty((len(P), len(right[0]), *call.shape))
        for k, rho in enumerate(call.rho):
            out[..., k] = _log_kernels(left, right, order, float(rho), call.horizons)
        if Q is None:
            i, j = np.tril_indices(len(P), -1)
            out[i, j] = out[j, i]
        return out


def check_letters(name: str, models: Any, expected: str | None) -> None:
    """Models with alphabets must have one and the same."""
    for i, model in enumerate(models):
        if None not in (model.alphabet, expected) and model.alphabet != expected:
            raise ValueError(
                f"{name}[{i}] has alphabet={model.alphabet!r}, the first model has "
                f"{expected!r}: the models are over different spaces."
            )


def raised(model: MarkovChain, order: int) -> tuple[Array, Array]:
    """Start and transition probabilities of the same chain at a higher order."""
    O, m = model.n_symbols, model.order
    n = O**order
    v.check_memory(f"order={order}, the number of contexts", n, 24 * n * O)
    start = model.start
    for k in range(m, order):  # the first k + 1 symbols together
        rows = np.tile(model.transition, (O ** (k - m), 1))
        start = (start[:, None] * rows).reshape(-1)
    return start, np.tile(model.transition, (O ** (order - m), 1))


def _check_memory(order, P, Q):
    """Refuse tables of all chains that do not fit into memory.

    There are the chains, their stack and its power, and of one chain the products with
    all of the second list, with the sums of one step.
    """
    n_chains, m = len(P) + len(Q or ()), len(P if Q is None else Q)
    O = P[0].n_symbols
    name = f"order={order}, of {n_chains} chains the number of contexts"
    v.check_memory(name, O**order, 8 * O**order * (O + 1) * (3 * n_chains + 2 * m))


def _tables(models, order):
    """Stacked start (n, C) and transition (n, C, O) probabilities."""
    both = [raised(model, order) for model in models]
    return np.stack([b[0] for b in both]), np.stack([b[1] for b in both])


def _log_kernels(left, right, order, rho, horizons):
    """(n, m, horizons)."""
    start, A = left[0] ** rho, left[1] ** rho
    start2, B = right[0] ** rho, right[1] ** rho
    unsure = _tiny(left, rho)[:, None] | _tiny(right, rho)
    out = np.empty((len(A), len(B), len(horizons)))
    for at, T in enumerate(horizons):
        if order - 1 > T:  # no whole context: laws of the first symbols
            first = (_prefixes(side[0], T, A.shape[-1]) for side in (left, right))
            out[..., at] = next(first).log_affinity(next(first), rho)
    early = int(np.searchsorted(horizons, order - 1))
    if early == len(horizons):
        return out
    whole = out[..., early:]
    for part in tiles(len(A), B.size):
        L, faded = _scaled(start[part], A[part], start2, B, order, horizons[early:])
        whole[part] = L
        with np.errstate(divide="ignore"):
            for i, j in np.argwhere(faded | unsure[part]):
                p, q = part.start + i, j
                logs = [rho * np.log(T) for T in (left[0][p], left[1][p])]
                logs2 = [rho * np.log(T) for T in (right[0][q], right[1][q])]
                whole[p, q] = _in_logs(
                    logs[0] + logs2[0], logs[1] + logs2[1], order, horizons[early:]
                )
    return out


def _tiny(tables, rho):
    """Chains (n,) with a probability whose power may underflow in products."""
    least = _TINY ** (1.0 / rho)
    small = [((T > 0) & (least > T)).reshape(len(T), -1) for T in tables]
    return np.concatenate(small, axis=1).any(axis=1)


def _shape(order, O):
    """Axes of the contexts: the oldest symbol, and those that stay."""
    return (1, 1) if order == 0 else (O, O ** (order - 1))


def _prefixes(start, T, O):
    """Laws of the first T + 1 symbols together."""
    sums = start.reshape(len(start), O ** (int(T) + 1), -1).sum(axis=-1)
    return Categorical(np.minimum(sums, 1.0))  # a sum may round above one


def _scaled(start, A, start2, B, order, horizons):
    """Logs (n, m, horizons), and pairs in which something came near underflow."""
    n, m, O = len(A), len(B), A.shape[-1]
    old, kept = _shape(order, O)
    v = start[:, None] * start2
    W = (A[:, None] * B).reshape(n, m, old, kept, O)
    if order == 0:  # one context, whatever the symbol
        W = W.sum(axis=-1, keepdims=True)
    out, log_scale = np.empty((n, m, len(horizons))), np.zeros((n, m))
    faded = np.zeros((n, m), dtype=bool)
    at, T = 0, order - 1
    with np.errstate(divide="ignore"):
        while True:
            top = v.max(axis=-1)
            faded |= top == 0
            scale = np.where(top > 0, top, 1.0)
            v = v / scale[..., None]
            log_scale += np.log(scale)
            faded |= ((v > 0) & (v < _FADED)).any(axis=-1)
            if horizons[at] == T:
                out[..., at] = np.log(v.sum(axis=-1)) + log_scale
                at += 1
            if at == len(horizons):
                return out, faded
            v = np.einsum("nmak,nmako->nmko", v.reshape(n, m, old, kept), W)
            v = v.reshape(n, m, -1)
            T += 1


def _in_logs(v, W, order, horizons):
    """Log-kernel of one pair, computed in logs."""
    old, kept = _shape(order, W.shape[-1])
    W = W.reshape(old, kept, -1)
    if order == 0:
        W = np.logaddexp.reduce(W, axis=-1, keepdims=True)
    out, T = np.empty(len(horizons)), order - 1
    for at, horizon in enumerate(horizons):
        while horizon > T:
            terms = v.reshape(old, kept)[..., None] + W
            v = np.logaddexp.reduce(terms, axis=0).reshape(-1)
            T += 1
        out[at] = np.logaddexp.reduce(v)
    return out
