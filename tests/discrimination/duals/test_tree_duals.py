"""Duals over trees: optima by other means, and the largest margin."""

import numpy as np
import pytest
from oracles import block_dual as dual_oracle
from oracles import tree_classifiers as oracle
from oracles.block_cases import agree
from oracles.spanning_trees import all_trees
from oracles.tree_problems import categories, classes
from refusals import refused
from scipy.special import logsumexp

from maxent import MEDTreeClassifier
from maxent._optimize.hessian_products import FreeHessian
from maxent._support.results import Status
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    LaplaceMargin,
    LogisticMargin,
    SpanningTrees,
    max_margin,
    solve_blocks,
)
from maxent.discrimination.duals import block_dual
from maxent.discrimination.duals.class_pairs import MulticlassRows, class_maps

KINDS = pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
# easy levels in some tests; one test asserts the warning itself


# ---------------------------------------------------------------- optima by other means


@pytest.mark.parametrize(
    "prior",
    [ExponentialMargin(5.0, 3.0), LaplaceMargin(2.0, 3.0), GaussianMargin(1.5, 3.0)],
    ids=lambda p: p.name,
)
def test_the_dual_is_the_least_relative_entropy_over_all_trees(prior, rng):
    listed, blocks, maps, _ = classes(rng)
    want = oracle.primal(listed, maps, prior, 3.0)
    found = solve_blocks(
        blocks,
        maps,
        prior,
        sample_weight=np.ones(12),
        level=np.full(12, 3.0),
        tol=1e-11,
        max_iter=500,
    )
    assert found.converged and found.objective > 0.01
    # SLSQP's own tolerance
    assert found.objective == pytest.approx(want, rel=1e-6)
    assert found.objective <= want + 1e-8


@KINDS
@pytest.mark.parametrize("bias", [None, 2.0, "flat"])
def test_both_solvers_and_a_general_one_agree(parameters, bias, rng):
    X, y = categories(rng, 16, 3)
    sign = np.where(y == 1, 1.0, -1.0)
    at = 9.0 if parameters == "fixed" else 12.0  # more than any seed meets untrained
    model = MEDTreeClassifier(parameters, bias=bias, level=at, tol=1e-11).fit(X, y)
    blocks = model._class_blocks(X, y, np.ones(16))
    maps = [np.diag(-sign), np.diag(sign)]
    prior, level, one = ExponentialMargin(5.0), np.full(16, at), np.ones(16)
    other = solve_blocks(
        blocks,
        maps,
        prior,
        bias=bias,
        incidence=sign,
        level=level,
        solver="interior",
        tol=1e-11,
    )
    assert model.objective_ > 0.01
    agree(model.objective_, other.objective, 1e-9)
    E = sign[:, None]
    if parameters == "dirichlet":  # whose boundary the general solver runs into
        return
    general = dual_oracle.solve(blocks, maps, prior, level, one, bias, E)
    value = general[0] if isinstance(general, tuple) else general
    agree(model.objective_, np.max(value), 1e-6)
    if bias is not None:
        b = np.ravel(other.bias)[0]
        assert model.intercept_[0] == pytest.approx(b, rel=1e-3, abs=1e-3)


@KINDS
@pytest.mark.parametrize("structures", ["uniform", "posterior"])
def test_trees_start_from_the_structures_asked_for(parameters, structures, rng):
    """Objective and posterior by sums over the list of all trees."""
    X, y = categories(rng, 16, 4)
    level, C, sign = 12.0, 2.0, np.where(y == 1, 1.0, -1.0)
    model = MEDTreeClassifier(
        parameters, C, structures=structures, level=level, bias=None, tol=1e-11
    ).fit(X, y)
    assert model.converged_ and model.objective_ > 0.01
    lam = np.zeros(16)
    lam[model.support_] = np.abs(model.dual_coef_[0])
    sizes, edges = [len(c) for c in model.categories_], all_trees(4)
    codes = model._encode(X)
    want = np.sum(level * lam + np.log1p(-lam / C))
    for k, side in enumerate((-1.0, 1.0)):
        own = (y == k).astype(float)
        nothing = oracle.pair_tables(codes, 0.0 * own, sizes, 1.0)
        tables = oracle.pair_tables(codes, own, sizes, 1.0)
        logs = oracle.tree_log_probs(tables, codes, 4)
        log_prior = np.zeros(len(logs))
        if structures == "posterior":  # by the evidence of the rows of the class
            log_prior = (
                logs @ own
                if parameters == "fixed"
                else oracle.dirichlet_log_partitions(nothing, codes, own, 4)
            )
        log_prior = log_prior - logsumexp(log_prior)
        a = side * sign * lam
        rise = (
            logs @ a
            if parameters == "fixed"
            else oracle.dirichlet_log_partitions(tables, codes, a, 4)
        )
        log_z = logsumexp(log_prior + rise)
        want -= log_z
        p = np.exp(log_prior + rise - log_z)
        marginals = np.zeros((4, 4))
        for tree, probability in zip(edges, p, strict=True):
            for u, v in tree:
                marginals[u, v] += probability
        np.testing.assert_allclose(
            np.triu(model.edge_probabilities_[k]), marginals, atol=1e-8
        )
    assert model.objective_ == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("m", [2, 3])
def test_the_ascent_finds_flat_biases_by_itself(m, rng):
    X, y = categories(rng, 60, 4, m)
    blocks = [
        SpanningTrees.fit(X[y == k], n_categories=[3] * 4).block(X) for k in range(m)
    ]
    rows = MulticlassRows(y, m, ExponentialMargin(5.0), np.ones(60))
    options = {
        "bias": "flat",
        "incidence": rows.incidence(),
        "sample_weight": rows.rows.weight,
        "level": np.full(len(rows.example), 3.0),
    }
    maps = class_maps(rows)
    found = solve_blocks(
        blocks, maps, ExponentialMargin(5.0), tol=1e-9, max_iter=300, **options
    )
    options |= {"solver": "interior", "tol": 1e-9}
    want = solve_blocks(blocks, maps, ExponentialMargin(5.0), **options)
    assert found.solver == "newton" and found.converged and want.objective > 0.1
    agree(found.objective, want.objective, 1e-8)
    agree(found.bias, want.bias, 1e-3, 1.0)
    assert np.abs(rows.incidence().T @ found.lam).max() < 1e-9


def test_the_ascent_gets_on_next_to_the_boundary(rng):
    """Levels at the end of what prior counts can pay for: next to the boundary."""
    X, y = categories(rng, 40, 4)
    model = MEDTreeClassifier("dirichlet", C=1.0, level=30.0, bias=None).fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-8 * (1.0 + model.objective_)


@KINDS
def test_two_classes_are_the_smallest_case_of_many(parameters, rng):
    """A third class far away leaves the other two alone."""
    X, y = categories(rng)
    far = rng.integers(3, 6, size=(12, 4))
    two = MEDTreeClassifier(parameters, level=3.0, tol=1e-10)
    two.fit(np.concatenate([X, far[:0]]), y)
    three = MEDTreeClassifier(parameters, level=3.0, tol=1e-10)
    three.fit(np.concatenate([X, far]), np.concatenate([y, np.full(12, 2)]))
    # the categories of the third class change the smoothing of the tables: same data
    encoded = three._encode(X.astype(X.dtype))
    sizes = [len(c) for c in three.categories_]
    alone = MulticlassRows(y, 2, ExponentialMargin(5.0), np.ones(len(y)))
    blocks = []
    for k in (0, 1):
        own = (y == k).astype(float)
        if parameters == "fixed":
            prior = SpanningTrees.fit(encoded, own, n_categories=sizes)
            blocks.append(prior.block(encoded))
        else:
            blocks.append(DirichletTrees(1.0, sizes).block(encoded, own))
    want = solve_blocks(
        blocks,
        class_maps(alone),
        ExponentialMargin(5.0),
        bias="flat",
        incidence=alone.incidence(),
        level=np.full(len(y), 3.0),
        solver="interior",
        tol=1e-10,
    )
    agree(three.objective_, want.objective, 1e-6)
    assert two.objective_ > 0 and set(three.support_) <= set(range(len(y)))


@KINDS
def test_margins_on_the_support_are_those_the_prior_pays_for(parameters, rng):
    X, y = categories(rng)
    model = MEDTreeClassifier(parameters, C=2.0, level=4.0, tol=1e-11).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    margins = sign * model.decision_function(X)
    prior = ExponentialMargin(2.0, 4.0)
    lam = np.zeros(len(y))
    lam[model.support_] = np.abs(model.dual_coef_[0])
    on = lam > 1e-5
    assert on.sum() > 3
    agree(margins[on], prior.mean(lam[on]), 1e-3)
    assert (margins[~on] > prior.prior_mean - 1e-3).all()
    assert prior.fenchel_young(lam, margins).sum() <= 1e-6 * (1 + model.objective_)
    assert sign @ lam == pytest.approx(0.0, abs=1e-8)


# --------------------------------------------------------------------- largest margin


@pytest.mark.parametrize("bias", [None, "flat"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_largest_margin_is_that_of_a_program_over_all_trees(n, bias, rng):
    for _ in range(4):
        listed, blocks, maps, y = classes(rng, n)
        E = None if bias is None else y[:, None]
        want = oracle.largest_margin(listed, maps, E)
        found = max_margin(blocks, maps, bias=bias, incidence=E, tol=1e-9)
        assert found.converged
        # the tolerance of the linear programs
        assert found.lower - 1e-6 <= want <= found.upper + 1e-6
        assert found.upper - found.lower <= 1e-6 * (1 + abs(want))
        agree(found.shares.sum(), 1.0, 1e-12)
        # the shares prove the upper bound: no distribution does better on them
        best = sum((b.L @ (A @ found.shares)).max() for b, A in zip(listed, maps))
        assert best == pytest.approx(found.upper, abs=1e-9)


def test_fixed_margins_are_met_up_to_the_largest_one_and_refused_beyond(rng):
    X, y = categories(rng, 24)
    X[:, 3] = y  # separable
    sign = np.where(y == 1, 1.0, -1.0)
    for bias in (None, "flat"):
        model = MEDTreeClassifier(
            margin="fixed", level="0.8*max", bias=bias, tol=1e-6
        ).fit(X, y)
        assert model.level_ == pytest.approx(0.8 * model.max_margin_, rel=1e-12)
        margins = sign * model.decision_function(X)
        assert margins.min() >= model.level_ * (1 - 1e-6)
        assert np.isnan(model.loo_bound_)
        beyond = 1.01 * model.max_margin_
        refused(
            lambda b=bias, lv=beyond: MEDTreeClassifier(
                margin="fixed", level=lv, bias=b
            ).fit(X, y),
            rf"beyond the largest margin .*{model.max_margin_:.6g} nats.*'0.8\*max'",
        )
    # multipliers are far out there, and digits fewer
    most = MEDTreeClassifier(margin="fixed", level="max", bias=None, tol=1e-5)
    most.fit(X, y)
    assert most.level_ == pytest.approx(0.95 * most.max_margin_)
    assert most.score(X, y) == 1.0


def test_a_share_of_a_margin_that_is_not_there_is_refused(rng):
    X = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1], [0, 1]])
    y = np.array([0, 1, 0, 1, 0, 1])  # equal rows in both classes
    refused(
        lambda: MEDTreeClassifier(margin="fixed", level="0.5*max").fit(X, y),
        "largest margin that all rows can meet is .*cannot be separated",
    )


def test_the_largest_margin_is_for_given_tables(rng):
    X, _ = categories(rng, 20)
    blocks = [DirichletTrees(1.0, [3] * 4).block(X) for _ in (0, 1)]
    refused(
        lambda: max_margin(blocks, [np.eye(20), np.eye(20)]),
        r"blocks\[0\].*no block of SpanningTrees",
    )


# ------------------------------------------------------------------ choice of solver


def two_sides(rng):
    X, y = categories(rng, 40, 4)
    sign = np.where(y == 1, 1.0, -1.0)
    blocks = [DirichletTrees(1.0, [3] * 4).block(X, y == k) for k in (1, 0)]
    return blocks, [np.diag(sign), np.diag(-sign)], sign


def test_cheap_products_take_newton_steps_unless_told_otherwise(rng):
    blocks, maps, sign = two_sides(rng)
    options = {"bias": "flat", "incidence": sign, "tol": 1e-10}
    prior = ExponentialMargin(5.0, 6.0)
    found = {
        solver: solve_blocks(blocks, maps, prior, solver=solver, **options)
        for solver in ("auto", "newton", "interior")
    }
    names = {solver: result.solver for solver, result in found.items()}
    assert names == {"auto": "newton", "newton": "newton", "interior": "interior"}
    agree(found["newton"].objective, found["interior"].objective, 1e-9)
    assert found["newton"].objective > 0.1


def test_infinite_slopes_and_losses_have_no_projected_newton_steps(rng):
    blocks, maps, _ = two_sides(rng)
    assert solve_blocks(blocks, maps, LogisticMargin(5.0, 3.0)).converged
    for prior in (LogisticMargin(5.0, 3.0), FixedMargin(0.5)):
        refused(
            lambda prior=prior: solve_blocks(blocks, maps, prior, solver="newton"),
            "solver='newton' is .*; use solver='interior'",
        )


def test_the_interior_point_goes_on_where_newton_steps_stall(rng, monkeypatch):
    blocks, maps, sign = two_sides(rng)
    solve, seen = block_dual.projected_newton, []

    def stalls(*args, max_iter, **options):
        found = solve(*args, max_iter=3, **options)
        found.status = Status.STALLED
        return found

    monkeypatch.setattr(block_dual, "projected_newton", stalls)
    found = solve_blocks(
        blocks,
        maps,
        ExponentialMargin(5.0, 6.0),
        bias="flat",
        incidence=sign,
        callback=lambda *step: seen.append(step),
    )
    assert found.converged and found.solver == "interior" and found.n_iter > 3
    steps = [n for n, *_ in found.history]
    assert steps[:4] == [1, 2, 3, 4] and steps == sorted(steps)
    assert found.history[-1] == (found.n_iter, found.objective, found.gap)
    assert seen == found.history


def test_newton_steps_end_where_products_are_too_many(rng, monkeypatch):
    """Also within one step, which may ask for thousands."""
    X, y = rng.integers(3, size=(1500, 8)), rng.integers(2, size=1500)
    solve, found = block_dual.projected_newton, []
    made, product = [], FreeHessian.product

    def recorded(*args, **options):
        found.append(solve(*args, **options))
        made.append("end")
        return found[-1]

    def counted(H, x):
        made.append("product")
        return product(H, x)

    monkeypatch.setattr(block_dual, "projected_newton", recorded)
    monkeypatch.setattr(block_dual, "_PRODUCTS", 40)
    monkeypatch.setattr(block_dual, "_PRODUCTS_SHARE", 0.0)
    monkeypatch.setattr(FreeHessian, "product", counted)
    model = MEDTreeClassifier(C=20.0).fit(X, y)
    (first,) = found
    assert first.status is Status.STALLED
    assert 40 <= made.index("end") < 60  # the step that meets the bound is ended
    assert model.converged_ and model.n_iter_ > first.n_iter
