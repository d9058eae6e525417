"""Functions for arrays: the dual solvers, Gram matrices, the Fisher kernel."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from maxent._support.threads import single_threaded_blas
from maxent.discrimination import (
    ExponentialMargin,
    LogisticMargin,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.discrimination.grams.vector_kernels import apply_kernel

from .common import Measured, profile
from .data import classification, signs, sparse_text
from .matrices import rbf_gram


class DenseDual(Measured):
    """solve_dual on a Gram matrix."""

    params = (
        profile([200, 1000], [4000]),
        ["interior", "smo"],
    )
    param_names = ("rows", "solver")

    def data(self, n, solver):
        X, y, *_ = classification(n, 20, test=10)
        self.K, self.y, self.solver = rbf_kernel(X, gamma=0.05), signs(y), solver

    def work(self, tol=1e-4):
        return solve_dual(
            self.K, self.y, ExponentialMargin(10.0), tol=tol, solver=self.solver
        )

    def objective(self, result):
        return result.objective


class KernelDual(Measured):
    """solve_kernel_dual, with all of K in its cache and with a quarter of it."""

    params = (
        profile([2000], [10000]),
        [1.0, 0.25],
    )
    param_names = ("rows", "share of K in the cache")

    def data(self, n, share):
        X, y, *_ = classification(n, 20, test=10)
        self.X, self.y = X, signs(y)
        self.cache_size = 1.2 * share * 4e-6 * n**2

    def work(self, tol=1e-4):
        return solve_kernel_dual(
            self.X,
            self.y,
            ExponentialMargin(10.0),
            gamma=0.05,
            tol=tol,
            cache_size=self.cache_size,
            n_jobs=1,
        )

    def objective(self, result):
        return result.objective


class SparseLinearDual(Measured):
    """solve_linear_dual on CSR features."""

    params = (profile([(20000, 20000)], [(200000, 50000)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, y, *_ = sparse_text(*size, test=10)
        self.y = signs(y)

    def work(self, tol=1e-3):
        return solve_linear_dual(
            self.X, self.y, ExponentialMargin(3.0), bias=1.0, tol=tol
        )

    def objective(self, result):
        return result.objective


class DenseLinearDual(Measured):
    """solve_linear_dual on dense features, by every solver."""

    params = (
        profile([(5000, 20)], [(100000, 50)]),
        ["newton", "coordinate", "interior"],
    )
    param_names = ("rows, columns", "solver")

    def data(self, size, solver):
        self.X, y, *_ = classification(*size, test=10)
        self.y, self.solver = signs(y), solver

    def work(self, tol=1e-3):
        return solve_linear_dual(
            self.X, self.y, LogisticMargin(), bias=1.0, tol=tol, solver=self.solver
        )

    def objective(self, result):
        return result.objective


class Gram(Measured):
    """RBF Gram matrix, symmetric, in both types, on one and two threads."""

    params = (
        profile([(2000, 20), (2000, 200)], [(5000, 20), (5000, 200), (5000, 768)]),
        ["float32", "float64"],
        [1, 2],
    )
    param_names = ("rows, columns", "type", "threads")

    def data(self, size, dtype, threads):
        self.X = np.random.default_rng(0).normal(size=size)
        self.dtype, self.threads = dtype, threads

    def work(self, tol=None):
        return rbf_gram(self.X, 1.0 / self.X.shape[1], self.dtype, self.threads)

    def objective(self, result):
        return float(result.sum(dtype=np.float64))


class Apply(Measured):
    """Kernel times coefficients for new rows: what prediction costs."""

    params = (
        profile([(5000, 1000, 20)], [(20000, 2500, 20)]),
        ["linear", "rbf", "poly"],
        [1, 2],
    )
    param_names = ("rows, support, columns", "kernel", "threads")

    def data(self, size, kernel, threads):
        n, m, d = size
        rng = np.random.default_rng(0)
        self.X, self.Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        self.A = rng.normal(size=(m, 1))
        self.kernel, self.threads = kernel, threads

    def work(self, tol=None):
        with single_threaded_blas():
            return apply_kernel(
                self.X,
                self.Z,
                self.A,
                self.kernel,
                gamma=1.0 / self.X.shape[1],
                coef0=1.0,
                n_threads=self.threads,
            )

    def objective(self, result):
        return float(np.abs(result).sum())


class FisherKernel(Measured):
    """fisher_kernel of one set of scores with the empirical information."""

    params = (profile([(2000, 50)], [(5000, 500)]),)
    param_names = ("rows, parameters",)

    def data(self, size):
        self.scores = np.random.default_rng(0).normal(size=size)
        self.scores -= self.scores.mean(axis=0)

    def work(self, tol=None):
        from maxent.kernels import fisher_kernel

        return fisher_kernel(self.scores, n_jobs=1)

    def objective(self, result):
        return float(np.abs(result).sum())
