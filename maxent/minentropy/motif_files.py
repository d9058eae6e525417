"""Motifs in text files, as MEME and JASPAR write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from maxent._inputs.letters import AMINO_ACIDS
from maxent._support import validation as v
from maxent._support.files import decode_text, read_bytes, whole_file
from maxent._support.typing import PathLike
from maxent.minentropy.motif_table import Motif

_NAMED_ALPHABETS = {"DNA": "ACGT", "RNA": "ACGU", "PROTEIN": AMINO_ACIDS}
_BASES = "ACGT"
_ROUNDED = 1e-2  # how far rows of files, of few digits, may sum from one
_EXACT = 1e-9  # rows that are nearer to one are kept as they are


def write_motifs(
    motifs: Motif | Iterable[Motif],
    path: PathLike | None = None,
    *,
    format: str = "meme",
) -> str:
    """Write motifs as text that other programs read.

    Parameters
    ----------
    motifs : Motif or iterable of Motif
        Of one alphabet.
    path : str or path-like, optional
        Of a file to write, whole or not at all.
    format : {"meme", "jaspar"}, default="meme"
        Minimal MEME format, version 4, with the background of the first motif; or
        JASPAR's matrices of counts, which are for DNA and have no background.

    Returns
    -------
    str
        The text of the file.

    Raises
    ------
    ValueError
        For no motif, motifs of several alphabets, two of one name, and for JASPAR other
        letters than ACGT.

    See Also
    --------
    read_motifs : The inverse.

    Examples
    --------
    >>> from maxent.minentropy import Motif, read_motifs, write_motifs
    >>> motif = Motif([[0.8, 0.1, 0.1, 0.0], [0.0, 0.0, 0.5, 0.5]], name="m1")
    >>> text = write_motifs(motif, format="jaspar")
    >>> print(text, end="")
    >m1
    A [ 16 0 ]
    C [ 2 0 ]
    G [ 2 10 ]
    T [ 0 10 ]
    """
    listed = [motifs] if isinstance(motifs, Motif) else list(motifs)
    v.check_choice("format", format, ("meme", "jaspar"))
    _check_motifs(listed)
    text = _meme(listed) if format == "meme" else _jaspar(listed)
    if path is not None:
        with whole_file(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    return text


def _check_motifs(motifs):
    if not motifs:
        raise ValueError("motifs is empty; give one motif or more.")
    for i, one in enumerate(motifs):
        if not isinstance(one, Motif):
            raise ValueError(
                f"motifs[{i}]={v.shown(one)} is no Motif; make one of a classifier by "
                "Motif.from_estimator."
            )
    alphabets = {one.alphabet for one in motifs}
    if len(alphabets) > 1:
        raise ValueError(
            f"motifs have the alphabets {v.shown(sorted(alphabets))}, and a file has "
            "one; write a file for each."
        )
    names = [one.name for one in motifs]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ValueError(
            f"two motifs have the name {v.shown(twice[0])}; give each its own."
        )


def _number(x):
    return np.format_float_positional(x, trim="-")


def _meme(motifs):
    letters = motifs[0].alphabet
    out = ["MEME version 4", "", *_alphabet_lines(letters), ""]
    if {*letters} <= {*"ACGT"} and len(letters) == 4:
        out += ["strands: + -", ""]
    shares = zip(letters, motifs[0].background, strict=True)
    out += ["Background letter frequencies"]
    out += [" ".join(f"{a} {_number(p)}" for a, p in shares), ""]
    for one in motifs:
        held_out = 0.0 if one.significance is None else one.significance
        out += [f"MOTIF {one.name}"]
        out += [
            f"letter-probability matrix: alength= {len(letters)} w= {len(one)} "
            f"nsites= {one.n_sites:g} E= {held_out:.6g}"
        ]
        out += [" " + " ".join(map(_number, row)) for row in one.probabilities]
        out += [""]
    return "\n".join(out)


def _alphabet_lines(letters):
    """Of letters that MEME knows one line, of others a block with each of them."""
    if {*letters} in [{*known} for known in _NAMED_ALPHABETS.values()]:
        return [f"ALPHABET= {letters}"]
    return ['ALPHABET "letters"', *letters, "END ALPHABET"]


def _jaspar(motifs):
    if sorted(motifs[0].alphabet) != [*_BASES]:
        raise ValueError(
            f"the alphabet {v.shown(motifs[0].alphabet)} is not that of DNA (ACGT), "
            "the one of JASPAR's matrices; use format='meme'."
        )
    out = []
    for one in motifs:
        counts = one.n_sites * one.probabilities
        whole = np.rint(counts)
        counts = np.where(np.abs(counts - whole) < _EXACT * one.n_sites, whole, counts)
        out += [f">{one.name}"]
        for a in _BASES:
            column = counts[:, one.alphabet.index(a)]
            out += [f"{a} [ {' '.join(map(_number, column))} ]"]
    return "\n".join(out) + "\n"


def read_motifs(path: PathLike) -> list[Motif]:
    """Read the motifs of a file in minimal MEME or JASPAR format.

    Parameters
    ----------
    path : str or path-like
        A file that begins with "MEME version" has probabilities, its background and
        alphabet; output of MEME and STREME as text is read too. One that begins with
        ">" has counts of DNA, a row for each base, of JASPAR; its columns may have
        different sums, and `n_sites` is the largest one.

    Returns
    -------
    list of Motif
        Rows that sum to one but for rounding are divided by their sums.

    Raises
    ------
    ValueError
        For another format, and for tables that are not whole; the motif is named.

    See Also
    --------
    write_motifs : The inverse.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxent.minentropy import Motif, read_motifs, write_motifs
    >>> motif = Motif([[0.8, 0.1, 0.1, 0.0], [0.0, 0.0, 0.5, 0.5]], name="m1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "motifs.meme")
    ...     _ = write_motifs(motif, path)
    ...     read_motifs(path) == [motif]
    True
    """
    file, data = read_bytes(path)
    text = decode_text(file, data, "utf-8")
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith(">"):
        found = list(_read_jaspar(file, lines))
    elif "MEME version" in text:
        found = list(_read_meme(file, lines))
    else:
        raise ValueError(
            f"{file} begins with {v.shown(first[:40])}; motif files begin with 'MEME "
            "version' or with '>' and the name of a JASPAR matrix."
        )
    if not found:
        raise ValueError(f"{file} has no motif.")
    return found


def _read_meme(file, lines):
    alphabet = _alphabet_of(lines)
    background = _background_of(file, lines, alphabet)
    name, at = None, 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if line.startswith("MOTIF"):
            words = line.split()
            name = words[1] if len(words) > 1 else "motif"
        if not line.startswith("letter-probability matrix"):
            continue
        said = dict(re.findall(r"(\w+)=\s*(\S+)", line))
        rows, at = _rows(file, lines, at, len(alphabet), name)
        if "w" in said and int(said["w"]) != len(rows):
            raise ValueError(
                f"{file}: motif {name!r} says w= {said['w']} and has {len(rows)} rows."
            )
        yield _motif(
            *(file, rows, alphabet, background, name or "motif"),
            float(said.get("nsites", 20.0)) or 20.0,
            next((float(said[k]) for k in "SPE" if float(said.get(k, 0.0))), None),
        )


def _alphabet_of(lines):
    letters = []
    inside = False
    for line in lines:
        text = line.strip()
        if text.startswith("ALPHABET="):
            word = text.partition("=")[2].strip()
            return _NAMED_ALPHABETS.get(word, word)
        if inside and text.startswith("END ALPHABET"):
            return "".join(letters)
        if inside and text and "=" not in text:  # not a code of several letters
            letters += [w[0] for w in text.split("~")[:1]]
            if "~" in text:  # a pair of complements
                letters += [text.split("~")[1].strip()[0]]
        elif text.startswith("ALPHABET"):
            inside = True
    return _BASES


def _background_of(file, lines, alphabet):
    """Shares of the letters after the line that announces them, or None."""
    for i, line in enumerate(lines):
        if line.startswith("Background letter frequencies"):
            words = []
            for row in lines[i + 1 :]:
                if not row.strip() or row.startswith("MOTIF"):
                    break
                words += row.split()
            shares = dict(zip(words[::2], words[1::2]))
            try:
                found = np.array([float(shares[a]) for a in alphabet])
            except (KeyError, ValueError):
                raise ValueError(
                    f"{file}, line {i + 2}: a letter of {v.shown(alphabet)} and its "
                    f"frequency, for each, are expected, not {v.shown(row[:40])}."
                ) from None
            return _unit(found[None])[0]
    return None


def _rows(file, lines, at, size, name):
    """Rows of numbers from one line on, and the line behind them."""
    rows: list[list[float]] = []
    while at < len(lines):
        words = lines[at].split()
        try:
            row = [float(w) for w in words]
        except ValueError:
            break
        if not row and rows:
            break
        if row and len(row) != size:
            raise ValueError(
                f"{file}, line {at + 1}: motif {name!r} has a row of {len(row)} "
                f"numbers for {size} letters."
            )
        rows += [row] if row else []
        at += 1
    return np.array(rows), at


def _read_jaspar(file, lines):
    blocks: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith(">"):
            blocks.append(((text[1:].split() or ["motif"])[0], {}))
        elif text:
            words = text.replace("[", " ").replace("]", " ").split()
            rows = blocks[-1][1]
            letter = words.pop(0) if words and words[0].isalpha() else ""
            letter = letter or _BASES[min(len(rows), 3)]
            try:
                rows[letter.upper()] = [float(w) for w in words]
            except ValueError:
                raise ValueError(
                    f"{file}, line {number}: {v.shown(text[:40])} is no row of counts."
                ) from None
    for name, rows in blocks:
        if sorted(rows) != [*_BASES] or len({*map(len, rows.values())}) != 1:
            raise ValueError(
                f"{file}: motif {name!r} has the rows {v.shown(sorted(rows))}; rows of "
                "equal lengths for A, C, G and T are expected."
            )
        counts = np.array([rows[a] for a in _BASES]).T
        total = counts.sum(axis=1)
        if not len(counts) or not (total > 0).all():
            raise ValueError(f"{file}: motif {name!r} has a position without counts.")
        n_sites = float(total.max())
        yield Motif(counts / total[:, None], name=name, n_sites=n_sites)


def _motif(file, rows, alphabet, background, name, n_sites, significance):
    if not len(rows):
        raise ValueError(f"{file}: motif {name!r} has no rows of probabilities.")
    try:
        return Motif(
            *(_unit(rows), alphabet),
            background=background,
            name=name,
            n_sites=n_sites,
            significance=significance,
        )
    except ValueError as error:
        raise ValueError(f"{file}: motif {name!r}: {error}") from None


def _unit(rows):
    """Rows of few digits divided by their sums; exact ones as they are."""
    sums = rows.sum(axis=1, keepdims=True)
    rounded = (np.abs(sums - 1.0) > _EXACT) & (np.abs(sums - 1.0) < _ROUNDED)
    return np.where(rounded, rows / np.where(rounded, sums, 1.0), rows)
