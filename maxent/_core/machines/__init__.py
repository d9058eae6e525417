"""Dual problems of large-margin machines, and the kernel matrices that they need."""
