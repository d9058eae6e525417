"""What the fits of models with vectors as observations share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models._partial import check_columns, with_column_means
from maxent.models.systems import _lds_em as em
from maxent.models.systems import _switching_em as switching_em

# Parameters of linear or of switching systems
SystemT = TypeVar("SystemT", em.Parameters, switching_em.Parameters)


class Start(Protocol):
    """A model that a fit starts from."""

    n_states: int

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


class Units:
    """Centres and scales of the columns of sequences, in which models are fitted.

    A scale is the standard deviation of a column, 1 of one that is constant. Fits of
    standardised data weigh columns of unlike units alike.

    Attributes
    ----------
    centre, scale : ndarray (d,)
    observed : int
        Number of values that are not missing.
    log_density : float
        Log-density of the data in their own units less that of the standardised ones.
    """

    def __init__(self, data: Sequences):
        seen = data.values[~np.isnan(data.values).all(axis=1)]
        if not len(seen):
            raise ValueError("every row is missing (NaN); there is nothing to fit.")
        check_columns(seen)
        v.check_range("sequences", with_column_means(seen, np.ones(len(seen))))
        self.centre = np.nanmean(seen, axis=0)
        scale = np.nanstd(seen, axis=0)
        varies = (np.nanmin(seen, axis=0) < np.nanmax(seen, axis=0)) & (scale > 0)
        self.scale = np.where(varies, scale, 1.0)
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        self.observed = int(counts.sum())
        self.log_density = -float(counts @ np.log(self.scale))

    def standardised(self, data: Sequences) -> Sequences:
        """Data of mean zero and variance one."""
        values = (data.values - self.centre) / self.scale
        return Sequences(np.ascontiguousarray(values), data.offsets, data.columns)

    def inward(self, p: SystemT) -> SystemT:
        """Convert the parameters of a system to those for standardised data."""
        self.check(p.observation.shape[0])
        return p._replace(
            observation=p.observation / self.scale[:, None],
            observation_cov=p.observation_cov / np.outer(self.scale, self.scale),
            observation_offset=(p.observation_offset - self.centre) / self.scale,
        )

    def outward(self, p: SystemT) -> SystemT:
        """Convert parameters for standardised data to those for the data as given."""
        return p._replace(
            observation=p.observation * self.scale[:, None],
            observation_cov=p.observation_cov * np.outer(self.scale, self.scale),
            observation_offset=p.observation_offset * self.scale + self.centre,
        )

    def check(self, n_features: int) -> None:
        """Refuse a start of another number of features."""
        if n_features != len(self.centre):
            raise ValueError(
                f"init has {n_features} features; the sequences have "
                f"{len(self.centre)}."
            )


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
