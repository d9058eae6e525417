"""Pairs of categorical columns: counts, scores, mutual information."""

from maxent._core.trees.tables cimport *
