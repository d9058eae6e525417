"""Outliers among sequences: rounds by enumeration, one state, lengths, refusals."""

import copy
import itertools
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from oracles.latent_rounds import ChainRounds, divergences
from refusals import cases, refused
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score

from maxent import MEDOutlierDetector, MEDSequenceOutlierDetector, load, save
from maxent._inputs.sequences import symbol_sequences, vector_sequences
from maxent.discrimination import ChainPosterior, ExponentialMargin
from maxent.discrimination.detection._chain_rounds import (
    CategoricalChains,
    GaussianChains,
)
from maxent.discrimination.detection._latent_rounds import RoundSettings, descend
from maxent.families import DirichletCounts, NormalInverseWishart
from maxent.models import CategoricalHMM, GaussianHMM

PRIOR = NormalInverseWishart(np.zeros(2), 0.7, 4.5, 1.5 * np.eye(2))


def symbols(rng, n, longest, M=3, missing=0.1):
    """Sequences of codes of different lengths, some of them not observed."""
    out = []
    for _ in range(n):
        x = rng.integers(0, M, size=rng.integers(1, longest + 1))
        out.append(np.where(rng.random(len(x)) < missing, -1, x))
    return out


def cycle(rng, n, length=20, noise=0.1):
    """Strings that go round and round the alphabet, and the same with letters mixed."""
    start = rng.integers(0, 3, size=n)
    codes = (start[:, None] + np.arange(length)) % 3
    wrong = rng.random(codes.shape) < noise
    codes = np.where(wrong, rng.integers(0, 3, codes.shape), codes)
    text = ["".join("abc"[c] for c in row) for row in codes]
    return text, ["".join(rng.permutation(list(one))) for one in text]


def alike(count):
    """One pseudo-count for all tables."""
    return dict.fromkeys(("start", "transition", "emission"), count)


def random_logs(rng, S, M):
    start, transition = rng.dirichlet(np.ones(S)), rng.dirichlet(np.ones(S), size=S)
    return np.log(start), np.log(transition), np.log(rng.dirichlet(np.ones(M), size=S))


def settings(level, rate, weight, **options):
    every = {"tol": 1e-30, "max_rounds": 5, "gap_tol": 1e-10, "max_iter": 200}
    margin = ExponentialMargin(rate, level)
    return RoundSettings(margin, level, weight, **every | options)


# ---------------------------------------------------------------------------- rounds


@pytest.mark.parametrize("tables", ["one for all", "a number each", "left to right"])
def test_rounds_are_those_of_enumerated_paths(tables, rng):
    S, M, rate, level = 2, 3, 2.0, -2.0
    X = symbols(rng, 8, 5, M)
    unit = rng.uniform(0.5, 2.0, size=8)
    weight = rng.integers(1, 3, size=8).astype(float)
    counts = alike(1.0)
    if tables == "a number each":
        counts = {
            "start": rng.uniform(0.2, 3.0, size=S),
            "transition": rng.uniform(0.2, 3.0, size=(S, S)),
            "emission": rng.uniform(0.2, 3.0, size=(S, M)),
        }
    elif tables == "left to right":
        counts |= {
            "start": np.array([2.0, 0.0]),
            "transition": np.triu(np.ones((2, 2))),
        }
    shapes = {"start": (S,), "transition": (S, S), "emission": (S, M)}
    alpha = [np.broadcast_to(counts[k], shape).ravel() for k, shape in shapes.items()]
    problem = CategoricalChains(symbol_sequences(X), S, counts, unit, M)
    oracle = ChainRounds(X, S, M, unit, np.concatenate(alpha))
    start, transition, table = random_logs(rng, S, M)
    if tables == "left to right":
        start[1] = transition[1, 0] = -np.inf
    logs = np.concatenate([start, transition.ravel(), table.ravel()])
    scores = [c @ np.where(oracle.alpha > 0, logs, 0.0) for c in oracle.counts]
    Q = [np.exp(s - logsumexp(s)) for s in scores]
    hidden = problem._pass(start, transition, table)
    bound = unit * np.array([logsumexp(s) for s in scores])
    np.testing.assert_allclose(hidden.bound, bound, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hidden.entropy, oracle.entropy(Q), atol=1e-10)
    flat = [part.reshape(8, -1) for part in hidden.expected]
    found = unit[:, None] * np.concatenate(flat, axis=1)
    np.testing.assert_allclose(found, oracle.expected(Q), atol=1e-10)

    want, a, last = divergences(oracle, Q, level, rate, weight, 5)
    rounds = descend(problem, hidden, settings(level, rate, weight))
    D = np.array([h[1] for h in rounds.dual.history])
    assert D[0] == pytest.approx(want[0], rel=1e-8, abs=1e-8)
    # a gap of 1e-10 leaves 1e-5 in the multipliers, and so in the next posteriors
    np.testing.assert_allclose(D, want, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(rounds.dual.lam, a, atol=2e-3 * rate)
    assert np.diff(want).max() <= 1e-7 * (1.0 + want[0])
    assert np.diff(D).max() <= 1e-9 * (1.0 + want[0])
    # the tables, which sum to less than one, once more
    at = problem.hidden(rounds.blocks, rounds.weights)
    np.testing.assert_allclose(at.bound, oracle.bound(a, last), atol=2e-2)
    posterior = rounds.posterior
    new = symbol_sequences(X)
    np.testing.assert_allclose(
        unit * posterior.expected_log_prob(new), at.bound, rtol=1e-9
    )


def test_gaussian_states_are_those_of_enumerated_paths(rng):
    S, n = 2, 6
    X = [rng.normal(size=(rng.integers(1, 5), 2)) for _ in range(n)]
    X[0][0] = np.nan
    found, unit = vector_sequences(X), rng.uniform(0.5, 2.0, size=n)
    if np.isnan(found.values[:, 0]).all():
        return
    problem = GaussianChains(found, S, alike(1.0), unit, PRIOR)
    start, transition, _ = random_logs(rng, S, 2)
    shift = np.log(0.7)  # less than one in all
    emission = rng.normal(size=(len(problem.steps), S)) * 5.0
    hidden = problem._pass(start + shift, transition + shift, emission)
    full = np.zeros((len(found.values), S))
    full[problem.steps] = emission
    states = np.zeros_like(full)
    for i, own in enumerate(np.split(full, found.offsets[1:-1])):
        scores, paths = [], list(itertools.product(range(S), repeat=len(own)))
        for z in paths:
            moves = sum(transition[a, b] + shift for a, b in itertools.pairwise(z))
            scores.append(start[z[0]] + shift + moves + own[range(len(z)), z].sum())
        Q = np.exp(scores - logsumexp(scores))
        for q, z in zip(Q, paths, strict=True):
            states[found.offsets[i] + np.arange(len(z)), z] += q
        bound, entropy = logsumexp(scores), -(Q * np.log(Q)).sum()
        assert hidden.bound[i] == pytest.approx(unit[i] * bound, rel=1e-10)
        assert hidden.entropy[i] == pytest.approx(unit[i] * entropy, abs=1e-9)
    np.testing.assert_allclose(hidden.expected[2], states[problem.steps], atol=1e-10)


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "diagonal"])
def test_divergence_never_rises_in_random_problems(kind, rng):
    worst, fell = 0.0, 0
    for _ in range(6):
        n, S = int(rng.integers(3, 15)), int(rng.integers(2, 4))
        unit = rng.uniform(0.3, 1.5, size=n)
        if kind == "categorical":
            found = symbol_sequences(symbols(rng, n, 12))
            counts = alike(rng.uniform(0.3, 2.0))
            problem = CategoricalChains(found, S, counts, unit, 3)
        else:
            X = [rng.normal(size=(rng.integers(2, 8), 2)) for _ in range(n)]
            X = [x + 4.0 * rng.integers(0, 2, size=(len(x), 1)) for x in X]
            prior = PRIOR
            if kind == "diagonal":
                prior = [NormalInverseWishart([0.0], 0.5, 3.0, [[2.0]])] * 2
            problem = GaussianChains(vector_sequences(X), S, alike(1.0), unit, prior)
        hidden = problem.start(rng)
        level = float(np.median(hidden.bound)) + rng.uniform(-1.0, 1.0)
        todo = settings(level, rng.uniform(0.5, 10.0), np.ones(n), max_rounds=8)
        found = descend(problem, hidden, todo)
        D = np.array([h[1] for h in found.dual.history])
        worst = max(worst, float(np.max(np.diff(D) / (1.0 + D[1:]), initial=0.0)))
        fell += D[0] - D[-1] > 1e-3
    assert worst <= 1e-9
    assert fell >= 2


@pytest.mark.parametrize("emission", ["categorical", "gaussian"])
def test_left_to_right_chains_never_go_back(emission, rng, tmp_path):
    """Ten steps of each of three states, one after the other; shuffled are outliers."""
    states = np.repeat([0, 1, 2], 10)
    X = rng.normal(size=(30, 30, 1)) + 6.0 * states[:, None]
    odd = [rng.permutation(x) for x in X]
    if emission == "categorical":
        X, odd = (
            np.clip(np.round(x / 3.0), 0, 4).astype(int)[..., 0]
            for x in (X, np.array(odd))
        )
    counts = {"start": [1.0, 0.0, 0.0], "transition": np.triu(np.ones((3, 3)))}
    model = MEDSequenceOutlierDetector(
        *(3,), emission=emission, pseudo_count=counts, random_state=0
    ).fit(X)
    q = model.posterior_
    assert (q.transition[np.tril_indices(3, -1)] == 0).all()
    assert (q.start[1:] == 0).all()
    assert np.isfinite(model.score_samples(odd)).all()
    labels = np.repeat([0, 1], 30)
    scores = model.score_samples([*X, *odd])
    assert roc_auc_score(labels, -scores) > 0.99
    plain = q.expected_model()
    assert plain.transition[2, 2] == 1.0
    save(model, tmp_path / "m.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "m.npz").score_samples(odd), scores[30:]
    )


# -------------------------------------------------------------------------- one state


def test_one_state_is_the_product_of_multinomials(rng):
    X = symbols(rng, 60, 15, M=4)
    for x in X:
        x[0] = max(x[0], 0)  # something is observed
    counts = np.array([np.bincount(x[x >= 0], minlength=4) for x in X])
    weight, level = rng.integers(0, 3, size=60), -9.0
    plain = MEDOutlierDetector(DirichletCounts(np.ones(4)), level=level, tol=1e-10)
    plain.fit(counts, sample_weight=weight)
    chain = MEDSequenceOutlierDetector(1, n_symbols=4, level=level, normalize=None)
    chain.fit(X, sample_weight=weight)
    assert 0 < len(plain.support_) < 60
    assert chain.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    assert chain.offset_ == plain.offset_
    scores = plain.score_samples(counts)
    np.testing.assert_allclose(chain.score_samples(X), scores, atol=1e-4)


def test_one_gaussian_state_is_the_gaussian_detector(rng):
    X = rng.normal(size=(50, 2))
    plain = MEDOutlierDetector("gaussian", level=-3.5, tol=1e-10).fit(X)
    chain = MEDSequenceOutlierDetector(1, emission="gaussian", level=-3.5)
    chain.fit(list(X[:, None]))
    assert chain.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    scores = plain.score_samples(X)
    np.testing.assert_allclose(chain.score_samples(list(X[:, None])), scores, atol=1e-4)


# ------------------------------------------------------------------------ the estimator


def test_diagonal_states_of_one_column_are_full_ones(rng):
    X = rng.normal(size=(12, 10, 1)) + 4.0 * rng.integers(0, 2, size=(12, 10, 1))
    options = {"emission": "gaussian", "random_state": 0, "n_init": 1}
    fits = [
        MEDSequenceOutlierDetector(2, covariance_type=kind, **options).fit(X)
        for kind in ("full", "diagonal")
    ]
    full, diagonal = (one.score_samples(X) for one in fits)
    np.testing.assert_allclose(diagonal, full, atol=1e-6)
    found = [one.posterior_.expected_model() for one in fits]
    assert [model.covariance_type for model in found] == ["full", "diagonal"]
    np.testing.assert_allclose(found[0].cov[:, 0], found[1].cov, rtol=1e-4)


def test_diagonal_states_of_many_columns_have_few_false_alarms(rng):
    shift = 3.0 * rng.integers(0, 2, size=(60, 15, 1))
    X = rng.normal(size=(60, 15, 12)) + shift
    alarms = []
    for kind in ("full", "diagonal"):
        detector = MEDSequenceOutlierDetector(
            2, emission="gaussian", covariance_type=kind, contamination=0.05,
            n_init=1, tol=1e-4, random_state=0,
        ).fit(X[:30])  # fmt: skip
        alarms.append(np.mean(detector.predict(X[30:]) == -1))
    assert alarms[1] < alarms[0]
    assert detector.posterior_.size == 12


def test_the_order_of_letters_is_learnt(rng):
    X, mixed = cycle(rng, 60)
    new, _ = cycle(rng, 40)
    options = {"alphabet": "abc", "random_state": 0, "quantile": 0.3}
    auc = []
    for n_states in (1, 3):
        detector = MEDSequenceOutlierDetector(n_states, **options).fit(X)
        scores = detector.score_samples(new + mixed[:40])
        auc.append(roc_auc_score(np.repeat([1, 0], 40), scores))
        assert detector.converged_ and np.isnan(detector.loo_bound_)
        assert np.max(np.diff(detector.objective_history_), initial=0.0) <= 1e-6
        assert detector.objective_ == detector.divergences_.min()
    assert auc[1] > 0.95 > 0.75 > auc[0]
    model = detector.posterior_.expected_model(alphabet="abc")
    assert isinstance(model, CategoricalHMM)
    assert model.transition.max(axis=1).min() > 0.6


def test_gaussian_states_are_found(rng):
    model = GaussianHMM(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0, 0.0], [5.0, 5.0]], np.ones((2, 2))
    )
    X = model.sample(60, 15, int(rng.integers(1000)))
    detector = MEDSequenceOutlierDetector(
        2, emission="gaussian", contamination=0.05, random_state=0
    ).fit(X)
    assert np.mean(detector.predict(X) == -1) <= 0.05
    away = [np.column_stack([one[:, 0], -one[:, 1]]) for one in X[:5]]
    assert (detector.predict([np.full((15, 2), 2.5), *away])[0]) == -1
    found = detector.posterior_.expected_model()
    np.testing.assert_allclose(np.sort(found.mean[:, 0]), [0.0, 5.0], atol=0.7)
    assert (detector.posterior_.size, detector.n_symbols_) == (2, 2)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_the_spread_of_states_does_not_depend_on_their_distance(kind, rng):
    states = rng.integers(4, size=(16, 20)).repeat(3, axis=1)
    noise = rng.normal(size=(16, 60, 2))
    X = noise + 1e4 * np.stack([states, 0 * states], axis=2)
    model = MEDSequenceOutlierDetector(
        4, emission="gaussian", covariance_type=kind, random_state=0
    ).fit(X)
    for state in model.posterior_.emission:
        for part in state if isinstance(state, list) else [state]:
            d = len(part.mean)
            spread = np.sqrt(np.diag(part.scale) / (part.df - d - 1.0))
            np.testing.assert_allclose(spread, 1.0, atol=0.3)


def test_lengths_do_not_matter_where_scores_are_per_step(rng):
    X = [rng.integers(0, 3, size=12) for _ in range(16)]
    options = {"random_state": 0, "n_symbols": 3, "n_init": 1, "tol": 1e-3}
    whole = MEDSequenceOutlierDetector(2, normalize=None, level=-12.0, **options)
    step = MEDSequenceOutlierDetector(2, level=-1.0, **options)
    whole.fit(X), step.fit(X)
    np.testing.assert_allclose(step.dual_coef_, whole.dual_coef_, rtol=1e-9)
    np.testing.assert_allclose(step.offset_, whole.offset_ / 12, rtol=1e-12)
    scores = whole.score_samples(X) / 12
    np.testing.assert_allclose(step.score_samples(X), scores, rtol=1e-9)
    # a sequence that is twice as long scores the same per step, half as whole
    X = [rng.integers(0, 3, size=n) for n in rng.integers(5, 40, size=40)]
    whole = MEDSequenceOutlierDetector(1, normalize=None, n_symbols=3).fit(X)
    step = MEDSequenceOutlierDetector(1, n_symbols=3).fit(X)
    x = rng.integers(0, 3, size=10)
    for detector, factor in ((whole, 2.0), (step, 1.0)):
        one, two = detector.score_samples([x, np.tile(x, 2)])
        assert two == pytest.approx(factor * one, rel=1e-10)


def test_scores_are_bounds_of_expected_log_likelihoods(rng):
    X, _ = cycle(rng, 12, 8)
    detector = MEDSequenceOutlierDetector(2, alphabet="abc", random_state=0)
    scores = detector.fit(X).score_samples(X)
    posterior, draws = detector.posterior_, []
    for _ in range(300):
        tables = posterior.start[None], posterior.transition, posterior.emission
        start, A, B = ([rng.dirichlet(row) for row in table] for table in tables)
        model = CategoricalHMM(start[0], A, B, "abc")
        draws.append(model.log_likelihood(X) / 8)
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(300)
    assert (scores <= mean + 6 * error).all()
    assert (scores >= mean - 1.0).all()


@pytest.mark.parametrize("normalize", ["length", None])
def test_weights_are_copies(normalize, rng):
    X, _ = cycle(rng, 12, 9)
    X = [x[: rng.integers(4, 10)] for x in X]
    weight = rng.integers(0, 4, size=12)
    model = MEDSequenceOutlierDetector(
        3, alphabet="abc", random_state=0, n_init=1, tol=1e-4, normalize=normalize
    )
    one = clone(model).fit(X, sample_weight=weight)
    two = clone(model).fit(
        [x for x, w in zip(X, weight, strict=True) for _ in range(w)]
    )
    assert one.level_ == pytest.approx(two.level_, rel=1e-6)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)
    np.testing.assert_allclose(one.score_samples(X), two.score_samples(X), atol=1e-4)


def test_ways_to_give_sequences_agree(rng):
    text, _ = cycle(rng, 12, 10)
    codes = [np.array(["abc".index(c) for c in one]) for one in text]
    model = MEDSequenceOutlierDetector(2, n_symbols=3, random_state=0, n_init=2)
    want = model.fit(codes).score_samples(codes)
    for X in (np.array(codes), [one.tolist() for one in codes]):
        np.testing.assert_array_equal(clone(model).fit(X).score_samples(X), want)
    letters = clone(model).set_params(alphabet="abc", missing="?", n_symbols=None)
    for X in (text, np.array(text)):
        np.testing.assert_array_equal(clone(letters).fit(X).score_samples(X), want)
    letters.fit(text)
    unknown = text[0][:3] + "?" + text[0][4:]
    codes[0][3] = -1
    np.testing.assert_array_equal(
        letters.score_samples([unknown]), model.score_samples(codes[:1])
    )


def test_long_sequences_and_impossible_looking_ones_have_scores(rng):
    X = [rng.integers(0, 2, size=n) for n in (3000, 1, 500)]
    detector = MEDSequenceOutlierDetector(2, n_symbols=3, random_state=0, n_init=1)
    assert np.isfinite(detector.fit(X).score_samples([*X, [2] * 400])).all()
    # vectors a thousand standard deviations away
    X = [rng.normal(size=(20, 1)) for _ in range(10)]
    detector = MEDSequenceOutlierDetector(2, emission="gaussian", random_state=0)
    far = detector.fit(X).score_samples([1e3 * np.ones((20, 1))])
    assert np.isfinite(far).all() and far < detector.offset_


def test_same_bits_for_any_number_of_jobs(rng):
    X, _ = cycle(rng, 25, 9)
    fits = [
        MEDSequenceOutlierDetector(
            3, alphabet="abc", random_state=1, n_init=3, n_jobs=jobs
        ).fit(X)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    np.testing.assert_array_equal(*(one.score_samples(X) for one in fits))


@pytest.mark.parametrize(
    "emission, kind",
    [("categorical", "full"), ("gaussian", "full"), ("gaussian", "diagonal")],
)
def test_copies_and_model_files_score_to_the_bit(emission, kind, tmp_path, rng):
    X = rng.normal(size=(9, 6, 2))
    if emission == "categorical":
        X = [x for x in symbols(rng, 20, 8) if (x >= 0).any()]
    size = 3 if emission == "categorical" else None
    model = MEDSequenceOutlierDetector(
        2, emission=emission, covariance_type=kind, n_symbols=size, random_state=0,
        n_init=1,
    )  # fmt: skip
    want = model.fit(X).score_samples(X)
    save(model, tmp_path / "m.npz")
    for back in (
        load(tmp_path / "m.npz"),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(back.score_samples(X), want)
    assert "2" in repr(model.posterior_)


# ---------------------------------------------------------------------------- refusals

BAD = {
    "n_states": [0, 2.5, "a"],
    "emission": ["gauss", None],
    "covariance_type": ["diag", None],
    "pseudo_count": [
        *(0.0, -1.0, np.nan, {"steps": 1.0}, {"start": -1.0}, {"emission": 0.0}),
        *({"start": [1.0, 1.0, 1.0]}, {"start": [0.0, 0.0]}, {"transition": np.nan}),
        *({"transition": [[1.0, 1.0], [0.0, 0.0]]}, {"emission": [[1.0, 0.0]] * 2}),
    ],
    "normalize": ["steps", True],
    "n_init": [0],
    "n_symbols": [0, 1.5],
    "level": ["high", np.inf],
    "quantile": [-0.1, 2],
    "contamination": [0.0, 0.7],
    "C": [0.0],
    "margin": ["normal"],
    "tol": [0.0],
    "max_iter": [0],
    "random_state": ["a"],
    "n_jobs": [0],
}


@pytest.mark.parametrize(("name", "value"), cases(BAD))
def test_parameters_outside_their_domain_are_refused(name, value):
    X = [[0, 1, 0], [1, 1]]
    model = MEDSequenceOutlierDetector(**{name: value})
    refused(lambda: model.fit(X), rf"\b{name}\b")


def test_sequences_that_make_no_sense_are_refused(rng):
    def fit(X, weight=None, **options):
        model = MEDSequenceOutlierDetector(**options)
        return lambda: model.fit(X, sample_weight=weight)

    refused(fit([]), "no sequence")
    refused(fit([[0, 1], []]), r"sequences\[1\] is empty")
    refused(fit([[0, 1], [0, 0.5]]), r"0.5 is no code.*emission='gaussian'")
    refused(fit([[0, 1], [0, -2]]), "-2 is no code")
    refused(fit([[0, 5]], n_symbols=3), "5 is no code")
    refused(fit([0, 1, 1]), r"one sequence.*\[X\]")
    refused(fit(np.array([0, 1, 1])), "one sequence")
    refused(fit("abab", alphabet="ab"), "one sequence")
    refused(fit(["a", "b"]), "alphabet")
    refused(fit(["abz"], alphabet="ab"), "'z'")
    refused(fit([[0, 1]], n_states=3), "n_states=3 is more than the 2 observed steps")
    refused(fit([[0, 1], [0, 1]], [1, 0], n_states=3), "n_states=3 is more than the 2")
    refused(fit([[0, 1], [-1, -1]], n_states=1), "sequence 1 of X .* no observed")
    refused(fit([[0, 1]], [0.0]), "sample_weight is zero")
    refused(fit([[0, 1]], [1.0, 1.0]), "sample_weight")
    refused(fit([[0, 1]], level=0.5), "level=0.5 is above 0")
    gaussian = {"emission": "gaussian"}
    refused(fit(rng.normal(size=(2, 3, 2)), alphabet="ab", **gaussian), "alphabet='ab'")
    refused(fit(rng.normal(size=(5, 2)), **gaussian), "one sequence")
    refused(fit([[[1.0, np.nan]]], **gaussian), "NaN in part")
    refused(fit([[[1.0], [np.inf]]], **gaussian), "infinite")
    refused(fit([[[1.0, 2.0]], [[1.0]]], **gaussian), "1 columns; 2 are expected")
    refused(fit([[[1.0, 2.0], [1.0, 3.0]]], n_states=1, **gaussian), "constant")


@pytest.mark.parametrize("gap", [1, 7])
def test_steps_after_the_last_observed_one_change_nothing(rng, gap):
    X = [x for x in symbols(rng, 20, 9) if (x >= 0).any()]
    longer = [np.append(x, [-1] * (gap * (i % 2))) for i, x in enumerate(X)]
    model = MEDSequenceOutlierDetector(2, n_symbols=3, random_state=0, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, other = clone(model).fit(X), clone(model).fit(longer)
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(longer))
    with pytest.raises(ValueError, match=r"sequence 0 of X .* no observed"):
        one.predict([[-1, -1]])


def test_tables_beyond_the_memory_are_refused():
    model = MEDSequenceOutlierDetector(100_000, n_symbols=1_000_000)
    with pytest.raises(MemoryError, match="n_states=100000 needs"):
        model.fit([[0, 1] * 50_000])


def test_predictions_look_at_what_they_are_given(rng):
    model = MEDSequenceOutlierDetector(2, random_state=0, n_init=1)
    with pytest.raises(NotFittedError):
        model.predict([[0, 1]])
    model.fit([[0, 1, 1], [1, 0]] * 5)
    refused(lambda: model.predict([[0, 2]]), "2 is no code")
    refused(lambda: model.predict([[]]), "empty")
    broken = copy.deepcopy(model)
    broken.posterior_ = 3.0
    refused(lambda: broken.predict([[0, 1]]), "inconsistent")
    broken = copy.deepcopy(model).set_params(emission="gaussian")
    refused(lambda: broken.predict([[[0.0]]]), "inconsistent")
    broken = copy.deepcopy(model)
    broken.n_symbols_ = 5
    refused(lambda: broken.predict([[0, 1]]), "inconsistent")
    square = np.ones((2, 2))
    for given in (
        ([0.0, 1.0], np.ones((1, 2)), np.ones(2)),
        ([1.0], square, 1),
        ([1.0, 1.0], square, [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match=r"(pseudo_counts|emission)"):
            ChainPosterior(*given)


def test_rounds_that_are_cut_short_are_said(rng):
    X, _ = cycle(rng, 20, 10)
    model = MEDSequenceOutlierDetector(
        2, alphabet="abc", random_state=0, n_init=1, max_iter=1
    )
    with pytest.warns(ConvergenceWarning, match="round 1, the last one"):
        model.fit(X)
    assert not model.converged_ and model.n_iter_ == 1


def test_memory_grows_with_the_steps_and_not_with_their_square(rng):
    X = [rng.normal(size=(400, 2)) for _ in range(30)]
    tracemalloc.start()
    try:
        MEDSequenceOutlierDetector(
            2, emission="gaussian", n_init=1, tol=1e-3, random_state=0
        ).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e8  # all steps by all steps would be 1.2e9


def test_letters_of_strings_are_found(rng, tmp_path):
    X = ["".join(rng.choice(list("cab"), size=8)) for _ in range(30)]
    weight = np.array([0.0 if "a" in one else 1.0 for one in X])
    weight[:9] = 1.0
    options = {"random_state": 0, "missing": "b"}
    found = MEDSequenceOutlierDetector(**options).fit(X, None, weight)
    given = MEDSequenceOutlierDetector(alphabet="ac", **options).fit(X, None, weight)
    assert found.alphabet is None and found.alphabet_ == "ac"
    np.testing.assert_array_equal(found.score_samples(X), given.score_samples(X))
    save(found, tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.score_samples(X), given.score_samples(X))
    refused(lambda: found.predict(["acx"]), "'x' is not in the alphabet 'ac'")


def test_bases_in_both_cases_are_warned_about(rng):
    X = ["".join(rng.permutation(list(5 * letters))) for letters in ["ACGT", "acgt"]]
    detector = MEDSequenceOutlierDetector(n_init=1, max_iter=1, random_state=0)
    with (
        pytest.warns(UserWarning, match="A, C, G, T occur in lower case too"),
        pytest.warns(ConvergenceWarning),
    ):
        detector.fit(X)


def test_rejecting_nearly_all_training_sequences_is_told():
    X = [[0, 1] * 5] * 30  # all score alike
    with pytest.warns(UserWarning, match="30 of the 30 training data .*contamination"):
        model = MEDSequenceOutlierDetector(random_state=0).fit(X)
    assert (model.predict(X) == -1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(contamination=0.05).fit(X)


def test_choices_that_may_be_none_say_so():
    for normalize in ("l", "steps"):
        machine = MEDSequenceOutlierDetector(1, alphabet="ab", normalize=normalize)
        refused(lambda m=machine: m.fit(["ab"] * 9), "use one of 'length' or None")
    machine = MEDOutlierDetector("multinomial", missing="drop")
    refused(lambda: machine.fit([[0, 1]] * 9), "use one of 'category' or None")
