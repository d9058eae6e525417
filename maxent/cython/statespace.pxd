"""Kalman filter and smoother of linear dynamical systems."""

from maxent._core.systems.statespace cimport *
