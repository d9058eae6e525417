"""Newton systems of blocks with sparse maps, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxent import MEDBayesNetClassifier, MEDGaussianClassifier
from maxent._optimize import mapped_factors
from maxent._optimize.mapped_factors import MappedFactors


def random_maps(rng, sizes, n):
    return [
        sp.random_array((k, n), density=0.2, random_state=rng, format="csr")
        for k in sizes
    ]


@pytest.mark.parametrize("biases", [0, 2])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_solutions_are_those_of_the_dense_matrix(biases, columns, rng):
    sizes, n = (7, 1, 12, 5), 40
    maps = random_maps(rng, sizes, n)
    factors = [rng.normal(size=(k, r)) for k, r in zip(sizes, (3, 1, 4, 2))]
    bias = rng.normal(size=(n, biases)) if biases else None
    G = np.hstack([A.T @ F for A, F in zip(maps, factors)])
    if biases:
        G = np.hstack([G, bias])
    d = rng.uniform(0.1, 2.0, size=n)
    rhs = rng.normal(size=n if columns is None else (n, columns))
    mapped = MappedFactors(maps, bias)
    np.testing.assert_allclose(
        mapped.solver(factors, d)(rhs),
        np.linalg.solve(G @ G.T + np.diag(d), rhs),
        rtol=1e-8,
        atol=1e-10,
    )
    some = np.sort(rng.permutation(n)[:15])
    own = np.linalg.solve(G[some] @ G[some].T + np.diag(d[some]), rhs[some])
    found = mapped.restricted(some).solver(factors, d[some])(rhs[some])
    np.testing.assert_allclose(found, own, rtol=1e-8, atol=1e-10)


def test_rows_that_meet_in_sums_that_vanish(rng):
    """Products of maps that are zero at one diagonal and not at the next."""
    maps = [[[1.0, -1, 0, 0], [0, 0, 0, 0]], [[1.0, 1, 2, 0]], [[0.0, 0, -1, 0]]]
    mapped = MappedFactors([sp.csr_array(np.array(A)) for A in maps])
    factors = [rng.normal(size=(len(A), 2)) for A in maps]
    G = np.hstack([np.transpose(A) @ F for A, F in zip(maps, factors)])
    for d in (np.ones(4), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)):
        inverse = mapped.solver(factors, d)(np.eye(4))
        np.testing.assert_allclose(inverse @ (G @ G.T + np.diag(d)), np.eye(4), 0, 1e-9)
    nothing = MappedFactors([sp.csr_array((2, 3)), sp.csr_array((1, 3))])
    solve = nothing.solver([np.ones((2, 1)), np.ones((1, 2))], np.full(3, 2.0))
    np.testing.assert_allclose(solve(np.ones(3)), np.full(3, 0.5))


def test_maps_with_many_rows_for_a_multiplier_are_not_worth_it(monkeypatch):
    """The pairs of rows that a multiplier joins are kept, one by one."""
    n, size = 60, 10
    blocks = np.arange(n) // size
    maps = [
        sp.csr_array(np.where(blocks == k, 1.0, 0.0) * np.ones((size, 1)))
        for k in range(n // size)
    ]
    mapped = MappedFactors(maps)
    assert mapped.n_pairs == n * size**2
    assert mapped.is_worth_it([4] * len(maps), 1e9)
    monkeypatch.setattr(mapped_factors, "_MOST_PAIRS", n * size**2 - 1)
    assert not mapped.is_worth_it([4] * len(maps), 1e9)


def test_factors_without_columns_leave_the_diagonal(rng):
    mapped = MappedFactors(random_maps(rng, (3, 4, 2), 6))
    d = rng.uniform(0.1, 2.0, size=6)
    solve = mapped.solver([np.zeros((k, 0)) for k in (3, 4, 2)], d)
    np.testing.assert_array_equal(solve(np.ones((6, 2))), 1.0 / np.stack([d, d], 1))


def test_work_counts_the_rows_that_meet():
    # the multipliers 0 and 1 join the blocks 0 and 1, 2 is of block 2 alone
    maps = [[[1.0, 0, 0], [0, 1, 0]], [[1.0, -1, 0]], [[0, 0, 2.0]]]
    mapped = MappedFactors([sp.csr_array(np.array(A)) for A in maps])
    np.testing.assert_array_equal(
        np.tril(mapped.meeting), [[2, 0, 0], [1, 1, 0], [0, 0, 1]]
    )
    assert mapped.work([2, 3, 5]) == 2 * 4 + 1 * 6 + 1 * 9 + 1 * 25


@pytest.mark.parametrize("margin", ["exponential", "logistic", "hinge"])
def test_many_classes_have_the_same_optimum_either_way(margin, rng, monkeypatch):
    y = np.arange(360) % 9
    X = rng.normal(size=(9, 4))[y] * 2.0 + rng.normal(size=(360, 4))
    model = MEDGaussianClassifier(margin=margin, level=5.0)
    calls = []
    solver = MappedFactors.solver

    def counted(*args):
        calls.append(1)
        return solver(*args)

    monkeypatch.setattr(MappedFactors, "solver", counted)
    one = model.fit(X, y)
    objective, scores = one.objective_, one.decision_function(X)
    assert one.converged_ and len(calls) > 5
    monkeypatch.setattr(MappedFactors, "is_worth_it", lambda *args: False)
    other = model.fit(X, y)
    assert other.objective_ == pytest.approx(objective, rel=1e-7)
    # the biases of hinges are nearly open
    np.testing.assert_allclose(other.decision_function(X), scores, 1e-4, 1e-2)


def test_bayes_nets_of_many_classes_and_few_rows(rng):
    y = np.r_[np.zeros(3, dtype=int), rng.integers(1, 12, size=200)]
    X = rng.integers(0, 3, size=(203, 10))
    X[:, 0] = np.minimum(y, 2)
    model = MEDBayesNetClassifier().fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-8 * (1 + model.objective_)
