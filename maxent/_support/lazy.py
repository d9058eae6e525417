"""Packages whose parts load when first used.

An ``__init__`` that exports lazily names its parts twice: in a table, from which they
load at run time, and in imports that only type checkers and editors read,

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        from maxent.families.gaussian import Gaussian as Gaussian
    else:
        __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)

Type checkers take any variable of that name as true; importing it from `typing` would
be most of the time that ``import maxent`` takes. They do not see ``__getattr__``, so
that a misspelled name is an error in the editor too.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_exports(
    package: str,
    homes: Mapping[str, tuple[str, ...]],
    *,
    subpackages: tuple[str, ...] = (),
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict {str: tuple of str}
        Module -> names that it defines. A module is named below the package, or, with
        a leading "maxent.", anywhere.
    subpackages : tuple of str, default=()
        Packages below this one that load when first used.
    """
    room = {name: home(package, mod) for mod, names in homes.items() for name in names}
    public = sorted([*room, *subpackages])

    def get(name: str) -> Any:
        if name in room:
            return getattr(importlib.import_module(room[name]), name)
        if name in subpackages:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}{_suggestion(name, public)}"
        )

    return public, get, lambda: public


def _suggestion(name: str, public: list[str]) -> str:
    """Public names that resemble a misspelled one; none for names of protocols."""
    if name.startswith("_"):
        return ""
    import difflib

    close = difflib.get_close_matches(name, public, n=2)
    close = close or [one for one in public if name.lower() in one.lower()]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def home(package: str, module: str) -> str:
    """Full name of a module of the table."""
    return module if module.startswith("maxent.") else f"{package}.{module}"
