"""Product kernels: counts, families, mixtures, chains, and data to the matrix."""

import numpy as np
from scipy import sparse

from maxent.families import DiagonalGaussian, Gaussian
from maxent.kernels import ProductKernel, product_kernel
from maxent.models import MarkovChain, Mixture

from .common import Measured, profile


class CountsKernel(Measured):
    """Documents of 100 words out of 40,000, sparse to the kernel matrix."""

    params = (profile([2000], [10_000]), [0.0, 0.01])
    param_names = ("documents", "smoothing")

    def data(self, n, smoothing):
        rng = np.random.default_rng(0)
        share = 1.0 / np.arange(1, 40_001)
        words = rng.choice(40_000, size=n * 100, p=share / share.sum())
        ends = np.arange(0, n * 100 + 1, 100)
        self.X = sparse.csr_array((np.ones(n * 100), words, ends), shape=(n, 40_000))
        self.X.sum_duplicates()
        self.maker = ProductKernel(model_params={"smoothing": smoothing}, n_jobs=1)

    def work(self, tol=None):
        return self.maker.fit_transform(self.X)

    def objective(self, result):
        return float(result.sum())


class ModelKernel(Measured):
    """Gram matrix of one kind of models, two powers."""

    params = (profile([200], [1000]), ["gaussian", "mixture", "markov"])
    param_names = ("models", "kind")

    def data(self, n, kind):
        rng = np.random.default_rng(0)
        self.horizon = None
        if kind == "gaussian":
            A = rng.normal(size=(n, 5, 12))
            self.models = Gaussian(rng.normal(size=(n, 5)), A @ A.swapaxes(1, 2))
        elif kind == "mixture":
            self.models = [
                Mixture(
                    rng.dirichlet(np.ones(4)),
                    DiagonalGaussian(rng.normal(size=(4, 5)), rng.random((4, 5)) + 0.5),
                )
                for _ in range(n)
            ]
        else:
            self.horizon = 20
            self.models = [
                MarkovChain(
                    rng.dirichlet(np.ones(16)), rng.dirichlet(np.ones(4), size=16), 2
                )
                for _ in range(n)
            ]

    def work(self, tol=None):
        return product_kernel(
            self.models, rho=[0.5, 1.0], horizon=self.horizon, log=True, n_jobs=1
        )

    def objective(self, result):
        return float(result.sum())
