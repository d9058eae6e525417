"""Annotations: what masks leave out, missing features, what refusals say."""

import numpy as np
import pytest
from sklearn.utils import get_tags

import maxent
from maxent.minentropy import (
    ChainMap,
    M3EClassifier,
    M3EGridClassifier,
    M3EModel,
    M3EMotifClassifier,
    TrustBall,
    check_feature_map,
    solve_margin_qp,
)
from maxent.minentropy.margin_qp import MarginProblem


def bags(rng, n=40, H=5, K=2):
    X, y = rng.standard_normal((n, H, 3)), np.arange(n) % K
    place = rng.integers(H, size=n)
    X[np.arange(n), place] += 3.0 * np.eye(K, 3)[y]
    return X, y, place


@pytest.mark.parametrize("alpha", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("K", [2, 3])
def test_errors_of_starts_are_those_of_predictions(alpha, K, rng):
    X, y, place = bags(rng, K=K)
    mask = np.arange(5) == place[:, None]
    model = M3EClassifier(alpha, 3.0, n_init=1, random_state=0)
    model.fit(X, y, hidden_mask=mask)
    best = min(model.restarts_, key=lambda start: start[1])
    assert best[2] == pytest.approx(1.0 - model.score(X, y), abs=1e-12)


@pytest.mark.parametrize("mode", ["one_sided", "blocks"])
def test_instances_that_a_mask_leaves_out_may_be_missing(mode, rng):
    X, y, place = bags(rng)
    mask = np.ones((40, 5), dtype=bool)
    out = np.flatnonzero(place < 4)[:9]
    mask[out, 4] = False
    X[out, 4, 1] = np.nan
    options = {"alpha": 1.0, "C": 5.0, "mode": mode, "init": "path", "tol": 1e-8}
    options["max_iter"] = 2000
    model = M3EClassifier(**options).fit(X, y, hidden_mask=mask)
    shorter = [bag[keep] for bag, keep in zip(X, mask, strict=True)]
    other = M3EClassifier(**options).fit(shorter, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match=rf"X\[{out[0]}\]\[4, 1\]=nan; drop these"):
        model.predict(X)


def test_windows_that_a_mask_leaves_out_may_have_missing_cells(rng):
    X, y = rng.standard_normal((30, 4, 5)), np.arange(30) % 2
    X[y == 1, 1:3, 1:3] += 2.0
    mask = np.ones((30, 3, 4), dtype=bool)
    mask[4, :, 2:] = False
    masks = [None if i % 2 else m.ravel() for i, m in enumerate(mask)]
    options = {"alpha": 2.0, "C": 20.0, "mode": "blocks", "init": "path"}
    model = M3EGridClassifier((2, 2), **options)
    X[4, 1, 3] = np.nan  # in windows 2 and 3 of rows 0 and 1
    model.fit(X, y, hidden_mask=masks)
    scores = []
    for value in (0.0, 50.0):  # of windows that no output has
        filled = X.copy()
        filled[4, 1, 3] = value
        features = model._training_features(filled, 2, masks)
        absent = np.zeros((30, 3, 4), dtype=bool)
        absent[4, :2, 2:] = True
        features.remove(absent.ravel())
        scores.append(features.renyi(model.coef_, np.full(2, 2.0))[0])
    np.testing.assert_array_equal(*scores)
    own = model._training_features(X, 2, masks).renyi(model.coef_, np.full(2, 2.0))[0]
    np.testing.assert_array_equal(own, scores[0])
    with pytest.raises(ValueError, match=r"X\[4, 1, 3, 0\]=nan; fill such cells"):
        model.predict(X)
    masks[4][1] = masks[4][2] = True
    with pytest.raises(ValueError, match=r"X\[4, 1, 3, 0\]=nan; fill such cells"):
        model.fit(X, y, hidden_mask=masks)


def test_values_that_the_mask_of_dense_features_leaves_out_may_be_missing(rng):
    psi, y = rng.standard_normal((12, 2, 4, 3)), np.arange(12) % 2
    mask = rng.random((12, 2, 4)) < 0.6
    mask[..., 0] = True
    options = {"alpha": 2.0, "init": "path"}
    one = M3EModel(**options).fit((psi, mask), y)
    psi[~mask] = np.nan
    other = M3EModel(**options).fit((psi, mask), y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_samples_without_annotation_have_none(rng):
    X, y, place = bags(rng)
    mask = [np.arange(5) == p if i % 3 else None for i, p in enumerate(place)]
    whole = [np.ones(5, dtype=bool) if m is None else m for m in mask]
    one, other = (
        M3EClassifier(1.0, 20.0, init="path").fit(X, y, hidden_mask=masks)
        for masks in (mask, whole)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_labels_whose_values_are_left_out_by_both_masks_are_named(rng):
    psi, y = rng.standard_normal((12, 2, 4, 3)), np.array(["no", "yes"] * 6)
    mask, hidden = np.ones((12, 2, 4), dtype=bool), np.ones((12, 4), dtype=bool)
    mask[5, 1], hidden[5, 0] = [True, False, False, False], False
    with pytest.raises(ValueError, match=r"sample 5 has no hidden value for .* 'yes'"):
        M3EModel().fit((psi, mask), y, hidden_mask=hidden)


# -- refusals --------------------------------------------------------------------------
class Rows:
    """A user's map of features (n, K, H, d); `fault` spoils its pool."""

    def __init__(self, fault=None):
        self.n_features, self.fault = 3, fault

    def hidden_sizes(self, X):
        return np.full(X.shape[:2], X.shape[2])

    def scores(self, X, w):
        return (X @ w).ravel()

    def pool(self, X, beta):
        G = (beta.reshape(*X.shape[:3], 1) * X).sum(axis=2)
        return G if self.fault is None else self.fault(G)


def test_pools_that_are_not_finite_are_refused(rng):
    psi, y = rng.standard_normal((12, 2, 4, 3)), np.arange(12) % 2
    with pytest.raises(ValueError, match=r"feature_map.pool\(X, beta\)\[0, 0\]=nan"):
        M3EModel(Rows(lambda G: G * np.nan), alpha=1.0).fit(psi, y)
    psi[2, 1, 0, 0] = np.nan
    with pytest.raises(ValueError, match=r"feature_map.scores\(X, w\)\[20\]=nan"):
        check_feature_map(Rows(), psi)


def test_faults_of_small_samples_are_found_beside_large_ones(rng):
    psi = rng.standard_normal((6, 2, 4, 3))
    psi[0] *= 1e12
    check_feature_map(Rows(), psi)

    def wrong(G):
        G[4, 1] *= 2.0
        return G

    with pytest.raises(ValueError, match="for sample 4 and output 1"):
        check_feature_map(Rows(wrong), psi)

    class Affine(Rows):
        def scores(self, X, w):
            return super().scores(X, w) + np.repeat([0.0, 1.0], [40, 8])

    with pytest.raises(ValueError, match="not linear in w: for sample 5 and output 0"):
        check_feature_map(Affine(), psi)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda X, y: M3EClassifier().fit(X, y, hidden_mask=True), "hidden_mask=True"),
        (
            lambda X, y: M3EClassifier().fit([[], *X[1:].tolist()], y),
            r"X\[0\] has no instance",
        ),
        (
            lambda X, y: M3EClassifier().fit([np.array([]), *X[1:]], y),
            r"X\[0\] has no instance",
        ),
        (
            lambda X, y: M3EClassifier().fit([*X[1:], np.empty((0, 3))], y),
            r"X\[39\] has no instance",
        ),
        (
            lambda X, y: M3EModel("dense", 3).fit(np.ones((40, 3, 2, 2)), 0 * y),
            "needs two classes; y contains one class only",
        ),
        (
            lambda X, y: M3EModel().fit(np.full((40, 2, 2, 2), np.inf), y),
            r"X\[0, 0, 0, 0\]=inf; drop such hidden values",
        ),
        (
            lambda X, y: M3EModel("ragged").fit(
                (np.full((80, 2), np.nan), np.ones((40, 2), dtype=int)), y
            ),
            r"rows\[0, 0\]=nan; drop such hidden values",
        ),
        (
            lambda X, y: solve_margin_qp([[1.0], [np.nan]], [1.0, 1.0], 1.0),
            r"D\[1, 0\]=nan; leave such rows out",
        ),
        (
            lambda X, y: (
                M3EModel(init="random")
                .fit(np.eye(2)[y][:, :, None, None] * np.ones((2, 2)), y)
                .predict(np.ones((4, 2, 2, 3)))
            ),
            "X has features for 3 weights, but M3EModel is expecting those of 2",
        ),
        (
            lambda X, y: (
                M3EGridClassifier((1, 1), init="random")
                .fit(X + 5.0 * y[:, None, None], y)
                .predict(X[..., None, :])
            ),
            "but M3EGridClassifier is expecting those of 2",
        ),
        (lambda X, y: TrustBall(factor=1.0), r"factor=1.0 must be a finite number > 1"),
        (lambda X, y: TrustBall(largest=0.0), "largest=0.0"),
        (
            lambda X, y: M3EClassifier(solver=TrustBall()).fit(X, y),
            "no derivative at alpha=inf",
        ),
    ],
)
def test_refusals_name_place_value_and_remedy(call, message, rng):
    X, y, _ = bags(rng)
    with pytest.raises(ValueError, match=message):
        call(X, y)


def test_class_weights_of_outputs_without_samples(rng):
    psi, y = rng.standard_normal((12, 3, 2, 4)), np.arange(12) % 2
    psi[np.arange(12), y] += 2.0
    for weight in ("balanced", {0: 2.0, 2: 1.0}, {1: 1.0}):
        model = M3EModel("dense", 3, alpha=1.0, init="random", class_weight=weight)
        assert model.fit(psi, y).classes_.tolist() == [0, 1, 2]


# -- settings and files ----------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver, largest, factor",
    [
        ("ball", 100.0, 4.0),
        (TrustBall(), 100.0, 4.0),
        (TrustBall(0.01, 2.0), 0.01, 2.0),
    ],
)
def test_radii_of_algorithm_2_are_settings(solver, largest, factor, rng, monkeypatch):
    X, y, _ = bags(rng)
    mu, solve_ball = [], MarginProblem.solve_ball

    def noted(problem, center, radius, **options):
        step = solve_ball(problem, center, radius, **options)
        assert np.linalg.norm(step.w - center) <= radius * (1.0 + 1e-9)
        mu.append(radius**2)
        return step

    monkeypatch.setattr(MarginProblem, "solve_ball", noted)
    M3EClassifier(1.0, 20.0, init="zero", max_iter=60, solver=solver).fit(X, y)
    assert mu[0] == pytest.approx(largest)
    before, after = np.array(mu[:-1]), np.array(mu[1:])
    anew = np.isclose(after, largest)
    assert 0 < anew.sum() < len(anew)
    np.testing.assert_allclose(after[~anew], before[~anew] / factor)


@pytest.mark.parametrize("kind", ["dense", "ragged", "chain"])
def test_models_are_saved(kind, rng, tmp_path):
    y = np.arange(12) % 2
    rows = rng.standard_normal((48, 3))
    X, feature_map = {
        "dense": (rows.reshape(12, 2, 2, 3), "dense"),
        "ragged": ((rows, np.full((12, 2), 2)), "ragged"),
        "chain": (rows.reshape(12, 4, 3), ChainMap(2, [-1, 0, 0, 1])),
    }[kind]
    solver = "auto" if kind == "dense" else TrustBall(50.0)
    model = M3EModel(feature_map, alpha=1.0, init="random", n_init=1, solver=solver)
    model.set_params(random_state=0, tol=0.1).fit(X, y)
    maxent.save(model, tmp_path / "model.npz")
    again = maxent.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        again.decision_function(X), model.decision_function(X)
    )
    assert again.solver == solver


def test_models_with_a_map_of_the_user_are_not_saved(rng, tmp_path):
    psi, y = rng.standard_normal((12, 2, 4, 3)), np.arange(12) % 2
    model = M3EModel(Rows(), alpha=1.0, init="path").fit(psi, y)
    with pytest.raises(TypeError, match="feature_map='ragged'"):
        maxent.save(model, tmp_path / "model.npz")


def test_tags_say_what_data_are():
    data = {
        M3EClassifier(): (True, True, False),
        M3EGridClassifier(): (False, True, False),
        M3EMotifClassifier(4): (False, False, True),
        M3EModel(): (False, False, False),
        M3EModel(ChainMap(2)): (False, True, False),
    }
    for estimator, expected in data.items():
        tags = get_tags(estimator).input_tags
        assert (tags.two_d_array, tags.three_d_array, tags.string) == expected
