"""Treatment of underflow as zero, for any error state of NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])


def allow_underflow(function: _Function) -> _Function:
    """Decorate a function whose probabilities may vanish.

    It works then under ``np.errstate(all="raise")`` too.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(under="ignore"):
            return function(*args, **kwargs)

    return cast(_Function, run)
