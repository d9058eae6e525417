"""Files of sequences of symbols: FASTA, FASTQ, or one sequence a line."""

from __future__ import annotations

import io
import itertools
import os
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._core.fasta import fasta_records
from maxent._support.files import decode_text, is_missing, read_bytes
from maxent._support.validation import user_stacklevel


def read_sequences(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Names and strings of a FASTA or FASTQ file, or of one of a sequence a line.

    Parameters
    ----------
    path : str or path-like
        A file whose first entry begins with ">" is FASTA: its headers are the names,
        and lines that begin with ";" are comments. One that begins with "@" is FASTQ,
        whose lines may be wrapped; qualities, and reads without letters, are left out.
        Otherwise every line that is not blank is a sequence, named by its
        number. Files compressed by gzip, bzip2 or xz are unpacked; "-" is standard
        input.

    Returns
    -------
    names, sequences : list of str

    Raises
    ------
    ValueError
        For a file without a sequence, and records of FASTQ with more or fewer qualities
        than letters; the line is named.

    Warns
    -----
    UserWarning
        If headers of FASTA without a sequence are left out; the first one is named.
    """
    found = read_records(path)
    warn_of_empty(path, found)
    return found.names, found.sequences


@dataclass(frozen=True)
class Records:
    """Sequences of a file: names, strings, and the lines where they begin.

    `empty` counts records without letters, which are left out; of FASTA `first_empty`
    has the line and header of the first one.
    """

    names: list[str]
    sequences: list[str]
    lines: list[int]
    fasta: bool
    empty: int = 0
    first_empty: str = ""

    @property
    def left_out(self) -> str:
        """Part of a message that counts the reads without letters."""
        first = f", {self.first_empty} first," if self.first_empty else ""
        return f"{self.empty} reads without letters{first} were left out"


def warn_of_empty(path: str | os.PathLike[str], found: Records) -> None:
    """Warn of headers of FASTA without a sequence: results have no place for them."""
    if found.first_empty:
        warnings.warn(
            f"{os.fspath(path)}: {found.left_out}.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def read_records(path: str | os.PathLike[str], encoding: str = "utf-8") -> Records:
    """Read names and strings of a file, with line numbers and the kind of file."""
    file, data = read_bytes(path)
    text = decode_text(file, data, encoding)
    found = _plain_fasta(file, text)
    if found is not None:
        return found
    lines = io.StringIO(text, newline=None)
    if text.lstrip().startswith("@"):
        return _fastq(file, lines)
    return _fasta_or_lines(file, lines)


_PRINTABLE = bytes(range(32, 127)) + b"\t"


def _plain_fasta(file: str, text: str) -> Records | None:
    """Records of a FASTA file whose sequences are ASCII letters and blanks, or None."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    names: list[str] = []
    sequences: list[str] = []
    lines: list[int] = []
    scratch = np.empty(len(text), np.uint8)
    try:
        plain = fasta_records(text, scratch, names, sequences, lines)
    except UnicodeEncodeError:  # of a lone surrogate
        return None
    return _kept(file, names, sequences, lines, True) if plain else None


def _fastq(file: str, contents: io.StringIO) -> Records:
    """Records of a header, string, + and qualities; string and qualities may wrap."""
    found = Records([], [], [], True)
    rows = [line.strip() for line in contents]
    at = empty = 0
    while at < len(rows):
        if not rows[at]:
            at += 1
            continue
        text, n_qualities, end = _fastq_record(rows, at)
        if end is None or len(text) != n_qualities:
            raise ValueError(
                f"{file}, line {at + 1}: a file that begins with @ is read as FASTQ: @ "
                "and a name, the letters, a line that begins with +, and as many "
                f"qualities as letters; this record has {len(text)} letters and "
                f"{n_qualities} qualities."
            )
        if text:
            found.names.append(rows[at][1:].strip())
            found.sequences.append(text)
            found.lines.append(at + 1)
        empty += not text
        at = end
    if not found.sequences:
        raise ValueError(f"{file} has no sequence.")
    _refuse_controls(file, found.sequences, found.lines)
    return replace(found, empty=empty)


def _fastq_record(rows: list[str], at: int) -> tuple[str, int, int | None]:
    """Letters, number of qualities, and end of a record; no end of a damaged one."""
    plus = at + 1
    while plus < len(rows) and rows[plus][:1] != "+":
        plus += 1
    text = "".join(rows[at + 1 : plus])
    end, n_qualities = plus + 1, 0
    while end < len(rows) and n_qualities < len(text):
        n_qualities += len(rows[end])
        end += 1
    whole = rows[at][:1] == "@" and plus < len(rows)
    return text, n_qualities, end if whole else None


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
    found = _kept(file, names, ["".join(part) for part in pieces], lines, fasta)
    _refuse_controls(file, found.sequences, found.lines)
    return found


def _kept(
    file: str, names: list[str], sequences: list[str], lines: list[int], fasta: bool
) -> Records:
    """Records with letters; the others are counted."""
    kept = [text != "" for text in sequences]
    if not any(kept):
        raise ValueError(f"{file} has no sequence.")
    told, empty = "", kept.count(False)
    if empty:
        first = kept.index(False)
        told = f"line {lines[first]} with header {names[first]!r}"
        names = [*itertools.compress(names, kept)]
        sequences = [*itertools.compress(sequences, kept)]
        lines = [*itertools.compress(lines, kept)]
    return Records(names, sequences, lines, fasta, empty, told)


def _refuse_controls(file: str, sequences: list[str], lines: list[int]) -> None:
    """Refuse characters that are not shown, which are no letters but damage."""
    for text, line in zip(sequences, lines):
        if text.isascii() and not text.encode().translate(None, _PRINTABLE):
            continue  # soon seen
        if not text.replace("\t", " ").isprintable():
            at = next(i for i, letter in enumerate(text) if not letter.isprintable())
            raise ValueError(
                f"{file}, line {line}: the sequence holds the character "
                f"{text[at]!r} at place {at + 1}, which is no letter; the file is "
                "damaged, or no text."
            )


def identifiers(found: Records) -> list[str]:
    """The first word of each header, the number of the sequence where it is empty."""
    names = enumerate(found.names, 1)
    return [name.split(None, 1)[0] if name else str(i) for i, name in names]


def last_words(found: Records) -> list[str | None]:
    """The last word of each header, None of an empty one."""
    return [name.split()[-1] if name else None for name in found.names]


def checked_labels(
    file: str | os.PathLike[str],
    found: Records,
    labels: list[str | None],
    optional: bool = False,
) -> NDArray[Any] | None:
    """Labels of the sequences of a file as an array.

    Parameters
    ----------
    file : str or path-like
        As messages call it.
    found : Records
    labels : list of str or None
        The word that is the label, if it is one.
    optional : bool, default=False
        Return None where a sequence has no word for a label, and take names for labels.
        Words that stand for a missing label, such as NA, are None in an array of
        objects.

    Raises
    ------
    ValueError
        For a sequence without a label, as NA says too, and for headers that end in
        names.
    """
    if None in labels and optional:
        return None
    absent = [label is None or is_missing(label) for label in labels]
    if optional:
        if not any(absent):
            return np.array(labels)
        kept = [None if a else label for a, label in zip(absent, labels)]
        return np.array(kept, dtype=object)
    if any(absent):
        at = absent.index(True)
        fault = "has no label; write it"
        if labels[at] is not None:
            fault = f"has the label {labels[at]!r}, which stands for none; write one"
        raise ValueError(
            f"{file}, line {found.lines[at]}: the sequence {fault} as the last word of "
            f"its {'header' if found.fasta else 'line'}, or leave the sequence out"
        )
    if found.fasta:
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
