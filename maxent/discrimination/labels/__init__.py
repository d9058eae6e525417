"""Machines learnt from labels that are missing or uncertain."""
