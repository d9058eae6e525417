"""Dirichlet tables against enumeration, predictives and draws."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.block_cases import agree, codes
from oracles.conjugate import (
    every_row,
    log_mean_exp,
    net_log_likelihoods,
    table_draws,
    table_sequential,
)
from refusals import refusals, refused
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from maxent.families import DirichletBayesNet, DirichletCounts, DirichletProduct

N_DRAWS = 60_000
SIZES, PARENTS = [2, 3, 2], [(), (0,), (1, 0)]
SHAPES = [(1, 2), (2, 3), (6, 2)]


def net(rng, low=0.6, high=2.5):
    tables = [rng.uniform(low, high, size=shape) for shape in SHAPES]
    return DirichletBayesNet(tables, PARENTS, SIZES), tables


# ------------------------------------------------------------------------- log Z


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_whole_numbers_of_rows_give_the_product_of_predictives(missing, rng):
    prior, tables = net(rng)
    X = codes(rng, 12, SIZES, missing)
    a = rng.integers(0, 4, size=12)
    want = table_sequential(tables, PARENTS, np.repeat(X, a, axis=0))
    agree(prior.block(X).log_partition(a.astype(float)), want, 1e-12)


def test_two_categories_equal_the_integral_for_weights_of_any_sign(rng):
    p, q = rng.uniform(1.0, 3.0, size=2)
    a = np.array([0.8, -0.5, 0.3, -0.6])
    X = np.array([[0], [0], [1], [1]])
    block = DirichletProduct([[p, q]]).block(X)

    def integrand(u):
        up, down = p - 1.0 + a[:2].sum(), q - 1.0 + a[2:].sum()
        return u**up * (1.0 - u) ** down

    value, _ = quad(integrand, 0.0, 1.0, epsabs=0, epsrel=1e-12, limit=500)
    agree(block.log_partition(a), np.log(value) - betaln(p, q), 1e-8, 1.0)


def test_draws_give_partition_mean_and_covariance_at_negative_weights(rng):
    prior, tables = net(rng, 3.0, 6.0)
    X = codes(rng, 6, SIZES, 0.1)
    a = np.array([0.5, -0.4, 0.3, -0.3, 0.2, -0.2])
    block = prior.block(X)
    L = net_log_likelihoods(table_draws(tables, rng, N_DRAWS), PARENTS, X)
    found, error = log_mean_exp(L @ a)
    assert error < 0.01
    assert abs(block.log_partition(a) - found) < 6.0 * error
    after = table_draws(block.posterior(a).pseudo_counts, rng, N_DRAWS)
    L = net_log_likelihoods(after, PARENTS, X)
    error = L.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(L.mean(axis=0) - block.mean(a)) <= 6.0 * error).all()
    F, centred = block.hessian_factor(a), L - L.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(N_DRAWS) + 1e-15
    assert (np.abs(products.mean(axis=0) - F @ F.T) < 7.0 * error).all()


def test_rows_of_counts_are_the_multinomial_without_its_coefficient(rng):
    """log Z(1) of one row: the Dirichlet-multinomial, coefficient left out."""
    alpha = rng.uniform(0.5, 2.0, size=4)
    x = rng.poisson(3.0, size=4).astype(float)
    want = gammaln(alpha.sum()) - gammaln(alpha.sum() + x.sum())
    want += np.sum(gammaln(alpha + x) - gammaln(alpha))
    prior = DirichletCounts(alpha)
    agree(prior.block(x[None]).log_partition(np.ones(1)), want, 1e-12, 1.0)
    agree(prior.predictive_log_prob(x[None]), [want], 1e-12, 1.0)


def test_counts_of_single_visits_are_categories(rng):
    X = codes(rng, 11, [4])
    alpha = rng.uniform(0.5, 2.0, size=4)
    a = rng.uniform(-0.1, 1.0, size=11)
    one = DirichletProduct([alpha]).block(X)
    for rows in (np.eye(4)[X[:, 0]], sp.csr_array(np.eye(4)[X[:, 0]])):
        other = DirichletCounts(alpha).block(rows)
        agree(other.log_partition(a), one.log_partition(a), 1e-12, 1.0)
        agree(other.mean(a), one.mean(a), 1e-12)


# ------------------------------------------------------------------------ structure


def test_the_predictive_sums_to_one_over_all_rows(rng):
    prior, _ = net(rng)
    posterior = prior.posterior(codes(rng, 9, SIZES), rng.uniform(-0.05, 2.0, size=9))
    total = np.exp(posterior.predictive_log_prob(every_row(SIZES))).sum()
    agree(total, 1.0, 1e-12)


def test_configurations_of_parents_count_in_c_order(rng):
    prior, _ = net(rng)
    after = prior.posterior([[1, 2, 0]])
    moved = [a - b for a, b in zip(after.pseudo_counts, prior.pseudo_counts)]
    # parents (1, 0): the code of feature 1 is the slower one
    ones = moved[0][0, 1], moved[1][1, 2], moved[2][2 * 2 + 1, 0]
    # a + 1 - a has the rounding error of a + 1
    np.testing.assert_allclose(ones, 1.0, rtol=1e-14)
    assert sum(np.count_nonzero(m) for m in moved) == 3


def test_one_number_of_pseudo_counts_is_an_equivalent_sample_size():
    prior = DirichletBayesNet(3.0, PARENTS, SIZES)
    for table, shape in zip(prior.pseudo_counts, SHAPES):
        assert table.shape == shape
        np.testing.assert_allclose(table, 3.0 / np.prod(shape))


def test_equivalent_nets_with_one_sample_size_have_one_partition(rng):
    """The arrow between two features may point either way (BDeu priors)."""
    X, a = codes(rng, 15, [3, 4]), rng.uniform(0.0, 2.0, size=15)
    one = DirichletBayesNet(2.0, [(), (0,)], [3, 4]).block(X)
    other = DirichletBayesNet(2.0, [(1,), ()], [3, 4]).block(X)
    agree(one.log_partition(a), other.log_partition(a), 1e-12)
    agree(one.mean(a), other.mean(a), 1e-12)


def test_a_product_is_a_net_without_parents(rng):
    X, a = codes(rng, 10, [3, 2], 0.2), rng.uniform(-0.1, 1.0, size=10)
    one = DirichletProduct(0.8, [3, 2]).block(X)
    other = DirichletBayesNet([[[0.8] * 3], [[0.8] * 2]]).block(X)
    assert one.log_partition(a) == other.log_partition(a)


def test_many_pseudo_counts_fix_the_tables(rng):
    _, tables = net(rng)
    X, a = codes(rng, 8, SIZES), rng.normal(size=8)
    stiff = DirichletBayesNet([1e6 * t for t in tables], PARENTS, SIZES)
    means = [t / t.sum(axis=1, keepdims=True) for t in tables]
    L = net_log_likelihoods([m[None] for m in means], PARENTS, X)[0]
    agree(stiff.block(X).log_partition(a), L @ a, 1e-4, np.abs(L).sum())
    agree(stiff.block(X).mean(a), L, 1e-4)


def test_a_missing_value_leaves_out_every_factor_it_enters(rng):
    prior, _ = net(rng)
    whole = np.array([[1, 2, 0]])
    for k, lost in ((0, {0, 1, 2}), (1, {1, 2}), (2, {2})):
        row = whole.copy()
        row[0, k] = -1
        after = prior.posterior(row)
        for j in range(3):
            moved = np.abs(after.pseudo_counts[j] - prior.pseudo_counts[j]).sum()
            assert moved == pytest.approx(0.0 if j in lost else 1.0, abs=1e-12)


def test_rows_without_any_value_weigh_nothing():
    block = DirichletProduct(1.0, [2, 2]).block([[-1, -1], [0, 1]])
    assert block.log_partition(np.array([5.0, 0.0])) == 0.0
    assert block.mean(np.zeros(2))[0] == 0.0
    assert block.max_step(np.zeros(2), np.array([-1.0, 0.0])) == np.inf


def test_features_with_one_category_say_nothing(rng):
    X = codes(rng, 7, [1, 3])
    a = rng.uniform(-0.1, 1.0, size=7)
    with_it = DirichletProduct(1.3, [1, 3]).block(X)
    without = DirichletProduct(1.3, [3]).block(X[:, 1:])
    agree(with_it.log_partition(a), without.log_partition(a), 1e-12, 1.0)
    agree(with_it.mean(a), without.mean(a), 1e-12)
    F, G = with_it.hessian_factor(a), without.hessian_factor(a)
    assert np.isfinite(F).all()
    agree(F @ F.T, G @ G.T, 1e-7)


# -------------------------------------------------------------------------- refusals


test_wrong_parameters_are_named = refusals(
    [
        (lambda: DirichletProduct(0.0, [2]), "pseudo_counts=0"),
        (lambda: DirichletProduct(1.0), "n_categories is needed"),
        (lambda: DirichletProduct(1.0, [2, 0]), "n_categories=0"),
        (lambda: DirichletProduct(1.0, [2.5]), "n_categories=2.5"),
        (lambda: DirichletProduct([[1.0, 0.0]]), r"pseudo_counts\[0\].*not > 0"),
        (lambda: DirichletProduct([[1.0, np.nan]]), r"pseudo_counts\[0\]"),
        (lambda: DirichletProduct([["a", "b"]]), r"pseudo_counts\[0\]"),
        (lambda: DirichletBayesNet(1.0, [()]), "n_categories is needed"),
        (lambda: DirichletBayesNet(1.0, [()], [2, 2]), "parents has 1 entries"),
        (lambda: DirichletBayesNet(1.0, [(), (5,)], [2, 2]), r"parents\[1\] = \(5,\)"),
        (lambda: DirichletBayesNet(1.0, [(), (-1,)], [2, 2]), r"parents\[1\]"),
        (lambda: DirichletBayesNet(1.0, [(0,), ()], [2, 2]), r"parents\[0\]"),
        (lambda: DirichletBayesNet(1.0, [(), (0, 0)], [2, 2]), r"parents\[1\]"),
        (lambda: DirichletBayesNet(1.0, [(1,), (0,)], [2, 2]), r"cycle .*\[0, 1\]"),
        (
            lambda: DirichletBayesNet(1.0, [(), (3,), (1,), (2,)], [2] * 4),
            r"cycle .*\[1, 2, 3\]",
        ),
        (
            lambda: DirichletBayesNet([np.ones((1, 2)), np.ones((1, 2))], [(), (0,)]),
            r"pseudo_counts\[1\] has shape \(1, 2\).*\(2, 2\)",
        ),
        (
            lambda: DirichletBayesNet(1.0, [()] * 9 + [tuple(range(9))], [10] * 10),
            "feature 9 has 1000000000 parent configurations.*fewer parents",
        ),
        (
            lambda: DirichletBayesNet([np.ones((1, 2))], [(), ()], [2, 2]),
            "pseudo_count",
        ),
        (lambda: DirichletCounts([1.0, -1.0]), r"pseudo_counts\[0\]"),
        (lambda: DirichletCounts(["a"]), r"pseudo_counts\[0\]"),
        (lambda: DirichletCounts([]), r"pseudo_counts\[0\] is empty"),
        (lambda: DirichletProduct([]), "feature"),
    ]
)


def test_codes_out_of_range_are_named():
    prior = DirichletProduct(1.0, [2, 3])
    words = r"X\[1, 1\] = 3 is not a category: feature 1 has the codes 0 to 2"
    refused(lambda: prior.block([[0, 0], [1, 3]]), words)
    refused(lambda: prior.block([[0, 0], [-2, 1]]), r"X\[1, 0\] = -2")
    refused(lambda: prior.block([[0.5, 0]]), "integer codes")
    refused(lambda: prior.block([[1e300, 0]]), r"\bX\b")
    refused(lambda: prior.expected_log_prob([[9, 0]]), r"X\[0, 0\] = 9")


def test_counts_that_are_none_are_named():
    prior = DirichletCounts([1.0, 1.0])
    for wrong in ([[1.0, -1.0]], [[np.nan, 1.0]], [[np.inf, 1.0]]):
        words = r"X\[1, \d\]=.* must be a count >= 0"
        rows = [[2.0, 3.0], *wrong]
        refused(lambda w=rows: prior.block(w), words)
        refused(lambda w=rows: prior.block(sp.csr_array(w)), words)


def test_base_weights_that_empty_a_cell_are_named():
    prior = DirichletProduct(1.0, [2])
    refused(lambda: prior.block([[0], [1]], [0.0, -1.0]), "cell 1 .*pseudo-counts")
