"""Loops that depend on the features of a problem; Numba compiles them when called."""
