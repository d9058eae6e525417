"""Letters of strings: bases of nucleic acids, codes of unknown ones, and cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from maxent._core.fasta import count_letters

BASES = "ACGTU"
CODES = "NRYKMSWBDHV"  # of IUPAC: any base, or one of two or three
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
AMINO_CODES = "XBZJ"  # of IUPAC: any amino acid, or one of two
_MOSTLY = 0.9  # share of bases in the letters of nucleic acids, at least
_BASE_KINDS = 3  # of bases that nucleic acids have, at least
_AMINO_KINDS = 15  # of amino acids that proteins have, at least


def counted(strings: Iterable[str]) -> Counter[str]:
    """Counts of the letters of all strings."""
    counts: Counter[str] = Counter()
    ascii = np.zeros(128, np.intp)
    for text in strings:
        if isinstance(text, str) and text.isascii():
            count_letters(str(text), ascii)
        else:
            counts.update(text)
    counts.update({chr(a): int(ascii[a]) for a in np.flatnonzero(ascii)})
    return counts


def codes_beside(letters: Mapping[str, int]) -> str:
    """Codes of unknown bases or amino acids, in the cases of the letters.

    Parameters
    ----------
    letters : dict of str to int
        Counts of letters, or of an alphabet one of each. Those of nucleic acids are
        bases, of three kinds or more, and codes, and mostly bases; those of proteins
        are amino acids, of fifteen kinds or more, and codes. Others have no codes.
    """
    if is_nucleic(letters):
        return _in_cases(letters, CODES)
    kinds = {a.upper() for a in letters}
    amino = kinds & {*AMINO_ACIDS}
    if kinds <= {*AMINO_ACIDS, *AMINO_CODES} and len(amino) >= _AMINO_KINDS:
        return _in_cases(letters, AMINO_CODES)
    return ""


def is_nucleic(letters: Mapping[str, int], least: int = _BASE_KINDS) -> bool:
    """True of counts of bases and their codes only, and mostly of bases.

    There are `least` kinds of bases or more. N, any base, counts for neither: masked
    genomes have stretches of it.
    """
    bases = sum(n for a, n in letters.items() if a.upper() in BASES)
    kinds = {a.upper() for a in letters}
    known = kinds <= {*BASES, *CODES} and len(kinds & {*BASES}) >= least
    told = sum(n for a, n in letters.items() if a.upper() != "N")
    return known and bases >= _MOSTLY * told


def _in_cases(letters, codes):
    cases = (str.isupper, codes), (str.islower, codes.lower())
    return "".join(found for has, found in cases if any(map(has, letters)))


def unknown_letters(
    missing: str | None, alphabet: str | None, strings: Iterable[str] = ()
) -> str:
    """The letters that stand for an unknown one.

    Parameters
    ----------
    missing : str or None
        As a user gives them; None takes the codes that IUPAC has beside the letters.
    alphabet : str or None
        The letters; without one those of `strings`. What it has is a letter itself.
    strings : iterable of str, optional

    Returns
    -------
    str
        N, R, Y, ... of DNA and RNA, X, B, Z and J of proteins, none of others.
    """
    if missing is not None:
        return missing
    letters = counted(strings) if alphabet is None else counted([alphabet])
    if alphabet is not None and "N" in alphabet.upper() and is_nucleic(letters):
        return ""  # where N is a letter, no code is an unknown one
    return "".join(a for a in codes_beside(letters) if a not in (alphabet or ""))


def in_both_cases(letters: Iterable[str]) -> list[str]:
    """The letters in upper case that are there in lower case too."""
    letters = {*letters}
    return sorted(a for a in letters if a.isupper() and a.lower() in letters)


def in_case_of(
    strings: Sequence[str], alphabet: str | None = None, missing: str = ""
) -> Sequence[str]:
    """Strings of nucleic acids in the case of the alphabet; others as they are.

    Files of genomes mark repeats by lower case. Without an alphabet it is upper case;
    one with letters of both cases tells them apart.

    Parameters
    ----------
    strings : list of str
    alphabet : str, optional
    missing : str, default=""
        Letters for unknown ones beside those of the alphabet.
    """
    known = (alphabet or "ACGT") + missing
    upper, lower = (any(map(one, known)) for one in (str.isupper, str.islower))
    if upper and lower:
        return strings
    change = str.upper if upper else str.lower
    counts: Counter[str] = Counter()
    for letter, n in counted(strings).items():
        counts[letter.upper()] += n
    if not is_nucleic(counts, least=1):
        return strings
    return [change(text) for text in strings]


def complements(alphabet: str | None) -> NDArray[np.intp]:
    """Codes of the complements of the letters of DNA or RNA, in either case."""
    letters = alphabet or ""
    pairs = dict(zip("ACGTUacgtu", "TGCAAtgcaa"))
    pairs.update((a, b) for a, b in ("AU", "au") if b in letters)
    if not letters or any(pairs.get(a, "") not in list(letters) for a in letters):
        raise ValueError(
            f"alphabet={alphabet!r} has letters without a complement; both_strands is "
            "for DNA (ACGT) and RNA (ACGU)."
        )
    return np.array([letters.index(pairs[a]) for a in letters])
