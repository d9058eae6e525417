"""Random trees as conjugate priors: domain, digits, missing values, files."""

import functools
import math

import numpy as np
import pytest
from oracles.block_cases import agree, gradient_by_differences
from oracles.spanning_trees import all_trees, distribution
from oracles.tree_problems import make
from refusals import refused

from maxent import MEDOutlierDetector, load, save
from maxent._inputs.codes import CategoryIndex
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    SpanningTrees,
    solve_blocks,
)
from maxent.models.trees._edge_moments import (
    DenseEdgeCovariance,
    FiniteDifferenceEdgeCovariance,
    LaplacianEdgeCovariance,
    edge_covariance,
    partition,
    stored_edge_covariance,
)
from maxent.models.trees._pair_counts import TreeRows

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])


# ------------------------------------------------------------------------------ domain


def test_the_longest_step_ends_exactly_at_the_boundary(rng):
    finite = 0
    for _ in range(40):
        prior, X, a, _ = make("dirichlet", rng, int(rng.integers(2, 5)))
        block = prior.block(X)
        step = rng.normal(size=9)
        far = block.max_step(a, step)
        if not np.isfinite(far):
            continue
        finite += 1
        assert np.isfinite(block.log_partition(a + (1 - 1e-9) * far * step))
        assert block.log_partition(a + (1 + 1e-9) * far * step) == np.inf
        near = [
            block.log_partition(a + (1 - s) * far * step) for s in (1e-6, 1e-8, 1e-10)
        ]
        # one logarithm of the distance for the cell that empties, or more of them
        assert np.diff(near).min() > 0.9 * np.log(1e2)
    assert finite > 20


def test_given_tables_have_no_boundary(rng):
    prior, X, a, _ = make("fixed", rng, 4)
    block = prior.block(X)
    assert block.max_step(a, rng.normal(size=9)) == np.inf
    for size in (1e3, 1e6, 1e9):
        assert np.isfinite(block.log_partition(size * rng.normal(size=9)))


def test_forbidden_edges_ask_for_no_counts(rng):
    n, sizes = 3, [2, 2, 2]
    weights = np.zeros((n, n))
    np.fill_diagonal(weights, -np.inf)
    weights[0, 2] = weights[2, 0] = -np.inf
    X = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    prior = DirichletTrees(4.0, sizes, weights)
    block = prior.block(X)
    # takes 1.6 from a cell of the forbidden pair that holds 1, 0.8 from the others
    a = np.array([-0.8, -0.8, 0.4, 0.4, 0.4, 0.4])
    assert np.isfinite(block.log_partition(a))
    assert DirichletTrees(4.0, sizes).block(X).log_partition(a) == np.inf
    assert np.isfinite(block.mean(a)).all()
    factor = block.hessian_factor(a)
    found = gradient_by_differences(block, block.mean, a)
    agree(factor @ factor.T, found, 1e-6)


def watched(ask, seen, a):
    seen.append(ask(a))
    return seen[-1]


def never_leaves(rng, problems):
    """Problems solved, each step of the solver watched from inside the block.

    Rows may be the same in both classes, and levels beyond what the prior can pay for:
    there the solver may stop with the status that says so.
    """
    converged = 0
    for _ in range(problems):
        n = int(rng.integers(2, 5))
        sizes = [int(r) for r in rng.integers(2, 4, size=n)]
        rows = int(rng.integers(4, 12))
        X = np.column_stack([rng.integers(0, r, size=rows) for r in sizes])
        y = np.where(np.arange(rows) % 2, 1.0, -1.0)
        prior = DirichletTrees(float(rng.uniform(0.3, 3.0)), sizes)
        blocks = [prior.block(X, y == k) for k in (1, -1)]
        seen = []
        for block in blocks:
            ask = block.log_partition
            block.log_partition = functools.partial(watched, ask, seen)
        margin = ExponentialMargin(float(rng.uniform(0.5, 20.0)), 3.0)
        result = solve_blocks(
            blocks,
            [np.diag(y), np.diag(-y)],
            margin,
            level=np.full(rows, float(rng.uniform(0.5, 8.0))),
            solver="interior",
            tol=1e-7,
        )
        assert np.isfinite(seen).all()
        converged += result.converged
    assert converged >= 0.95 * problems


def test_the_solver_never_leaves_the_domain(rng):
    never_leaves(rng, 40)


@pytest.mark.slow
def test_the_solver_never_leaves_the_domain_of_a_thousand_problems(rng):
    never_leaves(rng, 1000)


# ---------------------------------------------------------------------------- numerics


@pytest.mark.parametrize("spread", [1.0, 10.0, 50.0, 2000.0])
def test_covariances_of_edges_keep_their_digits_at_any_spread(spread, rng):
    """Against the rule of products, P(e and f), by weights of one edge more."""
    n = 6
    weights = spread * rng.normal(size=(n, n))
    weights = np.tril(weights, -1) + np.tril(weights, -1).T
    np.fill_diagonal(weights, -np.inf)
    found = stored_edge_covariance(weights, partition(weights)[1])
    assert np.linalg.eigvalsh(found.matrix).min() > -1e-13
    _, shares = distribution(weights)
    trees = all_trees(n)
    inside_tree = np.zeros((len(trees), n, n))
    at = np.arange(len(trees))[:, None]
    inside_tree[at, trees[..., 0], trees[..., 1]] = 1.0
    indicator = inside_tree[:, found.edges[0], found.edges[1]]
    mean = shares @ indicator
    want = (indicator.T * shares) @ indicator - np.outer(mean, mean)
    np.testing.assert_allclose(found.matrix, want, rtol=0, atol=1e-12)


def test_covariances_of_edges_whose_weights_tie_far_above_the_others():
    """Two trees with equal weights, and edges e^1000 below: variances are 1 / 4."""
    weights = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1000.0], [0.0, -1000.0, 0.0]])
    weights[0, 2] = weights[2, 0] = -1000.0
    np.fill_diagonal(weights, -np.inf)
    found = stored_edge_covariance(weights, partition(weights)[1])
    order = list(zip(*found.edges, strict=True))
    assert order == [(0, 1), (0, 2), (1, 2)]
    want = 0.25 * np.array([[0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
    np.testing.assert_allclose(found.matrix, want, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.root() @ found.root().T, want, atol=1e-15)


@pytest.mark.parametrize("n", [5, 30])
def test_both_covariances_of_edges_agree(n, rng):
    weights = rng.normal(size=(n, n))
    weights = weights + weights.T
    np.fill_diagonal(weights, -np.inf)
    weights[0, 1] = weights[1, 0] = -np.inf
    f = rng.normal(size=(n, n))
    f = f + f.T
    np.fill_diagonal(f, 0.0)
    few, many = DenseEdgeCovariance(weights), LaplacianEdgeCovariance(weights)
    agree(many.product(f), few.product(f), 1e-10)
    agree(LaplacianEdgeCovariance(weights + 900.0).product(f), few.product(f), 1e-10)
    near = FiniteDifferenceEdgeCovariance(weights, partition(weights)[1])
    agree(near.product(f), few.product(f), 1e-5)
    assert not near.product(0.0 * f).any()
    root = few.root()
    agree(root @ root.T, few.matrix, 1e-12)


@KINDS
def test_many_columns_have_products_instead_of_factors(kind, rng):
    n = 70
    X = rng.integers(0, 3, size=(12, n))
    prior = (
        SpanningTrees.fit(X, n_categories=[3] * n)
        if kind == "fixed"
        else DirichletTrees(30.0, [3] * n)
    )
    block = prior.block(X)
    assert block.rank > 1e9
    a, x = 0.1 * rng.random(12), rng.normal(size=12)
    h = 1e-4
    moved = (block.mean(a + h * x) - block.mean(a - h * x)) / (2 * h)
    agree(block.hessian_product(a, x), moved, 1e-5)
    factor = block.hessian_factor(a)
    agree(factor @ (factor.T @ x), block.hessian_product(a, x), 1e-8)


def test_counts_that_nearly_vanish_keep_their_digits(rng):
    X = rng.integers(0, 2, size=(300, 3))
    X[0], weight = 1 - X[1], rng.normal(size=300) * 10.0 ** rng.integers(-9, 1, 300)
    rows, start = TreeRows(X, CategoryIndex([2, 2, 2])), np.full((6, 6), 0.1)
    both = (X[:, 0] == X[0, 0]) & (X[:, 1] == X[0, 1])
    # what is left of the pair (x0, x1) of row 0 is far below the rounding of its sum
    weight[0] = 0.0
    weight[0] = -math.fsum([0.1, *weight[both]]) + 3e-14
    left = math.fsum([0.1, *weight[both]])
    assert 1e-14 < left < 1e-13
    change, counts = rows.counts_on(start, weight)
    at = X[0, 0], 2 + X[0, 1]
    assert counts[at] == pytest.approx(left, rel=1e-13)
    # the plain sum is a multiple of the rounding unit of 0.1, 1e-17, and `left` is not
    assert abs(0.1 + change[at] - left) > 1e-9 * left
    agree(counts, start + change, 1e-13)


def test_weights_near_the_smallest_numbers_are_counted_as_they_are(rng):
    X = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    rows = TreeRows(X, CategoryIndex([2, 2]))
    start, weight = np.full((4, 4), 1e-309), np.array([-1e-309 + 1e-312, 0, 0, 0])
    counts = rows.counts_on(start, weight)[1]
    assert np.isfinite(counts).all() and counts[0, 2] > 0


def test_predictive_probabilities_do_not_depend_on_how_rows_are_grouped(
    rng, monkeypatch
):
    prior, X, _, _ = make("dirichlet", rng, 4)
    trees, rows = prior.posterior(X), np.concatenate([X, X[::-1], X])
    whole = trees.predictive_log_prob(rows)
    monkeypatch.setattr("maxent.models.trees._pair_counts._AT_ONCE", 5 * 16)
    np.testing.assert_array_equal(trees.predictive_log_prob(rows), whole)


def test_all_rows_in_another_order_are_another_part(rng):
    for kind in ("fixed", "dirichlet"):
        prior, X, a, _ = make(kind, rng, 4)
        block, order = prior.block(X), rng.permutation(len(X))
        x = rng.normal(size=len(X))
        want = block.hessian_product(a, x)[order]
        agree(block.hessian_among(a, order)(x[order]), want, 1e-9, np.abs(want).max())


def test_products_by_matrices_keep_six_digits_or_refuse(rng):
    f = rng.normal(size=(30, 30))
    f = np.triu(f, 1) + np.triu(f, 1).T
    far = f + 1e9 * (1.0 - np.eye(30))  # every tree has as many edges
    for spread in (1.0, 20.0, 40.0, 60.0):
        height = rng.permutation(np.linspace(0.0, spread, 30))
        weights = np.minimum.outer(height, height) + rng.normal(size=(30, 30))
        weights = np.tril(weights, -1) + np.tril(weights, -1).T
        np.fill_diagonal(weights, -np.inf)
        want = DenseEdgeCovariance(weights).product(f)
        error = np.abs(LaplacianEdgeCovariance(weights).product(far) - want).max()
        assert error <= 2e-7 * np.abs(want).max()
    # two parts that are all but separate
    side = np.arange(30) < 15
    weights = np.where(side[:, None] == side, 0.0, -30.0)
    np.fill_diagonal(weights, -np.inf)
    with pytest.raises(np.linalg.LinAlgError):
        LaplacianEdgeCovariance(weights)


@pytest.mark.parametrize("n", [6, 40])
def test_products_keep_digits_where_weights_are_far_apart(n, rng):
    """A triangle of equal edges, two of which are in the tree; the rest is certain."""
    weights = -1000.0 + rng.normal(size=(n, n))
    weights[0, 3:] = 2000.0 + 50.0 * rng.normal(size=n - 3)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    np.fill_diagonal(weights, -np.inf)
    triangle = np.array([0, 0, 1]), np.array([1, 2, 2])
    weights[triangle] = weights[triangle[::-1]] = 500.0
    f = rng.normal(size=(n, n))
    f = f + f.T
    want = np.zeros((n, n))
    want[triangle] = (np.eye(3) / 3.0 - 1.0 / 9.0) @ f[triangle]
    want = want + want.T
    found = edge_covariance(weights, partition(weights)[1])
    assert isinstance(found, FiniteDifferenceEdgeCovariance)
    agree(found.product(f), want, 1e-5, np.abs(f).max())
    mild = weights / 1000.0
    kind = DenseEdgeCovariance if n == 6 else LaplacianEdgeCovariance
    assert isinstance(edge_covariance(mild, partition(mild)[1]), kind)


# ---------------------------------------------------------------------- missing values


def test_a_missing_value_leaves_out_every_factor_that_it_enters(rng):
    prior, X, a, _ = make("fixed", rng, 4)
    posterior = prior.posterior(X, a)
    gone = X.copy()
    gone[:, 1] = -1
    rest = [0, 2, 3]
    index = CategoryIndex(prior.n_categories)
    p = posterior.edge_probabilities
    want = np.zeros(len(X))
    for t, row in enumerate(X):
        at = index.offset[:-1] + row
        want[t] = posterior.log_marginals[at[rest]].sum()
        for u in rest:
            for v in rest:
                want[t] += 0.5 * p[u, v] * posterior.log_ratios[at[u], at[v]]
    agree(posterior.expected_log_prob(gone), want, 1e-12)
    # without any value, nothing is left
    none = np.full((1, 4), -1)
    assert posterior.expected_log_prob(none)[0] == 0.0
    assert posterior.predictive_log_prob(none)[0] == pytest.approx(0.0, abs=1e-12)


def test_a_missing_value_is_judged_but_not_learnt_with_random_tables(rng):
    prior, X, a, _ = make("dirichlet", rng, 4)
    posterior = prior.posterior(X, a)
    gone = X.copy()
    gone[2, 0] = -1
    rest = np.arange(len(X)) != 2
    found = posterior.expected_log_prob(gone)
    agree(found[rest], posterior.expected_log_prob(X)[rest], 1e-12)
    assert np.isfinite(found[2]) and found[2] != posterior.expected_log_prob(X)[2]
    refused(lambda: prior.posterior(gone), r"X\[2, 0\] is missing.*leave the row out")
    weight = np.ones(len(X))
    weight[2] = 0.0
    agree(
        prior.posterior(gone, weight).edge_probabilities,
        prior.posterior(X[rest]).edge_probabilities,
        1e-12,
    )


# -------------------------------------------------------------------------------- files


@KINDS
def test_specifications_and_files_make_equal_priors_again(kind, rng, tmp_path):
    prior, X, a, _ = make(kind, rng, 4)
    posterior = prior.posterior(X, a)
    again = type(posterior)(**posterior.get_spec())
    agree(again.expected_log_prob(X), posterior.expected_log_prob(X), 1e-12)
    assert type(posterior).__name__ in repr(posterior)
    for value in (*posterior.get_spec().values(), posterior.edge_probabilities):
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0
    model = MEDOutlierDetector(prior).fit(X)
    save(model, tmp_path / "model.npz")
    back = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
