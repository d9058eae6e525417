"""Compiled filters: their input is checked before it is read."""

import numpy as np
import pytest
from models.state_space_cases import random_lds

from maxent._core.systems import expected_states, statespace, system_pairs


def test_arrays_that_do_not_fit_are_refused(rng):
    arrays = random_lds(rng, 2, 2, steps=3)._compiled
    x, two = np.zeros((3, 2)), np.empty((2, 3))
    ends = np.array([0, 3])
    assert statespace.log_likelihoods(arrays, x, ends, *two) == -1
    for k in range(9):
        wrong = list(arrays)
        wrong[k] = wrong[k][:-1].copy() if k != 8 else np.array([0, 1, 3])
        with pytest.raises(ValueError, match=r"do not fit|names no record"):
            statespace.log_likelihoods(tuple(wrong), x, ends, *two)
    for bad in ([0, 2], [1, 3], [0, 0, 3], [0]):
        with pytest.raises(ValueError, match="offsets"):
            statespace.log_likelihoods(arrays, x, np.array(bad), *two)
    with pytest.raises(ValueError, match="do not fit"):
        statespace.log_likelihoods(arrays, np.zeros((4, 2)), np.array([0, 4]), *two)


def test_information_chain_is_the_dense_gaussian(rng):
    T, n = 5, 3
    L = np.zeros((T * n, T * n))
    for t in range(T):
        own = slice(t * n, t * n + n)
        L[own, own] = np.tril(rng.normal(size=(n, n)), -1) + np.diag(
            rng.uniform(1, 2, n)
        )
        if t:
            L[own, own.start - n : own.start] = rng.normal(size=(n, n))
    precision, h = L @ L.T, rng.normal(size=T * n)
    blocks, t = precision.reshape(T, n, T, n), np.arange(T)
    diagonal = np.ascontiguousarray(blocks[t, :, t])
    below = np.ascontiguousarray(blocks[t[1:], :, t[:-1]])
    mean, cov, lag = np.empty((T, n)), np.empty((T, n, n)), np.empty((T - 1, n, n))
    log_det = expected_states.information_chain(
        diagonal, below, h.reshape(T, n), mean, cov, lag
    )
    dense = np.linalg.inv(precision)
    # relative errors are those of the inverse
    tol = 1e-14 * np.linalg.cond(precision) * np.abs(dense).max()
    assert log_det == pytest.approx(np.linalg.slogdet(precision)[1], abs=1e-10)
    np.testing.assert_allclose(mean.ravel(), dense @ h, atol=tol * np.abs(h).sum())
    dense = dense.reshape(T, n, T, n)
    np.testing.assert_allclose(cov, dense[t, :, t], atol=tol)
    np.testing.assert_allclose(lag, dense[t[1:], :, t[:-1]], atol=tol)
    below[:] *= 100.0
    diagonal[:] = np.eye(n)
    out = expected_states.information_chain(
        diagonal, below, h.reshape(T, n), mean, cov, lag
    )
    assert out is None


def test_packed_systems_that_are_too_short_are_refused():
    rows, lanes = np.zeros((1, 10)), np.zeros((1, 10, system_pairs.PAIRS))
    out = np.empty((1, 1, 1)), np.empty((1, 1, 1)), np.empty((1, 1), np.uint8)

    def run(horizons, rows=rows):
        system_pairs.pair_terms(
            rows, 1, False, lanes, 1, False, 1, horizons, False, True, False, 1, *out
        )

    for horizons in (np.zeros(0, np.intp), np.array([-1]), np.array([2, 1])):
        with pytest.raises(ValueError, match="horizons"):
            run(horizons)
    with pytest.raises(ValueError, match="do not fit"):
        run(np.array([3]), rows[:, :5])
