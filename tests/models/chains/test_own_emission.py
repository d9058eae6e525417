"""An emission that the package does not know: one family, and everything works."""

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier, load, save
from maxent._support import registry
from maxent.families import ExponentialFamily
from maxent.kernels import (
    FisherScores,
    ProductKernel,
    marginalized_features,
    marginalized_kernel,
    product_kernel,
)
from maxent.models import CategoricalHMM, HiddenMarkovModel, Mixture


class LogSeries(ExponentialFamily):
    """Logarithmic series, P(x) = -p^x / (x log(1 - p)) for x = 1, 2, ..."""

    _core = (("prob", 0),)

    def __init__(self, prob):
        self._set({"prob": np.array(prob, dtype=float)})

    def _natural(self):
        return np.log(self.prob)[..., None]

    def _mean(self):
        return self.moments()[0][..., None]

    def _moments(self):
        return stats.logser.stats(self.prob, moments="mv")

    def _cumulant(self, eta):
        return np.log(-np.log1p(-np.exp(eta[..., 0])))

    def _log_base(self, X):
        return -np.log(X)

    def _sample(self, n, rng):
        return rng.logseries(self.prob[..., None], size=(*self.batch_shape, n))

    _statistics = classmethod(lambda cls, X: X[..., None])
    _inside = classmethod(lambda cls, X: (X >= 1) & (np.floor(X) == X))
    _support_text = classmethod(lambda cls: "rows are counts 1, 2, ...")
    _inner_point = staticmethod(lambda: 1.0)

    @classmethod
    def _solve(cls, mean, total):
        def one(m):
            return brentq(
                lambda p: stats.logser.mean(p) - max(m, 1.001), 1e-9, 1 - 1e-9
            )

        return cls(np.vectorize(one)(mean[..., 0]))


TRUTH = HiddenMarkovModel([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], LogSeries([0.3, 0.98]))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.VALUES, "LogSeries", f"{__name__}:LogSeries")
    monkeypatch.setattr(
        registry,
        "resolve",
        lambda home, old=registry.resolve: (
            LogSeries if home.endswith(":LogSeries") else old(home)
        ),
    )


@pytest.fixture(scope="module")
def data():
    return TRUTH.sample(12, 60, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return HiddenMarkovModel.fit(data, 2, family=LogSeries, random_state=0)


def by_enumeration(model, x):
    """Log-probabilities of all paths with a short sequence."""
    log_p = stats.logser.logpmf(np.array(x)[:, None], model.emission.prob)
    out = {}
    for path in np.ndindex(*(model.n_states,) * len(x)):
        total = np.log(model.start[path[0]]) + log_p[0, path[0]]
        for t in range(1, len(x)):
            total += np.log(model.transition[path[t - 1], path[t]]) + log_p[t, path[t]]
        out[path] = total
    return out


def test_fits_find_the_states(fitted, data):
    assert fitted.fit_result.converged
    np.testing.assert_allclose(np.sort(fitted.emission.prob), [0.3, 0.98], atol=0.06)
    assert np.diff(fitted.fit_result.trace).min() >= -1e-8
    assert fitted.log_likelihood(data).sum() > TRUTH.log_likelihood(data).sum()
    options = {"n_states": 2, "family": LogSeries, "tol": 1e-2, "random_state": 0}
    many = HiddenMarkovModel.fit_many(data[:2], **options)
    assert many[1] == HiddenMarkovModel.fit([data[1]], **options) and len(many) == 2


def test_states_are_those_of_enumeration():
    x = [1, 30, 2, 7]
    paths = by_enumeration(TRUTH, x)
    total = np.logaddexp.reduce(list(paths.values()))
    assert TRUTH.log_likelihood([x])[0] == pytest.approx(total, rel=1e-12)
    best, log_prob = TRUTH.viterbi([x])
    assert tuple(best[0]) == max(paths, key=paths.get)
    assert log_prob[0] == pytest.approx(max(paths.values()), rel=1e-12)
    share = np.zeros((4, 2))
    for path, value in paths.items():
        share[np.arange(4), path] += np.exp(value - total)
    np.testing.assert_allclose(TRUTH.posterior([x])[0], share, rtol=1e-10)
    # a step that is missing leaves its state free
    gap = by_enumeration(TRUTH, x[:1])
    whole = TRUTH.log_likelihood([[1.0, np.nan]])[0]
    assert whole == pytest.approx(np.logaddexp.reduce(list(gap.values())))


def test_draws_criteria_and_refusals(fitted, data):
    draws, states = TRUTH.sample(1, 20_000, random_state=1, return_states=True)
    for k in range(2):
        mean = draws[0][states[0] == k].mean()
        assert mean == pytest.approx(stats.logser.mean(TRUTH.emission.prob[k]), rel=0.1)
    assert fitted.n_parameters == 1 + 2 + 2
    total = fitted.log_likelihood(data).sum()
    assert fitted.aic(data) == pytest.approx(2 * 5 - 2 * total)
    with pytest.raises(ValueError, match=r"sequences\[1\]\[2\]=.*0.* LogSeries"):
        HiddenMarkovModel.fit([[1, 2], [3, 1, 0]], 2, family=LogSeries)


def test_product_kernels_are_sums_over_paths(fitted):
    P = [TRUTH, fitted]
    K = product_kernel(P, rho=0.5, horizon=1, log=True)
    a = np.exp(TRUTH.emission.log_affinity(fitted.emission, 0.5))
    p, q = (
        np.sqrt(M.start[:, None] * M.transition) for M in P
    )  # of two steps, by paths
    want = np.einsum("ij,kl,ik,jl->", p, q, a, a)
    assert K[0, 1] == pytest.approx(np.log(want), rel=1e-10)
    # the closed form of the family itself
    x = np.arange(1, 5000)
    pmf = [stats.logser.pmf(x, M.emission.prob[0]) for M in P]
    assert a[0, 0] == pytest.approx(np.sqrt(np.prod(pmf, axis=0)).sum(), rel=1e-8)


def test_machines_on_models_and_scores(data, fitted):
    other = HiddenMarkovModel(
        [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], LogSeries([0.3, 0.9])
    ).sample(6, 60, random_state=2)
    X, y = [*data[:6], *other], np.repeat([1, -1], 6)
    params = {"family": LogSeries, "n_states": 2, "tol": 1e-2, "n_init": 1}
    kernel = ProductKernel(
        "HiddenMarkovModel", rho=0.5, horizon=5, model_params=params, random_state=0
    )
    machine = make_pipeline(kernel, MEDClassifier(kernel="precomputed")).fit(X, y)
    assert machine.score(X, y) > 0.8
    scores = FisherScores(fitted).fit_transform(data)
    assert scores.shape[0] == 12 and np.isfinite(scores).all()
    F = marginalized_features(data, fitted)
    assert F.shape[:2] == (12, 2)
    K = marginalized_kernel(data, model=fitted)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_blocks_and_files(data, fitted, tmp_path):
    steps = np.concatenate(data).astype(float)[:, None]
    blocks = da.from_array(steps, chunks=((240, 480), 1))
    given = {"lengths": [60] * 12, "init": TRUTH}
    with dask.config.set(scheduler="synchronous"):
        parts = HiddenMarkovModel.fit(blocks, **given)
    whole = HiddenMarkovModel.fit(steps, **given)
    np.testing.assert_allclose(parts.emission.prob, whole.emission.prob, rtol=1e-6)
    save(fitted, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz") == fitted
    mixture = Mixture.fit(steps[:, 0], n_components=2, family=LogSeries, random_state=0)
    save(mixture, tmp_path / "mixture.npz")
    assert load(tmp_path / "mixture.npz") == mixture


def test_a_table_is_a_categorical_emission(rng):
    model = CategoricalHMM(
        [0.4, 0.6], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]]
    )
    same = HiddenMarkovModel(model.start, model.transition, model.emission)
    X = model.sample(4, 30, random_state=0)
    np.testing.assert_array_equal(same.log_likelihood(X), model.log_likelihood(X))
    fits = [
        M.fit(X, init=M(*p))
        for M, p in (
            (CategoricalHMM, (model.start, model.transition, model.emission)),
            (HiddenMarkovModel, (model.start, model.transition, model.emission)),
        )
    ]
    np.testing.assert_array_equal(fits[0].emission.prob, fits[1].emission.prob)
