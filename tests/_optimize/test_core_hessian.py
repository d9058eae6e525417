"""Newton systems between the multipliers that matter, against dense matrices."""

import numpy as np
import pytest

from maxent import MEDTreeClassifier
from maxent._optimize import block_sum, core_hessian
from maxent._optimize.hessian_products import FreeHessian


def letters(n, d, wrong, rng):
    """Two classes of letters, some labels wrong."""
    table = rng.dirichlet(np.ones(4), size=(2, d)).cumsum(axis=-1)[..., :3]
    y = np.arange(n) % 2
    X = (rng.random((n, d, 1)) > table[y]).sum(axis=-1)
    return X, np.where(rng.random(n) < wrong, 1 - y, y)


@pytest.fixture
def systems(monkeypatch):
    """Systems that were asked for, and what solves them: (R, lam, diagonal, solve)."""
    seen = []
    original = core_hessian.core_solver

    def kept(R, lam, diagonal, *rest):
        solve = original(R, lam, diagonal, *rest)
        seen.append((R, lam.copy(), diagonal.copy(), solve))
        return solve

    monkeypatch.setattr(block_sum, "core_solver", kept)
    return seen


def test_solutions_are_those_of_the_dense_matrix(systems, rng):
    X, y = letters(400, 22, 0.02, rng)
    assert MEDTreeClassifier(margin="logistic").fit(X, y).converged_
    solved = [each for each in systems if each[3] is not None]
    assert len(solved) >= 4
    for R, lam, diagonal, solve in solved:
        extras = [None] * len(R.blocks)
        H = FreeHessian(R, lam, np.arange(R.n), diagonal, extras).assembled_matrix()
        rhs = rng.normal(size=(R.n, 2)) * np.sqrt(diagonal)[:, None]
        exact, found = np.linalg.solve(H, rhs), solve(rhs)
        error = np.einsum("ik,ij,jk->k", exact - found, H, exact - found)
        size = np.einsum("ik,ij,jk->k", exact, H, exact)
        assert (error <= 1e-7 * size).all()


@pytest.mark.parametrize("wrong", [0.0, 0.05, 0.3])
def test_the_optimum_is_that_of_the_interior_point(wrong, systems, rng, monkeypatch):
    X, y = letters(400, 22, wrong, rng)
    found = MEDTreeClassifier(margin="logistic", tol=1e-9).fit(X, y)
    assert found.converged_
    assert any(solve is not None for *_, solve in systems)
    monkeypatch.setattr(block_sum, "core_solver", lambda *args: None)
    with monkeypatch.context() as patch:
        patch.setattr(
            "maxent.discrimination.duals.block_dual._FEW_SECANTS", 1
        )  # and then the interior point
        other = MEDTreeClassifier(margin="logistic", tol=1e-9).fit(X, y)
    assert other.converged_ and other.n_iter_ > found.n_iter_
    assert other.objective_ == pytest.approx(found.objective_, 3e-9, 1e-8)
    scores = found.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), scores, 1e-3, 1e-3)


def test_many_products_end_in_a_factor(systems, rng, monkeypatch):
    monkeypatch.setattr(core_hessian, "few_products", lambda *args: None)
    X, y = letters(400, 22, 0.0, rng)
    model = MEDTreeClassifier(margin="logistic").fit(X, y)
    assert model.converged_ and any(solve is not None for *_, solve in systems)


def test_large_cores_are_left_to_factors(systems, rng, monkeypatch):
    X, y = letters(400, 22, 0.05, rng)
    monkeypatch.setattr(core_hessian, "DIRECT_SIZE", 10)
    assert MEDTreeClassifier(margin="logistic").fit(X, y).converged_
    assert systems and all(solve is None for *_, solve in systems)


@pytest.mark.parametrize("C", [1e2, 1e3])
def test_large_weights_take_the_interior_point_first(C):
    """Few damped steps do not get through the stages of large weights."""
    draw = np.random.default_rng(5)
    X, y = draw.integers(0, 3, (40, 4)), draw.integers(0, 2, 40)
    model = MEDTreeClassifier("fixed", margin="logistic", C=C).fit(X, y)
    assert model.converged_
