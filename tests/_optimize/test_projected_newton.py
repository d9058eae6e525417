"""Projected Newton steps over trees: optima, the domain, what is refused."""

import signal
import time

import numpy as np
import pytest
from oracles import block_dual as oracle
from oracles.block_cases import agree
from oracles.tree_problems import categories, trained
from processes import HUNG, start

from maxent import MEDTreeClassifier
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.slack_barrier import SlackBarrier
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    solve_blocks,
)
from maxent.families import Block

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])


# ------------------------------------------------------------------------------- optima


@pytest.mark.parametrize(
    "kind, prior, bias",
    [
        pytest.param(kind, prior, bias, id=f"{kind}-{prior.name}-{bias}")
        for i, kind in enumerate(["fixed", "dirichlet"])
        for j, prior in enumerate(
            [
                ExponentialMargin(0.7),
                LaplaceMargin(0.7),
                GaussianMargin(0.7),
                ErlangMargin(0.7),
                HingeMargin(),
            ]
        )
        for bias in ([None, 2.0, "flat"][(i + j) % 3],)
    ],
)
def test_the_optimum_is_not_below_that_of_a_general_solver(kind, prior, bias, rng):
    X, y = categories(rng, 14, 3)
    blocks, maps, _, _ = trained(X, y, kind, prior, 0.0, bias, ess=4.0)
    start = oracle.margins(np.zeros(14), blocks, maps)
    # most rows, of either class, ask for more than they have
    level = np.quantile(start, 0.8) + 1.0 + prior.level - prior.prior_mean
    prior = prior.with_level(float(level))
    blocks, maps, E, found = trained(X, y, kind, prior, level, bias, ess=4.0, tol=1e-10)
    one, levels = np.ones(14), np.full(14, level)
    want = oracle.solve(blocks, maps, prior, levels, one, bias, E)
    assert found.solver == "newton" and found.converged and found.objective > 1e-3
    # wherever the general solver stops, it is not above the optimum ...
    assert found.objective >= want - 1e-9 * (1.0 + abs(want))
    # ... which the gap from the definitions puts right here
    m = oracle.margins(found.lam, blocks, maps)
    m = m if bias is None else m + E[:, 0] * found.bias[0]
    gap = oracle.fenchel_young_gap(found.lam, m, prior, levels, one)
    value = oracle.objective(
        found.lam, blocks, maps, prior, levels, one, 2.0 if bias == 2.0 else 0.0, E
    )
    agree(found.objective, value, 1e-12, 1.0 + abs(value))
    assert gap <= 1e-9 * (1.0 + value)


@KINDS
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("bias", [None, 0.5, "flat"])
def test_the_interior_point_agrees(kind, m, bias, rng):
    X, y = categories(rng, 36, 4, m)
    prior = ExponentialMargin(3.0)
    blocks, maps, E, found = trained(X, y, kind, prior, 6.0, bias, tol=1e-10)
    n = maps[0].shape[1]
    want = solve_blocks(
        blocks,
        maps,
        prior,
        bias=bias,
        incidence=E,
        level=np.full(n, 6.0),
        solver="interior",
        tol=1e-10,
    )
    assert found.converged and want.converged and want.objective > 0.1
    agree(found.objective, want.objective, 1e-9, 1.0 + want.objective)
    agree(found.lam, want.lam, 1e-3, 3.0)


@KINDS
def test_the_gap_reported_is_that_of_the_definitions(kind, rng):
    X, y = categories(rng, 40, 4)
    prior = ExponentialMargin(2.0, 8.0)
    blocks, maps, E, found = trained(X, y, kind, prior, 8.0, "flat", max_iter=3)
    margins = oracle.margins(found.lam, blocks, maps) + E[:, 0] * found.bias[0]
    one, level = np.ones(40), np.full(40, 8.0)
    want = oracle.fenchel_young_gap(found.lam, margins, prior, level, one)
    assert want > 1e-6 and found.status == "max_iter" and found.n_iter == 3
    assert found.gap == pytest.approx(want, rel=1e-9)


@KINDS
def test_rows_beyond_their_level_have_no_multiplier_at_all(kind, rng):
    X, y = categories(rng, 60, 4)
    X[:, 3] = y  # many rows are far beyond the level
    prior = ExponentialMargin(5.0)
    blocks, maps, E, found = trained(X, y, kind, prior, 2.5, "flat", tol=1e-6)
    margins = oracle.margins(found.lam, blocks, maps) + E[:, 0] * found.bias[0]
    beyond = margins > 2.5 - 1.0 / 5.0
    assert found.converged and beyond.any()
    assert (found.lam[beyond] == 0).all()


# --------------------------------------------------------------------------- the domain


class Watched(Block):
    """A block that checks where it is asked, by counts of its own."""

    cheap_products = True

    def __init__(self, block, seen):
        self.inner, self.seen, self.n_rows = block, seen, block.n_rows
        prior, rows = block.prior, block.data
        column = np.repeat(np.arange(len(prior.n_categories)), prior.n_categories)
        first = np.concatenate([[0], np.cumsum(prior.n_categories)[:-1]])
        at = first[:, None] + rows.codes
        self.hot = np.zeros((len(column), rows.n_rows))
        np.put_along_axis(self.hot, at, 1.0, axis=0)
        self.pairs = column[:, None] < column[None, :]
        share = 1.0 / np.array(prior.n_categories)[column]
        self.start = prior.total * np.outer(share, share)
        self.start += self.count(block.base_weight)

    def count(self, a):
        return (self.hot * a) @ self.hot.T

    def inside(self, a):
        left = (self.start + self.count(a))[self.pairs].min()
        self.seen.append(left)
        # rounding of either count
        assert left > -1e-12 * (1.0 + np.abs(a).sum()), left

    def log_partition(self, a):
        self.inside(a)
        return self.inner.log_partition(a)

    def mean(self, a):
        return self.inner.mean(a)

    def hessian_factor(self, a):
        raise AssertionError("no factor is asked for")

    def __getattribute__(self, name):
        passed = ("hessian_among", "slacks", "slack_changes", "slack_gradient")
        if name in (*passed, "max_step", "hessian_product"):
            return getattr(self.inner, name)
        return super().__getattribute__(name)


def random_problem(rng):
    m = int(rng.integers(2, 4))
    n, rows = int(rng.integers(2, 5)), int(rng.integers(3 * m, 24))
    X = rng.integers(0, rng.integers(2, 5, size=n), size=(rows, n))
    y = rng.permutation(np.arange(rows) % m)
    copy = rng.random(rows) < 0.7
    X[copy, 1] = np.minimum(X[copy, 0], X[:, 1].max())
    bias = [None, "flat", 2.0][rng.integers(3)]
    prior = [ExponentialMargin, GaussianMargin, LaplaceMargin][rng.integers(3)]
    C, level = 10.0 ** rng.uniform(-1, 2), 10.0 ** rng.uniform(-0.5, 1.5)
    return X, y, prior(C, level), level, bias, 10.0 ** rng.uniform(-1, 1)


def check_random_problems(rng, count):
    nearest = []
    for _ in range(count):
        X, y, prior, level, bias, ess = random_problem(rng)
        seen = []
        _, _, E, found = trained(
            X,
            y,
            "dirichlet",
            prior,
            level,
            bias,
            ess=ess,
            wrap=lambda block, seen=seen: Watched(block, seen),
        )
        assert found.converged, (prior, level, bias, ess, found.relative_gap)
        assert (found.lam >= 0).all() and (found.lam <= prior.upper).all()
        if bias == "flat":
            assert np.abs(E.T @ found.lam).max() <= 1e-9 * (1.0 + found.lam.sum())
        nearest.append(min(seen))
    assert min(nearest) < 0.1  # some come close to the boundary


def test_no_point_outside_the_domain_is_looked_at(rng):
    check_random_problems(rng, 20)


@pytest.mark.slow
def test_no_point_outside_the_domain_is_looked_at_in_a_thousand_problems(rng):
    check_random_problems(rng, 1000)


def test_steps_at_the_level_of_rounding_end_as_a_stall(rng):
    X, y = categories(rng, 30, 3)
    prior = ExponentialMargin(5.0)
    found = trained(X, y, "dirichlet", prior, 2.5, "flat", tol=1e-60, max_iter=500)[3]
    assert not found.converged and found.status.value == "stalled"
    assert found.n_iter < 250 and found.gap < 1e-8


def test_the_objective_rises_from_step_to_step_without_a_barrier(rng):
    X, y = categories(rng, 60, 4)
    history = trained(X, y, "fixed", ExponentialMargin(5.0), 6.0, "flat")[3].history
    values = np.array([J for _, J, _ in history])
    assert len(values) > 2
    assert np.diff(values).min() > -1e-12 * (1.0 + values.max())


def test_a_level_beyond_what_counts_can_pay_for_ends_next_to_the_boundary(rng):
    X, y = categories(rng, 120, 6)
    model = MEDTreeClassifier("dirichlet", C=5.0, level=30.0).fit(X, y)
    assert model.converged_ and model.n_iter_ < 150
    left = min(value.pseudo_counts[value._cells].min() for value in model.posteriors_)
    assert 0 < left < 0.01


def test_keeping_away_from_the_boundary_saves_products(rng, monkeypatch):
    problems, made = [categories(rng, 120, 6) for _ in range(2)], []
    product = FreeHessian.product
    monkeypatch.setattr(
        FreeHessian, "product", lambda self, x: made.append(1) or product(self, x)
    )

    def products():
        made.clear()
        for X, y in problems:
            assert MEDTreeClassifier("dirichlet", level=30.0).fit(X, y).converged_
        return len(made)

    kept_away = products()
    monkeypatch.setattr(SlackBarrier, "start", lambda self, gap: None)
    assert kept_away < 0.9 * products()


# ------------------------------------------------------------------- answers, refusals


class Late:
    """Blocks whose answers turn bad after some time."""

    def __init__(self, block, name, seen, value):
        self.inner, self.name, self.seen, self.value = block, name, seen, value

    def __getattr__(self, name):
        answer = getattr(self.inner, name)
        if name != self.name or len(self.seen) < 2:
            return answer
        if name == "hessian_among":
            return lambda *args: lambda x: self.value * np.ones(len(x))
        return lambda a: self.value * np.ones_like(answer(a))[()]


@KINDS
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("log_partition", "log_partition"),
        ("mean", "mean"),
        ("hessian_among", "hessian_product"),
    ],
)
def test_answers_that_are_not_finite_stop_at_once(kind, name, shown, value, rng):
    if name == "log_partition" and value == np.inf:
        value = -np.inf  # plus infinity says that the weights are outside
    X, y = categories(rng, 40, 4)
    seen = []
    with pytest.raises(
        FloatingPointError, match=rf"Late\.{shown} returned NaN .*iteration 3,"
    ):
        trained(
            X,
            y,
            kind,
            ExponentialMargin(5.0),
            6.0,
            "flat",
            wrap=lambda block: Late(block, name, seen, value),
            callback=lambda *step: seen.append(step),
        )


def test_other_blocks_take_the_interior_point(rng):
    class Plain(Watched):
        cheap_products = False

        def inside(self, a):
            pass

        def hessian_factor(self, a):
            return self.inner.hessian_factor(a)

    X, y = categories(rng, 20, 3)
    result = trained(
        X,
        y,
        "dirichlet",
        ExponentialMargin(1.0),
        4.0,
        None,
        wrap=lambda block: Plain(block, []),
    )[3]
    assert result.solver == "interior" and result.converged


_FIT = """
import sys
import numpy as np
from maxent import MEDTreeClassifier
rng = np.random.default_rng(0)
y = np.arange(10000) % 2
X = rng.integers(0, 4, size=(10000, 60))
X[:, 1:] = np.where(rng.random((10000, 59)) < 0.3 + 0.2 * y[:, None], X[:, :-1],
                    X[:, 1:])
print("go", flush=True)
try:
    MEDTreeClassifier(sys.argv[1], level=20.0, tol=1e-14, verbose=True).fit(X, y)
except KeyboardInterrupt:
    print("left", flush=True)
"""


@pytest.mark.timed
@KINDS
def test_an_interrupt_ends_a_large_fit(kind):
    running = start("-u", "-c", _FIT, kind, stdout=-1)
    try:
        while "gap" not in running.stdout.readline():
            assert running.poll() is None
        time.sleep(0.3)
        asked = time.monotonic()
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=HUNG)
        assert "left" in out
        # a product takes some hundredths of a second, on a busy machine a tenth
        assert time.monotonic() - asked < 3.0
    finally:
        running.kill()
