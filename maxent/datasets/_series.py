"""Synthetic time series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def make_switching_series(
    n_exemplars: int = 20,
    n_series: int = 5,
    length: int = 25,
    *,
    n_regimes: int = 5,
    n_features: int = 2,
    stay: float = 0.8,
    noise: float = 0.1,
    random_state: Any = None,
) -> tuple[list[NDArray[np.float64]], NDArray[np.intp], NDArray[np.intp]]:
    """Make time series of random switching linear systems, in two classes.

    Each exemplar is a system of its own: in every regime the plane turns by a random
    angle and shrinks by a random factor in (0.7, 1). The first half of the exemplars is
    class 0. Nothing but the exemplars makes the classes: series resemble those of the
    same exemplar.

    Parameters
    ----------
    n_exemplars : int, default=20
        Systems, >= 2.
    n_series : int, default=5
        Series drawn from each.
    length : int, default=25
        Observations of each series.
    n_regimes : int, default=5
        Regimes of each system.
    n_features : int, default=2
        Observed coordinates.
    stay : float, default=0.8
        Probability that a regime goes on.
    noise : float, default=0.1
        Variance of the noise of states and of observations.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    series : list of ndarray (length, n_features)
        ``n_exemplars * n_series`` of them.
    y : ndarray of int
        Classes, 0 and 1.
    groups : ndarray of int
        Exemplars.

    Notes
    -----
    After the experiment in section 8.4 of the paper, whose sizes are the defaults. It
    does not give the scales; here regimes are rotations as said, the state has two
    dimensions and starts from N(0, I), and the observation matrix is Gaussian.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, Journal of Machine
    Learning Research 5, 819-844.

    Examples
    --------
    >>> from maxent.datasets import make_switching_series
    >>> series, y, groups = make_switching_series(random_state=0)
    >>> len(series), series[0].shape, y.sum(), groups.max()
    (100, (25, 2), np.int64(50), np.int64(19))
    """
    from maxent._support import validation as v
    from maxent._support.random_state import as_generator

    n_exemplars = v.check_count("n_exemplars", n_exemplars)
    n_series = v.check_count("n_series", n_series)
    n_regimes = v.check_count("n_regimes", n_regimes)
    n_features = v.check_count("n_features", n_features)
    noise = v.check_positive("noise", noise)
    if n_exemplars < 2:
        raise ValueError(f"n_exemplars={n_exemplars} must be 2 or more: two classes.")
    if not v.is_real(stay) or not 0 <= stay <= 1:
        raise v.not_this("stay", stay, "a probability, from 0 to 1")
    rng = as_generator(random_state)
    series: list[NDArray[np.float64]] = []
    for _ in range(n_exemplars):
        model = _system(rng, n_regimes, n_features, stay, noise)
        series += model.sample(n_series, length, rng)
    groups = np.repeat(np.arange(n_exemplars), n_series)
    return series, (groups >= n_exemplars // 2).astype(np.intp), groups


def _system(rng, K, d, stay, noise):
    from maxent.models import SwitchingLDS

    angle, shrink = rng.uniform(-np.pi, np.pi, K), rng.uniform(0.7, 1.0, K)
    cos, sin = shrink * np.cos(angle), shrink * np.sin(angle)
    turn = np.stack([np.stack([cos, -sin], 1), np.stack([sin, cos], 1)], 1)
    switching = np.full((K, K), (1.0 - stay) / max(K - 1, 1))
    np.fill_diagonal(switching, stay if K > 1 else 1.0)
    return SwitchingLDS(
        np.full(K, 1.0 / K),
        switching,
        turn,
        np.broadcast_to(noise * np.eye(2), (K, 2, 2)),
        rng.normal(size=(d, 2)),
        noise * np.eye(d),
        np.zeros(2),
        np.eye(2),
    )
