"""
Write a model of your own
=========================

A *block* is what a solver needs of a model with a prior: the log-partition function of
its posterior, with derivatives. Here counts with an unknown rate, in forty lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammaln, polygamma, psi

from maxent import MEDOutlierDetector
from maxent.families import Block, check_block


class PoissonBlock(Block):
    """Counts with an unknown rate and a gamma prior."""

    def __init__(self, x):
        self.x, self.n_rows = np.ravel(x).astype(float), len(x)

    def at(self, a):
        return 1.0 + a @ self.x, 1.0 + a.sum()

    def log_partition(self, a):
        shape, rate = self.at(a)
        if shape <= 0 or rate <= 0:
            return np.inf
        end = gammaln(shape) - shape * np.log(rate)
        return float(end - a @ gammaln(self.x + 1))

    def score(self, a, X):
        x, (shape, rate) = np.ravel(X), self.at(a)
        return x * (psi(shape) - np.log(rate)) - shape / rate - gammaln(x + 1)

    def mean(self, a):
        return self.score(a, self.x)

    def hessian_factor(self, a):
        shape, rate = self.at(a)
        C = [[polygamma(1, shape), 1 / rate], [1 / rate, shape / rate**2]]
        statistics = np.column_stack([self.x, -np.ones(self.n_rows)])
        return statistics @ np.linalg.cholesky(C)

    def max_step(self, a, direction):
        now = np.array(self.at(a))
        change = np.array([direction @ self.x, direction.sum()])
        down = change < 0
        return float(np.min(now[down] / -change[down], initial=np.inf))


class PoissonModel:
    """What the detector binds to rows."""

    def block(self, X):
        return PoissonBlock(X)


# %%
# Counts of rate 3, one in twenty of them of rate 12. ``maxent.families.check_block``
# compares derivatives with finite differences, before a solver meets them.

rng = np.random.default_rng(0)
counts = np.append(rng.poisson(3.0, size=190), rng.poisson(12.0, size=10))
check_block(PoissonBlock(counts))
detector = MEDOutlierDetector(PoissonModel()).fit(counts[:, None])
values = np.arange(31)
bayes = PoissonBlock(counts).score(np.ones(200), values)

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.0, 4.2), sharex=True, height_ratios=(3, 1), layout="constrained"
)
top.plot(values, bayes, "o-", ms=3, color="#0072b2", label="Bayes posterior")
top.plot(
    values,
    detector.score_samples(values[:, None]),
    "s--",
    ms=3,
    color="#e69f00",
    label="MED",
)
top.axhline(detector.offset_, color="0.5", ls=":", label="outliers of MED are below")
top.set(ylabel="nats", title="expected log-likelihood of every count")
top.legend()
bottom.hist(counts, bins=np.arange(32) - 0.5, color="0.6")
bottom.set(xlabel="count", ylabel="training rows", yscale="log")
plt.show()
