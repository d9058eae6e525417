"""Transformations of data that must not matter, or must be refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from invariances.data import Data, same

EPS = np.finfo(float).eps


@dataclasses.dataclass(frozen=True)
class Transformation:
    """A change of data or options.

    ``group`` says which kinds of data have it. ``rounding`` bounds the relative error
    that the change itself brings to a column, in units of its spread; None is for the
    same numbers in another storage, for which a fit computes what it computed before.
    ``base`` is applied to both sides of the comparison.
    """

    name: str
    group: str
    change: Callable[[Data, np.random.Generator], Data]
    rounding: float | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    base: Callable[[Data], Data] = same


TRANSFORMATIONS: list[Transformation] = []


def add(name, group, change, **more):
    TRANSFORMATIONS.append(Transformation(name, group, change, **more))


def plain(change):
    """Apply to every array."""
    return lambda data, rng: data.each(change)


def width(data):
    """Columns of every array; of numbers on a line, one."""
    shape = np.shape(data.query[0] if isinstance(data.query, list) else data.query)
    return shape[-1] if len(shape) > 1 else 1
