"""Blocks of score vectors: their coordinates, and what every scorer defines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent.families import (
    Categorical,
    ExponentialFamily,
    Gaussian,
    InverseWishart,
    Multinomial,
    Wishart,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coordinates:
    """One block of parameters.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Of the whole block, redundant coordinates included.
    kept : ndarray of int (n_kept,)
        Coordinates that determine the others, by their places in the flat block.
    factor : ndarray (n_kept,)
        2 where a coordinate stands for two equal ones, else 1.
    """

    name: str
    shape: tuple[int, ...]
    kept: NDArray[np.intp]
    factor: Array

    def names(self, minimal: bool) -> list[str]:
        """Names of the coordinates, such as ``transition[0,1]``."""
        size = int(np.prod(self.shape, dtype=int))
        flat = self.kept if minimal else np.arange(size)
        places = zip(*np.unravel_index(flat, self.shape))
        return [f"{self.name}[{','.join(map(str, at))}]" for at in places]


def free(name: str, shape: tuple[int, ...]) -> Coordinates:
    """All of them are kept."""
    kept = np.arange(np.prod(shape, dtype=int))
    return Coordinates(name, shape, kept, np.ones(len(kept)))


def probabilities(name: str, table: Array) -> Coordinates:
    """Logits of rows along the last axis: without zeros and each row's last entry."""
    used = table > 0
    last = table.shape[-1] - 1 - np.argmax(used[..., ::-1], axis=-1)
    used &= np.arange(table.shape[-1]) != last[..., None]
    kept = np.flatnonzero(used)
    return Coordinates(name, table.shape, kept, np.ones(len(kept)))


def symmetric(name: str, shape: tuple[int, ...], first: int = 0) -> Coordinates:
    """Blocks (..., first + p * p) that end with a symmetric matrix: its lower half."""
    p = round((shape[-1] - first) ** 0.5)
    i, j = np.tril_indices(p)
    one = np.concatenate([np.arange(first), first + i * p + j])
    factor = np.concatenate([np.ones(first), np.where(i == j, 1.0, 2.0)])
    rows = np.arange(np.prod(shape[:-1], dtype=int))[:, None] * shape[-1]
    return Coordinates(
        name, shape, (rows + one).ravel(), np.tile(factor, len(rows)).ravel()
    )


def family_coordinates(name: str, P: ExponentialFamily) -> Coordinates:
    """Natural parameters of a batch."""
    shape = P.natural_parameters.shape
    if isinstance(P, (Categorical, Multinomial)):
        return probabilities(name, P.prob)
    if isinstance(P, Gaussian):
        return symmetric(name, shape, P.mean.shape[-1])
    if isinstance(P, (Wishart, InverseWishart)):
        return symmetric(name, shape, 1)
    return free(name, shape)


# -- what every kind of model defines --------------------------------------------------
class Scorer(ABC):
    """Scores of one kind of model, by blocks of coordinates."""

    def __init__(self, model: Any, n_jobs: int | None = None) -> None:
        self.model, self.n_jobs = model, n_jobs

    @abstractmethod
    def coordinates(self) -> list[Coordinates]:
        """Blocks of parameters."""

    @abstractmethod
    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        """Log-likelihoods (n,), and scores (n, block) in all coordinates."""


def logit_scores(counts: Array, table: Array) -> Array:
    """n_k - theta_k sum_j n_j along the last axis."""
    return counts - table * counts.sum(axis=-1, keepdims=True)


def cov_score(cov: Array, scatter: Array, count: float) -> Array:
    """(cov^{-1} scatter cov^{-1} - count cov^{-1}) / 2, flat."""
    inverse = np.linalg.inv(cov)
    score = 0.5 * (inverse @ scatter @ inverse - count * inverse)
    return (0.5 * (score + score.T)).ravel()
