"""Starts of hidden Markov models of symbols: random tables, or those of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent._support.random_state import as_generator
from maxent._support.typing import RandomState
from maxent.models._chain_input import (
    Array,
    RandomStarts,
    check_init,
    chosen_states,
)

Tables = tuple[Array, Array, Array]  # start, transition, emission


def random_tables(
    codes: NDArray[np.intp],
    n_states: int,
    n_symbols: int,
    n_init: int,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> Iterator[Tables]:
    """Random starts: emissions half-way between the frequencies and random rows."""
    seen = codes >= 0
    own = None if weights is None else weights[seen]
    frequency = _frequencies(np.bincount(codes[seen], own, minlength=n_symbols))
    for start, transition, table in _drawn_tables(n_states, n_symbols, n_init, rng):
        yield start, transition, table + 0.5 * frequency


def _drawn_tables(n_states, n_symbols, n_init, rng):
    """Draws of random starts: a chain without zeros, and half the emissions."""
    for _ in range(n_init):
        start = rng.dirichlet(np.ones(n_states))
        transition = rng.dirichlet(np.ones(n_states), size=n_states)
        table = rng.dirichlet(np.ones(n_symbols), size=n_states)
        # from a zero EM could never move
        start = 0.9 * start + 0.1 / n_states
        yield start, 0.9 * transition + 0.1 / n_states, 0.5 * table


def _frequencies(counts):
    """Relative frequencies along the last axis, with one count more of each."""
    counts = counts + 1.0
    return counts / counts.sum(axis=-1, keepdims=True)


def starts_of_each(
    found: Sequences,
    n_symbols: int,
    asked: RandomStarts,
    random_states: Sequence[RandomState],
) -> list[list[Tables]]:
    """Random starts of one model for each sequence, which has its own random state.

    Sequences of one seed and number of states share what is drawn.
    """
    lengths = found.lengths
    if asked.n_states is None:
        each, at = np.unique(lengths, return_inverse=True)
        by_length = [chosen_states(T, n_symbols, asked.zeta, True) for T in each]
        sizes = np.array(by_length)[at]
    else:
        sizes = np.full(len(found), asked.n_states)
    cells = np.repeat(np.arange(len(found)), lengths) * n_symbols + found.values
    counts = np.bincount(cells[found.values >= 0], minlength=len(found) * n_symbols)
    half = 0.5 * _frequencies(counts.reshape(len(found), n_symbols))
    known: dict[Any, list[Tables]] = {}
    out = []
    for own, size, state in zip(half, sizes.tolist(), random_states):
        key = (state, size)
        if not isinstance(state, int) or key not in known:
            rng = as_generator(state)
            known[key] = list(_drawn_tables(size, n_symbols, asked.n_init, rng))
        out.append([(start, move, table + own) for start, move, table in known[key]])
    return out


def symbols_of_start(
    init: Any,
    cls: type,
    alphabet: str | None,
    missing: str | None,
    n_symbols: int | None,
) -> tuple[str | None, str | None, int | None]:
    """Alphabet, missing letters and number of symbols, from the start or as given."""
    if init is None:
        return alphabet, missing, n_symbols
    check_init(init, cls)
    if alphabet is None:
        alphabet = init.alphabet
    return alphabet, init.missing if missing is None else missing, init.n_symbols


def own_start(init: Any, cls: type, n_symbols: int | None) -> Tables:
    """Tables of a given start, of as many symbols as the data."""
    check_init(init, cls)
    if init.n_symbols != n_symbols:
        raise ValueError(
            f"init has {init.n_symbols} symbols, the data {n_symbols}: both need the "
            "same alphabet."
        )
    return init.start, init.transition, init.emission.prob
