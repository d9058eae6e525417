"""The dual over blocks: starting points, protocol, wrong input."""

import numpy as np
import pytest
from oracles.block_cases import agree
from oracles.block_problems import KINDS, N, gaussians, labels, solved
from refusals import refused

from maxent.discrimination import (
    ExponentialMargin,
    LogisticMargin,
    solve_blocks,
)

# -------------------------------------------------------------------- starting points
from maxent.families import NormalInverseWishart


@pytest.mark.parametrize(
    "init",
    [np.zeros(N), np.full(N, 1e-12), np.full(N, 4.9), np.full(N, 1e9)]
    + [np.eye(N)[0] * 4.0, np.arange(N) * 1.0],
    ids=["zero", "tiny", "edge", "far", "one", "unequal"],
)
@pytest.mark.parametrize("kind", ["gaussians", "net", "regressions", "counts"])
@pytest.mark.parametrize("bias", ["flat", None], ids=str)
def test_warm_starts_are_moved_into_the_domain(kind, init, bias, rng):
    y, prior = labels(), ExponentialMargin(5.0, 2.0)
    blocks, maps = KINDS[kind](rng, y)
    cold = solved(blocks, maps, prior, y, bias)
    kept = init.copy()
    warm = solved(blocks, maps, prior, y, bias, init=init)
    assert warm.converged
    np.testing.assert_array_equal(init, kept)
    agree(warm.objective, cold.objective, 1e-8, 1 + cold.objective)
    agree(warm.lam, cold.lam, 1e-3, 1.0)


def test_the_solution_as_a_start_saves_steps(rng):
    y, prior = labels(60), ExponentialMargin(5.0, 3.0)
    blocks, maps = gaussians(rng, y)
    cold = solved(blocks, maps, prior, y, "flat")
    warm = solved(blocks, maps, prior, y, "flat", init=cold.lam)
    assert warm.n_iter <= cold.n_iter + 2


# ------------------------------------------------------------------ protocol, refusals


def test_the_callback_sees_every_step(rng):
    y, prior, seen = labels(), ExponentialMargin(5.0), []
    blocks, maps = gaussians(rng, y)
    result = solved(
        blocks, maps, prior, y, "flat", callback=lambda *step: seen.append(step)
    )
    assert seen == result.history and len(seen) == result.n_iter
    assert [step[0] for step in seen] == list(range(1, result.n_iter + 1))


def test_too_few_steps_are_not_called_converged(rng):
    y, prior = labels(), ExponentialMargin(5.0, 3.0)
    blocks, maps = gaussians(rng, y)
    result = solved(blocks, maps, prior, y, "flat", max_iter=1)
    assert not result.converged and result.status == "max_iter"
    best = solved(blocks, maps, prior, y, "flat")
    assert result.objective <= best.objective + best.gap
    assert result.objective + result.gap >= best.objective


class Broken:
    """A block whose answers are wrong in one way."""

    def __init__(self, block, name, value):
        self.block = block
        setattr(self, name, lambda *args: value)

    def __getattr__(self, name):
        return getattr(self.block, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_partition", np.nan),
        ("log_partition", -np.inf),
        ("mean", np.full(N, np.nan)),
        ("mean", np.full(N, np.inf)),
    ],
)
def test_blocks_that_are_not_finite_are_named_at_once(name, value, rng):
    y, prior = labels(), ExponentialMargin(5.0)
    blocks, maps = gaussians(rng, y)
    blocks[1] = Broken(blocks[1], name, value)
    with pytest.raises(FloatingPointError, match=rf"Broken\.{name} .*iteration 1,"):
        solved(blocks, maps, prior, y, "flat")


def test_the_iteration_of_an_answer_that_is_not_finite_is_named(rng):
    y, prior, seen = labels(), ExponentialMargin(5.0, 3.0), []
    blocks, maps = gaussians(rng, y)

    def late(a):
        return np.nan if len(seen) == 3 else blocks[1].log_partition(a)

    wrong = Broken(blocks[1], "log_partition", None)
    wrong.log_partition = late
    with pytest.raises(
        FloatingPointError, match=r"Broken\.log_partition .*iteration 4,"
    ):
        solved(
            [blocks[0], wrong], maps, prior, y, None, callback=lambda *s: seen.append(s)
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_partition", None),
        ("log_partition", np.ones(N)),
        ("mean", 1.0),
        ("mean", np.ones(N + 1)),
        ("hessian_factor", np.ones(N)),
        ("hessian_factor", np.ones((3, N))),
        ("max_step", 0.0),
        ("max_step", -1.0),
        ("max_step", np.nan),
    ],
)
def test_answers_of_a_wrong_kind_are_named(name, value, rng):
    y = labels()
    blocks, maps = gaussians(rng, y)
    blocks[1] = Broken(blocks[1], name, value)
    refused(
        lambda: solved(blocks, maps, ExponentialMargin(5.0, 3.0), y, "flat"),
        rf"Broken\.{name} returned .*must return",
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_hessian_that_is_not_finite_is_named(value, rng):
    y = labels()
    blocks, maps = gaussians(rng, y)
    blocks[0] = Broken(blocks[0], "hessian_factor", np.full((N, 2), value))
    with pytest.raises(
        FloatingPointError, match=r"Broken\.hessian_factor .*iteration 1"
    ):
        solved(blocks, maps, ExponentialMargin(5.0, 3.0), y, "flat")


@pytest.mark.parametrize("kind", ["gaussians", "net", "regressions", "counts"])
@pytest.mark.parametrize("bias", ["flat", None], ids=str)
def test_no_point_outside_the_domain_is_accepted_if_blocks_do_not_know_theirs(
    kind, bias, rng
):
    """A block without `max_step` costs steps, and nothing else."""
    y, prior = labels(), ExponentialMargin(5.0, 3.0)
    blocks, maps = KINDS[kind](rng, y)
    want = solved(blocks, maps, prior, y, bias, tol=1e-9)
    outside = []

    class Unaware(Broken):
        def __init__(self, block):
            super().__init__(block, "max_step", np.inf)

        def hessian_factor(self, a):
            outside.append(self.block.log_partition(a) == np.inf)
            return self.block.hessian_factor(a)

    found = solved([Unaware(b) for b in blocks], maps, prior, y, bias, tol=1e-9)
    assert outside and not any(outside)
    assert found.converged
    agree(found.objective, want.objective, 1e-8, 1 + want.objective)


def test_blocks_need_no_base_class(rng):
    y, prior = labels(), ExponentialMargin(5.0, 3.0)
    blocks, maps = gaussians(rng, y)

    class Bare:
        def __init__(self, block):
            for name in ("n_rows", "rank", "log_partition", "mean"):
                setattr(self, name, getattr(block, name))
            for name in ("hessian_factor", "hessian_product", "max_step"):
                setattr(self, name, getattr(block, name))

    want = solved(blocks, maps, prior, y, "flat")
    found = solved([Bare(block) for block in blocks], maps, prior, y, "flat")
    assert found.converged and found.objective == want.objective


NOT_FINITE = [np.nan, np.inf, "a", None]
WRONG = {
    "blocks": [None, 3, [3, 4], [NormalInverseWishart.improper(2)] * 2],
    "maps": [
        None,
        [np.ones(N)] * 2,
        [np.zeros((N, 0))] * 2,
        [np.eye(N) * 1j] * 2,
        ["a", "b"],
        [np.eye(N)],
        [np.eye(N + 1)] * 2,
        [np.eye(N), np.eye(N)[:, :3]],
        [np.full((N, N), np.nan)] * 2,
        [],
    ],
    "margin": ["exponential", None, ExponentialMargin, 3.0],
    "bias": ["a", -1.0, 0, np.nan, [1.0]],
    "incidence": [None, np.ones(3), np.full(N, np.nan), np.ones((2, N))],
    "sample_weight": [np.ones(3), -np.ones(N), np.zeros(N), np.full(N, np.nan)]
    + [np.arange(N) * 1.0],
    "level": [np.ones(3), np.full(N, np.inf), 1.0, ["a"] * N],
    "tol": [0.0, -1.0, *NOT_FINITE],
    "max_iter": [0, 2.5, *NOT_FINITE],
    "init": [np.ones(3), -np.ones(N), np.full(N, np.nan)],
    "callback": [3, "a"],
    "solver": ["smo", None, 3],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, x) for name, values in WRONG.items() for x in values]
)
def test_wrong_arguments_are_named(name, value, rng):
    y = labels()
    blocks, maps = gaussians(rng, y)
    given = {
        "blocks": blocks,
        "maps": maps,
        "margin": ExponentialMargin(5.0),
        "bias": "flat",
        "incidence": y,
        name: value,
    }
    refused(lambda: solve_blocks(**given), rf"\b{name}\b")


def test_a_margin_must_be_a_prior_with_levels_of_its_own_too(rng):
    y = labels()
    blocks, maps = gaussians(rng, y)
    for wrong in ("exponential", None, ExponentialMargin):
        refused(
            lambda m=wrong: solve_blocks(blocks, maps, m, level=np.ones(N)),
            "margin=.* must be a margin prior object",
        )


def test_a_prior_that_asks_for_nothing_is_refused(rng):
    y = labels()
    blocks, maps = gaussians(rng, y)
    refused(
        lambda: solved(blocks, maps, ExponentialMargin(1.0), y, None), "not positive"
    )
    # a level of its own says what is asked: then the prior's own does not matter
    level = np.full(N, 3.0)
    for prior in (ExponentialMargin(1.0), LogisticMargin(1.0, 0.0)):
        assert solved(blocks, maps, prior, y, None, level=level).converged
