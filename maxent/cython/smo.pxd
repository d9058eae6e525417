"""The dual of kernel machines, solved by sequential minimal optimisation."""

from maxent._core.machines.smo cimport *
