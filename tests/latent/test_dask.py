"""Conditional maximum entropy of Dask arrays, against that of one array."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxent import MaxEntClassifier

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


def test_one_class_in_all_blocks_is_refused():
    X = da.zeros((20, 2), chunks=(10, 2))
    with pytest.raises(ValueError, match="one class only"):
        MaxEntClassifier().fit(X, np.zeros(20))
