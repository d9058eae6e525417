"""Where the fit of the trigram model with topics starts."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent.latent.language._trigram_tables import NGrams, TrigramTopics

Array = NDArray[np.float64]
PERTURBATION = 0.5  # standard deviation of what is added to the words' topic weights


class Factors:
    """Non-negative factors of the documents' counts of words, Kullback-Leibler loss.

    That is probabilistic latent semantic analysis: `documents` has the strength of each
    topic in each document, `share` the frequencies of the words.
    """

    def __init__(
        self, codes: list[NDArray[np.int64]], n_words: int, n_topics: int, seed: int
    ):
        from sklearn.decomposition import NMF
        from sklearn.exceptions import ConvergenceWarning

        rows = sp.csr_array(
            (
                np.ones(sum(map(len, codes))),
                np.concatenate(codes),
                np.cumsum([0, *map(len, codes)]),
            ),
            shape=(len(codes), n_words),
        )
        rows.sum_duplicates()
        model = NMF(
            n_topics,
            init="random",
            beta_loss="kullback-leibler",
            solver="mu",
            random_state=seed,
            max_iter=100,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = model.fit_transform(rows)
        self.documents = W * model.components_.sum(axis=1) + 1e-10
        share = np.asarray(rows.sum(axis=0)).ravel() + 0.5
        self.share = share / share.sum()

    def supports(self, m: int) -> list[NDArray[np.intp]]:
        """The m strongest topics of each document."""
        m = min(m, self.documents.shape[1])
        return [np.sort(np.argsort(-w, kind="stable")[:m]) for w in self.documents]


def first_weights(
    model: TrigramTopics,
    factors: Factors,
    seen: tuple[Array, Array],
    variance: float,
) -> Array:
    """Weights near interpolated frequencies, documents' topics near their factors.

    Topics have no words of their own yet: those of the factors (within three nats of
    the words' frequencies) start a fit lower, and after 60 iterations on 90 documents
    it is still the lower one.
    """
    x = np.zeros(model.n_features)
    tables, docs = model.split(x)
    for table, column in zip(
        tables, frequencies(model.grams, factors.share, *seen, variance)
    ):
        table[:, 0] = column
    # a constant for all words changes log Phi only, and the penalty
    tables[0][:, 0] -= tables[0][:, 0].mean()
    parts = [np.log(w[t] / w[t].sum()) for w, t in zip(factors.documents, model.topics)]
    docs[:] = np.clip(np.concatenate(parts), -5.0, 0.0)
    return x


def perturbed(model: TrigramTopics, x: Array, rng: np.random.Generator) -> Array:
    """Weights x with other topics of the words and of the documents."""
    x = x.copy()
    tables, docs = model.split(x)
    for part in (tables[0][:, 1:], docs):
        part += rng.normal(scale=PERTURBATION, size=part.shape)
    return x


def frequencies(
    grams: NGrams, share: Array, pairs: Array, triples: Array, variance: float
) -> tuple[Array, Array, Array]:
    """Weights of words, bigrams and trigrams that start near their frequencies.

    Interpolated frequencies (Witten & Bell 1991), p(w | v) in proportion to
    c(v, w) + n(v) p(w) with n(v) different words after v, ask for the weight
    x0 = log p(w | v) / p(w), up to normalisation; with the prior, x maximises
    c (x - exp(x - x0)) - x^2 / (2 variance).
    """

    def own(count, after, history, before):
        types = np.bincount(history, minlength=after)
        full = np.log1p(count / (types[history] * before))
        x = full.copy()
        for _ in range(20):  # Newton from the right of a concave function's root
            pull = count * np.exp(x - full)
            x -= (count - pull - x / variance) / (-pull - 1.0 / variance)
        return x, full, types

    bigram, full, types = own(pairs, grams.n_words, grams.first, share[grams.second])
    total = np.bincount(grams.first, weights=pairs, minlength=grams.n_words)
    back = types / np.maximum(total + types, 1.0)  # mass left to the unigram
    p = np.exp(full) * share[grams.second] * back[grams.first]
    trigram = own(triples, len(pairs), grams.t_uv, p[grams.t_vw])[0]
    # what follows a word multiplies its frequency in the joint distribution by R / S
    excess = share[grams.second] * np.expm1(bigram)
    R = 1.0 + np.bincount(grams.first, weights=excess, minlength=grams.n_words)
    return np.log(share / R), bigram, trigram
