"""Trigrams and topics in one log-linear model of language."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.callers import user_stacklevel
from maxent._support.fitted import FittedState, fresh_state
from maxent._support.progress import CallbacksMixin, progress_of, with_progress
from maxent._support.random_state import draw_seed
from maxent._support.reports import Report, tell
from maxent._support.results import Status
from maxent.latent._trigram_tables import (
    Counts,
    NGrams,
    Potentials,
    TrigramLikelihood,
)

Array = NDArray[np.float64]
UNKNOWN = "<unk>"


class TrigramTopicModel(CallbacksMixin, FittedState, BaseEstimator):
    """Language model of trigrams and hidden topics, log-linear.

    Three words in a row, their document and a topic for each word have weights for
    words, observed bigrams and observed trigrams, each also per topic, and for the
    topics of a document. All sums over words and topics are exact.

    Parameters
    ----------
    n_topics : int, default=20
        Topics, >= 1.
    topics_per_document : int, default=5
        Topics that a document keeps: the strongest of a factorisation of the counts
        (non-negative, Kullback-Leibler loss).
    vocabulary_size : int, default=10000
        Most frequent words that are kept; all others are "<unk>".
    min_count : int, default=1
        Trigrams seen less often have no weight of their own.
    prior_variance : float, default=1.0
        Variance of the Gaussian prior of each weight.
    max_iter : int, default=50
        Bound on the iterations of L-BFGS.
    tol : float, default=1e-5
        Relative gradient that ends the fit.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the topics' start.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    vocabulary_ : dict {str: int}
        Numbers of words.
    log_likelihood_ : float
        Average of log p(u, v, w, d) over trigrams, nats.
    objective_, objective_history_ : float, ndarray
        The log-likelihood less the penalty; its value after each iteration.
    residual_ : float
        Largest relative gradient.
    weights_ : ndarray
        All weights.
    n_iter_, converged_
        Iterations; whether the gradient is within `tol`.

    See Also
    --------
    em_is : The general principle.

    Notes
    -----
    An evaluation costs O(documents x n-grams x topics_per_document). One start; the
    choice among many (regularised entropy) is not offered.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), section 8.

    Examples
    --------
    >>> from maxent.latent import TrigramTopicModel
    >>> documents = ["a b a b a c a b".split(), "x y x y z x y x".split()] * 3
    >>> model = TrigramTopicModel(2, 1, max_iter=200, random_state=0).fit(documents)
    >>> model.perplexity(["a b a b".split()]) < 4
    True
    """

    def __init__(
        self,
        n_topics: int = 20,
        topics_per_document: int = 5,
        *,
        vocabulary_size: int = 10_000,
        min_count: int = 1,
        prior_variance: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_topics = n_topics
        self.topics_per_document = topics_per_document
        self.vocabulary_size = vocabulary_size
        self.min_count = min_count
        self.prior_variance = prior_variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    @fresh_state
    @with_progress
    def fit(self, X: Sequence[Sequence[str]], y: Any = None) -> TrigramTopicModel:
        """Fit the weights to documents.

        Parameters
        ----------
        X : sequence of sequences of str
            Documents, each a list of at least three words.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For documents that are empty or are text instead of lists of words.

        Warns
        -----
        ConvergenceWarning
            If the gradient is above `tol`.
        """
        for name in ("n_topics", "topics_per_document", "vocabulary_size", "min_count"):
            v.check_count(name, getattr(self, name))
        variance = v.check_positive("prior_variance", self.prior_variance)
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        documents = check_documents(X)
        counted = Counter(word for document in documents for word in document)
        counted.pop(UNKNOWN, None)
        kept = [w for w, _ in counted.most_common(self.vocabulary_size - 1)]
        self.vocabulary_ = {w: i for i, w in enumerate([UNKNOWN, *sorted(kept)])}
        codes = [self._codes(document) for document in documents]
        seen = self._index(codes)
        counts = [self._counts(c) for c in codes]
        topics, start = self._start(codes, seen, variance)
        likelihood = TrigramLikelihood(self._grams, counts, topics, self.n_topics)
        weight = 1.0 / (likelihood.total * variance)
        self._climb(likelihood, start(likelihood), weight, tol, max_iter)
        self.document_topics_ = [t.tolist() for t in topics]
        return self

    # -- n-grams -----------------------------------------------------------------------
    def _codes(self, document):
        return np.array([self.vocabulary_.get(w, 0) for w in document], dtype=np.int64)

    def _index(self, codes):
        """Number the bigrams, and the trigrams seen `min_count` times."""
        V = len(self.vocabulary_)
        pairs = np.concatenate([c[:-1] * V + c[1:] for c in codes])
        self._bigrams, pair_counts = np.unique(pairs, return_counts=True)
        B = len(self._bigrams)
        first = [np.searchsorted(self._bigrams, c[:-1] * V + c[1:]) for c in codes]
        triples = np.concatenate([b[:-1] * B + b[1:] for b in first])
        found, number = np.unique(triples, return_counts=True)
        kept = number >= self.min_count
        self._trigrams = found[kept]
        uv, vw = np.divmod(self._trigrams, B)
        second = self._bigrams % V
        self._grams = NGrams(V, self._bigrams // V, second, uv, vw, second[vw])
        return pair_counts.astype(np.float64), number[kept].astype(np.float64)

    def _lookup(self, codes):
        """Numbers of bigrams (n - 1,) and trigrams (n - 2,) of words, -1 if none."""
        V, B = len(self.vocabulary_), len(self._bigrams)
        bigram = _find(self._bigrams, codes[:-1] * V + codes[1:])
        both = (bigram[:-1] >= 0) & (bigram[1:] >= 0)
        wanted = np.where(both, bigram[:-1] * B + bigram[1:], -1)
        return bigram, _find(self._trigrams, wanted)

    def _counts(self, codes):
        """Which potential every word of every trigram takes."""
        bigram, trigram = self._lookup(codes)
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

    # -- start and ascent --------------------------------------------------------------
    def _start(self, codes, seen, variance):
        """Topics of the documents, and the first weights as a function."""
        from sklearn.decomposition import NMF
        from sklearn.exceptions import ConvergenceWarning

        V, T = len(self.vocabulary_), self.n_topics
        rows = [np.bincount(c, minlength=V) for c in codes]
        table = sp.csr_array(np.array(rows, dtype=np.float64))
        model = NMF(
            T,
            init="random",
            beta_loss="kullback-leibler",
            solver="mu",
            random_state=draw_seed(self.random_state) % 2**32,
            max_iter=100,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = model.fit_transform(table)
        H = model.components_ + 1e-10
        W = W * H.sum(axis=1) + 1e-10
        H = H / H.sum(axis=1, keepdims=True)
        share = np.asarray(table.sum(axis=0)).ravel() + 0.5
        share /= share.sum()
        m = min(self.topics_per_document, T)
        topics = [np.sort(np.argsort(-w, kind="stable")[:m]) for w in W]

        def weights(likelihood):
            x = np.zeros(likelihood.size)
            tables, docs = likelihood.split(x)
            own = frequencies(self._grams, share, *seen, variance)
            for table, column in zip(tables, own):
                table[:, 0] = column
            # a topic's word weights relative to all words, within three nats
            tables[0][:, 1:] = np.clip(np.log(H.T / share[:, None]), -3.0, 3.0)
            parts = [np.log(w[t] / w[t].sum()) for w, t in zip(W, topics)]
            docs[:] = np.clip(np.concatenate(parts), -5.0, 0.0)
            return x

        return topics, weights

    def _climb(self, likelihood, x, weight, tol, max_iter):
        history, seen = [], [0.0, 0.0]
        # The curvature of log Phi along weight i is near its mean, which spans as many
        # magnitudes as counts do; in units of its root L-BFGS needs a fraction of the
        # iterations.
        unit = 1.0 / np.sqrt(likelihood.target(x) + weight)

        def both(z):
            x = unit * z
            L, g = likelihood.evaluate(x)
            value, gradient = L - 0.5 * weight * float(x @ x), g - weight * x
            seen[:] = [value, float(np.abs(gradient).max())]
            return -value, -unit * gradient

        def store(model, x):
            model.weights_ = x.copy()
            model._tables = tuple(t.copy() for t in likelihood.split(x)[0])

        callback, stopped = progress_of(self, store), False

        def progress(z):
            nonlocal stopped
            history.append(seen[0])
            value, left = seen
            report = Report(len(history), value, left, "lbfgs", left, tol, "gradient")
            report = replace(report, last=left <= tol, solution=lambda: unit * z)
            stopped = tell(callback, report)
            if stopped or left <= tol:
                raise StopIteration

        options = {"maxiter": max_iter, "maxcor": 5, "gtol": 0.0, "ftol": 0.0}
        result = minimize(
            *(both, x / unit),
            jac=True,
            method="L-BFGS-B",
            callback=progress,
            options=options,
        )
        x = unit * result.x
        store(self, x)
        self.n_iter_ = int(result.nit)
        self.objective_ = -float(result.fun)
        penalty = 0.5 * weight * float(x @ x)
        self.log_likelihood_ = self.objective_ + penalty
        self.objective_history_ = np.array(history)
        self.residual_ = float(np.abs(result.jac / unit).max())
        self.converged_ = self.residual_ <= tol
        status = Status.STOPPED if stopped else Status.MAX_ITER
        status = Status.CONVERGED if self.converged_ else status
        end = f"objective {self.objective_:.6g}, gradient {self.residual_:.1e}"
        self._progress.closing(status, "lbfgs", self.n_iter_, end)
        if not (self.converged_ or stopped):
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"TrigramTopicModel stopped after {self.n_iter_} iterations: gradient "
                f"{self.residual_:.2e} reached, tol={tol:g} asked; raise max_iter (now "
                f"{max_iter}) or tol.",
                ConvergenceWarning,
                stacklevel=user_stacklevel(),
            )

    # -- new documents -----------------------------------------------------------------
    def perplexity(self, X: Sequence[Sequence[str]], fold_in: int = 200) -> float:
        """Perplexity of new documents, given the words before each.

        Parameters
        ----------
        X : sequence of sequences of str
            Documents of at least three words; unknown ones count as "<unk>".
        fold_in : int, default=200
            The topics of a document are fitted anew to its words already read after so
            many words; never to the word that is scored.

        Returns
        -------
        float
            exp of minus the mean of log p(w_i | w_{i-2}, w_{i-1}, document).
        """
        scores = [self.log_prob(document, fold_in) for document in check_documents(X)]
        return float(np.exp(-np.concatenate(scores).mean()))

    def log_prob(self, document: Sequence[str], fold_in: int = 200) -> Array:
        """Log-probability of each word of a document given the two before it.

        Parameters
        ----------
        document : sequence of str
            At least three words.
        fold_in : int, default=200
            As for :meth:`perplexity`.

        Returns
        -------
        ndarray (n_words - 2,)
            Nats.
        """
        check_is_fitted(self)
        v.check_count("fold_in", fold_in)
        codes = self._codes(check_documents([document])[0])
        own = Potentials(self._grams, self._tables)
        doc, out = np.zeros(self.n_topics), []
        for lo in range(2, len(codes), fold_in):
            if lo > 4:
                doc = self._folded(own, codes[:lo], doc)
            out.append(self._conditional(own, codes[lo - 2 : lo + fold_in], doc))
        return np.concatenate(out)

    def _conditional(self, own, codes, doc):
        """log chi*(u, v, w) - log X*(u, v) for the third word on."""
        topics = np.arange(self.n_topics)
        own.document(topics, doc)
        phi, psi, chi = own.room
        R, X = np.empty(len(phi)), np.empty(len(psi))
        own.core.successors(phi, psi, chi, *self._grams.pairs, R, X)
        bigram, trigram = self._lookup(codes)
        top = np.where(bigram[1:] >= 0, psi[bigram[1:]], phi[codes[2:]])
        if len(chi):
            top = np.where(trigram >= 0, chi[trigram], top)
        below = np.where(bigram[:-1] >= 0, X[bigram[:-1]], R[codes[1:-1]])
        return np.log(top) - np.log(below)

    def _folded(self, own, codes, doc):
        """Topic weights fitted to words already read, the prior on."""
        counts, topics = self._counts(codes), np.arange(self.n_topics)
        total = len(codes) - 2
        weight = 1.0 / (total * self.prior_variance)

        def both(x):
            log_Z, share, Z = own.document(topics, x)
            value = own.log_numerator(counts, x) / total - log_Z
            row = np.zeros(self.n_topics)
            for (at, count), mass, table, room in zip(
                counts.orders, own.mass, own.tables, own.room
            ):
                m = -mass / Z
                m[at] += count / total
                own.core.spread(
                    m, table, topics, share, room, np.zeros_like(table), row
                )
            return -value + 0.5 * weight * float(x @ x), -row + weight * x

        options = {"maxiter": 10, "gtol": 1e-4}
        return minimize(both, doc, jac=True, method="L-BFGS-B", options=options).x


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


def check_documents(documents: Any) -> list[list[str]]:
    """Documents as lists of words, at least three in each."""
    if isinstance(documents, str) or not hasattr(documents, "__iter__"):
        raise ValueError(
            f"X={v.shown(documents)} must be a list of documents, each a list of words."
        )
    out = []
    for i, document in enumerate(documents):
        if isinstance(document, str):
            raise ValueError(f"X[{i}] is a string; give its words: X[{i}].split().")
        words = list(document)
        if len(words) < 3:
            raise ValueError(
                f"X[{i}] has {len(words)} words; a trigram model needs three or "
                "more in each document: drop it."
            )
        out.append(words)
    if not out:
        raise ValueError("X holds no document.")
    return out


def _find(known, wanted):
    """Positions of values in a sorted array, -1 where they are not."""
    if not len(known):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)
