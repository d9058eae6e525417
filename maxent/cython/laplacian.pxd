"""Sums over all spanning trees of a graph."""

from maxent._core.trees.laplacian cimport *
