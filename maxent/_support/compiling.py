"""Modules that Numba compiles, loaded when first used; compilation is announced.

Numba has no wheels for some systems: without it all works but what `_NEEDS` names, and
custom margin priors.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

_announcing: ContextVar[bool] = ContextVar("announcing", default=False)
_loaded: dict[str, ModuleType] = {}
_NEEDS = {  # module -> what it computes, as a message names it
    "binary_units": "the exact sums of Boltzmann machines",
    "gibbs": "Gibbs sampling of Boltzmann machines",
    "iterative_scaling": "iterative scaling (the methods gis, iis and scgis)",
    "softmax_rows": "MaxEntClassifier on sparse rows",
    "trigram_sums": "TrigramTopicModel",
}
_PAUSE = 0.1  # s; on some systems Ctrl-C does not interrupt a wait without a limit


@contextmanager
def announced(verbose: bool) -> Iterator[None]:
    """Context in which compilation is announced if `verbose`."""
    before = _announcing.set(bool(verbose))
    try:
        yield
    finally:
        _announcing.reset(before)


def compiled(name: str) -> ModuleType:
    """Module ``maxent._core.compiled_by_numba.<name>``, loaded.

    In a fit with `verbose` one line says that they will be compiled, unless an earlier
    process left them in Numba's cache on disk.
    """
    if name not in _loaded:
        full = f"maxent._core.compiled_by_numba.{name}"
        _loaded[name] = module = imported(full, _NEEDS[name])
        for function in vars(module).values():
            own = getattr(function, "_compile_for_args", None)
            if (
                own is not None
            ):  # Numba calls it for argument types that a function has not met
                function._compile_for_args = partial(_apart, own)
        if _announcing.get() and not _cached(module, name):
            print(
                f"maxent: compiling {name} with Numba (once; kept in its cache on disk)"
            )
    return _loaded[name]


def imported(full: str, user: str) -> ModuleType:
    """Import Numba or a module that uses it, where Ctrl-C cannot interrupt.

    Without Numba an ImportError names `user`, what it is needed for.
    """
    try:
        return _apart(importlib.import_module, full)
    except ImportError as error:
        raise ImportError(
            f"{user[0].upper()}{user[1:]} needs Numba, which cannot be imported "
            f"({error}); install it by `pip install numba`, where it has wheels. All "
            'else works without: see "Without Numba" in the documentation.'
        ) from error


def _apart(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in a new thread and return its result.

    An interrupt amid Numba's imports, or amid a compilation, would leave modules and
    functions half made, and no later call could mend that. Signals do not reach the
    thread: they are answered here at once while it goes on to its end, and what needs
    the same next waits for it.
    """
    found: list[Any] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            found.append(function(*args, **kwargs))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while thread.is_alive():
        thread.join(_PAUSE)
    if failed:
        raise failed[0]
    return found[0]


def _cached(module: ModuleType, name: str) -> bool:
    """True if Numba's cache has an index file of this module."""
    for value in vars(module).values():
        cache = getattr(value, "_cache", None)
        if cache is not None and getattr(cache, "cache_path", None):
            return any(Path(cache.cache_path).glob(f"{name}.*.nbi"))
    return False
