"""Kernels between data through generative models."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "_gaussian_parts": ("GaussianParts",),
    "fisher": ("FisherFeatures", "fisher_kernel"),
    "linear_gaussian": ("linear_gaussian_kernel",),
    "switching": ("SwitchingPaths", "switching_lds_kernel"),
    "factorial": ("factorial_hmm_kernel",),
    "lds": ("lds_affinity_parts", "lds_kernel"),
}

if TYPE_CHECKING:
    from maxent.kernels.fisher import (
        FisherFeatures as FisherFeatures,
        fisher_kernel as fisher_kernel,
    )
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
