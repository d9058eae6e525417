"""Probabilistic models composed from families: mixtures, chains, hidden chains."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "em": ("EMResult",),
    "base": ("Model",),
    "chains.markov": ("MarkovChain",),
    "mixture": ("Mixture",),
    "mixtures": ("Mixtures",),
    "_forecast": ("Forecast",),
    "chains.hidden_markov": ("HiddenMarkovModel",),
    "chains.hmm": ("CategoricalHMM",),
    "chains.gaussian_hmm": ("GaussianHMM",),
    "_chain_input": ("states_per_sequence",),
    "networks.linear_gaussian": ("LinearGaussianNetwork",),
    "systems.switching": ("SwitchingLDS", "SwitchingPosterior"),
    "chains.factorial": ("FactorialHMM",),
    "networks.bayes_net": ("BayesNet",),
    "networks.random_field": ("MarkovRandomField",),
    "systems.lds": ("LinearDynamicalSystem",),
    "selection": ("Selection", "select"),
    "chains.estimator": ("HiddenMarkovEstimator",),
    "mixture_density": ("MixtureDensity",),
    "systems._state_posterior": ("FilteredStates", "StatePosterior"),
    "systems._regime_particles": ("FilteredRegimes", "LikelihoodEstimate"),
}

if TYPE_CHECKING:
    from maxent.models._chain_input import states_per_sequence as states_per_sequence
    from maxent.models._forecast import Forecast as Forecast
    from maxent.models.base import Model as Model
    from maxent.models.chains.estimator import (
        HiddenMarkovEstimator as HiddenMarkovEstimator,
    )
    from maxent.models.chains.factorial import FactorialHMM as FactorialHMM
    from maxent.models.chains.gaussian_hmm import GaussianHMM as GaussianHMM
    from maxent.models.chains.hidden_markov import (
        HiddenMarkovModel as HiddenMarkovModel,
    )
    from maxent.models.chains.hmm import CategoricalHMM as CategoricalHMM
    from maxent.models.chains.markov import MarkovChain as MarkovChain
    from maxent.models.em import EMResult as EMResult
    from maxent.models.mixture_density import MixtureDensity as MixtureDensity
    from maxent.models.mixture import Mixture as Mixture
    from maxent.models.mixtures import Mixtures as Mixtures
    from maxent.models.networks.bayes_net import BayesNet as BayesNet
    from maxent.models.networks.linear_gaussian import (
        LinearGaussianNetwork as LinearGaussianNetwork,
    )
    from maxent.models.networks.random_field import (
        MarkovRandomField as MarkovRandomField,
    )
    from maxent.models.selection import Selection as Selection
    from maxent.models.selection import select as select
    from maxent.models.systems._regime_particles import (
        FilteredRegimes as FilteredRegimes,
    )
    from maxent.models.systems._regime_particles import (
        LikelihoodEstimate as LikelihoodEstimate,
    )
    from maxent.models.systems._state_posterior import FilteredStates as FilteredStates
    from maxent.models.systems._state_posterior import StatePosterior as StatePosterior
    from maxent.models.systems.lds import LinearDynamicalSystem as LinearDynamicalSystem
    from maxent.models.systems.switching import SwitchingLDS as SwitchingLDS
    from maxent.models.systems.switching import SwitchingPosterior as SwitchingPosterior
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
