"""The machine of the kernel dual, opened, read and closed."""

from maxent._core.machines.dual_machine cimport *
