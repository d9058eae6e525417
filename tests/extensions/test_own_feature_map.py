"""A feature map that the package lacks: windows of a series, by convolution.

Output 1 has a hidden place h and the features x[h : h + WIDTH] and 1; output 0 has one
hidden value whose features are zero.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from maxent.minentropy import M3EModel, check_feature_map

WIDTH, LENGTH = 3, 10
PLACES = LENGTH - WIDTH + 1


class Windows:
    """Series (n, LENGTH); no window is stored."""

    n_features = WIDTH + 1

    def hidden_sizes(self, X):
        return np.tile([1, PLACES], (len(X), 1))

    def scores(self, X, w):
        found = [np.correlate(x, w[:-1], "valid") + w[-1] for x in np.asarray(X)]
        return np.insert(found, 0, 0.0, axis=1).ravel()

    def pool(self, X, beta):
        out = np.zeros((len(X), 2, self.n_features))
        for i, b in enumerate(beta.reshape(len(X), -1)[:, 1:]):
            out[i, 1] = [*np.correlate(X[i], b, "valid"), b.sum()]
        return out


class FirstWindow(Windows):
    """Only the place 0: nothing is hidden, and learning is a convex problem."""

    def hidden_sizes(self, X):
        return np.ones((len(X), 2), dtype=int)

    def scores(self, X, w):
        s = np.asarray(X)[:, :WIDTH] @ w[:-1] + w[-1]
        return np.stack([np.zeros(len(s)), s], axis=1).ravel()

    def pool(self, X, beta):
        out = np.zeros((len(X), 2, self.n_features))
        b = beta.reshape(-1, 2)[:, 1:]
        out[:, 1] = np.hstack([b * np.asarray(X)[:, :WIDTH], b])
        return out


@pytest.fixture
def series(rng):
    X, y = rng.normal(size=(40, LENGTH)), np.arange(40) % 2
    places = rng.integers(PLACES, size=40)
    for i in np.flatnonzero(y):
        X[i, places[i] : places[i] + WIDTH] += [3.0, -3.0, 3.0]
    return X, y


def renyi(s, alpha):
    """F_alpha of the scores of one output, from its definition."""
    if alpha == np.inf:
        return s.max()
    if alpha == 1.0:
        p = np.exp(s - logsumexp(s))
        return p @ s
    return (logsumexp(alpha * s) - logsumexp(s)) / (alpha - 1)


def by_hand(X, y, w, alpha, C):
    """Decision values and objective, every window written out."""
    margins = []
    for x in X:
        windows = np.lib.stride_tricks.sliding_window_view(x, WIDTH)
        margins.append(renyi(windows @ w[:-1] + w[-1], alpha))
    margins = np.array(margins)
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * margins)
    return margins, w @ w / 2 + C * slack.mean()


@pytest.mark.parametrize("feature_map", [Windows(), FirstWindow()])
def test_the_two_operators_are_adjoint(feature_map, series):
    check_feature_map(feature_map, series[0][:5])


def test_a_wrong_pool_is_named(series):
    class Shifted(Windows):
        def pool(self, X, beta):
            return np.roll(super().pool(X, beta), 1, axis=2)

    with pytest.raises(ValueError, match=r"pool.*sample 0 and output 1"):
        check_feature_map(Shifted(), series[0][:5])


@pytest.mark.parametrize("alpha", [0.5, 1.0, np.inf])
def test_models_are_those_of_the_windows(alpha, series):
    X, y = series
    model = M3EModel(Windows(), alpha=alpha, C=20.0, random_state=0).fit(X, y)
    margins, objective = by_hand(X, y, model.coef_.ravel(), alpha, 20.0)
    np.testing.assert_array_equal(model.predict(X), (margins > 0).astype(int))
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    assert np.diff(model.objective_history_).max(initial=0) <= 1e-9 * objective
    assert objective < by_hand(X, y, np.zeros(WIDTH + 1), alpha, 20.0)[1]


def test_without_hidden_values_it_is_the_convex_optimum(series):
    X, y = series
    model = M3EModel(FirstWindow(), alpha=1.0, C=5.0, tol=1e-9).fit(X, y)
    A = np.hstack([X[:, :WIDTH], np.ones((40, 1))]) * np.where(y == 1, 1, -1)[:, None]

    # smooth program over (w, slacks), by a general solver
    best = minimize(
        lambda p: p[:4] @ p[:4] / 2 + 5.0 * p[4:].mean(),
        np.append(np.zeros(4), np.ones(40)),
        jac=lambda p: np.append(p[:4], np.full(40, 5.0 / 40)),
        method="SLSQP",
        bounds=[(None, None)] * 4 + [(0, None)] * 40,
        constraints={
            "type": "ineq",
            "fun": lambda p: A @ p[:4] + p[4:] - 1,
            "jac": lambda p: np.hstack([A, np.eye(40)]),
        },
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert best.success
    assert model.objective_ == pytest.approx(best.fun, rel=1e-6)
