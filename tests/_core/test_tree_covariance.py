"""Covariances of edge sums against enumeration, many digits and differences."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import symmetric, wide

from maxent._core import tree_covariance
from maxent._support.threads import single_threaded_blas
from maxent.discrimination import spanning_tree_log_partition

OK = 0


def covariance(lw, f, g, fast=False):
    with single_threaded_blas():
        status, value = tree_covariance.covariance(lw, f, g, fast)
    assert status == OK
    return value


def edge_values(n, rng):
    a = rng.normal(size=(n, n))
    return a + a.T


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
    lw = wide(kind, 6, rng)
    lw[0, 1] = lw[1, 0] = -np.inf
    f, g = edge_values(6, rng), edge_values(6, rng)
    true = oracle.exact_covariance(lw, f, g)
    size = oracle.exact_covariance(lw, f, f) ** 0.5
    size *= oracle.exact_covariance(lw, g, g) ** 0.5
    # one tree may have nearly all the probability: standard deviations far below 1e-12
    # of f and g are lost, as rounding changes f and g by more
    floor = 1e-27 * np.abs(f).max() * np.abs(g).max()
    assert abs(covariance(lw, f, g) - true) <= 1e-11 * size + floor


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
