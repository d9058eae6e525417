"""Multipliers brought back to their equalities."""

import numpy as np
import pytest

from maxent._optimize.certificate import repair_equality


def flows(rng, m, per_pair=5):
    """Incidence of constraints between m classes, without the last class."""
    pairs = [(a, b) for a in range(m) for b in range(m) if a != b]
    right, wrong = np.repeat(pairs, per_pair, axis=0).T
    E = (np.arange(m) == right[:, None]) * 1.0 - (np.arange(m) == wrong[:, None])
    return E[:, :-1], right, wrong


@pytest.mark.parametrize("upper", [np.inf, 1.0])
@pytest.mark.parametrize("tiny", [1.0, 1e-8, 1e-18])
def test_classes_with_multipliers_of_other_sizes_are_balanced(tiny, upper, rng):
    E, right, wrong = flows(rng, 3)
    lam = rng.uniform(0.2, 0.6, size=len(right))
    lam[(right == 2) | (wrong == 2)] *= tiny
    lam *= 1.0 + 0.1 * rng.normal(size=len(lam))
    new = repair_equality(lam, np.full(len(lam), upper), E)
    size = np.abs(E.T) @ new
    assert (np.abs(E.T @ new) <= 2e-14 * size).all()
    assert (new >= 0).all() and (new <= upper).all()
    ordinary = (right != 2) & (wrong != 2)
    np.testing.assert_allclose(new[ordinary], lam[ordinary], rtol=0.5)


def test_a_total_of_its_own_is_met_by_scaling(rng):
    E = rng.integers(0, 2, (30, 3)).astype(float)
    want, upper = rng.uniform(0.1, 0.9, 30), np.ones(30)
    lam = want * rng.uniform(0.2, 3.0, 30)
    lam = np.minimum(lam, 0.99)
    new = repair_equality(lam, upper, E, E.T @ want)
    np.testing.assert_allclose(E.T @ new, E.T @ want, rtol=1e-13)
    assert ((new > 0) & (new < 1)).all()


def test_flows_without_a_way_back_are_scaled_away(rng):
    E, right, wrong = flows(rng, 3)
    lam = np.where(right == 2, 0.0, 1.0)
    new = repair_equality(lam, np.full(len(lam), np.inf), E)
    assert new[wrong == 2].max() < 1e-12
    assert new[(right != 2) & (wrong != 2)].min() > 0.5


def test_what_cannot_be_met_is_no_answer(rng):
    E, lam = rng.uniform(size=(10, 2)), np.full(10, 0.5)
    assert repair_equality(lam, np.ones(10), E, 1.1 * E.sum(axis=0)) is None
