"""Maximum entropy discrimination: margins met in expectation, with a certificate."""

from __future__ import annotations

import importlib

_HOMES = {
    "margins": (
        "MarginPrior",
        "ExponentialMargin",
        "ErlangMargin",
        "LaplaceMargin",
        "GaussianMargin",
        "LogisticMargin",
        "FixedMargin",
        "HingeMargin",
        "UniformExponentialMargin",
        "CustomMargin",
        "margin_from_spec",
    ),
    "kernel_dual": ("solve_dual", "solve_kernel_dual", "dual_path"),
    "linear_dual": ("solve_linear_dual",),
    "classifier": ("MEDClassifier",),
    "regressor": ("MEDRegressor",),
    "selection": ("MEDFeatureSelector",),
}
_ROOM = {name: room for room, names in _HOMES.items() for name in names}

__all__ = sorted(_ROOM)


def __getattr__(name):
    if name in _ROOM:
        return getattr(importlib.import_module(f"{__name__}.{_ROOM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
