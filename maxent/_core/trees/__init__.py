"""Sums and draws over the spanning trees of a graph, and counts of pairs of columns."""
