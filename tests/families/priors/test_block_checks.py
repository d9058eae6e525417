"""check_block, and the check of one direction in solve_blocks."""

import numpy as np
import pytest
from oracles.block_cases import MAKERS, PoissonGamma
from refusals import refused

from maxent.discrimination import DirichletTrees, ExponentialMargin, solve_blocks
from maxent.discrimination.margins import LogisticMargin
from maxent.families import Block, DirichletProduct, check_block

X = np.array([0.0, 1.0, 1.0, 2.0, 5.0, 7.0])


class Counts(PoissonGamma):
    """A right block, of which tests spoil one method."""

    def __init__(self):
        super().__init__(2.0, 1.5, X)


def spoilt(**methods):
    """A block of counts with some methods replaced by functions of (block, ...)."""
    return type("Spoilt", (Counts,), methods)()


# ------------------------------------------------------------------------ what is right


@pytest.mark.parametrize("name", MAKERS)
def test_blocks_of_the_package_pass(name, rng, seed):
    report = check_block(MAKERS[name](rng).block(), random_state=seed)
    assert {"mean", "hessian_factor", "hessian_product"} <= set(report)
    assert max(report.values()) < 1e-6


@pytest.mark.parametrize(
    "edges", [None, np.where(np.eye(4) + np.eye(4)[::-1], -np.inf, 0.0)]
)
def test_slacks_of_trees_are_checked(edges, rng, seed):
    codes = rng.integers(0, 2, size=(10, 4))
    block = DirichletTrees(1.0, [2] * 4, edges).block(codes)
    assert check_block(block, random_state=seed)["slacks"] < 1e-12


def test_a_block_without_the_base_class_passes(seed):
    class Plain:
        n_rows = 6
        _given = Counts()
        log_partition = staticmethod(_given.log_partition)
        mean = staticmethod(_given.mean)
        hessian_factor = staticmethod(_given.hessian_factor)
        max_step = staticmethod(_given.max_step)

    assert check_block(Plain(), random_state=seed) == check_block(
        Counts(), random_state=seed
    )


# ------------------------------------------------------------------------ what is wrong


def late_mean(self, a):
    """Wrong for row 3 alone."""
    found = Counts.mean(self, a)
    found[3] += 0.01
    return found


SPOILT = {
    "a flipped sign": (
        {"mean": lambda self, a: -Counts.mean(self, a)},
        "Spoilt.mean is not the gradient of log_partition: for row 5 it is",
    ),
    "one row": ({"mean": late_mean}, "for row 3 it is .*relative difference"),
    "a term left out": (
        {"mean": lambda self, a: Counts.mean(self, a) + np.log(2.0)},
        "Spoilt.mean is not the gradient",
    ),
    "a factor": (
        {"hessian_factor": lambda self, a: 1.1 * Counts.hessian_factor(self, a)},
        r"Spoilt.hessian_factor along a random direction is .* for row \d",
    ),
    "a product": (
        {"hessian_product": lambda self, a, x: 0.0 * x},
        "Spoilt.hessian_(product|factor) along",
    ),
    "rows of products": (
        {"hessian_among": lambda self, a, rows, c=None: lambda x: x},
        "Spoilt.hessian_among along",
    ),
    "a matrix": (
        {"hessian_matrix": lambda self, a, rows, c=None: np.eye(len(rows))},
        "Spoilt.hessian_matrix along",
    ),
    "a constant": (
        {"log_partition": lambda self, a: Counts.log_partition(self, a) + 1.0},
        "Spoilt.log_partition is 1 at zero weights and must be 0 there",
    ),
    "an endless domain": (
        {"max_step": lambda self, a, d: np.inf},
        r"(the step is too long|steps are too long)",
    ),
    "short steps": (
        {"max_step": lambda self, a, d: 0.5 * min(Counts.max_step(self, a, d), 9.0)},
        "the step is too short",
    ),
    "no step": (
        {"max_step": lambda self, a, d: -1.0},
        r"Spoilt.max_step returned -1.0 .* must return a number > 0",
    ),
    "a bound": (
        {"largest": -5.0},
        r"Spoilt.mean is .* for row \d .*, above largest=-5",
    ),
    "a shape": (
        {"mean": lambda self, a: Counts.mean(self, a)[:2]},
        r"Spoilt.mean returned .* of shape \(2,\); it must return numbers of shape \(6",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_the_first_disagreement_is_named(name, seed):
    methods, match = SPOILT[name]
    refused(lambda: check_block(spoilt(**methods), random_state=seed), match)


def test_a_concave_function_with_its_gradient_is_no_log_partition(seed):
    class Concave(Block):
        n_rows = 3

        def log_partition(self, a):
            return -0.5 * float(a @ a)

        def mean(self, a):
            return -a

        def hessian_factor(self, a):
            return np.eye(3)

    check = "Concave.hessian_factor along a random direction"
    refused(lambda: check_block(Concave(), random_state=seed), check)


def test_jumps_are_not_convex():
    def log_partition(self, a):
        # the derivatives are right wherever they exist
        return Counts.log_partition(self, a) - 1e4 * np.floor(40.0 * a[0] + 0.5)

    block = spoilt(log_partition=log_partition)
    refused(
        lambda: check_block(block, n_points=8),  # of random_state=0
        "Spoilt.log_partition is not convex: halfway",
    )


def test_nan_inside_the_domain_is_named(seed):
    block = spoilt(mean=lambda self, a: np.full(6, np.nan))
    with pytest.raises(FloatingPointError, match=r"Spoilt.mean returned NaN.*at zero"):
        check_block(block, random_state=seed)


def test_parameters_out_of_range_are_refused():
    refused(lambda: check_block(3), "block=3 is no Block")
    refused(lambda: check_block(Counts), "is no Block")
    refused(lambda: check_block(Counts(), n_points=0), "n_points")
    refused(lambda: check_block(Counts(), tol=0.0), "tol")
    refused(lambda: check_block(Counts(), tol=1.0), "tol=1 must be in")


# --------------------------------------------------------------------- in solve_blocks


def solve(block, margin=None, **options):
    margin = ExponentialMargin(2.0, 1.0) if margin is None else margin
    level = np.full(6, -1.5)
    return solve_blocks([block], [np.eye(6)], margin, level=level, **options)


@pytest.mark.parametrize("solver", ["interior", "newton"])
@pytest.mark.parametrize("name", ["a flipped sign", "a term left out"])
def test_a_wrong_gradient_is_refused_before_the_first_step(name, solver):
    assert solve(Counts(), solver=solver).converged
    steps = []
    refused(
        lambda: solve(
            spoilt(**SPOILT[name][0]),
            solver=solver,
            callback=lambda *step: steps.append(step),
        ),
        "Spoilt.mean is not the gradient of its log_partition.*check_block",
    )
    assert not steps


def test_the_wrong_one_of_two_blocks_is_named():
    wrong = spoilt(mean=lambda self, a: 1.05 * Counts.mean(self, a))
    maps = [np.eye(6), -np.eye(6)]
    for margin in (ExponentialMargin(2.0, 1.0), LogisticMargin(1.0, 1.0)):
        refused(
            lambda m=margin: solve_blocks([Counts(), wrong], maps, m), "Spoilt.mean"
        )


def test_a_log_partition_of_few_digits_is_let_pass(rng):
    noise = iter(rng.uniform(-1.0, 1.0, 10_000))
    rough = spoilt(
        log_partition=lambda self, a: (
            Counts.log_partition(self, a) + (1e-7 * next(noise) if a.any() else 0.0)
        )
    )
    result = solve(rough, tol=1e-4)
    assert result.converged


def test_log_partition_is_asked_once_more_than_without_the_check():
    asked, means = [], []

    def log_partition(self, a):
        asked.append(a.copy())
        return Counts.log_partition(self, a)

    def mean(self, a):
        means.append(a.copy())
        return Counts.mean(self, a)

    solve(spoilt(log_partition=log_partition, mean=mean))
    # log Z and mean of every point, and log Z of one point beside the first
    others = [a for a in asked if not any((a == b).all() for b in means)]
    assert len(others) == 1
    assert (others[0] > means[0]).all()
    assert (others[0] - means[0]).sum() == pytest.approx(1e-5)


def test_blocks_without_the_base_class_and_own_priors_are_checked():
    class Plain:
        n_rows = 6
        _given = Counts()
        log_partition = staticmethod(_given.log_partition)
        hessian_factor = staticmethod(_given.hessian_factor)
        max_step = staticmethod(_given.max_step)

        def mean(self, a):
            return -self._given.mean(a)

    refused(lambda: solve(Plain()), "Plain.mean is not the gradient")

    class Net(DirichletProduct):
        def _expected(self, data):
            return -super()._expected(data)

    block = Net(1.0, n_categories=[2]).block([[0], [1], [1], [0], [1], [1]])
    refused(lambda: solve(block), "ConjugateBlock.mean is not the gradient")
