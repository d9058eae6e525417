"""Weights of the trigram model with topics, its exact likelihood and gradient.

Weights lie in one vector: for words, observed bigrams and observed trigrams a column
of their own and one per topic, then the documents' topics. A weight of a lower order
enters every n-gram of a higher order that ends in it.

Documents are treated in blocks of 32. Their topics are rows of a matrix with zeros
outside their supports, so that potentials and means are matrix products:

    potential = table share',   mean_it = table_it sum_d ratio_id share_dt / Phi

with the table of exponentials of the weights and ratio = dZ_d / dpotential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dgemm

from maxent._support.compiling import compiled
from maxent._support.threads import single_threaded_blas
from maxent.latent._log_linear import LogLinearModel, Posterior
from maxent.latent._scaling_steps import bounded, steps_of
from maxent.latent.language._ngrams import Counts, NGrams

Array = NDArray[np.float64]

# Documents of a block, for which the neighbours of an n-gram are looked up once: 459
# documents with 378 thousand n-grams take 5.0 s in blocks of 4, 2.4 s in blocks of 16
# and 1.8 s in blocks of 32. A block holds 16 bytes per document and n-gram.
WIDTH = 32

# Features of a trigram with its topics: three words, two bigrams and one trigram, each
# by itself and with a topic, and the document's three topics.
MOST_FEATURES = 15.0


class Potentials:
    """Exponentials of the weights by order, (n, T), and sums of a few documents."""

    def __init__(self, grams: NGrams, tables: tuple[Array, Array, Array]):
        self.grams, self.core = grams, compiled("trigram_sums")
        words, bigrams, trigrams = tables  # own column first, then topics
        u = words[:, :1] + words[:, 1:]
        pair = bigrams[:, :1] + bigrams[:, 1:]
        v = u[grams.second] + pair
        w = u[grams.word] + pair[grams.t_vw]
        w += trigrams[:, :1]
        w += trigrams[:, 1:]
        # one shift for all keeps exponentials in range; each word bears it once
        self.shift = max(float(x.max(initial=-np.inf)) for x in (u, v, w))
        self.tables = [np.exp(x - self.shift, out=x) for x in (u, v, w)]
        self.room: list[Array] = []
        self.ratio: list[Array] = []

    def fill(self, share: Array) -> None:
        """Potentials phi, psi, chi of documents with shares (K, T), in `room`."""
        self.room = self._tables_of(len(share), self.room)
        for table, out in zip(self.tables, self.room):
            np.matmul(table, share.T, out=out)

    def normalisers(self) -> Array:
        """Z of the documents whose potentials are in place, (K,), and `ratio`."""
        self.ratio = self._tables_of(self.room[0].shape[1], self.ratio)
        parts = (*self.room, *self.grams.pairs, *self.ratio)
        Z = self.core.multiplicities(*parts)
        if not (Z > 0).all():
            raise FloatingPointError(
                "the normaliser of a document is not positive: weights span more than "
                "double precision; lower prior_variance."
            )
        return Z

    def _tables_of(self, width, old):
        """Tables (n, width) for every order, those of the last call if they fit."""
        if old and old[0].shape[1] == width:
            return old
        return [np.empty((len(x), width)) for x in self.tables]


class TokenCounts:
    """Counts of all documents, sparse (D, n) by order; those of a block are a slice."""

    def __init__(self, counts: list[Counts], sizes: list[int]):
        self.total = sum(c.total for c in counts) / 3.0
        self.each = np.array([c.total for c in counts])
        self.orders = []
        for n, parts in zip(sizes, zip(*(c.orders for c in counts))):
            ends = np.cumsum([0, *(len(at) for at, _ in parts)])
            at = np.concatenate([at for at, _ in parts])
            values = np.concatenate([count for _, count in parts])
            table = sp.csr_array((values, at, ends), shape=(len(counts), n))
            self.orders.append(table)


class TrigramTopics(LogLinearModel):
    """The model p(u, v, w, d, topics) over observed n-grams and `topics` of documents.

    Weights come as (1, N), one start at a time.
    """

    def __init__(
        self,
        grams: NGrams,
        topics: list[NDArray[np.intp]],
        n_topics: int,
        first: int = 0,
    ):
        # `topics` may be those of a group of documents, whose weights begin at `first`
        self.grams, self.topics, self.T = grams, topics, n_topics
        self.sizes = [grams.n_words, len(grams.first), len(grams.word)]
        self.rows = np.repeat(np.arange(len(topics)), [len(t) for t in topics])
        self.columns = np.concatenate(topics)
        self.own = slice(first, first + len(self.rows))
        self.n_features = sum(self.sizes) * (n_topics + 1) + len(self.rows)

    def observe(
        self, data: list[Counts], sample_weight: ArrayLike | None = None
    ) -> TokenCounts:
        """Counts of all documents."""
        return TokenCounts(data, self.sizes)

    def split(self, x: Array) -> tuple[tuple[Array, Array, Array], Array]:
        """Tables by order, each (n, 1 + T), and the documents' weights."""
        tables, at = [], 0
        for n in self.sizes:
            tables.append(x[at : at + n * (self.T + 1)].reshape(n, self.T + 1))
            at += n * (self.T + 1)
        words, bigrams, trigrams = tables
        return (words, bigrams, trigrams), x[at:]

    def partition(self, lam: Array) -> tuple[Array, Array]:
        found = self.totals(lam[0], None, True)
        return np.array([found.log_phi]), self._features(*found.means)[None]

    def posterior(self, lam: Array, observed: TokenCounts) -> tuple[Array, Array]:
        found = self.totals(lam[0], observed, False)
        return np.array([found.numerator]), self._features(*found.targets)[None]

    def expectation(
        self, lam: Array, observed: TokenCounts
    ) -> tuple[Posterior, Array, Array]:
        """E step, log Phi and model means, in one pass over the documents."""
        found = self.totals(lam[0], observed, True)
        eta = self._features(*found.targets)[None]
        mean = self._features(*found.means)[None]
        log_phi = np.array([found.log_phi])
        numerator = np.array([found.numerator])
        return Posterior(numerator, eta, numerator - log_phi), log_phi, mean

    def totals(self, x: Array, observed: Any, means: bool) -> Totals:
        """Sums over all documents at weights x."""
        total = None if observed is None else observed.total
        return Totals(total, *sums_of(self, x, observed, total, means))

    def scaled(
        self, lam: Array, target: Array, weight: Array, method: str, bound: float
    ) -> Array:
        """Weights after one step of generalised iterative scaling."""
        if method != "gis":
            raise ValueError(
                f"TrigramTopicModel has no M step {method!r}; use 'gis' or 'lbfgs'."
            )
        mean = self.partition(lam)[1]
        values = np.array([MOST_FEATURES])
        return bounded(
            lam, steps_of(mean[..., None], values, target, lam, weight), bound
        )

    def _features(self, spreads, documents):
        """Means of all features: those of a topic feed the features of lower order."""
        words, pairs, triples = spreads
        core = compiled("trigram_sums")
        core.add_rows(triples, self.grams.t_vw, pairs)
        core.add_rows(pairs, self.grams.second, words)
        out = np.empty(self.n_features)
        tables, docs = self.split(out)
        for table, spread in zip(tables, spreads):
            np.sum(spread, axis=1, out=table[:, 0])
            table[:, 1:] = spread
        docs[:] = documents
        return out


def sums_of(
    model: TrigramTopics, x: Array, observed: Any, total: float | None, means: bool
) -> tuple[Any, ...]:
    """Sums over a group of documents: the arguments of :class:`Totals`."""
    sums = _Sums(model, x, observed, total)
    Z, numerator = sums.run(means)
    shift = sums.shift if model.own.start == 0 else 0.0  # of all groups the same
    nothing = None, (None, None, None)
    mass_doc, mass = sums.means() if means else nothing
    text_doc, text = sums.targets() if observed is not None else nothing
    return shift, Z, numerator, mass_doc, text_doc, *mass, *text


class Totals:
    """Sums over groups of documents, and the means that follow from them.

    Parameters
    ----------
    total : float or None
        Tokens of all documents.
    shift : float
        Log of the unit of a potential.
    Z, numerator : float
        Normaliser in these units, and log of the potentials of the text.
    mass_doc, text_doc : ndarray
        Means of the documents' topics, not normalised, and given the text.
    *tables : ndarray (n, T)
        The same by order of the n-grams: three of the model, three given the text.
    """

    def __init__(self, total, shift, Z, numerator, mass_doc, text_doc, *tables):
        self.log_phi, self.numerator = np.nan, np.nan
        tables = [a if a is None else np.require(a, requirements="W") for a in tables]
        if mass_doc is not None:
            self.log_phi = float(np.log(Z)) + 3.0 * shift
            for table in tables[:3]:
                table *= 1.0 / Z
            self.means = tables[:3], mass_doc * (1.0 / Z)
        if total is not None:
            self.numerator = numerator / total
            self.targets = tables[3:], text_doc


class _Sums:
    """One pass over a group of documents: normaliser, means of model and text."""

    def __init__(
        self, model: TrigramTopics, x: Array, observed: Any, total: float | None
    ):
        tables, docs = model.split(x)
        self.n_weights = len(docs)
        self.model, self.observed, self.total = model, observed, total
        self.own = Potentials(model.grams, tables)
        D = len(model.topics)
        self.share = np.full((D, model.T), -np.inf)
        self.share[model.rows, model.columns] = docs[model.own]
        self.top = self.share.max(axis=1)
        self.share = np.exp(self.share - self.top[:, None])
        # Z of a document in units that all have in common
        highest = docs.max()
        self.unit = np.exp(3.0 * (self.top - highest))
        self.shift = self.own.shift + highest
        self.mass: list[Array] = []
        self.mass_doc = np.zeros((D, model.T))
        self.text = []
        if observed is not None:
            self.text = [sp.csr_array(table) for table in observed.orders]
            for table in self.text:
                table.data = np.empty(table.nnz)

    def run(self, means: bool) -> tuple[float, float]:
        """Pass over the blocks in order: bits do not depend on threads.

        Returns the normaliser and the log of the potentials of the text.
        """
        Z, numerator = 0.0, 0.0
        if means:
            self.mass = [np.zeros((n, self.model.T)) for n in self.model.sizes]
        with single_threaded_blas():
            for lo in range(0, len(self.share), WIDTH):
                part = slice(lo, lo + WIDTH)
                share, unit = self.share[part], self.unit[part]
                self.own.fill(share)
                if self.observed is not None:
                    numerator += self._read(lo, len(share))
                if means:
                    Z += float(unit @ self.own.normalisers())
                    self._add(part, unit[:, None] * share)
        if self.observed is not None:
            numerator += float(self.observed.each @ (self.own.shift + self.top))
        return Z, numerator

    def _read(self, lo, width):
        """Log of the potentials of a block's tokens; counts over them in `text`."""
        total = 0.0
        for counts, text, room in zip(self.observed.orders, self.text, self.own.room):
            ends = counts.indptr[lo : lo + width + 1]
            part = slice(ends[0], ends[-1])
            document = np.repeat(np.arange(width), np.diff(ends))
            p = room[counts.indices[part], document]
            total += float(counts.data[part] @ np.log(p))
            np.divide(counts.data[part], p * self.total, out=text.data[part])
        return total

    def _add(self, part, share):
        """Add a block's ratio share' to the masses by topic, and its documents' own."""
        for ratio, table, mass in zip(self.own.ratio, self.own.tables, self.mass):
            if len(ratio):
                # in place: the transposes are in Fortran's order
                parts = {"beta": 1.0, "c": mass.T, "overwrite_c": True}
                dgemm(1.0, share.T, ratio.T, **parts)
                self.mass_doc[part] += share * (ratio.T @ table)

    def means(self) -> tuple[Array, list[Array]]:
        """The model's means, not normalised: of documents' topics, and by order."""
        for mass, table in zip(self.mass, self.own.tables):
            mass *= table
        return self._of_weights(self.mass_doc), self.mass

    def targets(self) -> tuple[Array, list[Array]]:
        """Means given the text, of documents' topics, and by order and topic."""
        found, docs = [], np.zeros_like(self.share)
        for table, text in zip(self.own.tables, self.text):
            part = text.T @ self.share
            part *= table
            found.append(part)
            docs += self.share * (text @ table)
        return self._of_weights(docs), found

    def _of_weights(self, docs):
        """Entries of the documents' weights, those of other groups zero."""
        out = np.zeros(self.n_weights)
        out[self.model.own] = docs[self.model.rows, self.model.columns]
        return out
