"""Runs of hidden Markov models side by side, beside the same runs one by one."""

import numpy as np
import pytest

from maxent.families import (
    DiagonalGaussian,
    Gamma,
    Gaussian,
    Multinomial,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.models import GaussianHMM, em
from maxent.models._family_choice import family_of_columns
from maxent.models.chains import _chain_search, _emissions
from maxent.models.chains._chain_search import clustered_starts
from maxent.models.chains._emissions import Rows
from maxent.models.chains._hidden_chain import chain_change
from maxent.models.chains._rules import Rules
from maxent.models.chains._runs_together import runs_together
from maxent.models.em import maximize_by_em

LENGTHS = [30, 7, 1, 22]


def problem_of(rng, family, d=2, gaps=False, smoothing=0.01):
    """EM of four sequences of different weights."""
    if isinstance(family, dict):
        X = np.column_stack([rng.normal(size=60), rng.poisson(4.0, 60)])
        family, options = family_of_columns(family, None, 2)
    else:
        options = None
        X = {
            Poisson: lambda: rng.poisson(rng.choice([2.0, 9.0], 60)),
            Gamma: lambda: rng.gamma(2.0, 3.0, 60),
            Multinomial: lambda: rng.multinomial(6, [0.2, 0.3, 0.5], 60),
        }.get(family, lambda: rng.normal(size=(60, d)))()
    X = np.asarray(X, dtype=float)
    if gaps:
        X[rng.integers(0, 60, 9)] = np.nan
        X[3, 0] = np.nan
    emissions = Rows(family, options)
    found = emissions.read(X, LENGTHS)
    weights = rng.uniform(0.5, 2.0, len(LENGTHS))
    return emissions.problem(found, weights, Rules(smoothing), 1)


def starts_of(problem, rng, k=3, n=5):
    shares = rng.dirichlet(np.ones(k), (n, len(problem.components.X))).swapaxes(1, 2)
    search = _chain_search.ChainSearch(problem, k)
    each = [search.prior_and_point(own) for own in shares[:, :, search.at]]
    return [list(some) for some in zip(*each)]


def same(a, b):
    assert chain_change(a, b) < 1e-9


FAMILIES = [Gaussian, DiagonalGaussian, SphericalGaussian, Poisson, Gamma, Multinomial]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_steps_are_those_of_every_run_alone(family, gaps, rng):
    if gaps and family not in (Gaussian, DiagonalGaussian, SphericalGaussian):
        pytest.skip("whole rows only")
    problem = problem_of(rng, family, gaps=gaps)
    priors, points = starts_of(problem, rng)
    runs = runs_together(problem, points, priors)
    for _ in range(3):
        values, following = runs.step()
        for i, prior in enumerate(priors):
            problem.components.prior = prior
            same(runs.point(i), points[i])
            value, points[i] = problem.step(points[i])
            assert values[i] == pytest.approx(value, rel=1e-10)
        runs = following
    some = runs.some([3, 1])
    same(some.point(0), points[3])
    values, following = some.step()
    problem.components.prior = priors[1]
    value, point = problem.step(points[1])
    assert values[1] == pytest.approx(value, rel=1e-10)
    same(following.point(1), point)


def test_what_underflows_is_summed_in_logs(rng):
    problem = problem_of(rng, DiagonalGaussian)
    priors, points = starts_of(problem, rng, n=3)
    move = np.array([[1.0 - 2e-300, 1e-300, 1e-300]] * 3)
    points[1] = points[1][0], move[:, [2, 0, 1]], points[1][2]
    far = DiagonalGaussian(1e5 + np.zeros((3, 2)), np.full((3, 2), 1e-3))
    points[2] = *points[2][:2], far
    runs = runs_together(problem, points, priors)
    values, _ = runs.step()
    for i, prior in enumerate(priors):
        problem.components.prior = prior
        assert values[i] == pytest.approx(problem.step(points[i])[0], rel=1e-9)


def test_which_runs_go_one_by_one(rng):
    problem = problem_of(rng, TiedGaussian)
    assert runs_together(problem, starts_of(problem, rng)[1]) is None  # pooled
    problem = problem_of(rng, Gaussian)
    points = starts_of(problem, rng)[1]
    assert runs_together(problem, points[:1]) is None
    assert runs_together(problem, points) is not None
    problem.tell(np.full(60, -1))
    assert runs_together(problem, points) is None  # known states


def test_fits_are_those_of_runs_one_by_one(rng, monkeypatch):
    X = rng.normal(size=(150, 1)) + 2.0 * rng.integers(0, 3, size=(150, 1))
    ours = GaussianHMM.fit(X, 3, n_init=6, tol=1e-10, random_state=0)
    for module in (_chain_search, _emissions):
        monkeypatch.setattr(module, "runs_together", lambda *_: None)
    monkeypatch.setattr(em, "_is_far_behind", lambda *_: False)
    want = GaussianHMM.fit(X, 3, n_init=6, tol=1e-10, random_state=0)
    objective = want.fit_result.objective
    assert ours.fit_result.objective == pytest.approx(objective, abs=1e-4)
    trace = np.diff(ours.fit_result.trace)
    assert (trace > -1e-9 * abs(objective)).all()


@pytest.mark.parametrize("n_init", [3, 4, 9])
def test_half_of_many_starts_have_random_moves(n_init, rng, monkeypatch):
    drawn, point = [], _chain_search.ChainSearch.random_point

    def counted(self, rng):
        drawn.append(point(self, rng))
        return drawn[-1]

    monkeypatch.setattr(_chain_search.ChainSearch, "random_point", counted)
    problem = problem_of(rng, Gaussian)
    starts = clustered_starts(problem, 3, n_init, rng)
    assert 1 <= len(starts) <= n_init
    assert len(drawn) == (0 if n_init <= 3 else 2 * (n_init // 2))
    for _, (start, moves, _) in drawn:
        np.testing.assert_allclose([start.sum(), *moves.sum(axis=1)], 1.0)
        assert start.min() >= 0.1 / 3 - 1e-12 and moves.min() >= 0.1 / 3 - 1e-12


# -- the loop --------------------------------------------------------------------------
class Numbers:
    """Runs on numbers: each step goes half of the way to the run's own top."""

    def __init__(self, at, tops, rates):
        self.at, self.tops, self.rates = map(np.asarray, (at, tops, rates))

    def __len__(self):
        return len(self.at)

    def point(self, place):
        return self.at[place], self.tops[place], self.rates[place]

    def some(self, places):
        return Numbers(self.at[places], self.tops[places], self.rates[places])

    def step(self):
        following = self.at + self.rates * (self.tops - self.at)
        return self.at.astype(float), Numbers(following, self.tops, self.rates)


def step(point):
    at, top, rate = point
    return float(at), (at + rate * (top - at), top, rate)


def runs_of(starts, **options):
    own = {"tol": 1e-12, "max_iter": 400, **options}
    side = maximize_by_em(step, starts, together=lambda s: Numbers(*zip(*s)), **own)
    return side, maximize_by_em(step, starts, **own)


def test_the_loop_side_by_side_is_the_loop_one_by_one(rng):
    starts = [(rng.normal(), t, r) for t, r in rng.uniform(0.1, 0.9, (7, 2)) + [1, 0]]
    for max_iter in (0, 1, 400):
        (point, result), (other, want) = runs_of(starts, max_iter=max_iter)
        assert point == pytest.approx(other)
        assert result.objectives == pytest.approx(want.objectives)
        assert result.trace == pytest.approx(want.trace)
        assert result.status is want.status and result.n_iter == want.n_iter
        assert result.residual == pytest.approx(want.residual)


def test_runs_far_behind_end_early_and_near_ones_do_not():
    starts = [(0.0, 100.0, 0.9), (0.0, 95.0, 0.2), (-1.0, 1.0, 0.01)]
    (_, result), (_, want) = runs_of(starts)
    assert result.objective == want.objective and result.converged
    assert result.objectives[1] == pytest.approx(want.objectives[1])
    # the third still gains much of what it lacks of its own top, but not of the first's
    assert result.objectives[2] < want.objectives[2]


def test_a_callback_ends_all_runs():
    seen = []

    def end(n_iter, objective, gain):
        seen.append(objective)
        return len(seen) == 5

    starts = [(0.0, 1.0, 0.5), (0.2, 1.0, 0.5), (0.1, 1.0, 0.5)]
    (_, result), _ = runs_of(starts, callback=end)
    assert result.status.value == "stopped"
    assert result.objective == max(seen[:5]) == pytest.approx(0.6)
    assert len(result.objectives) == 3


def test_fits_of_products_run_side_by_side(rng):
    problem = problem_of(rng, {0: DiagonalGaussian, 1: Poisson})
    priors, points = starts_of(problem, rng, n=4)
    values, following = runs_together(problem, points, priors).step()
    for i, prior in enumerate(priors):
        problem.components.prior = prior
        value, point = problem.step(points[i])
        assert values[i] == pytest.approx(value, rel=1e-10)
        same(following.point(i), point)


def test_a_better_optimum_of_two_states_on_four_is_found():
    """Wide states whose moves matter, which no clustering shows."""
    move = [
        [0.3, 0.4, 0.2, 0.1],
        [0.1, 0.2, 0.3, 0.4],
        [0.5, 0.2, 0.1, 0.2],
        [0.25] * 4,
    ]
    mean = [[-2.5], [0.0], [2.5], [5.0]]
    truth = GaussianHMM([0.25] * 4, move, mean, [[0.5]] * 4)
    X = truth.sample(1, 1000, 0)[0]
    own = {"covariance_type": "diagonal", "n_init": 10}
    fits = [GaussianHMM.fit(X, 2, random_state=seed, **own) for seed in (0, 1, 2)]
    best = max(fit.fit_result.objective for fit in fits)
    assert best > -2389.6  # clusterings end at -2391.05
