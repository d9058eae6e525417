"""The emissions of a batch of a family or of mixtures, and of a fit."""

from __future__ import annotations

from typing import Any

from maxent._support import validation as v
from maxent.families import Categorical, ExponentialFamily
from maxent.models.chains._emissions import Emissions, Rows, Symbols
from maxent.models.chains._mixed_rows import MixedRows
from maxent.models.mixtures import Mixtures


def emissions_of(emission: Any, columns: tuple[str, ...] | None = None) -> Emissions:
    """Emissions of a batch of a family, or of mixtures."""
    if isinstance(emission, Categorical):
        return Symbols(emission.prob.shape[-1])
    fixed = emission._fixed() or None
    event = emission.event_shape
    if isinstance(emission, Mixtures):
        family = type(emission.components)
        return MixedRows(emission.n_components, family, fixed, event, columns)
    return Rows(type(emission), fixed, event, columns)


def emissions_to_fit(
    family: type[ExponentialFamily], options: dict[str, Any], n_components: int = 1
) -> Emissions:
    """Emissions of fits of a family with these further arguments."""
    n_components = v.check_count("n_components", n_components)
    if issubclass(family, Categorical):
        if n_components > 1:
            raise ValueError(
                f"n_components={n_components} mixes categories, and mixtures of "
                "Categorical are Categorical again; leave n_components 1."
            )
        return Symbols(options.get("n_categories"))
    if n_components > 1:
        return MixedRows(n_components, family, options)
    return Rows(family, options)
