"""Epochs of coordinate ascent against the same visits in plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from maxent._core.machines.coordinate import epoch_csr, epoch_dense
from problems import PRIORS, best_multiplier, by_name

from maxent.discrimination import ExponentialMargin, UniformExponentialMargin

PRIORS = [*PRIORS, UniformExponentialMargin(0.3, 5.0, 1.0)]


class State:
    """Everything that an epoch takes, for random sparse rows with varied constants."""

    def __init__(self, rng, margin, n=60, d=8, variance=0.7):
        self.margin = margin
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
        X[[3, n - 1]] = 0.0  # rows without an entry, one of them the last
        self.X = X
        self.level = margin.level + 0.1 * rng.random(n)
        self.rate = margin.rate * rng.uniform(0.9, 1.1, n)
        self.weight = rng.uniform(0.5, 2.0, n)
        self.sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        self.norm = (X**2).sum(axis=1) + variance
        self.rows = np.arange(n)
        self.order = rng.permutation(n)
        # start inside the domain, also of the logistic prior
        top = np.minimum(margin.upper / margin.rate, 2.0) * self.weight * self.rate
        self.lam = 0.1 * top * rng.random(n)
        a = self.sign * self.lam
        self.w = X.T @ a
        self.variance = variance
        self.bias = np.array([variance * a.sum()])

    def arguments(self):
        fixed = (self.level, self.rate, self.weight, self.sign, self.norm)
        state = (self.lam.copy(), self.w.copy(), self.bias.copy())
        return (*fixed, self.rows, self.order, self.variance), state

    def dense(self):
        fixed, state = self.arguments()
        total = epoch_dense(self.margin.core_spec, self.X, *fixed, True, *state)
        return total, state

    def csr(self, index):
        X = sp.csr_array(self.X)
        parts = (X.data, X.indices.astype(index), X.indptr.astype(index))
        fixed, state = self.arguments()
        return epoch_csr(self.margin.core_spec, *parts, *fixed, True, *state), state

    def prior(self, t):
        """The row's own prior, weight left out."""
        made = self.margin.parameters()
        made["level"] = self.level[t]
        if "rate" in made:
            made["rate"] = self.rate[t]
        if "width" in made:  # the shape is width * rate
            made["width"] *= self.margin.rate / self.rate[t]
        return type(self.margin)(**made)

    def best(self, t, lam, margin):
        """(multiplier, Fenchel-Young term) of row t at a margin."""
        prior, weight = self.prior(t), self.weight[t]
        if self.margin.name == "hinge":  # its rate is in the weight
            weight = weight * self.rate[t]
        term = weight * float(prior.fenchel_young(lam / weight, margin))
        return best_multiplier(prior, weight, lam, margin, self.norm[t]), term

    def slow(self):
        """The same visits in plain Python."""
        lam, w, bias = self.lam.copy(), self.w.copy(), self.bias.copy()
        total = moved = 0.0
        for t in self.order:
            margin = self.sign[t] * (self.X[t] @ w + bias[0])
            new, term = self.best(t, lam[t], margin)
            total += term
            step = self.sign[t] * (new - lam[t])
            lam[t] = new
            moved += step
            w += step * self.X[t]
            bias[0] += self.variance * step
        return (total, moved), (lam, w, bias)


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_an_epoch_solves_every_coordinate_exactly(margin, rng):
    state = State(rng, margin)
    (total, moved), found = state.dense()
    (expected_total, expected_moved), expected = state.slow()
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    assert total == pytest.approx(expected_total, rel=1e-8)
    assert moved == pytest.approx(expected_moved, abs=1e-8)
    assert np.abs(found[0] - state.lam).max() > 1e-3


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_sparse_rows_and_both_index_types_take_the_same_steps(margin, rng):
    state = State(rng, margin)
    dense_total, dense = state.dense()
    short_total, short = state.csr(np.int32)
    long_total, long = state.csr(np.int64)
    assert short_total == long_total
    for a, b in zip(short, long):
        assert a.tobytes() == b.tobytes()
    np.testing.assert_allclose(short_total, dense_total, rtol=1e-9)
    for a, b in zip(short, dense):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_weights_and_bias_stay_those_of_the_multipliers(margin, rng):
    state = State(rng, margin)
    _, (lam, w, bias) = state.csr(np.int32)
    a = state.sign * lam
    np.testing.assert_allclose(w, state.X.T @ a, atol=1e-11)
    assert bias[0] == pytest.approx(state.variance * a.sum(), abs=1e-11)


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_many_epochs_reach_the_optimum(margin, rng):
    state = State(rng, margin, n=30)
    for _ in range(3000 if margin.name == "hinge" else 400):
        (total, _), (state.lam, state.w, state.bias) = state.dense()
    # the Fenchel-Young terms met in an epoch without a move are the duality gap
    assert 0 <= total <= 1e-6


def test_only_the_rows_in_the_order_are_visited(rng):
    state = State(rng, ExponentialMargin(5.0))
    state.order = np.array([5, 7, 5], dtype=np.intp)
    _, (lam, _, _) = state.dense()
    changed = np.flatnonzero(lam != state.lam)
    assert set(changed) <= {5, 7}
    assert len(changed) >= 1


def test_several_constraints_may_share_a_row(rng):
    state = State(rng, ExponentialMargin(5.0, -0.1), n=20)
    state.rows = np.repeat(np.arange(10), 2)
    state.sign = np.tile([1.0, -1.0], 10)
    state.norm = (state.X**2).sum(axis=1)[state.rows] + state.variance
    state.lam = np.abs(state.lam)
    a = np.bincount(state.rows, state.sign * state.lam, minlength=20)
    state.w, state.bias[0] = state.X.T @ a, state.variance * a.sum()
    _, (lam, w, _) = state.csr(np.int64)
    a = np.bincount(state.rows, state.sign * lam, minlength=20)
    np.testing.assert_allclose(w, state.X.T @ a, atol=1e-12)


def test_rows_of_zeros_without_a_bias(rng):
    for margin in PRIORS:
        state = State(rng, margin, n=10, variance=0.0)
        state.X[:] = 0.0
        state.norm[:] = 0.0
        state.w[:] = 0.0
        _, (lam, w, _) = state.dense()
        assert (w == 0).all()
        if margin.name in ("exponential", "erlang", "laplace", "gaussian"):
            # nothing resists: the multiplier that belongs to margin zero
            best = [
                -state.weight[t] * float(state.prior(t).loss_slope(0.0))
                for t in range(10)
            ]
            np.testing.assert_allclose(lam, best, rtol=1e-12)


def test_no_rows():
    nothing, none = np.empty(0), np.empty(0, dtype=np.intp)
    spec = ExponentialMargin(5.0).core_spec
    five = [nothing] * 5
    state = (1.0, True, nothing, np.zeros(3), np.zeros(1))
    assert epoch_dense(spec, np.empty((0, 3)), *five, none, none, *state) == (
        0,
        0,
    )
    indices = np.empty(0, dtype=np.int32)
    indptr = np.zeros(1, dtype=np.int32)
    found = epoch_csr(spec, nothing, indices, indptr, *five, none, none, *state)
    assert found == (0, 0)
