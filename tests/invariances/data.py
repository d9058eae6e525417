"""Small data of every kind: whole numbers, so that any type of number holds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


def same(value):
    return value


@dataclasses.dataclass(frozen=True)
class Data:
    """What a subject learns from, and what it is asked about.

    ``X`` and ``query`` are arrays whose first axis is rows, or lists of arrays; a
    ``square`` X is a matrix between rows, and the columns of its query are rows too;
    rows that are ``matrices`` are symmetric.
    ``restore`` undoes in an answer what a transformation has done to the data, by the
    role of the answer: "rows" of X, "columns", "classes", "labels", "targets".
    A log-density of an entry of the query falls by its ``volume``, the logarithms of
    the units of all that was observed.
    """

    X: Any
    query: Any
    y: Any = None
    weight: Any = None
    square: bool = False
    matrices: bool = False
    volume: Any = 0.0
    restore: dict[str, Callable[[Any], Any]] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # of the fit

    def replace(self, **changes) -> Data:
        return dataclasses.replace(self, **changes)

    def each(self, change) -> Data:
        """Change every array of X and query."""
        return self.replace(X=each(change, self.X), query=each(change, self.query))

    def rows(self, index) -> Data:
        """Rows of X by number, with their labels and weights."""
        square = self.square
        y, weight = (None if v is None else v[index] for v in (self.y, self.weight))
        return self.replace(
            X=self.X[np.ix_(index, index)] if square else taken(self.X, index),
            query=self.query[:, index] if square else self.query,
            y=y,
            weight=weight,
        )

    def restored(self, roles, value):
        """An answer to the transformed data, as one to the data before."""
        for role in roles.split():
            value = self.restore.get(role, same)(value)
            if role == "log_density":
                volume = np.asarray(self.volume)
                value = value + (volume[..., None] if "classes" in roles else volume)
        return value


def each(change, X):
    return [change(x) for x in X] if isinstance(X, list) else change(X)


def taken(X, index):
    return [X[i] for i in index] if isinstance(X, list) else X[index]


# -- kinds of data ---------------------------------------------------------------------
def _split(X, most=6):
    return X, X[:most] if isinstance(X, list) else X[:most].copy()


def numbers(rng, n, groups=1, d=3):
    """Correlated columns of whole numbers around groups that lie apart."""
    mix = np.array([[16.0, 0, 0], [6, 12, 0], [-4, 5, 20]])[:d, :d]
    at = np.arange(n) % groups
    X = np.round(rng.normal(size=(n, d)) @ mix.T + 160.0 * at[:, None])
    return X, at


def table(rng, n, groups=1):
    return Data(*_split(numbers(rng, n, groups)[0]))


def two_groups(rng, n):
    return table(rng, n, 2)


def with_holes(data, rng):
    """Every array with some entries missing, in no row all of them."""

    def pierced(x):
        x = np.array(x, dtype=float)
        lost = rng.choice(len(x), size=len(x) // 5, replace=False)
        x[lost, rng.integers(x.shape[1], size=len(lost))] = np.nan
        return x

    return data.each(pierced)


def table_with_holes(rng, n):
    return with_holes(two_groups(rng, n), rng)


def series_with_holes(rng, n):
    return with_holes(series(rng, n), rng)


def codes_with_holes(rng, n):
    return with_holes(codes(rng, n), rng)


def rows_with_holes(rng, n):
    return codes_with_holes(rng, n).replace(y=None)


def labelled(rng, n, classes=2):
    """Rows of classes that overlap."""
    y = np.arange(n) % classes
    X, _ = numbers(rng, n)
    X = X + np.round(14.0 * rng.normal(size=(classes, 3)))[y]
    return Data(*_split(X), y=y)


def coded_signs(rng, n):
    data = codes(rng, n)
    return data.replace(y=2 * data.y - 1)


def signs(rng, n):
    data = labelled(rng, n)
    return data.replace(y=2 * data.y - 1)


def three(rng, n):
    return labelled(rng, n, 3)


def partly(rng, n):
    """Every second label is missing."""
    data = labelled(rng, n)
    y = np.where(np.arange(n) % 4 < 2, data.y, -1)
    return data.replace(y=y)


def partly_three(rng, n):
    """Every second label of three classes is missing."""
    data = three(rng, n)
    return data.replace(y=np.where(np.arange(n) % 12 < 6, data.y, -1))


def targets(rng, n):
    X, _ = numbers(rng, n)
    y = np.round(X @ [1.0, -1.0, 0.5] + 8.0 * rng.normal(size=n))
    return Data(*_split(X), y=y)


def gram(rng, n):
    """A kernel matrix of whole numbers, between rows of two classes."""
    data = labelled(rng, n)
    Z = np.round(data.X / 8.0)
    K = Z @ Z.T
    return data.replace(X=K, query=K[:6], square=True, y=2 * data.y - 1)


def codes(rng, n):
    """Three columns of categories 0, 1, 2 of two classes that they tell apart."""
    y = np.arange(n) % 2
    p = np.where(y[:, None] == 1, [0.7, 0.6, 0.4], [0.3, 0.5, 0.6])
    X = (rng.random((n, 3)) < p).astype(int) + (rng.random((n, 3)) < 0.3)
    X[:3] = np.arange(3)[:, None]  # every category is there
    return Data(*_split(X), y=y)


def bits(rng, n):
    hidden = rng.random((n, 1)) < 0.5
    X = (rng.random((n, 4)) < np.where(hidden, 0.8, 0.25)).astype(int)
    X[:2] = np.arange(2)[:, None]
    return Data(*_split(X))


def truths(rng, n):
    return bits(rng, n).each(lambda X: X[:, 0])


def totals(rng, n):
    """Counts of six things of three kinds."""
    return Data(*_split(rng.multinomial(6, [0.2, 0.5, 0.3], size=n)))


def regressors(rng, n):
    """A target, and two columns that it depends on."""
    data = targets(rng, n)
    rows = np.column_stack([data.y, data.X[:, :2]])
    return Data(*_split(rows))


def counts(rng, n):
    return Data(*_split(rng.poisson([3.0, 6.0, 1.5], size=(n, 3)) + 1))


def whole(rng, n):
    """Whole numbers on a line, from two groups."""
    return Data(*_split(rng.poisson(np.where(np.arange(n) % 2, 40.0, 3.0)) + 1))


def positive(rng, n):
    return Data(*_split(np.ceil(rng.gamma(3.0, 20.0, size=n))))


def shares(rng, n):
    """Rows of positive numbers that sum to one: multiples of 1/1024."""
    X = np.maximum(np.round(1024 * rng.dirichlet([4.0, 2.0, 6.0], size=n)), 8)
    X[:, 0] += 1024 - X.sum(axis=1)
    return Data(*_split(X / 1024))


def unit_interval(rng, n):
    return Data(*_split(np.clip(np.round(64 * rng.beta(3, 5, size=n)), 1, 63) / 64))


def directions(rng, n):
    """Unit vectors that single precision holds: halves, or one axis."""
    X = np.where(rng.random((n, 4)) < 0.7, 0.5, -0.5)
    X[::3] = np.eye(4)[rng.integers(4, size=len(X[::3]))]
    return Data(*_split(X))


def matrices(rng, n):
    """Positive definite matrices."""
    A = np.round(4.0 * rng.normal(size=(n, 3, 7)))
    return Data(*_split(A @ A.swapaxes(1, 2) + 2.0 * np.eye(3)), matrices=True)


def series(rng, n):
    """Sequences of vectors that move between two groups, and drift."""
    out = []
    for _ in range(max(n // 5, 3)):
        steps = int(rng.integers(12, 16))
        state = np.cumsum(rng.random(steps) < 0.3) % 2
        noise = rng.normal(size=(steps, 2)) @ [[8.0, 3.0], [0.0, 6.0]]
        walk = np.cumsum(3.0 * rng.normal(size=(steps, 1)), axis=0)
        out.append(np.round(80.0 * state[:, None] + noise + walk))
    return Data(*_split(out, 3))


def one_series(rng, n):
    """One series of vectors, that is its own query."""
    X = np.concatenate(series(rng, n).X)
    return Data(X, X)


def one_series_with_holes(rng, n):
    """The first value is among the missing ones."""
    X = with_holes(one_series(rng, n), rng).X
    X[0] = np.nan, 3.0
    return Data(X, X)


def bags(rng, n):
    """A few sets of rows, each of its own distribution."""
    out = [numbers(rng, 20)[0] + 6.0 * k for k in range(max(n // 5, 3))]
    return Data(*_split(out, 3))


def coded_bags(rng, n):
    """A few sets of rows of categories."""
    out = [codes(rng, 30).X for _ in range(max(n // 5, 3))]
    return Data(*_split(out, 3))


def symbols(rng, n):
    """Sequences of symbols 0, 1, 2 of a sticky chain."""
    out = []
    for _ in range(n):
        state = np.cumsum(rng.random(int(rng.integers(8, 14))) < 0.3) % 2
        out.append(np.where(rng.random(len(state)) < 0.8, 2 * state, 1))
    return Data(*_split(out, 4))


def letters(rng, n):
    """Strings of a four-letter alphabet; those of class one hold a motif."""
    y = np.arange(n) % 2
    X = rng.integers(4, size=(n, 10))
    for i in np.flatnonzero(y):
        at = int(rng.integers(0, 7))
        X[i, at : at + 3] = [0, 1, 2]
    return Data(*_split(X), y=y)


def documents(rng, n):
    words = np.array(["sun", "sea", "ice", "fog", "ore"])
    out = []
    for i in range(n):
        p = [0.4, 0.3, 0.1, 0.1, 0.1] if i % 2 else [0.1, 0.1, 0.1, 0.3, 0.4]
        out.append(words[rng.choice(5, size=9, p=p)].tolist())
    return Data(*_split(out, 4))


def instances(rng, n):
    """Bags (n, H, p): one instance of a bag of class one differs."""
    n = n // 2
    y = np.arange(n) % 2
    X = np.round(8.0 * rng.normal(size=(n, 3, 2)))
    X[np.arange(n), rng.integers(3, size=n)] += 16.0 * y[:, None]
    return Data(*_split(X), y=y)


def steps(rng, n):
    """Sequences (n, 3, 2) of which those of class one have an outstanding step."""
    return instances(rng, n)


def joint_features(rng, n):
    """Features (n, K, H, p) of outputs and hidden values."""
    n = n // 2
    y = np.arange(n) % 2
    psi = np.round(8.0 * rng.normal(size=(n, 2, 2, 3)))
    psi[np.arange(n), y, rng.integers(2, size=n)] += [16.0, 8.0, 0.0]
    return Data(*_split(psi), y=y)


def grids(rng, n):
    """Grids (n, 3, 3, 2) of cells with a bright one in class one."""
    n = n // 2
    y = np.arange(n) % 2
    X = np.round(4.0 * rng.normal(size=(n, 3, 3, 2)))
    X[np.arange(n), rng.integers(3, size=n), rng.integers(3, size=n)] += (
        16.0 * y[:, None]
    )
    return Data(*_split(X), y=y)


def constraints(rng, n):
    """Differences of features between the true and another output."""
    return score_rows(rng, n).each(lambda D: D + [2.0, 1.0, 0.0])


def images(rng, n):
    return Data(*_split(np.round(32.0 * rng.normal(size=(n, 6, 6)))))


def latent_features(rng, n):
    """Features (observed, hidden, 3) of values that are observed, and hidden ones."""
    return Data(*_split(np.round(8.0 * rng.normal(size=(8, 2, 3)))))


def score_rows(rng, n):
    """Scores of three hidden values."""
    return Data(*_split(np.round(4.0 * rng.normal(size=(n, 3)))))


def edges(rng, n):
    """Log-weights between six nodes."""
    W = np.round(4.0 * rng.normal(size=(6, 6)))
    W = np.triu(W, 1) + np.triu(W, 1).T
    np.fill_diagonal(W, -np.inf)
    return Data(W, W[:2], square=True)
