"""Sequences one after the other in one array, and lists or arrays cut into them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.frames import Names
from maxent._support import validation as v


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences one after the other.

    Attributes
    ----------
    values : ndarray
        Codes (n_steps,) of symbols, -1 where none was observed; or vectors
        (n_steps, d), NaN where nothing was observed.
    offsets : ndarray of int (n + 1,)
        Where each sequence begins; the last entry is n_steps.
    columns : tuple of str or None
        Names of the coordinates of vectors, if they come from data frames.
    """

    values: NDArray[Any]
    offsets: NDArray[np.intp]
    columns: Names | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.intp]:
        """Steps of every sequence."""
        return np.diff(self.offsets)

    def place(self, step: int) -> tuple[int, int]:
        """Sequence of a step, and its place in it."""
        i = int(np.searchsorted(self.offsets, step, side="right")) - 1
        return i, int(step - self.offsets[i])

    def singles(self) -> list[Sequences]:
        """Every sequence on its own."""
        return [Sequences(own, np.array([0, len(own)]), self.columns) for own in self]


def listed(sequences: Any, name: str) -> Any:
    """An iterator as the list of what it yields; no pair of array and lengths."""
    if v.is_dask(sequences) and not hasattr(sequences, "chunks"):
        raise TypeError(
            f"{name} is a Dask collection of type {type(sequences).__name__}, and is "
            f"read in memory here: pass {name}.compute()."
        )
    refuse_groups(name, sequences)
    if isinstance(sequences, Iterator):
        return list(sequences)
    if isinstance(sequences, tuple):
        refuse_pair(name, sequences)
    if hasattr(sequences, "columns") and hasattr(sequences, "to_numpy"):
        refuse_text_frame(name, sequences)
        return v.as_doubles(name, sequences)  # a data frame is one array
    return sequences


def each_entry(data: Any, lengths: ArrayLike | None = None) -> Any:
    """An array or data frame of several axes as the list of its entries.

    What is fitted to each datum has one in every entry: an array (n, n_steps) is n
    sequences there. Anything else, or with lengths, is as it is.
    """
    refuse_groups("data", data)
    if lengths is None and getattr(data, "ndim", 0) > 1:
        return list(data.to_numpy() if hasattr(data, "to_numpy") else data)
    return data


def refuse_groups(name: str, data: Any) -> None:
    """Refuse what pandas' `groupby` returns, which iterates over labels and groups."""
    if hasattr(data, "get_group"):
        kind = type(data).__name__
        one = "g[columns]" if getattr(data, "ndim", 2) > 1 else "g"
        raise TypeError(
            f"{name} is a {kind}, no list of sequences; pass its groups, as "
            f"[{one}.to_numpy() for _, g in df.groupby(...)]."
        )


def refuse_text_frame(name: str, frame: Any) -> None:
    """Refuse a data frame whose only column has strings, which are the sequences."""
    cells = frame.to_numpy() if len(frame.columns) == 1 else np.empty((0, 1))
    if cells.dtype.kind in "OSU" and all(isinstance(x, str) for x in cells[:1, 0]):
        column = v.shown(frame.columns[0])
        raise ValueError(
            f"{name} is a data frame with one column of strings; pass the column "
            f"itself, as by df[{column}]."
        )


def refuse_pair(name: str, pair: tuple[Any, ...]) -> None:
    """Refuse a tuple (array, lengths), which two sequences would be read from."""
    if len(pair) != 2 or any(isinstance(one, str) for one in pair):
        return
    try:
        n, lengths = len(pair[0]), np.asarray(pair[1])
    except (TypeError, ValueError):
        return
    if lengths.ndim == 1 and lengths.dtype.kind in "iu" and lengths.sum() == n:
        raise ValueError(
            f"{name} is a tuple whose second entry is lengths of sequences in the "
            "first: pass lengths= where there is such an argument, or a list of "
            "sequences, as numpy.split(array, numpy.cumsum(lengths)[:-1]) returns. "
            "For two sequences of symbols pass a list."
        )


def arrays_of(sequences, lengths, read, name):
    """Arrays of the sequences, and the offsets."""
    if lengths is None and not _is_one_array(sequences, name):
        parts = [read(f"{name}[{i}]", one) for i, one in enumerate(sequences)]
        sizes = np.array([len(part) for part in parts], dtype=np.intp)
        return parts, offsets_of(sizes, name)
    if lengths is not None:
        _refuse_own_lengths(sequences, lengths, name)
    whole = read(name, sequences)
    if lengths is None:
        return [whole], offsets_of(np.array([len(whole)]), name)
    return [whole], offsets_of(v.check_lengths(lengths, len(whole)), name)


def _refuse_own_lengths(sequences, lengths, name):
    """Refuse lengths beside a list of sequences that have them."""
    if not isinstance(sequences, (list, tuple)):
        return
    own = [len(one) if np.ndim(one) else 0 for one in sequences if hasattr(one, "ndim")]
    given = np.atleast_1d(lengths)
    if len(own) == len(sequences) == len(given) and (given == own).all():
        raise ValueError(
            f"{name} is a list of sequences, which have their own lengths: leave "
            "lengths out, or pass one array of all steps beside it."
        )


def _is_one_array(sequences: Any, name: str) -> bool:
    """True if this is one array of steps and not a list of sequences."""
    if hasattr(sequences, "ndim"):
        several = sequences.dtype.kind == "O" and sequences.ndim < 3
        return not several or (sequences.ndim == 1 and holds_numbers(sequences))
    try:
        return np.ndim(next(iter(sequences), ())) == 0 and len(sequences) > 0
    except TypeError:
        raise TypeError(
            f"{name}={v.shown(sequences)} must be a list of sequences, or one array "
            "of them."
        ) from None
    except ValueError:  # of a ragged first entry, which is refused by its name
        return False


def holds_numbers(array: Any) -> bool:
    """True if an array of objects holds numbers, and no sequences or strings."""
    missing = None, v.pandas_NA()
    entries = (x for x in np.asarray(array).flat if not any(x is m for m in missing))
    return isinstance(next(entries, None), Number)


def joined(parts, dtype):
    """One array of those of the sequences, one after the other."""
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.ascontiguousarray(whole, dtype=dtype)


def offsets_of(lengths: NDArray[Any], name: str) -> NDArray[np.intp]:
    """Rows at which sequences begin, and the end; none may be empty."""
    if not len(lengths):
        raise ValueError(f"there is no sequence: {name} is empty; pass one.")
    if (lengths == 0).any():
        raise ValueError(
            f"{name}[{int(np.argmin(lengths))}] is empty; drop empty sequences."
        )
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
