"""Roots and sweeps of iterative scaling."""

import numpy as np
import pytest
from scipy.optimize import brentq

from maxent._core.compiled_by_numba import iterative_scaling


def steps(a, values, target, lam, weight):
    out = np.empty(len(a))
    iterative_scaling.scaling_steps(
        a, values, *(np.asarray(x, dtype=float) for x in (target, lam, weight)), out
    )
    return out


@pytest.mark.parametrize("weight", [0.0, 1e-6, 0.5, 100.0])
@pytest.mark.parametrize("times_off", [1e-8, 1.0, 1e8])
def test_steps_solve_their_equation(weight, times_off, rng):
    a, values = rng.random((6, 5)), np.array([0.5, 1.0, 3.0, 7.0, 20.0])
    lam = rng.normal(size=6)
    target = times_off * a.sum(axis=1)
    gamma = steps(a, values, target, lam, np.full(6, weight))
    terms = a * np.exp(np.outer(gamma, values))
    left = terms.sum(axis=1) + weight * (lam + gamma)
    # relative to the largest term, and to what one ulp of gamma moves
    size = terms.sum(axis=1) + weight * np.abs(lam + gamma) + np.abs(target)
    moved = 20.0 * np.abs(gamma) * terms.sum(axis=1) + weight * np.abs(gamma)
    assert (np.abs(left - target) <= 1e-13 * size + 1e-14 * moved).all()


def test_penalised_target_of_zero_has_a_root():
    a, values = np.array([[0.2, 0.3]]), np.array([1.0, 2.0])
    gamma = steps(a, values, [0.0], [0.4], [0.5])[0]
    root = brentq(
        lambda g: 0.2 * np.exp(g) + 0.3 * np.exp(2 * g) + 0.5 * (0.4 + g), -20, 5
    )
    assert gamma == pytest.approx(root, abs=1e-10)


def test_targets_without_a_root_are_said():
    a, values = np.array([[0.2, 0.3], [0.0, 0.0]]), np.array([1.0, 2.0])
    found = steps(a, values, [0.0, 0.5], [0.0, 0.0], [0.0, 0.0])
    np.testing.assert_array_equal(found, [-np.inf, 0.0])
