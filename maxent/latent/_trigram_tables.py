"""Weights of the trigram model with topics, its exact likelihood and gradient.

Weights lie in one vector: for words, observed bigrams and observed trigrams a column
of their own and one per topic, then the documents' topics. A weight of a lower order
enters every n-gram of a higher order that ends in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._support.compiling import compiled

Array = NDArray[np.float64]


@dataclass
class NGrams:
    """Observed n-grams; each trigram's two bigrams are among the bigrams."""

    n_words: int
    first: NDArray[np.int64]  # (B,)
    second: NDArray[np.int64]  # (B,)
    t_uv: NDArray[np.int64]  # (N,) first bigram
    t_vw: NDArray[np.int64]  # (N,) second bigram
    word: NDArray[np.int64]  # (N,) last word

    @property
    def pairs(self):
        return self.first, self.second, self.t_uv, self.t_vw


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


class Potentials:
    """Exponentials of the weights, by order, (n, T), and sums of one document."""

    def __init__(self, grams: NGrams, tables: tuple[Array, Array, Array]):
        self.grams, self.core = grams, compiled("trigram_topics")
        words, bigrams, trigrams = tables  # own column first, then topics
        u = words[:, :1] + words[:, 1:]
        v = u[grams.second] + bigrams[:, :1] + bigrams[:, 1:]
        w = u[grams.word] + (bigrams[:, :1] + bigrams[:, 1:])[grams.t_vw]
        w = w + trigrams[:, :1] + trigrams[:, 1:]
        # one shift for all keeps exponentials in range; each word bears it once
        self.shift = max(float(x.max(initial=-np.inf)) for x in (u, v, w))
        self.tables = [np.exp(x - self.shift) for x in (u, v, w)]
        self.room = [np.empty(len(x)) for x in self.tables]
        self.mass = [np.empty(len(x)) for x in self.tables]

    def document(
        self, topics: NDArray[np.intp], doc: Array
    ) -> tuple[float, Array, float]:
        """log Z of a document, with phi, psi, chi and the masses left in place."""
        share = np.exp(doc - doc.max())
        for table, out in zip(self.tables, self.room):
            self.core.potentials(table, topics, share, out)
        Z = self.core.masses(*self.room, *self.grams.pairs, *self.mass)
        if not Z > 0:
            raise FloatingPointError(
                "the normaliser of a document is not positive: weights span more than "
                "double precision; lower prior_variance."
            )
        return float(np.log(Z)) + 3.0 * (self.shift + doc.max()), share, Z

    def log_numerator(self, counts: Counts, doc: Array) -> float:
        """Sum of the logs of the potentials over a document's trigrams."""
        total = 0.0
        for (at, count), out in zip(counts.orders, self.room):
            total += float(count @ np.log(out[at]))
        return total + counts.total * (self.shift + doc.max())


class TrigramLikelihood:
    """Average log-likelihood of trigrams and documents, and its gradient."""

    def __init__(
        self,
        grams: NGrams,
        counts: list[Counts],
        topics: list[NDArray[np.intp]],
        n_topics: int,
    ):
        self.grams, self.counts, self.topics, self.T = grams, counts, topics, n_topics
        self.sizes = [grams.n_words, len(grams.first), len(grams.word)]
        self.total = sum(c.total for c in counts) / 3.0
        self.ends = np.cumsum([0, *(len(t) for t in topics)])
        self.size = sum(self.sizes) * (n_topics + 1) + int(self.ends[-1])

    def split(self, x: Array) -> tuple[tuple[Array, Array, Array], Array]:
        """Tables by order, each (n, 1 + T), and the documents' weights."""
        tables, at = [], 0
        for n in self.sizes:
            tables.append(x[at : at + n * (self.T + 1)].reshape(n, self.T + 1))
            at += n * (self.T + 1)
        words, bigrams, trigrams = tables
        return (words, bigrams, trigrams), x[at:]

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """L and its gradient, eta - E f, in two passes over the documents."""
        tables, docs = self.split(x)
        own = Potentials(self.grams, tables)
        parts = [docs[a:b] for a, b in zip(self.ends[:-1], self.ends[1:])]
        log_Z = np.array([own.document(t, d)[0] for t, d in zip(self.topics, parts)])
        log_phi = np.logaddexp.reduce(log_Z)
        L, spreads = 0.0, [np.zeros((n, self.T)) for n in self.sizes]
        g_doc = np.zeros(len(docs))
        for k, (t, d, c) in enumerate(zip(self.topics, parts, self.counts)):
            _, share, Z = own.document(t, d)
            L += own.log_numerator(c, d)
            weight = np.exp(log_Z[k] - log_phi) / Z
            masses = [-weight * mass for mass in own.mass]
            self._spread(own, k, share, masses, spreads, g_doc)
        gradient = np.concatenate([g.ravel() for g in self._fed(spreads)] + [g_doc])
        return L / self.total - float(log_phi), gradient

    def target(self, x: Array) -> Array:
        """eta: means of the features given the text."""
        tables, docs = self.split(x)
        own = Potentials(self.grams, tables)
        spreads, g_doc = (
            [np.zeros((n, self.T)) for n in self.sizes],
            np.zeros(len(docs)),
        )
        for k, t in enumerate(self.topics):
            share = own.document(t, docs[self.ends[k] : self.ends[k + 1]])[1]
            masses = [np.zeros(n) for n in self.sizes]
            self._spread(own, k, share, masses, spreads, g_doc)
        return np.concatenate([g.ravel() for g in self._fed(spreads)] + [g_doc])

    def _spread(self, own, k, share, masses, spreads, g_doc):
        """Add masses, and the shares of document k's words, to features by topic."""
        row = g_doc[self.ends[k] : self.ends[k + 1]]
        for (at, count), mass, table, out, into in zip(
            self.counts[k].orders, masses, own.tables, own.room, spreads
        ):
            mass[at] += count / self.total
            own.core.spread(mass, table, self.topics[k], share, out, into, row)

    def _fed(self, spreads):
        """Gradients by order: masses feed the features of lower order too."""
        g1, g2, g3 = spreads
        grams = self.grams
        np.add.at(g2, grams.t_vw, g3)
        np.add.at(g1, grams.second, g2)
        return [np.hstack([g.sum(axis=1, keepdims=True), g]) for g in (g1, g2, g3)]
