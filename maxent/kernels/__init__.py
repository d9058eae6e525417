"""Kernels between data through generative models."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "fisher": ("FisherFeatures", "fisher_kernel"),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
