"""Small problems of two classes over blocks of every kind."""

import numpy as np

from maxent.discrimination import GaussianScores, solve_blocks
from maxent.families import DirichletBayesNet, NormalGamma, NormalInverseWishart
from oracles.block_cases import PoissonGamma, codes, spd, spread

N = 10


def labels(n=N):
    return np.where(np.arange(n) % 2, 1.0, -1.0)


def pair(prior, X, y, tempering=1.0):
    """Blocks and maps of two classes that start from their Bayes posteriors."""
    blocks = [prior.block(X, tempering * (y == k)) for k in (1.0, -1.0)]
    return blocks, [np.diag(y), np.diag(-y)]


def gaussians(rng, y):
    X = spread(rng, len(y), 2) + 0.4 * y[:, None]
    return pair(NormalInverseWishart.improper(2), X, y)


def net(rng, y):
    X = codes(rng, len(y), [2, 3, 2], 0.1)
    return pair(DirichletBayesNet(2.0, [(), (0,), ()], [2, 3, 2]), X, y)


def regressions(rng, y):
    X = spread(rng, len(y), 3)
    return pair(NormalGamma(np.zeros(2), spd(rng, 2), 2.0, 2.0), X, y)


def counts(rng, y):
    x = rng.poisson(np.where(y > 0, 5.0, 3.0))[:, None]
    blocks = [PoissonGamma(4.0, 1.0, x), PoissonGamma(3.0, 1.5, x)]
    return blocks, [np.diag(y), np.diag(-y)]


def machine(rng, y):
    X = rng.normal(size=(len(y), 2)) + 0.5 * y[:, None]
    return [GaussianScores("rbf", gamma=0.4).block(X)], [np.diag(y)]


def mixed(rng, y):
    """A net of two kinds of nodes: the sum of the blocks of its nodes."""
    one, maps = net(rng, y)
    other, more = regressions(rng, y)
    return one + other, maps + more


KINDS = {f.__name__: f for f in (gaussians, net, regressions, counts, machine, mixed)}
BIASES = ["flat", 1.5, None]


def solved(blocks, maps, prior, y, bias, **options):
    E = None if bias is None else y
    return solve_blocks(
        blocks, maps, prior, bias=bias, incidence=E, **{"tol": 1e-10} | options
    )
