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
    Independent,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Product,
    SphericalGaussian,
    TiedGaussian,
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
    "tied": lambda r, s: TiedGaussian(r.normal(size=(*s, 3)), spd(r, (), 3)),
    "independent": lambda r, s: Independent(Gamma(*r.uniform(1.1, 5.0, (2, *s, 3)))),
    "independent counts": lambda r, s: Independent(Poisson(r.uniform(0.1, 9, (*s, 2)))),
    "product": lambda r, s: Product(
        {
            2: Exponential(r.uniform(0.2, 5.0, size=s)),
            (0, 3): Gaussian(r.normal(size=(*s, 2)), spd(r, s, 2)),
            1: Bernoulli(r.uniform(0.1, 0.9, size=s)),
        }
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
    "independent counts",
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


class Columns:
    """scipy's distributions of groups of columns."""

    def __init__(self, factors):
        self.factors = {j: reference(factor) for j, factor in factors.items()}
        self.order = np.argsort(np.concatenate([np.atleast_1d(j) for j in factors]))

    def logpdf(self, X):
        return sum(
            (one.logpmf if hasattr(one, "logpmf") else one.logpdf)(X[:, j])
            for j, one in self.factors.items()
        )

    def entropy(self):
        return sum(one.entropy() for one in self.factors.values())

    def mean(self):
        return self._moments("mean")

    def var(self):
        return self._moments("var")

    def _moments(self, name):
        each = [np.atleast_1d(_moment(one, name)) for one in self.factors.values()]
        return np.concatenate(each)[self.order]


def _moment(one, name):
    """Mean or variance of scipy's distribution; of a normal vector they are arrays."""
    if name == "mean":
        return one.mean() if callable(one.mean) else one.mean
    return one.var() if hasattr(one, "var") else np.diag(one.cov)


def reference(P):
    """scipy's distribution for a batch of shape ()."""
    name = type(P).__name__
    if name == "Independent":
        return Columns({j: P.members[j] for j in range(len(P.members))})
    if name == "Product":
        return Columns(
            {
                own if len(own) > 1 else own[0]: (
                    part if len(own) > 1 else part.members[0]
                )
                for own, part in zip(P.columns, P.factors)
            }
        )
    if name in ("Gaussian", "TiedGaussian"):
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
