"""Kernels between distributions and between data."""

import warnings

import numpy as np
from invariances import data as kinds
from invariances.subjects.models import ABC, chains, factorial, switching, systems
from invariances.subjects.table import FORMULA, alphabet, estimator, subject

from maxent import families as F
from maxent import kernels as K
from maxent import models as M


# -- kernels between distributions -----------------------------------------------------
def kernel(name, kind, compare, more="", covers=(), tolerance=FORMULA):
    """A kernel between what X and the query hold: rows are those of X."""

    def fit(data, **options):
        return data.X, options

    def answers(fitted, query):
        X, options = fitted
        return {"rows": compare(X, query, **options)}

    subject(name, kind, fit, answers, tolerance, more, covers)


def gaussians(X):
    """One Gaussian of each bag."""
    fits = [F.Gaussian.fit(x) for x in X]
    return F.Gaussian([p.mean for p in fits], [p.cov for p in fits])


def networks(X):
    return [M.LinearGaussianNetwork.fit(x, ["c", "a", "d"], ABC) for x in X]


def nets(X):
    """Bayes nets of the first and of the second half of the rows."""
    return [M.BayesNet.fit(x, ABC) for x in X]


kernel(
    "product_kernel",
    kinds.bags,
    lambda X, Y, **o: K.product_kernel(gaussians(X), gaussians(Y), **o),
    "jobs",
)
kernel(
    "product_kernel, chains",
    kinds.series,
    lambda X, Y, **o: K.product_kernel(chains(X), chains(Y), horizon=3, **o),
    "jobs",
)
kernel(
    "product_kernel_tiles",
    kinds.bags,
    lambda X, Y, **o: K.product_kernel_tiles(gaussians(X), gaussians(Y), tile=2, **o),
    "jobs",
)
kernel(
    "hellinger_distance",
    kinds.bags,
    lambda X, Y, **o: K.hellinger_distance(gaussians(X), gaussians(Y), **o) ** 2,
    "jobs",
)
kernel(
    "kl_kernel",
    kinds.bags,
    lambda X, Y: K.kl_kernel(gaussians(X), gaussians(Y)),
)
kernel("js_kernel", kinds.shares, K.js_kernel)
kernel("heat_kernel", kinds.shares, K.heat_kernel, "jobs")
kernel(
    "lds_kernel",
    kinds.series,
    lambda X, Y, **o: K.lds_kernel(systems(X), systems(Y), horizon=3, **o),
    "jobs",
)
kernel(
    "lds_affinity_parts",
    kinds.series,
    lambda X, Y, **o: (
        K.lds_affinity_parts(systems(X), systems(Y), horizon=3, **o).distance
    ),
    "jobs",
    ("GaussianParts",),
)
kernel(
    "switching_lds_kernel",
    kinds.series,
    lambda X, Y, **o: K.switching_lds_kernel(
        switching(X), switching(Y), horizon=2, n_paths=None, **o
    ),
    "jobs",
    ("SwitchingPaths",),
)
kernel(
    "factorial_hmm_kernel",
    kinds.series,
    lambda X, Y: K.factorial_hmm_kernel(factorial(X), factorial(Y), horizon=2),
)
kernel(
    "linear_gaussian_kernel",
    kinds.bags,
    lambda X, Y: K.linear_gaussian_kernel(networks(X), networks(Y)),
)
kernel(
    "bayes_net_kernel",
    kinds.coded_bags,
    lambda X, Y: K.bayes_net_kernel(nets(X), nets(Y)),
)
kernel(
    "shared_sample_features",
    kinds.bags,
    lambda X, Y: shared(gaussians(X), gaussians(Y)),
    covers=("SharedSample",),
)


def shared(P, Q):
    """Products of features of two lists, by the draws of the second."""
    draws = K.SharedSample(Q, n_samples=200, random_state=0)
    f, g = (K.shared_sample_features(A, sample=draws) for A in (P, Q))
    return f @ g.T


def scores(X):
    return K.FisherScores("DiagonalGaussian").fit(X)


def fisher(X, Y, **options):
    of = scores(X)
    U = of.transform(X)
    return K.fisher_kernel(U, of.transform(Y), reference=U, **options)


def fisher_features(X, Y):
    of = scores(X)
    U = of.transform(X)
    features = K.FisherFeatures().fit(U)
    return features.transform(U) @ features.transform(of.transform(Y)).T


kernel("fisher_kernel", kinds.table, fisher, "jobs", ("FisherScores",))
kernel("FisherFeatures", kinds.table, fisher_features)
kernel(
    "spectrum_kernel",
    kinds.symbols,
    lambda X, Y, **o: K.spectrum_kernel(X, Y, k=2, **alphabet(X), **o),
    "jobs",
)
kernel(
    "spectrum_features",
    kinds.symbols,
    lambda X, Y: K.spectrum_features(X, k=2, **alphabet(X)).toarray(),
)

TWO_STATES = ([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])


def chain(X):
    return M.CategoricalHMM(*TWO_STATES, alphabet=alphabet(X).get("alphabet"))


kernel(
    "marginalized_kernel",
    kinds.symbols,
    lambda X, Y, **o: K.marginalized_kernel(X, Y, model=chain(X), **o),
    "jobs",
)
kernel(
    "marginalized_features",
    kinds.symbols,
    lambda X, Y, **o: K.marginalized_features(X, chain(X), **o),
    "jobs",
)


def to_rows(transformer, query):
    return {"rows": transformer.transform(query).T}


estimator("ProductKernel", kinds.counts, K.ProductKernel(), FORMULA, answers=to_rows)
estimator(
    "ProductKernel, Gaussian",
    kinds.bags,
    K.ProductKernel("Gaussian", estimate="ml"),
    FORMULA,
    answers=to_rows,
)


def repaired(matrix):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        return K.repair_kernel(matrix)


subject(
    "repair_kernel",
    kinds.gram,
    lambda data: repaired(data.X),
    lambda matrix, query: {"rows": matrix.sum(axis=1), "scores": np.trace(matrix)},
    FORMULA,
)
