"""M3EModel: every kind of feature map gives the same model; chains by enumeration."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.hidden_paths import paths

from maxent.minentropy import ChainMap, M3EModel, check_feature_map
from maxent.minentropy._features import JointFeatures
from maxent.minentropy._hidden_chains import TreeFeatures

ORDERS = (0.0, 0.25, 0.99, 0.995, 1.0, 1.0 + 1e-9, 1.01, 1.02, 2.0, 16.0, np.inf)


class RowsMap:
    """A user's map: X is (rows, sizes)."""

    def __init__(self, n_features):
        self.n_features = n_features

    def hidden_sizes(self, X):
        return X[1]

    def scores(self, X, w):
        return X[0] @ w

    def pool(self, X, beta):
        segment = np.repeat(np.arange(X[1].size), X[1].ravel())
        out = np.zeros((X[1].size, self.n_features))
        np.add.at(out, segment, beta[:, None] * X[0])
        return out.reshape(*X[1].shape, -1)


def dense(rng, n=24, K=3, H=4, d=6):
    y = np.arange(n) % K
    psi = rng.standard_normal((n, K, H, d))
    psi[np.arange(n), y, rng.integers(H, size=n)] += 2.0 * rng.standard_normal(d)
    return psi, y


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0, np.inf])
def test_maps_of_the_same_features_give_one_model(alpha, rng):
    psi, y = dense(rng)
    rows, sizes = psi.reshape(-1, 6), np.full((24, 3), 4)
    data = {
        "dense": psi,
        "ragged": (rows, sizes),
        "sparse": (sp.csr_array(rows), sizes),
        "own": (rows, sizes),
    }
    models = {
        name: M3EModel(
            {"sparse": "ragged", "own": RowsMap(6)}.get(name, name),
            alpha=alpha,
            C=5.0,
            init="path",
        ).fit(X, y)
        for name, X in data.items()
    }
    for name, model in models.items():
        np.testing.assert_allclose(
            model.objective_, models["dense"].objective_, rtol=1e-3
        )
        F = model.decision_function(data[name])
        np.testing.assert_array_equal(model.predict(data[name]), F.argmax(axis=1))
        hidden = model.predict_hidden(data[name], y)
        s = (psi @ model.coef_)[np.arange(24), y]
        np.testing.assert_array_equal(hidden, s.argmax(axis=1))
        np.testing.assert_allclose([p.sum() for p in model.hidden_proba(data[name])], 1)


def test_masked_values_are_like_values_that_are_not_there(rng):
    psi, y = dense(rng)
    mask = rng.random(psi.shape[:3]) < 0.7
    mask[..., 0] = True
    rows = psi.reshape(-1, 6)[mask.ravel()]
    one = M3EModel(alpha=2.0, init="path").fit((psi, mask), y)
    other = M3EModel("ragged", alpha=2.0, init="path").fit((rows, mask.sum(axis=2)), y)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-10)


def test_outputs_without_hidden_values_are_impossible(rng):
    psi, y = dense(rng)
    sizes = np.full((24, 3), 4)
    sizes[np.arange(24), (y + 1) % 3] = 0
    keep = np.repeat(sizes.ravel() > 0, 4)
    X = psi.reshape(-1, 6)[keep], sizes
    model = M3EModel("ragged", alpha=1.0, init="path").fit(X, y)
    assert (model.predict(X) != (y + 1) % 3).all()
    with pytest.raises(ValueError, match="sample 0 has no hidden value"):
        model.fit(X, (y + 1) % 3)


def test_labels_of_a_given_number_of_outputs(rng):
    psi, y = dense(rng)
    model = M3EModel("dense", 3, alpha=1.0, init="path").fit(psi, y % 2)
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="n_outputs=3; number them so, or raise"):
        model.fit(psi, y + 1)


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("parents", [None, [-1, 0, 0, 1, 1]])
def test_trees_are_their_enumeration(alpha, parents, rng):
    x, S, K = rng.standard_normal((3, 5, 2)), 3, 2
    own = np.arange(-1, 4) if parents is None else np.array(parents)
    features = TreeFeatures(list(x), S, None if parents is None else own, K)
    psi = np.stack([paths(one, S, own, K)[0] for one in x])
    states = paths(x[0], S, own, K)[1]
    H = len(states)
    listed = JointFeatures(psi.reshape(-1, features.d), H * np.arange(7), K)
    w, orders = 2.0 * rng.standard_normal(features.d), np.full(K, alpha)
    F, G = features.renyi(w, orders)
    expected, rows = listed.renyi(w, orders)
    np.testing.assert_allclose(F, expected, rtol=1e-11)
    i, y = np.divmod(np.arange(6), K)
    np.testing.assert_allclose(
        features.rows(G, i, y), listed.rows(rows, i, y), atol=1e-9
    )
    for t in (0.5, 1.0, 3.0, np.inf):
        L, G = features.tempered(w, t)
        expected, rows = listed.tempered(w, t)
        np.testing.assert_allclose(L, expected, rtol=1e-12)
        np.testing.assert_allclose(
            features.rows(G, i, y), listed.rows(rows, i, y), atol=1e-11
        )
    np.testing.assert_array_equal(features.best(w), states[listed.best(w)])
    np.testing.assert_allclose(features.at_weights(G, w), listed.at_weights(rows, w))


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0, 1.005, 2.0, np.inf])
@pytest.mark.parametrize("parents", [None, [-1, 0, 0, 1, 1]])
def test_trees_with_masks_are_their_enumeration(alpha, parents, rng):
    x, S, K = rng.standard_normal((3, 5, 2)), 3, 2
    own = np.arange(-1, 4) if parents is None else np.array(parents)
    features = TreeFeatures(list(x), S, None if parents is None else own, K)
    psi = np.stack([paths(one, S, own, K)[0] for one in x])
    states = paths(x[0], S, own, K)[1]
    listed = JointFeatures(psi.reshape(-1, features.d), len(states) * np.arange(7), K)
    codes, masks = np.array([1, 0, 1]), rng.random((3, 5, S)) < 0.5
    masks[..., 1] |= ~masks.any(axis=2)
    features.restrict(list(masks), codes)
    listed.restrict([m[np.arange(5), states].all(axis=1) for m in masks], codes)
    w, orders = 2.0 * rng.standard_normal(features.d), np.full(K, alpha)
    F, G = features.renyi(w, orders)
    expected, rows = listed.renyi(w, orders)
    np.testing.assert_allclose(F, expected, rtol=1e-11)
    i, y = np.divmod(np.arange(6), K)
    np.testing.assert_allclose(
        features.rows(G, i, y), listed.rows(rows, i, y), atol=1e-9
    )
    np.testing.assert_array_equal(features.best(w), states[listed.best(w)])
    drawn = features.random(rng)
    one = drawn[np.arange(3), codes][:, : S * 2].reshape(3, S, 2)
    allowed = np.einsum("its,itp->isp", masks.astype(float), np.abs(x))
    assert (np.abs(one) <= allowed + 1e-12).all()


def test_annotated_states_are_learnt(rng):
    # half of the positive chains say where state 1 is
    X, y = rng.standard_normal((40, 6, 1)), np.arange(40) % 2
    X[y == 1, ::2] += 3.0
    masks = np.ones((40, 6, 2), dtype=bool)
    masks[1::4, ::2, 0] = masks[1::4, 1::2, 1] = False
    model = M3EModel(ChainMap(2), alpha=1.0, C=50.0, n_init=4, random_state=0)
    model.fit(X, y, hidden_mask=masks)
    assert model.score(X, y) > 0.8
    assert (model.predict_hidden(X, y)[y == 1, ::2] == 1).mean() > 0.8
    masks[2, 4] = False
    with pytest.raises(
        ValueError, match=r"hidden_mask\[2\] allows no hidden value at n"
    ):
        model.fit(X, y, hidden_mask=masks)
    with pytest.raises(ValueError, match=r"hidden_mask\[0\] has shape \(6,\).* 6 x 2"):
        model.fit(X, y, hidden_mask=masks[..., 0])


def test_chains_of_several_lengths_learn(rng):
    X = [rng.standard_normal((5 + i % 3, 1)) for i in range(40)]
    y = np.arange(40) % 2
    for x, label in zip(X, y, strict=True):
        x[::2] += 4.0 * label
        x += 2.0 * (1 - label)
    model = M3EModel(ChainMap(2), alpha=1.0, C=50.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.diff(model.objective_history_).max(initial=-1) <= 0
    states = model.predict_hidden(X)
    assert states.shape == (40, 7) and (states[0, 5:] == -1).all()
    for x, p in zip(X, model.hidden_proba(X), strict=True):
        assert p.shape == (len(x), 2)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


# -- refusals --------------------------------------------------------------------------
def test_maps_that_are_not_adjoint_are_found(rng):
    psi, _ = dense(rng)
    X = psi.reshape(-1, 6), np.full((24, 3), 4)
    check_feature_map(RowsMap(6), X)

    class Wrong(RowsMap):
        def pool(self, X, beta):
            return 2.0 * super().pool(X, beta)

    class Affine(RowsMap):
        def scores(self, X, w):
            return super().scores(X, w) + 1.0

    with pytest.raises(ValueError, match="not the adjoint of scores: for sample 0"):
        check_feature_map(Wrong(6), X)
    with pytest.raises(ValueError, match="not linear in w"):
        check_feature_map(Affine(6), X)
    with pytest.raises(ValueError, match="has no n_features, hidden_sizes"):
        check_feature_map(object(), X)


@pytest.mark.parametrize(
    "feature_map, X, message",
    [
        ("dense", np.ones((4, 2, 3)), r"takes \(n, K, H, d\)"),
        ("dense", np.ones((4, 3, 2, 2)), "3 outputs and 2 are expected"),
        ("dense", np.full((4, 2, 2, 2), np.nan), "NaN or infinite"),
        ("ragged", np.ones((4, 2)), r"takes X = \(rows, sizes\)"),
        ("ragged", (np.ones((3, 2)), np.ones((4, 2), int)), "sizes add up to 8"),
        ("rows", np.ones((4, 2, 2, 2)), "feature_map='rows'"),
        (ChainMap(2, [-1, 0]), np.ones((4, 3, 1)), "has 3 nodes and parents 2"),
    ],
)
def test_impossible_data_are_refused(feature_map, X, message):
    with pytest.raises(ValueError, match=message):
        M3EModel(feature_map).fit(X, [0, 1, 0, 1])


def test_impossible_trees_are_refused():
    with pytest.raises(ValueError, match=r"parents=.*before it, or -1"):
        ChainMap(2, [-1, 2, 0])
    with pytest.raises(ValueError, match="n_states=0"):
        ChainMap(0)


@pytest.mark.parametrize("origin", [1e4, 1e10])
def test_what_all_rows_have_in_common_changes_nothing(origin, rng):
    X, y = rng.standard_normal((40, 2, 3, 4)), np.arange(40) % 2
    X[y == 1, 1, 1] += 2.0
    fits = [
        M3EModel(alpha=1.0, init="path", random_state=0).fit(X + c, y)
        for c in (0.0, origin)
    ]
    digits = 1e-6 + 50 * np.finfo(float).eps * origin
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=digits)
    np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, atol=1e3 * digits)
