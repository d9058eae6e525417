"""Batches of exponential-family distributions, as immutable values."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "base": ("ExponentialFamily",),
    "gaussian": ("Gaussian", "TiedGaussian"),
    "independent": ("DiagonalGaussian", "SphericalGaussian"),
    "discrete": ("Bernoulli", "Categorical"),
    "multinomial": ("Multinomial",),
    "counts": ("Poisson", "Geometric", "NegativeBinomial"),
    "columns": ("Independent",),
    "product": ("Product",),
    "positive": ("Exponential", "Gamma"),
    "simplex": ("Beta", "Dirichlet"),
    "wishart": ("Wishart", "InverseWishart"),
    "priors.block": ("Block",),
    "priors.block_checks": ("check_block",),
    "priors.conjugate": ("ConjugateBlock", "ConjugatePrior"),
    "priors.normal_wishart": ("NormalInverseWishart",),
    "linear_gaussian": ("NormalGamma",),
    "priors.dirichlet_nets": ("DirichletBayesNet", "DirichletProduct"),
    "priors.dirichlet_tables": ("DirichletCounts",),
    "directional": ("VonMisesFisher",),
    "priors.family_prior": ("FamilyPrior",),
    "priors.column_priors": ("ProductPrior",),
}

if TYPE_CHECKING:
    from maxent.families.base import ExponentialFamily as ExponentialFamily
    from maxent.families.priors.block import Block as Block
    from maxent.families.priors.block_checks import check_block as check_block
    from maxent.families.priors.column_priors import ProductPrior as ProductPrior
    from maxent.families.columns import Independent as Independent
    from maxent.families.priors.conjugate import (
        ConjugateBlock as ConjugateBlock,
        ConjugatePrior as ConjugatePrior,
    )
    from maxent.families.counts import (
        Geometric as Geometric,
        NegativeBinomial as NegativeBinomial,
        Poisson as Poisson,
    )
    from maxent.families.directional import VonMisesFisher as VonMisesFisher
    from maxent.families.priors.dirichlet_nets import (
        DirichletBayesNet as DirichletBayesNet,
        DirichletProduct as DirichletProduct,
    )
    from maxent.families.priors.dirichlet_tables import (
        DirichletCounts as DirichletCounts,
    )
    from maxent.families.discrete import (
        Bernoulli as Bernoulli,
        Categorical as Categorical,
    )
    from maxent.families.priors.family_prior import FamilyPrior as FamilyPrior
    from maxent.families.gaussian import Gaussian as Gaussian
    from maxent.families.independent import (
        DiagonalGaussian as DiagonalGaussian,
        SphericalGaussian as SphericalGaussian,
    )
    from maxent.families.linear_gaussian import NormalGamma as NormalGamma
    from maxent.families.multinomial import Multinomial as Multinomial
    from maxent.families.priors.normal_wishart import (
        NormalInverseWishart as NormalInverseWishart,
    )
    from maxent.families.positive import (
        Exponential as Exponential,
        Gamma as Gamma,
    )
    from maxent.families.simplex import (
        Beta as Beta,
        Dirichlet as Dirichlet,
    )
    from maxent.families.product import Product as Product
    from maxent.families.gaussian import TiedGaussian as TiedGaussian
    from maxent.families.wishart import (
        InverseWishart as InverseWishart,
        Wishart as Wishart,
    )
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
