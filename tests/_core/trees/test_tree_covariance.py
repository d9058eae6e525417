"""Covariances of edge sums against enumeration, many digits and differences."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import symmetric, wide

from maxent._core.trees import tree_covariance
from maxent._support.threads import single_threaded_blas
from maxent.discrimination import spanning_tree_log_partition

OK = 0
EPS = np.finfo(float).eps


def covariance(lw, f, g, fast=False):
    with single_threaded_blas():
        status, value = tree_covariance.covariance(lw, f, g, fast)
    assert status == OK
    return value


def edge_values(n, rng):
    a = rng.normal(size=(n, n))
    return a + a.T


def assert_exact(lw, f, g):
    """Covariance and variance, up to rounding of log weights, f and g in every step."""
    n = len(lw)
    # sums over n nodes of edges whose log weights have this rounding
    relative = 4 * n * EPS * (1 + np.abs(lw[np.isfinite(lw)]).max())
    (var_f, true), (_, var_g) = oracle.exact_covariances(lw, f, g)
    sd_f, sd_g = var_f**0.5, var_g**0.5
    # a constant has no covariance; the rest is rounded to that of the largest entry
    step_f, step_g = (4 * n * EPS * np.ptp(a[np.isfinite(lw)]) for a in (f, g))
    bound = relative * sd_f * sd_g + step_f * sd_g + step_g * sd_f + step_f * step_g
    assert abs(covariance(lw, f, g) - true) <= bound
    bound = relative * var_f + 2 * step_f * sd_f + step_f**2
    assert abs(covariance(lw, f, f) - var_f) <= bound


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_covariance_over_all_trees(fast, n, rng):
    lw = symmetric(rng.normal(size=(n, n)))
    f, g = edge_values(n, rng), edge_values(n, rng)
    for a, b in ((f, g), (f, f), (g, f)):
        true = oracle.covariance(lw, a, b)
        size = np.sqrt(oracle.covariance(lw, a, a) * oracle.covariance(lw, b, b))
        assert abs(covariance(lw, a, b, fast) - true) <= 1e-12 * max(size, 0.01)


@pytest.mark.parametrize("kind", ["uniform", "chain", "parts", "normal"])
def test_covariance_of_wide_weights(kind, rng):
    lw = wide(kind, 5, rng)
    lw[0, 1] = lw[1, 0] = -np.inf
    f, g = edge_values(5, rng), edge_values(5, rng)
    assert_exact(lw, f, g)


@pytest.mark.parametrize("deviation", [1e-1, 1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize("steepness", [1.0, 6.0, 15.0])
def test_small_deviations_keep_their_digits(steepness, deviation, rng):
    # of f and g from a constant; or because one tree has nearly all the probability
    for n in (3, 4, 5) if steepness < 15 else (6,):
        lw = symmetric(steepness * rng.normal(size=(n, n)))
        f, g = (3.0 + deviation * edge_values(n, rng) for _ in range(2))
        assert_exact(lw, f, g)


@pytest.mark.parametrize("fast", [False, True])
def test_variances_are_never_negative(fast, rng):
    # sums that hardly vary: one value for each block of a graph with cut nodes
    for n in (2, 5, 9):
        lw = symmetric(rng.normal(size=(n, n)))
        for _ in range(20):
            part = np.minimum(rng.integers(1, n + 1), np.arange(n))
            sparse = np.where(np.abs(part[:, None] - part) < 2, lw, -np.inf)
            f = symmetric(np.maximum(part[:, None], part) + 0.0)
            np.fill_diagonal(f, 0.0)
            assert covariance(sparse, f, f, fast) >= 0.0
            f += 1e-7 * edge_values(n, rng)
            assert covariance(sparse, f, f, fast) >= 0.0


def test_edges_in_all_trees_do_not_vary(rng):
    n = 7
    lw = np.full((n, n), -np.inf)
    lw[np.arange(1, n), np.arange(n - 1)] = rng.normal(size=n - 1)
    f = edge_values(n, rng)
    assert covariance(symmetric(lw), f, f) == 0.0


def test_covariance_by_both_ways_and_by_differences(rng):
    n = 90
    lw = symmetric(rng.normal(size=(n, n)))
    f, g = edge_values(n, rng), edge_values(n, rng)
    slow, fast = covariance(lw, f, g), covariance(lw, f, g, True)
    assert fast == pytest.approx(slow, abs=1e-10 * n)
    h = 1e-4
    _, prob = spanning_tree_log_partition(np.stack([lw + h * g, lw - h * g]), True)
    mean = (prob * f).sum(axis=(1, 2)) / 2
    assert (mean[0] - mean[1]) / (2 * h) == pytest.approx(slow, abs=1e-6 * n)
