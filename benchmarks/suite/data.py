"""Synthetic data: seeded, standardised by the training rows.

Makers return (X, y, X_test, y_test).
"""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification


def classification(n, d, *, classes=2, test=2000, seed=0):
    """Clusters on the corners of a hypercube, half of the columns informative.

    The rest is noise and 5 % of the labels are flipped. Four clusters a class for two
    classes, two for more.
    """
    X, y = make_classification(
        n + test,
        d,
        n_informative=min(d, max(2, d // 2)),
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=4 if classes == 2 else 2,
        flip_y=0.05,
        random_state=seed,
    )
    X = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0)
    return X[:n], y[:n], X[n:], y[n:]


def regression(n, d, *, test=2000, seed=0):
    """A smooth function of the first three features plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + test, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n + test)
    return X[:n], y[:n], X[n:], y[n:]


def sparse_text(n, d, *, nnz=30, test=2000, seed=0):
    """CSR rows like short texts: `nnz` draws of columns, frequent ones first.

    Column ``floor(d u^2)`` with u uniform, values uniform on (0.1, 1.1), rows scaled
    to norm one, columns drawn twice added up. Labels: a random linear score plus
    Gaussian noise of half its deviation, cut at the median of the scores.
    """
    rng = np.random.default_rng(seed)
    total = n + test
    columns = (d * rng.random((total, nnz)) ** 2).astype(np.int32)
    columns.sort(axis=1)
    values = rng.random((total, nnz)) + 0.1
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    ends = np.arange(0, total * nnz + 1, nnz, dtype=np.int32)
    X = sp.csr_matrix((values.ravel(), columns.ravel(), ends), shape=(total, d))
    X.sum_duplicates()
    score = X @ rng.normal(size=d)
    noisy = score + 0.5 * score.std() * rng.normal(size=total)
    y = np.where(noisy > np.median(score), 1.0, -1.0)
    return X[:n], y[:n], X[n:], y[n:]


def signs(y):
    """Labels as -1.0 and +1.0."""
    return np.where(y == y.max(), 1.0, -1.0)


def gaussian_classes(n, d, *, classes=2, test=2000, seed=0):
    """Overlapping Gaussians of different covariances, 5 % of the labels moved on."""
    rng = np.random.default_rng(seed)
    total = n + test
    y = np.arange(total) % classes
    shapes = np.eye(d) + 0.5 / np.sqrt(d) * rng.normal(size=(classes, d, d))
    means = rng.normal(size=(classes, d)) * 1.5 / np.sqrt(d)
    X = rng.normal(size=(total, d))
    for k in range(classes):
        X[y == k] = means[k] + X[y == k] @ shapes[k]
    y = np.where(rng.random(total) < 0.05, (y + 1) % classes, y)
    return X[:n], y[:n], X[n:], y[n:]


def letters(n, length, *, test=2000, seed=0):
    """Codes 0..3: rows of class 1 follow a pattern for each position, class 0 another.

    Probabilities of every position are drawn from a Dirichlet distribution with
    parameters 1 for class 1, and are half way to uniform for class 0.
    """
    rng = np.random.default_rng(seed)
    pattern = rng.dirichlet(np.ones(4), size=length)
    y = np.arange(n + test) % 2
    prob = np.where(y[:, None, None] == 1, pattern, 0.5 * pattern + 0.125)
    above = rng.random((n + test, length, 1)) > prob.cumsum(axis=-1)[..., :3]
    X = above.sum(axis=-1)
    return X[:n], y[:n], X[n:], y[n:]


def category_tables(n, d, *, classes, values=3, test=2000, seed=0):
    """Independent categorical columns, each with a table drawn for every class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n + test)
    above = rng.dirichlet(np.ones(values), size=(classes, d)).cumsum(axis=-1)[y, :, :-1]
    X = (rng.random((n + test, d, 1)) > above).sum(axis=-1)
    return X[:n], y[:n], X[n:], y[n:]
