"""Units of the columns of sequences, which fits of models with vectors put aside."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

import numpy as np

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent.models._partial import check_columns, with_column_means


class Observing(Protocol):
    """Parameters of a model, as far as units change them."""

    @property
    def observation(self) -> Any: ...
    @property
    def observation_cov(self) -> Any: ...
    @property
    def observation_offset(self) -> Any: ...
    def _replace(self, *args: Any, **changes: Any) -> Self: ...


SystemT = TypeVar("SystemT", bound=Observing)


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
