"""What a user's own object returned, checked."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v


def check_answer(name, found, shape, where):
    """Refuse what is no array of finite numbers of this shape (None: any size).

    Parameters
    ----------
    name : str
        The method, "MyBlock.mean".
    found : object
        What it returned.
    shape : tuple
        Sizes of the array; () for a number.
    where : str
        End of the sentence about NaN or infinity, "at zero weights".

    Raises
    ------
    ValueError
        For another kind or shape.
    FloatingPointError
        For NaN or infinity.
    """
    found = np.asarray(found)
    fits = len(shape) == found.ndim and shape[:1] in ((None,), found.shape[:1])
    if fits and found.dtype.kind in "fiub" and np.isfinite(found).all():
        return
    if not fits or found.dtype.kind not in "fiub":
        wanted = ", ".join("p" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} returned {v.shown(found)} of shape {found.shape}; it must "
            f"return {f'numbers of shape ({wanted})' if shape else 'a number'}."
        )
    raise FloatingPointError(f"{name} returned NaN or infinity {where}.")
