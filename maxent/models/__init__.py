"""Probabilistic models composed from families: mixtures, chains, hidden chains."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "base": ("EMResult", "Model"),
    "markov": ("MarkovChain",),
    "mixture": ("Mixture",),
    "hmm": ("CategoricalHMM", "GaussianHMM"),
    "_hidden_chain": ("states_per_sequence",),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
