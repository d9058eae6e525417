"""Kernels between data through generative models."""

from __future__ import annotations

import importlib

_HOMES = {
    "fisher": ("FisherFeatures", "fisher_kernel"),
}
_ROOM = {name: room for room, names in _HOMES.items() for name in names}

__all__ = sorted(_ROOM)


def __getattr__(name):
    if name in _ROOM:
        return getattr(importlib.import_module(f"{__name__}.{_ROOM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
