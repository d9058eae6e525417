"""Passes over signed rows against NumPy and against the certificate of any rows."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxent._core.machines import signed_rows
from maxent._optimize.certificate import certify
from maxent._optimize.rows import BOTH, NEGATIVE, POSITIVE
from maxent.discrimination.duals._signed_problem import Certifier, SignedProblem
from maxent.discrimination.margins import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
)

SMOOTH = [
    ExponentialMargin(3.0),
    ErlangMargin(3, 2.0),
    LaplaceMargin(2.0),
    GaussianMargin(1.5),
    LogisticMargin(4.0),
]
OTHERS = [HingeMargin(2.0), FixedMargin()]


def name(margin):
    return type(margin).__name__


def random_rows(margin, rng, n=40, both=False):
    """A problem, multipliers in its domain, of which some are at its ends, and f."""
    sides = rng.choice([POSITIVE, NEGATIVE, BOTH] if both else [POSITIVE, NEGATIVE], n)
    problem = SignedProblem(
        margin,
        rng.normal(1.0, 0.3, n),
        rng.uniform(0.5, 3.0, n),
        rng.uniform(0.5, 2.0, n),
        rng.normal(size=n),
        sides.astype(np.int8),
        "flat",
    )
    top = problem.potential.upper if np.isfinite(problem.potential.upper) else 2.0
    share = rng.choice([0.0, 0.0, 0.3, 0.9, 1.0], n) * rng.uniform(0.9, 1.0, n)
    share[rng.random(n) < 0.2] = float(problem.potential.closed)
    size = share * top * problem.weight * problem.rate
    sign = np.where(sides == POSITIVE, 1.0, -1.0)
    sign[sides == BOTH] = rng.choice([-1.0, 1.0], (sides == BOTH).sum())
    return problem, sign * size, rng.normal(size=n)


def bounds_by_numpy(p, a, f, b, least):
    """One row after the other, by the definition of a one-sided derivative."""
    up, low = [], []
    for t in range(len(a)):
        scale = p.weight[t] * p.rate[t]
        slope = float(p.potential.slope(np.array([abs(a[t]) / scale]))[0])
        slope = p.level[t] + slope / p.rate[t]
        here = p.target[t] - f[t] - b
        right = here + (slope if a[t] >= 0 else -slope)
        left = here + (slope if a[t] > 0 else -slope)
        at_end = abs(a[t]) >= p.potential.upper * scale * (1 - 1e-15)
        tiny = abs(a[t]) <= 1.5 * least * scale
        stuck_up = (a[t] == 0 and not p.sides[t] & POSITIVE) or (a[t] > 0 and at_end)
        stuck_low = (a[t] == 0 and not p.sides[t] & NEGATIVE) or (a[t] < 0 and at_end)
        if least > 0 and a[t] != 0 and tiny:
            stuck_up, stuck_low = stuck_up or a[t] < 0, stuck_low or a[t] > 0
        up.append(-np.inf if stuck_up else right)
        low.append(np.inf if stuck_low else left)
    return np.array(up), np.array(low)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("margin", SMOOTH + OTHERS, ids=name)
def test_bounds_are_one_sided_derivatives(margin, both, rng):
    least = 0.01 if isinstance(margin, LogisticMargin) else 0.0
    for _ in range(5):
        p, a, f = random_rows(margin, rng, both=both)
        if least:
            a[a == 0] = (
                0.005 * (p.weight * p.rate * np.where(p.sides == 2, -1, 1))[a == 0]
            )
        up, low = np.empty_like(a), np.empty_like(a)
        signed_rows.kkt_bounds(
            p.potential.core_spec,
            a,
            f,
            0.3,
            p.target,
            p.level,
            p.rate,
            p.weight,
            p.sides,
            least,
            up,
            low,
        )
        expected = bounds_by_numpy(p, a, f, 0.3, least)
        np.testing.assert_allclose(up, expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(low, expected[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("upper", [1.0, np.inf])
def test_balance_keeps_zeros_signs_and_ends(upper, rng):
    weight, rate = rng.uniform(0.5, 2.0, 60), rng.uniform(0.5, 2.0, 60)
    top = weight * rate
    a = rng.choice([-1.0, 1.0], 60) * rng.uniform(0.1, 0.9, 60) * top
    a -= a.sum() / 60 * (np.abs(a) < 0.8 * top) * (np.abs(a) > 0.2 * top)
    a[0] = 0.0
    a[1:] -= a.sum() * np.eye(59)[5]
    before = a.copy()
    a[6] += 1e-9
    signed_rows.balance(a, upper, rate, weight)
    assert abs(a.sum()) <= 1e-14
    assert a[0] == 0.0
    assert (np.sign(a) == np.sign(before)).all()
    assert np.abs(a - before).max() < 1e-8
    everything = np.array([1.0, 1.0])  # at its end: no room
    signed_rows.balance(everything, 1.0, np.ones(2), np.ones(2))
    assert (everything == 1.0).all()


@pytest.mark.parametrize("bias", ["flat", None, 2.0])
@pytest.mark.parametrize("margin", SMOOTH, ids=name)
def test_certificate_is_that_of_any_rows(margin, bias, rng):
    for _ in range(5):
        p, a, f = random_rows(margin, rng)
        p.bias = bias
        fast = Certifier(p)
        assert fast.compiled
        slow = Certifier(p)
        slow.compiled = False
        np.testing.assert_allclose(fast(a, f), slow(a, f), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("margin", SMOOTH, ids=name)
def test_gap_is_primal_minus_dual_at_the_best_bias(margin, rng):
    p, a, f = random_rows(margin, rng)
    found, gap, b = Certifier(p)(a, f)
    sign = np.where(p.sides == POSITIVE, 1.0, -1.0)

    def loss(b):
        d = p.level + sign * (p.target - f - b)
        return float(p.weight @ p.potential.loss(p.rate * d))

    best = minimize_scalar(loss, bracket=(b - 1.0, b + 1.0), tol=1e-12)
    assert loss(b) <= best.fun + 1e-12 * abs(best.fun)
    value = 0.5 * float(a @ f)
    # f'a/2 stands for the quadratic: primal = f'a/2 + loss, up to a'1 b
    primal = value + loss(b)
    assert gap == pytest.approx(primal - found + b * a.sum(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("place", ["a", "f"])
def test_a_nan_is_no_certificate(place, rng):
    p, a, f = random_rows(SMOOTH[0], rng)
    (a if place == "a" else f)[3] = np.nan
    with np.errstate(invalid="ignore"):
        objective, gap, _ = Certifier(p)(a, f)
    assert not (np.isfinite(objective) and np.isfinite(gap))


def test_newton_gives_up_without_curvature():
    d, ones = np.full(4, -5.0), np.ones(4)
    sign = np.array([1.0, 1.0, -1.0, -1.0])
    spec = ExponentialMargin(2.0).unit_potential.core_spec
    assert signed_rows.newton_bias(spec, d, sign, ones, ones, 0.0) is None
    assert signed_rows.loss_slope(spec, d, sign, ones, ones, 0.0) == (0.0, 0.0)


def test_certify_is_used_where_rows_have_a_kink(rng):
    p, a, f = random_rows(SMOOTH[3], rng, both=True)
    certifier = Certifier(p)
    assert not certifier.compiled
    rows, index, sign = p.rows()
    lam = np.maximum(sign * a[index], 0.0)

    class Product:
        homogeneous = True

        def value_and_margins(self, lam):
            return 0.5 * float(a @ f), sign * f[index]

    expected = certify(rows, Product(), lam, sign[:, None], np.zeros(1))
    np.testing.assert_allclose(certifier(a, f)[:2], expected[:2], rtol=1e-12)
