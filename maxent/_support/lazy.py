"""Packages whose parts load when first used."""

import importlib


def lazy_exports(package, homes):
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict {str: tuple of str}
        Module -> names that it defines. A module is named below the package, or, with
        a leading "maxent.", anywhere.
    """

    def absolute(module):
        return module if module.startswith("maxent.") else f"{package}.{module}"

    room = {name: absolute(mod) for mod, names in homes.items() for name in names}
    public = sorted(room)

    def get(name):
        if name in room:
            return getattr(importlib.import_module(room[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return public, get, lambda: public
