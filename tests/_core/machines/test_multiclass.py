"""Joint multi-class passes against the same visits in plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from maxent._core.machines.multiclass import joint_block, joint_csr, joint_dense
from maxent._core.machines.smo import least_share
from problems import PRIORS, best_multiplier, by_name

priors = pytest.mark.parametrize("margin", PRIORS, ids=by_name)
sizes = pytest.mark.parametrize(
    ("m", "d"), [(2, 1), (3, 4), (4, 7)], ids=lambda k: str(k)
)


class State:
    """Examples, their classes, and multipliers somewhere inside the domain."""

    def __init__(self, rng, margin, m, d, n=30, share=0.5, variance=0.8):
        self.margin, self.m, self.share, self.variance = margin, m, share, variance
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
        X[[4, n - 1]] = 0.0  # rows without an entry, one of them the last
        self.X = X
        self.norm = (X**2).sum(axis=1)
        self.codes = rng.integers(0, m, n)
        self.weight = rng.uniform(0.5, 2.0, n)
        self.order = rng.permutation(n)
        top = min(margin.upper, 2.0 * margin.rate)
        self.lam = 0.1 * top * self.weight[:, None] * rng.random((n, m - 1))
        beta = self.beta(self.lam)
        self.W = share * X.T @ beta
        self.bias = variance * beta.sum(axis=0)

    def beta(self, lam):
        out = np.zeros((len(lam), self.m))
        for t, y in enumerate(self.codes):
            out[t, np.delete(np.arange(self.m), y)] = -lam[t]
            out[t, y] = lam[t].sum()
        return out

    def constants(self):
        margin = self.margin
        return (margin.level, margin.rate, self.share, self.variance)

    def run(self, index=None, look=True):
        """(sum of Fenchel-Young terms, lam, W, bias) of the compiled pass."""
        lam, bias = self.lam.copy(), self.bias.copy()
        W = self.W.T.copy() if index is None else self.W.copy()
        rest = (self.codes, self.weight, *self.constants(), self.order, look)
        rest += (lam, W, bias)
        spec = self.margin.core_spec
        if index is None:
            total = joint_dense(spec, self.X, self.norm, *rest)
            return total, lam, W.T, bias
        X = sp.csr_array(self.X)
        parts = (X.data, X.indices.astype(index), X.indptr.astype(index))
        return joint_csr(spec, *parts, self.norm, *rest), lam, W, bias

    def gram(self):
        return (self.X @ self.X.T).astype(np.float32)

    def block(self, passes=1, skip=0.0, order=None):
        """(sum of terms, visits, largest violation) of the last pass, and the rest."""
        lam, bias = self.lam.copy(), self.bias.copy()
        F = np.ascontiguousarray((self.X @ self.W).T)
        order = self.order if order is None else order
        rest = (self.codes, self.weight, *self.constants(), order, lam, bias)
        spec, least = self.margin.core_spec, 1.5 * least_share(self.margin.core_spec)
        moved = np.zeros(F.shape, dtype=np.float32)
        for _ in range(passes):
            found = joint_block(spec, self.gram(), F, moved, *rest, skip, least)
        return found, lam, bias, F + moved

    def violations(self):
        """Largest violation of the optimality condition by each example."""
        out = np.zeros(len(self.lam))
        score = self.X @ self.W + self.bias
        for t, y in enumerate(self.codes):
            wrong = np.delete(np.arange(self.m), y)
            u = self.lam[t] / self.weight[t] / self.margin.rate
            slope = self.margin.level + self.margin.unit_potential.slope(u) / (
                self.margin.rate
            )
            excess = slope - (score[t, y] - score[t, wrong])
            top = self.margin.unit_potential.upper
            out[t] = np.where(u == 0, excess, np.where(u < top, abs(excess), 0.0)).max()
        return np.maximum(out, 0.0)

    def slow(self):
        """The same visits in plain Python."""
        lam, W, bias, total = self.lam.copy(), self.W.copy(), self.bias.copy(), 0.0
        for t in self.order:
            y, w = self.codes[t], self.weight[t]
            wrong = np.delete(np.arange(self.m), y)
            score = self.X[t] @ W + bias
            terms = self.margin.fenchel_young(lam[t] / w, score[y] - score[wrong])
            total += w * float(terms.sum())
            before = self.beta(lam)[t]
            k = self.share * self.norm[t] + self.variance
            for _ in range(2):
                moves = 0
                for s, j in enumerate(wrong):
                    margin = score[y] - score[j]
                    new = best_multiplier(self.margin, w, lam[t, s], margin, 2 * k)
                    step, lam[t, s] = new - lam[t, s], new
                    score[y] += k * step
                    score[j] -= k * step
                    moves += step != 0
                if moves <= 1 and self.m > 2:
                    break
            change = self.beta(lam)[t] - before
            W += self.share * np.outer(self.X[t], change)
            bias += self.variance * change
        return total, lam, W, bias


@priors
@sizes
def test_a_pass_solves_for_every_wrong_class_in_turn(margin, m, d, rng):
    state = State(rng, margin, m, d)
    found, expected = state.run(), state.slow()
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    assert np.abs(found[1] - state.lam).max() > 1e-3


@priors
@sizes
def test_sparse_rows_and_both_index_types_take_the_same_steps(margin, m, d, rng):
    state = State(rng, margin, m, d)
    dense, short, long = state.run(), state.run(np.int32), state.run(np.int64)
    for a, b, c in zip(dense, short, long):
        assert np.asarray(b).tobytes() == np.asarray(c).tobytes()
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("index", [None, np.int32])
@priors
def test_a_pass_without_a_look_takes_the_same_steps(margin, index, rng):
    state = State(rng, margin, 4, 6)
    (total, *seen), (none, *unseen) = state.run(index), state.run(index, look=False)
    assert total > 0 and none == 0.0
    for a, b in zip(seen, unseen, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@priors
def test_weights_and_biases_stay_those_of_the_multipliers(margin, rng):
    state = State(rng, margin, 4, 6)
    for index in (None, np.int32):
        _, lam, W, bias = state.run(index)
        beta = state.beta(lam)
        np.testing.assert_allclose(W, state.share * state.X.T @ beta, atol=1e-11)
        np.testing.assert_allclose(bias, state.variance * beta.sum(axis=0), atol=1e-11)


@priors
@sizes
def test_a_block_takes_the_steps_of_the_weight_vectors(margin, m, d, rng):
    state = State(rng, margin, m, d)
    (terms, *_), lam, bias, F = state.block()
    total, slow_lam, slow_W, slow_bias = state.slow()
    # values of the block are in single precision, its multipliers are not
    np.testing.assert_allclose(lam, slow_lam, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(bias, slow_bias, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(F.T, state.X @ slow_W, rtol=1e-4, atol=1e-4)
    assert terms == pytest.approx(total, rel=1e-4, abs=1e-4)


@priors
def test_examples_that_violate_little_are_passed_over(margin, rng):
    state = State(rng, margin, 4, 6)
    violation = state.violations()
    skip = float(np.median(violation))
    for t in range(len(violation)):  # each alone, so that none has moved before
        (_, visits, worst), lam, *_ = state.block(skip=skip, order=np.array([t]))
        assert worst == pytest.approx(violation[t], rel=1e-5, abs=1e-5)
        assert visits == (worst > skip)
        others = np.arange(len(violation)) != t
        assert (lam[others] == state.lam[others]).all()
        if not visits:
            assert (lam[t] == state.lam[t]).all()


def test_many_passes_over_a_block_reach_its_optimum(rng):
    state = State(rng, PRIORS[0], 3, 4)
    # the terms met without a move are the duality gap
    assert state.block()[0][0] > 0.1
    (terms, _, worst), *_ = state.block(passes=1000)
    assert 0 <= terms <= 1e-5
    assert worst <= 1e-3


@pytest.mark.parametrize("n", [30, 1023, 2500])
def test_each_visit_sees_all_that_came_before_it(n, rng):
    state = State(rng, PRIORS[0], 4, 7, n=n)
    state.order = np.concatenate([state.order, state.order[: n // 2], [3, 3, 3]])
    skip = float(np.quantile(state.violations(), 0.1))
    one = state.block(skip=skip)
    assert 0 < one[0][1] < len(state.order)
    _, lam, _, F = one
    W = state.share * state.X.T @ state.beta(lam)
    np.testing.assert_allclose(F.T, state.X @ W, rtol=1e-3, atol=1e-3 * abs(F).max())


def test_the_gram_matrix_of_a_block_must_hold_its_examples(rng):
    state = State(rng, PRIORS[0], 3, 4)
    for K in (state.gram()[:-1], state.gram()[:, :-1], np.asfortranarray(state.gram())):
        state.gram = lambda K=K: K
        with pytest.raises(ValueError, match="contiguous rows"):
            state.block()


@pytest.mark.parametrize("index", [None, np.int32])
def test_only_the_examples_in_the_order_are_visited(index, rng):
    state = State(rng, PRIORS[0], 3, 4)
    state.order = np.array([5, 7, 5])
    _, lam, _, _ = state.run(index)
    changed = np.flatnonzero((lam != state.lam).any(axis=1))
    assert set(changed) <= {5, 7}
    assert len(changed) >= 1


def test_no_examples_to_visit(rng):
    state = State(rng, PRIORS[0], 3, 4)
    state.order = state.order[:0]
    for found in (state.run(), state.run(np.int64)):
        assert found[0] == 0
        for a, b in zip(found[1:], (state.lam, state.W, state.bias)):
            assert (a == b).all()
