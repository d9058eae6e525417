"""Scores, words, divergences: kernels of data without a model for each datum."""

import numpy as np
from scipy import sparse

from maxent.kernels import FisherScores, heat_kernel, js_kernel, spectrum_kernel

from .common import Measured, profile
from .sequences import random_hmm


class Scores(Measured):
    """Fisher scores of sequences of 20 to 200 letters under a model of 10 states."""

    params = (profile([500], [5000]),)
    param_names = ("sequences",)

    def data(self, n):
        rng = np.random.default_rng(0)
        self.scores = FisherScores(random_hmm(rng, 10, 4), n_jobs=1)
        self.X = random_hmm(rng, 10, 4).sample(n, rng.integers(20, 201, size=n), rng)

    def work(self, tol=None):
        return self.scores.transform(self.X)

    def objective(self, result):
        return float(np.square(result).sum())


class Spectrum(Measured):
    """Kernel of words of k letters, of sequences of 200 letters."""

    params = (profile([500], [2000]), [3, 8])
    param_names = ("sequences", "k")

    def data(self, n, k):
        rng = np.random.default_rng(0)
        self.X, self.k = list(rng.integers(4, size=(n, 200))), k

    def work(self, tol=None):
        return spectrum_kernel(self.X, k=self.k, n_symbols=4, n_jobs=1)

    def objective(self, result):
        return float(result.sum())


class Proportions(Measured):
    """Kernels of sparse proportions, 50 of 10,000 words each."""

    params = (profile([300], [2000]), ["js", "heat"])
    param_names = ("documents", "kernel")

    def data(self, n, kernel):
        rng = np.random.default_rng(0)
        columns = np.sort(rng.integers(10_000, size=(n, 50)), axis=1).ravel()
        rows = np.repeat(np.arange(n), 50)
        shape = (n, 10_000)
        X = sparse.coo_array((np.full(50 * n, 0.02), (rows, columns)), shape=shape)
        self.P, self.kernel = X.tocsr(), {"js": js_kernel, "heat": heat_kernel}[kernel]

    def work(self, tol=None):
        return self.kernel(self.P)

    def objective(self, result):
        return float(result.sum())
