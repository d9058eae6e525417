"""Probabilistic models composed from families: mixtures, chains, hidden chains."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "em": ("EMResult",),
    "base": ("Model",),
    "markov": ("MarkovChain",),
    "mixture": ("Mixture",),
    "hmm": ("CategoricalHMM",),
    "gaussian_hmm": ("GaussianHMM",),
    "_chain_input": ("states_per_sequence",),
    "linear_gaussian": ("LinearGaussianNetwork",),
    "switching": ("SwitchingLDS", "SwitchingPosterior"),
    "factorial": ("FactorialHMM",),
    "lds": ("LinearDynamicalSystem", "StatePosterior"),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
