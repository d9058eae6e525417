"""Margin priors by brute force: potentials from densities, losses by search.

Nothing here uses a closed form of a potential, so these functions check the closed
forms. Conventions: the margin ``gamma`` has location ``level`` and rate ``rate``;
``phi(lam) = -log E exp(-lam gamma)``; ``loss(m) = sup_lam phi(lam) - lam m``.

``uniform_exp`` is the prior of Jebara & Jaakkola (2000): the tolerance ``-gamma`` is
flat on ``[0, eps]`` and has an exponential tail of rate ``rate`` above ``eps``. It is
addressed by ``level = -eps <= 0``.
"""

import math
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
from scipy.optimize import minimize_scalar

KINDS = (
    "exponential",
    "erlang",
    "laplace",
    "gaussian",
    "logistic",
    "fixed",
    "uniform_exp",
    "hinge",
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def _integrate(function, breaks):
    """Composite 48-point Gauss-Legendre rule over consecutive panels."""
    breaks = np.asarray(breaks, dtype=float)
    half = np.diff(breaks)[:, None] / 2.0
    middle = (breaks[1:] + breaks[:-1])[:, None] / 2.0
    return float(np.sum(half * _WEIGHTS * function(middle + half * _NODES)))


def landau_density(x):
    """Density of the Landau variable S with ``E exp(-p S) = p**p``, p > 0.

    For x >= 0 the textbook integral ``(1/pi) int exp(-t log t - x t) sin(pi t) dt``;
    for x < 0, where it cancels, the inverse Laplace integral along the vertical
    line through its saddle point ``exp(-x - 1)``.
    """
    x = np.asarray(x, dtype=float)
    out = np.zeros(x.shape)
    half = 0.5 * (_NODES + 1.0)

    right = x >= 0.0
    if right.any():
        # exp(-x t) needs panels at the scale 1/(1 + x); -t log t kills t > 20
        scale = 1.0 / (1.0 + x[right][:, None])
        edges = np.concatenate([[0.0], 2.0 ** np.arange(-30.0, 6.0)])
        total = 0.0
        for a, b in pairwise(edges):
            t = scale * (a + (b - a) * half)
            value = np.exp(-t * np.log(t) - x[right][:, None] * t) * np.sin(np.pi * t)
            total = total + scale[:, 0] * (b - a) * (value @ _WEIGHTS) / 2.0
        out[right] = total / np.pi

    left = ~right
    if left.any():
        xl = x[left][:, None]
        saddle = np.exp(-xl - 1.0)
        width = np.sqrt(saddle) + 1.0
        edges = np.linspace(0.0, 40.0, 41)
        total = 0.0
        for a, b in pairwise(edges):
            z = saddle + 1j * width * (a + (b - a) * half)
            value = np.exp(z * xl + z * np.log(z)).real
            total = total + width[:, 0] * (b - a) * (value @ _WEIGHTS) / 2.0
        out[left] = total / np.pi
    return out


@lru_cache(maxsize=1)
def _landau_rule():
    """Nodes x and weights w with ``sum w g(x) = int g(x) landau_density(x) dx``."""

    def rule(edges):
        half = np.diff(edges)[:, None] / 2.0
        middle = (edges[1:] + edges[:-1])[:, None] / 2.0
        return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()

    body = np.concatenate([np.linspace(-6.0, 2.0, 17), 2.0 ** np.arange(2.0, 7.0)])
    x, w = rule(body)
    # tail: x = 1/u turns the 1/x**2 decay into a smooth function near u = 0
    u, v = rule(np.concatenate([[0.0], 2.0 ** np.arange(-40.0, -5.0)]))
    x, w = np.concatenate([x, 1.0 / u]), np.concatenate([w, v / u**2])
    return x, w * landau_density(x)


def landau_moment(p):
    """``E exp(-p S)`` of the Landau variable by quadrature, 0 <= p <= 1."""
    x, w = _landau_rule()
    return float(np.exp(-p * x) @ w)


def _log_density(kind, u, level, rate, shape):
    """Log density at the shortfall ``u = level - gamma`` (array)."""
    with np.errstate(divide="ignore"):
        if kind == "exponential":
            return np.where(u >= 0.0, math.log(rate) - rate * u, -np.inf)
        if kind == "erlang":
            power = (shape - 1.0) * np.log(np.abs(u)) if shape != 1.0 else 0.0
            value = shape * math.log(rate) - math.lgamma(shape) + power - rate * u
            return np.where(u >= 0.0, value, -np.inf)
    if kind == "laplace":
        return math.log(rate / 2.0) - rate * np.abs(u)
    if kind == "gaussian":
        return math.log(rate) - 0.5 * math.log(2.0 * math.pi) - (rate * u) ** 2 / 2.0
    if kind == "uniform_exp":
        eps = -level
        value = -rate * np.maximum(u, 0.0) - math.log(eps + 1.0 / rate)
        return np.where(u >= -eps, value, -np.inf)
    raise ValueError(f"no density for kind {kind!r}")


def density(kind, gamma, level=1.0, rate=1.0, shape=1.0):
    """Density of the margin prior at ``gamma`` (array), for the proper kinds.

    ``logistic`` has no elementary density; see `phi` for its construction from two
    Landau variables. ``fixed`` and ``hinge`` have none.
    """
    u = level - np.asarray(gamma, dtype=float)
    return np.exp(_log_density(kind, u, level, rate, shape))


def domain(kind, rate=1.0, weight=1.0):
    """Upper end of the domain of phi: rate*weight, weight (hinge) or inf."""
    if kind in ("gaussian", "fixed"):
        return math.inf
    return weight if kind == "hinge" else rate * weight


def _panels(kind, lam, level, rate):
    """Panel edges in u = level - gamma that resolve density * exp(lam u)."""
    scales = np.concatenate([[0.0], 2.0 ** np.arange(-6.0, 6.6, 0.5)])  # to exp(-64)
    if kind == "gaussian":
        return lam / rate**2 + np.linspace(-12.0, 12.0, 25) / rate
    edges = scales / (rate - lam)
    left = np.empty(0)
    if kind == "laplace":
        left = scales[:0:-1] / (rate + lam)
    elif kind == "uniform_exp" and level < 0.0:
        left = scales[:0:-1] / max(lam, 1.0 / -level)
        left = np.concatenate([[-level], left[left < -level]])
    return np.concatenate([-left, edges])


def phi(kind, lam, level=1.0, rate=1.0, shape=1.0, weight=1.0):
    """Potential ``-log E exp(-lam gamma)`` by quadrature (scalar).

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    lam : float, >= 0
        Outside the domain the result is ``-inf``.
    level, rate, shape : float
        Location, rate > 0 and Erlang order (``erlang`` only, any real >= 1).
    weight : float, > 0
        Copies of the example, ``weight * phi(lam / weight)``. For ``hinge`` the box.
    """
    if lam < 0.0:
        return -math.inf
    if kind == "hinge":
        return level * lam if lam <= weight else -math.inf
    if kind == "fixed":
        return level * lam
    if weight != 1.0:
        return weight * phi(kind, lam / weight, level, rate, shape)
    if kind == "logistic":
        # gamma = level + (S1 - S2)/rate, S1 Landau, S2 its exp(-S)-tilt, so that
        # E exp(p S2) = E exp(-(1 - p) S1); E exp(-S1) = 1 makes the tilt a density
        p = lam / rate
        if p > 1.0:
            return -math.inf
        return level * lam - math.log(landau_moment(p) * landau_moment(1.0 - p))
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}")
    if lam >= domain(kind, rate):
        return -math.inf

    # log of the integrand near its peak, taken out so that exp cannot overflow
    shift = lam**2 / (2.0 * rate**2) if kind == "gaussian" else 0.0
    total = _integrate(
        lambda u: np.exp(_log_density(kind, u, level, rate, shape) + lam * u - shift),
        _panels(kind, lam, level, rate),
    )
    return level * lam - math.log(total) - shift


def phi_mpmath(kind, lam, level=1.0, rate=1.0, shape=1.0, digits=30):
    """Like `phi` with ``digits`` digits, for the kinds that have a density."""
    with mpmath.workdps(digits + 10):
        lam, level, rate, shape = map(mpmath.mpf, (lam, level, rate, shape))
        eps = -level
        tail = [k / (rate - lam) for k in (0, 1, 4, 10, 25, 50, 100)]
        if kind in ("exponential", "erlang", "laplace"):
            order = shape if kind == "erlang" else 1

            def below(u):  # u = level - gamma >= 0
                power = u ** (order - 1) if order != 1 else 1
                return power * mpmath.exp(-(rate - lam) * u)

            total = rate**order / mpmath.gamma(order) * mpmath.quad(below, tail)
            if kind == "laplace":
                above = [k / (rate + lam) for k in (0, 1, 4, 10, 25, 50, 100)]
                total += rate * mpmath.quad(
                    lambda u: mpmath.exp(-(rate + lam) * u), above
                )
                total /= 2
        elif kind == "gaussian":
            total = mpmath.quad(
                lambda u: mpmath.npdf(u) * mpmath.exp(-lam * u / rate),
                mpmath.linspace(-lam / rate - 16, -lam / rate + 16, 17),
            )
        elif kind == "uniform_exp":
            total = mpmath.quad(lambda u: mpmath.exp(-(rate - lam) * u), tail)
            if eps > 0:
                total += mpmath.quad(lambda u: mpmath.exp(-lam * u), [0, eps / 2, eps])
            total /= eps + 1 / rate
        else:
            raise ValueError(f"no density for kind {kind!r}")
        return float(level * lam - mpmath.log(total))


def loss(kind, m, level=1.0, rate=1.0, shape=1.0, weight=1.0, potential=phi):
    """Loss ``sup_{lam >= 0} potential(lam) - lam m`` by a bounded 1-D search.

    The search runs over ``v`` with ``lam = cap (1 - exp(-v))`` (``cap sigmoid(v)`` for
    ``logistic``), so that both ends of the domain are resolved. ``potential`` has the
    signature of `phi`.
    """
    if kind == "fixed":
        return 0.0 if m >= level else math.inf
    cap = domain(kind, rate, weight)
    if kind == "hinge":
        return max(0.0, potential(kind, cap, level, rate, shape, weight) - cap * m)

    def value(lam):
        return potential(kind, lam, level, rate, shape, weight) - lam * m

    if math.isinf(cap):
        cap = rate
        while value(2.0 * cap) > value(cap):
            cap *= 2.0
        ends, curve = (0.0, 2.0 * cap), (lambda v: v)
    elif kind == "logistic":
        ends, curve = (-36.0, 36.0), (lambda v: cap / (1.0 + math.exp(-v)))
    else:
        ends, curve = (0.0, 34.0), (lambda v: -cap * math.expm1(-v))
    found = minimize_scalar(
        lambda v: -value(curve(v)),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-12, "maxiter": 200},
    )
    return max(0.0, -float(found.fun))
