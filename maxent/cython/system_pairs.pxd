"""The product kernel of linear dynamical systems."""

from maxent._core.systems.system_pairs cimport *
