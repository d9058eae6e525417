"""Markov chains, hidden and visible: passes, EM and their product kernels."""
