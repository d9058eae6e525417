"""Pictures of margin priors, of machines with their multipliers, and of dual paths.

Displays in the manner of scikit-learn: the constructor or a class method takes what is
to be drawn, ``plot`` draws it and keeps Axes, Figure and artists in attributes that
end in ``_``. Matplotlib is loaded when something is drawn.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "margin_prior": ("MarginPriorDisplay",),
    "boundary": ("MEDBoundaryDisplay",),
    "path": ("DualPathDisplay",),
}
_ROOM = {name: room for room, names in _HOMES.items() for name in names}

__all__ = sorted(_ROOM)


def __getattr__(name):
    if name in _ROOM:
        return getattr(importlib.import_module(f"{__name__}.{_ROOM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
