"""Mixtures by latent maximum entropy."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "_mixture_prior": ("MixturePrior",),
    "dirichlet": ("LMEDirichletMixture",),
    "gaussian": ("LMEGaussianMixture",),
}

if TYPE_CHECKING:
    from maxent.latent.mixtures._mixture_prior import MixturePrior as MixturePrior
    from maxent.latent.mixtures.dirichlet import (
        LMEDirichletMixture as LMEDirichletMixture,
    )
    from maxent.latent.mixtures.gaussian import LMEGaussianMixture as LMEGaussianMixture
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
