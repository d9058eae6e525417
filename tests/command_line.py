"""What the tests of the command line share."""

import csv

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from maxent._commands.training import without_names
from maxent._persistence.persistence import load


class MEDClassifier(ClassifierMixin, BaseEstimator):
    """Stand-in for the classifier, with a behaviour that a test can set."""

    behaviour = staticmethod(lambda self: None)

    def __init__(self, kernel="rbf", C=1.0, *, verbose=False):
        self.kernel = kernel
        self.C = C
        self.verbose = verbose

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.converged_ = True
        self.n_iter_ = 3
        type(self).behaviour(self)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], X.shape[0])


def write_csv(path, X, y=None, names=None, label="sex"):
    rows = [[repr(float(v)) for v in row] for row in np.asarray(X)]
    if y is not None:
        rows = [[label_value, *row] for label_value, row in zip(y, rows)]
    if names is not None:
        rows.insert(0, ([] if y is None else [label]) + list(names))
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def read_rows(text):
    return list(csv.reader(text.splitlines()))


def loaded(path):
    """The estimator of a model file, without names of features: it is given arrays."""
    estimator = load(path)
    without_names(estimator)
    return estimator


def values_beside(out, *names):
    """Numbers of the columns behind the predictions, whose names must be these."""
    rows = read_rows(out)
    place = rows[0].index("prediction") + 1
    assert not names or tuple(rows[0][place:]) == names
    return np.array([row[place:] for row in rows[1:]], dtype=float)


def assert_one_sentence(err, start):
    assert err.startswith(f"maxent {start}: ") and err.count("\n") == 1
    assert "Traceback" not in err


def pairs(out):
    """The printed lines as a dict."""
    found = (line.strip().partition("  ") for line in out.splitlines())
    return {name: value.strip() for name, _, value in found}
