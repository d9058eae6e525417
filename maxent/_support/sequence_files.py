"""Files of sequences of symbols: FASTA, FASTQ, or one sequence a line."""

from __future__ import annotations

import io
import itertools
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._support.files import decode_text, read_bytes


def read_sequences(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Names and strings of a FASTA or FASTQ file, or of one of a sequence a line.

    Parameters
    ----------
    path : str or path-like
        A file whose first entry begins with ">" is FASTA: its headers are the names,
        and lines that begin with ";" are comments. One whose first line begins with "@"
        and whose third with "+" is FASTQ, of four lines a record; the qualities are
        left out. Otherwise every line that is not blank is a sequence, named by its
        number. Files compressed by gzip, bzip2 or xz are unpacked; "-" is standard
        input.

    Returns
    -------
    names, sequences : list of str

    Raises
    ------
    ValueError
        For a file without a sequence, a header without one, and records of FASTQ that
        are not of four lines; the line is named.
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


def read_records(path: str | os.PathLike[str], encoding: str = "utf-8") -> Records:
    """Read names and strings of a file, with line numbers and the kind of file."""
    file, data = read_bytes(path)
    text = decode_text(file, data, encoding)
    lines = io.StringIO(text, newline=None)
    head = [line[:1] for line in itertools.islice(lines, 3)]
    lines.seek(0)
    if head[::2] == ["@", "+"]:
        return _fastq(file, lines)
    return _fasta_or_lines(file, lines)


def _fastq(file: str, contents: io.StringIO) -> Records:
    """Records of four lines: header, string, + and the qualities."""
    found = Records([], [], [], True)
    rows = [line.strip() for line in contents]
    while rows and not rows[-1]:
        rows.pop()
    for start in range(0, len(rows), 4):
        header, text, plus, quality = (*rows[start : start + 4], *[""] * 3)[:4]
        if header[:1] != "@" or plus[:1] != "+" or len(text) != len(quality):
            raise ValueError(
                f"{file}, line {start + 1}: four lines of FASTQ are expected: @ and a "
                "name, the sequence, +, and as many qualities as letters."
            )
        if not text:
            raise ValueError(
                f"{file}, line {start + 1}: the header {header[1:]!r} has no sequence "
                "below it."
            )
        found.names.append(header[1:].strip())
        found.sequences.append(text)
        found.lines.append(start + 1)
    return found


def _fasta_or_lines(file: str, contents: io.StringIO) -> Records:
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


def identifiers(found: Records) -> list[str]:
    """The first word of each header, the number of the sequence where it is empty."""
    words = [name.split() for name in found.names]
    return [w[0] if w else str(i) for i, w in enumerate(words, 1)]


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
