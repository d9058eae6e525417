"""Words of new documents given those before them, by the trigram model with topics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from maxent._support.threads import single_threaded_blas
from maxent.latent._ngrams import Codes, NGrams
from maxent.latent._trigram_tables import Potentials

Array = NDArray[np.float64]
_FOLD_STEPS = 10  # iterations of L-BFGS


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

    def log_prob(self, codes: Codes, fold_in: int) -> Array:
        """Log-probabilities (n - 2,), the topics fitted anew every `fold_in` words."""
        doc, out = np.zeros(self.n_topics), []
        with single_threaded_blas():
            for lo in range(2, len(codes), fold_in):
                if lo > 4:
                    doc = self._folded(codes[:lo], doc)
                out.append(self._conditional(codes[lo - 2 : lo + fold_in], doc))
        return np.concatenate(out)

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

    def _folded(self, codes, doc):
        """Topic weights fitted to words already read, the prior on."""
        own, total = self.own, len(codes) - 2
        counts = self.grams.counts(codes)
        weight = 1.0 / (total * self.variance)
        read = [table[at] for table, (at, _) in zip(own.tables, counts.orders)]

        def both(x):
            share = np.exp(x - x.max())
            own.fill(share[None])
            Z = own.normalisers()[0]
            # units of the shares and tables cancel: three words in each of both terms
            value, mean = -np.log(Z), np.zeros(self.n_topics)
            for (_, count), rows, table, ratio in zip(
                counts.orders, read, own.tables, own.ratio
            ):
                p = rows @ share
                value += count @ np.log(p) / total
                mean += (count / p) @ rows / total
                if len(ratio):
                    mean -= ratio[:, 0] @ table / Z
            gradient = share * mean - weight * x
            return 0.5 * weight * float(x @ x) - value, -gradient

        options = {"maxiter": _FOLD_STEPS, "gtol": 1e-4}
        return minimize(both, doc, jac=True, method="L-BFGS-B", options=options).x
