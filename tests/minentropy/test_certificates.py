"""Certificates of the learners: orders near 1, finite and infinite ones together."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.hidden_paths import paths
from sklearn.exceptions import ConvergenceWarning

from maxent.minentropy import M3EClassifier, M3EModel, TrustBall, renyi_weights
from maxent.minentropy._cccp import cccp
from maxent.minentropy._convex_parts import NEAR_ONE, ConvexParts, concavity
from maxent.minentropy._features import BlockFeatures, JointFeatures
from maxent.minentropy._hidden_chains import TreeFeatures
from maxent.minentropy._objective import Objective
from maxent.minentropy._prox_linear import _certified, prox_linear
from maxent.minentropy._starts import Settings, _random_start
from maxent.minentropy.margin_qp import MarginProblem

OPTIONS = {"tol": 1e-4, "qp_tol": 1e-8, "max_iter": 200}


def bags(alpha, scale=1.0, n=40, C=20.0):
    """Positive bags of five instances whose first one is moved."""
    rng = np.random.default_rng(0)
    X, y = scale * rng.standard_normal((n, 5, 3)), np.arange(n) % 2
    X[:, 0] += 1.5 * scale * y[:, None]
    phi = np.column_stack([X.reshape(-1, 3), np.ones(5 * n)])
    features = BlockFeatures(phi, np.arange(0, 5 * n + 1, 5), 2, np.ndim(alpha) == 0)
    c = np.full(n, C / n)
    return Objective(features, y, c, 1.0 - np.eye(2), np.broadcast_to(alpha, (2,)))


def measured(objective, w):
    """e_1 / sum c by the definition, at finite orders."""
    f, problem = objective.linearised(w)
    return (f - problem.solve(w, 1.0, tol=1e-10).objective) / objective.total


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0, 1.001, 1.1, 1.3, 2.0, 8.0])
def test_finite_orders_are_certified_by_the_linear_model(alpha):
    # at w = 0 curved parts keep the bound near f = 20, which is far from stationary
    objective = bags(alpha)
    found = cccp(objective, np.zeros(4), **OPTIONS)
    assert found.converged
    assert measured(objective, found.w) <= found.stationarity * (1 + 1e-6) + 1e-9
    other = prox_linear(objective, np.zeros(4), **OPTIONS)
    assert found.objective <= 1.01 * other.objective


def test_stationarity_is_that_of_the_last_point():
    objective = bags(2.0)
    found = cccp(objective, np.zeros(4), **{**OPTIONS, "max_iter": 1})
    assert found.n_iter == 1
    assert measured(objective, found.w) == pytest.approx(found.stationarity, rel=0.1)


@pytest.mark.parametrize("alpha", [[1.0, np.inf], [np.inf, 1.0], [np.inf, 0.5]])
def test_finite_and_infinite_orders_together(alpha):
    objective = bags(alpha)
    rng = np.random.default_rng(1)
    found = cccp(objective, rng.standard_normal(8), **OPTIONS)
    assert found.converged
    assert np.diff([f for _, f, _ in found.history]).max(initial=-1.0) <= 0.0
    for _ in range(200):
        u = 1e-4 * rng.standard_normal(8)
        fall = found.objective - objective.value(found.w + u)
        assert fall <= found.stationarity * objective.total + 1e-5


@pytest.mark.parametrize("solver", ["auto", "cccp"])
def test_any_orders_are_taken_by_the_estimator(solver):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((45, 4, 3)), np.arange(45) % 3
    X[:, 0] += 2.0 * np.eye(3)[y]
    model = M3EClassifier([1.0, np.inf, 0.3], 20.0, init="path", solver=solver)
    model.fit(X, y)
    assert model.converged_ and model.stationarity_ > 0


def test_ball_has_converged_within_the_tolerance_only():
    rng = np.random.default_rng(0)
    X, y = 2.0 * rng.standard_normal((40, 5, 3)), np.arange(40) % 2
    X[:, 0] += 3.0 * y[:, None]
    model = M3EClassifier(8.0, 100.0, solver="ball", init="zero").fit(X, y)
    assert model.converged_ and model.stationarity_ <= model.tol
    model.set_params(solver=TrustBall(1e-16))  # no step falls by enough
    with pytest.warns(ConvergenceWarning, match=r"'stalled'.*solver='prox'"):
        model.fit(X, y)
    assert not model.converged_ and model.stationarity_ > model.tol


def test_rounding_of_f_is_a_part_of_the_certificate():
    step = SimpleNamespace(objective=3.0 + 1e-15, gap=0.0)
    assert _certified(3.0, step, 1.0) < 1e-15
    assert _certified(3.0, step, 1e15) > 0.1


# -- convex parts ----------------------------------------------------------------------
@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.1, 1.2])
@pytest.mark.parametrize("H", [2, 5, 20, 100])
def test_quadratic_forms_outweigh_the_concavity(alpha, H, rng):
    centre = np.eye(H) - 1.0 / H
    rho, lowest = concavity(alpha, np.log(H)), np.inf
    for _ in range(30):
        s = rng.choice([1.0, 3.0, 6.0]) * rng.standard_normal(H)
        s[: rng.integers(1, H + 1)] += rng.choice([0.0, 4.0])
        E = 1e-5 * np.eye(H)
        hessian = (renyi_weights(s + E, alpha) - renyi_weights(s - E, alpha)) / 2e-5
        lowest = min(lowest, np.linalg.eigvalsh(hessian)[0])
        # q = 2 |s - mean|^2
        assert np.linalg.eigvalsh(hessian + 2.0 * rho * centre)[0] >= -1e-8
    assert lowest < 0.0 or H == 2


def test_spread_is_a_quadratic_form_above_the_squared_range(rng):
    R, ptr = rng.standard_normal((30, 4)), np.array([0, 3, 3, 10, 18, 19, 30])
    features = JointFeatures(R, ptr, 2)
    features.forbidden = np.array([4, 12])
    x, own = list(rng.standard_normal((3, 4, 2))), np.array([-1, 0, 0, 2])
    tree = TreeFeatures(x, 3, own, 2)
    psi = np.stack([paths(one, 3, own, 2)[0] for one in x])
    listed = JointFeatures(psi.reshape(-1, tree.d), 81 * np.arange(7), 2)
    for one, rows in ((features, features), (tree, listed)):
        w, u = rng.standard_normal((2, one.d))
        q, G = one.spread(w)
        top, low = (rows.tempered(sign * w, np.inf)[0] for sign in (1.0, -1.0))
        known = np.isfinite(top)
        assert (q[known] >= (top + low)[known] ** 2 - 1e-12).all()
        up, down = (one.spread(w + sign * u)[0][known] for sign in (1.0, -1.0))
        slope = one.at_weights(G, u)[known]
        np.testing.assert_allclose(slope, (up - down) / 4.0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0, 1.1, 3.0, np.inf])
def test_parts_are_convex_and_differ_by_the_score(alpha, rng):
    objective = bags(np.full(2, alpha))
    parts = ConvexParts(objective)
    assert parts.curved == (abs(alpha - 1.0) <= NEAR_ONE)
    w, z = rng.standard_normal((2, 8))
    P, GP, Q, GQ = parts.at(w)
    F, _ = objective.features.renyi(w, objective.alpha)
    np.testing.assert_allclose(P - Q, F, atol=1e-12)
    i, y = np.divmod(np.arange(80), 2)
    for value, grads, k in ((P, GP, 0), (Q, GQ, 2)):
        tangent = value[i, y] + parts.gradient(grads, i, y) @ (z - w)
        assert (parts.at(z)[k][i, y] >= tangent - 1e-10).all()


# -- sparse rows -----------------------------------------------------------------------
def sparse_rows(rng, n=40, d=6000):
    """One row of output 0, three of output 1, one of which tells."""
    y, sizes = np.arange(n) % 2, np.tile([1, 3], (n, 1))
    R = sp.random_array((4 * n, d), density=2e-3, random_state=rng, format="lil")
    R[4 * np.arange(n) + rng.integers(1, 4, size=n), 0] = 2.0 * y
    return (sp.csr_array(R), sizes), y


@pytest.mark.parametrize("alpha", [0.5, 1.0, np.inf, [1.0, np.inf]])
def test_sparse_rows_stay_sparse(alpha, rng, monkeypatch):
    (R, sizes), y = sparse_rows(rng)
    options = {"alpha": alpha, "C": 20.0, "init": "path", "solver": "cccp"}
    dense = M3EModel("ragged", **options).fit((R.toarray(), sizes), y)
    whole = sp.csr_array.toarray

    def small(self, *args, **kwargs):
        assert self.shape[1] < R.shape[1], "rows were made dense"
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(sp.csr_array, "toarray", small)
    model = M3EModel("ragged", **options).fit((R, sizes), y)
    np.testing.assert_allclose(model.objective_, dense.objective_, rtol=1e-4)


@pytest.mark.parametrize("c", [1.0, 1e4])
def test_interior_point_of_wide_sparse_rows(c, rng):
    D = sp.random_array((60, 3000), density=5e-3, random_state=rng, format="csr")
    D = sp.vstack([D, D[:20], sp.csr_array((3, 3000))], format="csr")  # of lower rank
    n = D.shape[0]
    first, other = (
        MarginProblem(rows, np.ones(n), np.full(n, c), np.arange(n), (n,)).solve(
            np.zeros(3000), tol=1e-8
        )
        for rows in (D, D.toarray())
    )
    assert first.converged
    np.testing.assert_allclose(first.objective, other.objective, rtol=1e-7)


# -- hidden values that tie ------------------------------------------------------------
def tied(seed, K, C, n=30, H=6):
    """Bags at order infinity, and the weights of a random start."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, H, 3)), np.arange(n) % K
    X[np.arange(n), rng.integers(H, size=n)] += np.eye(K, 3)[y]
    phi = np.column_stack([X.reshape(-1, 3), np.ones(H * n)])
    features = BlockFeatures(phi, np.arange(0, H * n + 1, H), K, K == 2)
    c, loss = np.full(n, C / n), 1.0 - np.eye(K)
    objective = Objective(features, y, c, loss, np.full(K, np.inf))
    return objective, _random_start(objective, Settings("cccp", *OPTIONS.values()), rng)


@pytest.mark.parametrize("latent", [False, True])
@pytest.mark.parametrize(
    "K, C, seed", [(2, 20.0, 8), (2, 200.0, 7), (2, 200.0, 25), (3, 2000.0, 0)]
)
def test_no_other_bound_falls_at_a_stationary_point(K, C, seed, latent):
    # in these the latent SVM comes to a tie that only other rows can pass
    objective, start = tied(seed, K, C)
    found = cccp(objective, start, latent_svm=latent, **OPTIONS)
    assert found.converged
    again = cccp(objective, found.w, **OPTIONS)
    assert again.history[0][2] <= OPTIONS["tol"]
    assert again.objective >= found.objective - OPTIONS["tol"] * objective.total


@pytest.mark.parametrize("latent", [False, True])
def test_zero_weights_are_left_where_some_choice_falls(latent):
    for seed in range(8):
        objective, _ = tied(seed, 2, 200.0)
        rng, t = np.random.default_rng(seed), 1e-6
        near = [objective.value(t * rng.standard_normal(4)) for _ in range(50)]
        assert min(near) < objective.total - t  # so that zero is not stationary
        found = cccp(objective, np.zeros(4), latent_svm=latent, **OPTIONS)
        assert found.converged and found.objective < 0.95 * objective.total
