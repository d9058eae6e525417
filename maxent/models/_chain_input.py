"""What sequence models are given: sizes, weights, chains, pseudo-counts."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._core.chains import chain
from maxent._inputs.frames import column_names
from maxent._inputs.letters import (
    codes_beside,
    counted,
    in_both_cases,
    in_case_of,
    unknown_letters,
)
from maxent._inputs.sequence_files import read_sequences
from maxent._inputs.sequences import (
    Sequences,
    each_entry,
    symbol_sequences,
    vector_sequences,
)
from maxent._partitions.partitions import is_partitioned
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.validation import user_stacklevel
from maxent.families import Categorical, _checks

Array = NDArray[np.float64]
_MOST_STATES = 20  # that a fit chooses itself: EM of more on one core takes minutes


def states_per_sequence(length: int, n_symbols: int, zeta: float = 0.1) -> int:
    """Number of hidden states for a sequence of a given length.

    The least integer M with ``(M - 1) (M + n_symbols + 1) > zeta * length``: about
    `zeta` free parameters per letter.

    Parameters
    ----------
    length : int
        Letters of the sequence, >= 1.
    n_symbols : int
        Size of the alphabet, >= 1.
    zeta : float, default=0.1
        Free parameters per letter, > 0.

    Returns
    -------
    int
        At least 2.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 8.2.

    Examples
    --------
    >>> from maxent.models import states_per_sequence
    >>> [states_per_sequence(T, 4) for T in (24, 70, 10000)]
    [2, 3, 30]
    """
    length = v.check_count("length", length)
    n_symbols = v.check_count("n_symbols", n_symbols)
    # zeta as it is written: the product of doubles may round to the other side
    limit = int(Fraction(repr(v.check_positive("zeta", zeta))) * length)
    # (2 M + n)^2 > 4 (limit + n + 1) + n^2, in integers
    square = 4 * (limit + n_symbols + 1) + n_symbols**2
    return max(2, (math.isqrt(square) - n_symbols) // 2 + 1)


def chosen_states(
    length: int, n_symbols: int, zeta: float, capped: bool = False
) -> int:
    """States of a fit that was given none; too many are refused, or capped."""
    M = states_per_sequence(length, n_symbols, zeta)
    if capped:
        return min(M, _MOST_STATES)
    if M > _MOST_STATES:
        raise ValueError(
            f"n_states=None means {M} states for {length} steps (zeta={zeta:g}), more "
            f"than the {_MOST_STATES} that a fit takes unasked, since its time grows "
            "with their square; give n_states, such as 3, or a smaller zeta."
        )
    return M


def columns_of(sequences: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """Columns of sequences of vectors, None of numbers; their names, if frames."""
    if isinstance(sequences, Sequences):
        width = sequences.values.shape[1] if sequences.values.ndim == 2 else None
        return width, sequences.columns
    names = column_names("sequences", sequences)
    if names is not None:
        return len(names), names
    one = sequences
    if isinstance(sequences, (list, tuple)) and sequences:
        one = sequences[0]
    shape = getattr(one, "shape", None)
    if shape is None:
        shape = v.as_doubles("sequences[0]", one).shape
    return (shape[-1] if len(shape) > 1 else None), None


def check_chain(start: ArrayLike, transition: ArrayLike) -> tuple[Array, Array]:
    """Start (n_states,) and transition probabilities (n_states, n_states)."""
    first = _checks.simplex_array("start", start)
    rows = _checks.simplex_array("transition", transition)
    if first.ndim != 1 or rows.shape != (len(first),) * 2:
        raise ValueError(
            f"start has shape {first.shape} and transition {rows.shape}; (n_states,) "
            "and (n_states, n_states) are expected."
        )
    return first, rows


def with_pseudo_counts(counts: Array, smoothing: Any, old: Array) -> Array:
    """Rows of counts as probabilities; rows without any keep the old ones.

    Old probabilities of zero stay zero: those of a start say what cannot happen.
    """
    counts = counts + (smoothing if (old > 0).all() else smoothing * (old > 0))
    # einsum sums the short rows of many models several times faster than sum
    total = np.einsum("...i->...", counts)[..., None]
    if (total > 0).all():
        return np.divide(counts, total, order="C")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, counts / total, old)


def log_of_pseudo_counts(smoothing: Any, *tables: Array) -> float:
    """Log-density of Dirichlet priors 1 + smoothing of all entries that may change."""
    if not np.any(smoothing):
        return 0.0
    if np.ndim(smoothing) == 0:
        return float(smoothing) * sum(float(np.log(t[t > 0]).sum()) for t in tables)
    return sum(float(smoothing[t > 0] @ np.log(t[t > 0])) for t in tables)


def drawn_offsets(n: int, length: ArrayLike) -> NDArray[np.intp]:
    """Offsets of `n` sequences of one or of given lengths."""
    n = v.check_count("n", n)
    lengths = v.as_doubles("length", length)
    fits = lengths.shape in ((), (n,)) and (lengths == np.floor(lengths)).all()
    if not fits or not (lengths >= 1).all():
        raise ValueError(
            f"length={v.shown(length)} must be an integer >= 1, or {n} of them."
        )
    lengths = np.broadcast_to(lengths, (n,))
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)


def drawn_indices(prob: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Independent draws of an index."""
    return Categorical(prob).sample(n, rng).astype(np.intp)


def drawn_paths(
    start: Array,
    transition: Array,
    offsets: NDArray[np.intp],
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """States (steps,) of independent draws of a chain, one after the other."""
    first = drawn_indices(start, len(offsets) - 1, rng)
    states = np.empty(offsets[-1], dtype=np.intp)
    later = np.ones(len(states), dtype=bool)
    later[offsets[:-1]] = False
    states[offsets[:-1]] = first
    states[later] = chain.draw_chain(
        np.cumsum(transition, axis=1),
        first,
        rng.random(np.count_nonzero(later)),
        offsets - np.arange(len(offsets)),
    )
    return states


def sequence_weights(weights: ArrayLike | None, n: int) -> Array:
    """Weights (n,) of sequences, ones by default."""
    if weights is None:
        return np.ones(n)
    array = _checks.nonnegative_array("weights", weights)
    if array.shape != (n,) or not array.any():
        raise ValueError(
            f"weights has shape {array.shape}; one weight >= 0 for each of the {n} "
            "sequences is needed, and one of them > 0."
        )
    return array


def single_series(data: Any, options: dict[str, Any]) -> list[Sequences]:
    """Each sequence of vectors alone, as `Model._each` wants them."""
    lengths = options.pop("lengths", None)
    data = each_entry(data, lengths)
    return vector_sequences(data, lengths, partly=True).singles()


def alphabet_size(found: Sequences, alphabet: str | None, n_symbols: int | None) -> int:
    """Number of symbols: as given, or the largest code plus one."""
    if alphabet is not None:
        return len(alphabet)
    if n_symbols is not None:
        return v.check_count("n_symbols", n_symbols)
    return max(int(found.values.max(initial=0)) + 1, 1)


def symbols_of(
    model: Any, sequences: Any, lengths: ArrayLike | None = None
) -> Sequences:
    """Read sequences in the alphabet of a model."""
    return symbol_sequences(
        sequences,
        lengths,
        alphabet=model.alphabet,
        n_symbols=model.n_symbols,
        missing=model.missing,
    )


def with_alphabet(
    sequences: Any,
    alphabet: str | None,
    missing: str | None,
    n_symbols: int | None = None,
) -> tuple[Any, str | None, str | None]:
    """The sequences, their alphabet and missing letters: those of strings are found.

    The alphabet has their letters in sorted order, but for the missing ones. A single
    string is refused; one that may be a path, and letters in a list, are left to
    :func:`symbol_sequences` to refuse. A warning names bases in both cases, of which
    the lower one marks repeats in files of genomes.
    """
    given = alphabet is not None or n_symbols is not None
    may_be_path = isinstance(sequences, str) and any(c in sequences for c in "./\\")
    if not given and isinstance(sequences, str) and not may_be_path:
        raise ValueError(
            f"the data {v.shown(sequences)} are one string; a list of sequences is "
            "expected. Write [X] if there is one only."
        )
    if given or is_partitioned(sequences):
        return sequences, alphabet, unknown_letters(missing, alphabet)
    if isinstance(sequences, os.PathLike):
        sequences = in_case_of(read_sequences(sequences)[1])
    listed = isinstance(sequences, (list, tuple)) or getattr(sequences, "ndim", 0) == 1
    strings = list(sequences) if listed else []
    if not all(isinstance(one, str) and len(one) for one in strings):
        return sequences, None, missing or ""
    if max(map(len, strings), default=0) < 2:
        return sequences, None, missing or ""
    missing = unknown_letters(missing, None, strings)
    letters = sorted(set().union(*strings) - set(missing))
    twice = in_both_cases(letters)
    if twice and codes_beside(counted(strings)):
        warnings.warn(
            f"the letters {', '.join(twice)} occur in lower case too, which counts as "
            "another letter; write all in one case, for instance by str.upper, or name "
            "both by alphabet=.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
    return sequences, "".join(letters) or None, missing


def warn_of_short(sequences: Any, lengths: NDArray[np.intp], order: int = 1) -> None:
    """Warn if none of several sequences is longer than the memory of a chain.

    Nothing is then known of what follows what. Letters of one sequence in a list, or
    its steps one by one, are the usual cause. Sequences that were read before, by
    `fit_many` or an estimator, have had their warning there.
    """
    longest = int(lengths.max())
    if len(lengths) == 1 or longest > order or isinstance(sequences, Sequences):
        return
    steps = "step" if longest == 1 else "steps"
    lower = f" Else lower order (now {order})." if order > 1 else ""
    warnings.warn(
        f"none of the {len(lengths)} sequences has more than {longest} {steps}, so "
        "nothing is learnt of the transitions. If they are the steps of one sequence, "
        "pass that one in a list: [''.join(X)] of letters, [numpy.concatenate(X)] of "
        f"arrays.{lower}",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def mean_length(found: Sequences) -> int:
    """Mean length of sequences, rounded down."""
    return max(1, int(found.offsets[-1] // len(found)))


@dataclass(frozen=True)
class RandomStarts:
    """Arguments about the starts of a fit without `init`."""

    n_states: int | None
    zeta: float
    n_init: int
    random_state: Any

    def checked(
        self, found: Sequences, n_symbols: int, capped: bool
    ) -> tuple[int, int, np.random.Generator]:
        """Numbers of states and of starts, and the generator of the starts.

        None for `n_states` is as many as the mean length of the sequences asks for.
        """
        n_states = self.n_states
        if n_states is None:
            n_states = chosen_states(mean_length(found), n_symbols, self.zeta, capped)
        n_states = v.check_count("n_states", n_states)
        rng = as_generator(self.random_state)
        return n_states, v.check_count("n_init", self.n_init), rng


def check_init(init: Any, cls: type, n_states: int | None = None) -> None:
    """Refuse a start that is no model of this kind, or of other states than asked."""
    if not isinstance(init, cls):
        raise TypeError(f"init={v.shown(init)} must be a {cls.__name__}.")
    states: Any = getattr(init, "n_states", None)
    if n_states not in (None, states):
        raise ValueError(f"n_states={n_states} but init has {states} states.")


def columns_of_start(init: Any, cls: type) -> tuple[str, ...] | None:
    """Columns of the data frames of a start, which those of the fit must have."""
    if init is None:
        return None
    check_init(init, cls)
    columns: tuple[str, ...] | None = init._columns
    return columns


def check_kind(model: Any, name: str, attribute: str) -> None:
    """Refuse what is no fitted model of hmmlearn of this name."""
    kind = type(model).__name__
    if kind != name:
        raise TypeError(
            f"model={v.shown(model)} is of class {kind}; a fitted hmmlearn.hmm.{name} "
            "is expected, whose emissions are those of this model."
        )
    if not hasattr(model, attribute):
        raise TypeError(
            f"model={v.shown(model)} must be fitted first; it has no {attribute}."
        )


def hmmlearn() -> Any:
    """The module hmmlearn.hmm, or an error that says how to get it."""
    try:
        import hmmlearn.hmm
    except ImportError:
        raise ImportError(
            "hmmlearn is not installed; `pip install hmmlearn` to convert models to it."
        ) from None
    return hmmlearn.hmm
