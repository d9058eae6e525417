"""Fitted machines in the formats of other programs."""
