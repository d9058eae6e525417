"""MEDSequenceOutlierDetector: hidden Markov models trained to a level per sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Number
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.frames import check_names_of_lists
from maxent._inputs.sequence_layout import holds_numbers
from maxent._inputs.sequences import Sequences, symbol_sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.fitted import check_scores, check_value, fresh_state
from maxent._support.progress import with_progress
from maxent._support.random_state import as_generator
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    MarginName,
    NDArray,
    RandomState,
)
from maxent.discrimination.detection._chain_rounds import (
    CategoricalChains,
    ChainProblem,
    GaussianChains,
)
from maxent.discrimination.detection._latent_rounds import baselines
from maxent.discrimination.detection._outlier_base import OutlierBase
from maxent.discrimination.detection.chain_posterior import ChainPosterior, listed
from maxent.discrimination.margins.base import MarginPrior
from maxent.families.priors.normal_wishart import NormalInverseWishart
from maxent.models._chain_input import alphabet_size, with_alphabet
from maxent.models._component_search import groups_of_rows
from maxent.models.chains._rules import check_counts, counts_of_tables

EMISSIONS = ("categorical", "gaussian")
COVARIANCES = ("full", "diagonal")
_GAP = 1e-8  # relative gap of the duals of the rounds, at most
_STEPS = 200  # of such a dual


class MEDSequenceOutlierDetector(OutlierBase):
    """Anomaly detection in sequences, by a hidden Markov model of normal ones.

    As :class:`MEDOutlierDetector`, with a model for sequences of symbols or of vectors:
    hidden states that follow each other, and what every state shows.

    Parameters
    ----------
    n_states : int, default=2
        Number of hidden states, >= 1 and at most the number of observed steps.
    emission : {"categorical", "gaussian"}, default="categorical"
        Symbols, or vectors of real numbers.
    covariance_type : {"full", "diagonal"}, default="full"
        Of Gaussian states. A full one has (d + 1) / 2 parameters for each of d columns;
        where the training data have few steps for each, scores of new sequences fall
        below those of the training ones, and normal ones are called outliers.
    alphabet : str, optional
        Letters of the symbols, in order, where strings are read. None takes those of
        the training strings, sorted; give it where some may be missing there. A
        warning names bases in both cases.
    missing : str, optional
        Letters of strings that stand for a missing observation. None takes the
        codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
        beside amino acids, none beside other letters.
    n_symbols : int, optional
        Number of symbols, where codes are read; by default the largest code in training
        plus one.
    pseudo_count : float or dict, default=1.0
        Prior pseudo-count of every entry of the tables of first states, transitions and
        symbols, > 0; or those of ``"start"``, ``"transition"`` and ``"emission"``,
        numbers or arrays of their shapes, 1.0 of what is left out. Zeros of the first
        two never occur: ``np.triu`` of ones is a left-to-right chain. Gaussian states
        have a prior worth one step, spread like the steps within groups of them.
    normalize : {"length", None}, default="length"
        "length": scores and level are per observed step, so that sequences of different
        length can be compared. None: they are of whole sequences, and long ones have
        low scores.
    level : float, optional
        Score asked of the training sequences: log-likelihood in nats per step, or of
        the whole sequence.
    quantile : float, default=0.5
        Without `level`, this quantile of the scores that a Bayes posterior gives the
        training sequences, in [0, 1].
    contamination : float, optional
        Share of the training sequences to call outliers, in (0, 0.5]: it sets
        ``offset_``, the threshold of `predict`. Without it sequences that cannot be
        lifted to the level are outliers: at the default `quantile` a third or more. A
        warning says where it is more than nine tenths.
    C : float, default=1.0
        Rate of the margin prior, > 0, which caps the weight of a sequence. With
        `normalize` a sequence of length L weighs as much as L / mean length others of
        mean length, so that C of the order of one suits any length.
    margin : str or MarginPrior, default="exponential"
        As for :class:`MEDGaussianClassifier`.
    n_init : int, default=3
        Random starts, >= 1; the one that ends at the least divergence is kept.
    tol : float, default=1e-6
        A start ends once a round lowers the divergence D by at most
        ``tol * (1 + D)``; > 0. Those that are above the least one by a thousandth or
        more once rounds lower it by ``1e-4 * (1 + D)`` end there.
    max_iter : int, default=2000
        Rounds of a start at most.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts.
    n_jobs : int, optional
        Processes for the starts. Results do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, round, divergence and how far from `tol`.

    Attributes
    ----------
    posterior_ : ChainPosterior
        Distribution over hidden Markov models.
    level_ : float
        Score asked of the training sequences.
    offset_ : float
        Scores below it are outliers: the level less the shortfall that costs nothing
        under the margin prior; or, with `contamination`, the score that this share of
        the training sequences is below.
    support_ : ndarray of int
        Sequences with a nonzero multiplier.
    dual_coef_ : ndarray (n_support,)
        Their multipliers.
    n_symbols_ : int
        Number of symbols, or length of the vectors.
    feature_names_in_ : ndarray of str
        Where vectors are read from data frames: the columns. Frames to judge must have
        them in the same order.
    alphabet_ : str
        Where strings are read: the letters of the symbols.
    objective_history_ : ndarray (rounds,)
        Divergence after every round of the start that is kept; it does not rise.
    divergences_ : ndarray
        Least divergence of every start; starts from the same Bayes posterior count
        once.
    baseline_ : ChainPosterior
        The Bayes posterior, every sequence at its own weight; the best of all starts.
    duality_gap_, objective_ : float
        Of the dual of the last round.
    n_iter_, converged_
        Rounds, and whether the divergence has settled.
    loo_bound_ : float
        NaN: with hidden states the leave-one-out bound does not hold.

    See Also
    --------
    MEDOutlierDetector : Rows of a table.
    maxent.models.CategoricalHMM : One model by maximum likelihood.

    Notes
    -----
    With posteriors Q_t(z) of the state paths, sequence t has the constraint

        u_t (E_P E_Q log p(x_t, z | theta) + H(Q_t)) >= gamma_t,

    u_t = mean length / length, or 1 without `normalize`. A round solves the dual of
    these constraints and then sets every Q_t to its best one, by forward-backward. A
    round costs O(steps x n_states ** 2), and the dual O(n p ** 2) for n sequences and p
    entries of the tables.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 4.1, eqs. (47)-(50) and Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDSequenceOutlierDetector
    >>> X = ["ab" * 10, "ba" * 12, "ab" * 8, "ba" * 9] * 10
    >>> detector = MEDSequenceOutlierDetector(2, alphabet="ab", random_state=0).fit(X)
    >>> detector.predict(["ab" * 11, "aaaabbbb" * 3])
    array([ 1, -1])
    """

    posterior_: ChainPosterior
    n_symbols_: int

    def __init__(
        self,
        n_states: int = 2,
        *,
        emission: Literal["categorical", "gaussian"] = "categorical",
        covariance_type: Literal["full", "diagonal"] = "full",
        alphabet: str | None = None,
        missing: str | None = None,
        n_symbols: int | None = None,
        pseudo_count: float | Mapping[str, ArrayLike] = 1.0,
        normalize: Literal["length"] | None = "length",
        level: float | None = None,
        quantile: float = 0.5,
        contamination: float | None = None,
        C: float = 1.0,
        margin: MarginName | MarginPrior = "exponential",
        n_init: int = 3,
        tol: float = 1e-6,
        max_iter: int = 2000,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.covariance_type = covariance_type
        self.alphabet = alphabet
        self.missing = missing
        self.n_symbols = n_symbols
        self.pseudo_count = pseudo_count
        self.normalize = normalize
        self.level = level
        self.quantile = quantile
        self.contamination = contamination
        self.C = C
        self.margin = margin
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = self.alphabet is not None
        return tags

    @fresh_state
    @with_progress
    @with_own_threads
    def fit(
        self, X: Any, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model of normal sequences.

        Parameters
        ----------
        X : list of str, list of array-like, or array-like
            Training sequences, all or most of them normal: strings over the alphabet;
            codes 0, 1, .. (-1 where nothing was observed); or vectors (n_steps, d), a
            row of NaN where nothing was observed. An array (n, n_steps) of codes, or
            (n, n_steps, d), has sequences of equal length. Steps after the last
            observed one are left out.
        y : None
            Ignored.
        sample_weight : array-like (n_sequences,), optional
            Weight w stands for w copies of the sequence; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, sequences without an observed step,
            letters outside the alphabet, more states than observed steps, or a level
            above every achievable log-likelihood.

        Warns
        -----
        ConvergenceWarning
            If the divergence has not settled after `max_iter` rounds.
        UserWarning
            If more than nine tenths of the sequences are outliers to `predict`.
        """
        settings = self._settings()
        gap = min(_GAP, 0.01 * settings.tol)
        rounds = settings.tol, settings.max_iter
        settings = replace(settings, tol=gap, max_iter=_STEPS)
        n_states, n_init = self._counts()
        rng = as_generator(self.random_state)
        found = self._read(X)
        keep, weight = self._weighted(sample_weight, len(found))
        found = _part(found, keep)
        length = self._lengths(found)
        self._check_steps(found, n_states)
        mean = float(weight @ length / weight.sum()) if self.normalize else 1.0
        unit = mean / length
        *rngs, last = rng.spawn(2 if n_states == 1 else n_init + 1)
        problem = self._problem(found, n_states, unit, weight, last)
        if settings.level is not None:
            self.level_ = self._level_below(settings.level, problem.largest)
        starts = baselines(problem, rngs, weight, self.n_jobs, self._progress)
        if settings.level is None:
            scores = starts[0].hidden.bound / mean
            self.level_ = self._level_at_quantile(scores, weight)
        shared = settings, rounds, weight, keep
        self._fit_rounds(problem, starts, *shared, lambda m: m._scores(found), mean)
        return self

    def _counts(self):
        """Numbers of states and starts, with the other parameters of the model."""
        v.check_choice("emission", self.emission, EMISSIONS)
        v.check_choice("covariance_type", self.covariance_type, COVARIANCES)
        if self.normalize is not None:
            v.check_choice("normalize", self.normalize, ("length",), " or None")
        if self.n_symbols is not None:
            v.check_count("n_symbols", self.n_symbols)
        v.check_jobs(self.n_jobs)
        if self.emission == "gaussian" and self.alphabet is not None:
            raise ValueError(
                f"alphabet={v.shown(self.alphabet)} is for emission='categorical'; "
                "leave it None for vectors."
            )
        return (
            v.check_count("n_states", self.n_states),
            v.check_count("n_init", self.n_init),
        )

    def _read(self, X: Any, size: int | None = None) -> Sequences:
        """Sequences of symbols or of vectors; of a known size at prediction."""
        axes = 2 if self.emission == "categorical" else 3
        X = listed(X, axes)
        if isinstance(X, str) or _is_one(X, axes - 1):
            raise ValueError(
                f"X={v.shown(X)} is one sequence; a list of sequences is expected. "
                "Write [X] if there is one only."
            )
        if self.emission == "gaussian":
            check_names_of_lists(self, X, reset=size is None)
            found = vector_sequences(X, n_features=size)
            v.check_range("X", found.values[~np.isnan(found.values[:, 0])])
        else:
            alphabet = vars(self).get("alphabet_", self.alphabet)
            missing = self.missing
            if size is None:
                X, alphabet, missing = with_alphabet(
                    X, alphabet, missing, self.n_symbols
                )
                if alphabet is not None:
                    self.alphabet_ = alphabet
            found = symbol_sequences(
                X,
                alphabet=alphabet,
                n_symbols=self.n_symbols if size is None else size,
                missing=missing,
            )
        return self._without_last_missing(found)

    def _without_last_missing(self, found: Sequences) -> Sequences:
        """The sequences up to their last observed steps; later ones say nothing."""
        steps = np.arange(len(found.values))
        last = np.maximum.reduceat(
            np.where(self._observed(found), steps, -1), found.offsets[:-1]
        )
        empty = np.flatnonzero(last < 0)
        if len(empty):
            raise ValueError(
                f"sequence {empty[0]} of X (counted from 0) has no observed step, so "
                "nothing tells whether it is an outlier; leave such sequences out."
            )
        lengths = last + 1 - found.offsets[:-1]
        if (lengths == found.lengths).all():
            return found
        within = steps - np.repeat(found.offsets[:-1], found.lengths)
        kept = found.values[within < np.repeat(lengths, found.lengths)]
        return Sequences(kept, np.append(0, np.cumsum(lengths)).astype(np.intp))

    def _lengths(self, found: Sequences) -> FloatArray:
        """Observed steps of every sequence, at least one; ones without `normalize`."""
        if self.normalize is None:
            return np.ones(len(found))
        seen = np.add.reduceat(self._observed(found).astype(float), found.offsets[:-1])
        return np.maximum(seen, 1.0)

    def _observed(self, found: Sequences) -> NDArray[np.bool_]:
        values = found.values
        return values >= 0 if values.ndim == 1 else ~np.isnan(values[:, 0])

    def _check_steps(self, found, n_states):
        steps = int(self._observed(found).sum())
        if n_states > steps:
            raise ValueError(
                f"n_states={n_states} is more than the {steps} observed steps of the "
                "sequences of positive weight; lower it or add sequences."
            )

    def _problem(
        self,
        found: Sequences,
        n_states: int,
        unit: FloatArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> ChainProblem:
        shared = found, n_states, self._checked_counts(n_states), unit
        if self.emission == "categorical":
            alphabet = vars(self).get("alphabet_")
            size = alphabet_size(found, alphabet, self.n_symbols)
            check_counts(shared[2], "pseudo_count", emission=(n_states, size))
            self.n_symbols_ = size
            return CategoricalChains(*shared, size, weight, self.n_jobs)
        observed = self._observed(found)
        X, own = found.values[observed], np.repeat(weight, found.lengths)[observed]
        self.n_symbols_ = X.shape[1]
        groups = groups_of_rows(X, own, n_states, rng)
        prior: Any = NormalInverseWishart.weak
        if self.covariance_type == "diagonal":
            prior = [prior(x, own, groups) for x in np.hsplit(X, X.shape[1])]
        else:
            prior = prior(X, own, groups)
        return GaussianChains(*shared, prior, weight, self.n_jobs)

    def _checked_counts(self, n_states):
        """Pseudo-counts of every table, numbers or arrays."""
        given = self.pseudo_count
        counts = counts_of_tables("pseudo_count", given, 1.0)
        if not isinstance(given, Mapping):
            v.check_positive("pseudo_count", given)
        elif "emission" in given and self.emission == "gaussian":
            raise ValueError(
                "pseudo_count['emission'] is of symbols, and emission='gaussian' has "
                "a prior of its own; leave it out."
            )
        shapes = {"start": (n_states,), "transition": (n_states, n_states)}
        check_counts(counts, "pseudo_count", **shapes)
        for name, value in counts.items():
            positive = np.atleast_1d(np.asarray(value) > 0)
            if name == "emission" and not positive.all():
                raise ValueError(
                    "pseudo_count['emission'] must be > 0: a symbol that no state can "
                    "show would make sequences impossible."
                )
            if not positive.any(axis=-1).all():
                raise ValueError(
                    f"pseudo_count[{name!r}] needs an entry > 0 in every row: a state "
                    "that nothing can follow ends every sequence."
                )
        return counts

    @with_own_threads
    def score_samples(self, X: Any) -> FloatArray:
        """Lower bounds of the expected log-likelihoods, in nats: small for outliers.

        Parameters
        ----------
        X : list of str, list of array-like, or array-like
            Sequences to judge, as for `fit`.

        Returns
        -------
        ndarray (n_sequences,)
            Per observed step with ``normalize="length"``.
        """
        check_is_fitted(self)
        posterior = self.posterior_
        if not isinstance(posterior, ChainPosterior):
            raise ValueError(
                f"the fitted model is inconsistent: posterior_={v.shown(posterior)} "
                "cannot score sequences. Fit it again."
            )
        check_value("posterior_", posterior)
        for one in posterior.emission if posterior.is_gaussian else ():
            for part in one if isinstance(one, list) else (one,):
                check_value("posterior_.emission", part)
        size = v.check_count("n_symbols_", self.n_symbols_)
        if posterior.size != size or posterior.is_gaussian != (
            self.emission == "gaussian"
        ):
            raise ValueError(
                "the fitted model is inconsistent: posterior_ is of other symbols than "
                "emission and n_symbols_ say. Fit it again."
            )
        found = self._read(X, size)
        with np.errstate(over="ignore", invalid="ignore"):
            return check_scores(self._scores(found), found.values)

    def _scores(self, found: Sequences) -> FloatArray:
        """Scores of checked sequences."""
        return self.posterior_.expected_log_prob(found) / self._lengths(found)


def _is_one(X: Any, axes: int) -> bool:
    """True if this is an array of one sequence, or a list of numbers."""
    if isinstance(X, np.ndarray):
        numbers = X.dtype.kind not in "OUS" or holds_numbers(X)
        return X.ndim == axes and numbers
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Number)


def _part(found: Sequences, keep: NDArray[Any]) -> Sequences:
    """Some of the sequences."""
    if len(keep) == len(found):
        return found
    lengths = found.lengths[keep]
    values = np.concatenate([found[i] for i in keep])
    return Sequences(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp))
