"""Blocks of score vectors: their coordinates, and what every scorer defines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent.families import ExponentialFamily
from maxent.families._minimal import all_kept, of_logits, of_symmetric

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


def _block(name, mask, factor):
    kept = np.flatnonzero(mask)
    return Coordinates(name, mask.shape, kept, np.ravel(factor)[kept])


def free(name: str, shape: tuple[int, ...]) -> Coordinates:
    """All of them are kept."""
    return _block(name, *all_kept(shape))


def probabilities(name: str, table: Array) -> Coordinates:
    """Logits of rows along the last axis."""
    return _block(name, *of_logits(table))


def symmetric(name: str, shape: tuple[int, ...]) -> Coordinates:
    """Symmetric matrices (..., p * p)."""
    return _block(name, *of_symmetric(shape))


def family_coordinates(name: str, P: ExponentialFamily) -> Coordinates:
    """Natural parameters of a batch."""
    return _block(name, *P._minimal())


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
