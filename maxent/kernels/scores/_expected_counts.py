"""Expected counts of hidden variables given each datum, one row of arrays per datum.

The Fisher scores of latent models and the marginalised kernels are both linear in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxent._core.chains import chain
from maxent._inputs.sequences import Sequences
from maxent._support.threads import effective_threads
from maxent.models.chains._hidden_chain import HiddenMarkovModel, relative_rows
from maxent.models.chains._many_chains import FEW, LONGEST, expected_counts
from maxent.models.chains.hmm import CategoricalHMM
from maxent.models.networks._factor_model import FactorModel

Array = NDArray[np.float64]


class ChainCounts(NamedTuple):
    """Expected counts of the sequences under a hidden Markov model."""

    log_likelihood: Array  # (n,)
    start: Array  # (n, states)
    transition: Array  # (n, states, states)
    emission: Array  # (n, symbols, states); of vectors (n_steps, states), by step


def chain_counts(
    model: HiddenMarkovModel, found: Sequences, n_jobs: int | None = None
) -> ChainCounts:
    """Expected counts of states, of their pairs, and of what they show."""
    n, S, lengths = len(found), model.n_states, found.lengths
    symbols = isinstance(model, CategoricalHMM)
    seen = model._observations(found)
    log_table, top = relative_rows(model._log_table(found), seen.shared)
    by_sequence = (n, *log_table.shape) if symbols else log_table.shape
    out = ChainCounts(
        np.full(n, np.nan), np.empty((n, S)), np.empty((n, S, S)), np.zeros(by_sequence)
    )
    # eight to a vector, but for the longest
    short = seen.order[lengths[seen.order] <= LONGEST // S]
    if len(short) > FEW:
        log_lik, out.start[short], out.transition[short], counts = expected_counts(
            seen.row,
            found.offsets[short],
            lengths[short],
            np.broadcast_to(model.start, (len(short), S)),
            np.broadcast_to(model.transition, (len(short), S, S)),
            chain.likelihoods(log_table)[None],
            effective_threads(n_jobs),
            by_step=not symbols,
        )
        out.log_likelihood[short] = log_lik
        if symbols:
            out.emission[short] = counts
        else:
            out.emission[:] = counts[0]
    for i in np.flatnonzero(np.isnan(out.log_likelihood)).tolist():
        steps = slice(found.offsets[i], found.offsets[i + 1])
        own = model._observations(Sequences(found[i], np.array([0, len(found[i])])))
        rows = log_table if symbols else log_table[steps]
        alone = own.expect(model.start, model.transition, rows, np.ones(1), n_jobs)
        out.log_likelihood[i] = alone.log_likelihood[0]
        out.start[i], out.transition[i] = alone.start, alone.transition
        out.emission[i if symbols else steps] = alone.emission
    return out._replace(log_likelihood=out.log_likelihood + seen.sums(top))


def factor_counts(
    model: FactorModel, X: Any, max_table: int
) -> tuple[Array, list[Array]]:
    """Log sums (n,) of rows, and expected counts (n, table) of all factors' entries.

    The axes of the tables are those of the model's factors.
    """
    rows = model._rows(X, max_table)
    scopes, tables = model._sorted
    place = {name: k for k, name in enumerate(model.nodes)}
    total = np.empty(len(rows.codes))
    sizes = list(model.n_categories.values())
    counts = [np.zeros((len(rows.codes), *(sizes[u] for u in s))) for s in scopes]
    for part in rows.parts(backwards=True):
        total[part.index], beliefs = part.posterior(tables)
        for scope, belief, own in zip(scopes, beliefs, counts):
            own[part.index] = _with_known(scope, belief, part.known, sizes)
    out = []
    for (nodes, _), own in zip(model._log_factors, counts):
        axes = np.argsort(np.argsort([place[name] for name in nodes]))
        out.append(np.transpose(own, [0, *(1 + axes)])[rows.inverse])
    return total[rows.inverse], out


def _with_known(
    scope: Sequence[int],
    belief: Array,
    known: Sequence[NDArray[np.intp] | None],
    sizes: Sequence[int],
) -> Array:
    """Beliefs (free axes, 1, n) as (n, all axes), with ones at the known values."""
    shown = [i for i, u in enumerate(scope) if known[u] is not None]
    free = [i for i in range(len(scope)) if i not in shown]
    n = belief.shape[-1]
    out = np.zeros((n, *(sizes[scope[i]] for i in (*shown, *free))))
    codes = tuple(known[scope[i]] for i in shown)
    out[(np.arange(n), *codes)] = np.moveaxis(belief[..., 0, :], -1, 0)
    return np.transpose(out, [0, *(1 + np.argsort([*shown, *free]))])
