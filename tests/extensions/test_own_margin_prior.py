"""A margin prior that the package lacks: three functions, and every machine takes it.

The shortfall level - gamma has an inverse Gaussian law of mean MEAN and shape SHAPE.
Its loss is the rate function SHAPE (d - MEAN)^2 / (2 MEAN^2 d) of the shortfall d, zero
where d < MEAN.
"""

import functools
import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.integrate import quad
from sklearn.base import clone

from maxent import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDRegressor,
)
from maxent.discrimination import CustomMargin

MEAN, SHAPE = 0.2, 0.6
UPPER = SHAPE / (2 * MEAN**2)


@functools.cache  # compiling takes longer than a test
def inverse_gaussian(level=1.0):
    """phi, phi' and -phi'' with r = sqrt(1 - lam / UPPER)."""
    return CustomMargin(
        lambda lam: level * lam - SHAPE / MEAN * (1 - math.sqrt(1 - lam / UPPER)),
        lambda lam: level - MEAN / math.sqrt(1 - lam / UPPER),
        lambda lam: MEAN**3 / SHAPE * (1 - lam / UPPER) ** -1.5,
        upper=UPPER,
    )


def loss(m, level=1.0):
    d = np.maximum(level - np.asarray(m), MEAN)
    return SHAPE * (d - MEAN) ** 2 / (2 * MEAN**2 * d)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)


def test_potential_is_that_of_the_density():
    law = stats.invgauss(MEAN / SHAPE, scale=SHAPE)
    for lam in UPPER * np.array([0.1, 0.5, 0.9]):
        # exp(lam d) times the density, in one exponential that does not overflow
        value, _ = quad(
            lambda d, lam=lam: np.exp(lam * d + law.logpdf(d)), 0, np.inf, limit=200
        )
        expected = lam - np.log(value)
        assert inverse_gaussian().potential(lam) == pytest.approx(expected, abs=1e-7)


def test_loss_is_the_rate_function_of_the_law():
    m = np.linspace(-3.0, 2.0, 41)
    np.testing.assert_allclose(inverse_gaussian().loss(m), loss(m), atol=1e-10)


def test_the_machine_is_the_minimum_of_its_loss(rows):
    X, y = rows
    machine = MEDClassifier(
        kernel="linear", margin=inverse_gaussian(), C=2.0, tol=1e-10
    ).fit(X, y)
    weight = 2.0 / UPPER  # slope of the loss far below the margin: C

    def objective(p):
        return p[:2] @ p[:2] / 2 + weight * loss(y * (X @ p[:2] + p[2])).sum()

    best = optimize.minimize(objective, np.zeros(3), tol=1e-12)
    assert machine.objective_ == pytest.approx(best.fun, rel=1e-7)
    w = np.append(machine.coef_.ravel(), machine.intercept_)
    # a difference of 1e-7 in an objective of curvature 1 is one of 1e-3 in its argument
    np.testing.assert_allclose(w, best.x, atol=1e-3)


@pytest.mark.parametrize(
    "machine",
    [
        MEDClassifier(kernel="rbf"),
        MEDFeatureSelector(),
        MEDGaussianClassifier(),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_every_classifier_takes_it(machine, rows):
    X, y = rows
    machine = clone(machine).set_params(margin=inverse_gaussian()).fit(X, y)
    assert machine.converged_ and machine.score(X, y) > 0.7
    assert 0 <= machine.duality_gap_ <= 1e-3 * max(1.0, abs(machine.objective_))


def test_regressors_and_detectors_take_it(rows):
    X, _ = rows
    machine = MEDRegressor(kernel="linear", margin=inverse_gaussian(level=0.0))
    assert machine.fit(X, X @ [2.0, -1.0]).converged_
    detector = MEDOutlierDetector(margin=inverse_gaussian(level=-3.0)).fit(X)
    assert detector.converged_
    far = detector.decision_function([[20.0, 20.0]])
    assert far[0] < detector.decision_function(X).min()
