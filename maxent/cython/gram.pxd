"""Tiles of kernel matrices, float and double."""

from maxent._core.machines.gram cimport *
