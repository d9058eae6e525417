"""Maximum entropy: mixtures from many starts, text, enumeration of states."""

import numpy as np

from maxent.latent import LMEGaussianMixture, MaxEntClassifier

from .common import Fitted, Measured, profile
from .data import sparse_text


class MixtureStarts(Measured):
    """Gaussian mixtures in the plane, by the number of starts."""

    params = (profile([20, 300], [2000]),)
    param_names = ("starts",)

    def data(self, starts):
        rng = np.random.default_rng(0)
        means = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
        self.X = means[rng.integers(3, size=500)] + rng.normal(size=(500, 2))
        self.starts = starts

    def work(self, tol=1e-6):
        model = LMEGaussianMixture(3, n_init=self.starts, tol=tol or 1e-6)
        return model.set_params(random_state=0, n_jobs=1).fit(self.X)

    def objective(self, result):
        return result.select("likelihood").objective_


class SparseMaxEnt(Fitted):
    """Conditional maximum entropy on sparse rows."""

    def data(self):
        rows = profile([20_000], [200_000])[-1]
        self.X, self.y, self.X_test, self.y_test = sparse_text(rows, 5_000)

    def estimator(self):
        return MaxEntClassifier(tol=1e-5)


class States(Measured):
    """log Phi and all pair moments of binary units."""

    params = (profile([8, 16, 20], [24]),)
    param_names = ("units",)

    def data(self, units):
        rng = np.random.default_rng(0)
        W = np.triu(rng.normal(scale=0.2, size=(units, units)), 1)
        self.W, self.b = W + W.T, rng.normal(size=units)
        self.work()  # compiled before it is timed

    def work(self, tol=None):
        from maxent._core.compiled_by_numba.binary_units import pair_moments

        return pair_moments(self.W, self.b)

    def objective(self, result):
        return result[0]


class Annealing(Measured):
    """log Phi of binary units by annealed importance sampling."""

    params = (profile([40], [200]),)
    param_names = ("units",)

    def data(self, units):
        rng = np.random.default_rng(0)
        W = np.triu(rng.normal(scale=units**-0.5, size=(units, units)), 1)
        self.W, self.b = W + W.T, rng.normal(size=units)
        self.work()  # compiled before it is timed

    def work(self, tol=None):
        from maxent.latent.boltzmann._chains import annealed

        rng = np.random.default_rng(0)
        return annealed(self.W, self.b, self.b, 400, 500, rng)

    def objective(self, result):
        return round(result.log_partition)  # standard error 0.01
