"""Margin priors against their densities: nothing here uses a closed form."""

import math

import numpy as np
import pytest
from discrimination.margins.margin_cases import (
    ALL,
    by_name,
    every,
    margins_around,
    multipliers,
    oracle,
    smooth,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import margin_priors

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
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
@settings(max_examples=60)
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
