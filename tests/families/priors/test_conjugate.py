"""What every block promises: partition, mean, covariance, domain, posteriors."""

import numpy as np
import pytest
from oracles.block_cases import (
    CONJUGATE,
    MAKERS,
    Case,
    PoissonGamma,
    agree,
    gradient_by_differences,
    inside,
    origin,
)
from refusals import refused

from maxent._support.registry import rebuilt
from maxent.families import (
    Block,
    ConjugateBlock,
    ConjugatePrior,
    DirichletProduct,
    ExponentialFamily,
)

EVERY = pytest.mark.parametrize("name", [*MAKERS, "counts of a user"])
PRIORS = pytest.mark.parametrize("name", CONJUGATE)


def make(name, rng):
    """(case, block, weights inside its domain)."""
    if name in MAKERS:
        case = MAKERS[name](rng)
        block = case.block()
    else:
        case = Case(None, rng.poisson(3.0, size=(9, 1)))
        block = PoissonGamma(2.5, 1.2, case.X)
    return case, block, inside(rng, block)


def differs(a, b):
    return not np.allclose(a, b, rtol=1e-3, atol=0)


# ------------------------------------------------------------ partition and its slopes


@EVERY
def test_log_partition_of_no_weights_is_zero(name, rng):
    _, block, a = make(name, rng)
    assert block.log_partition(np.zeros(block.n_rows)) == 0.0
    assert np.isfinite(block.log_partition(a)) and block.log_partition(a) != 0.0


@EVERY
def test_mean_is_the_gradient_of_the_log_partition(name, rng):
    _, block, a = make(name, rng)
    found = gradient_by_differences(block, block.log_partition, a)
    agree(block.mean(a), found, 1e-6)


@EVERY
def test_factor_and_product_are_the_hessian(name, rng):
    _, block, a = make(name, rng)
    hessian = gradient_by_differences(block, block.mean, a)
    F = block.hessian_factor(a)
    assert F.shape[0] == block.n_rows and F.shape[1] <= block.rank
    agree(F @ F.T, hessian, 1e-6)
    for _ in range(3):
        x = rng.normal(size=block.n_rows)
        agree(block.hessian_product(a, x), hessian @ x, 1e-6, np.abs(hessian).max())
        # against the factor itself to rounding: no covariance of the two is lost
        size = np.abs(F @ F.T).max() * np.abs(x).sum()
        agree(block.hessian_product(a, x), F @ (F.T @ x), 1e-10, size)


@EVERY
def test_score_of_the_training_rows_is_their_mean(name, rng):
    case, block, a = make(name, rng)
    # norms of features far from the origin are subtracted in kernels
    agree(block.score(a, case.X), block.mean(a), 1e-10)
    some = rng.permutation(len(case.X))[:4]
    agree(block.score(a, case.X[some]), block.mean(a)[some], 1e-10)


@EVERY
def test_log_partition_is_convex_along_chords(name, rng):
    _, block, _ = make(name, rng)
    for _ in range(5):
        a, b = inside(rng, block, 0.95), inside(rng, block, 0.95)
        for s in (0.1, 0.5, 0.8):
            chord = (1 - s) * block.log_partition(a) + s * block.log_partition(b)
            between = block.log_partition((1 - s) * a + s * b)
            assert between <= chord + 1e-10 * (1.0 + abs(chord))


@EVERY
def test_answers_do_not_depend_on_what_was_asked_before(name, rng):
    case, block, a = make(name, rng)
    fresh = (lambda: case.block()) if case.prior else lambda: block
    b = inside(rng, block)
    block.mean(b)
    kept = a.copy()
    first = block.log_partition(a), block.mean(a)
    a[:] = b  # the caller's array may change: nothing of it may be remembered
    assert block.log_partition(a) == fresh().log_partition(b)
    np.testing.assert_array_equal(block.mean(a), fresh().mean(b))
    assert block.log_partition(kept) == first[0]
    np.testing.assert_array_equal(block.mean(kept), first[1])


# ----------------------------------------------------------------------------- domain


@EVERY
def test_the_longest_step_ends_exactly_at_the_boundary(name, rng):
    _, block, a = make(name, rng)
    finite = 0
    for _ in range(30):
        step = rng.normal(size=block.n_rows) * rng.choice([0.1, 1.0, 10.0])
        far = block.max_step(a, step)
        assert far > 0
        if np.isfinite(far):
            finite += 1
            assert np.isfinite(block.log_partition(a + (1 - 1e-6) * far * step))
            assert block.log_partition(a + (1 + 1e-6) * far * step) == np.inf
        else:
            assert np.isfinite(block.log_partition(a + 1e3 * step))
    assert (finite > 0) != name.startswith("scores")


@EVERY
def test_log_partition_rises_without_bound_towards_the_boundary(name, rng):
    _, block, a = make(name, rng)
    if name.startswith(("scores", "centre")):
        pytest.skip("its partition function has no boundary that repels")
    step = rng.normal(size=block.n_rows)
    for _ in range(50):
        if np.isfinite(block.max_step(a, step)):
            break
        step = rng.normal(size=block.n_rows)
    far = block.max_step(a, step)
    at = [block.log_partition(a + (1 - s) * far * step) for s in (1e-3, 1e-5, 1e-7)]
    # at least the logarithm of the distance, half of it for the Gaussian blocks
    assert np.diff(at).min() > 0.2 * np.log(100.0)


@EVERY
def test_steps_that_add_weight_never_leave_the_domain(name, rng):
    _, block, a = make(name, rng)
    assert block.max_step(a, rng.random(block.n_rows)) == np.inf


@PRIORS
def test_outside_the_domain_nothing_but_the_partition_answers(name, rng):
    _, block, a = make(name, rng)
    step = -rng.random(block.n_rows)
    a = a + 1.01 * block.max_step(a, step) * step
    assert block.log_partition(a) == np.inf and block.posterior(a) is None
    for ask in (block.mean, block.hessian_factor):
        refused(lambda ask=ask: ask(a), "outside the domain")
    refused(lambda: block.score(a, np.zeros((1, 1))), "outside the domain")


# ------------------------------------------------------------------------- posteriors


def numbers(prior):
    """All parameters of a prior in one vector."""
    return np.concatenate(list(_flat(prior.get_spec())))


def _flat(value):
    if isinstance(value, ConjugatePrior):
        value = value.get_spec()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    elif not isinstance(value, ExponentialFamily):
        yield np.ravel(value)


@PRIORS
def test_updating_twice_is_updating_with_the_sum(name, rng):
    case, _, _ = make(name, rng)
    base = np.zeros(len(case.X)) if case.base is None else case.base
    start = case.prior.posterior(case.X, base)
    block = case.prior.block(case.X, base)
    first, second = inside(rng, block, 0.4), inside(rng, block, 0.4)
    if block.log_partition(first + second) == np.inf:
        first, second = 0.3 * first, 0.3 * second
    once = start.posterior(case.X, first + second)
    twice = start.posterior(case.X, first).posterior(case.X, second)
    agree(numbers(twice), numbers(once), 1e-9)
    assert type(twice) is type(case.prior)
    a, b = once.expected_log_prob(case.X), twice.expected_log_prob(case.X)
    agree(b, a, 1e-9)
    agree(a, block.mean(first + second), 1e-9)
    assert differs(a, start.expected_log_prob(case.X))


@PRIORS
def test_the_order_of_rows_and_their_repetition_do_not_matter(name, rng):
    case, _, _ = make(name, rng)
    n = len(case.X)
    base = np.zeros(n) if case.base is None else case.base
    order = rng.permutation(n)
    want = numbers(case.prior.posterior(case.X, base + 2.0))
    found = case.prior.posterior(case.X[order], base[order] + 2.0)
    agree(numbers(found), want, 1e-12)
    X, w = np.concatenate([case.X] * 2), np.concatenate([base + 1.0, np.ones(n)])
    agree(numbers(case.prior.posterior(X, w)), want, 1e-12)
    half = np.concatenate([case.X[: n // 2], case.X[n // 2 :]])
    zeros = np.zeros(n)
    if case.base is None:
        agree(numbers(case.prior.posterior(half, zeros)), numbers(case.prior), 1e-12)


@PRIORS
def test_the_predictive_is_a_ratio_of_partitions(name, rng):
    case, block, a = make(name, rng)
    posterior = block.posterior(a)
    unit = np.eye(block.n_rows)
    ratio = [block.log_partition(a + e) - block.log_partition(a) for e in unit]
    found = posterior.predictive_log_prob(case.X)
    agree(found, ratio, 1e-10, 10.0 + abs(block.log_partition(a)))
    # Jensen: the mean of logs lies below the log of the mean
    expected = posterior.expected_log_prob(case.X)
    visited = np.abs(found) > 0
    assert (expected[visited] < found[visited]).all()


@PRIORS
def test_base_weights_are_weights_that_count_as_zero(name, rng):
    case, block, a = make(name, rng)
    base = np.zeros(block.n_rows) if case.base is None else case.base
    moved = case.prior.block(case.X, base + a)
    b = inside(rng, moved, 0.5)
    want = block.log_partition(a + b) - block.log_partition(a)
    scale = 10.0 + abs(block.log_partition(a)) + abs(block.log_partition(a + b))
    agree(moved.log_partition(b), want, 1e-10, scale)
    agree(moved.mean(b), block.mean(a + b), 1e-9)


@PRIORS
def test_specifications_make_equal_priors_again(name, rng):
    case, block, a = make(name, rng)
    posterior = block.posterior(a)
    again = rebuilt(type(posterior), posterior.get_spec())
    np.testing.assert_array_equal(numbers(again), numbers(posterior))
    agree(
        again.expected_log_prob(case.X),
        posterior.expected_log_prob(case.X),
        1e-12,
        10.0,
    )
    assert type(posterior).__name__ in repr(posterior)


@PRIORS
def test_parameters_cannot_be_changed_in_place(name, rng):
    _, block, a = make(name, rng)
    for value in block.posterior(a).get_spec().values():
        for array in value if isinstance(value, list) else [value]:
            if isinstance(array, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0


def test_callers_arrays_are_neither_kept_nor_locked(rng):
    table = rng.uniform(1.0, 2.0, size=3)
    prior = DirichletProduct([table])
    before = prior.pseudo_counts[0].copy()
    table[0] = 99.0
    np.testing.assert_array_equal(prior.pseudo_counts[0], before)


# ------------------------------------------------------------------------ wrong input


@PRIORS
def test_weights_that_do_not_fit_are_named(name, rng):
    case, _, _ = make(name, rng)
    n = len(case.X)
    for wrong in (np.ones(n + 1), np.ones((n, 1)), np.full(n, np.nan), ["a"] * n):
        refused(lambda w=wrong: case.prior.block(case.X, w), "base_weight")
        refused(lambda w=wrong: case.prior.posterior(case.X, w), r"\bweight\b")
    refused(lambda: case.prior.posterior(case.X, np.full(n, -1e6)), "no posterior")


@PRIORS
def test_rows_that_do_not_fit_are_named(name, rng):
    case, _, _ = make(name, rng)
    X = case.X.astype(float)
    # a missing entry leaves a product of columns, which may leave columns out too
    X[1, 0] = np.inf if name.startswith("product") else np.nan
    wide = case.X[:, :1] if name.startswith("product") else np.hstack([case.X] * 2)
    for wrong in (X, wide, case.X[0], case.X.astype(complex), [["a"] * X.shape[1]] * 3):
        refused(lambda w=wrong: case.prior.block(w, case.base), r"\bX\b")


def test_a_block_that_defines_too_little_says_so():
    with pytest.raises(TypeError, match=r"hessian_factor\W+log_partition\W+mean\b"):
        Block()

    class Least(Block):
        n_rows = 1

        def log_partition(self, a):
            return 0.5 * float(a @ a)

        def mean(self, a):
            return a

        def hessian_factor(self, a):
            return np.eye(1)

    block = Least()
    assert block.max_step(np.zeros(1), np.ones(1)) == np.inf
    with pytest.raises(NotImplementedError, match=r"Least .* score\(a, X\)"):
        block.score(np.zeros(1), None)


def test_blocks_of_priors_are_conjugate_blocks(rng):
    for name in CONJUGATE:
        case = MAKERS[name](rng)
        block = case.block()
        assert isinstance(block, ConjugateBlock) and block.n_rows == len(case.X)
        assert block.posterior(origin(block)) is not None
