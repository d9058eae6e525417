"""What the fits of models with vectors as observations share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.sequences import Sequences
from maxent.models import _lds_em as em
from maxent.models._partial import check_columns, is_partial, with_column_means

if TYPE_CHECKING:
    from maxent.models.lds import LinearDynamicalSystem
    from maxent.models.switching import SwitchingLDS


def check_fixed(fixed: Iterable[str], names: Sequence[str]) -> frozenset[str]:
    """Names of parameters that a fit keeps."""
    fixed = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    for name in fixed:
        if name not in names:
            raise ValueError(
                f"fixed={v.shown(fixed)} has no parameter {name!r}: choose from "
                f"{', '.join(names)}."
            )
    return frozenset(fixed)


def n_states_of(
    init: LinearDynamicalSystem | SwitchingLDS | None, n_states: int | None
) -> int:
    """Return the number of states, from `init` or as given; refuse disagreement."""
    if init is None:
        if n_states is None:
            raise ValueError("n_states=None: give n_states, or init.")
        return v.check_count("n_states", n_states)
    if n_states not in (None, init.n_states):
        raise ValueError(f"n_states={n_states} but init has {init.n_states} states.")
    return init.n_states


def centred(data: Sequences) -> tuple[Sequences, NDArray[np.float64], float]:
    """Data about their mean, the mean, and the mean variance (1 of constant data)."""
    seen = data.values[~np.isnan(data.values).all(axis=1)]
    if not len(seen):
        raise ValueError("every row is missing (NaN); there is nothing to fit.")
    check_columns(seen)
    if is_partial(seen).any():
        v.check_range("sequences", with_column_means(seen))
        centre = np.nanmean(seen, axis=0)
        variance = float(np.nanmean(np.square(seen - centre)))
    else:
        v.check_range("sequences", seen)
        centre = seen.mean(axis=0)
        variance = float(np.square(seen - centre).mean())
    noise = variance if variance > 0 else 1.0
    values = np.ascontiguousarray(data.values - centre)
    return Sequences(values, data.offsets), centre, noise


def lds_starts(
    data: Sequences,
    n: int,
    noise: float,
    centre: NDArray[np.float64],
    init: LinearDynamicalSystem | None,
    n_init: int,
    fixed: frozenset[str],
    random_state: Any,
) -> Iterator[em.Parameters]:
    """Parameters to start from: the given ones, then those of windows of the data."""
    if init is not None:
        if init.n_steps is not None:
            raise ValueError(
                f"init varies over n_steps={init.n_steps}; only systems that are "
                "constant in time are fitted."
            )
        if init.n_features != data.values.shape[1]:
            raise ValueError(
                f"init has {init.n_features} features; the sequences have "
                f"{data.values.shape[1]}."
            )
        p = init._parameters
        yield p._replace(observation_offset=p.observation_offset - centre)
    elif fixed:
        raise ValueError(f"fixed={sorted(fixed)} needs init, whose values are kept.")
    rng = as_generator(random_state)
    for k in range(init is not None, n_init):
        p = em.start(data, n, noise, rng if k else None)
        if init is not None:  # further starts keep what is fixed
            kept = init._parameters._replace(
                observation_offset=init.observation_offset - centre
            )
            p = p._replace(**{name: getattr(kept, name) for name in fixed})
        yield p
