"""Margin priors against their densities: nothing here uses a closed form."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import margin_priors

from maxent.discrimination import (
    CustomMargin,
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    MarginPrior,
    UniformExponentialMargin,
    margin_from_spec,
)
from maxent.discrimination.margins import (
    MARGINS,
    check_asks_for_something,
    classification_margin,
    regression_margin,
)

# priors that are distributions, under the names of the oracle
PROPER = [
    ExponentialMargin(5.0, 1.0),
    ExponentialMargin(0.7, 3.0),
    ErlangMargin(3, 6.0, 1.0),
    ErlangMargin(2, 200.0, 0.5),
    LaplaceMargin(4.0, 1.0),
    LaplaceMargin(0.3, -1.0),
    GaussianMargin(2.0, 1.0),
    GaussianMargin(50.0, 0.2),
    LogisticMargin(1.0, 0.0),
    LogisticMargin(8.0, 0.4),
    UniformExponentialMargin(0.3, 5.0),
    UniformExponentialMargin(2.0, 0.8, 1.5),
]
ALL = [*PROPER, FixedMargin(0.8), HingeMargin(1.2)]
SMOOTH = PROPER


def by_name(value):
    return getattr(value, "name", str(value))


every = pytest.mark.parametrize("prior", ALL, ids=by_name)
smooth = pytest.mark.parametrize("prior", SMOOTH, ids=by_name)


def oracle(prior):
    """(kind, level, rate, shape) of the brute-force functions, and a shift."""
    if prior.name == "uniform_exponential":
        # there the tolerance is -gamma; a level moves the margin
        return ("uniform_exp", -prior.width, prior.rate, 1.0), prior.level
    return (prior.name, prior.level, prior.rate, getattr(prior, "shape", 1.0)), 0.0


def multipliers(prior):
    """Multipliers over the domain, both ends included where they belong to it."""
    top = prior.upper if math.isfinite(prior.upper) else 20.0 * prior.rate
    inside = [1e-6, 1e-3, 0.1, 0.37, 0.5, 0.8, 0.95, 0.999]
    return top * np.array(inside)


def margins_around(prior):
    unit = 1.0 / prior.rate
    return prior.level + unit * np.array(
        [-300.0, -30.0, -5.0, -2.0, -1.1, -0.6, 0.0, 0.5, 3.0, 30.0]
    )


# ------------------------------------------------------------- truth


@smooth
def test_potential_is_that_of_the_density(prior):
    arguments, shift = oracle(prior)
    for lam in multipliers(prior):
        true = margin_priors.phi(arguments[0], lam, *arguments[1:]) + shift * lam
        size = 1.0 + abs(prior.level * lam)
        assert prior.potential(lam) == pytest.approx(true, abs=2e-12 * size)


@smooth
def test_mean_and_curvature_are_the_derivatives(prior):
    lam = multipliers(prior)[2:]
    top = prior.upper if math.isfinite(prior.upper) else np.inf
    h = 1e-4 * np.minimum(lam, top - lam)

    def difference(f):  # four points: error h^4
        return (8 * (f(lam + h) - f(lam - h)) - f(lam + 2 * h) + f(lam - 2 * h)) / (
            12 * h
        )

    unit = 1.0 / prior.rate
    mean, curvature = difference(prior.potential), -difference(prior.mean)
    np.testing.assert_allclose(prior.mean(lam), mean, rtol=1e-7, atol=1e-9 * unit)
    np.testing.assert_allclose(prior.curvature(lam), curvature, rtol=1e-7)


@smooth
def test_mean_and_curvature_are_the_moments_of_the_tilted_density(prior):
    if prior.name == "logistic":
        return  # no elementary density; covered by its derivatives
    kind, level, rate, shape = oracle(prior)[0]
    shift = oracle(prior)[1]
    lam = 0.4 * (prior.upper if math.isfinite(prior.upper) else prior.rate)
    width = 60.0 / (rate - lam) if kind != "gaussian" else 12.0 / rate
    centre = level - (lam / rate**2 if kind == "gaussian" else 0.0)
    right = centre + (width if kind in ("gaussian", "laplace") else max(-level, 0.0))
    breaks = np.unique([*np.linspace(centre - width, right, 400), level, 0.0])
    breaks = breaks[(breaks >= centre - width) & (breaks <= right)]
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(breaks)[:, None] / 2
    gamma = (breaks[1:] + breaks[:-1])[:, None] / 2 + half * nodes
    mass = margin_priors.density(kind, gamma, level, rate, shape)
    mass = half * weights * mass * np.exp(-lam * (gamma - centre))
    mean = (mass * gamma).sum() / mass.sum()
    variance = (mass * (gamma - mean) ** 2).sum() / mass.sum()
    assert prior.mean(lam) == pytest.approx(mean + shift, rel=1e-6, abs=1e-9)
    assert prior.curvature(lam) == pytest.approx(variance, rel=1e-6)


@every
def test_loss_is_the_conjugate_found_by_search(prior):
    (kind, level, rate, shape), shift = oracle(prior)
    for m in margins_around(prior):
        true = margin_priors.loss(kind, m - shift, level, rate, shape)
        if math.isinf(true):
            assert prior.loss(m) == math.inf
        else:  # the search stops at steps of 1e-8
            assert prior.loss(m) == pytest.approx(true, rel=1e-8, abs=1e-9)


@smooth
def test_loss_slope_is_the_derivative_of_the_loss(prior):
    m = margins_around(prior)
    h = 1e-4 / prior.rate
    found = (prior.loss(m + h) - prior.loss(m - h)) / (2 * h)
    # the second derivative may jump where the loss starts
    allowed = 1e-6 * prior.rate + 1e-3 * prior.rate * (
        np.abs(m - prior.prior_mean) < 2 * h
    )
    assert (np.abs(prior.loss_slope(m) - found) <= allowed).all()


@every
def test_prior_mean_is_where_the_loss_starts(prior):
    start = prior.prior_mean
    assert start == pytest.approx(float(prior.mean(0.0)))
    if math.isinf(start):
        assert prior.name == "logistic"
        return
    assert prior.loss(start + 1e-9) == 0
    assert prior.loss_slope(start + 1e-9) == 0
    assert prior.loss(start - 0.1 / prior.rate) > 0


def test_printed_potentials_of_laplace_and_gauss_are_not_ours():
    """JMJ (1999), eq. (15b) and (15c) at c = 5, lam = 4, level 1."""
    assert LaplaceMargin(5.0).potential(4.0) == pytest.approx(2.978348752471, abs=1e-11)
    printed = 4.0 + 2.0 * math.log(1.0 - 4.0 / 5.0)
    assert ErlangMargin(2, 5.0).potential(4.0) == pytest.approx(printed, rel=1e-13)
    assert GaussianMargin(5.0).potential(4.0) == pytest.approx(4 - 16 / 50, rel=1e-13)


# ------------------------------------------------------------- Fenchel-Young

# numbers that rate * (level - m) brings back without losing all their digits
shortfalls = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-9)
shares = st.floats(0, 1 - 1e-9).filter(lambda u: u == 0 or u > 1e-290)


@every
@settings(deadline=None, max_examples=60)
@given(share=shares, x=shortfalls)
def test_fenchel_young_terms_are_at_least_zero(prior, share, x):
    top = prior.upper if math.isfinite(prior.upper) else 1e3 * prior.rate
    lam, m = share * top, prior.level - x / prior.rate
    value = float(prior.fenchel_young(lam, m))
    scale = 1.0 + abs(x) + abs(lam * prior.level)
    assert value >= -1e-15 * scale
    loss = float(prior.loss(m))
    if math.isfinite(loss):
        plain = loss + lam * m - float(prior.potential(lam))
        assert value == pytest.approx(plain, rel=1e-6, abs=1e-9 * scale)


@smooth
def test_fenchel_young_is_zero_at_optimal_pairs_and_only_there(prior):
    m = margins_around(prior)
    lam = -prior.loss_slope(m)
    at = prior.fenchel_young(lam, m)
    assert (np.abs(at) <= 1e-11 * (1 + lam * np.abs(m))).all()
    clear = lam > 1e-6 * prior.rate
    if prior.name != "logistic":
        assert (prior.fenchel_young(0.9 * lam, m)[clear] > at[clear]).all()
    # a margin beside the optimal one, where the loss is not yet straight
    near = clear & (np.abs(m - prior.level) <= 5.5 / prior.rate)
    off = prior.fenchel_young(lam, m - 0.3 / prior.rate)
    assert (off[near] > 1e-5 * lam[near] / prior.rate).all()
    assert near.any()


def test_far_fenchel_young_terms_of_the_logistic_prior():
    prior = LogisticMargin()
    for m in (-1e3, 1e3):
        true = float(prior.loss(m)) + 0.5 * m - math.log(2.0)
        assert prior.fenchel_young(0.5, m) == pytest.approx(true, rel=1e-12)


# ------------------------------------------------------------- shape and limits


@every
def test_loss_is_convex_decreasing_and_not_negative(prior):
    m = prior.level + np.linspace(-40, 40, 801) / prior.rate
    loss = prior.loss(m)
    finite = np.isfinite(loss)
    assert (loss >= 0).all()
    assert (np.diff(loss[finite]) <= 1e-12 * (1 + loss[finite][1:])).all()
    bend = loss[finite][2:] - 2 * loss[finite][1:-1] + loss[finite][:-2]
    assert (bend >= -1e-10 * (1 + loss[finite][1:-1])).all()
    assert (-prior.loss_slope(m) <= prior.upper).all()


@every
@pytest.mark.parametrize("m", [1e3, -1e3, 1e8, -1e8, 0.0])
def test_far_margins_are_never_nan(prior, m):
    loss, slope = float(prior.loss(m)), float(prior.loss_slope(m))
    assert not math.isnan(loss)
    assert not math.isnan(slope)
    if m > 0:
        assert loss == pytest.approx(0, abs=1e-300)
        assert slope == pytest.approx(0, abs=1e-300)
    elif m < 0 and math.isfinite(prior.upper):
        assert -slope == pytest.approx(prior.upper, rel=1e-2)
        assert loss == pytest.approx(prior.upper * (prior.level - m), rel=5e-2)
    for share in (0.0, 1e-12, 0.5, 1 - 1e-12):
        top = prior.upper if math.isfinite(prior.upper) else 10.0
        assert not math.isnan(float(prior.fenchel_young(share * top, m)))


@pytest.mark.parametrize("size", [1e20, 1e160])
@pytest.mark.parametrize(
    "prior", [p for p in ALL if math.isfinite(p.upper)], ids=by_name
)
def test_losses_grow_linearly_as_far_as_doubles_reach(prior, size):
    assert prior.loss(-size) == pytest.approx(prior.upper * size, rel=1e-12)


@every
def test_outside_its_domain_the_potential_is_minus_infinity(prior):
    assert prior.potential(0.0) == 0
    assert prior.potential(-1e-9) == -math.inf
    if math.isfinite(prior.upper):
        assert prior.potential(prior.upper * (1 + 1e-9)) == -math.inf
        open_end = prior.name not in ("hinge", "logistic")
        assert (prior.potential(prior.upper) == -math.inf) == open_end


def test_infinite_multipliers_are_outside_the_domain():
    for prior in (ExponentialMargin(5.0), LaplaceMargin(5.0), HingeMargin()):
        assert prior.potential(math.inf) == -math.inf


@smooth
def test_rate_and_level_only_scale_and_shift(prior):
    """phi depends on lam / rate; a level adds level * lam."""
    lam = multipliers(prior)[:-1]
    moved = prior.with_level(prior.level + 0.7)
    assert type(moved) is type(prior)
    np.testing.assert_allclose(
        moved.potential(lam), prior.potential(lam) + 0.7 * lam, rtol=1e-11, atol=1e-13
    )
    m = margins_around(prior)
    np.testing.assert_allclose(moved.loss(m + 0.7), prior.loss(m), rtol=1e-6, atol=1e-9)


@every
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_unit_weight_makes_C_the_far_slope_of_the_loss(prior, C):
    w = prior.unit_weight(C)
    if prior.name == "fixed":
        assert w == 1
    elif prior.name == "gaussian":
        d = 3.0
        assert w * prior.loss(prior.level - d) == pytest.approx(C * d**2 / 2)
    else:
        assert w * prior.loss_slope(-1e9) == pytest.approx(-C, rel=1e-6)
        assert w * prior.upper == pytest.approx(C)


def test_shapes_and_kinds_of_input():
    prior = ExponentialMargin(5.0)
    assert np.ndim(prior.potential(1)) == 0
    assert isinstance(float(prior.loss(0.5)), float)
    grid = np.asfortranarray(np.linspace(0, 4, 12).reshape(3, 4))
    assert prior.potential(grid).shape == (3, 4)
    assert prior.mean([1.0, 2.0]).shape == (2,)
    assert (
        prior.curvature(grid[:, ::2]).tolist() == prior.curvature(grid)[:, ::2].tolist()
    )
    assert prior.fenchel_young(grid[:, :1], grid[:1]).shape == (3, 4)
    locked = np.linspace(0, 4, 5)
    locked.setflags(write=False)
    assert (prior.loss(locked) == prior.loss(locked.copy())).all()
    assert prior.potential(np.float32(2.0)) == prior.potential(2.0)
    assert prior.potential(np.empty(0)).shape == (0,)


# ------------------------------------------------------------- objects


@every
def test_spec_repr_equality_and_hash(prior):
    again = margin_from_spec(prior.get_spec())
    assert again == prior
    assert hash(again) == hash(prior)
    assert eval(repr(prior)) == prior
    assert prior != ExponentialMargin(123.0)
    assert isinstance(prior, MarginPrior)
    assert MARGINS[prior.name] is type(prior)


@pytest.mark.parametrize("spec", [None, {}, {"name": "cauchy"}, "exponential", 3])
def test_unknown_specs_are_named(spec):
    with pytest.raises(ValueError, match="known names"):
        margin_from_spec(spec)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExponentialMargin(0.0), "rate=0"),
        (lambda: ExponentialMargin(-1.0), "rate=-1"),
        (lambda: ExponentialMargin(math.nan), "rate=nan"),
        (lambda: LaplaceMargin(math.inf), "rate=inf"),
        (lambda: GaussianMargin(1.0, math.inf), "level=inf"),
        (lambda: FixedMargin(math.nan), "level=nan"),
        (lambda: HingeMargin(-math.inf), "level=-inf"),
        (lambda: ErlangMargin(0), "shape=0"),
        (lambda: ErlangMargin(math.nan), "shape=nan"),
        (lambda: UniformExponentialMargin(0.0), "width=0"),
        (lambda: UniformExponentialMargin(-0.1), "width=-0.1"),
    ],
)
def test_bad_constants_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("value", ["a", None, 1j, [1.0]])
def test_constants_of_the_wrong_kind_are_named(value):
    for make, name in (
        (ExponentialMargin, "rate"),
        (FixedMargin, "level"),
        (ErlangMargin, "shape"),
        (UniformExponentialMargin, "width"),
        (lambda upper: CustomMargin(abs, abs, abs, upper=upper), "upper"),
        (lambda sharpness: classification_margin("laplace", sharpness), "sharpness"),
        (lambda sharpness: regression_margin("laplace", sharpness, 0.1), "sharpness"),
    ):
        said = re.escape(f"{name}={value!r} must be ")
        with pytest.raises(ValueError, match=said):
            make(value)


@pytest.mark.parametrize(
    ("prior", "asks"),
    [
        (ExponentialMargin(1.0, 1.0), False),
        (ExponentialMargin(1.0 + 1e-9, 1.0), True),
        (ExponentialMargin(5.0, 0.2), False),
        (ErlangMargin(2, 2.0, 1.0), False),
        (ErlangMargin(2, 2.01, 1.0), True),
        (LaplaceMargin(5.0, 0.0), False),
        (LaplaceMargin(5.0, 1e-9), True),
        (GaussianMargin(5.0, -1.0), False),
        (FixedMargin(0.0), False),
        (HingeMargin(1e-9), True),
        (LogisticMargin(1.0, -50.0), True),
    ],
    ids=str,
)
def test_priors_that_ask_for_nothing_are_refused(prior, asks):
    if asks:
        check_asks_for_something(prior)
        assert classification_margin(prior, None) is prior
    else:
        with pytest.raises(ValueError, match="asks for nothing"):
            check_asks_for_something(prior)
        with pytest.raises(ValueError, match="asks for nothing"):
            classification_margin(prior, None)


@pytest.mark.parametrize("sharpness", [1.0, 0.5, -3.0, math.nan, math.inf, None, [5.0]])
def test_sharpness_must_exceed_one(sharpness):
    for name in ("exponential", "laplace", "erlang"):
        with pytest.raises(ValueError, match="sharpness"):
            classification_margin(name, sharpness)


@pytest.mark.parametrize("prior", [LogisticMargin(), ExponentialMargin(5.0, 1.0)])
def test_regression_refuses_positive_mean_margins(prior):
    with pytest.raises(ValueError, match="tube"):
        regression_margin(prior, 10.0, 0.1)


def test_names_of_estimators_become_priors():
    assert classification_margin("exponential", 7.0) == ExponentialMargin(7.0, 1.0)
    assert classification_margin("gaussian", 7.0) == GaussianMargin(1.0, 1.0)
    assert classification_margin("logistic", 7.0) == LogisticMargin(1.0, 0.0)
    assert regression_margin("hinge", 7.0, 0.3) == HingeMargin(-0.3)
    assert regression_margin("laplace", 7.0, 0.3) == LaplaceMargin(7.0, -0.3)
    tube = regression_margin("uniform_exponential", 7.0, 0.3)
    assert tube == UniformExponentialMargin(0.3, 7.0)
    no_tube = regression_margin("uniform_exponential", 7.0, 0)
    assert no_tube == ExponentialMargin(7.0, 0.0)


# ------------------------------------------------------------- custom priors


@pytest.fixture(scope="module")
def exponential():
    return CustomMargin(
        lambda lam: lam + math.log1p(-lam / 5.0),
        lambda lam: 1.0 - 1.0 / (5.0 - lam),
        lambda lam: 1.0 / (5.0 - lam) ** 2,
        upper=5.0,
    )


@pytest.fixture(scope="module")
def gaussian():
    return CustomMargin(
        lambda lam: lam - lam * lam / 8.0, lambda lam: 1.0 - lam / 4.0, lambda lam: 0.25
    )


@pytest.mark.parametrize("name", ["exponential", "gaussian"])
def test_custom_priors_equal_the_named_ones(name, request):
    mine = request.getfixturevalue(name)
    named = {"exponential": ExponentialMargin(5.0), "gaussian": GaussianMargin(2.0)}
    named = named[name]
    lam, m = multipliers(named)[:-1], margins_around(named)
    np.testing.assert_allclose(mine.potential(lam), named.potential(lam), rtol=1e-13)
    np.testing.assert_allclose(mine.mean(lam), named.mean(lam), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(mine.curvature(lam), named.curvature(lam), rtol=1e-13)
    np.testing.assert_allclose(mine.loss(m), named.loss(m), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(
        mine.loss_slope(m), named.loss_slope(m), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(
        mine.fenchel_young(lam[:4], m[:4]),
        named.fenchel_young(lam[:4], m[:4]),
        rtol=1e-9,
    )
    assert mine.upper == named.upper
    assert mine.prior_mean == pytest.approx(named.prior_mean)


@pytest.mark.parametrize("size", [1e20, 1e160])
def test_losses_of_custom_priors_grow_linearly_too(exponential, size):
    assert exponential.loss(-size) == pytest.approx(5.0 * size, rel=1e-12)
    assert math.isnan(exponential.loss(math.nan))
    assert math.isnan(exponential.fenchel_young(1.0, math.nan))
    # the functions themselves change their signs beyond the upper end
    assert exponential.mean(5.0 + 1e-9) == -math.inf


def test_custom_priors_refuse_what_they_cannot_do(exponential):
    with pytest.raises(ValueError, match="level"):
        exponential.with_level(2.0)
    with pytest.raises(ValueError, match="compiled functions"):
        exponential.get_spec()


def identity(lam):
    return lam


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((lambda t: t + 1.0, lambda t: 1.0, lambda t: 0.0), "potential"),
        ((identity, lambda t: 2.0, lambda t: 0.0), "mean"),
        ((identity, lambda t: 1.0, lambda t: 3.0), "curvature"),
        ((lambda t: t * t, lambda t: 2.0 * t, lambda t: -2.0), "phi''"),
        ((lambda t: math.nan, lambda t: 1.0, lambda t: 0.0), "finite"),
    ],
)
def test_custom_functions_that_do_not_belong_together_are_named(functions, message):
    with pytest.raises(ValueError, match=message):
        CustomMargin(*functions)


def test_custom_constructor_arguments_are_named():
    with pytest.raises(ValueError, match="upper"):
        CustomMargin(identity, identity, identity, upper=0.0)
    with pytest.raises(TypeError, match="mean"):
        CustomMargin(identity, 3.0, identity)
