"""Bayes nets: the kernel by elimination and by mean field, EM with hidden nodes."""

import warnings

import numpy as np

from maxent.kernels import bayes_net_kernel
from maxent.models import BayesNet

from .common import Measured, profile


def random_nets(n, nodes, most_parents, seed=0):
    """Nets of one random structure; a third of the nodes, the first ones, is hidden."""
    rng = np.random.default_rng(seed)
    names = [f"n{k}" for k in range(nodes)]
    parents = {}
    for k, name in enumerate(names):
        count = int(rng.integers(0, min(k, most_parents) + 1))
        near = names[max(0, k - 6) : k]
        count = min(count, len(near))
        parents[name] = [str(p) for p in rng.choice(near, count, replace=False)]
    return [
        BayesNet(
            [
                ((*above, x), rng.dirichlet(np.ones(3), size=(3,) * len(above)))
                for x, above in parents.items()
            ],
            observed=names[nodes // 3 :],
        )
        for _ in range(n)
    ]


class NetGram(Measured):
    """Kernel of all pairs of nets of one structure."""

    params = (profile([50], [300]), [10, 30])
    param_names = ("models", "nodes")

    def data(self, n, nodes):
        self.P = random_nets(n, nodes, 2)

    def work(self, tol=None):
        return bayes_net_kernel(self.P, log=True, method="exact")

    def objective(self, result):
        return result.sum()


class NetMeanField(Measured):
    """Mean-field bounds of all pairs of nets of one structure."""

    def data(self):
        self.P = random_nets(20, 10, 2)

    def work(self, tol=None):
        return bayes_net_kernel(self.P, log=True, method="meanfield")

    def objective(self, result):
        return result.sum()


class NetFit(Measured):
    """Ten EM steps with hidden nodes and missing values."""

    params = (profile([2000], [50000]),)
    param_names = ("rows",)

    def data(self, n):
        rng = np.random.default_rng(1)
        (self.net,) = random_nets(1, 15, 2)
        self.X = self.net.sample(n, rng)
        self.X[rng.random(n) < 0.1, 0] = -1

    def work(self, tol=1e-300):
        net = self.net
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return BayesNet.fit(
                self.X, net.parents, net.observed, init=net, tol=tol, max_iter=10
            )

    def objective(self, result):
        return result.fit_result.objective
