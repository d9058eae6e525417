"""Newton systems by products with the Hessian and by factors, against matrices."""

import numpy as np
import pytest

from maxent import MEDTreeClassifier
from maxent._optimize.newton_system import NewtonSystem


def letters(n, d, wrong, rng):
    """Two classes of letters, some labels wrong."""
    table = rng.dirichlet(np.ones(4), size=(2, d)).cumsum(axis=-1)[..., :3]
    y = np.arange(n) % 2
    X = (rng.random((n, d, 1)) > table[y]).sum(axis=-1)
    return X, np.where(rng.random(n) < wrong, 1 - y, y)


def system(rng, n=30):
    """A positive matrix with a diagonal of many sizes, and counted products."""
    F, made = rng.normal(size=(n, 5)), []
    A = F @ F.T + np.diag(10.0 ** rng.uniform(0.0, 6.0, n))
    product = lambda x: made.append(1) or A @ x  # noqa: E731
    return A, product, lambda r: (r.T / A.diagonal()).T, made


def by_products(product, precondition, factor, most, accuracy):
    return NewtonSystem(
        product=product,
        precondition=precondition,
        factor=factor,
        most=most,
        accuracy=accuracy,
    )


def most_products(A, accuracy):
    """Products that conjugate gradients take at most, scaled to a unit diagonal.

    The error in the norm of A falls by 2 rate^k (Hestenes & Stiefel 1952), and the
    residual that is looked at is within a factor sqrt(condition) of it.
    """
    size = np.sqrt(A.diagonal())
    root = np.sqrt(np.linalg.cond(A / np.outer(size, size)))
    rate = (root - 1.0) / (root + 1.0)
    return int(np.ceil(np.log(2.0 * root / accuracy) / -np.log(rate)))


def refused():
    raise AssertionError("a factor was made")


@pytest.mark.parametrize("k", [0, 1, 3])
def test_solutions_are_those_of_the_dense_bordered_matrix(k, rng):
    A, product, precondition, made = system(rng)
    n = len(A)
    E = rng.normal(size=(n, k))
    solver = by_products(product, precondition, refused, 60, 1e-10)
    solve = solver.bordered(E if k else None)
    for lack in (np.zeros(k), rng.normal(size=k)):
        rhs = rng.normal(size=n)
        x, y = solve(rhs, lack if k else None)
        whole = np.block([[A, E], [E.T, np.zeros((k, k))]])
        want = np.linalg.solve(whole, np.append(rhs, lack))
        np.testing.assert_allclose(x, want[:n], 0.0, 1e-8 * np.abs(want[:n]).max())
        if k:
            np.testing.assert_allclose(y, want[n:], 1e-6)
            np.testing.assert_allclose(E.T @ x, lack, 0.0, 1e-12)
        else:
            assert y is None
    # two right-hand sides, and the start with the lack; directions that keep E' x have
    # no worse condition
    assert len(made) <= 2 * most_products(A, 1e-10) + 1


def test_several_right_hand_sides(rng):
    A, product, precondition, _ = system(rng)
    rhs = rng.normal(size=(len(A), 2))
    solver = by_products(product, precondition, refused, 60, 1e-10)
    np.testing.assert_allclose(solver(rhs), np.linalg.solve(A, rhs), 1e-6, 1e-9)


@pytest.mark.parametrize("k", [0, 2])
def test_a_factor_beyond_few_products_is_made_once(k, rng):
    A, product, precondition, products = system(rng)
    made = []

    def exact():
        made.append(1)
        return lambda rhs: np.linalg.solve(A, rhs)

    E, rhs = rng.normal(size=(len(A), k)) if k else None, rng.normal(size=len(A))
    lack = np.zeros(k) if k else None
    solve = by_products(product, precondition, exact, 3, 1e-10).bordered(E)
    want = NewtonSystem(lambda rhs: np.linalg.solve(A, rhs)).bordered(E)(rhs, lack)
    for _ in range(2):
        for found, answer in zip(solve(rhs, lack), want, strict=True):
            assert answer is None or np.allclose(found, answer, 1e-12)
    assert len(made) == 1 and len(products) == 3


def test_directions_rise_however_few_the_products(rng):
    """An early end leaves a step along which the slope still rises."""
    A, product, precondition, _ = system(rng)
    E, g = rng.normal(size=(len(A), 2)), rng.normal(size=len(A))
    for accuracy in (0.9, 0.3, 0.03):
        solver = by_products(product, precondition, refused, 60, accuracy)
        step, y = solver.bordered(E)(g, np.zeros(2))
        gain = g @ step - 0.5 * step @ A @ step
        assert gain > 0 and np.abs(E.T @ step).max() < 1e-12
        assert y.shape == (2,)


@pytest.mark.parametrize("wrong", [0.0, 0.05, 0.3])
def test_the_optimum_is_that_of_the_interior_point(wrong, rng, monkeypatch):
    X, y = letters(400, 22, wrong, rng)
    solved, original = [], NewtonSystem._by_products

    def counted(*args, **options):
        solved.append(original(*args, **options))
        return solved[-1]

    monkeypatch.setattr(NewtonSystem, "_by_products", counted)
    found = MEDTreeClassifier(margin="logistic", tol=1e-9).fit(X, y)
    assert found.converged_
    assert len(solved) >= 5 and sum(each is None for each in solved) <= 1
    with monkeypatch.context() as patch:
        patch.setattr(
            "maxent.discrimination.duals.block_dual._MORE_SECANTS", 1
        )  # and then the interior point
        other = MEDTreeClassifier(margin="logistic", tol=1e-9).fit(X, y)
    assert other.converged_ and other.n_iter_ > found.n_iter_
    assert other.objective_ == pytest.approx(found.objective_, 3e-9, 1e-8)
    scores = found.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), scores, 1e-3, 1e-3)


@pytest.mark.parametrize("C", [1e2, 1e3])
def test_large_weights_converge(C):
    draw = np.random.default_rng(5)
    X, y = draw.integers(0, 3, (40, 4)), draw.integers(0, 2, 40)
    model = MEDTreeClassifier("fixed", margin="logistic", C=C).fit(X, y)
    assert model.converged_
