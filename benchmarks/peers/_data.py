"""Data of the races: recipes for synthetic sets, readers for a folder of real ones.

Every maker returns a `Task`; features are standardised, or scaled by constants of the
format, with nothing learned from the test rows.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parents[1]))
from suite import data as recipes
from suite import matrices  # noqa: F401  (for the race of Gram matrices)


@dataclass
class Task:
    """A data set split into training and test rows.

    Attributes
    ----------
    name : str
    X, X_test : ndarray or CSR
    y, y_test : ndarray
        -1 and +1 for two classes, else labels.
    """

    name: str
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray

    def head(self, rows, test_rows=None):
        """The same task with at most this many rows."""
        test_rows = rows if test_rows is None else test_rows
        return Task(
            self.name,
            self.X[:rows],
            self.y[:rows],
            self.X_test[:test_rows],
            self.y_test[:test_rows],
        )

    def as_type(self, dtype):
        """The same task with features of this type."""
        return Task(
            f"{self.name} {np.dtype(dtype).name}",
            self.X.astype(dtype),
            self.y,
            self.X_test.astype(dtype),
            self.y_test,
        )

    @property
    def shape(self):
        """ "rows x columns" of the training part."""
        return f"{self.X.shape[0]} x {self.X.shape[1]}"


def gamma_scale(X):
    """1 / (columns * variance of all entries), scikit-learn's gamma="scale"."""
    d = X.shape[1]
    if sp.issparse(X):
        X = X.astype(np.float64)
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = X.var(dtype=np.float64)
    return 1.0 / (d * variance)


def classification(n, d, *, test=5000, seed=0):
    """`suite.data.classification` with two classes, labels -1 and +1."""
    X, y, X_test, y_test = recipes.classification(n, d, test=test, seed=seed)
    return Task(
        "make_classification", X, recipes.signs(y), X_test, recipes.signs(y_test)
    )


def sparse_text(n, d, *, seed=0):
    """`suite.data.sparse_text`, training rows only."""
    return Task("sparse text", *recipes.sparse_text(n, d, test=0, seed=seed))


def dense_logistic(n, d, *, seed=0):
    """Gaussian features, labels from a noisy linear score with an offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = 0.5 * (X @ rng.normal(size=d)) + 2.0 * rng.normal(size=n) + 0.5
    y = np.where(score > 0, 1.0, -1.0)
    return Task("dense logistic", X, y, X[:0], y[:0])


# -- real sets ---------------------------------------------------------------------
def _arrays(folder, name, file):
    path = Path(folder) / name / file
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; --data must hold {name}/{file}")
    return np.load(path)


def adult(folder, dense=False):
    """Census income above 50K: the a9a split, 32561 rows and 123 binary columns."""
    data = _arrays(folder, "solver_a9a", "a9a.npz")
    X = sp.csr_matrix(
        (data["data"].astype(np.float64), data["indices"], data["indptr"]),
        shape=tuple(data["shape"]),
    )
    X = X.toarray() if dense else X
    y = data["y"].astype(np.float64)
    k = int(data["n_train"])
    name = "a9a dense" if dense else "a9a sparse"
    return Task(name, X[:k], y[:k], X[k:], y[k:])


def digits(folder, binary=True):
    """The 10000 MNIST test digits, first half trains; even against odd if `binary`."""
    data = _arrays(folder, "solver_mnist10k", "mnist10k.npz")
    X, y = data["X"] / 255.0, data["y"].astype(int)
    if binary:
        y = np.where(y % 2 == 0, 1.0, -1.0)
    name = "mnist10k even/odd" if binary else "mnist10k"
    return Task(name, X[:5000], y[:5000], X[5000:], y[5000:])


def letters(folder, binary=True):
    """Letter images, 16000 rows train; A-M against N-Z if `binary`."""
    data = _arrays(folder, "solver_letter", "letter.npz")
    X, y = data["X"] / 15.0, data["y"].astype(str)
    if binary:
        y = np.where(y < "N", 1.0, -1.0)
    name = "letter A-M/N-Z" if binary else "letter"
    return Task(name, X[:16000], y[:16000], X[16000:], y[16000:])


def splice_junctions(folder):
    """Splice junctions of Statlog: 180 bits, three classes, 2000 rows train."""
    data = _arrays(folder, "splice_uci", "statlog_dna.npz")
    X, y = data["X"].astype(np.float64), data["y"].astype(str)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    return Task("splice junctions", X[:2000], y[:2000], X[2000:], y[2000:])


def small_digits():
    """The 8 x 8 digits that scikit-learn carries, 1000 rows train."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return Task("digits 8 x 8", X[:1000], y[:1000], X[1000:], y[1000:])


def crab_groups():
    """Crabs of two colours and two sexes, every other one trains."""
    from maxent.datasets import load_crabs

    crabs = load_crabs()
    X = (crabs.data - crabs.data.mean(axis=0)) / crabs.data.std(axis=0)
    pairs = zip(crabs.groups, crabs.target, strict=True)
    y = np.array([f"{group} {sex}" for group, sex in pairs])
    return Task("crabs, four groups", X[::2], y[::2], X[1::2], y[1::2])


REAL = {
    "a9a-sparse": lambda folder: adult(folder),
    "a9a-dense": lambda folder: adult(folder, dense=True),
    "mnist10k": lambda folder: digits(folder),
    "letter": lambda folder: letters(folder),
}
