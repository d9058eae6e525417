"""The compiled potentials against hundred-digit arithmetic, over their whole domain."""

import math

import mpmath as mp
import numpy as np
import pytest
from maxent._core.potentials import evaluate, evaluate_fenchel_young, evaluate_loss

EXPONENTIAL, ERLANG, LAPLACE, GAUSSIAN, LOGISTIC, FIXED, HINGE, TUBE = range(8)
VALUE, SLOPE, CURVATURE, LOSS, ARGMAX, LOSS_CURVATURE = range(6)
EPS = np.finfo(float).eps

# the unit functions g(u) from the priors' definitions; their derivatives are taken
# numerically in a hundred digits
UNIT = {
    EXPONENTIAL: lambda u, k: mp.log(1 - u),
    ERLANG: lambda u, k: k * mp.log(1 - u),
    LAPLACE: lambda u, k: mp.log1p(-u * u),
    GAUSSIAN: lambda u, k: -u * u / 2,
    LOGISTIC: lambda u, k: -u * mp.log(u) - (1 - u) * mp.log(1 - u),
    TUBE: lambda u, k: (
        mp.log(1 + k) - k * u + mp.log(u) - mp.log(1 - mp.exp(-k * u) + u / (1 - u))
    ),
}
CASES = [
    (EXPONENTIAL, 1.0),
    (ERLANG, 2.5),
    (ERLANG, 0.3),
    (LAPLACE, 1.0),
    (GAUSSIAN, 1.0),
    (LOGISTIC, 1.0),
    (TUBE, 1e-3),
    (TUBE, 0.5),
    (TUBE, 30.0),
    (TUBE, 1e4),
]
NAMES = [
    "exponential",
    "erlang",
    "laplace",
    "gaussian",
    "logistic",
    "fixed",
    "hinge",
    "uniform_exponential",
]
SHORTFALLS = np.array(
    [-30.0, -1.0, -1e-8, 0.0, 1e-8, 0.3, 0.9, 1.0, 1.0009, 1.0011, 1.5, 2.4, 2.6]
    + [5.0, 30.0, 1e3, 1e6, 1e8, 1e12]
)


@pytest.fixture(autouse=True)
def hundred_digits():
    with mp.workdps(100):
        yield


def shortfalls(kind):
    # the logistic optimum is 1 - exp(-x): beyond 200 it has left a hundred digits
    return SHORTFALLS[np.abs(SHORTFALLS) < 100] if kind == LOGISTIC else SHORTFALLS


def by_name(value):
    return NAMES[value] if isinstance(value, int) else str(value)


def spec(kind, shape=1.0):
    return (kind, shape, math.inf if kind in (GAUSSIAN, FIXED) else 1.0, 0, 0, 0)


def run(kind, shape, which, x):
    x = np.atleast_1d(np.asarray(x, dtype=float))
    out = np.full_like(x, 7.0)
    evaluate(spec(kind, shape), which, x, out)
    return out


def fenchel_young(kind, shape, u, x):
    u, x = (np.atleast_1d(np.asarray(a, dtype=float)) for a in (u, x))
    out = np.full_like(u, 7.0)
    evaluate_fenchel_young(spec(kind, shape), u, x, out)
    return out


def unit(kind, shape, u):
    if u == 0:
        return mp.mpf(0)
    return UNIT[kind](mp.mpf(float(u)) if isinstance(u, float) else u, mp.mpf(shape))


def optimum(kind, shape, x):
    """argmax of g(u) + x u; that it is stationary is checked by `conjugate`."""
    x, k = mp.mpf(float(x)), mp.mpf(shape)
    if kind in (EXPONENTIAL, ERLANG):
        return 1 - k / x if x > k else mp.mpf(0)
    if kind == LAPLACE:
        return x / (1 + mp.sqrt(1 + x * x)) if x > 0 else mp.mpf(0)
    if kind == GAUSSIAN:
        return max(x, mp.mpf(0))
    if kind == LOGISTIC:
        return 1 / (1 + mp.exp(-x))
    if x <= (k * k / 2 + k + 1) / (k + 1):  # the prior mean of the tolerance
        return mp.mpf(0)

    def slope(t):
        return mp.diff(lambda u: unit(kind, shape, u), 1 - mp.exp(-t)) + x

    ends = (mp.mpf("1e-12"), mp.log(x) + 5)
    options = {"solver": "illinois", "maxsteps": 300, "verify": False}
    return 1 - mp.exp(-mp.findroot(slope, ends, **options))


def conjugate(kind, shape, x):
    """(G, u*, G'') in a hundred digits."""
    u = optimum(kind, shape, x)
    if u == 0:
        return mp.mpf(0), u, mp.mpf(0)
    slope = mp.diff(lambda v: unit(kind, shape, v), u)
    assert abs(slope + mp.mpf(float(x))) <= mp.mpf("1e-20") * (1 + abs(slope))
    curvature = -mp.diff(lambda v: unit(kind, shape, v), u, 2)
    return unit(kind, shape, u) + mp.mpf(float(x)) * u, u, 1 / curvature


def error(found, true):
    return float(abs(mp.mpf(float(found)) - true))


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
@pytest.mark.parametrize(
    "u",
    [1e-30, 1e-12, 9e-6, 1.1e-5, 1e-3, 9e-3, 0.011, 0.1, 0.4, 0.7, 0.99, 1 - 1e-6],
)
def test_value_slope_and_curvature(kind, shape, u):
    x = mp.mpf(u)
    true = unit(kind, shape, u)
    assert error(run(kind, shape, VALUE, u)[0], true) <= 4 * EPS * abs(true)
    slope = mp.diff(lambda v: unit(kind, shape, v), x)
    allowed = 8 * EPS * (abs(slope) + (kind != TUBE))
    assert error(run(kind, shape, SLOPE, u)[0], slope) <= allowed
    curvature = -mp.diff(lambda v: unit(kind, shape, v), x, 2)
    # where the tube's powers begin, at k u = 1/2, M_2 has lost a digit by cancellation,
    # and the difference of squares another
    allowed = 100 * EPS if kind == TUBE else 8 * EPS
    assert error(run(kind, shape, CURVATURE, u)[0], curvature) <= allowed * curvature


@pytest.mark.parametrize("shape", [1e-9, 0.1, 1.5, 10.0, 1e3, 1e6])
def test_the_tube_keeps_its_digits(shape):
    # near zero, where g(u) is a difference of logarithms, and where powers of k u begin
    edge = 0.5 / shape
    places = [1e-18, 1e-12, 1e-6, 1e-3, 0.4, edge * (1 - 1e-9), edge * (1 + 1e-9)]
    passes = ((VALUE, 1, 4 * EPS), (SLOPE, 1, 8 * EPS), (CURVATURE, -1, 100 * EPS))
    for u in (mp.mpf(u) for u in places if u < 0.9):
        for which, sign, allowed in passes:
            true = sign * mp.diff(lambda v: unit(TUBE, shape, v), u, which)
            assert error(run(TUBE, shape, which, u)[0], true) <= allowed * abs(true)


def test_laplace_keeps_its_digits_near_the_upper_end():
    for power in (8, 10, 12, 14):
        u = 1.0 - 10.0**-power
        true = unit(LAPLACE, 1.0, u)
        assert error(run(LAPLACE, 1.0, VALUE, u)[0], true) <= 8 * EPS * abs(true)


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_loss_its_argmax_and_its_curvature(kind, shape):
    for x in shortfalls(kind):
        G, u, curvature = conjugate(kind, shape, x)
        loss = run(kind, shape, LOSS, x)[0]
        # psi(1 + e) = e - log(1 + e) is a series below 1e-3 and a difference above
        allowed = 2e-12 * G + 4 * EPS * x * u
        assert error(loss, G) <= allowed, x
        assert error(run(kind, shape, ARGMAX, x)[0], u) <= 8 * EPS, x
        slow = 200 * EPS if kind == TUBE else 8 * EPS
        found = run(kind, shape, LOSS_CURVATURE, x)[0]
        # at the far end of the tube the curvature follows from 1 - u
        assert error(found, curvature) <= slow * curvature + 8 * EPS * x**2 * curvature


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_three_in_one_pass_equals_three_passes(kind, shape):
    x = np.concatenate([SHORTFALLS, -SHORTFALLS])
    value, slope, curvature = (np.empty_like(x) for _ in range(3))
    evaluate_loss(spec(kind, shape), x, value, slope, curvature)
    for found, which in ((value, LOSS), (slope, ARGMAX), (curvature, LOSS_CURVATURE)):
        # the logistic pass is vectorised and computes its own exponential
        np.testing.assert_allclose(
            found, run(kind, shape, which, x), rtol=2e-15, atol=4e-16
        )


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_passes_over_many_entries_have_the_same_bits_on_two_threads(kind, shape, rng):
    n = 200_003
    x, u = rng.normal(size=n), rng.random(n)
    passes = [
        lambda out, k, which=which: evaluate(spec(kind, shape), which, u, out[0], k)
        for which in (VALUE, SLOPE, CURVATURE)
    ]
    passes += [
        lambda out, k: evaluate_loss(spec(kind, shape), x, *out, k),
        lambda out, k: evaluate_fenchel_young(spec(kind, shape), u, x, out[0], k),
    ]
    few = slice(n - 5, None)
    for call in passes:
        found = {k: np.full((3, n), 7.0) for k in (1, 2, 3)}
        for k, out in found.items():
            call(out, k)
            np.testing.assert_array_equal(out, found[1])
    np.testing.assert_array_equal(
        found[1][0, few], fenchel_young(kind, shape, u[few], x[few])
    )


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_fenchel_young_terms(kind, shape):
    for x in shortfalls(kind):
        G, best, _ = conjugate(kind, shape, x)
        for u in (0.0, 1e-12, 1e-3, 0.3, 0.9, 1 - 1e-6, 1 - 1e-12, float(best)):
            if u >= 1 and kind != GAUSSIAN:
                continue
            true = G - mp.mpf(float(x)) * mp.mpf(u) - unit(kind, shape, u)
            found = fenchel_young(kind, shape, u, x)[0]
            # psi_excess(x (1 - u) - 1) knows 1 - u to EPS / (1 - u)
            distance = 1 - u if kind != GAUSSIAN else 1.0
            allowed = 1e-11 * abs(true) + 4 * EPS / distance
            if kind == TUBE:  # a plain difference
                allowed += 8 * EPS * (abs(x * u) + float(G))
            assert error(found, true) <= allowed, (x, u)


@pytest.mark.parametrize(
    ("kind", "shape"), [c for c in CASES if c[0] != TUBE], ids=by_name
)
def test_fenchel_young_terms_vanish_at_optimal_pairs_without_cancellation(kind, shape):
    x = np.array([0.2, 0.999, 1.001, 2.6, 40.0, 1e4, 1e8, 1e12])
    u = run(kind, shape, ARGMAX, x)
    inside = (u > 0) & (u < 1) if kind != GAUSSIAN else u > 0
    terms = fenchel_young(kind, shape, u[inside], x[inside])
    # the plain difference would leave EPS * x; here the error of 1 - u counts twice
    noise = (EPS / (1 - u[inside])) ** 2 if kind != GAUSSIAN else 0.0
    assert inside.sum() >= 4
    assert (np.abs(terms) <= 4 * noise + 1e-30).all()


def test_hinge_and_fixed_margins():
    u = np.array([0.0, 0.25, 1.0])
    for kind in (HINGE, FIXED):
        assert (run(kind, 1.0, VALUE, u) == 0).all()
        assert (run(kind, 1.0, SLOPE, u) == 0).all()
        assert (run(kind, 1.0, CURVATURE, u) == 0).all()
    x = np.array([-2.0, 0.0, 3.0])
    assert run(HINGE, 1.0, LOSS, x).tolist() == [0.0, 0.0, 3.0]
    assert run(HINGE, 1.0, ARGMAX, x).tolist() == [0.0, 0.0, 1.0]
    assert run(FIXED, 1.0, LOSS, x).tolist() == [0.0, 0.0, math.inf]
    assert fenchel_young(HINGE, 1.0, [0.25, 0.25], [3.0, -2.0]).tolist() == [2.25, 0.5]
    assert fenchel_young(FIXED, 1.0, [0.25, 0.25], [3.0, -2.0]).tolist() == [
        math.inf,
        0.5,
    ]


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_outside_the_domain(kind, shape):
    below, above = -1e-9, 1 + 1e-9
    assert run(kind, shape, VALUE, below)[0] == -math.inf
    assert fenchel_young(kind, shape, below, 0.5)[0] == math.inf
    if kind != GAUSSIAN:
        assert run(kind, shape, VALUE, above)[0] == -math.inf
        assert fenchel_young(kind, shape, above, 0.5)[0] == math.inf
    if kind not in (GAUSSIAN, LOGISTIC):
        assert run(kind, shape, VALUE, 1.0)[0] == -math.inf
    assert run(kind, shape, VALUE, 0.0)[0] == 0.0


@pytest.mark.parametrize(
    ("kind", "shape"), [c for c in CASES if c[0] != GAUSSIAN], ids=by_name
)
def test_slope_is_never_finite_beyond_the_upper_end(kind, shape):
    # one rounding error beyond the end must look like the end, not like a far inside
    u = np.array([1.0, 1 + EPS, 1 + 1e-9])
    assert (run(kind, shape, SLOPE, u) == -math.inf).all()
    # huge, and neither negative nor NaN
    assert (run(kind, shape, CURVATURE, u) > 1e15).all()


def test_far_shortfalls_of_the_logistic_prior_stay_finite():
    x = np.array([-1e8, -2e3, -746.0, 746.0, 2e3, 1e8])
    assert run(LOGISTIC, 1.0, LOSS, x).tolist() == [0, 0, 0, 746.0, 2e3, 1e8]
    assert run(LOGISTIC, 1.0, ARGMAX, x).tolist() == [0, 0, 0, 1, 1, 1]
    value, slope, curvature = (np.empty_like(x) for _ in range(3))
    evaluate_loss(spec(LOGISTIC), x, value, slope, curvature)
    np.testing.assert_allclose(value, np.maximum(x, 0), rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(slope, x > 0, atol=1e-300)


def test_far_fenchel_young_terms_of_the_logistic_prior_stay_finite():
    x = np.array([-1e8, -2e3, -746.0, -40.0, 40.0, 746.0, 2e3, 1e8])
    terms = fenchel_young(LOGISTIC, 1.0, np.full(len(x), 0.5), x)
    np.testing.assert_allclose(terms, 0.5 * np.abs(x) - math.log(2.0), rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "shape"), [*CASES, (FIXED, 1.0), (HINGE, 1.0)], ids=by_name
)
def test_nan_multipliers_stay_nan(kind, shape):
    assert math.isnan(run(kind, shape, VALUE, math.nan)[0])
    assert math.isnan(run(kind, shape, SLOPE, math.nan)[0])


@pytest.mark.parametrize(
    ("kind", "shape"), [*CASES, (FIXED, 1.0), (HINGE, 1.0)], ids=by_name
)
def test_nan_shortfalls_stay_nan(kind, shape):
    # a NaN that turned into "no loss" would certify a broken machine
    assert math.isnan(run(kind, shape, LOSS, math.nan)[0])
    assert math.isnan(fenchel_young(kind, shape, 0.3, math.nan)[0])
    value, slope, curvature = (np.zeros(1) for _ in range(3))
    evaluate_loss(spec(kind, shape), np.array([math.nan]), value, slope, curvature)
    assert math.isnan(value[0])
    assert math.isnan(slope[0])
    assert math.isnan(curvature[0])


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=by_name)
def test_infinite_shortfalls_cost_infinitely_much(kind, shape):
    assert run(kind, shape, LOSS, math.inf)[0] == math.inf
    assert run(kind, shape, LOSS, -math.inf)[0] == 0
    top = math.inf if kind == GAUSSIAN else 1.0
    assert run(kind, shape, ARGMAX, math.inf)[0] == top
    assert run(kind, shape, ARGMAX, -math.inf)[0] == 0
    if kind != TUBE:  # there a plain difference, and inf - inf is NaN
        assert fenchel_young(kind, shape, 0.3, math.inf)[0] == math.inf


def test_no_rows():
    # views of no rows: what lies behind them must stay as it is
    behind = np.arange(4.0)
    nothing = behind[2:2]
    for which in range(6):
        evaluate(spec(EXPONENTIAL), which, nothing, nothing)
    evaluate_loss(spec(LOGISTIC), nothing, nothing, nothing, nothing)
    evaluate_fenchel_young(spec(LAPLACE), nothing, nothing, nothing)
    assert behind.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "spec", [(1, 2), (), None, (8, 1.0, 1.0, 0, 0, 0), (0, 1.0, 1.0, 0, 0, 0, 0)]
)
def test_a_tuple_that_is_no_prior_is_refused(spec):
    with pytest.raises(ValueError, match="pass the core_spec"):
        evaluate(spec, VALUE, np.ones(1), np.ones(1))
