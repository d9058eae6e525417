"""Modules that Numba compiles, loaded when first used; compilation is announced."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

_announcing: ContextVar[bool] = ContextVar("announcing", default=False)


@contextmanager
def announced(verbose: bool) -> Iterator[None]:
    """Inside, compilation is announced if `verbose`."""
    before = _announcing.set(bool(verbose))
    try:
        yield
    finally:
        _announcing.reset(before)


def compiled(name: str) -> ModuleType:
    """Module ``maxent._core.<name>``, whose functions Numba compiles when called.

    In a fit with `verbose` one line says that they will be compiled, unless an earlier
    process left them in Numba's cache on disk.
    """
    full = f"maxent._core.{name}"
    fresh = full not in sys.modules
    module = importlib.import_module(full)
    if fresh and _announcing.get() and not _cached(module, name):
        print(f"maxent: compiling {name} with Numba (once; kept in its cache on disk)")
    return module


def _cached(module: ModuleType, name: str) -> bool:
    """Whether Numba's cache has an index file of this module."""
    for value in vars(module).values():
        cache = getattr(value, "_cache", None)
        if cache is not None and getattr(cache, "cache_path", None):
            return any(Path(cache.cache_path).glob(f"{name}.*.nbi"))
    return False
