"""Detectors of unusual rows and sequences, by posteriors of latent models."""
