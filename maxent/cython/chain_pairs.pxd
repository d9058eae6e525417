"""The product kernel of hidden Markov chains."""

from maxent._core.chains.chain_pairs cimport *
