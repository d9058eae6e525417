"""Sums and optima over all spanning trees, and distributions over trees."""
