"""Columns of several kinds in mixtures and hidden Markov models."""

import pickle

import numpy as np
import pytest
from refusals import refused
from scipy import stats

import maxent
from maxent.families import (
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Product,
    TiedGaussian,
)
from maxent.models import GaussianHMM, HiddenMarkovModel, Mixture

KINDS = {"visits": Poisson, ("height", "weight"): Gaussian, "ward": Categorical}
STATES = Product(
    {
        0: Poisson([2.0, 12.0]),
        (1, 2): Gaussian([[0.0, 0.0], [2.0, 2.0]], [[1.0, 0.5], [0.5, 1.0]]),
        3: Categorical([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]),
    }
)
TRUTH = HiddenMarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], STATES)


@pytest.fixture(scope="module")
def series():
    return TRUTH.sample(4, 150, random_state=0)


def with_gaps(series, rng, share=0.2):
    out = [x.copy() for x in series]
    for x in out:
        x[rng.random(x.shape) < share] = np.nan
    return out


def frames(series):
    pandas = pytest.importorskip("pandas")
    out = []
    for x in series:
        frame = pandas.DataFrame(x, columns=["visits", "height", "weight", "ward"])
        frame["ward"] = np.array(["east", "north", "west"])[x[:, 3].astype(int)]
        out.append(frame)
    return out


def log_density(part, x):
    """Log-density of what was seen of a row under one member of the truth."""
    seen = ~np.isnan(x)
    total = 0.0
    if seen[0]:
        total += stats.poisson(part.factors[0].members[0].rate).logpmf(x[0])
    o = np.flatnonzero(seen[1:3])
    if len(o):
        mean, cov = part.factors[1].mean[o], part.factors[1].cov[np.ix_(o, o)]
        total += stats.multivariate_normal(mean, cov).logpdf(x[1:3][o])
    if seen[3]:
        total += np.log(part.factors[2].members[0].prob[int(x[3])])
    return total


def test_likelihoods_with_gaps_are_those_of_enumeration(series, rng):
    (x,) = with_gaps([series[0][:5]], rng, 0.4)
    log_p = np.array([[log_density(part, row) for part in STATES] for row in x])
    total = -np.inf
    for path in np.ndindex(2, 2, 2, 2, 2):
        value = np.log(0.5) + log_p[0, path[0]]
        for t in range(1, 5):
            value += np.log(TRUTH.transition[path[t - 1], path[t]])
            value += log_p[t, path[t]]
        total = np.logaddexp(total, value)
    assert TRUTH.log_likelihood([x])[0] == pytest.approx(total, rel=1e-10)
    mixture = Mixture([0.3, 0.7], STATES)
    joint = log_p + np.log([0.3, 0.7])
    seen = ~np.isnan(x).all(axis=1)
    np.testing.assert_allclose(
        mixture.log_prob(x[seen]), np.logaddexp(*joint[seen].T), rtol=1e-10
    )


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_fits_rise_and_find_the_states(series, gaps, rng):
    data = with_gaps(series, rng, gaps)
    for model in (
        HiddenMarkovModel.fit(data, 2, family=numbered_kinds(), random_state=0),
        Mixture.fit(rows(data), family=numbered_kinds(), random_state=0),
    ):
        assert model.fit_result.converged
        trace = model.fit_result.objective_history
        assert np.diff(trace).min() >= -1e-10 * np.abs(trace).max()
        batch = getattr(model, "emission", None) or model.components
        rate = np.sort(batch.factors[0].members.rate.ravel())
        np.testing.assert_allclose(rate, [2.0, 12.0], rtol=0.15)
        assert batch.factors[2].members.prob.shape == (2, 1, 3)
        if hasattr(model, "emission"):
            assert model.n_parameters == 1 + 2 + 2 * (1 + 5 + 2)
            assert model.log_likelihood(data).sum() > TRUTH.log_likelihood(data).sum()


def numbered_kinds():
    return {0: Poisson, (1, 2): Gaussian, 3: Categorical}


def rows(series):
    X = np.vstack(series)
    return X[~np.isnan(X).all(axis=1)]


def test_names_and_texts_are_numbers_and_codes(series, tmp_path):
    data = frames(series)
    model = HiddenMarkovModel.fit(data, 2, family=KINDS, random_state=0)
    plain = HiddenMarkovModel.fit(series, 2, family=numbered_kinds(), random_state=0)
    assert model == plain and model.feature_names == list(data[0].columns)
    assert model.categories == {"ward": ("east", "north", "west")}
    np.testing.assert_array_equal(
        model.log_likelihood(data), plain.log_likelihood(series)
    )
    mixture = Mixture.fit(data[0], family=KINDS, random_state=0)
    np.testing.assert_array_equal(
        mixture.predict(data[0]), mixture.posterior(series[0]).argmax(axis=1)
    )
    for one in (model, mixture):
        maxent.save(one, tmp_path / "m.npz")
        for again in (maxent.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(one))):
            assert again == one and again.categories == one.categories
    empty = data[0].assign(weight=np.nan)
    np.testing.assert_array_equal(mixture.impute(empty)[:, 3], series[0][:, 3])
    data[1].loc[3, "ward"] = None  # a missing entry
    missing = series[1].copy()
    missing[3, 3] = np.nan
    assert model.log_likelihood(data)[1] == plain.log_likelihood([missing])[0]
    data[1].loc[0, "ward"] = "south"
    refused(lambda: model.log_likelihood(data), "'ward' has 'south' in row 0")


def test_families_of_numbers_take_columns_one_by_one(rng):
    X = np.vstack([rng.random((80, 5)) < p for p in (0.1, 0.8)]).astype(float)
    model = Mixture.fit(X, family=Bernoulli, random_state=0)
    one = Mixture.fit(
        X, family={j: Bernoulli for j in range(5)}, init=None, random_state=0
    )
    prob = model.components.members.prob
    np.testing.assert_allclose(
        prob,
        np.concatenate([part.members.prob for part in one.components.factors], axis=1),
        atol=1e-4,
    )
    assert (np.abs(np.sort(prob[:, 0]) - [0.1, 0.8]) < 0.15).all()
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    gaps = Mixture.fit(X, family=Bernoulli, random_state=0)
    trace = gaps.fit_result.objective_history
    assert np.diff(trace).min() >= -1e-10 * np.abs(trace).max()
    counts = HiddenMarkovModel.fit(
        rng.poisson([[1.0, 9.0]] * 40 + [[9.0, 1.0]] * 40), 2, family=Poisson
    )
    assert counts.emission.members.rate.shape == (2, 2)


def test_one_matrix_for_all_states(rng):
    peer = pytest.importorskip("sklearn.mixture")
    X = np.vstack([rng.normal(m, [1.0, 3.0], (300, 2)) for m in (0.0, 5.0, 10.0)])
    ours = Mixture.fit(
        X, n_components=3, family=TiedGaussian, smoothing=0.0, random_state=0
    )
    theirs = peer.GaussianMixture(3, covariance_type="tied", tol=1e-9, random_state=0)
    assert ours.log_prob(X).mean() == pytest.approx(theirs.fit(X).score(X), abs=1e-5)
    np.testing.assert_allclose(ours.components.cov[0], theirs.covariances_, rtol=1e-2)
    truth = GaussianHMM(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0, 0], [2, 2]], np.eye(2), tied=True
    )
    data = truth.sample(4, 200, random_state=1)
    model = GaussianHMM.fit(data, 2, covariance_type="tied", random_state=0)
    assert model.covariance_type == "tied" and model.n_parameters == 1 + 2 + 4 + 3
    assert (model.cov[0] == model.cov[1]).all()
    trace = model.fit_result.objective_history
    assert np.diff(trace).min() >= -1e-10 * np.abs(trace).max()
    full = GaussianHMM.fit(data, 2, random_state=0)
    assert full.log_likelihood(data).sum() >= model.log_likelihood(data).sum()


@pytest.mark.parametrize(
    "family, match",
    [
        ({0: Poisson, (1, 2): Gaussian}, "no entry for column 3"),
        ({0: Poisson, (1, 2, 0): Gaussian, 3: Categorical}, "two entries for column 0"),
        ({"a": Poisson}, "names the column 'a', and the data have no names"),
        ({0: Poisson, (1, 2): Gaussian, 4: Categorical}, "no entry for column 3"),
        ({0: int, (1, 2): Gaussian, 3: Categorical}, "must be a class of maxent"),
        ({0: NegativeBinomial, (1, 2): Gaussian, 3: Categorical}, "needs r"),
        ({0: (Poisson, 3), (1, 2): Gaussian, 3: Categorical}, "must be a dict"),
        ({0: Gamma, (1, 2): Gaussian, 3: Categorical}, "column"),
    ],
)
def test_families_that_do_not_suit_the_columns_are_refused(series, family, match):
    refused(lambda: Mixture.fit(series[0], family=family), match)
    refused(lambda: HiddenMarkovModel.fit(series, 2, family=family), match)


@pytest.mark.filterwarnings("ignore")
def test_counts_of_hmmlearn_are_taken_over(rng):
    hmm = pytest.importorskip("hmmlearn.hmm")
    X = rng.poisson(np.repeat([[1.0, 9.0], [7.0, 2.0]], 40, axis=0))
    for columns in (1, 2):
        peer = hmm.PoissonHMM(2, random_state=0, n_iter=5).fit(X[:, :columns])
        ours = HiddenMarkovModel.from_hmmlearn(peer)
        x = X[:, 0] if columns == 1 else X
        assert ours.log_likelihood([x])[0] == pytest.approx(
            peer.score(X[:, :columns]), rel=1e-9
        )
    draws = rng.multinomial(5, [0.2, 0.3, 0.5], 60)
    peer = hmm.MultinomialHMM(2, n_trials=5, random_state=0, n_iter=5).fit(draws)
    ours = HiddenMarkovModel.from_hmmlearn(peer)
    assert ours.log_likelihood([draws])[0] == pytest.approx(peer.score(draws), rel=1e-9)
    refused(
        lambda: HiddenMarkovModel.from_hmmlearn(3), "fitted hmmlearn.hmm.PoissonHMM"
    )
