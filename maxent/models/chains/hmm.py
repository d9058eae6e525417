"""Hidden Markov models with categorical emissions, fitted by EM."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._inputs.sequences import check_letters, each_entry, symbol_sequences
from maxent._support import validation as v
from maxent._support.random_state import states_of_many
from maxent._support.threads import effective_threads
from maxent._support.typing import Callback
from maxent.families import Categorical, _checks
from maxent.models._chain_input import (
    Array,
    RandomStarts,
    alphabet_size,
    check_chain,
    check_init,
    check_kind,
    warn_of_short,
    with_alphabet,
)
from maxent.models.base import starts_of_many, warn_of_many
from maxent.models.chains._emissions import Symbols
from maxent.models.chains._many_chains import fit_tables
from maxent.models.chains._random_tables import (
    own_start,
    starts_of_each,
    symbols_of_start,
)
from maxent.models.chains.hidden_markov import HiddenMarkovModel


class CategoricalHMM(HiddenMarkovModel):
    """Hidden Markov model of symbol sequences.

    Parameters
    ----------
    start : array-like (n_states,)
        Probabilities of the first state.
    transition : array-like (n_states, n_states)
        ``transition[i, j]``: probability of state j after state i; rows sum to one.
    emission : array-like (n_states, n_symbols), or Categorical of batch (n_states,)
        ``emission[i, o]``: probability of symbol o in state i.
    alphabet : str, optional
        Letters of the symbols, in order; then strings are read and drawn.
    missing : str, optional
        Letters of strings that stand for a missing observation. None takes the
        codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
        beside amino acids, none beside other letters.

    Attributes
    ----------
    start, transition : ndarray
    emission : Categorical
    fit_result : EMResult or None
        How the fit ended.

    See Also
    --------
    GaussianHMM : Sequences of vectors.
    MarkovChain : Without hidden states; no iteration.

    Notes
    -----
    A missing observation (code -1) leaves the step's state free. Log-likelihoods and
    posteriors are computed with scaled probabilities and, where these underflow, in
    logs.

    References
    ----------
    Rabiner (1989), sections III and V; Jebara, Kondor & Howard (2004), section 4.2.

    Examples
    --------
    >>> from maxent.models import CategoricalHMM
    >>> strings = ["AAAACCCC", "AAAAACCC", "AACCCCCC"]
    >>> model = CategoricalHMM.fit(strings, 2, alphabet="AC", random_state=0)
    >>> paths, _ = model.viterbi(["AAACC"])
    >>> paths[0][0] == paths[0][2] != paths[0][3]
    np.True_
    >>> bool(model.fit_result.converged)
    True
    """

    _data = "symbols"
    _names = ("start", "transition", "emission", "alphabet", "missing")
    emission: Categorical
    alphabet: str | None
    missing: str

    def __init__(
        self,
        start: ArrayLike,
        transition: ArrayLike,
        emission: ArrayLike | Categorical,
        alphabet: str | None = None,
        missing: str | None = None,
    ) -> None:
        first, rows = check_chain(start, transition)
        if not isinstance(emission, Categorical):
            emission = Categorical(_checks.simplex_array("emission", emission))
        if emission.batch_shape != first.shape:
            raise ValueError(
                f"emission has shape {emission.prob.shape}; one row for each of the "
                f"{len(first)} states is expected."
            )
        alphabet, missing = check_letters(alphabet, missing)
        if alphabet is not None and len(alphabet) != emission.prob.shape[1]:
            raise ValueError(
                f"alphabet={v.shown(alphabet)} has {len(alphabet)} letters but "
                f"emission has {emission.prob.shape[1]} columns."
            )
        self._set(
            start=first,
            transition=rows,
            emission=emission,
            alphabet=alphabet,
            missing=missing,
        )

    @classmethod
    def _from_tables(
        cls,
        start: Array,
        transition: Array,
        table: Array,
        alphabet: str | None,
        missing: str,
    ) -> Self:
        """Model of tables that are known to be valid, as EM leaves them."""
        model = cls.__new__(cls)
        model._set(
            start=np.array(start),
            transition=np.array(transition),
            emission=Categorical._from_valid({"prob": np.array(table)}, {}),
            alphabet=alphabet,
            missing=missing,
        )
        return model

    @property
    def n_symbols(self) -> int:
        """Size of the alphabet."""
        return int(self.emission.prob.shape[1])

    def _arguments(self):
        return {**self.parameters(), "emission": self.emission.prob}

    @classmethod
    def _from_arguments(cls, arguments):
        return cls(**arguments)

    def _holdable(self):
        return super()._holdable() | {"emission": self.emission.prob.shape}

    @functools.cached_property
    def _emissions(self):
        return Symbols(self.n_symbols, self.alphabet, self.missing)

    @classmethod
    def _of_point(cls, point, emissions):
        start, transition, emission = point
        names = emissions.alphabet, emissions.missing
        return cls._from_tables(start, transition, emission.prob, *names)

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit(  # type: ignore[override]  # the family is given
        cls,
        sequences: Any,
        n_states: int | None = None,
        *,
        lengths: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        alphabet: str | None = None,
        missing: str | None = None,
        n_symbols: int | None = None,
        smoothing: Any = 0.01,
        zeta: float = 0.1,
        init: CategoricalHMM | None = None,
        fixed: Any = None,
        states: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        callback: Callback | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Fit by EM (Baum-Welch) from several random starts.

        Parameters
        ----------
        sequences : list of str or of array-like of int, array-like, or path
            Strings; codes 0, 1, ..., -1 where missing; integers (n, n_steps), a
            sequence in every row; one array with `lengths`; or the path of a FASTA or
            one-per-line text file.
        n_states : int, optional
            None takes :func:`states_per_sequence` of the mean length; more than 20
            are refused.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        weights : array-like (n_sequences,), optional
            Weights >= 0; weight 2 equals the sequence twice.
        alphabet : str, optional
            Letters of strings, in the order of their codes. None takes those that are
            there, in sorted order; give it where some may be missing from the data.
        missing : str, optional
            Letters of strings that stand for a missing observation. None takes the
            codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
            beside amino acids, none beside other letters.
        n_symbols : int, optional
            Size of the alphabet; None takes the largest code plus one.
        smoothing : float or dict, default=0.01
            Pseudo-counts >= 0 of every entry of start, transition and emission
            (Dirichlet priors with parameters 1 + smoothing). 0 is maximum likelihood.
            A dict has a number for "start", "transition" and "emission", or an array of
            their shape: ``{"transition": 1 + 50 * numpy.eye(3)}`` lets states last.
        zeta : float, default=0.1
            Free parameters per letter where `n_states` is None.
        init : CategoricalHMM, optional
            Start of a single run; `n_states` must be its own then, and `n_symbols` and
            `n_init` are not read. Its zeros stay zero: a left-right chain stays one.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`: "start", "transition", "emission"; or
            {name: boolean mask}, True where an entry stays.
        states : list of array-like of int (n_steps,), optional
            States that are known, -1 where not; of one sequence, its array. Starts are
            put into their order.
        n_init : int, default=3
            Random starts; the one of the greatest objective is kept.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant. EM
            leaves random starts by small steps: with 1e-5 it may end where it began.
        max_iter : int, default=2000
            EM steps of a run at most.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step of every start; True ends the fit with the best
            parameters until then.
        random_state : int, Generator, RandomState or None, default=None
            Source of the random starts.
        n_jobs : int, optional
            Threads of the E step.

        Returns
        -------
        CategoricalHMM
            Its `fit_result` has the objective after every step.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.
        UserWarning
            If none of several sequences has two steps: no transition is learnt.
        """
        alphabet, missing, n_symbols = symbols_of_start(
            init, cls, alphabet, missing, n_symbols
        )
        if init is not None:
            check_init(init, cls, n_states)
            own_start(init, cls, n_symbols if alphabet is None else len(alphabet))
        sequences, *letters = with_alphabet(sequences, alphabet, missing, n_symbols)
        alphabet, missing = letters
        emissions = Symbols(n_symbols, alphabet, missing)
        model = cls._fitted(
            emissions,
            sequences,
            RandomStarts(n_states, zeta, n_init, random_state),
            lengths=lengths,
            weights=weights,
            rules=cls._rules(smoothing, fixed, init),
            states=states,
            init=init,
            ends=(tol, max_iter, callback),
            n_jobs=n_jobs,
        )
        return model._warned(tol, max_iter)

    @classmethod
    def fit_many(  # type: ignore[override]  # names what `options` are in the base
        cls,
        data: Any,
        n_states: int | None = None,
        *,
        lengths: ArrayLike | None = None,
        alphabet: str | None = None,
        missing: str | None = None,
        n_symbols: int | None = None,
        smoothing: float = 0.01,
        zeta: float = 0.1,
        init: CategoricalHMM | Sequence[CategoricalHMM] | None = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> list[Self]:
        """Fit one model to each sequence, all of them at once.

        Parameters
        ----------
        data : list of str or of array-like of int, array-like, or path
            Sequences as for `fit`.
        n_states : int, optional
            The same for all; None takes :func:`states_per_sequence` of each length,
            20 at most.
        lengths, alphabet, missing, n_symbols, smoothing, zeta, n_init, tol, max_iter
            As for `fit`, and `tol` of the objective of each sequence; all models have
            the same symbols.
        init : CategoricalHMM or list of CategoricalHMM, optional
            Start of every fit, or one for each sequence, whose zeros stay zero;
            `n_states` and `n_init` are then not read.
        random_state : int, Generator, RandomState or None, default=None
            An integer is the seed of every fit, as of ``fit([sequence],
            random_state=...)``: a model then does not depend on the other sequences.
            Anything else gives each fit a random stream of its own.
        n_jobs : int, optional
            Threads; the result has the same bits for any number.

        Returns
        -------
        list of CategoricalHMM
            In the order of the sequences.

        Warns
        -----
        ConvergenceWarning
            Once, with the number of fits that did not converge.
        """
        tol, max_iter = v.check_stop(tol, max_iter)
        smoothing = v.check_nonnegative("smoothing", smoothing)
        n_init = v.check_count("n_init", n_init)
        first = next(iter(init), None) if isinstance(init, (list, tuple)) else init
        alphabet, missing, n_symbols = symbols_of_start(
            first, cls, alphabet, missing, n_symbols
        )
        data, *letters = with_alphabet(data, alphabet, missing, n_symbols)
        alphabet, missing = letters
        data = each_entry(data, lengths)
        found = symbol_sequences(
            data, lengths, alphabet=alphabet, n_symbols=n_symbols, missing=missing
        )
        n_symbols = alphabet_size(found, alphabet, n_symbols)
        if n_states is not None:
            n_states = v.check_count("n_states", n_states)
        if n_states != 1 and init is None:
            warn_of_short(data, found.lengths)
        asked = RandomStarts(n_states, zeta, n_init, random_state)
        starts = cls._starts_of_each(found, init, n_symbols, asked)
        symbols = alphabet, missing
        return cls._best_of_each(
            found, starts, symbols, smoothing, tol, max_iter, n_jobs
        )

    @classmethod
    def _starts_of_each(cls, found, init, n_symbols, asked):
        """Tables to start from for every sequence: from `init`, or random ones."""
        if init is not None:
            each = starts_of_many(init, len(found))
            return [[own_start(one, cls, n_symbols)] for one in each]
        own = states_of_many(asked.random_state, len(found))
        return starts_of_each(found, n_symbols, asked, own)

    @classmethod
    def _best_of_each(cls, found, starts, symbols, smoothing, tol, max_iter, n_jobs):
        """EM from all starts of each sequence; its model of the greatest objective.

        `symbols` are the alphabet and the missing letters of all models.
        """
        fits = fit_tables(
            found, starts, smoothing, tol, max_iter, effective_threads(n_jobs)
        )
        models = [
            cls._from_tables(*tables, *symbols)._with_result(result)
            for tables, result in fits
        ]
        warn_of_many(cls.__name__, models)
        return models

    # -- hmmlearn --------------------------------------------------------------------
    @classmethod
    def from_hmmlearn(cls, model: Any, alphabet: str | None = None) -> Self:
        """Model from a fitted ``hmmlearn.hmm.CategoricalHMM``.

        Parameters
        ----------
        model : hmmlearn.hmm.CategoricalHMM
        alphabet : str, optional
            Letters of its symbols.

        Returns
        -------
        CategoricalHMM
        """
        check_kind(model, "CategoricalHMM", "emissionprob_")
        return cls(model.startprob_, model.transmat_, model.emissionprob_, alphabet)
