"""Markov chains: visible, hidden, and several that share what they show."""
