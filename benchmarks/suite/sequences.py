"""Hidden Markov models: EM steps, one model for each sequence, the product kernel."""

import warnings

import numpy as np

from maxent.kernels.pairs._hmm import log_hmm_kernel
from maxent.models import CategoricalHMM, GaussianHMM

from .common import Measured, profile


def random_hmm(rng, states, letters):
    """Random model."""
    return CategoricalHMM(
        rng.dirichlet(np.ones(states)),
        rng.dirichlet(np.ones(states), size=states),
        rng.dirichlet(np.ones(letters), size=states),
    )


class BaumWelch(Measured):
    """Ten EM steps over sequences of 20 to 200 letters or vectors."""

    params = (profile([200], [1000]), ["categorical", "gaussian"])
    param_names = ("sequences", "emission")

    def data(self, n, emission):
        rng = np.random.default_rng(0)
        lengths = rng.integers(20, 201, size=n)
        self.init = random_hmm(rng, 10, 4)
        self.model = CategoricalHMM
        self.X = random_hmm(rng, 10, 4).sample(n, lengths, rng)
        if emission == "gaussian":
            self.model = GaussianHMM
            self.X = [rng.normal(size=(len(x), 3)) for x in self.X]
            self.init = GaussianHMM(
                self.init.start,
                self.init.transition,
                rng.normal(size=(10, 3)),
                np.ones((10, 3)),
            )

    def work(self, tol=1e-300):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.model.fit(
                self.X, init=self.init, tol=tol, max_iter=10, n_jobs=1
            )

    def objective(self, result):
        return result.fit_result.objective


class ManyModels(Measured):
    """One model for each sequence, from three starts."""

    params = (profile([100], [1000]),)
    param_names = ("sequences",)

    def data(self, n):
        rng = np.random.default_rng(0)
        self.X = random_hmm(rng, 3, 4).sample(n, rng.integers(20, 201, size=n), rng)

    def work(self, tol=1e-6):
        return CategoricalHMM.fit_many(self.X, tol=tol, random_state=0, n_jobs=1)

    def objective(self, result):
        return sum(model.fit_result.objective for model in result)


class HiddenKernel(Measured):
    """Gram matrix of hidden Markov models, ten states, horizon ten."""

    params = (profile([100], [500]),)
    param_names = ("models",)

    def data(self, n):
        rng = np.random.default_rng(0)
        self.models = [random_hmm(rng, 10, 4) for _ in range(n)]

    def work(self, tol=None):
        return log_hmm_kernel(self.models, rho=0.5, horizon=10, n_jobs=1)

    def objective(self, result):
        return float(result.sum())
