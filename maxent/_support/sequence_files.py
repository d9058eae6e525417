"""Files of sequences of symbols: FASTA, or one sequence a line."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._support.files import read_bytes


def read_sequences(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Names and strings of a FASTA file, or of a text file of one sequence a line.

    Parameters
    ----------
    path : str or path-like
        A file whose first entry begins with ">" is FASTA: its headers are the names,
        and lines that begin with ";" are comments.
        Otherwise every line that is not blank is a sequence, named by its number. A
        file compressed by gzip is unpacked; "-" is standard input.

    Returns
    -------
    names, sequences : list of str

    Raises
    ------
    ValueError
        For a file without a sequence, and a header without one; the line is named.
    """
    found = read_records(path)
    return found.names, found.sequences


@dataclass(frozen=True)
class Records:
    """Sequences of a file: names, strings, and the lines where they begin."""

    names: list[str]
    sequences: list[str]
    lines: list[int]
    fasta: bool


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read sequences and labels of a file, with line numbers and the kind of file."""
    file, data = read_bytes(path)
    try:
        contents = io.StringIO(data.decode("utf-8-sig"), newline=None)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{file}, line {line}: not in UTF-8; convert the file first."
        ) from None
    names: list[str] = []
    pieces: list[list[str]] = []
    lines: list[int] = []
    fasta = False
    for number, line in enumerate(contents, 1):
        text = line.strip()
        if not text or (text.startswith(";") and (fasta or not pieces)):
            continue  # blank, or a comment of FASTA
        fasta = fasta or (not pieces and text.startswith(">"))
        if not fasta or text.startswith(">"):
            names.append(text[1:].strip() if fasta else str(number))
            pieces.append([])
            lines.append(number)
        if not (fasta and text.startswith(">")):
            pieces[-1].append("".join(text.split()) if fasta else text)
    sequences = ["".join(part) for part in pieces]
    if not sequences:
        raise ValueError(f"{file} has no sequence.")
    for name, text, number in zip(names, sequences, lines):
        if not text:
            raise ValueError(
                f"{file}, line {number}: the header {name!r} has no sequence below it."
            )
    return Records(names, sequences, lines, fasta)


def last_words(found: Records) -> list[str | None]:
    """The last word of each header, None of an empty one."""
    return [name.split()[-1] if name else None for name in found.names]


def checked_labels(
    file: str | os.PathLike[str],
    found: Records,
    labels: list[str | None],
    optional: bool = False,
) -> NDArray[np.str_] | None:
    """Labels of the sequences of a file as an array.

    Parameters
    ----------
    file : str or path-like
        As messages call it.
    found : Records
    labels : list of str or None
        The word that is the label, if it is one.
    optional : bool, default=False
        Return None where a label is missing, and take names for labels.

    Raises
    ------
    ValueError
        For a sequence without a label, and for headers that end in names.
    """
    if None in labels:
        if optional:
            return None
        line = found.lines[labels.index(None)]
        where = "header" if found.fasta else "line"
        raise ValueError(
            f"{file}, line {line}: the sequence has no label; write it as the last "
            f"word of its {where}"
        )
    if found.fasta and not optional:
        _refuse_names(file, found, labels)
    return np.array(labels)


def _refuse_names(file, found, labels):
    """Raise the error of headers whose last words are names."""
    names = all(len(name.split()) == 1 for name in found.names)
    distinct = len({*labels})
    if not names and 2 * distinct > len(labels) > 9:
        raise ValueError(
            f"{file}: the last words of the {len(labels)} headers are {distinct} "
            f"different ones, {labels[0]!r} the first, and too many to be labels. "
            "Write the label as the last word of each header"
        )
    if names and distinct == len(labels) > 2:
        raise ValueError(
            f"{file}: every header is one word, {found.names[0]!r} the first, and no "
            "two are alike: names, but no labels. Write the label as the last word of "
            "each header"
        )
