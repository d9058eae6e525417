"""A model that the package lacks, with a route of product kernels and a scorer."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from maxent.kernels import FisherScores, product_kernel
from maxent.kernels.pairs._routes import ROUTES, ModelRoute
from maxent.kernels.scores._score_blocks import Scorer, free
from maxent.kernels.scores._scores import SCORERS


class Triangle:
    """p(x) = (x - a) / 2 on [a, a + 2]: no exponential family, its support moves."""

    n_features = 1

    def __init__(self, a):
        self.a = float(a)


class TriangleRoute(ModelRoute):
    """k = int over the common part of (x - a)^rho (x - b)^rho / 4^rho, by nodes."""

    methods = ("auto", "exact")
    sequences = False

    def log_kernel(self, P, Q, call):
        a, b = ([model.a for model in models] for models in (P, Q or P))
        low = np.maximum.outer(a, b)
        high = np.minimum.outer(a, b) + 2
        width = np.maximum(high - low, 0)
        # the integrand starts like a power of x - low: substitute t^8
        t, weight = np.polynomial.legendre.leggauss(80)
        t, weight = (t + 1) / 2, weight / 2
        x = low[..., None] + width[..., None] * t**8
        both = (x - np.array(a)[:, None, None]) * (x - np.array(b)[None, :, None]) / 4
        rho = call.rho[:, None]
        value = (both[..., None, :] ** rho * (weight * 8 * t**7)).sum(axis=-1)
        with np.errstate(divide="ignore"):
            return np.log(width[..., None] * value)[:, :, None]


class Tilt:
    """p(x) = (1 + slope x) / 2 on [-1, 1]."""

    def __init__(self, slope):
        self.slope = float(slope)


class TiltScorer(Scorer):
    """One parameter, the slope."""

    def coordinates(self):
        return [free("slope", (1,))]

    def blocks(self, data):
        x = np.asarray(data, dtype=float)
        density = (1 + self.model.slope * x) / 2
        return np.log(density), [(x / (2 * density))[:, None]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    home = f"{__name__}:TriangleRoute"
    monkeypatch.setitem(ROUTES, f"{__name__}.Triangle", home)
    monkeypatch.setitem(SCORERS, Tilt, TiltScorer)


def density(a, x):
    return np.where((x >= a) & (x <= a + 2), (x - a) / 2, 0.0)


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_kernels_are_the_integrals(rho):
    models = [Triangle(0.0), Triangle(0.7), Triangle(-1.5)]
    K = product_kernel(models, rho=rho)
    for i, p in enumerate(models):
        for j, q in enumerate(models):
            low, high = max(p.a, q.a), min(p.a, q.a) + 2

            def product(x, p=p, q=q):
                return (density(p.a, x) * density(q.a, x)) ** rho

            value = quad(product, low, high)[0] if high > low else 0.0
            assert K[i, j] == pytest.approx(value, rel=1e-7)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(
        K[:1, 1:], product_kernel(models[:1], models[1:], rho=rho)
    )


def test_everything_around_a_kernel_works():
    models = [Triangle(a) for a in (0.0, 0.3, 5.0)]
    K = product_kernel(models, rho=1.0, normalize=True)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    assert K[0, 2] == 0.0 and 0 < K[0, 1] < 1
    both = product_kernel(models, rho=[0.5, 1.0], log=True)
    np.testing.assert_allclose(both[..., 1], product_kernel(models, rho=1.0, log=True))
    with pytest.raises(ValueError, match=r"method.*Triangle"):
        product_kernel(models, method="per_step")
    with pytest.raises(TypeError, match=r"P\[1\].*Tilt"):
        product_kernel([models[0], Tilt(0.1)])

    class Named(Triangle):
        """A subclass takes the route of its base."""

    assert product_kernel([Named(0.0)])[0, 0] == pytest.approx(1.0)


def test_scores_are_slopes_of_the_log_density():
    x, h = np.array([-0.5, 0.1, 0.9]), 1e-6
    scores = FisherScores(Tilt(0.4))
    ends = (np.log((1 + (0.4 + s) * x) / 2) for s in (h, -h))
    slope = np.subtract(*ends) / (2 * h)
    np.testing.assert_allclose(scores.fit_transform(x)[:, 0], slope, atol=1e-8)
    assert scores.get_feature_names_out().tolist() == ["slope[0]"]

    class Named(Tilt):
        """A subclass takes the scorer of its base."""

    np.testing.assert_array_equal(
        FisherScores(Named(0.4)).fit_transform(x), scores.fit_transform(x)
    )


def test_laws_of_this_file_are_distributions():
    assert quad(lambda x: density(0.3, x), 0.3, 2.3)[0] == pytest.approx(1.0)
    triangle = stats.triang(1.0, loc=0.3, scale=2.0)
    assert density(0.3, 1.1) == pytest.approx(triangle.pdf(1.1))
