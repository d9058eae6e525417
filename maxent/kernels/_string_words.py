"""Words of strings as columns: of k places, gapped, with mismatches, on both strands.

With C the counts of the words that occur, one column each, the features of a string are
C E: row w of E has the columns in which the word w is counted,

    gaps        the letters of w at the places that are kept, for each choice of them
    mismatches  all words that differ from these in at most m letters
    strands     the columns of a word and of its reverse complement added up

Sources: Leslie, Eskin, Cohen, Weston & Noble (2004), section 2; Leslie & Kuang (2004),
section 3; Ghandi, Lee, Mohammad-Noori & Beer (2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxent._support import validation as v

Numbers = NDArray[np.intp]
_MOST_WORDS = 2**62  # that 64-bit integers can number


@dataclass(frozen=True)
class Words:
    """Columns in which a word of k symbols is counted.

    Attributes
    ----------
    k : int
        Places of a word.
    gaps : int
        Places that may hold any symbol.
    mismatches : int
        Symbols in which a word may differ from that of its column.
    size : int
        Symbols of the alphabet.
    complement : ndarray of int (size,) or None
        Codes of the complements: both strands are read.
    """

    k: int
    gaps: int
    mismatches: int
    size: int
    complement: Numbers | None

    @classmethod
    def checked(
        cls, k: int, gaps: int, mismatches: int, size: int, complement: Numbers | None
    ) -> Words:
        """Words after a check that some place is read, and of how many there are.

        Raises
        ------
        ValueError
            For gaps or mismatches at every place, and more than 2^62 words.
        """
        k = v.check_count("k", k)
        gaps = v.check_count("gaps", gaps, 0)
        mismatches = v.check_count("mismatches", mismatches, 0)
        if gaps + mismatches >= k:
            raise ValueError(
                f"gaps={gaps} and mismatches={mismatches} leave none of k={k} places "
                "to compare; their sum must be below k."
            )
        out = cls(k, gaps, mismatches, size, complement)
        if max(float(size) ** k, float(out.n_columns)) > _MOST_WORDS:
            raise ValueError(
                f"k={k} with {size} symbols gives more than 2**62 words; use a smaller "
                "k."
            )
        return out

    @property
    def n_columns(self) -> int:
        """Columns of the features."""
        return math.comb(self.k, self.gaps) * self.size ** (self.k - self.gaps)

    def blocks(self, counts: Any) -> Iterator[tuple[Any, Numbers]]:
        """Features for each choice of the places that are kept.

        Parameters
        ----------
        counts : csr_array (n, size ** k)
            Counts of the words.

        Yields
        ------
        features : csr_array (n, n_used)
            Columns that are used.
        columns : ndarray of int (n_used,)
            Their numbers, increasing.
        """
        words, place = np.unique(counts.indices, return_inverse=True)
        words = words.astype(np.intp)
        C = sparse.csr_array(
            (counts.data, place.reshape(-1), counts.indptr),
            shape=(counts.shape[0], len(words)),
        )
        if not (self.gaps or self.mismatches or self.complement is not None):
            yield C, words
            return
        kept = self.k - self.gaps
        letters = self._letters(words, self.k)
        for number, places in enumerate(combinations(range(self.k), kept)):
            mirrored = tuple(self.k - 1 - i for i in reversed(places))
            if self.complement is not None and mirrored < places:
                continue  # its columns are those of the mirrored places
            table = self._table(letters, places, mirrored)
            used, at = np.unique(table, return_inverse=True)
            ends = np.arange(0, table.size + 1, table.shape[1])
            E = sparse.csr_array(
                (np.ones(table.size), at.reshape(-1), ends),
                shape=(len(words), len(used)),
            )
            F = C @ E
            F.sum_duplicates()
            yield F, used + number * self.size**kept

    def _table(self, letters, places, mirrored):
        """Columns (n_words, n) of each word at some places."""
        table = self._near(letters[:, places])
        if self.complement is None:
            return table
        if mirrored == places:
            other = self._letters(table.ravel(), len(places))
            other = self._number(self.complement[other[:, ::-1]])
            return np.minimum(table, other.reshape(table.shape))
        other = self.complement[letters[:, ::-1]]
        return np.concatenate([table, self._near(other[:, places])], axis=1)

    def _near(self, letters):
        """Numbers (n_words, n) of the words within the mismatches of each."""
        n, q = letters.shape
        own, steps = self._number(letters)[:, None], np.arange(1, self.size)
        count = sum(
            math.comb(q, j) * (self.size - 1) ** j for j in range(self.mismatches + 1)
        )
        v.check_memory(f"mismatches={self.mismatches}, columns", count, 24 * n * count)
        parts = [own]
        for j in range(1, self.mismatches + 1):
            for places in combinations(range(q), j):
                part = own
                for i in places:
                    other = (letters[:, [i]] + steps) % self.size - letters[:, [i]]
                    moved = other * self.size ** (q - 1 - i)
                    part = (part[:, :, None] + moved[:, None, :]).reshape(n, -1)
                parts.append(part)
        return np.concatenate(parts, axis=1)

    def _letters(self, numbers: Numbers, q: int) -> Numbers:
        """Symbols (n, q) of the words with these numbers."""
        return numbers[:, None] // self.size ** np.arange(q)[::-1] % self.size

    def _number(self, letters: Numbers) -> Numbers:
        return letters @ self.size ** np.arange(letters.shape[1])[::-1]
