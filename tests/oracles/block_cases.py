"""One small block of every kind, with points of its domain and finite differences."""

from dataclasses import dataclass

import numpy as np

from maxent.discrimination import GaussianCentre, GaussianScores
from maxent.families import (
    Bernoulli,
    Beta,
    Block,
    DirichletBayesNet,
    DirichletCounts,
    DirichletProduct,
    Exponential,
    FamilyPrior,
    Gamma,
    Geometric,
    NegativeBinomial,
    NormalGamma,
    NormalInverseWishart,
    Poisson,
    ProductPrior,
    VonMisesFisher,
)


@dataclass
class Case:
    """A prior, rows, and the weights that the rows have from the start."""

    prior: object
    X: np.ndarray
    base: np.ndarray | None = None

    def block(self):
        return self.prior.block(self.X, self.base)


def spread(rng, n, d):
    """Rows of correlated features with far and different means."""
    mix = np.eye(d) + 0.4 * rng.normal(size=(d, d))
    return rng.normal(size=(n, d)) @ mix + np.linspace(-3.0, 5.0, d)


def codes(rng, n, sizes, missing=0.0):
    """Codes of categorical features; a share of them is missing."""
    X = np.column_stack([rng.integers(0, r, size=n) for r in sizes])
    X[rng.random(X.shape) < missing] = -1
    return X


def spd(rng, d):
    A = rng.normal(size=(d, 2 * d + 2))
    return A @ A.T / d


def _wishart(rng, d, n=12):
    return NormalInverseWishart(rng.normal(size=d), 1.3, d + 1.7, spd(rng, d))


def _net(rng, missing):
    sizes, parents = [2, 3, 2], [(), (0,), (0, 1)]
    shapes = [(1, 2), (2, 3), (6, 2)]
    tables = [rng.uniform(0.6, 2.5, size=shape) for shape in shapes]
    prior = DirichletBayesNet(tables, parents, sizes)
    return Case(prior, codes(rng, 14, sizes, missing))


def _far(case, rng):
    """Rows that start with random weights, some of them negative."""
    start = case.prior.block(case.X)
    return Case(case.prior, case.X, inside(rng, start, 0.5))


def _family(member, rng, n=11):
    """A prior worth a few rows, of draws of one member of a family."""
    mean, count = member.mean_parameters, rng.uniform(1.5, 3.0)
    X = member.sample(n, rng).astype(float).reshape(n, -1)
    return Case(FamilyPrior(member, mean, count), X)


def _product(rng, missing):
    sizes = [3, 2]
    X = np.column_stack(
        [codes(rng, 12, sizes), spread(rng, 12, 2), rng.poisson(3.0, size=12)]
    ).astype(float)
    X[rng.random(12) < missing, 2] = np.nan
    X[rng.random(12) < missing, 4] = np.nan
    prior = ProductPrior(
        {
            (2, 3): _wishart(rng, 2),
            4: FamilyPrior(Poisson(1.0), [2.5], 2.0),
            (0, 1): DirichletProduct(0.8, sizes),
        }
    )
    return Case(prior, X)


FAMILIES = {
    "Poisson": Poisson(3.0),
    "NegativeBinomial": NegativeBinomial(0.4, 2.5),
    "Geometric": Geometric(0.3),
    "Bernoulli": Bernoulli(0.4),
    "Exponential": Exponential(2.0),
    "Gamma": Gamma(2.5, 1.5),
    "Beta": Beta(1.5, 2.5),
    "VonMisesFisher": VonMisesFisher([0.6, 0.8], 2.0),
}

# name -> case of moderate parameters
MAKERS = {
    "wishart, improper": lambda r: Case(
        NormalInverseWishart.improper(2), spread(r, 14, 2), np.arange(14) % 2.0
    ),
    "wishart, proper": lambda r: Case(_wishart(r, 3), spread(r, 12, 3)),
    "wishart, one feature": lambda r: Case(_wishart(r, 1), spread(r, 9, 1)),
    "wishart, updated": lambda r: _far(Case(_wishart(r, 2), spread(r, 11, 2)), r),
    "normal-gamma": lambda r: Case(
        NormalGamma(r.normal(size=2), spd(r, 2), 2.2, 1.6), spread(r, 12, 3)
    ),
    "normal-gamma, updated": lambda r: _far(
        Case(NormalGamma(r.normal(size=1), spd(r, 1), 1.4, 0.8), spread(r, 9, 2)), r
    ),
    "categories": lambda r: Case(
        DirichletProduct([r.uniform(0.5, 2.0, size=k) for k in (3, 2, 4)]),
        codes(r, 15, (3, 2, 4)),
    ),
    "categories, missing": lambda r: Case(
        DirichletProduct(0.7, [3, 2, 4]), codes(r, 15, (3, 2, 4), 0.2)
    ),
    "net": lambda r: _net(r, 0.0),
    "net, missing": lambda r: _net(r, 0.2),
    "net, updated": lambda r: _far(_net(r, 0.0), r),
    "counts": lambda r: Case(
        DirichletCounts(r.uniform(0.4, 2.0, size=4)),
        r.poisson(1.5, size=(13, 4)).astype(float),
    ),
    **{name: lambda r, P=P: _family(P, r) for name, P in FAMILIES.items()},
    "Poisson, updated": lambda r: _far(_family(Poisson(3.0), r), r),
    "product": lambda r: _product(r, 0.0),
    "product, missing": lambda r: _product(r, 0.2),
    "scores": lambda r: Case(GaussianScores("rbf", gamma=0.3), spread(r, 10, 2)),
    "scores, linear": lambda r: Case(GaussianScores("linear"), spread(r, 10, 2)),
    "centre": lambda r: Case(GaussianCentre("rbf", gamma=0.3), spread(r, 10, 2)),
    "centre, cubic": lambda r: Case(
        GaussianCentre("poly", gamma=0.2, coef0=1.0), spread(r, 8, 2)
    ),
}

CONJUGATE = [name for name in MAKERS if not name.startswith(("scores", "centre"))]


def origin(block):
    """A point of the domain to start from: the sum of weights of a centre is > 0."""
    cone = not np.isfinite(block.log_partition(-np.ones(block.n_rows) * 1e-9))
    return np.full(block.n_rows, 0.5 if cone else 0.0)


def inside(rng, block, share=0.7, size=1.0):
    """Random weights of the domain, of either sign, away from its boundary."""
    a = origin(block)
    for _ in range(3):
        step = size * rng.normal(size=block.n_rows)
        a = a + min(share * block.max_step(a, step), 1.0) * step
    return a


def gradient_by_differences(block, f, a):
    """Differences of fourth order of a function of weights, also vector valued.

    The step is a share of the way to the boundary of the domain, so that the error is
    that share to the fourth power near the boundary too.
    """
    rows = []
    for e in np.eye(len(a)):
        h = 2e-3 * min(block.max_step(a, e), block.max_step(a, -e), 1.0)
        near = f(a + h * e) - f(a - h * e)
        far = f(a + 2 * h * e) - f(a - 2 * h * e)
        rows.append((8.0 * near - far) / (12.0 * h))
    return np.array(rows)


def agree(found, wanted, rtol, scale=None):
    """Equal within rtol of the largest entry, or of a scale."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    scale = float(np.abs(wanted).max()) if scale is None else scale
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * max(scale, 1e-300))


class PoissonGamma(Block):
    """Counts with one rate for all rows, rate ~ Gamma(shape, 1 / scale).

    A block as a user writes it, from the formulas of the gamma distribution: the
    posterior has shape + sum a x and inverse scale b + sum a.
    """

    def __init__(self, shape, b, x):
        self.start, self.x, self.n_rows = (shape, b), np.ravel(x).astype(float), len(x)
        self.rank = 2

    def _at(self, a):
        return self.start[0] + float(a @ self.x), self.start[1] + float(a.sum())

    def log_partition(self, a):
        from scipy.special import gammaln

        (s0, b0), (s, b) = self.start, self._at(a)
        if not (s > 0 and b > 0):
            return np.inf
        value = gammaln(s) - s * np.log(b) - gammaln(s0) + s0 * np.log(b0)
        return float(value - a @ gammaln(self.x + 1.0))

    def score(self, a, X):
        from scipy.special import gammaln, psi

        (s, b), x = self._at(a), np.ravel(X).astype(float)
        return x * (psi(s) - np.log(b)) - s / b - gammaln(x + 1.0)

    def mean(self, a):
        return self.score(a, self.x)

    def hessian_factor(self, a):
        from scipy.special import polygamma

        s, b = self._at(a)
        inner = np.array([[polygamma(1, s), -1.0 / b], [-1.0 / b, s / b**2]])
        rows = np.column_stack([self.x, np.ones(self.n_rows)])
        return rows @ np.linalg.cholesky(inner)

    def max_step(self, a, direction):
        change = np.array([direction @ self.x, direction.sum()])
        at, down = np.array(self._at(a)), change < 0
        return float(np.min(at[down] / -change[down], initial=np.inf))
