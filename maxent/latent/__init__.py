"""Maximum entropy from moments, complete and with hidden variables."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "_log_linear": ("FiniteLatentModel", "LogLinearModel"),
    "_em_is": ("EMISResult", "em_is"),
    "_pool": ("NoAdmissibleCandidateError",),
    "mixtures._mixture_prior": ("MixturePrior",),
    "classifier": ("MaxEntClassifier",),
    "boltzmann.machines": ("LMEBoltzmannMachine", "LMERBM"),
    "mixtures.dirichlet": ("LMEDirichletMixture",),
    "language.trigram_topics": ("TrigramTopicModel",),
    "model": ("MaxEntModel", "SampledMaxEnt"),
    "mixtures.gaussian": ("LMEGaussianMixture",),
    "candidates": ("LatentMaxEnt",),
    "moments": ("MaxEntResult", "fit_maxent"),
}

if TYPE_CHECKING:
    from maxent.latent._em_is import EMISResult as EMISResult
    from maxent.latent._em_is import em_is as em_is
    from maxent.latent._log_linear import FiniteLatentModel as FiniteLatentModel
    from maxent.latent._log_linear import LogLinearModel as LogLinearModel
    from maxent.latent._pool import (
        NoAdmissibleCandidateError as NoAdmissibleCandidateError,
    )
    from maxent.latent.boltzmann.machines import (
        LMEBoltzmannMachine as LMEBoltzmannMachine,
    )
    from maxent.latent.boltzmann.machines import LMERBM as LMERBM
    from maxent.latent.candidates import LatentMaxEnt as LatentMaxEnt
    from maxent.latent.classifier import MaxEntClassifier as MaxEntClassifier
    from maxent.latent.language.trigram_topics import (
        TrigramTopicModel as TrigramTopicModel,
    )
    from maxent.latent.mixtures._mixture_prior import MixturePrior as MixturePrior
    from maxent.latent.mixtures.dirichlet import (
        LMEDirichletMixture as LMEDirichletMixture,
    )
    from maxent.latent.mixtures.gaussian import LMEGaussianMixture as LMEGaussianMixture
    from maxent.latent.model import MaxEntModel as MaxEntModel
    from maxent.latent.model import SampledMaxEnt as SampledMaxEnt
    from maxent.latent.moments import MaxEntResult as MaxEntResult
    from maxent.latent.moments import fit_maxent as fit_maxent
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
