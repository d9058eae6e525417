"""Sums over all binary states: tables, halves, and splits by a feature sum."""

import numpy as np
import pytest
from oracles.latent import boltzmann, coupling

from maxent._core.compiled_by_numba import binary_units


@pytest.mark.parametrize("M", [1, 2, 3, 6, 9])
def test_pair_moments_are_those_of_the_loop_over_states(M, rng):
    W, b = coupling(rng, M)
    log_phi, second = boltzmann(W, b)
    found = binary_units.pair_moments(W, b)
    assert found[0] == pytest.approx(log_phi, abs=1e-12)
    np.testing.assert_allclose(found[1], second, atol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 200.0])
def test_halves_agree_with_tables(scale, rng):
    # at scale 200 exponents span more than doubles do: blocks shift by their maxima
    W, b = coupling(rng, 11, scale)
    halves = binary_units.HalfTables(*binary_units.split_evenly(11))
    log_phi, second = binary_units.pair_moments_direct(W, b)
    found = halves.pair_moments(W, b)
    assert found[0] == pytest.approx(log_phi, rel=1e-13)
    np.testing.assert_allclose(found[1], second, atol=1e-11)
    assert halves.log_partition(W, b) == pytest.approx(log_phi, rel=1e-13)


@pytest.mark.parametrize("sizes", [(1, 1), (4, 1), (1, 5), (3, 4)])
@pytest.mark.parametrize("total", [1.0, 499.0])
def test_products_of_exponentials_hold_up_to_their_limit(sizes, total, rng):
    # the sum of the cross weights decides whether exponentials are multiplied
    M = sum(sizes)
    halves = binary_units.HalfTables(np.arange(sizes[0]), np.arange(sizes[0], M))
    W, b = np.zeros((M, M)), rng.normal(scale=300.0, size=M)
    b[sizes[0] :] = 0.0
    across = rng.normal(size=sizes)
    W[: sizes[0], sizes[0] :] = across * total / np.abs(across).sum() * (1 - 1e-9)
    W = W + W.T
    assert halves._quarters(W, b) is not None
    log_phi, second = binary_units.pair_moments_direct(W, b)
    found = halves.pair_moments(W, b)
    assert found[0] == pytest.approx(log_phi, rel=1e-13, abs=1e-12)
    np.testing.assert_allclose(found[1], second, atol=1e-11)
    assert halves.log_partition(W, b) == pytest.approx(log_phi, rel=1e-13, abs=1e-12)
    k = np.add.outer(np.arange(sizes[0] + 1), np.arange(sizes[1] + 1))
    value = np.array([int(s).bit_count() for s in range(1 << M)])
    _, C = binary_units.moments_by_value(W, b, value, M + 1)
    np.testing.assert_allclose(
        halves.moments_by_counts(W, b, k, M + 1)[1], C, atol=1e-11
    )


def test_seventeen_units_use_halves_and_agree(rng):
    W, b = coupling(rng, 17, 0.2)
    found, direct = (
        binary_units.pair_moments(W, b),
        binary_units.pair_moments_direct(W, b),
    )
    assert found[0] == pytest.approx(direct[0], rel=1e-12)
    np.testing.assert_allclose(found[1], direct[1], atol=1e-12)


def every_pair(*_):
    raise AssertionError("every pair of half states was visited")


@pytest.mark.parametrize("scale", [0.5, 200.0])
@pytest.mark.parametrize("biased", [True, False])
def test_moments_by_feature_sum(biased, scale, rng, monkeypatch):
    M = 7
    W, b = coupling(rng, M, scale)
    if scale < 1.0:  # products of four tables of quarters are enough
        monkeypatch.setattr(binary_units.HalfTables, "_blocks", every_pair)
    free = ~np.eye(M, dtype=bool) | biased
    value = binary_units.feature_sums(free)
    k = np.array([int(s).bit_count() for s in range(1 << M)])
    np.testing.assert_array_equal(value, k * (k + 1 if biased else k - 1) // 2)
    top = value.max() + 1
    log_phi, C = binary_units.moments_by_value(W, b, value, top)
    np.testing.assert_allclose(C.sum(axis=0), boltzmann(W, b)[1], atol=1e-12)
    sizes = np.add.outer(np.arange(4), np.arange(5))
    split = sizes * (sizes + 1 if biased else sizes - 1) // 2
    halves = binary_units.HalfTables(*binary_units.split_evenly(M))
    other = halves.moments_by_counts(W, b, split, top)
    assert other[0] == pytest.approx(log_phi, abs=1e-12)
    np.testing.assert_allclose(other[1], C, atol=1e-12)
