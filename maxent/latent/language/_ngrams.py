"""Observed bigrams and trigrams, and which of them a text takes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]  # words of a document by number


@dataclass
class Counts:
    """How often a document's words take their topic from each word, bigram, trigram.

    Each as (numbers that occur, how often): a document has few of all n-grams.
    """

    words: tuple[NDArray[np.intp], Array]
    bigrams: tuple[NDArray[np.intp], Array]
    trigrams: tuple[NDArray[np.intp], Array]

    @property
    def orders(self):
        return self.words, self.bigrams, self.trigrams

    @property
    def total(self) -> float:
        """Words counted: three for every trigram of the text."""
        return float(sum(count.sum() for _, count in self.orders))


@dataclass
class NGrams:
    """Observed n-grams in order; each trigram's two bigrams are among the bigrams."""

    n_words: int
    first: NDArray[np.int64]  # (B,)
    second: NDArray[np.int64]  # (B,)
    t_uv: NDArray[np.int64]  # (N,) first bigram
    t_vw: NDArray[np.int64]  # (N,) second bigram

    @classmethod
    def of(
        cls, documents: list[Codes], n_words: int, min_count: int
    ) -> tuple[Self, tuple[Array, Array]]:
        """All bigrams, the trigrams seen `min_count` times, and how often they are."""
        pairs = np.concatenate([c[:-1] * n_words + c[1:] for c in documents])
        bigrams, seen = np.unique(pairs, return_counts=True)
        B = len(bigrams)
        at = [np.searchsorted(bigrams, c[:-1] * n_words + c[1:]) for c in documents]
        triples = np.concatenate([b[:-1] * B + b[1:] for b in at])
        trigrams, often = np.unique(triples, return_counts=True)
        kept = often >= min_count
        pair = np.divmod(bigrams, n_words)
        grams = cls(n_words, *pair, *np.divmod(trigrams[kept], max(B, 1)))
        return grams, (seen.astype(np.float64), often[kept].astype(np.float64))

    @property
    def word(self) -> NDArray[np.int64]:
        """Last words of the trigrams (N,)."""
        return self.second[self.t_vw]

    @property
    def pairs(self):
        return self.first, self.second, self.t_uv, self.t_vw

    @functools.cached_property
    def _keys(self):
        """Bigrams and trigrams as sorted numbers."""
        B = len(self.first)
        return self.first * self.n_words + self.second, self.t_uv * B + self.t_vw

    def lookup(self, codes: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Numbers of bigrams (n - 1,) and trigrams (n - 2,) of words, -1 if none."""
        V, B = self.n_words, len(self.first)
        bigram = _find(self._keys[0], codes[:-1] * V + codes[1:])
        both = (bigram[:-1] >= 0) & (bigram[1:] >= 0)
        wanted = np.where(both, bigram[:-1] * B + bigram[1:], -1)
        return bigram, _find(self._keys[1], wanted)

    def counts(self, codes: Codes) -> Counts:
        """Counts of the potentials that the words of all trigrams take."""
        bigram, trigram = self.lookup(codes)
        words, pairs = [codes[:-2]], []
        for at, word, free in (
            (bigram[:-1], codes[1:-1], np.ones(len(trigram), dtype=bool)),
            (bigram[1:], codes[2:], trigram < 0),
        ):
            pairs.append(at[free & (at >= 0)])
            words.append(word[free & (at < 0)])
        triples = trigram[trigram >= 0]
        orders = (np.concatenate(words), np.concatenate(pairs), triples)
        found = (np.unique(each, return_counts=True) for each in orders)
        return Counts(*((at, count.astype(np.float64)) for at, count in found))


def _find(known, wanted):
    """Positions of values in a sorted array, -1 where they are not."""
    if not len(known):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)
