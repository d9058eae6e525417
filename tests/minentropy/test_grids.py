"""M3EGridClassifier and gradient_cells: windows one by one, planted patterns."""

import numpy as np
import pytest
from refusals import refusals

from maxent.minentropy import M3EGridClassifier, gradient_cells
from maxent.minentropy._grid_features import GridFeatures

SIZES = [(2, 3), (1, 1), (4, 2)]


def windows(cells, sizes, intercept):
    """Features of all windows of one image, by slicing: (places, block)."""
    R, C, p = cells.shape
    rows = []
    before, total = 0, sum(h * w * p for h, w in sizes)
    for k, (h, w) in enumerate(sizes):
        for i in range(R - h + 1):
            for j in range(C - w + 1):
                own = np.zeros(total + len(sizes) * intercept)
                own[before : before + h * w * p] = cells[i : i + h, j : j + w].ravel()
                if intercept:
                    own[total + k] = 1.0
                rows.append(own)
        before += h * w * p
    return np.array(rows)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K, one_sided", [(2, True), (3, False)])
def test_scores_and_pool_by_windows(K, one_sided, intercept, rng):
    cells = rng.standard_normal((5, 6, 4, 2))
    features = GridFeatures(cells, SIZES, K, one_sided, intercept)
    psi = np.array([windows(x, SIZES, intercept) for x in cells])
    w = rng.standard_normal(features.d)
    W = w.reshape(features.sides, -1)
    expected = np.einsum("ihd,yd->yih", psi, W)
    np.testing.assert_allclose(features.raw_scores(w), expected.ravel(), atol=1e-12)
    beta = rng.standard_normal(expected.shape)
    G = np.einsum("yih,ihd->iyd", beta, psi)
    np.testing.assert_allclose(features.pool(beta.ravel()), G, atol=1e-12)


def images(rng, n=60, K=2):
    y = np.arange(n) % K
    X = 0.3 * rng.standard_normal((n, 7, 7, 1))
    patterns = np.zeros((K, 2, 2))
    patterns[1:] = 3.0 * np.array([[[1, -1], [-1, 1]], [[1, 1], [-1, -1]]])[: K - 1]
    place = rng.integers(6, size=(n, 2))
    for i, (r, c) in enumerate(place):
        X[i, r : r + 2, c : c + 2, 0] += patterns[y[i]]
    return X, y, place


@pytest.mark.parametrize("alpha", [1.0, np.inf])
@pytest.mark.parametrize("K", [2, 3])
def test_finds_the_pattern(alpha, K, rng):
    X, y, place = images(rng, K=K)
    model = M3EGridClassifier((2, 2), alpha, 100.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    found = model.predict_window(X, y)[y > 0]
    assert (np.abs(found[:, :2] - place[y > 0]).max(axis=1) <= 1).mean() > 0.8
    assert (found[:, 2:] == 2).all()


def test_places_that_the_mask_leaves_out_are_not_used(rng):
    X, y, place = images(rng)
    at = 6 * place[:, 0] + place[:, 1]
    mask = np.arange(36) == at[:, None]
    model = M3EGridClassifier((2, 2), np.inf, 100.0, random_state=0, n_init=1)
    model.fit(X, y, hidden_mask=mask)
    assert (model.predict_hidden(X, y)[y == 1] == at[y == 1]).mean() > 0.9


def test_gradient_cells_of_ramps():
    ramp = np.tile(np.arange(8.0), (8, 1))
    cells = gradient_cells([ramp, ramp.T, -ramp], bins=4, normalise=False)
    assert cells.shape == (3, 2, 2, 4)
    # orientation 0 lies between the last bin and the first, 90 degrees between 1 and 2
    np.testing.assert_allclose(cells[0], np.tile([8.0, 0, 0, 8.0], (2, 2, 1)))
    np.testing.assert_allclose(cells[1], np.tile([0, 8.0, 8.0, 0], (2, 2, 1)))
    np.testing.assert_allclose(cells[2], cells[0])
    signed = gradient_cells([ramp, -ramp], bins=4, signed=True, normalise=False)
    np.testing.assert_allclose(signed[1], signed[0][..., [2, 3, 0, 1]], atol=1e-12)


def test_gradient_cells_do_not_see_contrast(rng):
    x = rng.standard_normal((2, 12, 12))
    np.testing.assert_allclose(
        gradient_cells(5.0 * x + 3.0), gradient_cells(x), rtol=1e-10
    )
    assert (gradient_cells(np.ones((1, 8, 8))) == 0).all()


test_impossible_input_is_refused = refusals(
    [
        (lambda: gradient_cells(np.ones((4, 4))), "images has shape"),
        (lambda: gradient_cells(np.ones((1, 3, 9))), "4 pixels or more"),
        (
            lambda: gradient_cells(np.full((1, 8, 8), np.nan)),
            r"NaN or infinite: images\[0, 0, 0\]=nan; fill",
        ),
        (
            lambda: M3EGridClassifier((2, 2)).fit(np.full((2, 4, 4), np.inf), [0, 1]),
            r"X\[0, 0, 0, 0\]=inf; fill",
        ),
        (lambda: gradient_cells(np.ones((1, 8, 8)), cell=0), "cell=0"),
        (
            lambda: M3EGridClassifier((9, 2)).fit(np.ones((4, 5, 5)), [0, 1, 0, 1]),
            r"does not fit a grid of \(5, 5\)",
        ),
        (
            lambda: M3EGridClassifier((2, 2, 2)).fit(np.ones((2, 5, 5)), [0, 1]),
            r"must be \(rows, columns\)",
        ),
        (
            lambda: M3EGridClassifier().fit(np.ones((2, 5)), [0, 1]),
            r"\(n, rows, columns, p\)",
        ),
    ]
)


@pytest.mark.parametrize("origin", [100.0, np.array([1e8, -3.0])])
@pytest.mark.parametrize("K", [2, 3])
def test_the_origin_of_the_cells_changes_the_constants_alone(K, origin, rng):
    y, X = np.arange(36) % K, 0.3 * rng.standard_normal((36, 5, 5, 2))
    for i, k in enumerate(y):
        row, column = rng.integers(4, size=2)
        X[i, row : row + 2, column : column + 2, k % 2] += 2.0 * (k > 0)
    w = rng.gamma(1.0, size=36)
    options = {"alpha": 1.0, "init": "path", "random_state": 0}
    sizes = [(2, 2), (1, 2)]
    plain = M3EGridClassifier(sizes, **options).fit(X, y, sample_weight=w)
    moved = M3EGridClassifier(sizes, **options).fit(X + origin, y, sample_weight=w)
    assert plain.converged_ and moved.converged_
    assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    scores = moved.decision_function(X + origin)
    np.testing.assert_allclose(scores, plain.decision_function(X), atol=1e-4)
    again = M3EGridClassifier(sizes, alpha=1.0, init=moved.coef_, tol=1e-3)
    again.fit(X + origin, y, sample_weight=w)
    assert again.n_iter_ <= 2


def test_the_mean_is_of_the_cells_that_are_there(rng):
    y, X = np.arange(24) % 2, rng.standard_normal((24, 4, 4, 1))
    X[y == 1, 1:3, 1:3] += 2.0
    mask = np.ones((24, 9), dtype=bool)
    mask[:, 0] = False  # the window of the first corner
    found = []
    for origin in (0.0, 1e5):
        cells = X + origin
        cells[:, 0, 0] = np.nan
        model = M3EGridClassifier((2, 2), alpha=1.0, init="path", random_state=0)
        found.append(model.fit(cells, y, hidden_mask=list(mask)).objective_)
    assert found[0] == pytest.approx(found[1], rel=1e-6)
