"""One step of the linear dual."""

from maxent._core.machines.coordinate cimport *
