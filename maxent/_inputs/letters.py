"""Letters of strings: bases of nucleic acids, codes of unknown ones, and cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

BASES = "ACGTU"
CODES = "NRYKMSWBDHV"  # of IUPAC: any base, or one of two or three
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
ACIDS_AND_CODES = AMINO_ACIDS + "BJOUZ*-"
_MOST_ACIDS = 15  # of the twenty, in the letters of proteins
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


def default_unknown(letters: Mapping[str, int] | str | None) -> str:
    """Letters that stand for an unknown one where nobody says which do.

    Of nucleic acids these are N and the other codes of IUPAC, of proteins X, of others
    none.

    Parameters
    ----------
    letters : dict of str to int, str or None
        Counts of the letters that occur, or an alphabet, whose letters are none of
        those.
    """
    if not letters:
        return ""
    if isinstance(letters, str):
        codes = codes_beside(dict.fromkeys(letters, 1))
        rest = "".join(a for a in codes if a not in letters)
        return rest or ("X" if "X" not in letters and _of_proteins(letters) else "")
    return codes_beside(letters) or ("X" if _of_proteins(letters) else "")


def _of_proteins(letters: Iterable[str]) -> bool:
    """True if most of the twenty amino acids are there, and X at most beside them."""
    found = {*letters} - {"X"}
    return len(found & {*AMINO_ACIDS}) >= _MOST_ACIDS and found <= {*ACIDS_AND_CODES}


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
    if not codes_beside(counts):
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
