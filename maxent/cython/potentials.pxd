"""Margin priors: potential, loss and their derivatives as functions of scalars."""

from maxent._core.potentials cimport *
