"""Random batches of every family, and scipy's distribution for each member."""

import numpy as np
from scipy import stats

from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    VonMisesFisher,
    Wishart,
)


def spd(rng, shape, d):
    """Well conditioned covariance matrices (*shape, d, d)."""
    A = rng.normal(size=(*shape, d, 2 * d + 2))
    return A @ A.swapaxes(-2, -1) / d


def directions(rng, shape, d):
    m = rng.normal(size=(*shape, d))
    return m / np.linalg.norm(m, axis=-1, keepdims=True)


# name -> batch of the given shape, of moderate parameters
MAKERS = {
    "gaussian": lambda r, s: Gaussian(r.normal(size=(*s, 3)), spd(r, s, 3)),
    "diagonal": lambda r, s: DiagonalGaussian(
        r.normal(size=(*s, 3)), r.uniform(0.3, 3.0, size=(*s, 3))
    ),
    "spherical": lambda r, s: SphericalGaussian(
        r.normal(size=(*s, 3)), r.uniform(0.3, 3.0, size=s)
    ),
    "bernoulli": lambda r, s: Bernoulli(r.uniform(0.02, 0.98, size=s)),
    "categorical": lambda r, s: Categorical(r.dirichlet(np.ones(4), size=s)),
    "multinomial": lambda r, s: Multinomial(r.dirichlet(np.ones(3), size=s), 5),
    "poisson": lambda r, s: Poisson(r.uniform(0.1, 9.0, size=s)),
    "geometric": lambda r, s: Geometric(r.uniform(0.1, 0.9, size=s)),
    "negative binomial": lambda r, s: NegativeBinomial(
        r.uniform(0.2, 0.9, size=s), 2.5
    ),
    "exponential": lambda r, s: Exponential(r.uniform(0.2, 5.0, size=s)),
    "gamma": lambda r, s: Gamma(
        r.uniform(1.1, 5.0, size=s), r.uniform(0.3, 3.0, size=s)
    ),
    "beta": lambda r, s: Beta(r.uniform(1.1, 6.0, size=s), r.uniform(1.1, 6.0, size=s)),
    "dirichlet": lambda r, s: Dirichlet(r.uniform(1.1, 5.0, size=(*s, 3))),
    "wishart": lambda r, s: Wishart(r.uniform(3.5, 8.0, size=s), spd(r, s, 2)),
    "inverse wishart": lambda r, s: InverseWishart(
        r.uniform(5.5, 9.0, size=s), spd(r, s, 2)
    ),
    "von mises-fisher": lambda r, s: VonMisesFisher(
        directions(r, s, 3), r.uniform(0.1, 20.0, size=s)
    ),
}
NAMES = list(MAKERS)
DISCRETE = {
    "bernoulli",
    "categorical",
    "multinomial",
    "poisson",
    "geometric",
    "negative binomial",
}


class Indicators:
    """scipy's multinomial of one draw, over category numbers."""

    def __init__(self, prob):
        self.prob = prob
        self.draw = stats.multinomial(1, prob)

    def logpmf(self, X):
        return self.draw.logpmf(np.eye(len(self.prob))[np.asarray(X, dtype=int)])

    def entropy(self):
        return stats.entropy(self.prob)

    def mean(self):
        return self.draw.mean()

    def var(self):
        return np.diag(self.draw.cov())


def reference(P):
    """scipy's distribution for a batch of shape ()."""
    name = type(P).__name__
    if name == "Gaussian":
        return stats.multivariate_normal(P.mean, P.cov)
    if name == "DiagonalGaussian":
        return stats.multivariate_normal(P.mean, np.diag(P.var))
    if name == "SphericalGaussian":
        return stats.multivariate_normal(P.mean, P.var * np.eye(len(P.mean)))
    return {
        "Bernoulli": lambda: stats.bernoulli(P.prob),
        "Categorical": lambda: Indicators(P.prob),
        "Multinomial": lambda: stats.multinomial(P.total, P.prob),
        "Poisson": lambda: stats.poisson(P.rate),
        "Geometric": lambda: stats.geom(P.prob, loc=-1),
        "NegativeBinomial": lambda: stats.nbinom(P.r, P.prob),
        "Exponential": lambda: stats.expon(scale=P.scale),
        "Gamma": lambda: stats.gamma(P.shape, scale=P.scale),
        "Beta": lambda: stats.beta(P.a, P.b),
        "Dirichlet": lambda: stats.dirichlet(P.alpha),
        "Wishart": lambda: stats.wishart(float(P.df), P.scale),
        "InverseWishart": lambda: stats.invwishart(float(P.df), P.scale),
        "VonMisesFisher": lambda: stats.vonmises_fisher(
            P.mean_direction, float(P.concentration)
        ),
    }[name]()


def log_density(P, X):
    """Log-density of rows by scipy."""
    frozen = reference(P)
    if type(P).__name__ in ("Wishart", "InverseWishart"):
        return np.array([frozen.logpdf(x) for x in X])
    if type(P).__name__ == "Dirichlet":
        return np.array([frozen.logpdf(x) for x in X])
    by = frozen.logpmf if hasattr(frozen, "logpmf") else frozen.logpdf
    return np.atleast_1d(by(X))
