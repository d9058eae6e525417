"""Duals of discrimination over vectors, kernels and blocks, and their solvers."""
