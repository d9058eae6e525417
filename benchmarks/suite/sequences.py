"""Hidden Markov models: EM, in batches too, one model for each sequence, the kernel."""

import warnings

import numpy as np

from maxent.families import Gaussian
from maxent.kernels.pairs._hmm import log_hmm_kernel
from maxent.models import CategoricalHMM, GaussianHMM, Mixture

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


class Updates(Measured):
    """A hundred steps of online EM, of a chain or a mixture of Gaussians."""

    params = (["chain", "mixture"], profile([100], [10_000]))
    param_names = ("model", "rows of a batch")

    def data(self, model, n):
        rng = np.random.default_rng(0)
        mean, cov = 3.0 * rng.normal(size=(5, 4)), np.tile(np.eye(4), (5, 1, 1))
        init = mean + 0.5 * rng.normal(size=(5, 4))
        if model == "mixture":
            truth, self.init = (
                Mixture(np.full(5, 0.2), Gaussian(m, cov)) for m in (mean, init)
            )
            self.batches = [truth.sample(n, rng) for _ in range(100)]
        else:
            start, moves = np.full(5, 0.2), 0.8 * np.eye(5) + 0.04
            truth, self.init = (GaussianHMM(start, moves, m, cov) for m in (mean, init))
            self.batches = [truth.sample(1, n, rng) for _ in range(100)]

    def work(self, tol=None):
        model = self.init
        for batch in self.batches:
            model = model.update(batch)
        return model

    def objective(self, result):
        if isinstance(result, Mixture):
            return float(result.log_prob(self.batches[0]).sum())
        return float(result.log_likelihood(self.batches[0]).sum())


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
