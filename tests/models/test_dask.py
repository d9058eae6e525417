"""Mixtures and hidden Markov models fitted to Dask arrays, against one array."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from models.sequence_cases import quiet, random_gaussian_hmm, random_hmm
from sklearn.exceptions import ConvergenceWarning

from maxent import RowBlocks
from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
)
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    MarkovChain,
    MarkovRandomField,
    Mixture,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def vectors(rng, n):
    return rng.normal(size=(n, 2)) + 3.0 * rng.integers(0, 2, size=(n, 1))


def counts(rng, n):
    return rng.poisson(np.where(rng.random(n) < 0.5, 1.0, 8.0)).astype(float)


ROWS = {
    Gaussian: vectors,
    DiagonalGaussian: vectors,
    SphericalGaussian: vectors,
    Poisson: counts,
    Geometric: counts,
    NegativeBinomial: counts,
    Categorical: counts,
    Bernoulli: lambda rng, n: (rng.random(n) < 0.3).astype(float),
    Beta: lambda rng, n: rng.beta(2.0, 3.0, size=n),
    Exponential: lambda rng, n: rng.exponential(2.0, size=n),
    Multinomial: lambda rng, n: rng.multinomial(6, [0.2, 0.3, 0.5], size=n) * 1.0,
}
OPTIONS = {NegativeBinomial: {"r": 2.5}}


def rechunked(X, sizes):
    return da.from_array(X, chunks=(sizes, *X.shape[1:]))


@pytest.mark.parametrize("family", ROWS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_a_mixture_of_blocks_is_that_of_one_array(family, smoothing, rng):
    X = ROWS[family](rng, 60)
    weights = rng.integers(0, 3, 60).astype(float)
    options = {"family_options": OPTIONS.get(family), "smoothing": smoothing}
    start = Mixture.fit(
        X, n_components=2, family=family, random_state=0, tol=1e-2, **options
    )
    whole = quiet(Mixture.fit, X, weights, init=start, max_iter=5, **options)
    parts = quiet(
        Mixture.fit,
        rechunked(X, (7, 30, 23)),
        weights,
        init=start,
        max_iter=5,
        **options,
    )
    for (n, one, _), (k, other, _) in zip(
        whole.fit_result.history, parts.fit_result.history, strict=True
    ):
        assert n == k and other == pytest.approx(one, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(parts.weights, whole.weights, atol=1e-9)
    for name, value in whole.components.parameters().items():
        found = parts.components.parameters()[name]
        np.testing.assert_allclose(found, value, rtol=1e-7, atol=1e-9)


def test_starts_come_from_a_sample(rng):
    X = vectors(rng, 400)
    parts = Mixture.fit(rechunked(X, (150, 250)), n_components=2, random_state=0)
    whole = Mixture.fit(X, n_components=2, random_state=0)
    assert parts.fit_result.converged
    # 400 rows are the sample
    assert parts.fit_result.objective == pytest.approx(
        whole.fit_result.objective, abs=1e-5 * len(X)
    )


def test_a_component_without_rows_stays(rng):
    X = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    start = Mixture([0.5, 0.5], Poisson([0.6, 3.0]))
    start = Mixture([1.0, 0.0], start.components)
    found = quiet(
        Mixture.fit, rechunked(X, (2, 3)), init=start, smoothing=0.0, max_iter=2
    )
    assert found.components.rate[1] == 3.0 and found.weights[1] == 0.0


def test_same_bits_by_any_scheduler(rng):
    X = rechunked(vectors(rng, 90), (20, 30, 40))
    found = []
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            found.append(
                quiet(Mixture.fit, X, n_components=2, random_state=0, max_iter=20)
            )
    np.testing.assert_array_equal(found[0].components.cov, found[1].components.cov)


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_a_gaussian_hmm_of_blocks_is_that_of_one_array(kind, rng):
    start = random_gaussian_hmm(rng, 2, 2, kind)
    lengths = [4, 9, 1, 12, 6, 8, 15, 5]
    X = np.concatenate(start.sample(len(lengths), lengths, random_state=1))
    X[[2, 20]] = np.nan
    weights = rng.uniform(0.5, 2.0, len(lengths))
    given = {"lengths": lengths, "weights": weights, "init": start, "max_iter": 6}
    whole = quiet(GaussianHMM.fit, X, **given)
    parts = quiet(GaussianHMM.fit, rechunked(X, (11, 25, 24)), **given)
    assert_same_chain(parts, whole)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(parts.cov, whole.cov, rtol=1e-6, atol=1e-9)


def test_a_column_may_be_constant_in_a_block(rng):
    X = rng.normal(size=(60, 2))
    X[20:40, 1] = 3.0
    start = random_gaussian_hmm(rng, 2, 2)
    given = {"lengths": [20] * 3, "init": start, "max_iter": 4}
    whole = quiet(GaussianHMM.fit, X, **given)
    parts = quiet(GaussianHMM.fit, rechunked(X, (20, 20, 20)), **given)
    assert_same_chain(parts, whole)
    np.testing.assert_allclose(parts.cov, whole.cov, rtol=1e-6, atol=1e-9)


def assert_same_chain(parts, whole):
    assert parts.fit_result.objective == pytest.approx(
        whole.fit_result.objective, rel=1e-9
    )
    np.testing.assert_allclose(parts.start, whole.start, atol=1e-8)
    np.testing.assert_allclose(parts.transition, whole.transition, atol=1e-8)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_categorical_hmm_of_blocks_is_that_of_one_array(smoothing, rng):
    start = random_hmm(rng, 3, 4)
    lengths = rng.integers(1, 20, 30)
    X = np.concatenate(start.sample(30, lengths, random_state=1))
    X[::17] = -1
    given = {"lengths": lengths, "init": start, "max_iter": 6, "smoothing": smoothing}
    whole = quiet(CategoricalHMM.fit, X, **given)
    sizes = (len(X) // 3, len(X) // 3, len(X) - 2 * (len(X) // 3))
    parts = quiet(CategoricalHMM.fit, rechunked(X, sizes), **given)
    assert_same_chain(parts, whole)
    np.testing.assert_allclose(parts.emission.prob, whole.emission.prob, atol=1e-8)


def test_hmms_start_from_a_sample(rng):
    model = random_hmm(rng, 2, 3)
    X = np.concatenate(model.sample(40, 25, random_state=1))
    fit = {"lengths": [25] * 40, "n_states": 2, "random_state": 0, "alphabet": "abc"}
    parts = CategoricalHMM.fit(rechunked(X, (400, 600)), max_iter=4000, **fit)
    assert parts.fit_result.converged and parts.alphabet == "abc"
    assert (np.diff(parts.fit_result.objective_history) > -1e-7).all()


def test_rows_in_blocks_need_no_dask(rng, tmp_path):
    X = vectors(rng, 90)
    np.save(tmp_path / "X.npy", X)
    rows, blocks = RowBlocks(tmp_path / "X.npy", 40), rechunked(X, (40, 40, 10))
    fits = [
        quiet(Mixture.fit, data, random_state=0, max_iter=5) for data in (rows, blocks)
    ]
    assert fits[0].components.cov.tobytes() == fits[1].components.cov.tobytes()
    given = {"n_states": 2, "lengths": [25, 30, 35], "random_state": 0, "max_iter": 5}
    fits = [quiet(GaussianHMM.fit, data, **given) for data in (rows, blocks)]
    assert fits[0].mean.tobytes() == fits[1].mean.tobytes()


UNSEEN = [  # refused without a look at the rows
    (Mixture, {"n_components": 0}, ValueError, "n_components=0"),
    (Mixture, {"n_init": 0}, ValueError, "n_init=0"),
    (Mixture, {"init": 3}, TypeError, "init=3 must be a Mixture"),
    (Mixture, {"family": "gaussian"}, TypeError, "family='gaussian'"),
    (Mixture, {"init": "narrow"}, ValueError, "init is a mixture over 1 columns"),
    (GaussianHMM, {"n_states": 0}, ValueError, "n_states=0"),
    (GaussianHMM, {"n_states": 2, "n_init": 0}, ValueError, "n_init=0"),
    (GaussianHMM, {"init": "narrow"}, ValueError, "init has 1 features"),
    (CategoricalHMM, {"n_states": 0}, ValueError, "n_states=0"),
]


@pytest.mark.parametrize("kind, options, error, message", UNSEEN)
def test_settings_are_refused_before_the_rows_are_read(
    kind, options, error, message, rng
):
    X, seen = vectors(rng, 20), []

    def watched(block):
        seen.append(len(block))
        return block

    if options.get("init") == "narrow":
        narrow = {"lengths": [20]} if kind is GaussianHMM else {}
        options = {"init": kind.fit(X[:, :1], random_state=0, **narrow)}
    blocks = rechunked(X, (10, 10)).map_blocks(
        watched, dtype=float, meta=np.empty((0, 0))
    )
    lengths = {} if kind is Mixture else {"lengths": [10, 10]}
    with pytest.raises(error, match=message):
        kind.fit(blocks, **lengths, **options)
    assert not seen


def from_blocks(blocks):
    """A Dask array whose declared sizes and type are those of the first block."""
    shape = blocks[0].shape
    parts = [da.from_delayed(dask.delayed(b), shape, float) for b in blocks]
    return da.concatenate(parts)


PARENTS = {"a": [], "b": ["a"]}
IN_MEMORY = {
    "net": lambda X: BayesNet.fit(X, PARENTS),
    "field": lambda X: MarkovRandomField.fit(X, [("a", "b")]),
    "gaussian": lambda X: LinearGaussianNetwork.fit(X, ["a", "b"], PARENTS),
    "system": lambda X: LinearDynamicalSystem.fit(X, 1, max_iter=2),
}


@pytest.mark.parametrize("fit", IN_MEMORY.values(), ids=IN_MEMORY)
def test_models_in_memory_read_blocks_as_they_are(fit, rng):
    """Dask casts blocks to the type declared, with a warning at most."""
    X = rng.integers(0, 2, size=(30, 2)).astype(float)
    blocks = [X[:10], X[10:20], X[20:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert fit(from_blocks(blocks)) == fit(X)
    odd = [
        (X[10:20] + 1j, ValueError, "is complex; real numbers"),
        (np.hstack([X[10:20], X[:10]]), ValueError, "do not fit together"),
        (sp.csr_array(X[10:20]), TypeError, "is sparse; make it dense"),
    ]
    for block, error, match in odd:
        with pytest.raises(error, match=match):
            fit(from_blocks([blocks[0], block, blocks[2]]))


def test_sparse_symbols_are_refused_by_name(rng):
    X = sp.csr_array(rng.integers(0, 2, size=(6, 5)))
    for cls in (CategoricalHMM, MarkovChain):
        for data, name in ((X, "sequences"), ([X], r"sequences\[0\]")):
            with pytest.raises(TypeError, match=rf"{name} is sparse; make it dense"):
                cls.fit(data)


def test_bags_of_dask_are_refused_where_data_are_read_in_memory():
    bag = pytest.importorskip("dask.bag").from_sequence([[0, 1], [1, 1]])
    for fit in (MarkovChain.fit, lambda X: LinearDynamicalSystem.fit(X, 1)):
        with pytest.raises(TypeError, match=r"of type Bag.*pass sequences.compute\(\)"):
            fit(bag)


def test_blocks_of_other_widths_are_refused_by_partition(rng):
    X = vectors(rng, 30)
    wide = from_blocks([X[:10], np.hstack([X[10:20], X[:10]]), X[20:]])
    with pytest.raises(ValueError, match="partition 1: X has shape"):
        Mixture.fit(wide)
    with pytest.raises(ValueError, match=r"partition 1: the block has shape \(10, 4\)"):
        GaussianHMM.fit(wide, 2, lengths=[10] * 3)
    with pytest.raises(ValueError, match=r"partition 1: .*complex128"):
        blocks = from_blocks([X[:10], X[10:20] + 1j, X[20:]])
        GaussianHMM.fit(blocks, 2, lengths=[10] * 3)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_entries_that_are_lost_in_a_later_pass_are_named(wrong, rng):
    X = vectors(rng, 60)
    left = [9]  # passes over the second block

    def lost(block):
        left[0] -= 1
        return np.where(left[0] >= 0, block, wrong)

    rows = [da.from_delayed(dask.delayed(X[:30]), (30, 2), float)]
    rows.append(da.from_delayed(dask.delayed(lost)(X[30:]), (30, 2), float))
    start = Mixture([0.5, 0.5], Gaussian([[0, 0], [3, 3]], [np.eye(2)] * 2))
    with pytest.raises(ValueError, match=r"partition 1: .*X\[0, 0\]=(nan|inf); it was"):
        Mixture.fit(da.concatenate(rows), init=start, tol=1e-300)


def test_what_cannot_be_fitted_is_refused_by_partition(rng):
    X = vectors(rng, 30)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"partition 1: X\[7, 1\]=nan in row 7"):
        Mixture.fit(rechunked(X, (10, 20)))
    weights = np.ones(30)
    weights[12] = -1.0
    with pytest.raises(ValueError, match=r"partition 1: weights\[2\]=-1"):
        Mixture.fit(rechunked(np.ones((30, 2)), (10, 20)), weights)
    x = counts(rng, 30)
    x[25] = -2.0
    with pytest.raises(ValueError, match=r"partition 1: .*outside the support"):
        Mixture.fit(
            rechunked(x, (10, 20)), init=Mixture([0.5, 0.5], Poisson([1.0, 2.0]))
        )
    with pytest.raises(ValueError, match="no functions of sums"):
        Mixture.fit(rechunked(x, (10, 20)), family=Gamma)
    with pytest.raises(ValueError, match="pass lengths="):
        CategoricalHMM.fit(rechunked(x, (10, 20)))
    with pytest.raises(ValueError, match="add up to 29"):
        CategoricalHMM.fit(rechunked(x, (10, 20)), lengths=[29])
    with pytest.raises(ValueError, match=r"partition 1: .*no code"):
        CategoricalHMM.fit(
            rechunked(x, (10, 20)), lengths=[10, 20], n_symbols=20, n_states=2
        )
    with pytest.raises(ValueError, match=r"partition 0: .*codes"):
        letters = np.array(list("abcabc"))
        CategoricalHMM.fit(rechunked(letters, (3, 3)), lengths=[3, 3], n_symbols=3)
