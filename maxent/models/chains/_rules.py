"""Rules of fits of hidden Markov models: pseudo-counts, what stays, known states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent.families import _checks
from maxent.models._chain_input import Array, log_of_pseudo_counts
from maxent.models._holding import check_fixed, maximum_of_free, with_held_members

_DEFAULT = 0.01  # pseudo-counts of what a dict leaves out
_TABLES = "start", "transition", "emission"


class Rules:
    """Rules of a fit.

    Parameters
    ----------
    smoothing : float or dict
        Pseudo-counts of all entries, or of ``start``, ``transition`` and ``emission``,
        numbers or arrays of their shapes.
    fixed : None, names, or dict {name: mask}
        Parameters that stay as they are in the start, True where a mask has entries.
    holdable : dict {name: shape}
        Parameters that may stay; none without a start.
    """

    def __init__(
        self,
        smoothing: Any,
        fixed: Any = None,
        holdable: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.counts = counts_of_tables("smoothing", smoothing)
        self.held = check_fixed(fixed, holdable)

    @property
    def smoothing(self) -> Any:
        """Pseudo-counts, or pseudo-observations, of the emission."""
        return self.counts["emission"]

    def maximum(self, name: str, counts: Array, old: Array) -> Array:
        """M step of a table of probabilities."""
        return maximum_of_free(counts, self.counts[name], old, self.held.get(name))

    def log_prior(self, **tables: Array) -> float:
        """Log-density of the pseudo-counts, up to a constant."""
        return sum(
            log_of_pseudo_counts(self.counts[name], table)
            for name, table in tables.items()
        )

    def log_priors(self, **tables: Array) -> Array | float:
        """As `log_prior`, of tables (n, ...) of several models: (n,)."""
        out: Array | float = 0.0
        for name, table in tables.items():
            count = self.counts[name]
            if np.any(count):
                each = count * np.log(np.where(table > 0, table, 1.0))
                out = out + each.reshape(len(table), -1).sum(axis=1)
        return out

    def hold_members(self, new: Any, old: Any) -> Any:
        """The batch of an M step, with members that stay."""
        return with_held_members(new, old, self.held.get("emission"))


def counts_of_tables(
    parameter: str, given: Any, default: float = _DEFAULT
) -> dict[str, Any]:
    """Pseudo-counts of every table, numbers or arrays; errors name the parameter."""
    if not isinstance(given, Mapping):
        c = v.check_nonnegative(parameter, given)
        return dict.fromkeys(_TABLES, c)
    unknown = sorted(set(given) - set(_TABLES), key=str)
    if unknown:
        raise ValueError(
            f"{parameter} has {unknown[0]!r}; its names are {', '.join(_TABLES)}."
        )
    counts: dict[str, Any] = dict.fromkeys(_TABLES, default)
    for name, value in given.items():
        array = _checks.nonnegative_array(f"{parameter}[{name!r}]", value)
        counts[name] = array if array.ndim else float(array)
    return counts


def check_counts(
    counts: Mapping[str, Any],
    parameter: str = "smoothing",
    **shapes: tuple[int, ...],
) -> None:
    """Refuse arrays of pseudo-counts of other shapes than the tables."""
    for name, shape in shapes.items():
        own = np.shape(counts[name])
        if own and own != shape:
            raise ValueError(
                f"{parameter}[{name!r}] has shape {own}; a number or an array of shape "
                f"{shape} is expected."
            )


# -- known states ----------------------------------------------------------------------
def known_states(
    states: Any, found: Sequences, n_states: int | None = None
) -> NDArray[np.intp]:
    """States (n_steps,) of all sequences, -1 where they are not known."""
    each = [np.asarray(one) for one in (states if len(found) > 1 else _one(states))]
    lengths = [one.shape for one in each]
    if lengths != [(length,) for length in found.lengths]:
        raise ValueError(
            f"states has entries of shapes {v.shown(lengths)}; one integer for each "
            f"step of the sequences, of lengths {v.shown(found.lengths.tolist())}, is "
            "expected, -1 where a state is not known."
        )
    known = np.concatenate(each)
    if known.dtype.kind not in "iuf":
        wrong = np.ones(len(known), bool)
    else:
        wrong = (known != np.floor(known)) | (known < -1)
    if n_states is not None and not wrong.all():
        wrong |= known >= n_states
    if wrong.any():
        i, t = found.place(int(np.argmax(wrong)))
        most = "" if n_states is None else f" to {n_states - 1}"
        raise ValueError(
            f"states[{i}][{t}]={v.shown(known[np.argmax(wrong)])} must be a state from "
            f"0{most}, or -1 where it is not known."
        )
    return known.astype(np.intp)


def _one(states):
    """States of one sequence as a list."""
    first = states[0] if len(states) else states
    return states if np.ndim(first) else [states]


def only_known(log_table: Array, known: NDArray[np.intp]) -> Array:
    """Log-likelihoods (n_steps, n_states), -inf of all states but the known ones."""
    other = (known >= 0)[:, None] & (known[:, None] != np.arange(log_table.shape[1]))
    return np.where(other, -np.inf, log_table)


def matching_order(shares: Array, known: NDArray[np.intp]) -> NDArray[np.intp]:
    """Order of the states by which posterior shares agree best with known states."""
    k = shares.shape[1]
    at = known >= 0
    agreement = np.zeros((k, k))
    np.add.at(agreement, known[at], shares[at])
    _, order = linear_sum_assignment(-agreement)
    return np.asarray(order, dtype=np.intp)
