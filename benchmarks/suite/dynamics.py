"""Models of dynamics and the kernels between them."""

import numpy as np

from maxent.datasets import make_switching_series
from maxent.kernels import lds_kernel, switching_lds_kernel
from maxent.models import LinearDynamicalSystem, SwitchingLDS

from .common import Measured, profile


def systems(N, n, d, seed=0):
    """Random stable systems."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(N):
        A = rng.normal(size=(n, n))
        A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
        C, R = rng.normal(size=(d, n)), 0.5 * np.eye(d)
        mean = rng.normal(size=n)
        out.append(LinearDynamicalSystem(A, np.eye(n), C, R, mean, np.eye(n)))
    return out


class LDSGram(Measured):
    """Exact kernel of all pairs of linear dynamical systems."""

    params = (profile([100, 500], [1000]), [2, 4], [25, 200])
    param_names = ("models", "states", "horizon")

    def data(self, N, n, T):
        self.P, self.T = systems(N, n, 2), T

    def work(self, tol=None):
        return lds_kernel(self.P, rho=0.1, horizon=self.T, log=True)

    def objective(self, result):
        return result.sum()


class LDSFit(Measured):
    """Thirty EM steps on many series."""

    params = (profile([20, 200], [2000]),)
    param_names = ("series",)

    def data(self, N):
        rng = np.random.default_rng(0)
        self.series = systems(1, 4, 2)[0].sample(N, 50, rng)

    def work(self, tol=None):
        return LinearDynamicalSystem.fit(
            self.series, 4, max_iter=30, tol=1e-15, n_jobs=1
        )

    def objective(self, result):
        return result.fit_result.objective


class SwitchingFitAndGram(Measured):
    """Switching systems fitted to series, and their kernel by shared paths."""

    def data(self):
        self.series = make_switching_series(4, 3, random_state=0)[0]

    def work(self, tol=None):
        P = [
            SwitchingLDS.fit(x, 2, 2, max_iter=20, random_state=0) for x in self.series
        ]
        return switching_lds_kernel(P, horizon=15, log=True, random_state=0)

    def objective(self, result):
        return result.sum()
