"""Random trees as conjugate priors: all trees, exact integrals, the domain."""

import functools

import numpy as np
import pytest
from oracles import tree_classifiers as oracle
from oracles.block_cases import agree, gradient_by_differences, inside
from oracles.spanning_trees import all_trees, distribution
from refusals import refused
from scipy.special import gammaln, logsumexp

from maxent import MEDOutlierDetector, load, save
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    SpanningTrees,
    chow_liu_tree,
    solve_blocks,
)
from maxent.discrimination._tree_moments import AllEdges, ManyEdges
from maxent.discrimination._tree_rows import Letters, log_gamma_rise
from maxent.families import DirichletBayesNet

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])
NODES = pytest.mark.parametrize("n", [2, 3, 4, 5])


def problem(rng, n, rows=9):
    """Letters, rows, smoothed counts of weighted rows, and log weights of edges."""
    sizes = [int(r) for r in rng.integers(1, 5, size=n)]
    sizes[0] += sizes[0] == 1  # rows that are all alike have no boundary to meet
    X = np.column_stack([rng.integers(0, r, size=rows) for r in sizes])
    weight = rng.uniform(0.2, 2.0, size=rows)
    weights = rng.normal(size=(n, n))
    weights = weights + weights.T
    np.fill_diagonal(weights, -np.inf)
    return sizes, X, weight, oracle.pair_tables(X, weight, sizes, 1.3), weights


def make(kind, rng, n, rows=9):
    """(prior, rows, weights inside the domain, log Z by the list of all trees)."""
    sizes, X, weight, tables, weights = problem(rng, n, rows)
    if kind == "fixed":
        prior = SpanningTrees.fit(
            X, weight, ess=1.3, n_categories=sizes, log_weights=weights
        )
        listed = oracle.tree_log_probs(tables, X, n)

        def log_z(a):
            return float(logsumexp(oracle.structure_prior(weights) + listed.T.T @ a))
    else:
        prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)

        def log_z(a):
            by_tree = oracle.dirichlet_log_partitions(tables, X, a, n)
            return float(logsumexp(oracle.structure_prior(weights) + by_tree))

    return prior, X, inside(rng, prior.block(X)), log_z


# ------------------------------------------------------------------------ all the trees


@KINDS
@NODES
def test_log_partition_is_the_sum_over_all_trees(kind, n, rng):
    for _ in range(5):
        prior, X, a, log_z = make(kind, rng, n)
        block = prior.block(X)
        agree(block.log_partition(a), log_z(a), 1e-10, 1.0 + np.abs(a).sum())
        assert block.log_partition(np.zeros(9)) == 0.0


@NODES
def test_mean_and_hessian_of_given_tables_are_those_of_all_trees(n, rng):
    sizes, X, weight, tables, weights = problem(rng, n)
    prior = SpanningTrees.fit(
        X, weight, ess=1.3, n_categories=sizes, log_weights=weights
    )
    block, a = prior.block(X), 2.0 * rng.normal(size=9)
    listed = oracle.ListedTrees(
        oracle.tree_log_probs(tables, X, n), oracle.structure_prior(weights)
    )
    agree(block.mean(a), listed.mean(a), 1e-11)
    scale = float(np.var(listed.L, axis=0).max()) + 1e-3
    factor = block.hessian_factor(a)
    assert factor.shape[1] <= block.rank
    agree(factor @ factor.T, listed.hessian(a), 1e-10, scale)
    x = rng.normal(size=9)
    agree(block.hessian_product(a, x), listed.hessian(a) @ x, 1e-10, 9 * scale)


@KINDS
@NODES
def test_gradient_and_hessian_are_derivatives(kind, n, rng):
    prior, X, a, _ = make(kind, rng, n)
    block = prior.block(X)
    agree(block.mean(a), gradient_by_differences(block, block.log_partition, a), 1e-6)
    hessian = gradient_by_differences(block, block.mean, a)
    scale = max(float(np.abs(hessian).max()), 1e-2)
    factor = block.hessian_factor(a)
    agree(factor @ factor.T, hessian, 1e-6, scale)
    for _ in range(3):
        x = rng.normal(size=9)
        agree(block.hessian_product(a, x), hessian @ x, 1e-6, 9 * scale)
        agree(block.hessian_product(a, x), factor @ (factor.T @ x), 1e-9, 9 * scale)


@NODES
def test_whole_numbers_of_rows_are_products_of_predictives(n, rng):
    sizes, X, _, tables, weights = problem(rng, n)
    prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)
    times = rng.integers(0, 4, size=9)
    repeated = np.repeat(X, times, axis=0)
    want = logsumexp(
        oracle.structure_prior(weights)
        + oracle.dirichlet_sequential(tables, repeated, n)
    )
    found = prior.block(X).log_partition(times.astype(float))
    agree(found, want, 1e-10, 1.0 + abs(want))


def test_weights_of_either_sign_are_averages_over_drawn_tables(rng):
    n = 3
    sizes, X, _, _, weights = problem(rng, n)
    # few rows taken away from plenty: the average has a finite variance
    tables = oracle.pair_tables(X, np.full(9, 6.0), sizes, 40.0)
    prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)
    a = rng.uniform(-1.0, 1.0, size=9)
    draws = oracle.dirichlet_draws(tables, X, a, n, rng, 20000)
    shares = oracle.structure_prior(weights)
    found = prior.block(X).log_partition(a)
    # the error of a mixture is at most that of its worst part
    assert abs(found - logsumexp(shares + draws[:, 0])) < 5.0 * draws[:, 1].max()
    assert draws[:, 1].max() < 0.05


@KINDS
def test_the_predictive_is_a_ratio_of_partitions(kind, rng):
    prior, X, a, _ = make(kind, rng, 4)
    block = prior.block(X)
    posterior = block.posterior(a)
    ratio = [
        block.log_partition(a + e) - block.log_partition(a) for e in np.eye(len(X))
    ]
    found = posterior.predictive_log_prob(X)
    agree(found, ratio, 1e-10, 10.0 + abs(block.log_partition(a)))
    assert (posterior.expected_log_prob(X) <= found + 1e-12).all()


@KINDS
def test_probabilities_of_all_rows_add_up_to_one(kind, rng):
    """Mean tables that agree on their margins are a distribution; others are not."""
    prior, X, a, _ = make(kind, rng, 4)
    every = np.array(list(np.ndindex(*prior.n_categories)))
    for value in (prior, prior.posterior(X, a)):
        total = float(np.exp(value.predictive_log_prob(every)).sum())
        assert total == pytest.approx(1.0, rel=1e-11)


# -------------------------------------------------------------------------- posteriors


@KINDS
def test_updating_twice_is_updating_with_the_sum(kind, rng):
    prior, X, _, _ = make(kind, rng, 4)
    block = prior.block(X)
    first, second = inside(rng, block, 0.4), 0.2 * rng.random(9)
    once = prior.posterior(X, first + second)
    twice = prior.posterior(X, first).posterior(X, second)
    agree(twice.edge_probabilities, once.edge_probabilities, 1e-9)
    agree(twice.expected_log_prob(X), once.expected_log_prob(X), 1e-9)
    base = prior.block(X, first)
    want = block.log_partition(first + second) - block.log_partition(first)
    agree(base.log_partition(second), want, 1e-9, 1.0 + abs(want))
    assert type(once) is type(prior)


@KINDS
def test_weight_two_is_the_row_twice_in_any_order(kind, rng):
    prior, X, _, _ = make(kind, rng, 4)
    times = rng.integers(0, 3, size=9)
    order = rng.permutation(int(times.sum()))
    one = prior.posterior(X, times.astype(float))
    other = prior.posterior(np.repeat(X, times, axis=0)[order])
    agree(other.edge_probabilities, one.edge_probabilities, 1e-10)
    agree(other.expected_log_prob(X), one.expected_log_prob(X), 1e-10)


@KINDS
def test_order_of_columns_and_names_of_letters_do_not_matter(kind, rng):
    n = 4
    sizes, X, weight, _, weights = problem(rng, n)
    order = rng.permutation(n)
    names = [rng.permutation(r) for r in sizes]
    Y = np.column_stack([names[k][X[:, k]] for k in order])
    moved = [sizes[k] for k in order]
    both = []
    for rows, letters, edges in (
        (X, sizes, weights),
        (Y, moved, weights[np.ix_(order, order)]),
    ):
        if kind == "fixed":
            prior = SpanningTrees.fit(
                rows, weight, n_categories=letters, log_weights=edges
            )
        else:
            prior = DirichletTrees(2.0, letters, edges)
        both.append(prior.posterior(rows, weight))
    one, other = both
    agree(other.edge_probabilities, one.edge_probabilities[np.ix_(order, order)], 1e-9)
    agree(other.expected_log_prob(Y), one.expected_log_prob(X), 1e-10)
    agree(other.predictive_log_prob(Y), one.predictive_log_prob(X), 1e-10)


def test_plenty_of_prior_counts_are_given_tables(rng):
    n = 4
    sizes, X, _, tables, weights = problem(rng, n, rows=12)
    counts = oracle.full_table(tables, sizes)
    random = DirichletTrees(1e7 * counts, sizes, weights).block(X)
    single = np.log(counts.diagonal() / counts.diagonal()[: sizes[0]].sum())
    total = counts.diagonal()[: sizes[0]].sum()
    ratios = np.log(
        np.maximum(counts, 1e-300) * total / np.outer(*[counts.diagonal()] * 2)
    )
    letters = Letters(sizes)
    ratios[letters.column[:, None] == letters.column[None, :]] = 0.0
    given = SpanningTrees(single, ratios, sizes, weights).block(X)
    a = 2.0 * rng.normal(size=12)
    agree(random.log_partition(a), given.log_partition(a), 1e-6, np.abs(a).sum())
    agree(random.mean(a), given.mean(a), 1e-5)


def test_one_allowed_tree_is_a_bayes_net_with_the_same_counts(rng):
    n = 4
    sizes, X, _, tables, _ = problem(rng, n)
    edges = [(0, 2), (1, 2), (1, 3)]
    weights = np.full((n, n), -np.inf)
    for u, v in edges:
        weights[u, v] = weights[v, u] = rng.normal()
    block = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights).block(X)
    for root in range(n):  # any direction of the edges
        parents = [()] * n
        reached = [root]
        for k in reached:
            for u, v in edges:
                other = {u: v, v: u}.get(k)
                if other is not None and other not in reached:
                    parents[other] = (k,)
                    reached.append(other)
        net = DirichletBayesNet(
            [
                oracle._table(tables, k, parents[k][0] if parents[k] else None)
                for k in range(n)
            ],
            parents,
            sizes,
        ).block(X)
        a = inside(rng, net)
        agree(block.log_partition(a), net.log_partition(a), 1e-10, np.abs(a).sum())
        agree(block.mean(a), net.mean(a), 1e-10)
        step = rng.normal(size=9)
        F, G = block.hessian_factor(a), net.hessian_factor(a)
        agree(F @ F.T, G @ G.T, 1e-9)
        # tables of the net are empty where no row goes; those of pairs are not
        assert block.max_step(a, step) <= net.max_step(a, step) * (1 + 1e-12)


@KINDS
def test_prior_without_rows_has_all_trees_alike(kind, rng):
    sizes = [2, 3, 2, 4, 3]
    X = np.column_stack([rng.integers(0, r, size=6) for r in sizes])
    prior = (
        SpanningTrees.fit(X, n_categories=sizes)
        if kind == "fixed"
        else DirichletTrees(1.0, sizes)
    )
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(prior.edge_probabilities[off], 2 / 5, rtol=1e-12)
    moved = prior.posterior(X, 0.1 * np.ones(6)).edge_probabilities
    assert moved.sum() == pytest.approx(8.0, rel=1e-12)
    assert (moved == moved.T).all() and (moved >= 0).all() and (moved <= 1).all()


@KINDS
def test_heavy_rows_leave_the_most_likely_tree(kind, rng):
    """With many rows of its own, a class's distribution ends at its Chow-Liu tree."""
    n = 5
    X = rng.integers(0, 3, size=(60, n))
    for k in range(1, n):  # a chain, weaker from link to link
        copy = rng.random(60) < 0.95 - 0.1 * k
        X[copy, k] = X[copy, k - 1]
    tree = chow_liu_tree(X, ess=1.0, n_categories=3)
    prior = (
        SpanningTrees.fit(X, n_categories=[3] * n)
        if kind == "fixed"
        else DirichletTrees(1.0, [3] * n)
    )
    posterior = prior.posterior(X, np.full(60, 2000.0))
    np.testing.assert_array_equal(posterior.best_tree, tree)
    assert posterior.edge_probabilities[tree[:, 0], tree[:, 1]].min() > 0.99
    trees = posterior.sample_trees(5, random_state=0)
    assert (trees == tree).all()


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
    found = AllEdges(weights)
    assert np.linalg.eigvalsh(found.matrix).min() > -1e-13
    if spread > 300.0:  # weights further apart than exp(600) are brought nearer
        return
    _, shares = distribution(weights)
    trees = all_trees(n)
    inside_tree = np.zeros((len(trees), n, n))
    at = np.arange(len(trees))[:, None]
    inside_tree[at, trees[..., 0], trees[..., 1]] = 1.0
    indicator = inside_tree[:, found.edges[0], found.edges[1]]
    mean = shares @ indicator
    want = (indicator.T * shares) @ indicator - np.outer(mean, mean)
    np.testing.assert_allclose(found.matrix, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [5, 30])
def test_both_covariances_of_edges_agree(n, rng):
    weights = rng.normal(size=(n, n))
    weights = weights + weights.T
    np.fill_diagonal(weights, -np.inf)
    weights[0, 1] = weights[1, 0] = -np.inf
    f = rng.normal(size=(n, n))
    f = f + f.T
    np.fill_diagonal(f, 0.0)
    few, many = AllEdges(weights), ManyEdges(weights)
    agree(many.product(f), few.product(f), 1e-10)
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


def test_differences_of_log_gamma_do_not_cancel(rng):
    mpmath = pytest.importorskip("mpmath")
    x = 10.0 ** rng.uniform(-3, 9, size=200)
    d = x * rng.uniform(-0.9, 3.0, size=200) * 10.0 ** rng.uniform(-12, 0, size=200)
    found = log_gamma_rise(x, d)
    with mpmath.workdps(40):
        want = [
            float(mpmath.loggamma(mpmath.mpf(p) + mpmath.mpf(q)) - mpmath.loggamma(p))
            for p, q in zip(x, d)
        ]
    # x + d is rounded before anything else: the slope of log Gamma carries that on
    slack = 1e-14 * (1.0 + np.abs(want)) + 4e-16 * x * np.abs(np.log(x) + 2.0)
    assert (np.abs(found - want) <= slack).all()
    assert (log_gamma_rise(x, np.zeros(200)) == 0).all()
    far = x > 1e6
    plain = np.abs(gammaln(x + d) - gammaln(x) - want)
    assert plain[far].max() > np.abs(found - want)[far].max()


# ---------------------------------------------------------------------- missing values


def test_a_missing_value_leaves_out_every_factor_that_it_enters(rng):
    prior, X, a, _ = make("fixed", rng, 4)
    posterior = prior.posterior(X, a)
    gone = X.copy()
    gone[:, 1] = -1
    rest = [0, 2, 3]
    letters = Letters(prior.n_categories)
    p = posterior.edge_probabilities
    want = np.zeros(len(X))
    for t, row in enumerate(X):
        at = letters.offset[:-1] + row
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


@pytest.mark.filterwarnings("ignore:.*nothing was learnt:UserWarning")
@KINDS
def test_specifications_and_files_make_equal_priors_again(kind, rng, tmp_path):
    prior, X, a, _ = make(kind, rng, 4)
    posterior = prior.posterior(X, a)
    again = type(posterior)(**posterior.get_spec())
    agree(again.expected_log_prob(X), posterior.expected_log_prob(X), 1e-12)
    assert type(posterior).__name__ in repr(posterior)
    for value in posterior.get_spec().values():
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0
    model = MEDOutlierDetector(prior).fit(X)
    save(model, tmp_path / "model.npz")
    back = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))


# -------------------------------------------------------------------------- wrong input

SINGLE = np.log([0.5, 0.5, 0.3, 0.7])


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [4]), "two or more columns"),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [2, 3]),
            r"log_marginals.*\(5,\)",
        ),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((3, 3)), [2, 2]),
            r"log_ratios.*\(4, 4\)",
        ),
        (
            lambda: SpanningTrees(SINGLE - np.inf, np.zeros((4, 4)), [2, 2]),
            "log_marginals",
        ),
        (lambda: SpanningTrees(SINGLE, np.eye(4) * np.nan, [2, 2]), "log_ratios"),
        (
            lambda: SpanningTrees(SINGLE, np.triu(np.ones((4, 4))), [2, 2]),
            r"log_ratios is not symmetric: log_ratios\[0, 1\]=1",
        ),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [2, 2], np.zeros((2, 2))),
            r"log_weights\[0, 0\]=0 joins",
        ),
        (
            lambda: SpanningTrees(
                SINGLE, np.zeros((4, 4)), [2, 2], np.full((2, 2), -np.inf)
            ),
            "no spanning tree",
        ),
        (lambda: DirichletTrees(0.0, [2, 2]), "pseudo_counts=0.0 must be"),
        (lambda: DirichletTrees(-1.0, [2, 2]), "pseudo_counts"),
        (lambda: DirichletTrees(np.nan, [2, 2]), "pseudo_counts"),
        (lambda: DirichletTrees(1.0, [2]), "two or more columns"),
        (lambda: DirichletTrees(1.0, [2, 0]), "n_categories=0"),
        (lambda: DirichletTrees(1.0, [2, 10**5]), "n_categories=100000 of column 1"),
        (lambda: DirichletTrees(np.ones((3, 3)), [2, 2]), r"pseudo_counts.*\(4, 4\)"),
        (
            lambda: DirichletTrees(np.zeros((4, 4)), [2, 2]),
            r"pseudo_counts\[0, 0\]=0 is not > 0",
        ),
        (
            lambda: DirichletTrees(np.kron(np.eye(2), np.eye(2)) + 0.1, [2, 2]),
            "pseudo_counts do not agree: letter 0 of column 0",
        ),
        (lambda: SpanningTrees.fit([[0, 1]], ess=-1.0), "ess=-1.0"),
        (lambda: SpanningTrees.fit([[0, 1.5]]), "integer codes"),
        (lambda: SpanningTrees.fit([[0], [1]]), "two or more columns"),
        (lambda: SpanningTrees.fit([0, 1]), r"X has shape \(2,\)"),
        (lambda: SpanningTrees.fit([[0, 2]], n_categories=[2, 2]), r"X\[0, 1\] = 2"),
        (
            lambda: SpanningTrees.fit([[0, -1]], n_categories=[2, 2]),
            "without a missing value",
        ),
        (
            lambda: SpanningTrees.fit([[0, 1], [1, 0]], ess=0),
            "columns 0 and 1 empty at letter 0 with letter 0.*ess > 0",
        ),
    ],
)
def test_wrong_parameters_are_named(build, match):
    refused(build, match)


def test_tables_beyond_the_memory_are_refused_before_they_are_made():
    with pytest.raises(MemoryError, match="n_categories of 3000 columns"):
        DirichletTrees(1.0, [1000] * 3000)


@KINDS
def test_rows_and_weights_that_do_not_fit_are_named(kind, rng):
    prior, X, _, _ = make(kind, rng, 3)
    refused(lambda: prior.block(X[:, :2]), r"\bX\b.*3 categorical features")
    refused(lambda: prior.block(X + 0.5), "integer codes")
    refused(lambda: prior.block(X + 9), r"X\[0, 0\] = ")
    refused(lambda: prior.block(X, np.ones(3)), "base_weight")
    refused(lambda: prior.posterior(X, np.full(9, np.nan)), "weight")


def test_rows_that_take_too_much_are_named_by_their_cell():
    X = np.array([[0, 1], [1, 0]])
    prior = DirichletTrees(1.0, [2, 2])
    refused(
        lambda: prior.block(X, [-1.0, 0.0]),
        "letter 0 of column 0 with letter 1 of column 1 at or below zero",
    )
    refused(lambda: prior.posterior(X, [-1.0, 0.0]), "no posterior at these weights")
