"""Joint multi-class duals: every road, one machine, with and without memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import PRIORS, by_name

from maxent._support.vector_kernels import VectorKernel
from maxent.discrimination.duals.multiclass_dual import solve_multiclass

TOL = 1e-6
SMOOTH = [m for m in PRIORS if m.name != "hinge"]

priors = pytest.mark.parametrize("margin", PRIORS, ids=by_name)
biases = pytest.mark.parametrize("bias", ["flat", 1.5, None])


def problem(rng, n=200, m=3):
    X = rng.normal(size=(n, 3))
    noise = 0.5 * rng.normal(size=(n, m))
    codes = (X @ rng.normal(size=(3, m)) + noise).argmax(axis=1)
    codes[:m] = np.arange(m)
    return X, codes, rng.uniform(0.5, 2.0, n)


def solve(X, codes, weight, margin, bias, solver, kernel="rbf", **options):
    held = VectorKernel(X, kernel, gamma=0.5)
    return solve_multiclass(
        held,
        codes,
        codes.max() + 1,
        margin,
        bias,
        weight,
        tol=TOL,
        solver=solver,
        **{"max_iter": 3000, **options},
    )


def agree(results):
    """All converged; objectives of gap tol * (1 + J) may differ by that much, twice."""
    for r, _ in results:
        assert r.converged
        assert 0 <= r.gap <= TOL * (1 + r.objective)
        first = results[0][0].objective
        assert r.objective == pytest.approx(first, abs=2 * TOL * (1 + first))


@priors
@biases
def test_coordinate_ascent_and_interior_point_agree_on_kernels(margin, bias, rng):
    data = problem(rng)
    results = [solve(*data, margin, bias, s) for s in ("interior", "coordinate")]
    # without room for the matrix: a block at a time
    results.append(solve(*data, margin, bias, "coordinate", cache_size=1e-3))
    agree(results)


@pytest.mark.parametrize("margin", SMOOTH, ids=by_name)
@biases
def test_every_road_agrees_on_linear_machines(margin, bias, rng):
    X, codes, weight = problem(rng)
    X[:, 1] *= rng.random(len(X)) < 0.3
    data = (codes, weight, margin, bias)
    long = sp.csr_array(X)
    long.indices = long.indices.astype(np.int64)  # the other index array stays short
    roads = [(X, s) for s in ("interior", "coordinate", "lbfgs")]
    roads += [(sp.csr_array(X), "coordinate"), (long, "coordinate")]
    results = [
        solve(Z, *data, solver, kernel="linear", cache_size=1e-3) for Z, solver in roads
    ]
    agree(results)
    for r, _ in results:
        assert abs(r.bias.sum()) <= 1e-9 * (1 + np.abs(r.bias).max())


@priors
def test_multipliers_and_coefficients_belong_together(margin, rng):
    X, codes, weight = problem(rng)
    for bias, solver in (("flat", "coordinate"), (1.5, "interior")):
        r, beta = solve(X, codes, weight, margin, bias, solver)
        right = np.arange(3) == codes[:, None]
        assert (r.lam[right] == 0).all()
        expected = 0.5 * np.where(right, r.lam.sum(axis=1)[:, None], -r.lam)
        np.testing.assert_allclose(beta, expected, atol=1e-12)
        assert abs(r.bias.sum()) <= 1e-9
        if bias == "flat":
            assert np.abs(beta.sum(axis=0)).max() <= 1e-10 * r.lam.sum()
        else:
            np.testing.assert_allclose(r.bias, bias * beta.sum(axis=0), atol=1e-10)
