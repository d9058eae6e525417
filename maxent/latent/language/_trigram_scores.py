"""Words of new documents given those before them, by the trigram model with topics."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent._support.threads import single_threaded_blas
from maxent.latent.language._ngrams import Codes, NGrams
from maxent.latent.language._trigram_tables import Potentials, TrigramTopics

Array = NDArray[np.float64]
_FOLD_STEPS = 10  # iterations of L-BFGS for words to come
_SHARE_STEPS = 100  # and for the shares of a whole document


class TrigramScores:
    """Conditional probabilities at fixed weights of the n-grams and their topics.

    Parameters
    ----------
    grams : NGrams
    tables : tuple of ndarray (n, 1 + T)
        Weights of words, bigrams, trigrams.
    variance : float
        Of the prior of a document's topic weights.
    """

    def __init__(
        self, grams: NGrams, tables: tuple[Array, Array, Array], variance: float
    ):
        self.grams, self.variance = grams, variance
        self.own = Potentials(grams, tables)
        self.n_topics = tables[0].shape[1] - 1

    def log_prob(self, codes: Codes, fold_in: int | None = None) -> Array:
        """Log-probabilities (n - 2,), the topics fitted anew every `fold_in` words.

        None: after 1, 3, 6, 12, ... words that have two before them.
        """
        doc, out = np.zeros(self.n_topics), [np.empty(0)]
        places = [*_places(len(codes), fold_in), len(codes)]
        with single_threaded_blas():
            for lo, hi in itertools.pairwise(places):
                if lo > 2:
                    doc = self._folded(codes[:lo], doc)
                out.append(self._conditional(codes[lo - 2 : hi], doc))
        return np.concatenate(out)

    def shares(self, codes: Codes) -> Array:
        """Mean posterior probabilities (T,) of the topics of a document's words."""
        with single_threaded_blas():
            doc = self._folded(codes, np.zeros(self.n_topics), _SHARE_STEPS)
        share, counts = np.exp(doc - doc.max()), self.grams.counts(codes)
        return share * self._slope(self._read(counts), share)[1] / counts.total

    def words_of_topics(self) -> Array:
        """Probabilities (T, V) of words at equal shares of all topics."""
        own = self.own
        own.fill(np.ones((1, self.n_topics)))
        own.normalisers()
        words, pairs, triples = (
            table * ratio for table, ratio in zip(own.tables, own.ratio)
        )
        own.core.add_rows(triples, self.grams.t_vw, pairs)
        own.core.add_rows(pairs, self.grams.second, words)
        return np.ascontiguousarray((words / words.sum(axis=0)).T)

    def _conditional(self, codes, doc):
        """log chi*(u, v, w) - log X*(u, v) for the third word on."""
        own, grams = self.own, self.grams
        own.fill(np.exp(doc - doc.max())[None])
        phi, psi, chi = (room[:, 0] for room in own.room)
        R, X = np.empty(len(phi)), np.empty(len(psi))
        own.core.successors(phi, psi, chi, *grams.pairs, R, X)
        bigram, trigram = grams.lookup(codes)
        top = np.where(bigram[1:] >= 0, psi[bigram[1:]], phi[codes[2:]])
        if len(chi):
            top = np.where(trigram >= 0, chi[trigram], top)
        below = np.where(bigram[:-1] >= 0, X[bigram[:-1]], R[codes[1:-1]])
        return np.log(top) - np.log(below)

    def _read(self, counts):
        """Counts of the words of a document, and the tables' rows that they take."""
        return [
            (count, table[at])
            for table, (at, count) in zip(self.own.tables, counts.orders)
        ]

    @staticmethod
    def _slope(read, share):
        """Log of the potentials of words read, and its slope in the shares."""
        value, slope = 0.0, np.zeros(len(share))
        for count, rows in read:
            p = rows @ share
            value += count @ np.log(p)
            slope += (count / p) @ rows
        return value, slope

    def _folded(self, codes, doc, steps=_FOLD_STEPS):
        """Topic weights fitted to words already read, the prior on."""
        own, total = self.own, len(codes) - 2
        weight = 1.0 / (total * self.variance)
        read = self._read(self.grams.counts(codes))

        def both(x):
            share = np.exp(x - x.max())
            own.fill(share[None])
            Z = own.normalisers()[0]
            # units of the shares and tables cancel: three words in each of both terms
            value, mean = self._slope(read, share)
            value, mean = value / total - np.log(Z), mean / total
            for table, ratio in zip(own.tables, own.ratio):
                if len(ratio):
                    mean -= ratio[:, 0] @ table / Z
            gradient = share * mean - weight * x
            return 0.5 * weight * float(x @ x) - value, -gradient

        options = {"maxiter": steps, "gtol": 1e-4}
        return minimize(both, doc, jac=True, method="L-BFGS-B", options=options).x


def _places(n, fold_in):
    """Numbers of words read at which the topics of a document of n words are fitted."""
    if fold_in is not None:
        return range(2, n, fold_in)
    counts = [0, 1, *(3 << k for k in range(n.bit_length()))]
    return [2 + count for count in counts if 2 + count < n]


def scores_of(model: Any, weights: Array) -> TrigramScores:
    """Scores of a fitted TrigramTopicModel; loaded ones are not trusted."""
    grams = _ngrams(model)
    topics = [np.asarray(t) for t in model.document_topics_]
    if any(t.size and t.dtype.kind not in "iu" for t in topics):
        raise ValueError(
            "the fitted model is inconsistent: document_topics_ must hold numbers of "
            "topics. Fit it again."
        )
    own = TrigramTopics(grams, [t.astype(np.intp) for t in topics], model.n_topics)
    check_fitted("weights_", weights, (own.n_features,))
    variance = v.check_positive("prior_variance", model.prior_variance)
    return TrigramScores(grams, own.split(weights)[0], variance)


def _ngrams(model):
    """The n-grams with weights."""
    V = len(model.vocabulary_)
    for name, n in zip(("bigrams_", "trigrams_"), (V, len(model.bigrams_))):
        rows = getattr(model, name)
        check_fitted(name, rows, (len(rows), 2), kind="i")
        keys = rows[:, 0] * n + rows[:, 1]
        if ((rows < 0) | (rows >= n)).any() or (np.diff(keys) <= 0).any():
            raise ValueError(
                f"the fitted model is inconsistent: {name} must hold numbers below "
                f"{n}, in order. Fit it again."
            )
    codes = np.sort(list(model.vocabulary_.values()))
    if not np.array_equal(codes, np.arange(V)):
        raise ValueError(
            f"the fitted model is inconsistent: vocabulary_ must number its {V} words "
            "from 0. Fit it again."
        )
    return NGrams(V, *model.bigrams_.T, *model.trigrams_.T)
