"""Nyström features of a kernel: linear machines in place of kernel machines.

What they cost: with R = K - F F', positive semidefinite, P the primal and D the dual
objective of a machine f with multipliers a on features F, and P* the least primal
objective with the kernel K itself,

    P_K(f) = P              f is in the span of the landmarks, where the norms agree
    P* >= D - a' R a / 2    a is feasible for the dual of K, which has this value there
    P_K(f) - P* <= (P - D) + a' R a / 2

Source: Williams & Seeger (2001), Using the Nyström method to speed up kernel machines.
"""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent.discrimination.grams.vector_kernels import apply_kernel, kernel_of_rows

_SMALLEST = 1e-10  # share of the largest eigenvalue, below which rounding takes over
_NEGATIVE = 1e-6  # share that rounding in a callable of single precision explains
_CHUNK = 16_384  # rows whose features exist in double precision at a time
_PAIRS = 4e8  # of rows, whose kernel values the bound of the cost may take
_LEAST_BLOCK = 1024


class NystroemMap:
    """Function that gives rows columns of nearly the inner products of the kernel.

    With landmarks L and T T' the pseudo-inverse of k(L, L), the features of x are
    ``k(x, L) T``. They are the coordinates of the projection of x's image on the span
    of the landmarks' images, so no inner product of a combination of rows with itself
    is larger than the kernel's.

    Parameters
    ----------
    landmarks : ndarray or CSR (m, d)
    estimator : object
        With `kernel`, `gamma_`, `degree`, `coef0`.
    n_jobs : int, optional

    Attributes
    ----------
    transform : ndarray (m, k)
        T; directions in which the landmarks hardly differ are left out.
    semidefinite : bool
        Whether the kernel's matrix of the landmarks is.
    """

    def __init__(self, landmarks, estimator, n_jobs=None):
        e = estimator
        self.landmarks, self.kernel, self.n_jobs = landmarks, e.kernel, n_jobs
        self.options = {"gamma": e.gamma_, "degree": e.degree, "coef0": e.coef0}
        everything = np.arange(landmarks.shape[0])
        with single_threaded_blas():
            K = self.kernel_of(landmarks).block(everything, everything)
            size, U = np.linalg.eigh(0.5 * (K + K.T))
        self.semidefinite = size[0] >= -_NEGATIVE * size[-1]
        kept = size > _SMALLEST * size[-1]
        self.transform = U[:, kept] / np.sqrt(size[kept])

    @property
    def n_columns(self):
        """Number of features, at most that of the landmarks."""
        return self.transform.shape[1]

    def __call__(self, X):
        """Features (n, k) in single precision."""
        values = np.empty((X.shape[0], self.n_columns), dtype=np.float32)
        for lo in range(0, len(values), _CHUNK):
            part = slice(lo, lo + _CHUNK)
            with np.errstate(over="ignore"), single_threaded_blas():
                values[part] = self.apply(X[part], self.landmarks, self.transform)
            if not np.isfinite(values[part]).all():
                raise ValueError(
                    "X has rows whose kernel values with others leave single "
                    "precision; scale the features."
                )
        return values

    def kernel_of(self, X):
        """VectorKernel of rows."""
        return kernel_of_rows(X, self.kernel, **self.options, n_jobs=self.n_jobs)

    def apply(self, X, Z, A):
        """k(X, Z) @ A."""
        threads = effective_threads(self.n_jobs)
        return apply_kernel(X, Z, A, self.kernel, **self.options, n_threads=threads)

    def coefficients(self, weights):
        """Of the landmarks, (outputs, m), from weights of the features."""
        return np.ascontiguousarray(weights @ self.transform.T)


class NystroemFeatures:
    """The features of rows in memory, by landmarks that are some of them.

    Parameters
    ----------
    X : ndarray or CSR (n, d)
        Checked rows.
    estimator : object
        As for :class:`NystroemMap`, and `n_jobs`, `n_components`, `random_state`.

    Attributes
    ----------
    map : NystroemMap
    values : ndarray of float32 (n, k)
        The features; k is at most `n_components`.
    rows : ndarray of int (m,)
        Rows of X that are landmarks, a random subset.
    """

    def __init__(self, X, estimator):
        rng = as_generator(estimator.random_state)
        self.X, self.rows = X, landmark_rows(X.shape[0], estimator, rng)
        self._seed = int(rng.integers(2**63))
        self.map = NystroemMap(X[self.rows], estimator, estimator.n_jobs)
        self.values = self.map(X)

    def lost_norm(self, a):
        """Bound and estimate the squared norm a' R a that the features leave out.

        R = K - F F' is positive semidefinite. Rows in random blocks B have parts g_B
        of the machine a' k(rows, x), so that

            a' R a = |sum_B g_B|^2 <= (sum_B |g_B|)^2,    |g_B|^2 = a_B' R_BB a_B.

        Parameters
        ----------
        a : ndarray (outputs, n)
            Signed multipliers.

        Returns
        -------
        bound : float
            Of a' R a; its value if one block holds all rows. NaN if the kernel turns
            out not to be positive semidefinite.
        estimate : float
            Unbiased over the random blocks.
        error : float
            Standard error of the estimate from the spread of the blocks, as if they
            were independent: rather too large.
        """
        used = np.flatnonzero(a.any(axis=0))
        if not len(used):
            return 0.0, 0.0, 0.0
        used = np.random.default_rng(self._seed).permutation(used)
        block = max(_LEAST_BLOCK, int(_PAIRS / len(used)))
        count = -(-len(used) // block)
        with single_threaded_blas():
            parts = [self._parts(a, B) for B in np.array_split(used, count)]
        whole, rounding, own = np.array(parts).T
        if not self.map.semidefinite or (whole < -rounding).any():
            return np.nan, np.nan, np.nan
        whole = np.maximum(whole, 0.0)
        bound = float(np.sqrt(whole).sum() ** 2)
        return bound, *_estimate(whole, own, len(used))

    def _parts(self, a, B):
        """(a_B' R a_B, its rounding error, the part of R's diagonal) of some rows."""
        X, a = self.X[B], np.ascontiguousarray(a[:, B].T)
        kernel = self.map.kernel_of(X)
        exact = float(np.vdot(a, kernel.apply(np.arange(len(B)), a)))
        kept = self.map.transform.T @ self.map.apply(self.map.landmarks, X, a)
        squares = np.einsum("ij,ij->i", *2 * (self.values[B].astype(np.float64),))
        left = np.maximum(kernel.diagonal() - squares, 0.0)
        own = float(np.einsum("ij,ij,i->", a, a, left))
        size = float(kernel.diagonal() @ np.einsum("ij,ij->i", a, a))
        rounding = (_NEGATIVE if kernel.spec is None else 1e-9) * (abs(exact) + size)
        return exact - float(np.vdot(kept, kept)), rounding, own


def landmark_rows(n, estimator, rng):
    """Places of the landmarks among n rows."""
    m = v.check_count("n_components", estimator.n_components)
    return np.sort(rng.permutation(n)[: min(m, n)])


def _estimate(whole, own, n):
    """Sum over all pairs of rows from that over the pairs inside random blocks."""
    count = len(whole)
    if count == 1:
        return float(whole[0]), 0.0
    size = n / count
    factor = (n - 1.0) / max(size - 1.0, 1.0)
    pairs = factor * (whole - own)
    # the sum of the rows' own parts is exact, whatever the blocks
    estimate = float(own.sum() + pairs.sum())
    return estimate, float(np.sqrt(count) * pairs.std(ddof=1))


def is_approximated(data):
    """True if rows to fit are features in place of kernel values."""
    return isinstance(data, NystroemFeatures)


def check_approximation(estimator):
    """Refuse an unknown approximation, or one that this kernel has no use for."""
    if estimator.approximation is None:
        return
    v.check_choice("approximation", estimator.approximation, ("nystroem",))
    v.check_count("n_components", estimator.n_components)
    kernel = estimator.kernel
    if isinstance(kernel, str) and kernel in ("linear", "precomputed"):
        raise ValueError(
            f"approximation={estimator.approximation!r} needs a kernel of the rows, "
            f"not kernel={kernel!r}; set approximation=None or another kernel."
        )
    if estimator.solver == "smo":
        raise ValueError(
            "solver='smo' works on kernel values, and with approximation="
            f"{estimator.approximation!r} there are none; use 'auto'."
        )


def refuse_approximation(estimator, name):
    """Refuse an approximation where only exact kernels are fitted."""
    if estimator.approximation is not None:
        raise ValueError(
            f"{name} fits with exact kernels only, not with approximation="
            f"{estimator.approximation!r}; set approximation=None, or use "
            "sklearn.kernel_approximation.Nystroem and kernel='linear'."
        )
