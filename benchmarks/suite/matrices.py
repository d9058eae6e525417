"""The Gram matrix as the package computes it, from rows to the filled matrix."""

import numpy as np

from maxent._core.machines import gram as _gram
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.grams.vector_kernels import VectorKernel


def rbf_gram(X, gamma, dtype, n_threads):
    """RBF kernel matrix (n, n) of this type: centring, norms, tiles, mirroring."""
    kernel = VectorKernel(X, "rbf", gamma=gamma, n_threads=n_threads)
    single = np.dtype(dtype) == np.float32
    rows = kernel.X32 if single else kernel.X
    norms = kernel.norms32 if single else kernel.norms
    out = np.empty((len(X), len(X)), dtype=dtype)
    with single_threaded_blas():
        _gram.gram_symmetric(kernel.spec, rows, norms, out, n_threads)
    return out
