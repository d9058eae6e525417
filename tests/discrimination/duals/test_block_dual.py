"""The dual over blocks against a general solver, and its own certificate."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import block_dual as oracle
from oracles.block_cases import agree, codes, spread
from oracles.block_problems import (
    BIASES,
    KINDS,
    N,
    gaussians,
    labels,
    pair,
    regressions,
    solved,
)
from problems import PRIORS, by_name
from refusals import refused

from maxent._optimize import block_sum
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.newton_system import NewtonSystem
from maxent.discrimination import (
    ExponentialMargin,
    FixedMargin,
    GaussianCentre,
    GaussianScores,
    LaplaceMargin,
    LogisticMargin,
    solve_blocks,
)
from maxent.families import (
    DirichletProduct,
    NormalInverseWishart,
)

# --------------------------------------------------------- agreement and certificate


# every pair of a kind, a prior and a bias
PAIRS = [
    pytest.param(kind, prior, BIASES[(i + j) % 3], id=f"{kind}-{by_name(prior)}")
    for i, kind in enumerate(KINDS)
    for j, prior in enumerate(PRIORS)
]


@pytest.mark.parametrize("kind, prior, bias", PAIRS)
def test_agrees_with_a_general_solver_and_certifies_it(kind, prior, bias, rng):
    y = labels()
    blocks, maps = KINDS[kind](rng, y)
    level = rng.uniform(1.0, 4.0, size=N)
    w = rng.choice([0.5, 1.0, 2.0], size=N)
    result = solved(
        blocks, maps, prior, y, bias, level=level, sample_weight=w, tol=1e-9
    )
    assert result.converged
    want = oracle.solve(blocks, maps, prior, level, w, bias, y[:, None])
    J = result.objective
    assert pytest.approx(want, abs=1e-7 * (1 + abs(want)) + result.gap) == J

    # everything again from the definitions
    variance = 0.0 if bias in (None, "flat") else bias
    lam = result.lam
    assert (lam >= 0).all() and (lam <= prior.upper * w).all()
    again = oracle.objective(lam, blocks, maps, prior, level, w, variance, y[:, None])
    agree(J, again, 1e-10, 1 + abs(again))
    m = oracle.margins(lam, blocks, maps)
    if bias == "flat":
        assert abs(y @ lam) <= 1e-12 * lam.sum()
    elif bias:
        agree(result.bias, [bias * (y @ lam)], 1e-12, 1.0)
    else:
        assert result.bias is None
    if bias:
        m = m + y * result.bias[0]
    gap = oracle.fenchel_young_gap(lam, m, prior, level, w)
    assert result.gap >= 0
    assert result.gap == pytest.approx(gap, rel=1e-3, abs=1e-12)
    assert result.gap <= 1e-9 * (1 + max(J, 0.0))


@pytest.mark.parametrize("prior", PRIORS, ids=by_name)
def test_three_classes_agree_with_a_general_solver(prior, rng):
    n, m = 12, 3
    codes_ = np.arange(n) % m
    X = spread(rng, n, 1) + codes_[:, None]
    model = NormalInverseWishart(np.zeros(1), 1.0, 3.0, np.eye(1))
    blocks = [model.block(X, 1.0 * (codes_ == k)) for k in range(m)]
    pairs = [(t, k) for t in range(n) for k in range(m) if k != codes_[t]]
    maps = [np.zeros((n, len(pairs))) for _ in range(m)]
    E = np.zeros((len(pairs), m))
    for r, (t, k) in enumerate(pairs):
        maps[codes_[t]][t, r], maps[k][t, r] = 1.0, -1.0
        E[r, codes_[t]], E[r, k] = 1.0, -1.0
    E = E[:, 1:]
    level, w = np.full(len(pairs), 2.0), np.ones(len(pairs))
    for bias in (None, 0.7):
        result = solve_blocks(
            blocks, maps, prior, bias=bias, incidence=E, level=level, tol=1e-9
        )
        assert result.converged
        want = oracle.solve(blocks, maps, prior, level, w, bias, E)
        assert result.objective == pytest.approx(want, abs=1e-6 * (1 + want))
    flat = solve_blocks(
        blocks, maps, prior, bias="flat", incidence=E, level=level, tol=1e-9
    )
    assert flat.converged and flat.bias.shape == (m - 1,)
    assert np.abs(E.T @ flat.lam).max() <= 1e-12 * flat.lam.sum()
    m_found = oracle.margins(flat.lam, blocks, maps) + E @ flat.bias
    gap = oracle.fenchel_young_gap(flat.lam, m_found, prior, level, w)
    # weak duality: a small gap is a proof, whoever computes it
    assert 0 <= gap <= 2e-9 * (1 + flat.objective)


@pytest.mark.parametrize("kind", KINDS)
def test_random_multipliers_are_bounded_by_the_optimum(kind, rng):
    y, prior = labels(), ExponentialMargin(3.0)
    blocks, maps = KINDS[kind](rng, y)
    result = solved(blocks, maps, prior, y, None)
    one = np.ones(N)
    for _ in range(20):
        lam = rng.uniform(0.0, 2.9, size=N) * rng.choice([1e-3, 0.1, 1.0])
        J = oracle.objective(lam, blocks, maps, prior, one, one)
        assert result.objective + result.gap >= J - 1e-12


@pytest.mark.parametrize("kind", ["gaussians", "net", "machine"])
def test_a_weight_is_that_many_copies_of_the_constraint(kind, rng):
    y, prior = labels(), ExponentialMargin(3.0, 2.0)
    blocks, maps = KINDS[kind](rng, y)
    w = rng.integers(1, 4, size=N).astype(float)
    copies = np.repeat(np.arange(N), w.astype(int))
    one = solved(blocks, maps, prior, y, "flat", sample_weight=w)
    many = [A[:, copies] for A in maps]
    other = solved(blocks, many, prior, y[copies], "flat")
    agree(other.objective, one.objective, 1e-8)
    agree(np.bincount(copies, other.lam), one.lam, 1e-3)
    agree(other.bias, one.bias, 1e-3, 1.0)


def counted(f, calls):
    return lambda *args, **options: calls.append(1) or f(*args, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_conjugate_gradients_take_the_same_road(kind, rng, monkeypatch):
    y, prior = labels(40), ExponentialMargin(3.0, 2.0)
    blocks, maps = KINDS[kind](rng, y)
    factors = [solved(blocks, maps, prior, y, bias) for bias in BIASES]
    ways = itertools.product(("_FACTOR_WORK", "_FACTOR_SIZE"), (0, N))
    for k, (name, size) in enumerate(ways):
        calls, factor = [], factors[k % 3]
        with monkeypatch.context() as patch:
            patch.setattr(block_sum, name, 0.0)
            patch.setattr(block_sum, "_MATRIX_SIZE", size)
            by_products = counted(NewtonSystem._by_products, calls)
            patch.setattr(NewtonSystem, "_by_products", by_products)
            found = solved(blocks, maps, prior, y, BIASES[k % 3], tol=1e-9)
        assert calls and found.converged
        agree(found.objective, factor.objective, 1e-8, 1 + factor.objective)
        agree(found.lam, factor.lam, 1e-2, 1.0)


def test_blocks_of_few_rows_and_many_parameters_take_few_products(rng, monkeypatch):
    """Their factors are too large, and the Hessian between their rows is small."""
    y, prior = labels(), ExponentialMargin(3.0, 2.0)
    blocks, maps = KINDS["gaussians"](rng, y)
    calls, products = [], []

    by_products = counted(NewtonSystem._by_products, calls)
    monkeypatch.setattr(NewtonSystem, "_by_products", by_products)
    product = counted(FreeHessian.product, products)
    monkeypatch.setattr(FreeHessian, "product", product)
    monkeypatch.setattr(block_sum, "_FACTOR_WORK", 0.0)
    assert solved(blocks, maps, prior, y, "flat").converged
    # one of them tells what the balance of the multipliers lacks
    assert calls and len(products) <= 3 * len(calls)


def test_maps_may_be_sparse_and_any_combination(rng):
    y, prior = labels(), LaplaceMargin(2.0)
    blocks, maps = gaussians(rng, y)
    dense = solved(blocks, maps, prior, y, "flat")
    for make in (sp.csr_array, sp.csc_matrix, lambda A: sp.coo_array(A)):
        other = solved(blocks, [make(A) for A in maps], prior, y, "flat")
        np.testing.assert_array_equal(other.lam, dense.lam)
    mix = rng.uniform(-0.05, 0.1, size=(N, 5))
    few = solve_blocks(blocks, [mix, -mix], prior, tol=1e-10)
    one = np.ones(5)
    want = oracle.solve(blocks, [mix, -mix], prior, one, one)
    assert few.objective == pytest.approx(want, abs=1e-7)


# ----------------------------------------------------------------------- special cases


def test_nothing_asked_leaves_the_priors_alone(rng):
    y, prior = labels(), ExponentialMargin(5.0)
    for bias in BIASES:
        blocks, maps = gaussians(rng, y)
        result = solved(blocks, maps, prior, y, bias, level=np.full(N, -1e4))
        assert not result.lam.any() and result.objective == 0.0
        assert result.converged and result.gap == 0.0
        assert bias is None or result.bias[0] == 0.0


@pytest.mark.parametrize("prior", PRIORS, ids=by_name)
@pytest.mark.parametrize("bias", BIASES, ids=str)
def test_gaussian_scores_are_the_kernel_machine(prior, bias, rng):
    from maxent.discrimination import solve_dual

    y = labels(24)
    X = rng.normal(size=(24, 2)) + 0.4 * y[:, None]
    block = GaussianScores("rbf", gamma=0.4).block(X)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    want = solve_dual(np.exp(-0.4 * squares), y, prior, bias=bias, tol=1e-10)
    found = solved([block], [np.diag(y)], prior, y, bias)
    agree(found.objective, want.objective, 1e-8)
    agree(found.lam, want.lam, 1e-3)
    if bias:
        agree(found.bias, [want.bias], 1e-4, 1.0)


def separable(rng):
    """Categories that tell the classes apart, and uninformed priors."""
    y = labels()
    X = np.column_stack([(y > 0).astype(int), rng.integers(0, 2, size=N)])
    return (*pair(DirichletProduct(2.0, [2, 2]), X, y), y)


@pytest.mark.parametrize("bias", BIASES, ids=str)
def test_fixed_margins_within_reach_are_met_and_certified(bias, rng):
    blocks, maps, y = separable(rng)
    level = 3.0
    start = oracle.margins(np.zeros(N), blocks, maps)
    assert start.min() < level  # something is asked
    result = solved(blocks, maps, FixedMargin(level), y, bias, tol=1e-7)
    assert result.converged and np.isfinite(result.gap)
    m = oracle.margins(result.lam, blocks, maps)
    if bias:
        m = m + y * result.bias[0]
    assert m.min() >= level * (1 - 1e-9)
    assert result.gap == pytest.approx(result.lam @ (m - level), abs=1e-12)
    one = np.ones(N)
    want = oracle.solve(
        blocks, maps, FixedMargin(level), level * one, one, bias, y[:, None]
    )
    assert result.objective == pytest.approx(want, abs=1e-5 * (1 + want))


def test_fixed_margins_out_of_reach_are_refused(rng):
    y = labels()
    X = np.zeros((N, 2), dtype=int)  # all rows alike: no machine tells them apart
    blocks, maps = pair(DirichletProduct(2.0, [2, 2]), X, y)
    refused(
        lambda: solved(blocks, maps, FixedMargin(1.0), y, "flat", tol=1e-7),
        r"fixed margin .*margin='exponential'",
    )


def test_fixed_levels_above_every_probability_are_refused(rng):
    """log p <= 0: no distribution over tables gives a row an expected 0.5."""
    block = DirichletProduct(1.0, [2, 3]).block(codes(rng, 9, [2, 3]))
    refused(
        lambda: solve_blocks([block], [np.eye(9)], FixedMargin(0.5), tol=1e-7),
        "fixed margin",
    )


def test_one_class_with_a_level_of_the_bayes_posterior_is_near_it(rng):
    X = codes(rng, 40, [3, 4])
    block = DirichletProduct(1.0, [3, 4]).block(X)
    bayes = block.mean(np.ones(40))
    result = solve_blocks(
        [block], [np.eye(40)], FixedMargin(), level=bayes - 1e-3, tol=1e-7
    )
    assert result.converged
    assert (block.mean(result.lam) >= bayes - 1e-3 - 1e-8).all()


def test_a_centre_is_solved_like_any_block(rng):
    X = rng.normal(size=(20, 2))
    block = GaussianCentre("linear").block(X)
    prior, w = ExponentialMargin(3.0), np.ones(20)
    level = np.full(20, -0.3)
    result = solve_blocks([block], [np.eye(20)], prior, level=level, tol=1e-9)
    assert result.converged and result.lam.any()
    want = oracle.solve([block], [np.eye(20)], prior, level, w)
    assert result.objective == pytest.approx(want, abs=1e-6 * (1 + abs(want)))


def test_newton_goes_on_where_every_slack_has_vanished():
    """All multipliers inside an open domain: stationarity is all that is left."""
    y, unsettled = labels(14), 0
    for seed in (5, 92, 94):
        blocks, maps = regressions(np.random.default_rng(seed), y)
        result = solved(blocks, maps, ExponentialMargin(5.0, 2.0), y, None)
        assert result.converged
        unsettled += (result.lam > 1e-3).all()
    assert unsettled == 3


@pytest.mark.parametrize("level", [-1e3, -50.0])
def test_the_logistic_prior_asks_a_little_of_every_margin(level, rng):
    """Its multipliers are never zero, however small the objective."""
    y = labels()
    blocks, maps = gaussians(rng, y)
    easy = np.full(N, level)
    result = solved(blocks, maps, LogisticMargin(3.0), y, "flat", level=easy)
    assert result.converged and np.isfinite(result.bias).all()
    assert abs(result.objective) < 1e-8
