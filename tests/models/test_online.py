"""Batches of rows: stepwise EM by hand, streams, files, refusals."""

import itertools

import numpy as np
import pytest
from models.sequence_cases import quiet
from refusals import refused
from scipy import stats

from maxent import load, save
from maxent.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gamma,
    Gaussian,
    Independent,
    Poisson,
    Product,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.models import (
    CategoricalHMM,
    GaussianHMM,
    HiddenMarkovModel,
    Mixture,
    Mixtures,
)

MOVES = np.array([[0.9, 0.1], [0.2, 0.8]])
MEAN, COV = np.array([[0.0, 1.0], [4.0, -3.0]]), np.stack([np.eye(2), 2 * np.eye(2)])
COMPONENTS = {
    "full": Gaussian(MEAN, COV),
    "diagonal": DiagonalGaussian(MEAN, np.array([[1.0, 2.0], [3.0, 0.5]])),
    "spherical": SphericalGaussian(MEAN, [1.0, 2.0]),
    "tied": TiedGaussian(MEAN, np.array([[1.0, 0.3], [0.3, 2.0]])),
    "signs": Independent(Bernoulli([[0.2, 0.7], [0.6, 0.3]])),
    "columns": Product(
        {0: Poisson([2.0, 9.0]), 1: Gaussian(MEAN[:, :1], COV[:, :1, :1])}
    ),
    "counts": Poisson([2.0, 12.0]),
}


@pytest.mark.parametrize(
    "name, gaps",
    [(name, False) for name in COMPONENTS]
    + [(name, True) for name in COMPONENTS if name != "counts"],
)
def test_a_whole_step_is_a_step_of_em(name, gaps, rng):
    model = Mixture([0.4, 0.6], COMPONENTS[name])
    X = model.sample(200, rng).astype(float)
    if gaps:  # of counts alone in products: fits leave out the rows of lost factors
        X[::3, 0] = np.nan
        X[1::4, 1] = np.where(name == "columns" or np.isnan(X[1::4, 0]), 1.0, np.nan)
    found = model.update(X, step=1.0)
    once = quiet(Mixture.fit, X, init=model, smoothing=0.0, max_iter=1)
    chain = HiddenMarkovModel([0.3, 0.7], MOVES, COMPONENTS[name])
    after = chain.update([X[:120], X[120:]], step=1.0)
    em = quiet(
        HiddenMarkovModel.fit, [X[:120], X[120:]], init=chain, smoothing=0.0, max_iter=1
    )
    np.testing.assert_allclose(found.weights, once.weights, rtol=1e-10)
    np.testing.assert_allclose(after.transition, em.transition, rtol=1e-10)
    pairs = (found.components, once.components), (after.emission, em.emission)
    for mine, theirs in pairs:
        for a, b in zip(mine._arrays(), theirs._arrays(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("step", [0.3, None])
def test_a_gaussian_mixture_is_stepwise_em_by_hand(step, rng):
    """Sums of 1, x and x^2, with the number of rows for the step."""
    truth = Mixture([0.3, 0.7], Gaussian([[0.0], [5.0]], [[[1.0]], [[2.0]]]))
    model = Mixture([0.5, 0.5], Gaussian([[-1.0], [4.0]], [[[2.0]], [[2.0]]]))
    w, m, v = model.weights, model.components.mean[:, 0], np.array([2.0, 2.0])
    seen, S = 0.0, None
    for _ in range(4):
        X = truth.sample(int(rng.integers(20, 60)), rng)
        model = model.update(X, step=step)
        x = X[:, 0]
        joint = w * stats.norm.pdf(x[:, None], m, np.sqrt(v))
        r = joint / joint.sum(axis=1, keepdims=True)
        batch = np.stack([r.mean(axis=0), x @ r / len(x), x**2 @ r / len(x)])
        S = np.stack([w, w * m, w * (m**2 + v)]) if S is None else S
        share = step or (len(x) / (seen + len(x))) ** 0.6
        S, seen = (1 - share) * S + share * batch, seen + len(x)
        w, m = S[0], S[1] / S[0]
        v = S[2] / S[0] - m**2
    np.testing.assert_allclose(model.weights, w, rtol=1e-10)
    np.testing.assert_allclose(model.components.mean[:, 0], m, rtol=1e-10)
    np.testing.assert_allclose(model.components.cov[:, 0, 0], v, rtol=1e-9)


def forward_backward(start, moves, rate, x):
    """Posterior states, and expected moves, of one sequence by its definition."""
    like = stats.poisson.pmf(np.asarray(x)[:, None], rate)
    a, b = np.zeros(like.shape), np.ones(like.shape)
    a[0] = start * like[0]
    for t in range(1, len(x)):
        a[t] = (a[t - 1] @ moves) * like[t]
    for t in range(len(x) - 2, -1, -1):
        b[t] = moves @ (like[t + 1] * b[t + 1])
    total = a[-1].sum()
    pairs = sum(
        np.outer(a[t], like[t + 1] * b[t + 1]) * moves for t in range(len(x) - 1)
    )
    return a * b / total, pairs / total


def test_a_chain_of_counts_is_stepwise_em_by_hand(rng):
    """From the second batch on its statistics are what it has seen."""
    truth = HiddenMarkovModel([0.5, 0.5], MOVES, Poisson([2.0, 9.0]))
    model = HiddenMarkovModel([0.5, 0.5], MOVES, Poisson([3.0, 7.0]))
    start, moves, rate = model.start, model.transition, np.array([3.0, 7.0])
    S, seen = None, 0.0
    for _ in range(4):
        sequences = truth.sample(3, [5, 9, 12], rng)
        model = model.update(sequences)
        parts = [forward_backward(start, moves, rate, x) for x in sequences]
        n = 26.0
        batch = (
            sum(q[0] for q, _ in parts) / n,
            sum(p for _, p in parts) / n,
            sum(q.sum(axis=0) for q, _ in parts) / n,
            sum(np.asarray(x) @ q for x, (q, _) in zip(sequences, parts)) / n,
        )
        share = (n / (seen + n)) ** 0.6
        S = (
            batch
            if S is None
            else tuple((1 - share) * a + share * b for a, b in zip(S, batch))
        )
        seen += n
        start, moves = S[0] / S[0].sum(), S[1] / S[1].sum(axis=1, keepdims=True)
        rate = S[3] / S[2]
    np.testing.assert_allclose(model.start, start, rtol=1e-9)
    np.testing.assert_allclose(model.transition, moves, rtol=1e-9)
    np.testing.assert_allclose(model.emission.rate, rate, rtol=1e-9)


def expected_moments(mean, cov, x):
    """E y and E yy' of a Gaussian y of which x shows the entries that are not NaN."""
    m, P = np.isnan(x), np.linalg.inv(cov)
    y, left = np.where(m, mean, x), np.zeros_like(cov)
    if m.any():
        left[np.ix_(m, m)] = np.linalg.inv(P[np.ix_(m, m)])
        y[m] -= left[np.ix_(m, m)] @ P[np.ix_(m, ~m)] @ (x - mean)[~m]
    return y, np.outer(y, y) + left


def batch_by_paths(start, moves, mean, cov, sequences):
    """Expected statistics of one step, by enumeration of the paths of states."""
    d, n = mean.shape[1], sum(map(len, sequences))
    S = np.zeros(2), np.zeros((2, 2)), np.zeros(2), np.zeros((2, d)), 0.0 * cov
    for x in sequences:
        seen = ~np.isnan(x)
        like = [
            [
                stats.multivariate_normal.pdf(y[o], m[o], V[np.ix_(o, o)])
                for m, V in zip(mean, cov)
            ]
            if o.any()
            else [1.0, 1.0]
            for y, o in zip(x, seen)
        ]
        paths = list(itertools.product(range(2), repeat=len(x)))
        p = np.array(
            [
                start[s[0]]
                * np.prod([moves[a, b] for a, b in itertools.pairwise(s)])
                * np.prod([like[t][k] for t, k in enumerate(s)])
                for s in paths
            ]
        )
        for w, s in zip(p / p.sum() / n, paths):
            S[0][s[0]] += w
            for a, b in itertools.pairwise(s):
                S[1][a, b] += w
            for t, k in enumerate(s):
                if seen[t].any():
                    one, two = expected_moments(mean[k], cov[k], x[t])
                    S[2][k] += w
                    S[3][k] += w * one
                    S[4][k] += w * two
    return S


@pytest.mark.parametrize("kind", ["full", "diagonal", "factors"])
def test_rows_missing_in_part_are_stepwise_em_by_enumeration(kind, rng):
    cov = np.array([[[1.0, 0.6], [0.6, 2.0]], [[2.0, -0.9], [-0.9, 1.0]]])
    if kind != "full":
        cov = cov * np.eye(2)
    shown = {
        "full": lambda: Gaussian(MEAN, cov),
        "diagonal": lambda: DiagonalGaussian(MEAN, cov.diagonal(axis1=1, axis2=2)),
        "factors": lambda: Product(
            {j: Gaussian(MEAN[:, [j]], cov[:, [j]][:, :, [j]]) for j in (0, 1)}
        ),
    }[kind]()
    model = HiddenMarkovModel([0.3, 0.7], MOVES, shown)
    start, moves, mean, S = model.start, MOVES, MEAN, None
    for step in (1.0, 0.3, 0.5):
        sequences = [2.0 + 3.0 * rng.normal(size=(n, 2)) for n in (6, 4, 5)]
        sequences[0][[1, 3], [0, 1]] = sequences[1][2] = sequences[2][0, 1] = np.nan
        batch = batch_by_paths(start, moves, mean, cov, sequences)
        S = batch if S is None else tuple(a + step * (b - a) for a, b in zip(S, batch))
        model = model.update(sequences, step=step)
        start, moves = S[0] / S[0].sum(), S[1] / S[1].sum(axis=1, keepdims=True)
        mean = S[3] / S[2][:, None]
        cov = S[4] / S[2][:, None, None] - mean[:, :, None] * mean[:, None]
        if kind != "full":
            cov = cov * np.eye(2)
    np.testing.assert_allclose(model.start, start, rtol=1e-8)
    np.testing.assert_allclose(model.transition, moves, rtol=1e-8)
    own_mean, own_var = model.emission._moments()
    np.testing.assert_allclose(own_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(own_var, cov.diagonal(axis1=1, axis2=2), rtol=1e-8)
    if kind == "full":
        np.testing.assert_allclose(model.emission.cov, cov, rtol=1e-8)


def test_streams_end_near_the_fit_to_all_rows(rng):
    truth = Mixture([0.3, 0.7], Gaussian(MEAN, COV))
    X = truth.sample(6000, rng)
    model = Mixture.fit(X[:200], n_components=2, random_state=0)
    for lo in range(200, 6000, 200):
        model = model.update(X[lo : lo + 200])
    best = Mixture.fit(X, n_components=2, random_state=0)
    assert best.log_prob(X).mean() - model.log_prob(X).mean() < 0.01
    chain = GaussianHMM([0.5, 0.5], MOVES, MEAN, COV)
    x = chain.sample(40, 100, rng)
    online = GaussianHMM.fit(x[:4], 2, random_state=0)
    for i in range(4, 40, 4):
        online = online.update(x[i : i + 4])
    assert type(online) is GaussianHMM
    whole = GaussianHMM.fit(x, 2, random_state=0)
    less = (whole.log_likelihood(x) - online.log_likelihood(x)).sum()
    assert less < 0.005 * 4000
    letters = CategoricalHMM([0.5, 0.5], MOVES, [[0.8, 0.2], [0.1, 0.9]], alphabet="AB")
    text = letters.sample(20, 80, rng)
    learnt = CategoricalHMM.fit(text[:10], 2, alphabet="AB", random_state=0)
    learnt = learnt.update(text[10:], smoothing=0.1)
    assert learnt.alphabet == "AB" and np.isfinite(learnt.log_likelihood(text)).all()
    shown = Mixtures(np.full((2, 2), 0.5), Poisson([[1.0, 40.0], [15.0, 90.0]]))
    mixed = HiddenMarkovModel([0.5, 0.5], MOVES, shown)
    x = mixed.sample(4, 100, rng)
    start = Mixtures(np.full((2, 2), 0.5), Poisson([[2.0, 35.0], [12.0, 80.0]]))
    online = HiddenMarkovModel([0.5, 0.5], MOVES, start)
    for one in x:
        online = online.update([one])
    np.testing.assert_allclose(
        online.emission.components.rate, shown.components.rate, rtol=0.2
    )


def test_files_go_on_where_a_stream_stopped(tmp_path, rng):
    chain = HiddenMarkovModel([0.5, 0.5], MOVES, Poisson([2.0, 9.0]))
    x = chain.sample(9, 30, rng)
    model = HiddenMarkovModel.fit(x[:3], 2, family=Poisson, random_state=0)
    mixture = Mixture.fit(np.concatenate(x[:3]), family=Poisson, random_state=0)
    for i in range(3, 9):
        save(model, tmp_path / "chain.npz")
        save(mixture, tmp_path / "mixture.npz")
        model, again = (m.update([x[i]]) for m in (model, load(tmp_path / "chain.npz")))
        assert model == again and model._rows_seen["rows"] == 30 * (i + 1)
        one = load(tmp_path / "mixture.npz").update(x[i])
        mixture = mixture.update(x[i])
        assert mixture == one


def test_far_origins_lose_no_digits_and_threads_no_bit(rng):
    model = Mixture([0.3, 0.7], Gaussian(MEAN, COV))
    X, far = model.sample(300, rng), 2.0**26
    moved = Mixture([0.3, 0.7], Gaussian(MEAN + far, COV))
    near, away = model.update(X, step=0.4), moved.update(X + far, step=0.4)
    np.testing.assert_allclose(
        away.components.cov, near.components.cov, rtol=1e-6, atol=1e-6
    )
    chain = HiddenMarkovModel([0.3, 0.7], MOVES, Gaussian(MEAN, COV))
    x = chain.sample(5, 60, rng)
    one, two = (chain.update(x, n_jobs=k) for k in (1, 2))
    assert one == two


def test_a_weight_is_a_repetition_and_zeros_stay(rng):
    model = Mixture([1.0, 0.0], Poisson([2.0, 9.0]))
    X = rng.poisson(3.0, size=30).astype(float)
    twice = model.update(np.concatenate([X, X]), step=0.5)
    heavy = model.update(X, np.full(30, 2.0), step=0.5)
    np.testing.assert_allclose(heavy.components.rate, twice.components.rate)
    assert heavy.weights.tolist() == [1.0, 0.0] and heavy.components.rate[1] == 9.0


@pytest.mark.parametrize("mixed", [False, True])
def test_steps_without_a_row_change_no_emission(mixed, rng):
    shown = Gaussian(MEAN, COV)
    if mixed:
        shown = Mixtures([[0.3, 0.7]] * 2, Gaussian(MEAN[:, None] + [[0], [1]], COV))
    model = HiddenMarkovModel([0.5, 0.5], MOVES, shown).update(
        [rng.normal(size=(50, 2))], step=0.5
    )
    after = model.update([np.full((10, 2), np.nan)], step=0.5)
    x = [rng.normal(size=(20, 2))]
    assert np.isfinite(after.log_likelihood(x)).all()
    for one, two in zip(model.emission._arrays(), after.emission._arrays()):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_wrong_batches_are_refused(rng):
    model = Mixture([0.5, 0.5], Gaussian(MEAN, COV))
    X = model.sample(9, rng)
    lost = X.copy()
    lost[2] = np.nan
    chain = GaussianHMM([0.5, 0.5], MOVES, MEAN, COV)
    table = CategoricalHMM([1.0, 0.0], np.eye(2), np.eye(2))
    kinds = HiddenMarkovModel([0.5, 0.5], MOVES, Gamma([1.0, 2.0], [1.0, 1.0]))
    for call, message in [
        (lambda: model.update(X, step=0.0), "step=0.0"),
        (lambda: model.update(X, step=1.5), "step=1.5"),
        (lambda: model.update(X, step="a"), "step='a'"),
        (lambda: model.update(X[:0]), "no row"),
        (lambda: model.update(X[:, :1]), "shape"),
        (lambda: model.update(lost), "missing .NaN. altogether"),
        (lambda: model.update(X, smoothing=-1.0), "smoothing=-1"),
        (lambda: Mixture([1.0], Gamma([2.0], [1.0])).update([1.0]), "no functions of"),
        (lambda: kinds.update([[1.0, 2.0]]), "no functions of"),
        (lambda: chain.update([X], step=2.0), "step=2.0"),
        (lambda: chain.update([X], weights=[0.0]), "one of them > 0"),
        (lambda: table.update([[0, 1]]), "probability 0"),
    ]:
        refused(call, message)
    mixed = Mixture([1.0], Categorical([[0.5, 0.5]]))
    assert mixed.update([0, 1, 1], step=1.0).components.prob[0, 1] == pytest.approx(
        2 / 3
    )
