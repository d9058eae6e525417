"""What the fits of models with vectors as observations share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models._units import Units
from maxent.models.systems import _lds_em as em


class Start(Protocol):
    """A model that a fit starts from."""

    @property
    def n_states(self) -> int: ...
    @property
    def _parameters(self) -> Any: ...


class LinearStart(Start, Protocol):
    """The same, of linear systems."""

    n_steps: int | None


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


def n_states_of(init: Start | None, n_states: int | None) -> int:
    """Return the number of states, from `init` or as given; refuse disagreement."""
    if init is None:
        if n_states is None:
            raise ValueError("n_states=None: give n_states, or init.")
        return v.check_count("n_states", n_states)
    if n_states not in (None, init.n_states):
        raise ValueError(f"n_states={n_states} but init has {init.n_states} states.")
    return init.n_states


def lds_starts(
    data: Sequences,
    n: int,
    units: Units,
    init: LinearStart | None,
    n_init: int,
    fixed: frozenset[str],
    random_state: Any,
) -> Iterator[em.Parameters]:
    """Parameters to start from: the given ones, then those of windows of the data.

    All are of standardised data, as `data` are.
    """
    if init is not None:
        if init.n_steps is not None:
            raise ValueError(
                f"init varies over n_steps={init.n_steps}; only systems that are "
                "constant in time are fitted."
            )
        kept = units.inward(init._parameters)
        yield kept
    elif fixed:
        raise ValueError(f"fixed={sorted(fixed)} needs init, whose values are kept.")
    rng = as_generator(random_state)
    for k in range(init is not None, n_init):
        p = em.start(data, n, rng if k else None)
        if init is not None:  # further starts keep what is fixed
            p = p._replace(**{name: getattr(kept, name) for name in fixed})
        yield p
