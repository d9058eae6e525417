"""Docstrings of methods that replace others."""

from __future__ import annotations

from types import FunctionType
from typing import Any


class InheritedDocs:
    """Base of classes whose methods take the docstrings of those that they replace.

    ``help`` looks them up by itself; ``method.__doc__`` does not.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in vars(cls).items():
            target = getattr(member, "__func__", member)  # of a class method
            if not isinstance(target, (FunctionType, property)) or target.__doc__:
                continue
            for base in cls.__mro__[1:]:
                # Python 3.13 has a docstring of None, which documents no method
                doc = vars(base)[name].__doc__ if name in vars(base) else None
                if doc and not name.startswith("_"):
                    target.__doc__ = doc
                    break
