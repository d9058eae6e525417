"""Product kernels of documents as counts, sparse all along.

With smoothing c and sums s_i, proportions are a_i = (x_i + c) / (s_i + sum c), and

    sum_d (a_id a_jd)^rho
        = r_i r_j (sum_d c_d^(2 rho) + u_i + u_j + sum_d S_id S_jd),
    S_id = (x_id + c_d)^rho - c_d^rho,   r_i = (s_i + sum c)^(-rho),   u = S c^rho:

one sparse product, whatever the smoothing. A kernel of s draws in order is its s-th
power.

Source: Jebara, Kondor & Howard (2004), section 3.3; the sparse form is ours.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxent._core.machines import sparse_gram
from maxent._inputs.estimator_input import refuse_texts
from maxent._support import validation as v
from maxent._support.threads import effective_threads
from maxent._support.validation import user_stacklevel
from maxent.kernels.pairs._length_law import LengthLaw

Array = NDArray[np.float64]
Places = NDArray[np.intp]
_OF_SYMBOLS = "; for sequences of symbols name a model, such as model='MarkovChain'"
_ROWS = 256  # of a Gram that are raised to a power at a time


@dataclass(frozen=True)
class Proportions:
    """Smoothed proportions to the power rho, as a sparse matrix and vectors."""

    S: Any  # CSR (n, k)
    r: Array  # (n,)
    u: Array  # (n,)
    constant: float

    @property
    def own(self) -> Array:
        """b of every document with itself."""
        squares = np.asarray(self.S.multiply(self.S).sum(axis=1)).ravel()
        return self.r**2 * (self.constant + 2.0 * self.u + squares)

    def scaled(self, factor: Array) -> Proportions:
        """Return the proportions with r multiplied by `factor`."""
        return Proportions(self.S, self.r * factor, self.u, self.constant)


def proportions(X: Any, smoothing: Array, rho: float) -> Proportions:
    """Proportions of checked counts; smoothing (k,)."""
    total = np.asarray(X.sum(axis=1)).ravel() + smoothing.sum()
    power = smoothing**rho
    S = X.copy()
    S.data = (X.data + smoothing[X.indices]) ** rho - power[X.indices]
    return Proportions(S, total**-rho, S @ power, float((power * power).sum()))


def checked_counts(X: Any, smoothing: Any, n_words: int | None = None) -> Any:
    """Counts as CSR float64, and smoothing (k,)."""
    if not sparse.issparse(X):
        if isinstance(X, (list, tuple)) or np.ndim(X) == 1:
            refuse_texts(X, _OF_SYMBOLS)
        X = v.as_doubles("X", X)
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}; counts (n_samples, k) are needed."
            )
    X = sparse.csr_array(X, dtype=np.float64, copy=sparse.issparse(X))
    X.sum_duplicates()
    if n_words is not None and X.shape[1] != n_words:
        raise ValueError(
            f"X has {X.shape[1]} columns, but the training counts had {n_words}."
        )
    wrong = ~(np.isfinite(X.data) & (X.data >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        i = int(np.searchsorted(X.indptr, at, side="right")) - 1
        raise ValueError(
            f"X[{i}, {X.indices[at]}]={X.data[at]:g} is no count; counts are finite "
            "and >= 0."
        )
    c = v.as_doubles("smoothing", smoothing)
    if c.shape not in ((), (X.shape[1],)) or not (np.isfinite(c) & (c >= 0)).all():
        raise ValueError(
            f"smoothing={v.shown(smoothing)} must be a number >= 0, or one for each of "
            f"the {X.shape[1]} columns."
        )
    c = np.ascontiguousarray(np.broadcast_to(c, X.shape[1:]))
    return X, c


def refuse_empty(X: Any, smoothing: Array) -> None:
    """Refuse documents without counts, which have no law without pseudo-counts."""
    empty = _empty(X, smoothing)
    if len(empty):
        raise ValueError(
            f"{_rows_named(empty)} no counts at all (an empty document). Drop such "
            "rows or set smoothing > 0 (in model_params of ProductKernel)."
        )


def with_uniform(X: Any, smoothing: Array) -> tuple[Any, Places | None]:
    """One row of ones in the place of all empty documents, with a warning.

    Returns
    -------
    X : CSR
        The documents with counts, and then the row of ones; all if none is empty.
    place : ndarray (n,) or None
        The row that stands for each document; None if none is empty.
    """
    empty = _empty(X, smoothing)
    if not len(empty):
        return X, None
    warnings.warn(
        f"{_rows_named(empty)} no counts at all (an empty document, or one without a "
        "known word): taken for uniform over the words, the limit of small "
        "pseudo-counts. What is predicted from that rests on no data.",
        stacklevel=user_stacklevel(),
    )
    full = np.setdiff1d(np.arange(X.shape[0]), empty)
    place = np.full(X.shape[0], len(full))
    place[full] = np.arange(len(full))
    ones = sparse.csr_array(np.ones((1, X.shape[1])))
    return sparse.vstack([X[full], ones], format="csr"), place


def _empty(X: Any, smoothing: Array) -> Places:
    return np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() + smoothing.sum() <= 0)


def _rows_named(rows: Places) -> str:
    """The subject and the verb of a sentence on rows."""
    names = ", ".join(f"X[{i}]" for i in rows[:5])
    if len(rows) == 1:
        return f"{names} holds"
    return f"{names}{', ...' if len(rows) > 5 else ''} ({len(rows)} rows) hold"


def affinities(P: Proportions, Q: Proportions | None, n_jobs: int | None) -> Array:
    """b (n, m) by one sparse product; Q None is P."""
    other = P if Q is None else Q
    left, right = (x.u + 0.5 * x.constant for x in (P, other))
    terms = left, right, P.r, other.r
    return sparse_products(P.S, None if Q is None else Q.S, n_jobs, terms)


def sparse_products(
    S: Any,
    T: Any = None,
    n_jobs: int | None = None,
    terms: tuple[Array, Array, Array, Array] | None = None,
) -> Array:
    """S T' of CSR matrices, dense; T None is S, and then exactly symmetric.

    With `terms` (a, b, r, s) it is (S T' + a + b') r s', for each row and column.
    """
    columns = (S if T is None else T).tocsc()
    columns.sort_indices()
    out = np.empty((S.shape[0], columns.shape[0]))
    arrays = *_arrays(S), *_arrays(columns)
    threads = effective_threads(n_jobs)
    sparse_gram.product(*arrays, T is None, out, threads, *(terms or ()))
    return out


def _arrays(S):
    if max(S.shape[0], S.nnz) > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {S.nnz} entries, more than 2**31; compute the kernel by blocks."
        )
    return (
        S.indptr.astype(np.int32, copy=False),
        S.indices.astype(np.int32, copy=False),
        S.data,
    )


def kernel_of(
    P: Proportions,
    Q: Proportions | None,
    *,
    total: int,
    law: LengthLaw | None,
    normalize: bool,
    own: tuple[Array, Array] | None,
    n_jobs: int | None,
) -> Array:
    """Kernels of documents; `own` are the logs of the b of either with themselves."""
    left, right = own or (np.log(P.own), np.log((P if Q is None else Q).own))
    if law is None and normalize:
        P = P.scaled(np.exp(-0.5 * left))
        Q = None if Q is None else Q.scaled(np.exp(-0.5 * right))
    K = affinities(P, Q, n_jobs)
    if law is not None or total > 1:
        for lo in range(0, len(K), _ROWS):
            part = slice(lo, lo + _ROWS)
            with np.errstate(divide="ignore"):
                L = np.log(K[part])
            if law is None:
                L *= total
            else:
                L = law.over_totals(L, total)
                if normalize:
                    ends = [law.over_totals(x, total) for x in (left[part], right)]
                    L -= 0.5 * (ends[0][:, None] + ends[1])
            np.exp(L, out=K[part])
    if normalize and Q is None:
        np.fill_diagonal(K, 1.0)
    return K
