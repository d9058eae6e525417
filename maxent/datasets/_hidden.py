"""Synthetic sequences with a hidden motif."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support.underflow import allow_underflow

_LETTERS = "ACGT"


@allow_underflow
def make_motif_occupancy(
    n_samples: int = 2000,
    length: int = 36,
    width: int = 8,
    *,
    information: float = 1.0,
    noise: float = 0.7,
    random_state: Any = None,
) -> tuple[list[str], NDArray[np.intp], NDArray[np.float64]]:
    """Make DNA sequences whose label comes from the occupancy of all places.

    As in binding experiments, the strength of a sequence is the log-sum over all places
    of the odds of a motif there. Strengths are scaled to a deviation of one, noise is
    added, and the upper half is positive. Evidence of many places adds up: low orders
    alpha suit it.

    Parameters
    ----------
    n_samples : int, default=2000
        Sequences, >= 2.
    length : int, default=36
        Letters of each.
    width : int, default=8
        Positions of the motif, <= `length`.
    information : float, default=1.0
        Bits of every position of the motif, in (0, 2).
    noise : float, default=0.7
        Deviation of the noise, >= 0, in units of the deviation of the strengths.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : list of str (n_samples,)
        Letters are uniform.
    y : ndarray of int (n_samples,)
        Classes 0 and 1, half each.
    motif : ndarray (width, 4)
        Probabilities of A, C, G and T at each position.

    Raises
    ------
    ValueError
        For sizes and parameters outside their domains.

    See Also
    --------
    make_planted_motifs : One true place in every positive.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models,
    section 5.1, whose labels come from binding strengths.

    Examples
    --------
    >>> from maxent.datasets import make_motif_occupancy
    >>> X, y, motif = make_motif_occupancy(100, random_state=0)
    >>> len(X[0]), y.sum(), motif.shape
    (36, np.int64(50), (8, 4))
    """
    from maxent._support import validation as v

    n, L, m, rng = _sizes(n_samples, length, width, random_state)
    noise = v.check_nonnegative("noise", noise)
    motif = _motif(rng, m, information)
    codes = rng.integers(4, size=(n, L))
    odds = np.log(np.maximum(4.0 * motif, np.finfo(float).tiny))
    sites = sum(odds[j][codes[:, j : L - m + 1 + j]] for j in range(m))
    strength = np.logaddexp.reduce(sites, axis=1)
    deviation = strength.std()
    strength = (strength - strength.mean()) / (deviation if deviation > 0 else 1.0)
    strength += noise * rng.standard_normal(n)
    y = np.zeros(n, dtype=np.intp)
    y[np.argsort(strength, kind="stable")[n // 2 :]] = 1
    return _strings(codes), y, motif


@allow_underflow
def make_planted_motifs(
    n_samples: int = 2000,
    length: int = 36,
    width: int = 8,
    *,
    information: float = 1.6,
    decoy: float = 0.5,
    random_state: Any = None,
) -> tuple[list[str], NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Make DNA sequences with one planted site each, whole in the positive ones.

    The site of a positive is drawn from a motif; in that of a negative only a share of
    the positions, chosen anew for every sequence, is. One place tells the label, among
    clutter: nothing is gained by averaging.

    Parameters
    ----------
    n_samples : int, default=2000
        Sequences, >= 2; every second one is positive.
    length : int, default=36
        Letters of each.
    width : int, default=8
        Positions of the motif, <= `length`.
    information : float, default=1.6
        Bits of every position of the motif, in (0, 2).
    decoy : float, default=0.5
        Share of the positions of a negative's site that come from the motif, from 0 (no
        decoys) to 1 (no signal).
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : list of str (n_samples,)
        Letters outside the sites are uniform.
    y : ndarray of int (n_samples,)
        Classes 0 and 1.
    motif : ndarray (width, 4)
        Probabilities of A, C, G and T at each position.
    places : ndarray of int (n_samples,)
        First letter of the site of each sequence.

    Raises
    ------
    ValueError
        For sizes and parameters outside their domains.

    See Also
    --------
    make_motif_occupancy : Many places contribute.

    Examples
    --------
    >>> from maxent.datasets import make_planted_motifs
    >>> X, y, motif, places = make_planted_motifs(100, random_state=0)
    >>> len(X), y.sum(), places.max() <= 28
    (100, np.int64(50), np.True_)
    """
    from maxent._support import validation as v

    n, L, m, rng = _sizes(n_samples, length, width, random_state)
    if not v.is_real(decoy) or not 0 <= decoy <= 1:
        raise v.not_this("decoy", decoy, "a share, from 0 to 1")
    motif = _motif(rng, m, information)
    codes = rng.integers(4, size=(n, L))
    y = np.arange(n) % 2
    places = rng.integers(L - m + 1, size=n)
    below = rng.random((n, m, 1)) > np.cumsum(motif, axis=1)
    sites = np.minimum(below.sum(axis=2), 3)
    # of a negative, the positions with the smallest draws come from the motif
    rank = rng.random((n, m)).argsort(axis=1).argsort(axis=1)
    kept = (rank < round(decoy * m)) | (y == 1)[:, None]
    at = places[:, None] + np.arange(m)
    rows = np.arange(n)[:, None]
    codes[rows, at] = np.where(kept, sites, codes[rows, at])
    return _strings(codes), y, motif, places


def _sizes(n_samples, length, width, random_state):
    from maxent._support import validation as v
    from maxent._support.random_state import as_generator

    n, L = v.check_count("n_samples", n_samples), v.check_count("length", length)
    m = v.check_count("width", width)
    if n < 2:
        raise ValueError(f"n_samples={n} must be 2 or more: two classes.")
    if m > L:
        raise ValueError(f"width={m} must be at most length={L}.")
    return n, L, m, as_generator(random_state)


def _motif(rng, width, information):
    """Letter probabilities (width, 4) of so many bits at every position."""
    from scipy.optimize import brentq

    from maxent._support import validation as v

    if not v.is_real(information) or not 0 < information < 2:
        raise v.not_this("information", information, "bits between 0 and 2")
    weights = rng.standard_normal((width, 4))

    def probabilities(row, scale):
        p = np.exp(scale * (row - row.max()))
        return p / p.sum()

    def excess(scale, row):
        p = probabilities(row, scale)
        return 2.0 + float(np.sum(p * np.log2(np.maximum(p, 1e-300)))) - information

    out = np.empty_like(weights)
    for j, row in enumerate(weights):
        gap = np.diff(np.sort(row))[-1]  # beyond this scale one letter is left
        out[j] = probabilities(row, brentq(excess, 0.0, 800.0 / gap, args=(row,)))
    return out


def _strings(codes):
    letters = np.array(list(_LETTERS))
    return ["".join(row) for row in letters[codes]]
