"""Kernels between feature vectors, and the Gram matrices of machines."""
