"""Probabilistic models composed from families."""
