"""ProductKernel: from data to the kernel matrix, in pipelines, searches and files."""

import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import maxent
from maxent import MEDClassifier
from maxent.families import Categorical, Gaussian, Multinomial, Poisson
from maxent.kernels import ProductKernel, product_kernel
from maxent.kernels.product import Problem
from maxent.models import (
    CategoricalHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    MarkovChain,
)


def documents(rng, n=25, k=30):
    X = rng.poisson(0.4, size=(n, k))
    X[np.arange(n), rng.integers(0, k, n)] += 1
    return X


def strings(n=16, seed=0):
    """Of two classes."""
    laws = [
        CategoricalHMM([0.5, 0.5], [[a, 1 - a], [1 - a, a]], [[0.9, 0.1], [0.1, 0.9]])
        for a in (0.2, 0.9)
    ]
    X = [law.sample(n // 2, 25, seed) for law in laws]
    letters = ["".join("AC"[c] for c in x) for x in (*X[0], *X[1])]
    return letters, np.repeat([0, 1], n // 2)


# -- counts ----------------------------------------------------------------------------
@pytest.mark.parametrize("smoothing", (0.0, 0.3, "many"))
@pytest.mark.parametrize("rho", (0.25, 0.5, 0.8, 1.0, 1.7))
def test_sparse_counts_are_the_dense_family(rho, smoothing, rng):
    X = documents(rng)
    c = rng.random(X.shape[1]) if smoothing == "many" else smoothing
    P = Categorical((X + c) / (X + c).sum(axis=1, keepdims=True))
    for normalize in (True, False):
        maker = ProductKernel(
            rho=rho, normalize=normalize, model_params={"smoothing": c}
        )
        expected = product_kernel(P, rho=rho, normalize=normalize)
        for data in (X, sparse.csr_matrix(X), sparse.csr_array(X.astype(float))):
            K = clone(maker).fit_transform(data)
            np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(K, K.T)
        block = maker.fit(X[5:]).transform(sparse.csr_array(X[:5]))
        np.testing.assert_allclose(block, expected[:5, 5:], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("law", (None, "geometric", "poisson", [0.2, 0.0, 1.0]))
def test_totals_and_their_laws(law, rng):
    X = documents(rng)
    a = X / X.sum(axis=1, keepdims=True)
    for normalize in (True, False):
        maker = ProductKernel(
            length_law=law, normalize=normalize, model_params={"total": 4}
        )
        expected = product_kernel(
            Multinomial(a, 4), length_law=law, normalize=normalize
        )
        np.testing.assert_allclose(maker.fit_transform(X), expected, rtol=1e-11)
        np.testing.assert_allclose(
            maker.fit(X[3:]).transform(X[:3]), expected[:3, 3:], rtol=1e-11
        )


def test_threads_change_no_bit(rng):
    X = rng.poisson(0.05, size=(700, 300))
    X[:, 0] += 1
    X = sparse.csr_array(X)
    one, three = (ProductKernel(n_jobs=k).fit_transform(X) for k in (1, 3))
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(one, one.T)
    assert np.linalg.eigvalsh(one)[0] > -1e-10


def test_the_given_counts_stay_as_they_are(rng):
    X = sparse.csr_array(documents(rng).astype(float))
    before = X.data.copy()
    ProductKernel(neighbours=2, model_params={"smoothing": 1.0}).fit_transform(X)
    np.testing.assert_array_equal(X.data, before)


# -- estimates -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": False}, {"model_params": {"total": 3}}, {"length_law": [1, 2]}],
)
def test_new_documents_without_counts_are_the_limit_of_pseudo_counts(options, rng):
    X = documents(rng)
    new = np.insert(X[:4], [1, 4, 4], 0.0, axis=0)
    kernel = ProductKernel(**options).fit(X)
    with pytest.warns(UserWarning, match=r"X\[1\], X\[5\], X\[6\] \(3 rows\) hold no"):
        K = kernel.transform(sparse.csr_array(new))
    np.testing.assert_array_equal(K[[0, 2, 3, 4]], kernel.transform(X[:4]))
    with pytest.warns(UserWarning, match=r"X\[0\] holds no counts at all"):
        np.testing.assert_allclose(kernel.transform(new[1:2]), K[1:2], rtol=1e-14)
    params = options.get("model_params", {}) | {"smoothing": 1e-14}
    near = ProductKernel(**options | {"model_params": params}).fit(X)
    np.testing.assert_allclose(K, near.transform(new), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("LinearDynamicalSystem", "{'n_states': 2}"),
        ("SwitchingLDS", "{'n_regimes': 2, 'n_states': 2}"),
        ("FactorialHMM", "{'n_states': [2, 2]}"),
    ],
)
def test_models_of_series_without_a_default_size_name_model_params(model, params, rng):
    X = rng.normal(size=(4, 12, 2))
    with pytest.raises(ValueError, match=re.escape(f"model_params={params}")):
        ProductKernel(model).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = eval(params) | {"max_iter": 3}
        ProductKernel(model, horizon=3, model_params=options).fit(X)


def test_empty_documents_are_refused_where_nothing_defines_them(rng):
    X = documents(rng)
    X[[2, 5]] = 0.0
    with pytest.raises(ValueError, match=r"X\[2\], X\[5\] \(2 rows\) hold no counts"):
        ProductKernel().fit(X)
    kernel = ProductKernel(neighbours=2).fit(X[6:])
    with pytest.raises(ValueError, match=r"X\[0\] holds no counts at all"):
        kernel.transform(X[2:4])


def test_estimates_of_counts(rng):
    X = documents(rng)
    plain = ProductKernel().fit_transform(X)
    np.testing.assert_array_equal(ProductKernel(estimate="ml").fit_transform(X), plain)
    np.testing.assert_array_equal(
        ProductKernel(estimate="predictive").fit_transform(X),
        ProductKernel(model_params={"smoothing": 1.0}).fit_transform(X),
    )


def test_estimates_of_models():
    X, _ = strings(6)
    base = {"alphabet": "AC", "order": 1}
    by = {
        estimate: ProductKernel("MarkovChain", estimate=estimate, model_params=base)
        .fit(X)
        .models_
        for estimate in ("ml", "map", "predictive")
    }
    for estimate, smoothing in (("ml", 0.0), ("map", 0.01), ("predictive", 1.0)):
        assert by[estimate] == MarkovChain.fit_many(X, smoothing=smoothing, **base)
    hmm = ProductKernel(
        "CategoricalHMM", estimate="ml", model_params={"alphabet": "AC", "tol": 1e-3}
    ).fit(X)
    expected = CategoricalHMM.fit_many(
        X, alphabet="AC", smoothing=0.0, tol=1e-3, random_state=hmm.seed_
    )
    assert hmm.models_ == expected
    np.testing.assert_allclose(
        hmm.transform(X[:2]),
        product_kernel(expected[:2], expected, horizon=24, normalize=True),
        rtol=1e-10,
    )


def test_neighbours_are_further_rows(rng):
    Z = rng.normal(size=(15, 2))
    maker = ProductKernel("Gaussian", neighbours=5)
    K = maker.fit_transform(Z)
    near = np.argsort(np.linalg.norm(Z[:, None] - Z, axis=-1), axis=1)[:, :6]
    bags = [Gaussian.fit(Z[i]) for i in near]
    np.testing.assert_allclose(K, product_kernel(bags, normalize=True), rtol=1e-9)
    new = rng.normal(size=(3, 2))
    near = np.argsort(np.linalg.norm(new[:, None] - Z, axis=-1), axis=1)[:, :5]
    own = [Gaussian.fit(np.vstack([x[None], Z[i]])) for x, i in zip(new, near)]
    np.testing.assert_allclose(
        maker.transform(new), product_kernel(own, bags, normalize=True), rtol=1e-9
    )
    X = documents(rng, n=12)
    roots = np.sqrt(X / X.sum(axis=1, keepdims=True))
    distance = np.linalg.norm(roots[:, None] - roots, axis=-1)
    np.fill_diagonal(distance, -1.0)
    near = np.argsort(distance, axis=1, kind="stable")[:, :3]
    ranked = np.sort(distance, axis=1)
    if (ranked[:, 3] - ranked[:, 2]).min() > 1e-9:  # no ties
        pooled = np.array([X[i].sum(axis=0) for i in near])
        np.testing.assert_allclose(
            ProductKernel(neighbours=2).fit_transform(X),
            ProductKernel().fit_transform(pooled),
            rtol=1e-12,
        )


# -- kinds of data ---------------------------------------------------------------------
def test_mean_horizon_and_the_alphabet_of_all_data():
    X = [np.array([0, 1, 0]), np.array([0, 0, 0, 0, 1]), np.array([0, 0])]
    maker = ProductKernel("MarkovChain").fit(X)
    assert maker.horizon_ == 2 and maker.options_["n_symbols"] == 2
    assert {model.n_symbols for model in maker.models_} == {2}
    assert maker.transform([np.array([0, 0])]).shape == (1, 3)
    refused(lambda: maker.transform([np.array([0, 2])]), "2")
    assert ProductKernel("MarkovChain", horizon=7).fit(X).horizon_ == 7


def test_models_of_single_series_are_fitted_less_tightly(rng):
    X = [rng.normal(size=(30, 1)) for _ in range(2)]
    for params, tol in (({}, 1e-5), ({"tol": 1e-3}, 1e-3)):
        maker = ProductKernel("GaussianHMM", model_params={"n_states": 2, **params})
        models = maker.fit(X).models_
        assert models == GaussianHMM.fit_many(
            X, n_states=2, tol=tol, random_state=maker.seed_
        )


def test_kernels_that_are_nearly_diagonal_warn():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, size=(12, 300))
    chains = ProductKernel("MarkovChain", model_params={"n_symbols": 8})
    with pytest.warns(UserWarning, match=r"nearly diagonal.*now 299; try horizon=10"):
        chains.fit_transform(X)
    Y = 30.0 * rng.normal(size=(12, 8, 3)) + 100.0 * np.arange(12)[:, None, None]
    series = ProductKernel("GaussianHMM", model_params={"n_states": 1}, horizon=7)
    with pytest.warns(UserWarning, match=r"horizon=1, and 1 to 5 with many columns"):
        series.fit_transform(Y)
    short = clone(chains).set_params(horizon=10)
    few, raw = clone(chains), clone(chains).set_params(normalize=False)
    for quiet, own in ((short, X), (few, X[:9]), (raw, X)):
        assert quiet.fit_transform(own).shape == (len(own), len(own))


def test_a_nearly_diagonal_kernel_of_many_data_warns_before_it_is_computed(monkeypatch):
    X = np.random.default_rng(0).integers(0, 8, size=(201, 300))
    chains = ProductKernel("MarkovChain", model_params={"n_symbols": 8})
    sizes, own = [], Problem.log_kernel

    def counting(problem, *args):
        sizes.append((len(problem.P), len(problem.Q or problem.P)))
        return own(problem, *args)

    monkeypatch.setattr(Problem, "log_kernel", counting)
    with pytest.warns(UserWarning) as told:
        assert chains.fit_transform(X).shape == (201, 201)
    assert len(told) == 1 and "half of 16 data" in str(told[0].message)
    assert sizes == [(16, 201), (201, 201)]


@pytest.mark.parametrize(
    "name, params, more",
    [
        ("LinearDynamicalSystem", {"n_states": 1, "tol": 1e-2}, {}),
        ("GaussianHMM", {"n_states": 2, "tol": 0.1, "n_init": 1}, {"rho": 1.0}),
        (
            "SwitchingLDS",
            {"n_states": 1, "n_regimes": 2, "tol": 0.1},
            {"horizon": 2, "n_paths": 3},
        ),
        ("FactorialHMM", {"n_states": (2, 2), "tol": 0.1}, {"horizon": 2}),
        (
            "FactorialHMM",
            {"n_states": (2, 2), "tol": 0.1},
            {"horizon": 2, "method": "collapsed"},
        ),
        (
            "GaussianHMM",
            {"n_states": 2, "tol": 0.1, "n_init": 1},
            {"horizon": 2, "method": "pair_sample", "n_samples": 20},
        ),
        ("Mixture", {"n_components": 2, "tol": 1e-3}, {}),
        ("Mixture", {"n_components": 2, "tol": 1e-3}, {"method": "shared_sample"}),
        ("Gaussian", {}, {}),
        ("DiagonalGaussian", {}, {"rho": 1.0}),
    ],
)
def test_series_and_bags(name, params, more, rng, tmp_path):
    X = [rng.normal(size=(int(n), 2)) for n in rng.integers(8, 14, size=3)]
    maker = ProductKernel(name, model_params=params, **more)
    K = maker.fit_transform(X)
    assert K.shape == (3, 3)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    block = maker.transform(X)
    if more.get("method") != "collapsed":  # bounds depend on the order of a pair
        np.testing.assert_allclose(block, K, rtol=1e-9)
    # a row depends on its datum only, wherever that is among how many
    np.testing.assert_allclose(maker.transform(X[:0:-1]), block[:0:-1], rtol=1e-9)
    maxent.save(maker, tmp_path / "kernel.npz")
    back = maxent.load(tmp_path / "kernel.npz")
    np.testing.assert_array_equal(back.transform(X), block)
    assert list(maker.get_feature_names_out())[:1] == ["productkernel0"]


def test_rows_of_symbols_depend_on_their_datum_only(rng):
    S = ["".join(rng.choice(list("ACGT"), size=60)) for _ in range(6)]
    params = {"alphabet": "ACGT", "n_states": 3, "tol": 1e-4}
    for state in (0, None, np.random.RandomState(3)):
        maker = ProductKernel(
            "CategoricalHMM", horizon=9, model_params=params, random_state=state
        )
        K = maker.fit_transform(S)
        np.testing.assert_allclose(maker.transform(S[::-1])[::-1], K, rtol=1e-9)
        np.testing.assert_allclose(maker.transform(S[2:3]), K[2:3], rtol=1e-9)


@pytest.mark.parametrize("horizon", ("mean", 4))
def test_the_first_axis_of_an_array_is_that_of_the_models(horizon, rng):
    codes = rng.integers(0, 3, size=(5, 12))
    A = rng.normal(size=(5, 12, 2))
    system = {"n_states": 1, "tol": 0.1}
    for name, X, params in (
        ("MarkovChain", codes, {}),
        ("LinearDynamicalSystem", A, system),
        ("LinearDynamicalSystem", A[..., 0], system),
        ("GaussianHMM", A[..., 0], {"n_states": 2, "tol": 0.1}),
    ):
        maker = ProductKernel(name, horizon=horizon, model_params=params)
        K = maker.fit_transform(X)
        assert maker.horizon_ == (11 if horizon == "mean" else 4)
        np.testing.assert_array_equal(K, maker.fit_transform(list(X)))
        assert K.shape == (5, 5)
    refused(lambda: ProductKernel("MarkovChain").fit(codes[0]), "is a single number")
    frame = pd.DataFrame({"s": ["AC", "CA"]})
    refused(lambda: ProductKernel("MarkovChain").fit(frame), r"as by df\['s'\]")


def test_paths_of_files_and_pairs(tmp_path, rng):
    file = tmp_path / "a.fasta"
    file.write_text(">x\nACCA\n>y\nAAC\n")
    maker = ProductKernel("MarkovChain", model_params={"alphabet": "AC"})
    expected = maker.fit_transform(["ACCA", "AAC"])
    np.testing.assert_array_equal(maker.fit_transform(file), expected)
    np.testing.assert_allclose(maker.transform(file), expected, rtol=1e-12)
    system = ProductKernel("LinearDynamicalSystem", model_params={"n_states": 1})
    refused(lambda: system.fit(file), "is a path, and files are read for symbols only")
    pair = ([0, 1, 0, 1, 1], [2, 3])
    refused(lambda: ProductKernel("MarkovChain").fit(pair), "X is a tuple whose second")
    x = rng.normal(size=(9, 1))
    refused(lambda: system.fit((x, [4, 5])), "X is a tuple whose second")


def test_columns_as_independent_coordinates(rng):
    X = rng.poisson(3.0, size=(8, 4)) + 1
    K = ProductKernel("Poisson").fit_transform(X)
    roots = np.square(np.sqrt(X)[:, None] - np.sqrt(X)).sum(axis=-1)
    np.testing.assert_allclose(K, np.exp(-0.5 * roots), rtol=1e-10)
    bags = [X[:3], X[3:5], X[5:]]
    rate = np.array([bag.mean(axis=0) for bag in bags])
    np.testing.assert_allclose(
        ProductKernel("Poisson").fit_transform(bags),
        product_kernel(Poisson(rate), normalize=True),
        rtol=1e-10,
    )


def test_bags_of_codes_have_the_categories_of_all_data():
    bags = [np.array([0, 2, 1, 1]), np.array([0, 1, 0]), np.array([1, 1, 0, 0])]
    maker = ProductKernel("Categorical", normalize=False)
    counts = [[1, 2, 1], [2, 1, 0], [2, 2, 0]]
    expected = ProductKernel(normalize=False).fit_transform(counts)
    np.testing.assert_allclose(maker.fit_transform(bags), expected, rtol=1e-12)
    np.testing.assert_allclose(maker.transform(bags[1:2]), expected[1:2], rtol=1e-12)
    refused(lambda: maker.transform([np.array([0, 3])]), "3")
    refused(lambda: maker.transform(np.eye(2)), r"X has rows of shape \(2,\)")


def test_data_that_are_models(rng):
    P = [MarkovChain.fit([x], alphabet="AC") for x in strings(8)[0]]
    maker = ProductKernel(None, horizon=4)
    K = maker.fit_transform(P)
    np.testing.assert_allclose(K, product_kernel(P, horizon=4, normalize=True))
    np.testing.assert_allclose(maker.fit(P[2:]).transform(P[:2]), K[:2, 2:])
    np.testing.assert_allclose(maker.fit(iter(P)).transform(iter(P)), K)
    batch = Poisson([1.0, 2.0, 5.0])
    np.testing.assert_allclose(
        ProductKernel(None).fit_transform(batch), product_kernel(batch)
    )


# -- pipelines -------------------------------------------------------------------------
def test_grid_search_over_powers_and_horizons_fits_models_once(tmp_path, monkeypatch):
    X, y = strings(20)
    calls = []
    fit_many = CategoricalHMM.fit_many.__func__

    def counted(cls, data, **options):
        calls.append(len(data))
        return fit_many(cls, data, **options)

    monkeypatch.setattr(CategoricalHMM, "fit_many", classmethod(counted))
    machine = make_pipeline(
        ProductKernel(
            "CategoricalHMM",
            model_params={"alphabet": "AC", "n_states": 2, "tol": 1e-3},
            memory=joblib.Memory(tmp_path, verbose=0),
        ),
        SVC(kernel="precomputed"),
    )
    grid = {
        "productkernel__rho": [0.5, 1.0],
        "productkernel__horizon": [2, 6, "mean"],
        "svc__C": [1.0, 10.0],
    }
    search = GridSearchCV(machine, grid, cv=StratifiedKFold(2)).fit(X, y)
    assert sorted(calls) == [10, 10, 20]  # the parts of both folds, and the whole
    assert search.best_score_ > 0.7
    assert len(search.predict(X)) == 20
    assert sorted(calls) == [10, 10, 20]


def test_a_pipeline_goes_to_a_file_and_back(tmp_path, rng):
    X = sparse.csr_array(documents(rng, n=40))
    y = np.array(["a", "b"])[(np.asarray(X.sum(axis=1)).ravel() > 12).astype(int)]
    y[:2] = ["a", "b"]
    strings_X, strings_y = strings(12)
    series = [rng.normal(size=(9, 1)) for _ in range(12)]
    for model, params, data, labels in (
        ("multinomial", {"smoothing": 0.1}, X, y),
        ("CategoricalHMM", {"alphabet": "AC", "tol": 1e-2}, strings_X, strings_y),
        ("LinearDynamicalSystem", {"n_states": 1, "tol": 0.1}, series, strings_y),
    ):
        machine = make_pipeline(
            ProductKernel(model, model_params=params),
            MEDClassifier(kernel="precomputed"),
        ).fit(data, labels)
        path = tmp_path / f"{model}.npz"
        maxent.save(machine, path)
        back = maxent.load(path)
        assert [name for name, _ in back.steps] == [name for name, _ in machine.steps]
        np.testing.assert_array_equal(
            back.decision_function(data), machine.decision_function(data)
        )
    with pytest.raises(TypeError, match="its step 'svc', SVC, is of another library"):
        bad = make_pipeline(ProductKernel(), SVC(kernel="precomputed")).fit(X, y)
        maxent.save(bad, tmp_path / "bad.npz")
    with pytest.raises(NotFittedError):
        maxent.save(make_pipeline(ProductKernel()), tmp_path / "bad.npz")


# -- bad input -------------------------------------------------------------------------
def test_bad_settings(rng):
    X, _ = strings(4)
    Z = rng.normal(size=(6, 2))

    def fit(*args, data=X, **options):
        return lambda: ProductKernel(*args, **options).fit(data)

    refused(
        fit("HMM"),
        "model='HMM' is not known; use 'multinomial', 'CategoricalHMM', 'FactorialHMM'",
    )
    refused(fit("MarkovChain", estimate="best"), "estimate='best'")
    refused(fit("CategoricalHMM", estimate="predictive"), "is not a CategoricalHMM ag")
    refused(
        fit("MarkovChain", estimate="ml", model_params={"smoothing": 1.0}),
        "estimate='ml' has no prior, but model_params has smoothing=1.0",
    )
    refused(
        fit("SwitchingLDS", estimate="ml"),
        "estimate='ml' of a SwitchingLDS has no finite maximum",
    )
    refused(fit("MarkovChain", rho=[0.5, 1.0]), "must be a number > 0: search a grid")
    base = {"alphabet": "AC"}
    refused(
        fit("MarkovChain", horizon=[1, 3], model_params=base),
        r"horizon=\[1, 3\] must be an integer >= 0 or 'mean': search a grid",
    )
    refused(
        fit("CategoricalHMM", model_params={**base, "states": 2}),
        "model_params has 'states', which .* use n_states, alphabet, missing",
    )
    refused(
        fit("Gaussian", model_params={"states": 2}, data=Z), "'states', .* use weights"
    )
    refused(fit("Gaussian", data=[Z, Z[:, :1]]), r"X\[1\] has rows of shape \(1,\)")
    refused(fit("Mixture", data=[Z, Z[:, :1]]), r"X\[1\] has rows of shape \(1,\)")
    refused(fit("Mixture", data=[Z, Z * np.inf]), r"X\[1\]\[0, 0\]=.*inf must be a fin")
    refused(fit("Gaussian", data=[]), "X is empty")
    edge = [rng.beta(2.0, 2.0, size=(n, 1)) for n in (5, 6, 5, 6)]
    edge[3][4] = 1.0
    refused(fit("Beta", data=edge), r"X\[3\], as a stack .*X\[0, 0, 4\]=1")
    low = list(rng.gamma(0.1, size=(2, 40, 1)))
    refused(fit("Gamma", rho=1.0, data=low), r"kernel of X\[0, 0\] with itself infin")
    refused(fit("MarkovChain", rho=0.0), "rho=0 must be")
    refused(
        fit("MarkovChain", horizon="long", model_params={"alphabet": "AC"}),
        "horizon='long'",
    )
    refused(
        fit("MarkovChain", horizon=-2, model_params={"alphabet": "AC"}), "horizon=-2"
    )
    refused(fit("MarkovChain", neighbours=2), "neighbours=2 needs single rows")
    refused(fit("MarkovChain"), "alphabet")
    refused(
        fit("MarkovChain", model_params={"alphabet": "AC"}, data=["AC", "AXC"]), "'X'"
    )
    refused(
        fit("MarkovChain", model_params={"alphabet": "AC"}, data=["AC", ""]), "empt"
    )
    refused(fit("Gaussian", neighbours=6, data=Z), "neighbours=6 needs more than 6")
    refused(
        fit("Gaussian", horizon=3, neighbours=4, data=Z), "horizon=3 has no meaning"
    )
    refused(fit("Gaussian", data=[Z, Z[:0]]), r"X\[1\] has shape \(0, 2\)")
    for name, params in (
        ("LinearDynamicalSystem", {"n_states": 1, "tol": 1.0}),
        ("Gaussian", {}),
        ("Mixture", {"tol": 1.0}),
    ):
        maker = ProductKernel(name, model_params=params).fit([Z, Z + 1.0])
        bad = [Z, Z[:, :1]]
        refused(lambda m=maker, X=bad: m.transform(X), r"X\[1\] has (1 col|rows of)")
    chains = [MarkovChain.fit(["AC"], alphabet=letters) for letters in ("AC", "ACG")]
    maker = ProductKernel(None, horizon=2).fit(chains[:1])
    refused(lambda: maker.transform(chains[1:]), r"X\[0\] has n_symbols=3")
    maker = ProductKernel("Gaussian", neighbours=4).fit(Z)
    refused(lambda: maker.transform(Z[:, :1]), "X has 1 columns")
    with pytest.raises(NotFittedError):
        ProductKernel("Gaussian").transform(Z)


def test_bad_counts(rng):
    X = documents(rng, n=4, k=3).astype(float)

    def fit(data, **options):
        return lambda: ProductKernel(**options).fit(data)

    refused(fit([[1.0, 2.0], [0.0, 0.0]]), r"X\[1\] holds no counts at all")
    refused(fit([[1.0, -2.0]]), r"X\[0, 1\]=-2 is no count")
    refused(fit(sparse.csr_array([[1.0, np.nan]])), r"X\[0, 1\]=nan is no count")
    refused(fit([1.0, 2.0]), r"X has shape \(2,\)")
    refused(
        fit(X, model_params={"smoothing": -1}), "smoothing=-1 must be a number >= 0"
    )
    refused(
        fit(X, model_params={"smoothing": [1.0, 2]}), "one for each of the 3 columns"
    )
    refused(fit(X, model_params={"total": 0}), "total=0")
    refused(fit(X, model_params={"alpha": 1}), "model_params has 'alpha'")
    refused(fit(X, horizon=3), "horizon=3 has no meaning for 'multinomial'")
    refused(fit(X, method="shared_sample"), "method for 'multinomial'")
    even = [[2, 0, 0], [1, 1, 1]]
    law = {"length_law": "geometric", "model_params": {"total": 99}}
    refused(fit(even, rho=0.1, **law), r"kernel of X\[1\] with itself infinite")
    maker = ProductKernel().fit(X)
    refused(lambda: maker.transform(X[:, :2]), "X has 2 columns, but the training cou")
    maker.log_self_ = maker.log_self_[:-1]
    refused(lambda: maker.transform(X), "log_self_ has shape")


def test_systems_of_new_series_agree_with_the_function(rng):
    X = [rng.normal(size=(12, 1)) for _ in range(5)]
    params = {"n_states": 1, "tol": 1e-2}
    maker = ProductKernel(
        "LinearDynamicalSystem", horizon=4, model_params=params, method="per_step"
    ).fit(X)
    P = LinearDynamicalSystem.fit_many(X, random_state=maker.seed_, **params)
    np.testing.assert_allclose(
        maker.transform(X[:2]),
        product_kernel(P[:2], P, horizon=4, method="per_step", normalize=True),
        rtol=1e-9,
    )


def test_columns_of_data_frames_keep_their_names(rng):
    docs = pd.DataFrame(
        rng.poisson(3.0, size=(6, 3)) + 1, columns=["cat", "dog", "eel"]
    )
    kernel = ProductKernel().fit(docs)
    assert kernel.feature_names_in_.tolist() == list(docs.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        kernel.transform(docs[["dog", "cat", "eel"]])
    np.testing.assert_array_equal(
        kernel.transform(docs),
        ProductKernel().fit(docs.to_numpy()).transform(docs.to_numpy()),
    )
