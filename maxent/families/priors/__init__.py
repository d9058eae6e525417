"""Priors over the parameters of families: conjugate distributions as blocks."""
