"""Markov chains of any order over symbols, fitted by counting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._core.chains import chain
from maxent._inputs.sequences import (
    Sequences,
    check_letters,
    decoded,
    each_entry,
    symbol_sequences,
)
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import _checks
from maxent.models._chain_input import (
    Array,
    alphabet_size,
    drawn_indices,
    drawn_offsets,
    sequence_weights,
    symbols_of,
    warn_of_short,
    with_alphabet,
    with_pseudo_counts,
)
from maxent.models._criteria import NONE_HELD, InformationCriteria
from maxent.models.base import FitsOfEach, Model
from maxent.models.chains.hmm import CategoricalHMM

Codes = NDArray[np.intp]
_BLOCK = 2**15  # steps whose arrays of doubles stay in the cache


class MarkovChain(InformationCriteria, Model):
    """Markov chain of order m over symbols: each depends on the m before it.

    Parameters
    ----------
    start : array-like (n_symbols ** m,)
        Probabilities of the first m symbols together, in the order of their digits:
        symbols (a, b) have the place ``a * n_symbols + b``.
    transition : array-like (n_symbols ** m, n_symbols)
        Probabilities of the next symbol after every m symbols; rows sum to one.
    order : int, default=1
        m >= 0; 0 takes all symbols as independent, with ``start = [1]``.
    alphabet : str, optional
        Letters of the symbols, in order; then strings are read and drawn.
    missing : str, optional
        Letters of strings that stand for a missing observation. None takes the
        codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
        beside amino acids, none beside other letters.

    See Also
    --------
    CategoricalHMM : Hidden states.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 8.2.

    Examples
    --------
    >>> from maxent.models import MarkovChain
    >>> model = MarkovChain.fit(["ABABAB", "BABA"], alphabet="AB", smoothing=0)
    >>> model.transition
    array([[0., 1.],
           [1., 0.]])
    >>> model.log_likelihood(["AB", "BB"]).round(3)
    array([-0.693,   -inf])
    """

    _data = "symbols"
    _size = "order"
    _fits_of_each = FitsOfEach(is_predictive=True)
    _names = ("start", "transition", "order", "alphabet", "missing")
    _random: ClassVar[bool] = False
    start: Array
    transition: Array
    order: int
    alphabet: str | None
    missing: str

    def __init__(
        self,
        start: ArrayLike,
        transition: ArrayLike,
        order: int = 1,
        alphabet: str | None = None,
        missing: str | None = None,
    ) -> None:
        first = _checks.simplex_array("start", start)
        rows = _checks.simplex_array("transition", transition)
        order = v.check_count("order", order, 0)
        n_symbols = rows.shape[-1]
        n_contexts = n_symbols**order
        if rows.shape != (n_contexts, n_symbols) or first.shape != (n_contexts,):
            raise ValueError(
                f"start has shape {first.shape} and transition {rows.shape}; order="
                f"{order} with {n_symbols} symbols asks for ({n_contexts},) and "
                f"({n_contexts}, {n_symbols})."
            )
        alphabet, missing = check_letters(alphabet, missing)
        if alphabet is not None and len(alphabet) != n_symbols:
            raise ValueError(
                f"alphabet={v.shown(alphabet)} has {len(alphabet)} letters but "
                f"transition has {n_symbols} columns."
            )
        self._set(
            start=first,
            transition=rows,
            order=order,
            alphabet=alphabet,
            missing=missing,
        )

    @property
    def n_symbols(self) -> int:
        """Size of the alphabet."""
        return int(self.transition.shape[1])

    def _free_parameters(self, held=NONE_HELD):
        return len(self.start) - 1 + len(self.start) * (self.n_symbols - 1)

    def _read_all(self, sequences, lengths):
        return symbols_of(self, sequences, lengths)

    # -- inference -----------------------------------------------------------------
    def log_likelihood(self, sequences: Any, lengths: ArrayLike | None = None) -> Array:
        """Log-likelihood of every sequence.

        Parameters
        ----------
        sequences : list of sequences, array-like, or path
            As for `fit`; shorter ones than the order are allowed. Missing observations
            are summed over, by the chain as a hidden Markov model.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.

        Returns
        -------
        ndarray (n_sequences,)
            In nats; -inf of a sequence that the model cannot produce.
        """
        found = self._read_all(sequences, lengths)
        if (found.values < 0).any():
            return self.as_hmm().log_likelihood(found)
        with np.errstate(divide="ignore"):
            steps = np.zeros(len(found.values))
            log_prob = np.log(self.transition).ravel()
            for word, at, _ in words(found, self.order + 1, self.n_symbols):
                steps[at] = log_prob[word]
            out = np.add.reduceat(steps, found.offsets[:-1])
            for k in range(1, self.order + 1):  # sequences by their first k symbols
                own = np.minimum(found.lengths, self.order) == k
                first = first_symbols(found, k, self.n_symbols)[own]
                out[own] += np.log(self._prefix(k))[first]
        return out

    def _prefix(self, k: int) -> Array:
        """Probabilities of the first k <= order symbols together."""
        return self.start.reshape(self.n_symbols**k, -1).sum(axis=1)

    def as_hmm(self) -> CategoricalHMM:
        """Return the chain as a hidden Markov model with the last symbols as states.

        Returns
        -------
        CategoricalHMM
            One state for every context of 1 .. m symbols.
        """
        O, m = self.n_symbols, self.order
        if m == 0:
            return CategoricalHMM(
                [1.0], [[1.0]], self.transition, self.alphabet, self.missing
            )
        first = np.concatenate([[0], np.cumsum([O**k for k in range(1, m + 1)])])
        n = int(first[-1])
        v.check_memory(f"order={m}, the number of states", n, 16 * n * n)
        transition, emission = np.zeros((n, n)), np.zeros((n, O))
        for k in range(1, m + 1):
            here = np.arange(O**k)
            emission[first[k - 1] + here, here % O] = 1.0
            row = (first[k - 1] + here)[:, None]
            if k < m:
                joint = self._prefix(k + 1).reshape(-1, O)
                given = with_pseudo_counts(joint, 0.0, np.full(joint.shape, 1 / O))
                transition[row, first[k] + here[:, None] * O + np.arange(O)] = given
            else:
                following = (here[:, None] * O + np.arange(O)) % O**m
                transition[row, first[m - 1] + following] = self.transition
        start = np.zeros(n)
        start[:O] = self._prefix(1)
        return CategoricalHMM(start, transition, emission, self.alphabet, self.missing)

    def sample(self, n: int, length: ArrayLike, random_state: Any = None) -> list[Any]:
        """Draw sequences.

        Parameters
        ----------
        n : int
            Number of sequences, >= 1.
        length : int or array-like of int (n,)
            Steps of each, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.

        Returns
        -------
        list
            Arrays of codes, or strings of a model with an alphabet.
        """
        rng = as_generator(random_state)
        offsets = drawn_offsets(n, length)
        O, m = self.n_symbols, self.order
        first = drawn_indices(self.start, len(offsets) - 1, rng)
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        codes = np.empty(offsets[-1], dtype=np.intp)
        context = np.repeat(first, np.diff(offsets))
        early = place < m
        codes[early] = context[early] // O ** (m - 1 - place[early]) % O
        rest = np.maximum(np.diff(offsets) - m, 0)
        codes[~early] = chain.draw_chain(
            np.cumsum(self.transition, axis=1),
            first,
            rng.random(rest.sum()),
            np.concatenate([[0], np.cumsum(rest)]).astype(np.intp),
        )
        drawn = Sequences(codes, offsets)
        if self.alphabet is None:
            return list(drawn)
        return [decoded(one, self.alphabet) for one in drawn]

    # -- fit -----------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        order: int = 1,
        *,
        lengths: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        alphabet: str | None = None,
        missing: str | None = None,
        n_symbols: int | None = None,
        smoothing: float = 0.01,
        start: Literal["first", "all"] = "first",
    ) -> Self:
        """Fit by smoothed counts.

        Parameters
        ----------
        sequences : list of str or of array-like of int, array-like, or path
            Strings; codes 0, 1, ..., -1 where missing; integers (n, n_steps), a
            sequence in every row; one array with `lengths`; or the path of a FASTA or
            one-per-line text file. Windows of ``order + 1`` symbols
            with a missing one are left out.
        order : int, default=1
            How many symbols the next one depends on, >= 0.
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
        smoothing : float, default=0.01
            Pseudo-counts >= 0 of every entry of `start` and `transition`; contexts
            without any count are followed by all symbols alike.
        start : {"first", "all"}, default="first"
            Whether `start` counts the first symbols of each sequence, or those at all
            its places (the law of the sequence's m-grams).

        Returns
        -------
        MarkovChain

        Warns
        -----
        UserWarning
            If none of several sequences has ``order + 1`` steps: no transition is
            learnt.
        """
        order = v.check_count("order", order, 0)
        smoothing = v.check_nonnegative("smoothing", smoothing)
        v.check_choice("start", start, ("first", "all"))
        sequences, *letters = with_alphabet(sequences, alphabet, missing, n_symbols)
        alphabet, missing = letters
        found = symbol_sequences(
            sequences, lengths, alphabet=alphabet, n_symbols=n_symbols, missing=missing
        )
        O = alphabet_size(found, alphabet, n_symbols)
        n = O**order
        v.check_memory(f"order={order}, the number of contexts", n, 24 * n * O)
        if order:
            warn_of_short(sequences, found.lengths, order)
        weights = sequence_weights(weights, len(found))
        cells = word_counts(found, weights, order + 1, O)
        count = word_counts if order and start == "all" else first_counts
        first = count(found, weights, order, O)
        return cls(
            with_pseudo_counts(first, smoothing, np.full(n, 1.0 / n)),
            with_pseudo_counts(cells.reshape(n, O), smoothing, np.full((n, O), 1 / O)),
            order,
            alphabet,
            missing,
        )

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> list[Sequences]:
        """Sequences of one alphabet; without one, all share the number of symbols."""
        n_symbols = options.get("n_symbols")
        data, alphabet, missing = with_alphabet(
            data, options.get("alphabet"), options.get("missing"), n_symbols
        )
        lengths = options.pop("lengths", None)
        data = each_entry(data, lengths)
        found = symbol_sequences(
            data, lengths, alphabet=alphabet, n_symbols=n_symbols, missing=missing
        )
        options |= {"alphabet": alphabet, "missing": missing}
        O = options["n_symbols"] = alphabet_size(found, alphabet, n_symbols)
        order = v.check_count("order", options.get("order", 1), 0)
        n = O**order
        needed = 24 * n * O + 8 * n * (O + 1) * len(found)
        name = f"order={order}, of {len(found)} chains the number of contexts"
        v.check_memory(name, n, needed)
        if order:
            warn_of_short(data, found.lengths, order)
        return found.singles()


def words(
    found: Sequences, k: int, n_symbols: int, least: int = 0
) -> Iterator[tuple[Codes, Codes, Codes]]:
    """Words of k >= 1 known symbols, in blocks of steps that stay in the cache.

    Yields the digits of each word as one number, the step of its last symbol, and its
    sequence. A block has at least `least` steps, but for the last one.
    """
    codes, offsets = found.values, found.offsets
    size = max(least, _BLOCK)
    for lo in range(0, len(codes), size):
        hi = min(lo + size, len(codes))
        before = np.full(max(k - 1 - lo, 0), -1)
        part = np.concatenate([before, codes[max(lo - k + 1, 0) : hi]])
        first = int(np.searchsorted(offsets, lo, side="right")) - 1
        last = int(np.searchsorted(offsets, hi))
        ends: Codes = np.clip(offsets[first : last + 1], lo, hi)
        steps = ends[1:] - ends[:-1]
        owner = np.repeat(np.arange(first, last), steps)
        known = np.arange(lo, hi) - offsets[owner] >= k - 1
        word = np.zeros(hi - lo, dtype=np.intp)
        for i in range(k):
            symbol = part[i : i + hi - lo]
            known &= symbol >= 0
            word = word * n_symbols + symbol
        at = np.flatnonzero(known)
        yield word[at], at + lo, owner[at]


def word_counts(found: Sequences, weights: Array, k: int, n_symbols: int) -> Array:
    """Weighted counts (n_symbols ** k,) of all words of k >= 1 symbols."""
    n = n_symbols**k
    out = np.zeros(n)
    for word, _, owner in words(found, k, n_symbols, least=n):
        out += np.bincount(word, weights[owner], n)
    return out


def first_counts(found: Sequences, weights: Array, k: int, n_symbols: int) -> Array:
    """Weighted counts (n_symbols ** k,) of the first k symbols of each sequence."""
    longer = found.lengths >= k
    symbols = found.values[found.offsets[:-1][longer, None] + np.arange(k)]
    known = (symbols >= 0).all(axis=1)
    word = symbols[known] @ n_symbols ** np.arange(k, dtype=np.intp)[::-1]
    counts: Any = np.bincount(word, weights[longer][known], n_symbols**k)
    out: Array = counts
    return out


def first_symbols(found: Sequences, k: int, n_symbols: int) -> NDArray[np.intp]:
    """Digits of the first k symbols of every sequence; of shorter ones undefined."""
    out = np.zeros(len(found), dtype=np.intp)
    for i in range(k):
        at = np.minimum(found.offsets[:-1] + i, len(found.values) - 1)
        out = out * n_symbols + found.values[at]
    return out
