"""Trigrams and topics in one log-linear model of language."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.random_state import as_generator, draw_seed
from maxent._support.results import Status
from maxent._support.threads import with_single_threaded_blas
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.latent._likelihood import Likelihood
from maxent.latent._penalty import L2
from maxent.latent._pool import SELECTIONS, CandidatePool, Selection
from maxent.latent.language._ngrams import NGrams
from maxent.latent.language._topics_of_words import TopicsOfWords, checked_finite
from maxent.latent.language._trigram_fit import METHODS, climb
from maxent.latent.language._trigram_partitions import (
    Documents,
    check_document,
    check_documents,
    coded,
)
from maxent.latent.language._trigram_scores import scores_of
from maxent.latent.language._trigram_start import Factors, first_weights, perturbed

Array = NDArray[np.float64]
UNKNOWN = "<unk>"
STARTS = ("frequencies", "zero", "random")


class TrigramTopicModel(CandidatePool, TopicsOfWords, BaseEstimator):
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
    n_init : int, default=1
        Starts. The second and later ones add normal deviates (of standard deviation
        one half) to the topics of words and documents.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among several starts: largest regularised entropy, or penalised
        likelihood (maximum a posteriori).
    method : {"lbfgs", "gis"}, default="lbfgs"
        "lbfgs" climbs the penalised likelihood itself; "gis" is EM-IS, with `inner`
        steps of generalised iterative scaling after each E step, and takes far more
        passes.
    inner : int, default=20
        Steps of each M step of "gis".
    init : {"frequencies", "zero", "random"}, default="frequencies"
        Where the first start is: interpolated frequencies and the factorisation; all
        weights zero; or zero with the deviates of later starts.
    max_iter : int, default=500
        Bound on the iterations of L-BFGS, or on the E steps, of which "gis" may need
        thousands.
    tol : float, default=1e-5
        Relative gradient that ends the fit.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the factorisation and of the starts.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    vocabulary_ : dict {str: int}
        Numbers of words.
    bigrams_ : ndarray (n_bigrams, 2)
        Words of the bigrams that have weights.
    trigrams_ : ndarray (n_trigrams, 2)
        Bigrams, by number, that the trigrams with weights begin and end with.
    document_topics_ : list of list of int
        Topics of each training document.
    weights_ : ndarray
        All weights of the chosen start.
    components_ : ndarray (n_topics, n_words)
        Probabilities of the words in each topic, rows of sum 1, words as numbered by
        `vocabulary_`: in documents that have all topics alike.
    log_likelihood_, objective_, entropy_, residual_ : float
        Of the chosen start: average of log p(u, v, w, d) over trigrams, the same less
        the penalty, joint entropy of the model, relative gradient.
    objective_history_ : ndarray
        Objective after each of its iterations.
    candidates_ : dict of ndarray (n_init,)
        Columns "log_likelihood", "objective", "entropy", "regularized_entropy",
        "residual", "n_iter" and "reason" ("" if the gradient is within `tol`).
    selected_ : int
        Row of the chosen one, among those that have converged if any has.
    candidate_weights_ : dict {str: ndarray}
        Weights by row, of the candidates that one of the choices keeps.
    candidate_histories_ : list of ndarray
        Objectives after each iteration, by row.
    n_iter_, converged_
        Iterations; whether the gradient is within `tol`.

    See Also
    --------
    em_is : The general principle.

    Notes
    -----
    A pass costs O(documents x n-grams x n_topics) and holds about 30 numbers a weight.
    The topics that documents keep are the same for all starts, which are candidates of
    one model. Where none has converged their entropies are the models' own, but no
    property of feasible points: the choice by entropy is then one among unfinished
    fits, which a warning says.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), section 8.

    Examples
    --------
    >>> from maxent.latent import TrigramTopicModel
    >>> documents = ["a b a b a c a b".split(), "x y x y z x y x".split()] * 3
    >>> model = TrigramTopicModel(2, 1, random_state=0).fit(documents)
    >>> model.perplexity(["a b a b".split()]) < 4
    True
    >>> sorted(model.top_words(2))
    [['a', 'b'], ['x', 'y']]
    """

    _scores: Any = None  # of the weights that were asked last

    def __init__(
        self,
        n_topics: int = 20,
        topics_per_document: int = 5,
        *,
        vocabulary_size: int = 10_000,
        min_count: int = 1,
        prior_variance: float = 1.0,
        n_init: int = 1,
        selection: Selection = "entropy",
        method: Literal["lbfgs", "gis"] = "lbfgs",
        inner: int = 20,
        init: Literal["frequencies", "zero", "random"] = "frequencies",
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_topics = n_topics
        self.topics_per_document = topics_per_document
        self.vocabulary_size = vocabulary_size
        self.min_count = min_count
        self.prior_variance = prior_variance
        self.n_init = n_init
        self.selection = selection
        self.method = method
        self.inner = inner
        self.init = init
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
    @with_single_threaded_blas
    def fit(self, X: Iterable[Sequence[str]], y: Any = None) -> TrigramTopicModel:
        """Fit the weights to documents.

        Parameters
        ----------
        X : sequence of sequences of str, or dask.bag.Bag of them
            Documents, each a list of at least three words. Passes over a bag visit its
            partitions where they are: see :doc:`/guide/dask`.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For documents that are empty or are text instead of lists of words, and
            for words that are no strings.

        Warns
        -----
        ConvergenceWarning
            If the gradient of every start is above `tol`.
        """
        for name in (
            *("n_topics", "topics_per_document", "vocabulary_size", "min_count"),
            *("n_init", "inner"),
        ):
            v.check_count(name, getattr(self, name))
        v.check_choice("selection", self.selection, SELECTIONS)
        v.check_choice("method", self.method, METHODS)
        v.check_choice("init", self.init, STARTS)
        variance = v.check_positive("prior_variance", self.prior_variance)
        v.check_stop(self.tol, self.max_iter)
        documents = Documents(X)
        say = self._progress.say
        documents.counted.pop(UNKNOWN, None)
        kept = [w for w, _ in documents.counted.most_common(self.vocabulary_size - 1)]
        self.vocabulary_ = {w: i for i, w in enumerate([UNKNOWN, *sorted(kept)])}
        V = len(self.vocabulary_)
        codes = documents.codes(self.vocabulary_)
        grams, seen = NGrams.of(codes, V, self.min_count)
        self.bigrams_ = np.column_stack([grams.first, grams.second])
        self.trigrams_ = np.column_stack([grams.t_uv, grams.t_vw])
        seed = draw_seed(self.random_state) % 2**32
        words = sum(map(len, codes))
        say(f"{words} words, {len(grams.first)} bigrams, {len(grams.word)} trigrams")
        say(f"factorisation of the counts by {self.n_topics} topics")
        factors = Factors(codes, V, self.n_topics, seed)
        topics = factors.supports(self.topics_per_document)
        self.document_topics_ = [t.tolist() for t in topics]
        model = documents.topics(grams, topics, self.n_topics)
        say(f"first weights: {model.n_features}, init={self.init!r}")
        weight = np.full(model.n_features, 1.0 / (model.total * variance))
        start = np.zeros(model.n_features)
        if self.init == "frequencies":
            start = first_weights(model, factors, seen, variance)
        say("first pass over the documents")
        rng = as_generator(self.random_state)
        self._climb(Likelihood(model, model, L2.of_weight(weight)), start, rng)
        return self

    # -- starts and choice -------------------------------------------------------------
    def _climb(self, likelihood, start, rng):
        """Climb from every start; keep the weights of both choices only."""
        ends = []
        self.candidate_weights_, self.candidate_histories_ = {}, []
        options = self.method, self.inner, self.tol, self.max_iter
        for i, own in enumerate(rng.spawn(self.n_init)):
            moved = i > 0 or self.init == "random"
            x = perturbed(likelihood.model, start, own) if moved else start
            with self._progress.group("start") if self.n_init > 1 else nullcontext():
                callback = progress_of(self, _store)
                end, history = climb(likelihood, x, *options, callback)
            self.candidate_weights_[str(i)] = end.lam
            self.candidate_histories_.append(history)
            ends.append(end)
            self.candidates_ = _table(ends, self.tol)
            best = {str(self._best(selection)) for selection in SELECTIONS}
            for k in set(self.candidate_weights_) - best:
                del self.candidate_weights_[k]
            if self._progress.stopped:
                break
            end.lam = end.target = end.at_bound = np.empty(0)
        self._choose(self.selection)
        self._end(ends)

    def _best(self, selection):
        """The start to keep: of those that have converged, or of all if none has."""
        column = "regularized_entropy" if selection == "entropy" else "objective"
        values, met = self.candidates_[column], self.candidates_["reason"] == ""
        among = np.flatnonzero(met) if met.any() else np.arange(len(met))
        return int(among[np.argmax(values[among])])

    def _of_candidates(self):
        return {"candidate_histories_": self.candidate_histories_}

    def _keep(self, i):
        self.n_iter_ = int(self.candidates_["n_iter"][i])
        self.objective_history_ = self.candidate_histories_[i]
        self.converged_ = bool(self.candidates_["reason"][i] == "")

    def _end(self, ends):
        """Closing line, and a warning if nothing has converged."""
        stopped = any(end.status is Status.STOPPED for end in ends)
        status = Status.STOPPED if stopped else ends[self.selected_].status
        end = f"objective {self.objective_:.6g}, gradient {self.residual_:.1e}"
        self._progress.closing(status, self.method, self.n_iter_, end)
        if self.converged_ or stopped:
            return
        from sklearn.exceptions import ConvergenceWarning

        several = f"; none of {len(ends)} starts has converged" if len(ends) > 1 else ""
        warnings.warn(
            f"TrigramTopicModel stopped after {self.n_iter_} iterations: gradient "
            f"{self.residual_:.2e} reached, tol={self.tol:g} asked{several}; raise "
            f"max_iter (now {self.max_iter}) or tol.",
            ConvergenceWarning,
            stacklevel=user_stacklevel(),
        )

    # -- new documents -----------------------------------------------------------------
    def perplexity(
        self, X: Sequence[Sequence[str]], fold_in: int | None = None
    ) -> float:
        """Perplexity of new documents, given the words before each.

        Parameters
        ----------
        X : sequence of sequences of str
            Documents, each a list of words; unknown ones count as "<unk>". Documents of
            fewer than three words have none to score.
        fold_in : int, optional
            The topics of a document are fitted anew to its words already read after so
            many words; never to the word that is scored. None: after 1, 3, 6, 12 and so
            on, each time twice as many, which costs little and loses little.

        Returns
        -------
        float
            exp of minus the mean of log p(w_i | w_{i-2}, w_{i-1}, document).

        Raises
        ------
        ValueError
            If no document has three words.
        """
        documents = check_documents(X, least=0)
        scores = np.concatenate([self.log_prob(words, fold_in) for words in documents])
        if not len(scores):
            raise ValueError(
                "X has no document of three words; give one, for the first two words "
                "of a document are not scored."
            )
        return float(np.exp(-scores.mean()))

    def score(self, X: Sequence[Sequence[str]], y: Any = None) -> float:
        """Mean log-probability of a word of new documents, for searches of parameters.

        Parameters
        ----------
        X : sequence of sequences of str
            As for :meth:`perplexity`, which is exp of minus this.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats; larger is better.
        """
        return -float(np.log(self.perplexity(X)))

    @allow_underflow
    def log_prob(self, document: Sequence[str], fold_in: int | None = None) -> Array:
        """Log-probability of each word of a document given the two before it.

        Parameters
        ----------
        document : sequence of str
            Words; unknown ones count as "<unk>".
        fold_in : int, optional
            As for :meth:`perplexity`.

        Returns
        -------
        ndarray (n_words - 2,)
            Nats; empty if there are fewer than three words.
        """
        check_is_fitted(self)
        if fold_in is not None:
            v.check_count("fold_in", fold_in)
        words = check_document("document", document, least=0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scorer = self._scorer()  # checks the vocabulary too
            found = scorer.log_prob(coded(words, self.vocabulary_), fold_in)
        return checked_finite(found)

    @property
    def weights_(self) -> Array:
        """All weights of the chosen start."""
        row = str(self.selected_)
        if row not in self.candidate_weights_:
            raise ValueError(
                "the fitted model is inconsistent: candidate_weights_ has no row "
                f"{row}. Fit it again."
            )
        return self.candidate_weights_[row]

    def _scorer(self):
        """Probabilities at the chosen weights; made once."""
        weights = self.weights_
        if self._scores is None or self._scores[0] is not weights:
            self._scores = weights, scores_of(self, weights)
        return self._scores[1]

    def __getstate__(self):
        return super().__getstate__() | {"_scores": None}


def _store(model, x):
    """Make weights that an ascent has reached the model."""
    model.candidate_weights_, model.selected_ = {"0": x.copy()}, 0


def _table(ends, tol):
    """Columns of `candidates_`."""
    table = {
        name: np.array([getattr(end, name) for end in ends])
        for name in ("log_likelihood", "objective", "entropy", "residual", "n_iter")
    }
    cost = table["log_likelihood"] - table["objective"]
    table["regularized_entropy"] = table["entropy"] - cost
    met = table["residual"] <= tol
    table["reason"] = np.where(met, "", "not_converged")
    return table
