"""Renyi scores, their signed weights, and the entropies behind them.

The scores s_h of the hidden values of one output make the unnormalised distribution
Q_h = exp(s_h) / Z. Its Renyi entropy of order alpha is log Z less the score

    F_a(s) = [log sum exp(a s) - log sum exp(s)] / (a - 1).

Source: Renyi (1961), On measures of entropy and information; Miller, Kumar, Packer,
Goodman & Koller (2012), Max-margin min-entropy models, eqs. (1)-(5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent._support.typing import FloatArray, FloatArrayOrScalar
from maxent._support.underflow import allow_underflow
from maxent.minentropy._ragged_rows import check_alpha, renyi_rows


@allow_underflow
def renyi_score(
    S: ArrayLike,
    alpha: ArrayLike,
    *,
    axis: int = -1,
    mask: ArrayLike | None = None,
    temperature: float = 1.0,
) -> FloatArrayOrScalar:
    """Return the Renyi scores of outputs from the scores of their hidden values.

    ``F_a(s) = [log sum exp(a s) - log sum exp(s)] / (a - 1)``; the average
    log-mean-exp at a = 0, the mean ``sum p s`` with p = softmax(s) at a = 1, and the
    maximum at a = inf. It is log Z less the Renyi entropy of exp(s) / Z.

    Parameters
    ----------
    S : array-like (..., H)
        Scores of the hidden values, in nats; -inf forbids one.
    alpha : float or array-like
        Order in [0, inf], or one for each output: broadcast over the other axes of
        `S`.
    axis : int, default=-1
        Axis of the hidden values.
    mask : array-like of bool, optional
        Which hidden values are allowed, broadcast to the shape of `S`.
    temperature : float, default=1.0
        b > 0: ``F_a'(b s) / b`` with ``a' = 1 + (a - 1) / b``, the entropy of order a
        and type b, ``[log sum exp((a + b - 1) s) - log sum exp(b s)] / (a - 1)``. It
        needs a + b >= 1.

    Returns
    -------
    float or ndarray
        F, the shape of `S` without `axis`; -inf where nothing is allowed.

    Raises
    ------
    ValueError
        For an order below 0 or NaN, scores that are NaN or +inf, and no hidden value.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), eqs. (3), (5). Mathai & Rathie
    (1975), Basic concepts in information theory and statistics, for the type.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import renyi_score
    >>> print(*(round(renyi_score([0.0, 2.0], a), 4) for a in (0, 1, 2, np.inf)))
    1.4338 1.7616 1.8912 2.0
    """
    rows, offsets, orders, b, shape, _ = _read(S, alpha, axis, mask, temperature)
    F, _ = renyi_rows(rows.ravel(), offsets, orders, weights=False)
    return (F / b).reshape(shape)[()]


@allow_underflow
def renyi_weights(
    S: ArrayLike,
    alpha: ArrayLike,
    *,
    axis: int = -1,
    mask: ArrayLike | None = None,
    temperature: float = 1.0,
) -> FloatArray:
    """Return the derivatives of the Renyi scores by the scores of hidden values.

    ``beta = dF / ds = (a p^(a) - p) / (a - 1)`` with p^(a) = softmax(a s): the
    posterior p at a = 0, ``p (1 + s - sum p s)`` at a = 1, and equal weights of the
    best hidden values at a = inf. They sum to one and may be negative in between: a
    better unlikely value adds uncertainty.

    Parameters
    ----------
    S : array-like (..., H)
        Scores of the hidden values, in nats; -inf forbids one.
    alpha : float or array-like
        Order in [0, inf], or one for each output.
    axis : int, default=-1
        Axis of the hidden values.
    mask : array-like of bool, optional
        Which hidden values are allowed.
    temperature : float, default=1.0
        As for :func:`renyi_score`.

    Returns
    -------
    ndarray
        beta, the shape of `S`; zero where a hidden value is not allowed.

    Raises
    ------
    ValueError
        As for :func:`renyi_score`.

    Examples
    --------
    >>> from maxent.minentropy import renyi_weights
    >>> print(renyi_weights([0.0, 2.0], 1.0).round(4))
    [-0.0908  1.0908]
    """
    rows, offsets, orders, _, _, axis = _read(S, alpha, axis, mask, temperature)
    _, beta = renyi_rows(rows.ravel(), offsets, orders)
    return np.moveaxis(beta.reshape(rows.shape), -1, axis)


@allow_underflow
def renyi_entropy(
    Q: ArrayLike, alpha: ArrayLike, *, axis: int = -1
) -> FloatArrayOrScalar:
    """Return Renyi entropies of distributions that need not sum to one.

    ``H_a(Q) = log(sum Q^a / sum Q) / (1 - a)``; ``log(|Q > 0| / sum Q)`` at a = 0, the
    Shannon entropy ``-sum Q log Q / sum Q`` at a = 1, and ``-log max Q`` at a = inf.

    Parameters
    ----------
    Q : array-like (..., H)
        Weights >= 0, of which one at least is positive.
    alpha : float or array-like
        Order in [0, inf], or one for each distribution.
    axis : int, default=-1
        Axis of the outcomes.

    Returns
    -------
    float or ndarray
        Entropies in nats, the shape of `Q` without `axis`.

    Raises
    ------
    ValueError
        For negative or infinite weights, none that is positive, an order below 0.

    References
    ----------
    Renyi (1961). Miller, Kumar, Packer, Goodman & Koller (2012), eqs. (1)-(2).

    Examples
    --------
    >>> from maxent.minentropy import renyi_entropy
    >>> print(round(renyi_entropy([0.5, 0.25, 0.25], 2.0), 4))
    0.9808
    """
    return -renyi_score(_log_weights(Q, axis), alpha, axis=axis)


@allow_underflow
def tsallis_entropy(
    Q: ArrayLike, alpha: ArrayLike, *, axis: int = -1
) -> FloatArrayOrScalar:
    """Return Tsallis entropies of distributions that need not sum to one.

    ``T_a(Q) = (1 - sum Q^a / sum Q) / (a - 1) = (1 - exp((1 - a) H_a(Q))) / (a - 1)``,
    an increasing function of the Renyi entropy H_a, so both choose the same output.
    Below 1 / (a - 1) for a > 1. The entropy of Havrda and Charvat is
    ``(a - 1) / (1 - 2^(1 - a))`` times it.

    Parameters
    ----------
    Q : array-like (..., H)
        Weights >= 0, of which one at least is positive.
    alpha : float or array-like
        Order in [0, inf), or one for each distribution.
    axis : int, default=-1
        Axis of the outcomes.

    Returns
    -------
    float or ndarray
        Entropies, the shape of `Q` without `axis`.

    Raises
    ------
    ValueError
        As for :func:`renyi_entropy`, and for alpha = inf.

    References
    ----------
    Tsallis (1988), Possible generalization of Boltzmann-Gibbs statistics. Havrda &
    Charvat (1967), Quantification method of classification processes.

    Examples
    --------
    >>> from maxent.minentropy import tsallis_entropy
    >>> print(round(tsallis_entropy([0.5, 0.25, 0.25], 2.0), 4))
    0.625
    """
    H = np.asarray(renyi_entropy(Q, alpha, axis=axis))
    orders = check_alpha(alpha, H.shape)
    if np.isinf(orders).any():
        raise ValueError("alpha=inf has no Tsallis entropy; use renyi_entropy.")
    less = 1.0 - orders
    near = less == 0.0
    with np.errstate(over="ignore"):
        T = np.expm1(less * H) / np.where(near, 1.0, less)
    return np.where(near, H, T)[()]


@allow_underflow
def rao_score(
    S: ArrayLike, similarity: ArrayLike, *, mask: ArrayLike | None = None
) -> FloatArrayOrScalar:
    """Return scores of outputs whose similar hidden values are no confusion.

    ``F_k(s) = log sum_hh' k_hh' exp(s_h + s_h') - log sum_h exp(s_h)``, Rao's quadratic
    entropy as a score in which log Z cancels. The identity gives the Renyi score of
    order 2, and ones give log sum exp(s).

    Parameters
    ----------
    S : array-like (..., H)
        Scores of the hidden values, in nats; -inf forbids one.
    similarity : array-like (H, H)
        k = 1 - distance: symmetric, in [0, 1], ones on the diagonal.
    mask : array-like of bool, optional
        Which hidden values are allowed.

    Returns
    -------
    float or ndarray
        F, the shape of `S` without its last axis.

    Raises
    ------
    ValueError
        For scores that are NaN or +inf, and a matrix that is no similarity.

    References
    ----------
    Rao (1982), Diversity and dissimilarity coefficients: a unified approach. Miller,
    Kumar, Packer, Goodman & Koller (2012), section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import rao_score
    >>> print(round(rao_score([0.0, 2.0], np.eye(2)), 4))
    1.8912
    """
    return _rao(S, similarity, mask)[0][()]


@allow_underflow
def rao_weights(
    S: ArrayLike, similarity: ArrayLike, *, mask: ArrayLike | None = None
) -> FloatArray:
    """Return the derivatives of Rao's scores by the scores of hidden values.

    ``beta = 2 p (k p) / (p' k p) - p`` with p = softmax(s).

    Parameters
    ----------
    S : array-like (..., H)
        Scores of the hidden values, in nats; -inf forbids one.
    similarity : array-like (H, H)
        As for :func:`rao_score`.
    mask : array-like of bool, optional
        Which hidden values are allowed.

    Returns
    -------
    ndarray
        beta, the shape of `S`; it sums to one.

    Raises
    ------
    ValueError
        As for :func:`rao_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import rao_weights
    >>> print(rao_weights([0.0, 2.0], np.ones((2, 2))).round(4))
    [0.1192 0.8808]
    """
    return _rao(S, similarity, mask)[1]


# -- checks --------------------------------------------------------------------------
def _scores(S: Any, mask: Any) -> FloatArray:
    S = v.as_doubles("S", S)
    if S.ndim < 1:
        raise ValueError("S is one number; an axis of hidden values is needed.")
    if not (np.inf > S).all():
        where = tuple(int(i) for i in np.argwhere(~(np.inf > S))[0])
        raise ValueError(
            f"S[{', '.join(map(str, where))}]={S[where]} must be a finite score, or "
            "-inf for a hidden value that is not allowed."
        )
    if mask is not None:
        mask = v.as_array("mask", mask)
        if mask.dtype != bool:
            raise ValueError(
                f"mask has dtype {mask.dtype}; booleans are needed, True where a "
                "hidden value is allowed."
            )
        try:
            S = np.where(mask, S, -np.inf) if mask.size else S
        except ValueError:
            raise ValueError(
                f"mask has shape {mask.shape}, which does not fit S of shape {S.shape}."
            ) from None
    return S


def _read(S, alpha, axis, mask, temperature):
    """Rows with the hidden values last, offsets, orders, temperature, shape, axis."""
    S = _scores(S, mask)
    try:
        rows = np.ascontiguousarray(np.moveaxis(S, axis, -1))
    except (TypeError, np.exceptions.AxisError):
        raise ValueError(
            f"axis={v.shown(axis)} is no axis of S of shape {S.shape}."
        ) from None
    shape, H = rows.shape[:-1], rows.shape[-1]
    if H == 0:
        raise ValueError(f"S has shape {S.shape}: there is no hidden value.")
    b = v.check_positive("temperature", temperature)
    orders = type_to_order(check_alpha(alpha, shape), b)
    offsets = np.arange(0, rows.size + 1, H, dtype=np.intp)
    if b != 1.0:
        rows = b * rows
    return rows, offsets, np.ascontiguousarray(orders.ravel()), b, shape, axis


def type_to_order(alpha: FloatArray, b: float) -> FloatArray:
    """Order a' = 1 + (a - 1) / b that stands for order a and type b."""
    if b == 1.0:
        return alpha
    orders = 1.0 + (alpha - 1.0) / b
    if (orders < -1e-15).any():
        worst = float(alpha[orders < 0].flat[0])
        raise ValueError(
            f"temperature={b:g} is too small for alpha={worst:g}: an entropy of this "
            "order and type needs alpha + temperature >= 1."
        )
    return np.maximum(orders, 0.0)


def _log_weights(Q: Any, axis: int) -> FloatArray:
    Q = v.as_doubles("Q", Q)
    if not (np.isfinite(Q) & (Q >= 0)).all():
        wrong = Q[~(np.isfinite(Q) & (Q >= 0))].flat[0]
        raise ValueError(f"Q has the entry {wrong:g}; weights are finite and >= 0.")
    if Q.ndim and not (Q > 0).any(axis=axis).all():
        raise ValueError("Q has a distribution without a positive weight.")
    with np.errstate(divide="ignore"):
        return np.log(Q)


def _rao(S, similarity, mask):
    S = _scores(S, mask)
    k = v.as_doubles("similarity", similarity)
    H = S.shape[-1]
    if k.shape != (H, H):
        raise ValueError(
            f"similarity has shape {k.shape}; ({H}, {H}) is needed for {H} hidden "
            "values."
        )
    if not ((k >= 0) & (k <= 1)).all():
        wrong = k[~((k >= 0) & (k <= 1))].flat[0]
        raise ValueError(f"similarity has the entry {wrong:g}; it is 1 - distance.")
    if (k.diagonal() != 1).any() or not np.array_equal(k, k.T):
        raise ValueError(
            "similarity must be symmetric with ones on the diagonal: every hidden "
            "value is like itself."
        )
    m = S.max(axis=-1, keepdims=True)
    allowed = np.isfinite(m)
    e = np.exp(S - np.where(allowed, m, 0.0))
    Z = e.sum(axis=-1, keepdims=True)
    Z = np.where(allowed, Z, 1.0)
    near = e @ k
    both = np.where(allowed, np.sum(e * near, axis=-1, keepdims=True), 1.0)
    F = (m + (np.log(both) - np.log(Z)))[..., 0]
    return F, 2.0 * e * near / both - e / Z
