"""Hidden-variable features of a data set, as the learners need them.

A learner asks for the Renyi scores F_iy with their gradients g_iy in w, for tempered
log-sums with the means of the features, and for the best hidden values; whether the
hidden values are listed or summed over by recursions it does not know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._support import validation as v
from maxent._support.typing import FloatArray, IntArray
from maxent.minentropy._ragged_rows import renyi_rows, tempered_rows


class HiddenFeatures(ABC):
    """Features Psi(x_i, y, h) of n samples, K outputs and their hidden values.

    Gradients G are kept as the features are built: `rows` gives those of some pairs
    (i, y) as vectors of length d.

    Attributes
    ----------
    n, K, d : int
        Samples, outputs, weights.
    """

    n: int
    K: int
    d: int
    _unmasked: HiddenFeatures | None = None

    @property
    @abstractmethod
    def is_visible(self) -> bool:
        """True if every output has one hidden value: nothing is hidden."""

    @abstractmethod
    def renyi(
        self, w: FloatArray, alpha: Any, gradient: bool = True
    ) -> tuple[FloatArray, Any]:
        """F (n, K) at orders alpha (K,), and G or None; -inf of what is impossible."""

    @abstractmethod
    def tempered(self, w: FloatArray, t: float) -> tuple[FloatArray, Any]:
        """log sum exp(t s) (n, K) and G of the means E_t[Psi]; max, argmax at inf."""

    @abstractmethod
    def spread(self, w: FloatArray) -> tuple[FloatArray, Any]:
        """A quadratic form q(w) >= range_h(s_iyh)^2 (n, K), and G of half its slope."""

    @abstractmethod
    def best(self, w: FloatArray) -> Any:
        """Best hidden value of every (i, y): (n, K) or (n, K, ...)."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Any:
        """G of hidden values drawn uniformly."""

    @abstractmethod
    def rows(self, G: Any, i: IntArray, y: IntArray) -> Any:
        """Features (len(i), d) of pairs (i, y)."""

    @abstractmethod
    def _restrict(self, hidden_mask: Any, codes: IntArray) -> None:
        """Leave out hidden values of the outputs `codes`, as a user's masks say."""

    def restrict(self, hidden_mask: Any, codes: IntArray) -> None:
        """Leave out hidden values of the outputs `codes`, as a user's masks say.

        `unmasked` are the features as they were, which predictions have.
        """
        self._unmasked = copy(self)
        self._restrict(hidden_mask, codes)

    @property
    def unmasked(self) -> HiddenFeatures:
        """The features without a user's masks of the true outputs."""
        return self if self._unmasked is None else self._unmasked

    def centre(self, weight: FloatArray) -> None:
        """Move features to an origin amid those of samples of these weights, if any.

        Constants take it up, whose penalty then does not depend on where zero was; or
        it is the same for all outputs and hidden values, and margins do not change.
        """
        return

    def taken_up(self, w: FloatArray) -> FloatArray:
        """Part of the origin that the constants (d,) of weights w take up.

        The scores of w at the features as they were are those of w + taken_up(w) at
        the centred ones.
        """
        return np.zeros_like(w)

    def at_weights(self, G: Any, w: FloatArray) -> FloatArray:
        """g_iy . w, (n, K)."""
        i = np.repeat(np.arange(self.n), self.K)
        y = np.tile(np.arange(self.K), self.n)
        return (self.rows(G, i, y) @ w).reshape(self.n, self.K)


class ListedFeatures(HiddenFeatures):
    """Hidden values in a list for every (i, y): flat scores in segments.

    Attributes
    ----------
    offsets : ndarray of int (segments + 1,)
        Segments of the flat scores, one for each (i, y) that has hidden values.
    forbidden : ndarray of int or None
        Entries that are not allowed.
    """

    offsets: IntArray
    forbidden: IntArray | None = None

    @abstractmethod
    def raw_scores(self, w: FloatArray) -> FloatArray:
        """Scores of all hidden values, (entries,)."""

    @abstractmethod
    def pool(self, beta: FloatArray) -> Any:
        """G of weights (entries,) of the hidden values."""

    @abstractmethod
    def table(self, values: Any, fill: float) -> Any:
        """Values of segments as (n, K); `fill` where an output has no segment."""

    @abstractmethod
    def segment_orders(self, alpha: Any) -> FloatArray:
        """Order of every segment."""

    @abstractmethod
    def hidden_sizes(self, codes: IntArray) -> IntArray:
        """Entries that a mask of each sample has, (n,)."""

    @abstractmethod
    def forbid(self, allowed: Any, codes: IntArray) -> None:
        """Leave out hidden values of the outputs `codes`; one boolean an entry."""

    def _restrict(self, hidden_mask, codes):
        sizes = self.hidden_sizes(codes)
        masks = checked_masks(hidden_mask, [(size,) for size in sizes])
        self.forbid(np.concatenate(masks), codes)

    def _forbid(self, entries):
        """Leave out flat entries as well."""
        before = entries[:0] if self.forbidden is None else self.forbidden
        self.forbidden = np.union1d(before, entries).astype(np.intp)

    @property
    def is_visible(self):
        return bool((np.diff(self.offsets) == 1).all())

    def scores(self, w: FloatArray) -> FloatArray:
        """Scores, -inf where a hidden value is not allowed."""
        s = self.raw_scores(w)
        if self.forbidden is not None:
            s[self.forbidden] = -np.inf
        return s

    def renyi(self, w, alpha, gradient=True):
        orders = self.segment_orders(alpha)
        F, beta = renyi_rows(self.scores(w), self.offsets, orders, weights=gradient)
        return self.table(F, 0.0), self.pool(beta) if gradient else None

    def tempered(self, w, t):
        L, p = tempered_rows(self.scores(w), self.offsets, t)
        return self.table(L, 0.0), self.pool(p)

    def spread(self, w):
        s, starts = self.raw_scores(w), self.offsets[:-1]
        allowed = np.ones(len(s))
        if self.forbidden is not None:
            allowed[self.forbidden] = 0.0
        count = np.maximum(np.add.reduceat(allowed, starts), 1.0)
        mean = np.add.reduceat(allowed * s, starts) / count
        off = 2.0 * allowed * (s - np.repeat(mean, np.diff(self.offsets)))
        # range^2 <= 2 |s - mean|^2
        return self.table(0.5 * np.add.reduceat(off**2, starts), 0.0), self.pool(off)

    def best(self, w):
        _, p = tempered_rows(self.scores(w), self.offsets, np.inf)
        at = np.zeros(len(self.offsets) - 1, dtype=np.intp)
        place = np.flatnonzero(p)
        segment = np.searchsorted(self.offsets, place, side="right") - 1
        at[segment] = place - self.offsets[segment]
        return self.table(at, 0)

    def posteriors(self, w):
        """softmax of the scores, (entries,)."""
        return tempered_rows(self.scores(w), self.offsets, 1.0)[1]

    def random(self, rng):
        # the largest of independent uniform numbers is anywhere with one probability
        draw = rng.random(self.offsets[-1])
        if self.forbidden is not None:
            draw[self.forbidden] = -np.inf
        return self.pool(tempered_rows(draw, self.offsets, np.inf)[1])


class SideFeatures(ListedFeatures):
    """Features whose segments are the samples, once for each side; base class.

    Attributes
    ----------
    origin : ndarray (p,)
        What `centre` has taken off the features.
    """

    origin: FloatArray

    def table(self, values, fill):
        out = np.full((self.n, self.K), fill, dtype=values.dtype)
        out[:, self.K - self.sides :] = values.reshape(self.sides, self.n).T
        return out

    def segment_orders(self, alpha):
        return np.repeat(alpha[self.K - self.sides :], self.n)

    def remove(self, absent):
        """Leave out hidden values of all outputs; `absent` is boolean, of one side."""
        sides = np.arange(self.sides)[:, None] * len(absent)
        self._forbid((sides + np.flatnonzero(absent)).ravel())

    def rows(self, G, i, y):
        return side_rows(G, i, y, self.K)

    def at_weights(self, G, w):
        out = np.zeros((self.n, self.K))
        own = np.einsum("iyp,yp->iy", G, w.reshape(self.sides, -1))
        out[:, self.K - self.sides :] = own
        return out


class BlockFeatures(SideFeatures):
    """Bags phi_ih of vectors with one block of weights a class: s_iyh = w_y . phi_ih.

    With one side only, output 1 has the bags and the score of output 0 is zero.

    Parameters
    ----------
    phi : ndarray (N, p)
        Instances of all bags.
    bags : ndarray of int (n + 1,)
        Where each bag begins.
    K : int
    one_sided : bool
    constant : float, default=0.0
        Value of one more feature; 0 for none.
    """

    def __init__(self, phi, bags, K, one_sided, constant=0.0):
        self.origin, self.constant = np.zeros(phi.shape[1]), constant
        if constant:
            phi = np.column_stack([phi, np.full(len(phi), constant)])
        self.phi, self.bags, self.K = phi, np.asarray(bags, dtype=np.intp), K
        self.n, self.p = len(bags) - 1, phi.shape[1]
        self.sides = 1 if one_sided else K
        self.d = self.sides * self.p
        N = len(phi)
        starts = [self.bags[:-1] + y * N for y in range(self.sides)]
        self.offsets = np.append(np.concatenate(starts), self.sides * N).astype(np.intp)

    def centre(self, weight):
        """Take off the mean of the instances that an output may have."""
        if not self.constant:
            return
        each = np.repeat(weight, np.diff(self.bags)).astype(np.float64)
        if self.forbidden is not None:
            each[self.forbidden[self.forbidden < len(each)]] = 0.0
        self.origin = weighted_mean(self.phi[:, :-1], each)
        self.phi[:, :-1] -= self.origin

    def taken_up(self, w):
        W = w.reshape(self.sides, self.p)
        out = np.zeros_like(W)
        if self.constant:
            out[:, -1] = W[:, :-1] @ self.origin / self.constant
        return out.ravel()

    def forbid(self, allowed, codes):
        """Leave out instances of the true output; `allowed` is boolean, (N,)."""
        own = codes - (self.K - self.sides)
        i = np.repeat(np.arange(self.n), np.diff(self.bags))
        out = np.flatnonzero(~allowed & (own[i] >= 0))
        self._forbid(own[i[out]] * len(self.phi) + out)

    def hidden_sizes(self, codes):
        """Instances of every bag, whatever its label."""
        return np.diff(self.bags)

    def split(self, values, codes):
        """Values of the hidden values of outputs, a list of arrays."""
        N, side = len(self.phi), codes - (self.K - self.sides)
        return [
            values[y * N + lo : y * N + hi].copy() if y >= 0 else np.ones(1)
            for y, lo, hi in zip(side, self.bags[:-1], self.bags[1:], strict=True)
        ]

    def raw_scores(self, w):
        return (self.phi @ w.reshape(self.sides, self.p).T).T.ravel()

    def pool(self, beta):
        beta, N = beta.reshape(self.sides, -1), len(self.phi)
        G = np.empty((self.n, self.sides, self.p))
        for y, own in enumerate(beta):
            shape = (self.n, N)
            B = sp.csr_array((own, np.arange(N), self.bags), shape=shape)
            G[:, y] = B @ self.phi
        return G


def weighted_mean(rows, weight):
    """Weighted mean of rows (N, p) that may be far from zero."""
    first = rows[:1].sum(axis=0)
    return first + weight @ (rows - first) / weight.sum()


def side_rows(G, i, y, K):
    """Rows (len(i), d) of gradients (n, sides, p) in blocks of weights."""
    sides, p = G.shape[1:]
    side = y - (K - sides)
    if sides == 1:
        return np.where((side == 0)[:, None], G[i, 0], 0.0)
    out = np.zeros((len(i), sides, p))
    at = np.arange(len(i))
    out[at, side] = G[i, side]
    return out.reshape(len(i), sides * p)


class JointFeatures(ListedFeatures):
    """Rows Psi(x_i, y, h) of joint features, in segments i K + y.

    Parameters
    ----------
    R : ndarray or sparse (N, d)
        Features of all hidden values.
    ptr : ndarray of int (n K + 1,)
        Segments; an output may have none, which makes it impossible.
    K : int
    """

    def __init__(self, R, ptr, K):
        self.R, self.K, self.n, self.d = R, K, (len(ptr) - 1) // K, R.shape[1]
        size = np.diff(ptr)
        self.present = np.flatnonzero(size)
        self.offsets = np.append(ptr[:-1][self.present], ptr[-1]).astype(np.intp)
        self.ptr = np.asarray(ptr, dtype=np.intp)

    def centre(self, weight):
        """Take off dense columns the value of their range that is nearest to zero."""
        if sp.issparse(self.R) or not len(self.R):
            return
        origin = np.clip(0.0, self.R.min(axis=0), self.R.max(axis=0))
        if origin.any():
            self.R = self.R - origin

    def forbid(self, allowed, codes):
        """Leave out hidden values of the true outputs; `allowed` lists these."""
        size, at = np.diff(self.ptr), np.arange(self.n) * self.K + codes
        entries = np.repeat(np.isin(np.arange(len(size)), at), size)
        out = np.flatnonzero(entries)[~allowed]
        self._forbid(out)

    def hidden_sizes(self, codes):
        """Hidden values of the outputs `codes`, (n,)."""
        return np.diff(self.ptr)[np.arange(self.n) * self.K + codes]

    def split(self, values, codes):
        """Values of the hidden values of outputs, a list of arrays."""
        at = np.arange(self.n) * self.K + codes
        return [values[self.ptr[k] : self.ptr[k + 1]].copy() for k in at]

    def raw_scores(self, w):
        return np.array(self.R @ w, dtype=np.float64)

    def pool(self, beta):
        shape = (self.n * self.K, len(beta))
        B = sp.csr_array((beta, np.arange(len(beta)), self.ptr), shape=shape)
        return B @ self.R

    def table(self, values, fill):
        missing = -np.inf if values.dtype.kind == "f" else 0
        out = np.full(self.n * self.K, missing, dtype=values.dtype)
        out[self.present] = values
        return out.reshape(self.n, self.K)

    def segment_orders(self, alpha):
        return np.ascontiguousarray(alpha[self.present % self.K])

    def rows(self, G, i, y):
        return G[i * self.K + y]


# -- masks ---------------------------------------------------------------------------
def listed_masks(hidden_mask):
    """Masks of the samples as a list."""
    try:
        return list(hidden_mask)
    except TypeError:  # no iterable, or an array without axes
        raise ValueError(
            f"hidden_mask={v.shown(hidden_mask)} must be a list with one mask for each "
            "sample, or None for a sample without annotation."
        ) from None


def checked_masks(hidden_mask, shapes):
    """Masks of the samples, each of its shape and with an allowed value in each row."""
    given = listed_masks(hidden_mask)
    if len(given) != len(shapes):
        raise ValueError(
            f"hidden_mask has {len(given)} entries; one for each of {len(shapes)} "
            "samples is needed."
        )
    masks = [
        np.ones(shape, dtype=bool) if m is None else v.as_array(f"hidden_mask[{i}]", m)
        for i, (m, shape) in enumerate(zip(given, shapes, strict=True))
    ]
    for i, (mask, shape) in enumerate(zip(masks, shapes, strict=True)):
        if mask.dtype != bool or mask.shape != shape:
            wanted = " x ".join(map(str, shape))
            raise ValueError(
                f"hidden_mask[{i}] has shape {mask.shape} and dtype {mask.dtype}; "
                f"{wanted} booleans are needed, True where a hidden value is allowed."
            )
        if not mask.any(axis=-1).all():
            where = "" if mask.ndim == 1 else f" at node {mask.any(-1).argmin()}"
            raise ValueError(
                f"hidden_mask[{i}] allows no hidden value{where}; allow one, or drop "
                "the sample."
            )
    return masks
