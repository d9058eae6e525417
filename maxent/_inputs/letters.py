"""Letters of strings: bases of nucleic acids, codes of unknown ones, and cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

BASES = "ACGTU"
CODES = "NRYKMSWBDHV"  # of IUPAC: any base, or one of two or three
_MOSTLY = 0.9  # share of bases in the letters of nucleic acids, at least


def counted(strings: Iterable[str]) -> Counter[str]:
    """Counts of the letters of all strings."""
    counts: Counter[str] = Counter()
    for text in strings:
        counts.update(text)
    return counts


def codes_beside(letters: Mapping[str, int]) -> str:
    """Codes of unknown bases, in the cases of the letters; none of other alphabets.

    Parameters
    ----------
    letters : dict of str to int
        Counts of letters, or of an alphabet one of each. Those of nucleic acids are
        bases and codes only, and mostly bases.
    """
    bases = sum(n for a, n in letters.items() if a.upper() in BASES)
    known = all(a.upper() in BASES + CODES for a in letters)
    if not known or bases < _MOSTLY * sum(letters.values()) or not bases:
        return ""
    cases = (str.isupper, CODES), (str.islower, CODES.lower())
    return "".join(codes for has, codes in cases if any(map(has, letters)))


def in_both_cases(letters: Iterable[str]) -> list[str]:
    """The letters in upper case that are there in lower case too."""
    letters = {*letters}
    return sorted(a for a in letters if a.isupper() and a.lower() in letters)


def default_unknown(alphabet: str | None) -> str:
    """N for an unknown letter, X where N is a letter itself, as in proteins."""
    return next((a for a in "NX" if a not in (alphabet or "")), "")


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
