"""The references of margin priors against densities and searches."""

import itertools
import math

import numpy as np
import pytest

from oracles.dual_problems import PROPER, close, potential

from . import margin_priors
from .closed_forms import psi

# ------------------------------------------------------------- margin priors


@pytest.mark.parametrize(
    ("kind", "fraction", "level", "rate"),
    [
        (kind, fraction, *[(1.0, 5.0), (0.3, 0.7), (2.0, 200.0)][(i + j) % 3])
        for i, kind in enumerate(PROPER)
        for j, fraction in enumerate([0.0, 1e-4, 0.3, 0.9, 0.999])
    ],
)
def test_closed_potential_equals_quadrature(kind, fraction, level, rate):
    pots = potential(kind, level, rate)
    lam = fraction * rate
    brute = margin_priors.phi(kind, lam, pots.level[0], rate, 3.0)
    close(pots.value(np.array([lam]))[0], brute, 1e-12)
    if kind != "logistic":
        fine = margin_priors.phi_mpmath(kind, lam, pots.level[0], rate, 3.0)
        close(brute, fine, 1e-13)


def test_landau_moments_are_p_to_the_p():
    p = np.array([0.0, 1e-3, 0.1, 0.5, 0.9, 1.0])
    close([margin_priors.landau_moment(v) for v in p], p**p, 1e-13)
    assert np.all(margin_priors.landau_density(np.linspace(-6.0, 1e3, 999)) >= 0.0)


def test_errata_of_equation_15():
    # printed potentials at c = 5, lam = 4, l = 1 are not those of the stated priors
    laplace = margin_priors.phi("laplace", 4.0, 1.0, 5.0)
    assert laplace == pytest.approx(2.978348752471, abs=1e-11)
    printed = 4.0 + 2.0 * math.log(1.0 - 4.0 / 5.0)
    assert printed == pytest.approx(margin_priors.phi("erlang", 4.0, 1.0, 5.0, 2.0))
    gaussian = margin_priors.phi("gaussian", 4.0, 1.0, 5.0)
    assert gaussian == pytest.approx(4.0 - 16.0 / 50.0, abs=1e-12)


def test_published_uniform_exp_potential_lacks_a_constant():
    eps, c = 0.4, 3.0
    for lam in (1e-6, 1.0, 2.9):
        spec = -eps * lam + math.log(lam) + math.log(eps + 1.0 / c)
        spec -= math.log(1.0 - math.exp(-eps * lam) + lam / (c - lam))
        # the printed form loses lam * machine epsilon / lam near 0
        close(margin_priors.phi("uniform_exp", lam, -eps, c), spec, 1e-9)
    mean = (eps**2 / 2.0 + eps / c + 1.0 / c**2) / (eps + 1.0 / c)
    close(-potential("uniform_exp", eps, c).prior_mean(), mean, 1e-14)


@pytest.mark.parametrize("kind", PROPER)
def test_derivatives_match_differences(kind):
    lam = np.array([0.2, 0.8, 1.6, 2.9]) * 0.9
    pots = potential(kind, 1.0, 3.0, 1.3, n=4)
    h = 1e-5
    close(pots.d1(lam), (pots.value(lam + h) - pots.value(lam - h)) / (2 * h), 1e-8)
    close(pots.d2(lam), (pots.d1(lam + h) - pots.d1(lam - h)) / (2 * h), 1e-8)


@pytest.mark.parametrize("kind", [*PROPER, "hinge", "fixed"])
@pytest.mark.parametrize("shortfall", [-2.0, 0.3, 0.9, 3.0, 40.0])
def test_closed_loss_equals_brute_force_search(kind, shortfall):
    weight = 0.7
    pots = potential(kind, 1.0, 2.0, weight)
    m = pots.level[0] - shortfall
    brute = margin_priors.loss(kind, m, pots.level[0], 2.0, 3.0, weight)
    closed = pots.loss(np.array([m]))[0]
    if math.isinf(closed):
        assert math.isinf(brute)
    else:
        close(closed, brute, 1e-12)


@pytest.mark.parametrize("kind", [*PROPER, "hinge"])
def test_fenchel_young_terms_are_the_plain_difference(kind):
    grid = np.array(list(itertools.product([0.05, 0.7, 1.9], [-30.0, -1.2, 0.6, 9.0])))
    lam, m = grid.T
    pots = potential(kind, 1.0, 2.0, 2.0 if kind == "hinge" else 1.0, n=len(m))
    terms = pots.fenchel_young(lam, m)
    close(terms, pots.loss(m) + lam * m - pots.value(lam), 1e-13)
    assert terms.min() >= -1e-14
    if kind != "hinge":
        pair = pots.slope(m)
        at_optimum = pots.fenchel_young(pair, m)
        assert np.max(np.abs(at_optimum)) <= 1e-13 * np.max(1.0 + np.abs(pair * m))


def test_psi_keeps_its_digits_near_one():
    e = np.array([-9e-4, -1e-8, 0.0, 1e-12, 9.99e-4, 1.001e-3])
    series = sum((-1.0) ** k * e**k / k for k in range(2, 9))
    assert np.allclose(psi(1.0 + e), series, rtol=1e-3, atol=1e-28)
    close(psi(np.array([0.1, 3.0])), [0.1 - 1 - math.log(0.1), 2 - math.log(3.0)])
