"""Files of sequences of symbols: FASTA, or one sequence a line."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

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
