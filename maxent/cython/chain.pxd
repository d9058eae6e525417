"""Hidden Markov chains: forward and backward passes."""

from maxent._core.chains.chain cimport *
