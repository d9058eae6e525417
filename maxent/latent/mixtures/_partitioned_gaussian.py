"""EM of Gaussian mixtures over the blocks of a Dask array, all restarts at a time."""

from __future__ import annotations

import numpy as np

from maxent._partitions.partition_checks import (
    read_partitions,
    rows_of_weight,
    sample_of,
)
from maxent._support import validation as v
from maxent.latent.mixtures._gaussian_em import GaussianEM

_SAMPLE = 1 << 14  # rows that starts are drawn from, at most


class PartitionedGaussianEM(GaussianEM):
    """The same steps, whose sums over rows are added up over partitions.

    The rows that it holds itself are a sample, for starts.

    Parameters
    ----------
    X, weight : Dask array (n, d), and weights (n,) or None
    K, kind
        As for `GaussianEM`.
    prior : MixturePrior, callable or None
        A callable makes it of the sample and its weights.
    """

    def __init__(self, X, weight, K, kind, prior=None):
        _check_size(K, X.shape[0])
        options = "none", v.LARGEST_ENTRY
        self.parts, summary = read_partitions(X, None, weight, *options, sparse=False)
        _check_size(K, summary.n)
        self._set_sizes(summary.total, self.parts.n_columns, K, kind, 1)
        (total,) = self.parts.total(_sum)
        centre = total / self.W
        (scatter,) = self.parts.total(_scatter, centre, self.diagonal)
        largest = np.max(self.parts.map(_largest, centre), axis=0)
        drawn, _, own = sample_of(self.parts, summary.lengths, max(_SAMPLE, K))
        self.sample = np.asarray(drawn, dtype=np.float64), own
        prior = prior(*self.sample) if callable(prior) else prior
        self._set_scale(centre, scatter / self.W, largest, prior)
        self._set_rows(*self.sample)

    def _total(self, method, *args):
        """Sums over the partitions of a method of `GaussianEM`."""
        shared = self.W, self.centre, self.scale, self.K, self.kind
        return self.parts.total(_of_part, method, shared, *args)

    def sums(self, theta, mean, factor):
        return self._total(GaussianEM.sums, theta, mean, factor)

    def missing_share(self, phi):
        return self._share_by_statistics(phi)

    def missing_information(self, phi):
        return self._total(GaussianEM.missing_information, phi)[0]

    def left_entropy(self, phi):
        return self._total(GaussianEM.left_entropy, phi)[0]


def _check_size(K, n):
    if n < max(K, 2):
        raise ValueError(
            f"n_components={K} needs more than the {n} rows (n_samples) of "
            "positive weight; lower it or add rows."
        )


# -- functions of one partition (X, None, weight) --------------------------------------
def _rows(X, weight):
    """Rows of positive weight as doubles, and their weights."""
    X, _, weight = rows_of_weight(X, None, weight)
    return np.asarray(X, dtype=np.float64), weight


def _sum(X, _, weight):
    X, w = _rows(X, weight)
    return (w @ X,)


def _scatter(X, _, weight, centre, diagonal):
    X, w = _rows(X, weight)
    R = X - centre
    if diagonal:
        return (w @ np.square(R),)
    return ((R.T * w) @ R,)


def _largest(X, _, weight, centre):
    return np.abs(_rows(X, weight)[0] - centre).max(axis=0, initial=0.0)


def _of_part(X, _, weight, method, shared, *args):
    result = method(GaussianEM.of_part(*_rows(X, weight), *shared), *args)
    return result if isinstance(result, tuple) else (result,)
