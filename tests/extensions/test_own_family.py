"""A family that the package lacks: what it states is enough for everything else.

Laplace distributions around zero, p(x) = exp(-|x| / scale) / (2 scale).
"""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from maxent.families import ExponentialFamily
from maxent.kernels import FisherScores, product_kernel
from maxent.models import Mixture


class CentredLaplace(ExponentialFamily):
    """Statistic |x|, natural parameter -1 / scale, cumulant log(2 scale)."""

    _core = (("scale", 0),)

    def __init__(self, scale):
        self._set({"scale": np.array(scale, dtype=float)})

    _statistics = classmethod(lambda cls, X: np.abs(X)[..., None])
    _support_text = classmethod(lambda cls: "rows are numbers")

    def _natural(self):
        return -1 / self.scale[..., None]

    def _mean(self):
        return self.scale[..., None]

    def _cumulant(self, eta):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(eta[..., 0] < 0, np.log(-2 / eta[..., 0]), np.inf)

    def _moments(self):
        return np.zeros_like(self.scale), 2 * self.scale**2

    def _sample(self, n, rng):
        return rng.laplace(scale=self.scale[..., None], size=(*self.batch_shape, n))

    @classmethod
    def _solve(cls, mean, total):
        return cls(mean[..., 0])


P = CentredLaplace([0.5, 2.0])


def test_densities_entropies_and_moments_are_those_of_scipy(rng):
    X = rng.normal(size=9)
    law = stats.laplace(scale=P.scale[:, None])
    np.testing.assert_allclose(P.log_prob(X), law.logpdf(X), rtol=1e-12)
    np.testing.assert_allclose(P.entropy(), law.entropy()[:, 0], rtol=1e-12)
    np.testing.assert_allclose(P.moments()[1], law.var()[:, 0], rtol=1e-12)


def test_fits_are_of_maximum_likelihood(rng):
    X, w = rng.normal(size=50), rng.integers(0, 3, size=50)
    fit = CentredLaplace.fit(X, w)
    assert fit.scale == pytest.approx(np.abs(np.repeat(X, w)).mean())
    assert CentredLaplace.fit(np.repeat(X, w)).scale == pytest.approx(fit.scale)


@pytest.mark.parametrize("rho", [0.3, 0.5, 1.0])
def test_comparisons_are_integrals(rho):
    def integral(function):
        # all functions here are even, and vanish to 1e-15 beyond 80
        return 2 * quad(function, 0, 80, points=[0.5, 2, 8], epsabs=1e-12)[0]

    p, q = (stats.laplace(scale=s) for s in P.scale)
    power = integral(lambda x: p.pdf(x) ** rho * q.pdf(x) ** rho)
    assert P.log_affinity(P, rho)[0, 1] == pytest.approx(np.log(power), abs=1e-7)
    assert product_kernel(P, rho=rho)[0, 1] == pytest.approx(power, rel=1e-7)
    kl = integral(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)))
    assert P.kl(P)[0, 1] == pytest.approx(kl, abs=1e-7)


def test_scores_are_slopes_of_the_log_density(rng):
    X, h = rng.normal(size=5), 1e-6
    eta = P[0].natural_parameters[0]
    ends = (stats.laplace.logpdf(X, scale=-1 / (eta + s)) for s in (h, -h))
    slope = np.subtract(*ends) / (2 * h)
    np.testing.assert_allclose(
        FisherScores(P[0]).fit_transform(X)[:, 0], slope, atol=1e-7
    )


def test_mixtures_of_it_are_found():
    truth = Mixture([0.5, 0.5], CentredLaplace([0.1, 5.0]))
    X = truth.sample(4000, random_state=0)
    fit = Mixture.fit(X, n_components=2, family=CentredLaplace, random_state=0)
    np.testing.assert_allclose(np.sort(fit.components.scale), [0.1, 5.0], rtol=0.1)
    # no local search from the truth does better
    assert fit.log_prob(X).sum() >= truth.log_prob(X).sum()
    by_hand = np.logaddexp.reduce(
        np.log(fit.weights)
        + stats.laplace.logpdf(X[:, None], scale=fit.components.scale),
        axis=1,
    )
    np.testing.assert_allclose(fit.log_prob(X), by_hand, rtol=1e-10)
