"""Sequences of symbols or of vectors, read in one place.

Accepted everywhere: a list of arrays; one array with `lengths`; strings with an
alphabet; of symbols also the path of a FASTA file or of a text file with one sequence a
line. Inside, all sequences lie one after the other in one array, with offsets:

    sequence i = values[offsets[i] : offsets[i + 1]].
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.frames import Names, column_names
from maxent._inputs.letters import in_case_of, unknown_letters
from maxent._inputs.sequence_files import read_sequences
from maxent._inputs.sequence_layout import (
    Sequences,
    arrays_of,
    each_entry,
    holds_numbers,
    joined,
    listed,
    offsets_of,
)
from maxent._support import validation as v

__all__ = [
    "MISSING",
    "Sequences",
    "check_letters",
    "decoded",
    "each_entry",
    "symbol_sequences",
    "vector_sequences",
]

MISSING = -1  # code of a symbol that was not observed
_MOST_SYMBOLS = 1_000_000
_NO_LETTER = MISSING - 1  # of a table from letters to codes
_BLOCK = 2**15  # letters whose codes stay in the cache


# -- symbols -------------------------------------------------------------------------
def symbol_sequences(
    sequences: Any,
    lengths: ArrayLike | None = None,
    *,
    alphabet: str | None = None,
    n_symbols: int | None = None,
    missing: str | None = "",
    name: str = "sequences",
) -> Sequences:
    """Sequences of codes 0, 1, ...

    Parameters
    ----------
    sequences : Sequences, list of str, list of array-like of int, array-like, or path
        Strings need an alphabet. One array of codes, (n,) or (n, 1), is cut by
        `lengths`, or is one sequence; one of integers (n, n_steps) has a sequence in
        every row. Code -1 is a missing observation.
    lengths : array-like of int, optional
        Lengths of the sequences in one array.
    alphabet : str, optional
        The letters, in the order of their codes.
    n_symbols : int, optional
        Codes must be below it; the alphabet's size where there is one.
    missing : str or None, default=""
        Letters that stand for a missing observation, such as "N" in DNA; None takes
        those of :func:`~.letters.unknown_letters`.
    name : str, default="sequences"
        What messages call the data.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        For no sequence, an empty one, codes that are no integers or out of range,
        letters outside the alphabet, and a pair (array, lengths); sequence and place
        are named.
    """
    alphabet, missing = check_letters(alphabet, missing)
    if isinstance(sequences, os.PathLike):
        sequences = in_case_of(read_sequences(sequences)[1], alphabet, missing)
    if isinstance(sequences, str):
        return _one_string(sequences, alphabet, missing, name)
    sequences = listed(sequences, name)
    if lengths is None and _is_table(sequences):
        sequences = list(sequences)
    if isinstance(sequences, list):
        _refuse_none(sequences, name)
    if alphabet is not None:
        n_symbols = len(alphabet)
    if isinstance(sequences, Sequences):
        found = sequences
    elif _are_strings(sequences):
        if lengths is not None:
            raise ValueError("lengths belongs to one array of codes; strings have own.")
        return _encoded(list(sequences), alphabet, missing, name)
    else:
        arrays, offsets = arrays_of(sequences, lengths, _codes_of, name)
        found = Sequences(joined(arrays, np.intp), offsets)
    return _checked_codes(found, n_symbols, name)


def _is_table(data: Any) -> bool:
    """True of an array (n, n_steps) of integers, with a sequence in every row."""
    whole = isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] != 1
    return whole and data.dtype.kind in "iu"


def check_letters(alphabet: str | None, missing: str | None) -> tuple[str | None, str]:
    """The letters, each once, and those that stand for a missing one, found if None."""
    if alphabet is None:
        return None, missing or ""
    if not isinstance(missing, str | None):
        raise ValueError(
            f"missing={v.shown(missing)} must be a string of letters, such as 'N'."
        )
    if not isinstance(alphabet, str) or not alphabet:
        raise ValueError(
            f"alphabet={v.shown(alphabet)} must be a string of letters, such as 'ACGT'."
        )
    missing = unknown_letters(missing, alphabet)
    twice = [a for i, a in enumerate(alphabet) if a in alphabet[:i] or a in missing]
    if twice:
        raise ValueError(
            f"alphabet={v.shown(alphabet)} has the letter {twice[0]!r} twice, or "
            "`missing` has it too; give every letter one meaning."
        )
    return alphabet, missing


def decoded(codes: NDArray[np.intp], alphabet: str) -> str:
    """The string of codes; a missing one becomes "?"."""
    return "".join(np.array([*alphabet, "?"])[codes])


def _refuse_none(sequences: list[Any], name: str) -> None:
    for i, one in enumerate(sequences):
        if one is None:
            raise ValueError(
                f"{name}[{i}] is None, which is no sequence; drop it. A missing "
                f"observation in a sequence has the code {MISSING}."
            )


def _are_strings(sequences: Any) -> bool:
    if isinstance(sequences, np.ndarray):
        return (
            sequences.ndim == 1
            and sequences.dtype.kind in "UO"
            and all(isinstance(one, str) for one in sequences[:1])
        )
    try:
        return isinstance(next(iter(sequences), None), str)
    except TypeError:
        return False


def _one_string(text: str, alphabet: str | None, missing: str, name: str) -> Sequences:
    """A single string, which may have been meant as the name of a file."""
    try:
        return _encoded([text], alphabet, missing, name)
    except ValueError as error:
        if not any(mark in text for mark in "./\\"):
            raise
        raise ValueError(
            f"{error} A str is a sequence itself; to read a file, pass "
            f"pathlib.Path({v.shown(text)})."
        ) from None


def _encoded(
    strings: list[Any], alphabet: str | None, missing: str, name: str
) -> Sequences:
    """Codes of strings by one table from code points."""
    for i, one in enumerate(strings):
        if not isinstance(one, str):
            raise ValueError(
                f"{name}[{i}]={v.shown(one)} is no string like the first one; give "
                "all as strings or all as arrays of codes."
            )
    offsets = offsets_of(np.array([len(one) for one in strings]), name)
    if alphabet is None:
        _refuse_letters(strings, name)
        raise ValueError(
            f"{name}[0]={v.shown(strings[0])} is a string: pass the letters in "
            "order, for instance alphabet='ACGT'."
        )
    codes = _looked_up("".join(strings), alphabet, missing)
    found = Sequences(codes, offsets)
    wrong = codes == _NO_LETTER
    if wrong.any():
        i, t = found.place(int(np.argmax(wrong)))
        letter = strings[i][t]
        remedy = (
            "Add it, replace it, or name it in missing= if it stands for an unknown "
        )
        if letter.swapcase() in alphabet:
            remedy = "Write all in one case, for instance by str.upper, or add the "
        raise ValueError(
            f"{name}[{i}][{t}]={letter!r} is not in the alphabet {v.shown(alphabet)}. "
            f"{remedy}letter."
        )
    return found


def _looked_up(text: str, alphabet: str, missing: str) -> NDArray[np.intp]:
    """Codes of letters by a table of their code points, in blocks for the cache."""
    code, kind = ("ascii", "u1") if text.isascii() else ("utf-32-le", "<u4")
    points = np.frombuffer(text.encode(code), dtype=kind)
    letters = [ord(a) for a in alphabet + missing]
    table = np.full(max(letters) + 2, _NO_LETTER, dtype=np.intp)
    table[letters] = [*range(len(alphabet)), *[MISSING] * len(missing)]
    out = np.empty(len(points), dtype=np.intp)
    for lo in range(0, len(out), _BLOCK):
        out[lo : lo + _BLOCK] = table.take(points[lo : lo + _BLOCK], mode="clip")
    return out


def _refuse_letters(strings: list[str], name: str) -> None:
    """Refuse strings of a letter each, which are the steps of one sequence."""
    if max(map(len, strings)) == 1:
        letters = "".join(sorted(set(strings)))
        raise ValueError(
            f"{name} has {len(strings)} strings of one letter each, as {name}[0]="
            f"{v.shown(strings[0])}. If they are the steps of one sequence, join them: "
            "[''.join(X)]. If each is a sequence, pass the letters in order, as "
            f"alphabet={v.shown(letters)}."
        )


def _codes_of(name: str, value: Any) -> NDArray[np.intp]:
    """One array of codes."""
    value = v.in_memory(name, value)
    v.refuse_sparse(name, value)
    array = v.as_array(name, value)
    if any(isinstance(x, bytes) for x in array.ravel()[:1]):
        raise ValueError(
            f"{name}={v.shown(value)} has bytes, and strings are read; decode them, as "
            "by [x.decode() for x in X]."
        )
    if array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(x, str) for x in array.ravel()[:1])
    ):
        raise ValueError(
            f"{name}={v.shown(value)} has text; join its letters to a string and pass "
            "alphabet=, or number its words, for instance by codes = {w: i for i, w in "
            "enumerate(sorted(set(words)))} with all the words."
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} has shape {array.shape}; a sequence of symbols is (n_steps,), and "
            "vectors need a model of vectors (emission='gaussian' of a detector)."
        )
    if array.dtype.kind not in "iu":
        array = v.as_doubles(name, array)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(array) < _MOST_SYMBOLS) | (np.floor(array) != array)
        if wrong.any():
            t = int(np.argmax(wrong))
            remedy = ""
            if np.isfinite(array[t]) and array[t] % 1.0 > 0:
                remedy = (
                    " Real numbers need a model of vectors, as GaussianHMM or "
                    "emission='gaussian' of a detector."
                )
            raise ValueError(
                f"{name}[{t}]={array[t]:g} is no code; codes are integers 0, 1, 2, ... "
                f"and {MISSING} for a missing observation.{remedy}"
            )
    return array.astype(np.intp, copy=False)


def _checked_codes(found: Sequences, n_symbols: int | None, name: str) -> Sequences:
    codes = found.values
    top = _MOST_SYMBOLS if n_symbols is None else n_symbols
    wrong = (codes < MISSING) | (codes >= top)
    if wrong.any():
        i, t = found.place(int(np.argmax(wrong)))
        raise ValueError(
            f"{name}[{i}][{t}]={codes[np.argmax(wrong)]} is no code: codes are 0 to "
            f"{top - 1}, or {MISSING} for a missing observation."
        )
    return found


# -- vectors -------------------------------------------------------------------------
def vector_sequences(
    sequences: Any,
    lengths: ArrayLike | None = None,
    *,
    n_features: int | None = None,
    partly: bool = False,
    columns: Names | None = None,
    name: str = "sequences",
) -> Sequences:
    """Sequences of real vectors.

    Parameters
    ----------
    sequences : Sequences, list of array-like (n_steps, d), or array-like
        One array (n, d) is cut by `lengths`, or is one sequence, and one array
        (n, n_steps, d) is n sequences; arrays (n_steps,) are vectors of length one. A
        row of NaN is a missing observation.
    lengths : array-like of int, optional
        Lengths of the sequences in one array.
    n_features : int, optional
        The d that is expected.
    partly : bool, default=False
        Take rows of which a part is NaN.
    columns : tuple of str, optional
        Names that the columns of data frames must have, in their order.
    name : str, default="sequences"
        What messages call the data.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        For no sequence, an empty one, sizes that differ, infinite entries or such
        beyond 1e150, whose squares leave double precision, a pair
        (array, lengths), data frames with other columns than the rest and, unless
        `partly`, rows of which a part is NaN; sequence and place are named.
    TypeError
        For a path: files are read for symbols only.
    """
    if isinstance(sequences, os.PathLike):
        raise TypeError(
            f"{name}={v.shown(sequences)} is a path, and files are read for "
            "symbols only; load the arrays first, for instance by numpy.loadtxt."
        )
    columns = column_names(name, sequences, columns)
    sequences = listed(sequences, name)
    objects = isinstance(sequences, np.ndarray) and sequences.dtype.kind == "O"
    if objects and holds_numbers(sequences):  # as of a frame with columns of many types
        sequences = v.as_doubles(name, sequences)
    if lengths is None and getattr(sequences, "ndim", 0) == 3:
        sequences = list(sequences)
    if isinstance(sequences, Sequences):
        found = sequences
    else:
        arrays, offsets = arrays_of(sequences, lengths, _vectors_of, name)
        sizes = [array.shape[1] for array in arrays]
        d = sizes[0] if n_features is None else n_features
        for i, size in enumerate(sizes):
            if size != d:
                raise ValueError(
                    f"{name}[{i}] has {size} columns; {d} are expected: all "
                    "vectors must be of one size."
                )
        found = Sequences(joined(arrays, np.float64), offsets, columns)
    if not np.isfinite(found.values).all():
        _check_missing(found, partly, name)
    _check_sizes(found.values, found.place, name)
    return found


def _vectors_of(name: str, value: Any) -> NDArray[np.float64]:
    if v.as_array(name, value).dtype.kind in "US":
        raise ValueError(
            f"{name}={v.shown(value)} has text, but this model is of vectors; for "
            "letters use CategoricalHMM or MarkovChain with alphabet=."
        )
    array = v.as_doubles(name, value)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {array.shape}; a sequence of vectors is (n_steps, d)."
        )
    return array


def _check_missing(found: Sequences, partly: bool, name: str) -> None:
    if np.isfinite(found.values).all():
        return
    infinite = np.isinf(found.values).any(axis=1)
    lost = np.isnan(found.values)
    part = lost.any(axis=1) & ~lost.all(axis=1)
    wrong = infinite if partly else infinite | part
    if wrong.any():
        step = int(np.argmax(wrong))
        i, t = found.place(step)
        value = f"{name}[{i}][{t}]={v.shown(found.values[step].tolist())}"
        if infinite[step]:
            raise ValueError(f"{value} is infinite; a missing observation is NaN.")
        raise ValueError(
            f"{value} is NaN in part; here a missing observation is a row of NaN only. "
            "Fill in the missing part, or drop the row."
        )


def _check_sizes(values: NDArray[np.float64], place: Any, name: str) -> None:
    with np.errstate(invalid="ignore"):
        wrong = np.abs(values) > v.LARGEST_ENTRY
    if wrong.any():
        step = int(np.argmax(wrong.any(axis=1)))
        i, t = place(step)
        raise ValueError(
            f"{name}[{i}][{t}]={v.shown(values[step].tolist())} has entries beyond "
            f"{v.LARGEST_ENTRY:g}, whose squares leave double precision; write NaN "
            "where a number stands for a missing observation, or scale the data."
        )
