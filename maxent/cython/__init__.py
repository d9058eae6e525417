"""Declarations of the compiled functions for other Cython modules and for Numba.

The ``.pxd`` files forward to where the functions are, which may change: ``cimport``
from ``maxent.cython.smo`` and its neighbours.
"""

_HOMES = (
    "maxent._core.chains.chain",
    "maxent._core.chains.chain_pairs",
    "maxent._core.machines.coordinate",
    "maxent._core.machines.dual_machine",
    "maxent._core.machines.gram",
    "maxent._core.machines.smo",
    "maxent._core.systems.statespace",
    "maxent._core.systems.system_pairs",
    "maxent._core.trees.column_groups",
    "maxent._core.trees.laplacian",
    "maxent._core.trees.tables",
)


def __getattr__(name: str) -> dict[str, object]:
    """Addresses of the functions by their names, as Numba asks a module for them."""
    if name != "__pyx_capi__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    parts = [import_module(home).__pyx_capi__ for home in _HOMES]
    return {name: capsule for part in parts for name, capsule in part.items()}
