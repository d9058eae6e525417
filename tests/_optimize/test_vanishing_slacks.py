"""Cells of random tables that the optimum uses up, against every tree one by one."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.block_cases import agree
from oracles.tree_classifiers import structure_prior
from oracles.tree_problems import make, trained
from oracles.used_up import EveryTree, divergence, expected_logs, posterior

import maxent
from maxent import MEDTreeClassifier
from maxent._optimize.bias import balanced_hinges, best_bias_of
from maxent._optimize.block_sum import BlockSum
from maxent._optimize.certificate import repair_equality
from maxent._optimize.projected_newton import projected_newton
from maxent._optimize.rows import Rows
from maxent._optimize.vanishing_slacks import _Holding, _Slacks
from maxent.discrimination import (
    CustomMargin,
    ExponentialMargin,
    HingeMargin,
    LogisticMargin,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.families import Block


def overlapping(rows, columns, letters=4, seed=1, copied=3):
    """Rows of two classes that nothing separates, beside copied columns."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, letters, (rows, columns)), rng.integers(0, 2, rows)
    own = y == 1
    copies = rng.random((own.sum(), copied)) < 0.6
    X[own, 1 : 1 + copied] = np.where(copies, X[own, :1], X[own, 1 : 1 + copied])
    return X, y


def two_copies():
    """Five columns, two of them copies, one in each class: few trees to list."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, (200, 5)), rng.permutation(np.arange(200) % 2)
    for k, (u, v) in ((1, (1, 0)), (0, (3, 2))):
        copied = (y == k) & (rng.random(200) < 0.8)
        X[copied, u] = X[copied, v]
    return X, y


SOLVED = pytest.mark.parametrize(
    ("prior", "level"),
    [
        (ExponentialMargin(5.0), 60.0),
        (LogisticMargin(5.0), 10.0),
        (LogisticMargin(5.0), 60.0),
    ],
    ids=["exponential", "logistic", "far"],
)


def primal_value(problem, posteriors, bias, X, prior, level):
    """Primal objective of posteriors and biases, tree by tree."""
    blocks, maps, E, _ = problem
    margins, apart = E @ bias, 0.0
    for block, value, A in zip(blocks, posteriors, maps, strict=True):
        start = block.posterior(np.zeros(len(X)))
        trees = EveryTree(start.pseudo_counts, start.n_categories, start.log_weights)
        # the prior of the block is what its class's rows have made of all trees alike
        trees.counts = block.prior.pseudo_counts
        before = structure_prior(block.prior.log_weights)
        _, before = posterior(trees, start.pseudo_counts, before)
        trees.counts = start.pseudo_counts
        after, log_p = posterior(trees, value.pseudo_counts, before)
        apart += divergence(trees, before, after, log_p)
        logs = expected_logs(after, log_p, X)
        agree(value.expected_log_prob(X), logs, 1e-9)
        margins = margins + A.T @ logs
    return apart + float(prior.with_level(level).loss(margins).sum())


@SOLVED
def test_certificate_is_the_primal_value_of_what_is_returned(prior, level):
    X, y = two_copies()
    problem = trained(X, y, "dirichlet", prior, level, "flat", ess=0.3)
    _, maps, _, found = problem
    assert found.converged and found.blocks is not None
    assert found.history[-1] == (found.n_iter, found.objective, found.gap)
    posteriors = [
        block.posterior(A @ found.lam)
        for block, A in zip(found.blocks, maps, strict=True)
    ]
    primal = primal_value(problem, posteriors, found.bias, X, prior, level)
    scale = 1.0 + found.objective
    assert primal - found.objective == pytest.approx(found.gap, abs=2e-9 * scale)
    assert primal - found.objective <= 1.1e-8 * scale


@pytest.mark.parametrize("away", [1e-6, 3e-6])
def test_multipliers_that_leave_more_than_the_posteriors_pay_for_it(away):
    X, y = two_copies()
    prior, level = LogisticMargin(5.0), 60.0
    blocks, maps, E, found = trained(X, y, "dirichlet", prior, level, "flat", ess=0.3)
    R, n = BlockSum(blocks, maps), len(y)
    rows = Rows(prior.unit_potential, np.full(n, level), np.full(n, 5.0), np.ones(n))
    left = [block.slacks(A @ found.lam) for block, A in zip(blocks, maps, strict=True)]
    lefts = np.concatenate(left)
    held = lefts <= np.sort(lefts)[1]  # those that the optimum uses up
    holding = _Holding(rows, R, E, _Slacks(R), held, lefts, found.lam)
    holding.aim()
    holding.total[-held.sum() :] -= away
    lam = repair_equality(found.lam, rows.upper, holding.E, holding.total)
    _, gap = holding.certificate(replace(found, lam=lam))
    d = rows.q - holding.R.value_and_margins(lam)[1] - E @ found.bias
    apart = 0.0
    for block, other, A in zip(blocks, holding.R.blocks, maps, strict=True):
        alike, a = block.prior, A @ lam
        trees = EveryTree(alike.pseudo_counts, alike.n_categories, alike.log_weights)
        start = structure_prior(alike.log_weights)
        by_lam = posterior(trees, block.posterior(a).pseudo_counts, start)
        by_left = posterior(trees, other.posterior(a).pseudo_counts, start)
        apart += divergence(*by_lam, *by_left)
    assert gap - rows.gap(lam, d) == pytest.approx(apart, rel=1e-2)
    assert apart > 5.0 * away


def drawn(seed):
    """A random problem: rows, settings."""
    rng = np.random.default_rng(seed)
    T = int(rng.choice([12, 30, 80, 200, 400], p=[0.2, 0.25, 0.3, 0.2, 0.05]))
    n = int(rng.integers(2, 16))
    X = np.column_stack([rng.integers(0, k, T) for k in rng.integers(2, 6, n)])
    m = int(rng.choice([2, 2, 3]))
    y = rng.integers(0, m, T)
    y[:m] = range(m)
    own = y == 1
    X[own, 1] = np.where(rng.random(own.sum()) < 0.7, X[own, 0], X[own, 1])
    C, level = float(10 ** rng.uniform(-0.5, 2.3)), float(10 ** rng.uniform(0, 2))
    names = ["exponential", "logistic", "hinge", "erlang", "laplace", "gaussian"]
    margin, bias = str(rng.choice(names)), [None, "flat", 1.0][rng.integers(3)]
    ess = float(10 ** rng.uniform(-1, 1.5))
    model = MEDTreeClassifier(
        "dirichlet", C=C, level=level, margin=margin, bias=bias, ess=ess
    )
    return model, X, y


# among a thousand these are some at which Newton steps stall
@pytest.mark.parametrize("seed", [99, 107, 1048])
def test_the_interior_point_goes_on_where_newton_steps_stall(seed):
    model, X, y = drawn(seed)
    assert len(X) == 80 and model.fit(X, y).converged_
    assert len(model.objective_history_) > 20
    assert model.objective_history_[-1] == model.objective_


@pytest.mark.parametrize("margin", ["exponential", "erlang", "hinge", "logistic"])
@pytest.mark.parametrize(("C", "level"), [(1.0, 10.0), (5.0, 30.0), (20.0, 30.0)])
def test_levels_beyond_reach_converge(margin, C, level):
    X, y = overlapping(200, 12)
    model = MEDTreeClassifier("dirichlet", C=C, level=level, margin=margin).fit(X, y)
    assert model.converged_
    steps, J = model.n_iter_, model.objective_
    assert steps < 150 and J > 0


@pytest.mark.parametrize("bias", [None, 1.0])
def test_without_a_flat_bias_too(bias):
    X, y = overlapping(200, 12)
    for margin in ("exponential", "logistic"):
        model = MEDTreeClassifier(
            "dirichlet", level=30.0, margin=margin, bias=bias
        ).fit(X, y)
        assert model.converged_
        assert model.intercept_.shape == (1,)
        assert model.score(X, y) > 0.9


def test_three_classes(rng):
    X, y = overlapping(200, 8)
    y = np.where(rng.random(200) < 0.3, 2, y)
    model = MEDTreeClassifier("dirichlet", level=30.0, margin="logistic").fit(X, y)
    assert model.converged_


def test_models_are_saved_with_what_is_left(tmp_path):
    X, y = overlapping(200, 12)
    model = MEDTreeClassifier("dirichlet", level=30.0).fit(X, y)
    least = min(p.pseudo_counts[p._cells].min() for p in model.posteriors_)
    assert 0 < least < 1e-12
    maxent.save(model, tmp_path / "model.maxent")
    again = maxent.load(tmp_path / "model.maxent")
    agree(again.decision_function(X), model.decision_function(X), 1e-12)
    for p in model.posteriors_:
        assert (p.pseudo_counts == p.pseudo_counts.T).all() and p._held is None


# ------------------------------------------------------------------ what is held


@pytest.fixture
def held(rng):
    """A block, the same with three slacks held, and weights inside the domain."""
    prior, X, a, _ = make("dirichlet", rng, 4)
    block = prior.block(X)
    sizes = np.array(prior.n_categories)
    column = np.repeat(np.arange(4), sizes)
    u, _ = (column[i] for i in np.nonzero(block.posterior(a)._cells))
    at = np.array([0, 1, len(u) - 1])  # two on one edge, if its table has two
    left = block.slacks(a)[at] * np.array([1e-3, 2e-3, 1e-3])
    return block, block.holding(at, left), at, left, a


def test_held_slacks_stay_what_they_are(held):
    block, holding, at, left, a = held
    others = np.delete(block.slacks(a), at)
    np.testing.assert_array_equal(holding.slacks(a), others)
    counts = holding.posterior(a).pseudo_counts
    np.testing.assert_array_equal(counts[block.posterior(a)._cells][at], left)
    # held at what is there anyway, nothing changes
    same = block.holding(at, block.slacks(a)[at])
    agree(same.log_partition(a), block.log_partition(a), 1e-13, 1.0)
    agree(same.mean(a), block.mean(a), 1e-12)


def test_gradients_of_what_is_held(held):
    block, holding, at, _, _ = held
    G = holding.held_gradient()
    for x in np.eye(len(G)):
        np.testing.assert_allclose(x @ G, block.slack_changes(x)[at], atol=1e-15)


def test_prices_are_the_slopes_of_log_z(held):
    block, holding, at, left, a = held
    for k, price in enumerate(holding.held_prices(a)):
        h = 1e-5 * left[k] * (np.arange(len(at)) == k)
        up, down = (block.holding(at, left + s * h).log_partition(a) for s in (1, -1))
        # counts of letters and of rows stay, so that this slope is that of the cell
        assert (down - up) / (2 * h[k]) == pytest.approx(price, rel=1e-6)


@pytest.fixture(scope="module")
def solved():
    """The block that the optimum holds two slacks of, and weights."""
    X, y = two_copies()
    _, maps, _, found = trained(
        X, y, "dirichlet", LogisticMargin(5.0), 60.0, "flat", ess=0.3
    )
    (holding,) = (block for block in found.blocks if hasattr(block, "left"))
    return holding, maps[found.blocks.index(holding)] @ found.lam


def test_what_is_left_has_the_prices_asked_for(solved):
    holding, a = solved
    assert len(holding.left) > 1
    wanted = holding.held_prices(a) * np.linspace(0.2, 3.0, len(holding.left))
    value = holding.prior
    for _ in range(4):
        left = holding.left_for(a, wanted)
        # the held ones are next to each other, and no others are open
        value._held.left, holding.left, holding._last = left, left, []
    np.testing.assert_allclose(holding.held_prices(a), wanted, rtol=1e-9)


def test_hessian_along_moves_that_keep_what_is_held(solved):
    holding, a = solved
    G = holding.held_gradient()
    keep = np.eye(len(a)) - G @ np.linalg.pinv(G)
    H = np.column_stack([holding.hessian_product(a, x) for x in np.eye(len(a))])
    scale = np.abs(H).max()
    agree(H, H.T, 1e-12, scale)
    F = holding.hessian_factor(a)
    agree(F @ F.T, H, 1e-11, scale)
    rng, h = np.random.default_rng(0), 1e-9
    for x in (keep @ rng.normal(size=(len(a), 3))).T:
        slope = (holding.mean(a + h * x) - holding.mean(a - h * x)) / (2 * h)
        agree(keep @ slope, keep @ H @ x, 1e-5, np.abs(keep @ H @ x).max())


def test_priors_without_slacks_hold_nothing(rng):
    prior, X, _, _ = make("fixed", rng, 4)
    assert prior.block(X).holding(np.zeros(0, dtype=int), np.zeros(0)) is None


def test_factors_with_a_curvature_along_the_slacks(rng):
    prior, X, a, _ = make("dirichlet", rng, 4)
    block = prior.block(X)
    curvature = rng.uniform(0.0, 3.0, len(block.slacks(a)))
    S = np.column_stack([block.slack_gradient(e) for e in np.eye(len(curvature))])
    F = block.hessian_factor(a)
    wanted = F @ F.T + (S * curvature) @ S.T
    for found in (
        block.barrier_factor(a, curvature),
        Block.barrier_factor(block, a, curvature),
    ):
        agree(found @ found.T, wanted, 1e-11, np.abs(wanted).max())
    R = BlockSum([block], [np.eye(len(a))])
    rhs = rng.normal(size=len(a))
    x = R.solver(a, np.ones(len(a)), curvatures=[curvature])(rhs)
    agree(wanted @ x + x, rhs, 1e-9, 1.0)
    by_steps = R._conjugate_gradients(a, np.ones(len(a)), slice(None), [curvature])
    agree(by_steps(rhs), x, 1e-6, 1.0)


# ----------------------------------------------------- equalities with a total


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("margin", [ExponentialMargin(2.0), LogisticMargin(2.0)])
def test_biases_are_the_prices_of_totals(margin, k, rng):
    n = 60
    rows = Rows(margin.unit_potential, np.full(n, 1.0), np.full(n, 2.0), np.ones(n))
    E, d = rng.integers(0, 2, (n, k)).astype(float), 3.0 * rng.normal(size=n)
    lam = rng.uniform(0.2, 0.8, n) * rows.upper
    for guess in (np.zeros(k), np.full(k, -500.0)):
        b = best_bias_of(rows, d, E, guess, E.T @ lam)
        asked = rows.loss(d - E @ b)[1]
        agree(E.T @ asked, E.T @ lam, 1e-6, n)


def test_totals_of_hinges(rng):
    n = 40
    rows = Rows.of(HingeMargin(), np.full(n, 2.0))
    E, d = rng.integers(0, 2, (n, 2)).astype(float), rng.normal(size=n)
    total = E.T @ (rng.random(n) * rows.upper)
    b, lam = balanced_hinges(rows, d, E, total)
    agree(E.T @ lam, total, 1e-9, n)
    assert rows.gap(lam, d - E @ b) <= 1e-9


def test_totals_are_restored_or_refused(rng):
    E, lam = rng.integers(0, 2, (30, 2)).astype(float), rng.uniform(0.5, 1.0, 30)
    total = 1.01 * (E.T @ lam)
    fixed = repair_equality(lam, np.full(30, 5.0), E, total)
    agree(E.T @ fixed, total, 1e-13)
    assert repair_equality(lam, np.full(30, 5.0), E, 10.0 * total) is None
    one = E[:, :1]
    assert repair_equality(lam, np.full(30, 5.0), one, 10.0 * (one.T @ lam)) is None


def test_a_start_that_cannot_be_balanced_is_given_back(rng):
    X, y = overlapping(30, 3, copied=2)
    blocks, maps, E, _ = trained(X, y, "dirichlet", ExponentialMargin(5.0), 3.0, "flat")
    n = len(y)
    rows = Rows.of(ExponentialMargin(5.0, 3.0), np.ones(n))
    R = BlockSum(blocks, maps)
    start = np.full(n, 0.1)
    found = projected_newton(
        rows, R, E, tol=1e-8, max_iter=9, init=start, total=np.full(1, 1e3)
    )
    assert found.status.value == "stalled" and found.gap == np.inf
    np.testing.assert_array_equal(found.lam, start)


# ------------------------------------------------------------- ends of entropies


def binary_entropy(rate):
    """The logistic margin prior of a rate, from its functions."""

    def potential(u):
        u = u / rate
        if u <= 0.0 or u >= 1.0:
            return 0.0
        return -u * np.log(u) - (1.0 - u) * np.log1p(-u)

    def mean(u):
        return (np.log1p(-u / rate) - np.log(u / rate)) / rate

    def curvature(u):
        u = u / rate
        return 1.0 / (u * (1.0 - u)) / rate**2

    return CustomMargin(potential, mean, curvature, upper=rate)


def test_an_entropy_of_ones_own_has_a_slack_at_its_end(rng):
    X, y = rng.integers(0, 3, size=(40, 4)), np.arange(40) % 2
    for level in (4.0, 8.0, 30.0):
        blocks, maps, E, found = trained(
            X, y, "fixed", LogisticMargin(10.0), level, "flat"
        )
        own = solve_blocks(
            blocks,
            maps,
            binary_entropy(10.0),
            bias="flat",
            incidence=E,
            level=np.full(len(y), level),
        )
        assert found.converged and own.converged and own.n_iter < 40
        assert own.objective == pytest.approx(found.objective, rel=1e-7)
