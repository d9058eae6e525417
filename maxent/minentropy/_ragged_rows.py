"""Renyi scores of ragged rows: checked orders, scratch and threads of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._core import entropies as _core
from maxent._support import validation as v
from maxent._support.threads import effective_threads
from maxent._support.typing import FloatArray, IntArray

_EMPTY = np.empty(0)


def check_alpha(alpha: Any, shape: tuple[int, ...] = ()) -> FloatArray:
    """Orders in [0, inf], broadcast to a shape."""
    orders = v.as_doubles("alpha", alpha)
    if not (orders >= 0).all():  # NaN too
        wrong = orders[~(orders >= 0)].flat[0]
        raise ValueError(
            f"alpha={wrong:g} must be an order from 0 (averages over the hidden "
            "values) to inf (takes the best one)."
        )
    try:
        return np.broadcast_to(orders, shape).copy()
    except ValueError:
        raise ValueError(
            f"alpha has shape {orders.shape}; one order, or orders of shape {shape} "
            "are needed."
        ) from None


def renyi_rows(
    s: FloatArray,
    offsets: IntArray,
    alpha: FloatArray,
    *,
    weights: bool = True,
    n_threads: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Scores (rows,) and weights (entries,), or no weights, of ragged rows.

    Parameters
    ----------
    s : ndarray (entries,)
        Scores; -inf where a hidden value is not allowed.
    offsets : ndarray of int (rows + 1,)
        Row r is ``s[offsets[r]:offsets[r + 1]]``; none is empty.
    alpha : ndarray (rows,)
        Orders.
    weights : bool, default=True
        Whether the weights are wanted.
    n_threads : int, optional
        Threads; as many as the policy allows by default.
    """
    F = np.empty(len(offsets) - 1)
    beta = np.empty_like(s) if weights else _EMPTY
    n_threads = effective_threads() if n_threads is None else n_threads
    _core.renyi(s, offsets, alpha, F, beta, n_threads)
    return F, beta


def tempered_rows(
    s: FloatArray, offsets: IntArray, t: float, *, posteriors: bool = True
) -> tuple[FloatArray, FloatArray]:
    """log sum exp(t s) (rows,) and softmax(t s) (entries,) of ragged rows.

    At t = inf the maximum, and a one at its first place.
    """
    log_sum = np.empty(len(offsets) - 1)
    p = np.empty_like(s) if posteriors else _EMPTY
    temper = np.full(len(log_sum), float(t))
    _core.tempered(s, offsets, temper, log_sum, p, effective_threads())
    return log_sum, p
