"""Compiled EM steps of Gaussian mixtures, beside the same in tables of densities."""

import numpy as np
import pytest

from maxent.families import DiagonalGaussian, Gaussian, SphericalGaussian, TiedGaussian
from maxent.models import Mixture
from maxent.models._component_search import ComponentSearch
from maxent.models._components import GaussianRows
from maxent.models._mixture_em import MixtureProblem

GAUSSIANS = [Gaussian, DiagonalGaussian, SphericalGaussian]


def searches(rng, family, count, n=203, d=3, k=4):
    """A search with compiled steps, one without, and shares of the rows."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-4, 5, d)
    X += 3 * X.std(axis=0) * rng.integers(3, size=(n, 1)) + 10 * X.std(axis=0)
    rest = rng.uniform(0.5, 2.0, n), family, k, count, {}
    fast, slow = ComponentSearch(X, *rest), ComponentSearch(X, *rest)
    slow.rows = None
    return fast, slow, rng.dirichlet(np.full(k, 0.3), n).T


def same(a, b, rtol=1e-8):
    for one, other in zip((a[0], *a[1]._arrays()), (b[0], *b[1]._arrays())):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("count", [0.0, 3.0])
@pytest.mark.parametrize("family", GAUSSIANS)
def test_steps_are_those_of_tables(family, count, rng):
    fast, slow, shares = searches(rng, family, count)
    ours, want = fast.after_steps(shares), slow.after_steps(shares)
    assert ours.objective == pytest.approx(want.objective, rel=1e-9, abs=1e-6)
    same(ours.point, want.point)
    prior, point = want.prior, want.point
    values, following, done = fast.rows.steps(prior, count, point, 1)
    assert done and len(values) == 1
    assert values[0] == pytest.approx(slow.value(prior, point), rel=1e-11, abs=1e-8)
    same(following, slow.step(prior, point), 1e-9)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_halves_and_unions_are_those_of_tables(family, rng):
    fast, slow, shares = searches(rng, family, 3.0)
    prior, X, mass = slow.prior_of(shares), slow.X, shares[0] * slow.weights
    half = rng.uniform(size=len(X))
    both = np.stack([half, 1.0 - half])
    (value, pair), (want, other) = (
        search.pair_of(prior, X, mass, both) for search in (fast, slow)
    )
    assert value == pytest.approx(want, rel=1e-9, abs=1e-6)
    same(pair, other)
    one, want = (search.value_of_one(prior, X, mass) for search in (fast, slow))
    assert one == pytest.approx(want, rel=1e-10, abs=1e-7)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_what_needs_care_is_left_to_tables(family, rng):
    X = np.vstack([rng.normal(size=(30, 2)), np.tile([1e3, 1e3], (5, 1))])
    rows, n = GaussianRows(family, X, np.ones(35)), len(X)
    none = ComponentSearch(X, np.ones(n), family, 2, 0.0, {}).prior_of(np.ones((2, n)))
    last = np.arange(n) >= 30
    _, point, done = rows.steps(none, 0.0, np.stack([~last, last]) * 1.0, 3)
    assert not done and point is None  # no variance
    _, point, done = rows.steps(none, 0.0, np.stack([last >= 0, last < 0]) * 1.0, 3)
    assert not done and point is None  # no rows
    one = family.fit(X)
    start = np.array([1.0, 0.0]), type(one)._concatenated([one[None], one[None]])
    assert not rows.steps(none, 0.0, start, 3)[2]  # no weight


def test_a_step_that_gains_little_is_the_last(rng):
    fast, _, shares = searches(rng, Gaussian, 3.0)
    prior = fast.prior_of(shares)
    all_, _, _ = fast.rows.steps(prior, 3.0, shares, 200, last=True)
    gains = np.diff(all_)
    assert (gains > -1e-9 * (1 + np.abs(all_[1:]))).all()
    some, _, done = fast.rows.steps(prior, 3.0, shares, 200, least=0.1, last=True)
    np.testing.assert_array_equal(some, all_[: len(some)])
    assert done and gains[len(some) - 2] < 0.1 and (gains[: len(some) - 2] >= 0.1).all()


@pytest.mark.parametrize("count", [0.0, 2.0])
@pytest.mark.parametrize("family", [*GAUSSIANS, TiedGaussian])
def test_steps_of_fits_are_those_without_the_compiled_ones(family, count, rng):
    X, own = rng.normal(size=(90, 2)), rng.uniform(0.5, 2.0, 90)
    X[:45] += [3.0, 1.0]
    problem = MixtureProblem(X, own, family, count, None)
    point = problem.start_of_shares(rng.dirichlet(np.ones(3), 90))
    quick = problem.components.quick_step(count, point)
    assert (quick is None) == (family is TiedGaussian)
    value, following = problem.step(point)
    problem.components.quick_step = lambda *_: None
    want, other = problem.step(point)
    assert value == pytest.approx(want, rel=1e-11)
    same(following, other, 1e-9)


def test_whole_numbers_take_compiled_steps(rng):
    """Columns that are constant in a component have the prior's variance alone."""
    X = np.column_stack([rng.integers(0, 3, 300), rng.normal(size=300)]).astype(float)
    X[:, 1] += 4.0 * X[:, 0]
    fit = Mixture.fit(X, n_components=3, random_state=0)
    problem = MixtureProblem(X, None, Gaussian, 3.0, None)
    point = problem.start_of_mixture(fit.weights, fit.components)
    quick = problem.components.quick_step(3.0, point)
    assert quick is not None and np.isfinite(quick[0])
