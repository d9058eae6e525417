"""Thin shared support: results, thread policy, validation, progress, persistence."""
