"""Margin priors made of densities and of samples, against formulas and direct sums."""

import copy
import math
import pickle

import numpy as np
import pytest
from discrimination.margins.margin_cases import by_name
from scipy import special, stats
from sklearn.base import clone

from maxent import MEDClassifier, MEDRegressor, load, save
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    LaplaceMargin,
    LogisticMargin,
    MarginPrior,
    QuadratureMargin,
    UniformExponentialMargin,
    margin_from_spec,
)

INF = math.inf

NAMED = [
    (ExponentialMargin(5.0, 1.0), (-INF, 1.0)),
    (ExponentialMargin(0.7, 3.0), (-INF, 3.0)),
    (ErlangMargin(3, 6.0, 1.0), (-INF, 1.0)),
    (ErlangMargin(2.5, 200.0, 0.5), (-INF, 0.5)),
    (LaplaceMargin(4.0, 1.0), (-INF, INF)),
    (LaplaceMargin(0.3, -1.0), (-INF, INF)),
    (GaussianMargin(2.0, 1.0), (-INF, INF)),
    (GaussianMargin(50.0, 0.2), (-INF, INF)),
    (UniformExponentialMargin(0.3, 5.0), (-INF, 0.0)),
    (UniformExponentialMargin(2.0, 0.8, 1.5), (-INF, 1.5)),
]
named = pytest.mark.parametrize(("prior", "support"), NAMED, ids=by_name)


def made(prior, support, **options):
    return MarginPrior.from_density(prior.density, support, **options)


def agree(found, expected, scale):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)


@named
def test_densities_of_named_priors_give_their_potentials_and_losses(prior, support):
    mine = made(prior, support)
    top = prior.upper if math.isfinite(prior.upper) else 60.0 * prior.rate
    lam = top * np.array([0, 1e-6, 1e-3, 0.1, 0.37, 0.5, 0.8, 0.95, 0.999, 0.9999])
    unit = 1.0 / prior.rate
    m = prior.prior_mean - unit * np.array([-9, 0, 1e-4, 0.1, 0.5, 1, 3, 9, 80, 1e4])
    assert mine.upper == pytest.approx(prior.upper, rel=1e-12)
    assert mine.level == pytest.approx(prior.level, abs=1e-12 * unit)
    assert mine.rate == pytest.approx(prior.rate, rel=1e-12)
    assert mine.unit_weight(3.0) == pytest.approx(prior.unit_weight(3.0), rel=1e-12)
    agree(mine.potential(lam), prior.potential(lam), 1e-3)
    agree(mine.mean(lam), prior.mean(lam), unit)
    agree(mine.curvature(lam), prior.curvature(lam), unit**2)
    agree(mine.loss(m), prior.loss(m), 1e-3)
    agree(mine.loss_slope(m), prior.loss_slope(m), prior.rate)
    agree(mine.fenchel_young(lam, m), prior.fenchel_young(lam, m), 1.0)


@named
def test_the_end_of_the_domain_is_the_same(prior, support):
    """Beyond the last node the logarithm of the named priors is continued exactly."""
    mine = made(prior, support)
    assert mine.potential(0.0) == 0
    assert mine.potential(-1e-9) == -INF
    if not mine.bounded:
        assert mine.potential(1e6 * mine.rate) == pytest.approx(
            prior.potential(1e6 * prior.rate), rel=1e-9
        )
        return
    assert mine.potential(mine.upper) == mine.mean(mine.upper) == -INF
    assert mine.potential(mine.upper * (1 + 1e-9)) == -INF
    m = prior.level - np.array([1e6, 1e9, 1e12]) / prior.rate
    np.testing.assert_allclose(mine.loss(m), prior.loss(m), rtol=1e-11)
    # 1 - u of a power of two is exact, also beyond the top
    u = 1.0 - 0.5 ** np.arange(10, 50, 4)
    g, expected = mine.unit_potential.value(u), prior.unit_potential.value(u)
    np.testing.assert_allclose(g, expected, rtol=1e-9)


def scaled(law):
    """Density in other units, not normalised."""
    return lambda gamma: 1e-3 * law.pdf(gamma)


def test_densities_need_not_be_normalised_nor_vectorised():
    smooth = MarginPrior.from_density(scaled(stats.norm(1.0, 0.5)), (-INF, INF))
    lam = np.linspace(0.0, 40.0, 9)
    agree(smooth.potential(lam), GaussianMargin(2.0, 1.0).potential(lam), 1e-3)

    def scalar(g):
        return math.exp(3.0 * g) if g < 0.4 else 0.0  # refuses arrays

    prior = MarginPrior.from_density(scalar, (-INF, 1.0))
    lam = np.linspace(0.0, 2.99, 9)
    agree(prior.potential(lam), ExponentialMargin(3.0, 0.4).potential(lam), 1e-3)
    assert prior.level == 1.0  # as was said, although nothing lies near it


def uniform_potential(lam, a, b):
    x = lam * (b - a)
    return lam * a - np.log(-np.expm1(-x) / x)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (-3.0, 0.5), (0.2, 0.3)])
def test_bounded_supports_have_a_barrier_at_their_left_end(a, b):
    prior = MarginPrior.from_density(lambda gamma: 7.0, (a, b))
    lam = np.array([1e-3, 1.0, 30.0, 1e4, 1e7]) / (b - a)
    agree(prior.potential(lam), uniform_potential(lam, a, b), 1e-3)
    assert prior.upper == INF and prior.level == a
    assert prior.prior_mean == pytest.approx((a + b) / 2)
    assert prior.loss([a - 1e-6, b]).tolist() == [INF, 0.0]
    assert math.isfinite(prior.loss(a + 1e-6 * (b - a)))


def test_other_laws_against_their_transforms():
    beta = MarginPrior.from_density(stats.beta(2, 3).pdf, (0.0, 1.0))
    lam = np.array([0.1, 1.0, 10.0, 100.0])
    agree(beta.potential(lam), -np.log(special.hyp1f1(2, 5, -lam)), 1e-3)
    gumbel = MarginPrior.from_density(stats.gumbel_l.pdf, (-INF, INF))
    lam = np.array([0.01, 0.3, 0.9, 0.999])
    agree(gumbel.potential(lam), -special.gammaln(1 - lam), 1e-3)
    two = MarginPrior.from_density(
        lambda g: np.exp(10 * (g - 1)) + np.exp(2 * (g - 1)), (-INF, 1.0)
    )
    lam = np.array([0.01, 1.0, 1.9, 1.999])
    exact = lam - np.log((1 / (10 - lam) + 1 / (2 - lam)) / 0.6)
    agree(two.potential(lam), exact, 1e-3)
    apart = MarginPrior.from_density(
        lambda g: stats.norm.pdf(g, 1, 0.1) + stats.norm.pdf(g, -5, 0.1), (-INF, INF)
    )
    lam = np.array([0.01, 0.3, 3.0, 50.0])
    exact = -np.logaddexp(-lam, 5 * lam) + math.log(2) - 0.005 * lam**2
    agree(apart.potential(lam), exact, 1e-3)


def test_a_tail_with_a_negative_power_attains_its_end():
    """Inverse Gaussian shortfalls: at the end the potential is finite."""
    mean, shape = 0.2, 0.6
    upper = shape / (2 * mean**2)
    law = stats.invgauss(mean / shape, scale=shape)
    prior = MarginPrior.from_density(lambda g: law.pdf(1 - g), (-INF, 1.0))
    assert prior.upper == pytest.approx(upper, rel=1e-12)
    lam = upper * np.array([0.1, 0.5, 0.9, 0.9999])
    exact = lam - shape / mean * (1 - np.sqrt(1 - lam / upper))
    agree(prior.potential(lam), exact, 1e-3)
    assert prior.unit_potential.has_end
    m = np.array([-300.0, -30.0, 0.0, 0.5])
    d = 1 - m
    agree(prior.loss(m), shape * (d - mean) ** 2 / (2 * mean**2 * d), 1e-3)


def test_the_rate_of_the_tail_may_be_given():
    def near(g):
        return np.exp(2.05 * g) + np.exp(2.0 * g)

    with pytest.raises(ValueError, match=r"Give its rate as upper"):
        MarginPrior.from_density(near, (-INF, 0.0))
    prior = MarginPrior.from_density(near, (-INF, 0.0), upper=2.0)
    assert prior.upper == 2.0
    lam = np.array([0.1, 1.0, 1.9])
    total = 1 / 2.05 + 0.5
    exact = -np.log((1 / (2.05 - lam) + 1 / (2 - lam)) / total)
    np.testing.assert_allclose(prior.potential(lam), exact, rtol=1e-8)


@pytest.mark.parametrize(
    ("pdf", "support", "message"),
    [
        (lambda g: -np.exp(g), (-INF, 0.0), "returned -"),
        (lambda g: np.nan * g, (-INF, 0.0), "returned nan"),
        (lambda g: 0.0 * g, (-INF, 0.0), "zero wherever"),
        (stats.t(3).pdf, (-INF, INF), "left tail of pdf is too heavy"),
        (lambda g: np.exp(-np.sqrt(-g)), (-INF, 0.0), "left tail"),
        (lambda g: 1 / (1 + g**2), (0.0, INF), "right tail of pdf is too heavy"),
        (lambda g: g**-0.9, (0.0, 1.0), "do not settle"),
        (lambda g: 2 + np.sin(1e9 * g), (0.0, 1.0), "do not settle"),
        (LogisticMargin().density, (-INF, INF), "returned -|right tail|left tail"),
        (
            stats.uniform(0, 2).pdf,
            (-INF, INF),
            "zero below the margin -?[0-9e.-]+; end",
        ),
        (stats.norm(0, 1e6).pdf, (-INF, INF), "larger units"),
        (lambda g: 1.0, (0.0, 1e-300), "smaller units"),
        (lambda g: np.ones(3), (0.0, 1.0), "one real number"),
        (lambda g: np.exp(1j * g), (0.0, 1.0), "one real number"),
        (stats.norm.pdf, (1.0, 0.0), "a < b"),
        (stats.norm.pdf, 3.0, "support=3.0"),
        (stats.norm.pdf, (math.nan, 0.0), "a < b"),
    ],
)
def test_densities_without_a_potential_are_refused(pdf, support, message):
    with pytest.raises(ValueError, match=message):
        MarginPrior.from_density(pdf, support)


def test_wrong_rates_and_what_is_no_function_are_refused():
    for support in [(-INF, 0.0), (-1.0, 0.0)]:
        with pytest.raises(ValueError, match="upper=2"):
            MarginPrior.from_density(lambda g: np.exp(3 * g), support, upper=2.0)
    with pytest.raises(ValueError, match="upper=-1"):
        MarginPrior.from_density(np.exp, (-INF, 0.0), upper=-1.0)
    with pytest.raises(TypeError, match="from_samples"):
        MarginPrior.from_density([1.0, 2.0], (-INF, 0.0))


# ------------------------------------------------------------------------- samples


def test_samples_against_direct_sums(rng):
    g = rng.normal(1.0, 0.5, size=40).round(1)  # with ties
    w = rng.integers(0, 3, size=40).astype(float)
    prior = MarginPrior.from_samples(g, w)
    assert prior.upper == INF
    lam = np.array([1e-6, 0.1, 1.0, 7.0, 50.0])
    mass = w / w.sum()
    tilted = mass * np.exp(-np.multiply.outer(lam, g))
    mean = tilted @ g / tilted.sum(axis=1)
    agree(prior.potential(lam), -np.log(tilted.sum(axis=1)), 1e-6)
    agree(prior.mean(lam), mean, 1e-3)
    square = (tilted * (g - mean[:, None]) ** 2).sum(axis=1) / tilted.sum(axis=1)
    agree(prior.curvature(lam), square, 1e-3)
    # the loss at the mean of a tilted prior is attained at its multiplier
    agree(prior.loss(mean), prior.potential(lam) - lam * mean, 1e-3)
    # the mean at 50 is the least sample but for the last digits
    agree(prior.loss_slope(mean[:-1]), -lam[:-1], 1e-3)
    least = g[w > 0].min()
    assert prior.loss(prior.prior_mean + 1e-9) == 0
    at = -math.log(mass[g == least].sum())
    assert prior.loss(least + 1e-12) == pytest.approx(at, abs=1e-6)
    assert prior.loss(least - 1e-6) == INF
    # weights count copies
    assert prior.potential(2.0) == pytest.approx(
        MarginPrior.from_samples(np.repeat(g, w.astype(int))).potential(2.0), rel=1e-12
    )


def test_samples_of_one_value_are_a_fixed_margin():
    assert MarginPrior.from_samples([0.7, 0.7]) == FixedMargin(0.7)
    assert MarginPrior.from_samples([0.7, 3.0], [1.0, 0.0]) == FixedMargin(0.7)


@pytest.mark.parametrize(
    "samples",
    [[], [[1.0, 2.0]], [1.0, math.nan], [1.0, INF], [1e300, 2e300], [0.0, 1e-200]],
)
def test_samples_that_are_no_margins_are_refused(samples):
    with pytest.raises(ValueError, match="samples"):
        MarginPrior.from_samples(samples)


def test_rows_below_the_least_sample_are_not_told_of_a_fixed_margin():
    machine = MEDClassifier(margin=MarginPrior.from_samples([0.5, 1.5]))
    with pytest.raises(ValueError, match="which has a least margin") as error:
        machine.fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 1, 0])
    assert "fixed" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [0.0]), "two different nodes"),
        (([1.0, 1.0], [0.0, 0.0]), "two different nodes"),
        (([1.0, 2.0], [0.0]), "one entry per node"),
        (([1.0, math.nan], [0.0, 0.0]), "shortfalls"),
        (([1.0, 2.0], [0.0, -INF]), "log_masses"),
        (([1.0, 2.0], [0.0, 0.0], True, 1.0), "top"),
        (([1.0, 2.0], [0.0, 0.0], False, -1.0), "top"),
        (([1.0, 2.0], [0.0, 0.0], False, INF, 0.0), "rate"),
    ],
)
def test_nodes_that_are_no_distribution_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        QuadratureMargin(*arguments)


# ------------------------------------------------------------------------- machines


@pytest.fixture(scope="module")
def skewed():
    return MarginPrior.from_density(stats.gumbel_l(1.0, 0.2).pdf, (-INF, INF))


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("prior", "support"), [NAMED[0], NAMED[2], NAMED[4], NAMED[6]], ids=by_name
)
def test_machines_equal_those_of_the_named_priors(kernel, prior, support, rows):
    options = {"kernel": kernel, "C": 2.0, "tol": 1e-12}
    theirs = MEDClassifier(margin=prior, **options).fit(*rows)
    mine = MEDClassifier(margin=made(prior, support), **options).fit(*rows)
    scale = max(1.0, abs(theirs.objective_))
    assert mine.converged_ and 0 <= mine.duality_gap_ <= 1e-9 * scale
    assert mine.objective_ == pytest.approx(theirs.objective_, rel=1e-9)
    np.testing.assert_allclose(
        mine.decision_function(rows[0]), theirs.decision_function(rows[0]), atol=1e-6
    )


def test_machines_of_samples_have_their_gap(rows):
    """Also where margins below the least sample are impossible."""
    X, y = rows
    X = X + 4.0 * y[:, None]  # separable
    prior = MarginPrior.from_samples([0.2, 0.6, 1.0, 1.0, 1.4, 2.0])
    machine = MEDClassifier("linear", margin=prior).fit(X, y)
    assert machine.converged_
    assert (y * machine.decision_function(X) >= 0.2 - 1e-6).all()
    assert 0 <= machine.duality_gap_ <= 1e-3 * max(1.0, abs(machine.objective_))
    with pytest.raises(ValueError, match="separat"):
        MEDClassifier("linear", margin=prior).fit(*rows)


def test_regressors_take_a_prior_moved_to_another_level(skewed, rows):
    X, _ = rows
    prior = skewed.with_level(-0.3)
    lam = np.array([0.5, 2.0, 4.9])
    shift = (prior.level - skewed.level) * lam
    agree(prior.potential(lam), skewed.potential(lam) + shift, 1e-3)
    machine = MEDRegressor(kernel="linear", margin=prior).fit(X, X @ [2.0, -1.0])
    assert machine.converged_ and machine.score(X, X @ [2.0, -1.0]) > 0.9


def test_priors_are_values(skewed, rows, tmp_path):
    X, y = rows
    model = MEDClassifier("linear", margin=skewed).fit(X, y)
    save(model, tmp_path / "model.npz")
    read = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    others = [
        read.margin,
        clone(model).margin,
        pickle.loads(pickle.dumps(skewed)),
        copy.deepcopy(skewed),
        margin_from_spec(skewed.get_spec()),
    ]
    lam = np.linspace(0.0, 4.9, 7)
    for other in others:
        assert other == skewed and hash(other) == hash(skewed)
        np.testing.assert_array_equal(other.potential(lam), skewed.potential(lam))
    assert skewed != skewed.with_level(0.0)
    assert skewed != ExponentialMargin(5.0)


def test_far_and_missing_margins_are_never_nan(skewed):
    samples = MarginPrior.from_samples([0.0, 1.0, 1.5])
    bounded = MarginPrior.from_density(lambda g: 1.0, (0.0, 1.0))
    gauss = made(*NAMED[6])
    m = np.array([-1e160, -1e20, -1e8, -1.0, 0.0, 1.0, 1e8, 1e160])
    for prior in (skewed, samples, bounded, gauss):
        loss, slope = prior.loss(m), prior.loss_slope(m)
        assert not (np.isnan(loss) | np.isnan(slope)).any()
        assert (np.diff(loss[np.isfinite(loss)]) <= 0).all()
        for function in (prior.loss, prior.potential, prior.mean, prior.curvature):
            assert math.isnan(function(math.nan))
        for lam in (1e3, 1e20, 1e200):
            assert not math.isnan(prior.potential(lam))
            assert not math.isnan(prior.fenchel_young(lam, 0.5))
