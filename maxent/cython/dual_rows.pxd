"""Rows of the kernel dual: slope, curvature and the two-variable problem."""

from maxent._core.machines.dual_rows cimport *
