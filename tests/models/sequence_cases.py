"""Random small sequence models and sequences."""

import numpy as np

from maxent.models import CategoricalHMM, GaussianHMM
from maxent.models.base import without_warnings


def quiet(fit, *args, **options):
    """Fit without a warning, however it ends."""
    with without_warnings():
        return fit(*args, **options)


def random_chain(rng, n_states, sparse=False):
    """Start and transition probabilities; left-to-right ones if sparse."""
    start = rng.dirichlet(np.ones(n_states))
    transition = rng.dirichlet(np.ones(n_states), size=n_states)
    if sparse:
        transition = np.triu(transition)
        transition /= transition.sum(axis=1, keepdims=True)
        start = np.eye(n_states)[0]
    return start, transition


def random_hmm(rng, n_states, n_symbols, sparse=False):
    """Categorical hidden Markov model."""
    table = rng.dirichlet(np.ones(n_symbols), size=n_states)
    return CategoricalHMM(*random_chain(rng, n_states, sparse), table)


def random_gaussian_hmm(rng, n_states, d, kind="full"):
    """Gaussian hidden Markov model of a covariance type."""
    mean = 2.0 * rng.normal(size=(n_states, d))
    if kind == "full":
        A = rng.normal(size=(n_states, d, d))
        cov = A @ A.swapaxes(1, 2) + np.eye(d)
    else:
        cov = rng.uniform(0.5, 2.0, size=(n_states, d)[: 1 + (kind == "diagonal")])
    return GaussianHMM(*random_chain(rng, n_states), mean, cov)


def random_codes(rng, n, n_symbols, low=1, high=7, missing=0.1):
    """Sequences of codes of random lengths; -1 where missing."""
    out = []
    for length in rng.integers(low, high, size=n):
        codes = rng.integers(0, n_symbols, size=length)
        codes[rng.random(length) < missing] = -1
        out.append(codes)
    return out
