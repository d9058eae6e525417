"""Scores to make Fisher kernels of, and when two kernels agree."""

import numpy as np

MANY = 400  # rows that are plenty for the few parameters of these tests


def random_spd(rng, p):
    A = rng.normal(size=(p, p + 2))
    return A @ A.T


def scores_of(rng, n=MANY, p=4):
    """Correlated scores of very different sizes whose mean is zero."""
    U = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    U = (U - U.mean(axis=0)) * 10.0 ** rng.uniform(-4, 4, size=p)
    return U - U.mean(axis=0)


def dense(U, F, V=None):
    return U @ np.linalg.solve(F, (U if V is None else V).T)


def assert_kernels_agree(K, expected, rel=1e-10):
    """Entries agree to `rel` of the product of the lengths of their rows."""
    assert K.shape == expected.shape
    assert np.abs(K - expected).max() <= rel * np.abs(expected).max()


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
