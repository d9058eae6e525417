"""Conditional maximum entropy and mixtures of Dask arrays, against one array."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.block_cases import agree

from maxent import MaxEntClassifier, RowBlocks
from maxent.latent import LMEDirichletMixture, LMEGaussianMixture
from maxent.latent.mixtures._gaussian_em import GaussianEM
from maxent.latent.mixtures._partitioned_gaussian import PartitionedGaussianEM

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_model_is_that_of_one_array(classes, sparse, class_weight, rng):
    X = np.where(rng.random((300, 5)) < 0.5, rng.normal(size=(300, 5)), 0.0)
    y = np.array(["a", "b", "c"])[rng.integers(0, classes, size=300)]
    X[:, 0] += y == "b"
    weight = rng.integers(0, 3, size=300).astype(float)
    blocks = da.from_array(X, chunks=(70, 5))
    if sparse:
        blocks = blocks.map_blocks(sp.csr_matrix)
    model = MaxEntClassifier(C=0.5, class_weight=class_weight)
    rows = sp.csr_array(X) if sparse else X
    one = model.fit(rows, y, sample_weight=weight)
    coef, intercept, proba = one.coef_, one.intercept_, one.predict_proba(rows)
    with dask.config.set(scheduler="synchronous"):
        found = model.fit(blocks, y, sample_weight=weight)
        np.testing.assert_allclose(found.coef_, coef, atol=1e-5)
        np.testing.assert_allclose(found.intercept_, intercept, atol=1e-5)
        assert found.converged_ and found.n_features_in_ == 5
        lazy = found.predict_proba(blocks)
        assert lazy.shape == (300, classes)
        np.testing.assert_allclose(lazy.compute(), proba, atol=1e-5)
        np.testing.assert_array_equal(
            found.predict(blocks).compute(), found.predict(rows)
        )


def test_what_one_array_may_not_have_blocks_may_not():
    X, y = da.ones((20, 2), chunks=(10, 2)), np.arange(20) % 2
    cases = [
        ((X, np.zeros(20)), "one class only"),
        ((X, None), "y is None"),
        ((X, y, np.zeros(20)), "sample_weight is zero for every row"),
        ((X[:, 0], y), r"X has shape \(20,\)"),
        ((X * 1e200, y), "partition 0: X has entries beyond 1e.150"),
    ]
    for data, message in cases:
        with pytest.raises(ValueError, match=message):
            MaxEntClassifier().fit(*data)
    model = MaxEntClassifier().fit(np.eye(2), [0, 1])
    for name in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="X has 1 features"):
            getattr(model, name)(X[:, :1])
    with pytest.raises(TypeError, match="y is a Dask array and X is not"):
        MaxEntClassifier().fit(np.eye(2), X[:2, 0])


def test_rows_in_blocks_need_no_dask(rng, tmp_path):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, size=200)
    np.save(tmp_path / "X.npy", X)
    rows, blocks = RowBlocks(tmp_path / "X.npy", 70), da.from_array(X, chunks=(70, 3))
    one, other = MaxEntClassifier().fit(rows, y), MaxEntClassifier().fit(blocks, y)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    np.testing.assert_array_equal(one.predict(rows), other.predict(blocks).compute())
    model = LMEGaussianMixture(2, n_init=2, random_state=0, selection="likelihood")
    means = [model.fit(data).means_.tobytes() for data in (rows, blocks)]
    assert means[0] == means[1] and model.predict(rows).shape == (200,)


# -- mixtures --------------------------------------------------------------------------
def two_groups(rng, n=120):
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 2))
    return X + np.where(rng.random((n, 1)) < 0.4, 4.0, 0.0)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("prior", [None, "weak"])
def test_a_mixture_is_that_of_one_array(kind, prior, rng):
    X = two_groups(rng)
    weight = rng.integers(0, 3, size=len(X)).astype(float)
    model = LMEGaussianMixture(
        2, kind, prior=prior, n_init=1, means_init=X[[3, 90]], weights_init=[0.5, 0.5]
    )
    model.set_params(n_init=2, random_state=0, selection="likelihood", max_iter=4000)
    blocks = da.from_array(X, chunks=((50, 30, 40), 2))
    one = model.fit(X, sample_weight=weight)
    table = {k: v[0] for k, v in one.candidates_.items() if k != "reason"}
    means, scores = one.candidate_means_[0], one.score_samples(X)
    with dask.config.set(scheduler="synchronous"):
        found = model.fit(blocks, sample_weight=weight)
        # the first candidate starts at the given means, the others from a sample
        np.testing.assert_allclose(found.candidate_means_[0], means, atol=1e-4)
        for name in ("log_likelihood", "entropy", "dependence"):
            value = found.candidates_[name][0]
            assert value == pytest.approx(table[name], abs=1e-5)
        lazy = found.score_samples(blocks)
        agree(lazy.compute(), found.score_samples(X), 1e-14)
        np.testing.assert_array_equal(found.predict(blocks).compute(), found.predict(X))
        assert found.predict_proba(blocks).compute().shape == (len(X), 2)
    assert scores.shape == (len(X),)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_scales_are_those_of_one_array_far_from_zero(kind, rng):
    X, weight = 1e4 + two_groups(rng), rng.integers(0, 3, size=120).astype(float)
    with dask.config.set(scheduler="synchronous"):
        parts = PartitionedGaussianEM(da.from_array(X, chunks=(50, 2)), weight, 2, kind)
    whole = GaussianEM(X, weight, 2, kind)
    np.testing.assert_allclose(parts.centre, whole.centre, rtol=1e-14)
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-9, atol=1e-12)


def test_curvature_is_that_of_one_array(rng):
    X = two_groups(rng)
    model = LMEGaussianMixture(
        2, means_init=X[[3, 90]], weights_init=[0.5, 0.5], n_init=1, random_state=0
    )
    one = model.fit(X).candidates_["curvature"][0]
    blocks = da.from_array(X, chunks=((50, 70), 2))
    with dask.config.set(scheduler="synchronous"):
        found = model.fit(blocks).candidates_["curvature"][0]
    assert found == pytest.approx(one, abs=1e-4)


def test_mixtures_of_other_kinds_and_rows_with_nan_are_refused(rng):
    X = da.from_array(rng.dirichlet(np.ones(3), size=20), chunks=(10, 3))
    with pytest.raises(TypeError, match="LMEDirichletMixture"):
        LMEDirichletMixture().fit(X)
    with pytest.raises(ValueError, match="needs more than the 20 rows"):
        LMEGaussianMixture(21).fit(X)
    with pytest.raises(ValueError, match=r"X has shape \(20,\); .*reshape\(-1, 1\)"):
        LMEGaussianMixture().fit(X[:, 0])
    with pytest.raises(ValueError, match="block, and this model needs dense ones"):
        LMEGaussianMixture().fit(X.map_blocks(sp.csr_matrix))
    bad = np.ones((20, 2))
    bad[13, 1] = np.nan
    with pytest.raises(ValueError, match=r"partition 1: X\[3, 1\]=nan in row 3"):
        LMEGaussianMixture().fit(da.from_array(bad, chunks=(10, 2)))
