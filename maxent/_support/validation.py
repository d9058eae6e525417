"""Checks of data: arrays, weights, kernels; errors name the remedy.

Other modules find the checks of single parameters here too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, overload

import numpy as np
import scipy.sparse as sp

from maxent._support.files import machine_memory
from maxent._support.parameters import (  # noqa: F401  # for other modules
    bias_word,
    check_bias,
    check_bool,
    check_callback,
    check_choice,
    check_class_keys,
    check_class_weight,
    check_count,
    check_jobs,
    check_nonnegative,
    check_number,
    check_positive,
    check_stop,
    class_factors,
    closest,
    is_real,
    not_this,
    shown,
    unknown,
)
from maxent._support.typing import ArrayLike, FloatArray, NDArray

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_IN_CACHE = 1 << 16  # entries
LARGEST_ENTRY = 1e150  # sums of 1e8 squares stay in double precision
LARGEST_KERNEL = 1e37  # the largest kernel value that single precision holds


def refuse_masked(name: str, value: Any) -> None:
    """Refuse arrays with masked entries, also in a list, where NumPy drops the mask."""
    for part in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} is a masked array, and the values behind its mask would be "
                "used; write NaN there, as array.astype(float).filled(numpy.nan) does."
            )


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Array of nested lists, which must have one shape."""
    refuse_masked(name, value)
    value = in_memory(name, value)
    try:
        return np.asarray(value)
    except ValueError:  # of an inhomogeneous shape
        raise ValueError(
            f"{name}={shown(value)} is ragged: its rows differ in length; give every "
            "row the same number of entries."
        ) from None


def is_dask(value: Any) -> bool:
    """True for a Dask collection."""
    return type(value).__module__.partition(".")[0] == "dask"


def in_memory(name: str, value: Any) -> Any:
    """A Dask collection, computed; anything else as it is.

    Blocks of an array stay what they are, sparse or complex, whatever was declared:
    Dask would cast them.
    """
    if not is_dask(value):
        return value
    if not hasattr(value, "chunks"):
        return value.compute()
    import dask

    delayed = value.to_delayed()
    parts = np.empty(delayed.shape, dtype=object)
    for i, block in zip(np.ndindex(parts.shape), dask.compute(*delayed.ravel())):
        if sp.issparse(block):
            return block
        parts[i] = block
    try:
        return np.block(parts.tolist())
    except ValueError:
        shapes = dict.fromkeys(block.shape for block in parts.ravel())
        raise ValueError(
            f"{name} is a Dask array with blocks of the shapes "
            f"{shown(list(shapes))}, which do not fit together; give every block of "
            "rows the same columns."
        ) from None


def refuse_sparse(name: str, value: Any) -> None:
    """Refuse sparse arrays, which NumPy takes for single objects."""
    if sp.issparse(value):
        raise TypeError(f"{name} is sparse; make it dense with toarray().")


def shape_of(name: str, value: Any) -> tuple[int, ...]:
    """Shape of an array, sparse or not, or of nested lists."""
    return value.shape if hasattr(value, "shape") else as_array(name, value).shape


def as_doubles(name: str, value: Any) -> FloatArray:
    """Float array of real numbers; text, complex and sparse values are refused."""
    value = in_memory(name, value)
    refuse_sparse(name, value)
    array = as_array(name, value)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} is complex; real numbers are needed.")
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError
        if array.dtype.kind == "O":
            array = _nan_for_NA(array)
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name}={shown(value)} of dtype {array.dtype} cannot be converted to "
            f"real numbers{_first_no_number(name, array)}; pass an array of numbers."
        ) from None


def _first_no_number(name: str, array: NDArray[Any]) -> str:
    """Clause that names the first object that is no number; empty without one."""
    if array.dtype.kind == "O" and array.ndim:
        for at, entry in np.ndenumerate(array):
            try:
                float(entry)
            except (TypeError, ValueError, OverflowError):
                place = ", ".join(map(str, at))
                return f", as {name}[{place}]={shown(entry)} is none"
    return ""


def pandas_NA() -> Any:
    """The missing value of pandas; None while pandas is not loaded."""
    return getattr(sys.modules.get("pandas"), "NA", None)


def _nan_for_NA(array: NDArray[Any]) -> NDArray[Any]:
    """Objects with NaN in place of the missing value of pandas."""
    NA = pandas_NA()
    if NA is None:
        return array
    flat = [np.nan if x is NA else x for x in array.ravel().tolist()]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(array.shape)


@overload
def check_weights(sample_weight: None, n: int) -> None: ...
@overload
def check_weights(sample_weight: ArrayLike, n: int) -> FloatArray: ...
def check_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray | None:
    """Float array of nonnegative finite weights, or None."""
    if sample_weight is None:
        return None
    w = as_doubles("sample_weight", sample_weight)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {w.shape}, expected ({n},): one weight per row."
        )
    if not np.isfinite(w).all():
        at = int(np.argmin(np.isfinite(w)))
        raise ValueError(
            f"sample_weight[{at}]={w[at]:g} is NaN or infinity; give a number >= 0 "
            "(0 drops the row)."
        )
    if (w < 0).any():
        raise ValueError(
            f"sample_weight[{int(np.argmin(w))}]={w.min():g} is negative; weights "
            "must be >= 0 (0 drops a row)."
        )
    if not (w > 0).any():
        raise ValueError(
            "sample_weight is zero on every row; nothing is left to fit: give a "
            "positive weight to some rows."
        )
    return w


def check_lengths(lengths: ArrayLike, n: int) -> NDArray[np.intp]:
    """Integer lengths >= 1 of sequences that have n rows together."""
    given = np.atleast_1d(as_doubles("lengths", lengths))
    if given.ndim != 1 or not (given == np.floor(given)).all() or (given < 1).any():
        raise ValueError(f"lengths={shown(lengths)} must hold integers >= 1.")
    if given.sum() != n:
        raise ValueError(
            f"lengths add up to {given.sum():g} but sequences has {n} rows; "
            "give the number of rows of every sequence."
        )
    return given.astype(np.intp)


def check_multipliers(init: Any, n: int) -> FloatArray:
    """Float array of starting multipliers >= 0."""
    init = as_doubles("init", init)
    if init.shape != (n,):
        raise ValueError(
            f"init has shape {init.shape}, expected ({n},): one multiplier per row."
        )
    if not np.isfinite(init).all() or (init < 0).any():
        raise ValueError("init must hold finite multipliers >= 0.")
    return init


def largest_entry(entries: NDArray[Any]) -> float:
    """Largest absolute value of finite numbers of any type, 0 of none.

    It is a float of Python: NumPy would cast a limit to single precision to compare it
    with a number of single precision, and the limits of doubles overflow there.
    """
    if not entries.size:
        return 0.0
    if not entries.flags.c_contiguous:
        return max(float(entries.max()), -float(entries.min()))
    entries, largest = entries.reshape(-1), 0.0
    for lo in range(0, len(entries), _IN_CACHE):  # so that memory is read once
        part = entries[lo : lo + _IN_CACHE]
        largest = max(largest, float(part.max()), -float(part.min()))
    return largest


def check_range(
    name: str,
    array: Any,
    limit: float = LARGEST_ENTRY,
    *,
    at: bool = False,
    columns: list[str] | None = None,
) -> None:
    """Refuse finite entries beyond a limit, by default that of their summed squares.

    With `at` the error names the place of the largest, and its column by `columns`.
    """
    entries = array.data if sp.issparse(array) else array
    largest = largest_entry(entries)
    if largest > limit:
        place = ""
        if at:
            *where, value = farthest_entry(array)
            place = f" ({name}[{', '.join(map(str, where))}]={value:g}"
            place += f" of column {shown(columns[where[1]])})" if columns else ")"
        raise ValueError(
            f"{name} has entries as large as {largest:.3g}{place}, which leave double "
            f"precision no digits; scale {name} below {limit:g}"
            f"{', or correct the entry' if at else ''}."
        )


def farthest_entry(array: Any, centre: float = 0.0) -> tuple[Any, ...]:
    """Place and value of the entry of an array or matrix that is farthest from one."""
    entries = array.data if sp.issparse(array) else array
    k = np.unravel_index(int(np.argmax(np.abs(entries - centre))), entries.shape)
    place = [int(i) for i in k]
    if sp.issparse(array):
        coo = array.tocoo()
        place = [int(coo.row[k]), int(coo.col[k])]
    return *place, entries[k].item()


def check_entries(name: str, array: Any, remedy: str) -> None:
    """Refuse NaN and infinity, with the place and value of the first; `remedy` ends."""
    entries = array.data if sp.issparse(array) else array
    wrong = ~np.isfinite(entries)
    if not wrong.any():
        return
    k = tuple(int(i) for i in np.argwhere(wrong)[0])
    value, place = entries[k], k
    if sp.issparse(array):
        coo = array.tocoo()
        place = int(coo.row[k]), int(coo.col[k])
    raise ValueError(
        f"{name} has entries that are NaN or infinite: "
        f"{name}[{', '.join(map(str, place))}]={value:g}; {remedy}."
    )


def check_kernel_size(name: str, largest: float) -> None:
    """Refuse kernel values that leave single precision, in which solvers keep them."""
    if not largest <= LARGEST_KERNEL:
        raise ValueError(
            f"{name} has values as large as {largest:.3g}; scale the features or the "
            f"kernel so that its values stay below {LARGEST_KERNEL:g}."
        )


def check_signs(y: Any) -> FloatArray:
    """Labels as -1.0 and +1.0, both present."""
    if sp.issparse(y):
        raise TypeError("y is sparse; pass a dense array of labels.")
    y = as_array("y", y)
    if y.ndim != 1:
        raise ValueError(
            f"y has shape {y.shape}; it must be a vector with one label per row."
        )
    if y.dtype.kind == "c":
        raise ValueError("y is complex; its labels must be -1 and +1.")
    if not np.isin(y, (-1, 1)).all():
        # not by np.unique, which cannot sort objects of several kinds
        found = ", ".join(list(dict.fromkeys(map(shown, y.tolist())))[:5])
        raise ValueError(
            f"y must contain -1 and +1 only; found [{found}]. For two classes a and "
            "b pass numpy.where(y == b, 1, -1)."
        )
    if len(y) and (y == y[0]).all():
        raise ValueError(f"y contains one class only ({y[0]}); two are needed.")
    return np.ascontiguousarray(as_doubles("y", y))


def check_gram(K: Any, n: int | None = None) -> FloatArray:
    """Square, finite, symmetric kernel matrix in double precision."""
    if sp.issparse(K):
        raise ValueError(
            "K is sparse; a kernel matrix must be dense: pass K.toarray()."
        )
    K = as_array("K", K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"K has shape {K.shape}; a kernel matrix must be square, with a row and a "
            "column per row of the data."
        )
    if n is not None and len(K) != n:
        raise ValueError(f"K has {len(K)} rows but y has {n}.")
    K = np.ascontiguousarray(as_doubles("K", K))
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"K[{i}, {j}]={K[i, j]} is not finite.")
    scale = largest_entry(K)
    check_kernel_size("K", scale)
    # by blocks, so that no second matrix of this size is needed
    for lo in range(0, len(K), 512):
        difference = np.abs(K[lo : lo + 512] - K[:, lo : lo + 512].T)
        if difference.size and difference.max() > 1e-8 * scale:
            i, j = np.unravel_index(np.argmax(difference), difference.shape)
            raise ValueError(
                f"K is not symmetric: K[{lo + i}, {j}]={K[lo + i, j]:g} but "
                f"K[{j}, {lo + i}]={K[j, lo + i]:g}, a difference of "
                f"{difference.max():.1e}. Use (K + K.T) / 2 if that is what you mean, "
                "and form K in double precision."
            )
    return K


def check_memory(name: str, value: object, needed: float) -> None:
    """Refuse work beyond the memory of the machine, before it is allocated."""
    memory = machine_memory()
    if needed > memory:
        raise MemoryError(
            f"{name}={value} needs {needed / 1e9:.3g} GB of memory and the machine has "
            f"{memory / 1e9:.3g}; use fewer."
        )


def names_of_columns(estimator: object) -> list[str] | None:
    """Names of the columns that an estimator was fitted to, for messages."""
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else list(names)


def called(noun: str, columns: Iterable[int], names: list[str] | None = None) -> str:
    """Columns as messages name them: "feature 3", "features 'size', 'age'".

    Parameters
    ----------
    noun : {"feature", "column"}
    columns : iterable of int
        All of them are listed.
    names : list of str, optional
        Names of all columns.
    """
    words = [shown(names[k] if names else int(k)) for k in columns]
    return f"{noun}{'s' if len(words) > 1 else ''} {', '.join(words)}"


def check_answer(name, found, shape, where):
    """Refuse all but arrays of finite numbers of this shape (None: any size).

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
            f"{name} returned {shown(found)} of shape {found.shape}; it must "
            f"return {f'numbers of shape ({wanted})' if shape else 'a number'}."
        )
    raise FloatingPointError(f"{name} returned NaN or infinity {where}.")


def user_stacklevel():
    """`stacklevel` at which ``warnings.warn``, called here, names a user's line.

    That is the first line outside this package, however many of its functions and
    decorators are between.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(filename):
    """True if code is of this package, or of one that calls it back."""
    return filename.startswith(_PACKAGE) or f"{os.sep}joblib{os.sep}" in filename
