"""Reference solutions of the maximum entropy discrimination duals.

Spec sections 3 (two classes), 4 (multi-class), 5 (regression), 6 (feature selection),
each brought to the generic form of `cvxopt_core` and solved there. Every function
raises AssertionError when the relative duality gap of its answer exceeds 1e-8.
"""

from dataclasses import dataclass

import numpy as np

from .closed_forms import Potentials
from .cvxopt_core import Dual, maximise, quadratic


@dataclass
class Solution:
    """A certified reference solution.

    ``lam`` multipliers; ``objective`` dual J; ``primal`` G at lam with the best bias;
    ``bias`` float or (m,); ``gap`` Fenchel-Young sum, which equals G - J;
    ``margin`` expected margins, shaped as lam; ``decision`` training decision values;
    ``coef`` expansion coefficients: y*lam, lam+ - lam-, v*beta (T, m), or E[s theta]
    (d,); ``switch`` switch probabilities (d,) of feature selection.
    """

    lam: np.ndarray
    objective: float
    primal: float
    bias: float | np.ndarray
    gap: float
    margin: np.ndarray | None = None
    decision: np.ndarray | None = None
    coef: np.ndarray | None = None
    switch: np.ndarray | None = None


def _method(kind, method):
    if method is not None:
        return method
    return "qp" if kind in ("gaussian", "fixed", "hinge") else "cp"


def _per_row(value, T):
    return np.broadcast_to(np.asarray(value, dtype=float), (T,)).copy()


def _weights(weight, T):
    w = np.ones(T) if weight is None else _per_row(weight, T)
    if np.any(w < 0.0):
        raise ValueError("weights must be >= 0")
    return w, np.flatnonzero(w > 0.0)


def _variance(bias):
    """Bias variance s2 (0 for flat and None) and whether the bias is flat."""
    if bias is None or bias == "flat":
        return 0.0, bias == "flat"
    return float(bias), False


def solve_binary(
    K, y, kind, level=1.0, rate=1.0, bias="flat", weight=None, shape=1.0, method=None
):
    """Two-class dual, eq. (14): lam (T,), bias, decision values, margins.

    Parameters
    ----------
    K : array (T, T)
    y : array (T,) of -1, +1
    kind : str
        exponential, erlang (order ``shape``), laplace, gaussian, logistic, fixed,
        uniform_exp or hinge (``lam <= weight``, ``phi = level lam``; rate unused).
    level, rate, weight : float or array (T,)
        Weight 0 drops the row; its lam is 0.
    bias : "flat", float or None
        Equality ``y'lam = 0``; Gaussian prior of that variance; no bias.
    method : {"cp", "qp"}, optional
        Default qp for gaussian, fixed, hinge.
    """
    y = np.asarray(y, dtype=float)
    T = len(y)
    w, rows = _weights(weight, T)
    s2, flat = _variance(bias)
    K = np.asarray(K, dtype=float)
    ys = y[rows]
    Q = (K[np.ix_(rows, rows)] + s2) * np.outer(ys, ys)
    pots = Potentials(
        kind, _per_row(level, T)[rows], _per_row(rate, T)[rows], w[rows], shape
    )
    dual = Dual(pots, quadratic(Q), np.zeros(len(rows)), ys if flat else None, Q)
    found, nu, J, G, gap, _ = maximise(dual, _method(kind, method))
    lam = np.zeros(T)
    lam[rows] = found
    b = float(nu[0]) if flat else s2 * float(y @ lam) + 0.0
    f = K @ (y * lam) + b
    return Solution(lam, J, G, b, gap, y * f, f, y * lam)


def solve_multiclass(
    K,
    y,
    n_classes,
    kind,
    level=1.0,
    rate=1.0,
    bias="flat",
    weight=None,
    variance=0.5,
    shape=1.0,
    method=None,
):
    """Multi-class dual, eqs. (4-5): lam (T, m) with zeros at the own class.

    y holds 0 .. m-1, every class present if the bias is flat. ``bias``: "flat"
    (one equality per class; the returned biases sum to 0), a float s2 (kernel
    ``K + s2``, i.e. b_k has prior variance ``variance * s2``) or None. Weights, levels
    and rates are per row.
    """
    y = np.asarray(y)
    T, m = len(y), int(n_classes)
    w, rows = _weights(weight, T)
    s2, flat = _variance(bias)
    K = np.asarray(K, dtype=float)
    t = np.repeat(rows, m - 1)
    k = np.concatenate([np.delete(np.arange(m), y[i]) for i in rows])
    E = np.zeros((len(t), m))  # f_{y_t} - f_k = E row times the scores
    E[np.arange(len(t)), y[t]] = 1.0
    E[np.arange(len(t)), k] = -1.0
    Q = variance * (K[np.ix_(t, t)] + s2) * (E @ E.T)
    pots = Potentials(kind, _per_row(level, T)[t], _per_row(rate, T)[t], w[t], shape)
    A = E.T[:-1] if flat else None  # the m equalities add up to 0 = 0: drop one
    dual = Dual(pots, quadratic(Q), np.zeros(len(t)), A, Q)
    found, nu, J, G, gap, m_pairs = maximise(dual, _method(kind, method))
    lam, margin = np.zeros((T, m)), np.zeros((T, m))
    lam[t, k], margin[t, k] = found, m_pairs
    beta = -lam
    beta[np.arange(T), y] = lam.sum(axis=1)
    b = variance * s2 * beta.sum(axis=0)
    if flat:
        b = np.append(nu, 0.0)
        b = b - b.mean()
    f = variance * K @ beta + b
    return Solution(lam, J, G, b, gap, margin, f, variance * beta)


def solve_regression(
    K, y, kind, epsilon=0.0, rate=1.0, bias="flat", weight=None, shape=1.0, method=None
):
    """Regression dual (section 5): lam (2, T), rows s = +1 and s = -1.

    ``kind`` exponential, erlang, gaussian, laplace (margin location ``-epsilon``),
    uniform_exp (tolerance flat on [0, epsilon]) or hinge (epsilon-SVR with
    C = weight). ``coef`` is a = lam[0] - lam[1].
    """
    y = np.asarray(y, dtype=float)
    T = len(y)
    w, rows = _weights(weight, T)
    s2, flat = _variance(bias)
    K = np.asarray(K, dtype=float)
    n = len(rows)
    s = np.repeat([1.0, -1.0], n)
    Q = np.tile(K[np.ix_(rows, rows)] + s2, (2, 2)) * np.outer(s, s)
    level = np.tile(-_per_row(epsilon, T)[rows], 2)
    rates = np.tile(_per_row(rate, T)[rows], 2)
    pots = Potentials(kind, level, rates, np.tile(w[rows], 2), shape)
    lin = s * np.tile(y[rows], 2)

    def canonical(lam):  # epsilon = 0 leaves a common shift of a pair undetermined
        shift = np.min(lam.reshape(2, n), axis=0) * (level[:n] == 0.0)
        return lam - np.tile(shift, 2)

    dual = Dual(
        pots,
        quadratic(Q),
        lin,
        s if flat else None,
        Q,
        canonical if kind == "hinge" else None,
    )
    found, nu, J, G, gap, _ = maximise(dual, _method(kind, method))
    lam = np.zeros((2, T))
    lam[:, rows] = found.reshape(2, n)
    a = lam[0] - lam[1]
    b = float(nu[0]) if flat else s2 * float(np.sum(a)) + 0.0
    f = K @ a + b
    return Solution(lam, J, G, b, gap, np.stack([f - y, y - f]), f, a)


def solve_feature_selection(
    X,
    y,
    kind,
    level=1.0,
    rate=1.0,
    prior_inclusion=0.5,
    bias="flat",
    weight=None,
    shape=1.0,
    linear=None,
):
    """Feature selection dual (section 6): lam (T,), coef (d,), switch (d,).

    ``S(lam) = sum_i A(W_i) + (s2/2)(y'lam)^2``, ``W = X'(y lam)``,
    ``A(W) = log(1 - p0 + p0 exp(W^2/2))``. For regression every row stands twice, with
    y = +1 and -1, the level -epsilon and the `linear` coefficient y times its target.
    """
    if kind == "fixed":
        raise ValueError("feature selection: no primal value for fixed margins")
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    T, p0 = len(y), float(prior_inclusion)
    w, rows = _weights(weight, T)
    s2, flat = _variance(bias)
    ys = y[rows]
    Z = X[rows] * ys[:, None]
    with np.errstate(divide="ignore"):
        log_off, log_on = np.log1p(-p0), np.log(p0)

    def probability(W):
        return np.exp(log_on + W**2 / 2 - np.logaddexp(log_off, log_on + W**2 / 2))

    def smooth(lam):
        W, total = Z.T @ lam, s2 * (ys @ lam)
        value = np.sum(np.logaddexp(log_off, log_on + W**2 / 2)) + 0.5 * total * (
            ys @ lam
        )
        p = probability(W)
        grad = Z @ (p * W) + total * ys
        H = (Z * (p + W**2 * p * (1.0 - p))) @ Z.T + s2 * np.outer(ys, ys)
        return float(value), grad, H

    pots = Potentials(
        kind, _per_row(level, T)[rows], _per_row(rate, T)[rows], w[rows], shape
    )
    lin = np.zeros(T) if linear is None else np.asarray(linear, dtype=float)
    dual = Dual(pots, smooth, lin[rows], ys if flat else None)
    found, nu, J, G, gap, _ = maximise(dual, "cp")
    lam = np.zeros(T)
    lam[rows] = found
    W = Z.T @ found
    p = probability(W)
    b = float(nu[0]) if flat else s2 * float(y @ lam) + 0.0
    f = X @ (p * W) + b
    return Solution(lam, J, G, b, gap, y * f, f, p * W, p)
