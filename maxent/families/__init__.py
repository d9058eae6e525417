"""Batches of exponential-family distributions, as immutable values."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "base": ("ExponentialFamily",),
    "gaussian": ("Gaussian",),
    "independent": ("DiagonalGaussian", "SphericalGaussian"),
    "discrete": ("Bernoulli", "Categorical"),
    "multinomial": ("Multinomial",),
    "counts": ("Poisson", "Geometric", "NegativeBinomial"),
    "positive": ("Exponential", "Gamma"),
    "simplex": ("Beta", "Dirichlet"),
    "wishart": ("Wishart", "InverseWishart"),
    "block": ("Block",),
    "conjugate": ("ConjugateBlock", "ConjugatePrior"),
    "normal_wishart": ("NormalInverseWishart",),
    "linear_gaussian": ("NormalGamma",),
    "dirichlet_nets": ("DirichletBayesNet", "DirichletProduct"),
    "dirichlet_tables": ("DirichletCounts",),
    "directional": ("VonMisesFisher",),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
