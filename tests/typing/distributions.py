"""Batches of distributions: fits, densities, draws, comparisons, conjugate priors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent.families import (
    Categorical,
    ConjugateBlock,
    DirichletBayesNet,
    DirichletProduct,
    ExponentialFamily,
    Gaussian,
    NegativeBinomial,
    NormalInverseWishart,
    Poisson,
)


def entropies(members: list[ExponentialFamily]) -> list[float]:
    """Entropy of every distribution."""
    return [float(member.entropy()) for member in members]


counts = Poisson.fit([1, 3, 7, 9], weights=[[1, 1, 0, 0], [0, 0, 1, 1]])
divergence: NDArray[np.float64] = counts.kl(counts)
draws = counts.sample(5, random_state=np.random.default_rng(0))
rate: NDArray[np.float64] = counts.rate
first: Poisson = counts[0]
print(divergence.round(3), draws.mean(), rate, first.log_prob([0, 1, 2]))
print(len(counts), [member.rate for member in counts], counts == Poisson([2.0, 8.0]))

cloud = Gaussian.fit(np.random.default_rng(1).normal(size=(50, 2)), smoothing=1e-6)
mean, variance = cloud.moments()
low, high = cloud.affinity_range()
print(mean, variance, cloud.cov, low, high, cloud.log_affinity(cloud, 0.5))
print(entropies([cloud, first, Categorical([0.5, 0.5]), NegativeBinomial(0.5, r=2)]))

prior = NormalInverseWishart.weak(np.random.default_rng(2).normal(size=(30, 2)))
posterior: NormalInverseWishart = prior.posterior([[0.0, 1.0], [1.0, 0.5]])
block: ConjugateBlock = prior.block([[0.0, 1.0], [1.0, 0.5]])
print(posterior.mean, posterior.predictive_log_prob([[0.0, 0.0]]))
print(block.log_partition(np.zeros(2)), block.mean(np.zeros(2)))

net = DirichletBayesNet(1.0, parents=[(), (0,)], n_categories=[2, 3])
words = DirichletProduct([[1.0, 2.0], [3.0, 4.0]])
print([table.shape for table in net.pseudo_counts], words.get_spec())
