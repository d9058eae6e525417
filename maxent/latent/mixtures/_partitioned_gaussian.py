"""EM of Gaussian mixtures over the blocks of a Dask array, all restarts at a time."""

from __future__ import annotations

import numpy as np

from maxent._partitions.partition_checks import check_partitions, sample_of
from maxent._partitions.partitions import partitions_of
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
        names = "y", "sample_weight"
        rows = partitions_of(X, None, weight, names=names, matrix=True)
        found = check_partitions(rows, "none", v.LARGEST_ENTRY, sparse=False)
        n, W = sum(s.n for s in found), sum(s.total for s in found)
        _check_size(K, n)
        self.parts = rows
        self._set_sizes(W, rows.n_columns, K, kind, 1)
        (total,) = rows.total(_sum)
        centre = total / W
        (scatter,) = rows.total(_scatter, centre, self.diagonal)
        largest = np.max(rows.map(_largest, centre), axis=0)
        drawn, _, own = sample_of(rows, [s.n for s in found], max(_SAMPLE, K))
        self.sample = np.asarray(drawn, dtype=np.float64), own
        prior = prior(*self.sample) if callable(prior) else prior
        self._set_scale(centre, scatter / W, largest, prior)
        self._set_rows(*self.sample)

    def _shared(self):
        return self.centre, self.scale, self.K, self.kind

    def sums(self, theta, mean, factor):
        return self.parts.total(_sums, *self._shared(), theta, mean, factor)

    def missing_share(self, phi):
        return self._share_by_statistics(phi)

    def missing_information(self, phi):
        (found,) = self.parts.total(_missing, *self._shared(), phi)
        return found / self.W

    def left_entropy(self, phi):
        (found,) = self.parts.total(_left, *self._shared(), phi)
        return found / self.W


def _check_size(K, n):
    if n < max(K, 2):
        raise ValueError(
            f"n_components={K} needs more than the {n} rows (n_samples) of "
            "positive weight; lower it or add rows."
        )


# -- functions of one partition (X, None, weight) --------------------------------------
def _rows(X, weight):
    """Rows of positive weight as doubles, and their weights."""
    if weight is None:
        return np.asarray(X, dtype=np.float64), np.ones(len(X))
    keep = weight > 0
    return np.asarray(X[keep], dtype=np.float64), weight[keep].astype(np.float64)


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


def _sums(X, _, weight, centre, scale, K, kind, theta, mean, factor):
    part = GaussianEM.of_part(*_rows(X, weight), centre, scale, K, kind)
    return part.sums(theta, mean, factor)


def _missing(X, _, weight, centre, scale, K, kind, phi):
    part = GaussianEM.of_part(*_rows(X, weight), centre, scale, K, kind)
    return (part.missing_information(phi) * part.W if part.n else 0.0,)


def _left(X, _, weight, centre, scale, K, kind, phi):
    part = GaussianEM.of_part(*_rows(X, weight), centre, scale, K, kind)
    return (part.left_entropy(phi) * part.W if part.n else 0.0,)
