"""Compiled kernels: arrays in, arrays out. No policy, no defaults, no warnings."""
