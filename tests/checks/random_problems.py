"""Random problems of every shape for every estimator: no crash, no NaN, an end.

    python tests/checks/random_problems.py [--problems 400] [--seed 0] [--seconds 60]
                                           [--only NAME] [--jobs 2] [--refusals]

A fit may converge, stop with a ConvergenceWarning, or refuse its input with a
ValueError that says why. Anything else is a failure: another exception, a ValueError
that neither this package nor scikit-learn raises (a shape that numpy does not take, a
singular matrix), NaN or infinity in an answer, an answer refused for the rows of the
fit, a crash of the process, or no end after the given seconds of processor time. The
seed and number of a failing problem are printed; they make it again.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import linecache
import multiprocessing
import pathlib
import signal
import sys
import time
import traceback
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

MARGINS = ("exponential", "erlang", "laplace", "gaussian", "logistic", "hinge", "fixed")
TUBES = ("exponential", "laplace", "gaussian", "hinge", "uniform_exponential")
ORDERS = (0.0, 0.25, 1.0, 8.0, np.inf)


class NoEnd(BaseException):
    """The time of a problem is over; no code of the package catches it."""


# -- problems ------------------------------------------------------------------------
def _size(rng, most=400):
    return int(np.exp(rng.uniform(np.log(4), np.log(most))))


def _power(rng, low, high):
    return float(10.0 ** rng.uniform(low, high))


def _weights(rng, n):
    kind = rng.integers(4)
    if kind < 2:
        return None
    return rng.integers(0, 4, n).astype(float) if kind == 2 else rng.gamma(1.0, size=n)


def features(rng, n):
    """Features of many kinds: correlated, repeated, constant, far apart in scale."""
    d = int(np.exp(rng.uniform(0, np.log(40))))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    kind = rng.integers(8)
    if kind == 1:
        X = X * 10.0 ** rng.uniform(-4, 4, size=d)
    elif kind == 2:
        X[:, rng.integers(d)] = 3.0
    elif kind == 3:
        X = X[rng.integers(0, max(n // 3, 1), size=n)]
    elif kind == 4:
        X = np.round(X)
    elif kind == 5:
        X = X + 1e3 * rng.normal(size=d)
    elif kind == 6:
        X = rng.standard_t(1.5, size=(n, d))
    elif kind == 7:
        X = X * (rng.random((n, d)) < 0.2)
    return X


def labels(rng, X, most=5, least=2):
    """Classes by a noisy rule, balanced or not."""
    n = len(X)
    m = int(rng.integers(least, most + 1)) if rng.random() < 0.5 else least
    scores = np.nan_to_num(X / (np.abs(X).max() or 1.0)) @ rng.normal(
        size=(X.shape[1], m)
    )
    noise = _power(rng, -3, 1) * scores.std()
    y = np.argmax(scores + noise * rng.normal(size=scores.shape), axis=1)
    y[rng.permutation(n)[:m]] = np.arange(m)[: min(n, m)]
    return y


def categories(rng, n):
    """Categorical codes, independent or tied to one another, with rare values."""
    d = int(rng.integers(2, 15))
    sizes = rng.integers(1, 7, size=d)
    hidden = rng.integers(0, 3, size=n)
    X = np.empty((n, d), dtype=int)
    for j, r in enumerate(sizes):
        p = rng.dirichlet(np.full(r, _power(rng, -1, 1)), size=3)
        X[:, j] = [rng.choice(r, p=p[h]) for h in hidden]
    return X


def hostile(rng, n):
    """Features, some of them very large or very small, for n >= 1 rows."""
    X = features(rng, n)
    return X * _power(rng, -9, 9) if rng.random() < 0.15 else X


def symbols(rng, n=None, most=40, missing=True):
    """Sequences of codes of a hidden chain, of any lengths, and their alphabet's size.

    Some are constant, or one sequence many times; a code may be missing (-1).
    """
    n = _size(rng, 30) if n is None else n
    m = int(rng.integers(1, 7))
    switch = rng.dirichlet(np.full(3, _power(rng, -1, 1)), size=3)
    shown = rng.dirichlet(np.full(m, _power(rng, -1, 1)), size=3)
    found = []
    for _ in range(n):
        state, codes = rng.integers(3), []
        for _ in range(_size(rng, most) - 3):
            state = rng.choice(3, p=switch[state])
            codes.append(rng.choice(m, p=shown[state]))
        found.append(np.array(codes, dtype=int))
    kind = rng.integers(6)
    if kind == 1:
        found = [np.zeros_like(codes) for codes in found]
    elif kind == 2:
        found = [found[0]] * n
    elif kind == 3 and missing:
        for codes in found:
            codes[rng.random(len(codes)) < 0.2] = -1
    return found, m


def series(rng, most=40, missing=True):
    """Series of vectors of any lengths, smooth or not, some entries missing."""
    lengths = [_size(rng, most) - 3 for _ in range(_size(rng, 20) - 3)]
    X = hostile(rng, sum(lengths))[:, :6]
    if rng.random() < 0.5:
        X = X + np.cumsum(X, axis=0) / 2.0
    if missing and rng.random() < 0.2:
        X[rng.random(X.shape) < 0.2] = np.nan
    return np.split(X, np.cumsum(lengths)[:-1])


def words(rng):
    """Documents of few words, most of them short."""
    n, m = _size(rng, 30) - 3, int(rng.integers(1, 30))
    p = rng.dirichlet(np.full(m, _power(rng, -1, 0.5)), size=3)
    documents = []
    for _ in range(n):
        codes = rng.choice(m, p=p[rng.integers(3)], size=_size(rng, 60) - 1)
        documents.append([f"w{code}" for code in codes])
    if rng.random() < 0.1:
        documents[rng.integers(n)] = [[], ["w0"], ["w0", "w0"]][rng.integers(3)]
    if rng.random() < 0.2:
        documents = [documents[0]] * n
    return documents


# -- adapters ------------------------------------------------------------------------
class Given:
    """An estimator whose fit gets arguments beside the usual ones."""

    def __init__(self, estimator, **given):
        self.estimator, self.given = estimator, given

    def fit(self, X, y, **more):
        self.estimator.fit(X, y, **self.given, **more)
        return self

    def __getattr__(self, name):
        if name in ("estimator", "given"):
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __repr__(self):
        return f"{self.estimator!r} with {', '.join(self.given)}"


class Model:
    """A fit of a model, as an estimator; its answers are log-likelihoods.

    Data of weight zero may be impossible under the model: they get no answer.
    """

    def __init__(self, fit, *more, answer="log_likelihood", **options):
        self._fit, self.more, self.answer, self.options = fit, more, answer, options

    def fit(self, X, y=None, sample_weight=None):
        options = dict(self.options)
        self.kept = slice(None)
        if sample_weight is not None:
            options["weights"] = sample_weight
            self.kept = np.flatnonzero(sample_weight)
        model = self._fit(X, *self.more, **options)
        self.models = model if isinstance(model, list) else [model]
        results = [m.fit_result for m in self.models if m.fit_result is not None]
        self.converged_ = all(result.converged for result in results)
        self.objective_ = sum(result.objective for result in results)
        return self

    def answers(self, X):
        if len(self.models) > 1:
            return [m.log_likelihood([x])[0] for m, x in zip(self.models, X)]
        if not isinstance(self.kept, slice):
            X = [X[i] for i in self.kept] if isinstance(X, list) else X[self.kept]
        return getattr(self.models[0], self.answer)(X)

    def __repr__(self):
        name = getattr(self._fit, "__qualname__", self._fit)
        return f"{name}(X, {self.more}, {self.options})"


# -- estimators ----------------------------------------------------------------------
def classifier(rng):
    import maxent

    X = features(rng, _size(rng))
    kernel = rng.choice(["rbf", "linear", "poly", "rbf"])
    options = {
        "kernel": str(kernel),
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 5),
        "sharpness": 1.0 + _power(rng, -1, 3),
        "bias": [None, "flat", 1.0][rng.integers(3)],
        "tol": _power(rng, -8, -2),
        "cache_size": float(rng.choice([500.0, 0.01])),
        "degree": int(rng.integers(1, 4)),
    }
    return maxent.MEDClassifier(**options), X, labels(rng, X), _weights(rng, len(X))


def regressor(rng):
    import maxent

    X = features(rng, _size(rng))
    scale = _power(rng, -3, 6)
    y = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) + _power(rng, -3, 0) * rng.normal(
        size=len(X)
    )
    options = {
        "kernel": str(rng.choice(["rbf", "linear"])),
        "margin": str(rng.choice(TUBES)),
        "C": _power(rng, -2, 4),
        "epsilon": float(rng.choice([0.0, 0.1 * scale])),
        "bias": [None, "flat", 1.0][rng.integers(3)],
        "cache_size": float(rng.choice([500.0, 0.01])),
    }
    return maxent.MEDRegressor(**options), X, scale * y, _weights(rng, len(X))


def selector(rng):
    import maxent

    X = features(rng, _size(rng))
    options = {
        "margin": str(rng.choice(MARGINS[:-1])),
        "C": _power(rng, -2, 4),
        "prior_inclusion": _power(rng, -6, 0),
        "bias": [None, "flat", 1.0][rng.integers(3)],
    }
    return maxent.MEDFeatureSelector(**options), X, labels(rng, X, 2), None


def selector_of_numbers(rng):
    import maxent

    X = features(rng, _size(rng))
    y = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) + _power(rng, -3, 0) * rng.normal(
        size=len(X)
    )
    options = {
        "margin": str(rng.choice(TUBES)),
        "C": _power(rng, -2, 4),
        "epsilon": float(rng.choice([0.0, 0.1])),
        "prior_inclusion": _power(rng, -6, 0),
        "bias": [None, "flat", 1.0][rng.integers(3)],
    }
    machine = maxent.MEDRegressionSelector(**options)
    return machine, X, _power(rng, -3, 6) * y, _weights(rng, len(X))


def gaussian(rng):
    import maxent

    X = features(rng, _size(rng))
    options = {"margin": str(rng.choice(MARGINS)), "C": _power(rng, -2, 3)}
    if rng.random() < 0.5:
        options["level"] = float(rng.choice([0.0, 1.0, _power(rng, -1, 2)]))
    estimator = maxent.MEDGaussianClassifier(**options)
    return estimator, X, labels(rng, X), _weights(rng, len(X))


def _coded(rng, estimator):
    X = categories(rng, _size(rng))
    return estimator, X, labels(rng, X), _weights(rng, len(X))


def _codes_options(rng):
    options = {"margin": str(rng.choice(MARGINS)), "C": _power(rng, -1, 2)}
    if rng.random() < 0.5:
        options["level"] = float(rng.choice([0.0, 1.0, _power(rng, -1, 1.5)]))
    return options


def bayes_net(rng):
    import maxent

    return _coded(rng, maxent.MEDBayesNetClassifier(**_codes_options(rng)))


def trees(rng):
    import maxent

    options = _codes_options(rng) | {"ess": _power(rng, -1, 1.5)}
    return _coded(rng, maxent.MEDTreeClassifier(**options))


def random_tables(rng):
    import maxent

    options = _codes_options(rng) | {"ess": _power(rng, 0, 1.5)}
    return _coded(rng, maxent.MEDTreeClassifier("dirichlet", **options))


def chow_liu(rng):
    import maxent

    return _coded(rng, maxent.ChowLiuClassifier(ess=_power(rng, -2, 1)))


def outliers(rng):
    import maxent

    model = str(rng.choice(["gaussian", "multinomial", "tree"]))
    X = (
        features(rng, _size(rng))
        if model == "gaussian"
        else categories(rng, _size(rng))
    )
    options = {
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 2),
        "quantile": float(rng.random()),
    }
    return maxent.MEDOutlierDetector(model, **options), X, None, _weights(rng, len(X))


def multiclass(rng):
    import maxent

    X = hostile(rng, _size(rng, 150))
    kernel = str(rng.choice(["rbf", "linear", "poly", "sigmoid"]))
    options = {
        "kernel": kernel,
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -3, 5),
        "bias": [None, "flat", 1.0][rng.integers(3)],
        "multi_class": str(rng.choice(["ovo", "joint", "auto"])),
        "gamma": ["scale", "auto", _power(rng, -3, 2)][rng.integers(3)],
        "class_weight": [None, "balanced"][rng.integers(2)],
    }
    single = kernel != "linear" and options["multi_class"] != "ovo"
    if single and rng.random() < 0.5:
        count = int(rng.integers(1, len(X) + 1))
        options |= {"approximation": "nystroem", "n_components": count}
        options["random_state"] = 0
    y = labels(rng, X, 6, 3)
    return maxent.MEDClassifier(**options), X, y, _weights(rng, len(X))


def _machine(rng, X, y):
    """A machine for two classes and rows that it takes."""
    import maxent

    kind, C = rng.integers(5), _power(rng, -2, 4)
    margin = str(rng.choice(MARGINS[:-1]))
    bias = [None, "flat", 1.0][rng.integers(3)]
    if kind < 2:
        kernel = str(rng.choice(["rbf", "linear"]))
        return maxent.MEDClassifier(kernel, C, margin=margin, bias=bias), X
    if kind == 2:
        return maxent.MEDFeatureSelector(C=C, margin=margin, bias=bias), X
    if kind == 3:
        return maxent.MEDGaussianClassifier(C=C, margin=margin), X
    coded = np.column_stack([categories(rng, len(X)), y])
    return maxent.MEDBayesNetClassifier(C=min(C, 100.0), margin=margin), coded


def partial_labels(rng):
    import maxent

    X = features(rng, _size(rng, 100))
    y = labels(rng, X, 2)
    machine, X = _machine(rng, X, y)
    known = rng.random(len(X)) < rng.choice([0.1, 0.5, 0.9])
    for label in (0, 1):
        known[rng.choice(np.flatnonzero(y == label))] = True
    options = {
        "step": float(rng.choice([1.0, 0.1, 1.5])),
        "class_prior": [None, "labelled", _power(rng, -4, 0)][rng.integers(3)],
        "tol": _power(rng, -4, -1),
    }
    if isinstance(machine, maxent.MEDClassifier) and rng.random() < 0.4:
        options["method"] = "direct"
        if rng.random() < 0.2:
            options["method"], machine.bias = "exact", 1.0
            X, y, known = X[:10], y[:10], known[:10]
    estimator = maxent.MEDPartialLabelClassifier(machine, **options)
    weight = _weights(rng, len(X))
    if rng.random() < 0.4:
        prior = np.where(y == 1, 0.9, 0.1)
        prior[rng.random(len(X)) < 0.3] = rng.choice([0.0, 0.5, 1.0, np.nan])
        estimator = Given(estimator, label_prior=prior)
        if rng.random() < 0.3:
            return estimator, X, None, weight
    return estimator, X, np.where(known, y, -1), weight


def mixture_outliers(rng):
    import maxent
    from maxent.discrimination import LatentMixture

    component = str(rng.choice(["gaussian", "gaussian", "multinomial", "tree"]))
    n = _size(rng, 100)
    X = features(rng, n) if component == "gaussian" else categories(rng, n)
    count, starts = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    model = LatentMixture(component, count, starts, random_state=0, max_rounds=300)
    options = {
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 2),
        "quantile": float(rng.random()),
        "contamination": [None, 0.1][rng.integers(2)],
    }
    detector = maxent.MEDOutlierDetector(model, **options)
    return detector, X[:, :8], None, _weights(rng, n)


def sequence_outliers(rng):
    import maxent

    options = {
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 2),
        "quantile": float(rng.random()),
        "contamination": [None, 0.1][rng.integers(2)],
        "normalize": ["length", None][rng.integers(2)],
        "pseudo_count": _power(rng, -2, 1),
        "n_init": int(rng.integers(1, 3)),
        "max_iter": 300,
        "random_state": 0,
    }
    if rng.random() < 0.5:
        X, options["n_symbols"] = symbols(rng)
    else:
        X, options["emission"] = [x[:, :3] for x in series(rng)], "gaussian"
        for x in X:  # a step is missing or not
            x[np.isnan(x).any(axis=1)] = np.nan
    states = int(rng.integers(1, 5))
    detector = maxent.MEDSequenceOutlierDetector(states, **options)
    return detector, X, None, _weights(rng, len(X))


def maxent_classifier(rng):
    import maxent

    X = hostile(rng, _size(rng) - 3)
    y = labels(rng, X)
    if rng.random() < 0.4:
        X = sp.csr_array(X * (rng.random(X.shape) < rng.choice([0.05, 0.5])))
    options = {
        "C": float(rng.choice([_power(rng, -6, 6), np.inf])),
        "fit_intercept": bool(rng.integers(2)),
        "class_weight": [None, "balanced"][rng.integers(2)],
        "tol": _power(rng, -9, -3),
    }
    return maxent.MaxEntClassifier(**options), X, y, _weights(rng, len(y))


def gaussian_mixture(rng):
    import maxent

    X = hostile(rng, _size(rng, 150) - 3)[:, :5]
    options = {
        "n_components": int(rng.integers(1, 5)),
        "covariance_type": str(rng.choice(["full", "diag", "spherical"])),
        "n_init": int(rng.integers(1, 6)),
        "selection": str(rng.choice(["entropy", "likelihood"])),
        "prior": [None, "weak"][rng.integers(2)],
        "init_params": str(
            rng.choice(["random_from_data", "k-means++", "kmeans", "random"])
        ),
        "max_iter": 1000,
        "random_state": 0,
    }
    return maxent.LMEGaussianMixture(**options), X, None, _weights(rng, len(X))


def dirichlet_mixture(rng):
    import maxent

    n, d = _size(rng, 100), int(rng.integers(2, 6))
    X = rng.dirichlet(np.full(d, _power(rng, -1.5, 3)), size=n)
    kind = rng.integers(4)
    if kind == 1:
        X = X[rng.integers(0, max(n // 3, 1), size=n)]
    elif kind == 2:
        X = np.where(X < 0.05, 0.0, X)
        X /= X.sum(axis=1, keepdims=True)
    options = {
        "n_components": int(rng.integers(1, 4)),
        "n_init": int(rng.integers(1, 5)),
        "selection": str(rng.choice(["entropy", "likelihood"])),
        "smoothing": float(rng.choice([0.0, 1e-6, 0.01, 0.01])),
        "max_iter": 1000,
        "random_state": 0,
    }
    return maxent.LMEDirichletMixture(**options), X, None, _weights(rng, n)


def _bits(rng):
    """Rows of 0 and 1: tied columns, constant columns, equal rows."""
    n, d = _size(rng, 100) - 3, int(rng.integers(1, 7))
    p = rng.beta(0.5, 0.5, size=(2, d))
    X = (rng.random((n, d)) < p[rng.integers(0, 2, n)]).astype(float)
    return X[rng.integers(0, n, n)] if rng.random() < 0.2 else X


def _machine_options(rng):
    return {
        "n_hidden": int(rng.integers(1, 4)),
        "n_init": int(rng.integers(1, 5)),
        "selection": str(rng.choice(["entropy", "likelihood"])),
        "prior_variance": float(rng.choice([_power(rng, -2, 3), np.inf])),
        "bound": float(rng.choice([15.0, 2.0])),
        "mi_tol": float(rng.choice([1e-4, -1.0])),
        "max_iter": 1000,
        "random_state": 0,
    }


def _sampling(rng):
    """Sampled moments of few chains, now and then."""
    if rng.random() < 0.8:
        return {}
    counts = {"n_chains": 50, "n_updates": 100, "n_temperatures": 50}
    return {"moments": "sampled", "sampled_tol": 1.0} | counts


def boltzmann(rng):
    import maxent

    options = _machine_options(rng) | _sampling(rng)
    options["bias"] = bool(rng.integers(2))
    options["method"] = str(rng.choice(["iis", "gis", "scgis", "newton", "lbfgs"]))
    X = _bits(rng)
    return maxent.LMEBoltzmannMachine(**options), X, None, _weights(rng, len(X))


def rbm(rng):
    import maxent

    options = _machine_options(rng) | _sampling(rng)
    options["method"] = str(rng.choice(["lbfgs", "cg", "gis", "iis"]))
    X = _bits(rng)
    return maxent.LMERBM(**options), X, None, _weights(rng, len(X))


def topics(rng):
    import maxent

    options = {
        "n_topics": int(rng.integers(1, 5)),
        "topics_per_document": int(rng.integers(1, 5)),
        "vocabulary_size": int(rng.choice([1, 2, 5, 100])),
        "min_count": int(rng.integers(1, 4)),
        "prior_variance": _power(rng, -3, 4),
        "n_init": int(rng.integers(1, 3)),
        "method": str(rng.choice(["lbfgs", "lbfgs", "gis"])),
        "init": str(rng.choice(["frequencies", "zero", "random"])),
        "max_iter": int(rng.choice([5, 50, 200])),
        "random_state": 0,
    }
    return maxent.TrigramTopicModel(**options), words(rng), None, None


def latent(rng):
    import maxent

    n, m, d = (int(rng.integers(1, high)) for high in (8, 4, 6))
    f = rng.normal(size=(n, m, d)) * _power(rng, -2, 2)
    kind = rng.integers(4)
    if kind == 1:
        f = np.round(np.abs(f))
    elif kind == 2:
        f[..., rng.integers(d)] = 1.0
    elif kind == 3:
        f[..., -1] = f[..., 0]
    X = rng.choice(n, p=rng.dirichlet(np.full(n, 0.5)), size=_size(rng, 200))
    options = {
        "n_init": int(rng.integers(1, 5)),
        "selection": str(rng.choice(["entropy", "likelihood"])),
        "sigma2": float(rng.choice([_power(rng, -2, 3), np.inf])),
        "bound": float(rng.choice([np.inf, 5.0])),
        "method": str(rng.choice(["iis", "gis", "scgis", "newton", "cg", "lbfgs"])),
        "mi_tol": float(rng.choice([1e-4, -1.0])),
        "max_iter": 1000,
        "random_state": 0,
    }
    if rng.random() < 0.2:
        options |= {"penalty": "box", "sigma2": np.inf, "width": _power(rng, -3, 0)}
    return maxent.LatentMaxEnt(f, **options), X, None, _weights(rng, len(X))


def _order_options(rng):
    alpha = float(rng.choice(ORDERS))
    options = {
        "alpha": alpha,
        "C": _power(rng, -3, 5),
        "init": str(rng.choice(["auto", "zero", "random", "path"])),
        "n_init": int(rng.integers(1, 4)),
        "temperature": float(rng.choice([1.0, 1.0, 0.1, 5.0])),
        "class_weight": [None, "balanced"][rng.integers(2)],
        "max_iter": 30,
        "random_state": 0,
    }
    if rng.random() < 0.5:
        solvers = ["cccp", "latent_svm"] if alpha == np.inf else ["cccp", "ball"]
        options["solver"] = solvers[rng.integers(2)]
    return options


def bags(rng):
    import maxent

    sizes = rng.integers(1, 8, size=_size(rng, 40))
    X = features(rng, sizes.sum())[:, :6]
    if rng.random() < 0.8:  # weights that solvers find in little time
        X = X / (np.abs(X).max(axis=0) + 1e-300)
    starts = np.cumsum(sizes) - sizes
    y = labels(rng, np.maximum.reduceat(X, starts), 4)
    X = np.split(X, starts[1:])
    estimator = maxent.M3EClassifier(**_order_options(rng))
    if rng.random() < 0.2:
        masks = [rng.random(size) < 0.7 for size in sizes]
        for mask in masks:
            mask[rng.integers(len(mask))] = True
        estimator = Given(estimator, hidden_mask=masks)
    return estimator, X, y, _weights(rng, len(X))


def joint_features(rng):
    import maxent
    from maxent.minentropy import ChainMap

    n = _size(rng, 30)
    y = rng.integers(0, 2, n) if rng.random() < 0.7 else rng.integers(0, 3, n)
    options = _order_options(rng)
    if rng.random() < 0.5:
        steps, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        X = features(rng, n * steps)[:, :d].reshape(n, steps, -1)
        options["feature_map"] = ChainMap(int(rng.integers(1, 4)))
        options["alpha"] = float(rng.choice([1.0, np.inf]))
        options.pop("solver", None)
    else:
        shape = n, y.max() + 1, int(rng.integers(1, 5)), int(rng.integers(1, 5))
        X = rng.normal(size=shape) * _power(rng, -1, 1)
    return maxent.M3EModel(**options), X, y, _weights(rng, n)


def motifs(rng):
    import maxent

    n, width = _size(rng, 30), int(rng.integers(1, 6))
    y, planted = rng.permutation(n) % 2, "".join(rng.choice(list("ACGT"), width))
    letters = list("ACGTN") if rng.random() < 0.3 else list("ACGT")
    X = []
    for label in y:
        x = "".join(rng.choice(letters, width + rng.integers(0, 25)))
        at = rng.integers(len(x) - width + 1)
        X.append(x[:at] + planted + x[at + width :] if label else x)
    if rng.random() < 0.2:
        X = ["A" * len(x) for x in X]
    if rng.random() < 0.05:
        X[0] = X[0][: width - 1]
    options = _order_options(rng)
    options["both_strands"] = bool(rng.integers(2))
    background = int(rng.integers(0, 4))
    motif = maxent.M3EMotifClassifier(width, background, **options)
    return motif, X, y, _weights(rng, n)


def grids(rng):
    import maxent

    n, (rows, columns) = _size(rng, 30), rng.integers(1, 6, size=2)
    X = features(rng, n * rows * columns)[:, :3].reshape(n, rows, columns, -1)
    if rng.random() < 0.8:
        X = X / (np.abs(X).max() or 1.0)
    y = labels(rng, X.reshape(n, -1), 3)
    size = int(rng.integers(1, rows + 1)), int(rng.integers(1, columns + 1))
    template = [size, (1, 1)] if rng.random() < 0.3 and size != (1, 1) else size
    options = _order_options(rng)
    return maxent.M3EGridClassifier(template, **options), X, y, _weights(rng, n)


def fisher_features(rng):
    import maxent

    X = hostile(rng, _size(rng, 100) - 3)
    options = {
        "information": str(rng.choice(["empirical", "diagonal", "identity"])),
        "ridge": float(rng.choice([0.0, 1e-3, 1.0])),
        "center": bool(rng.integers(2)),
    }
    return maxent.FisherFeatures(**options), X, None, None


def fisher_scores(rng):
    """Scores of data under models fitted to them."""
    from maxent.kernels import FisherScores

    make = (categorical_hmm, gaussian_hmm, markov, mixture)[rng.integers(4)]
    fitted, X, _, _ = make(rng)
    representation = str(rng.choice(["minimal", "overcomplete"]))

    class Scores:
        def fit(self, X, y=None):
            self.model = fitted.fit(X).models[0]
            self.scores = FisherScores(self.model, representation=representation)
            self.scores.fit(X)
            self.converged_ = fitted.converged_

        def answers(self, X):
            return self.scores.transform(X)

        def __repr__(self):
            return f"scores of {fitted!r}"

    return Scores(), X, None, None


def product(rng):
    from maxent.kernels import ProductKernel

    kind = rng.integers(4)
    options = {"rho": float(rng.choice([0.5, 1.0, _power(rng, -1, 1)]))}
    options["normalize"] = bool(rng.integers(2))
    few = {"max_iter": 50, "n_init": 1}
    if kind == 0:
        n, d = _size(rng, 30), int(rng.integers(1, 10))
        X = rng.poisson(_power(rng, -1, 1.5), size=(n, d))
        options["estimate"] = str(rng.choice(["ml", "predictive"]))
        if rng.random() < 0.3:
            X = sp.csr_array(X)
    elif kind == 1:
        X, m = symbols(rng, _size(rng, 10) - 3, missing=False)
        name = str(rng.choice(["CategoricalHMM", "MarkovChain"]))
        more = {"n_states": int(rng.integers(1, 4)), **few} if "HMM" in name else {}
        options |= {"model": name, "model_params": {"n_symbols": m, **more}}
    elif kind == 2:
        X = [x[:, :2] for x in series(rng, missing=False)][:8]
        name = str(rng.choice(["GaussianHMM", "LinearDynamicalSystem"]))
        more = {"n_states": int(rng.integers(1, 3)), **few}
        options |= {"model": name, "model_params": more}
    else:
        X = [x[:, :3] for x in series(rng, missing=False)][:10]
        name = str(rng.choice(["Gaussian", "DiagonalGaussian", "Mixture"]))
        options |= {"model": name, "estimate": str(rng.choice(["ml", "map"]))}
    return ProductKernel(**options), X, None, None


# -- models --------------------------------------------------------------------------
def _fit_options(rng, tol=-9):
    return {
        "n_init": int(rng.integers(1, 3)),
        "tol": _power(rng, tol, -3),
        "max_iter": int(rng.choice([20, 1000])),
        "random_state": 0,
    }


def categorical_hmm(rng):
    from maxent.models import CategoricalHMM

    X, m = symbols(rng)
    options = _fit_options(rng)
    options["smoothing"] = float(rng.choice([0.0, 0.01, 1.0]))
    options["n_symbols"] = [None, m][rng.integers(2)]
    states = [None, *range(1, 5)][rng.integers(5)]
    return Model(CategoricalHMM.fit, states, **options), X, None, _weights(rng, len(X))


def many_hmms(rng):
    from maxent.models import CategoricalHMM

    X, m = symbols(rng)
    options = _fit_options(rng) | {"n_symbols": [None, m][rng.integers(2)]}
    options["smoothing"] = float(rng.choice([0.0, 0.01, 1.0]))
    options["n_states"] = [None, *range(1, 5)][rng.integers(5)]
    return Model(CategoricalHMM.fit_many, **options), X, None, None


def markov(rng):
    from maxent.models import MarkovChain

    X, m = symbols(rng)
    options = {
        "order": int(rng.integers(0, 4)),
        "n_symbols": [None, m][rng.integers(2)],
        "smoothing": float(rng.choice([0.0, 0.01, 1.0])),
        "start": str(rng.choice(["first", "all"])),
    }
    if options["smoothing"] == 0.0:  # windows that were not counted are impossible
        X = [x for x in X if len(x) >= max(options["order"], 1) and x.min() >= 0]
    return Model(MarkovChain.fit, **options), X, None, _weights(rng, len(X))


def gaussian_hmm(rng):
    from maxent.models import GaussianHMM

    X = series(rng)
    options = _fit_options(rng)
    options["smoothing"] = float(rng.choice([0.0, 0.01, 0.01, 1.0]))
    options["covariance_type"] = str(rng.choice(["full", "diagonal", "spherical"]))
    states = [None, *range(1, 4)][rng.integers(4)]
    return Model(GaussianHMM.fit, states, **options), X, None, _weights(rng, len(X))


def mixture(rng):
    from maxent import families
    from maxent.models import Mixture

    n = _size(rng, 100) - 3
    name = str(
        rng.choice(
            ["Gaussian", "DiagonalGaussian", "SphericalGaussian", "Poisson", "Gamma"]
            + ["Exponential", "Bernoulli", "Categorical", "Geometric", "Dirichlet"]
            + ["Beta", "VonMisesFisher"]
        )
    )
    if "Gaussian" in name:
        X = hostile(rng, n)[:, :5]
        if rng.random() < 0.2:
            X[rng.random(X.shape) < 0.1] = np.nan
    elif name in ("Gamma", "Exponential"):
        X = rng.gamma(_power(rng, -1, 1), _power(rng, -3, 3), size=n)
    elif name in ("Poisson", "Geometric"):
        X = rng.poisson(_power(rng, -1, 3), size=n)
    elif name == "Bernoulli":
        X = (rng.random(n) < rng.random()).astype(int)
    elif name == "Categorical":
        X = rng.integers(0, rng.integers(1, 6), size=n)
    elif name == "Dirichlet":
        X = rng.dirichlet(np.full(3, _power(rng, -0.5, 2)), size=n)
    elif name == "Beta":
        X = rng.beta(_power(rng, -0.5, 2), 1.0, size=n)
    else:
        X = rng.normal(size=(n, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(n // 3, 1), size=n)]
    options = _fit_options(rng) | {"family": getattr(families, name)}
    options["smoothing"] = float(rng.choice([0.0, 0.01, 0.01, 1.0]))
    options["n_components"] = int(rng.integers(1, 4))
    return Model(Mixture.fit, **options), X, None, _weights(rng, n)


def dynamical_system(rng):
    from maxent.models import LinearDynamicalSystem

    options = _fit_options(rng, -6) | {"prior": float(rng.choice([0.0, 0.1, 1.0]))}
    options["stable"] = bool(rng.integers(2))
    states = int(rng.integers(1, 4))
    return Model(LinearDynamicalSystem.fit, states, **options), series(rng), None, None


def switching(rng):
    from maxent.models import SwitchingLDS

    options = _fit_options(rng, -6) | {"prior": float(rng.choice([0.01, 0.1, 1.0]))}
    options["answer"] = "lower_bound"  # the likelihood is a sum over all paths
    options["smoothing"] = float(rng.choice([0.0, 1.0]))
    sizes = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    X = series(rng, 20)[:6]
    return Model(SwitchingLDS.fit, *sizes, **options), X, None, None


def factorial(rng):
    from maxent.models import FactorialHMM

    options = _fit_options(rng) | {"smoothing": float(rng.choice([0.0, 0.1]))}
    options["answer"] = "lower_bound"
    options["ridge"] = float(rng.choice([0.0, 0.1, 0.1]))
    options["shrinkage"] = _power(rng, -3, 0)
    states = rng.integers(1, 4, size=rng.integers(1, 4)).tolist()
    return Model(FactorialHMM.fit, states, **options), series(rng, 20)[:6], None, None


def _dag(rng, names):
    """Random parents of every node among those before it."""
    return {
        name: [names[j] for j in range(i) if rng.random() < 0.4]
        for i, name in enumerate(names)
    }


def _observed(rng, most, hidden):
    """Categories, names of nodes with a hidden one at times, and options of a fit."""
    X = categories(rng, _size(rng, most) - 3)[:, :4]
    observed = [f"x{j}" for j in range(X.shape[1])]
    options = _fit_options(rng) | {"observed": observed}
    options["smoothing"] = float(rng.choice([0.0, 0.01, 1.0]))
    names = observed
    if rng.random() < hidden:
        names = ["h", *observed]
        options["n_categories"] = {"h": int(rng.integers(1, 4))}
    if rng.random() < 0.3:
        X = np.where(rng.random(X.shape) < 0.2, -1, X)
    return X, names, options


def bayes_net_model(rng):
    from maxent.models import BayesNet

    X, names, options = _observed(rng, 100, 0.5)
    parents = _dag(rng, names)
    return Model(BayesNet.fit, parents, **options), X, None, _weights(rng, len(X))


def random_field(rng):
    from maxent.models import MarkovRandomField

    X, names, options = _observed(rng, 60, 0.4)
    scopes = [(name,) for name in names]
    scopes += [(a, b) for a in names for b in names if a < b and rng.random() < 0.5]
    field = Model(MarkovRandomField.fit, scopes, **options)
    return field, X, None, _weights(rng, len(X))


def gaussian_network(rng):
    from maxent.models import LinearGaussianNetwork

    X = hostile(rng, _size(rng, 100) - 3)[:, :5]
    observed = [f"x{j}" for j in range(X.shape[1])]
    names = ["h", *observed] if rng.random() < 0.4 else observed
    if rng.random() < 0.2:
        X[rng.random(X.shape) < 0.1] = np.nan
    options = _fit_options(rng) | {"observed": observed}
    options["prior"] = float(rng.choice([0.0, 0.1, 0.1, 1.0]))
    network = Model(LinearGaussianNetwork.fit, names, _dag(rng, names), **options)
    return network, X, None, _weights(rng, len(X))


ESTIMATORS = {
    "classifier": classifier,
    "regressor": regressor,
    "selector": selector,
    "selector of numbers": selector_of_numbers,
    "gaussian": gaussian,
    "bayes_net": bayes_net,
    "trees": trees,
    "random_tables": random_tables,
    "chow_liu": chow_liu,
    "outliers": outliers,
    "multiclass": multiclass,
    "partial_labels": partial_labels,
    "mixture_outliers": mixture_outliers,
    "sequence_outliers": sequence_outliers,
    "maxent_classifier": maxent_classifier,
    "gaussian_mixture": gaussian_mixture,
    "dirichlet_mixture": dirichlet_mixture,
    "boltzmann": boltzmann,
    "rbm": rbm,
    "topics": topics,
    "latent": latent,
    "bags": bags,
    "joint_features": joint_features,
    "motifs": motifs,
    "grids": grids,
    "fisher_features": fisher_features,
    "fisher_scores": fisher_scores,
    "product": product,
    "categorical_hmm": categorical_hmm,
    "many_hmms": many_hmms,
    "markov": markov,
    "gaussian_hmm": gaussian_hmm,
    "mixture": mixture,
    "dynamical_system": dynamical_system,
    "switching": switching,
    "factorial": factorial,
    "bayes_net_model": bayes_net_model,
    "random_field": random_field,
    "gaussian_network": gaussian_network,
}


# -- one problem -----------------------------------------------------------------------
def attempt(task):
    """(name, number, outcome, detail, seconds) of one random problem."""
    name, seed, k, seconds = task
    code = list(ESTIMATORS).index(name)
    rng = np.random.default_rng([seed, code, k])
    estimator, X, y, weight = ESTIMATORS[name](rng)

    def stop(signum, frame):
        raise NoEnd

    # waiting threads of BLAS and OpenMP count as processor time
    threadpool_limits(1)
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    start = time.process_time()
    fitted = False
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            more = {} if weight is None else {"sample_weight": weight}
            estimator.fit(X, y, **more)
            fitted = True
            outcome, detail = "converged", ""
            if not getattr(estimator, "converged_", True):
                outcome, detail = "stopped", _shown(estimator)
                if not any(issubclass(w.category, ConvergenceWarning) for w in said):
                    outcome = "SILENT"
            bad = [w for w in said if issubclass(w.category, RuntimeWarning)]
            if bad:
                outcome, detail = "RUNTIME WARNING", f"{bad[0].message}"
            if not np.isfinite(_answers(estimator, X)).all():
                outcome, detail = "NOT FINITE", _shown(estimator)
    except (ValueError, FloatingPointError) as error:
        outcome, detail = "refused", str(error)[:160]
        if not _meant(error):
            outcome, detail = "EXCEPTION", traceback.format_exc()[-600:]
        elif fitted:
            outcome, detail = "NO ANSWER", traceback.format_exc()[-600:]
    except NoEnd:
        outcome, detail = "NO END", _shown(estimator)
    except Exception:
        outcome, detail = "EXCEPTION", traceback.format_exc()[-600:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return name, k, outcome, detail, time.process_time() - start


def _meant(error):
    """Whether the package or scikit-learn raises an error, and not what they call."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = trace.tb_frame.f_code.co_filename
    ours = {"maxent", "sklearn"} & set(pathlib.PurePath(path).parts)
    line = linecache.getline(path, trace.tb_lineno)
    return bool(ours) and (line.strip().startswith("raise") or not line)


def _answers(estimator, X):
    """What a fitted estimator says of the data it was fitted to."""
    names = "answers", "decision_function", "score_samples", "transform", "log_prob"
    for name in names:
        if hasattr(estimator, name):
            found = getattr(estimator, name)
            if name == "log_prob":
                return np.concatenate([found(document) for document in X])
            return found(X)
    return estimator.predict(X)


def _shown(estimator):
    gap = getattr(estimator, "duality_gap_", np.nan)
    J = getattr(estimator, "objective_", np.nan)
    return f"gap {gap:.1e} of {J:.3g}: {estimator!r}".replace("\n", " ")[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=ESTIMATORS, action="append")
    parser.add_argument("--refusals", action="store_true", help="print them too")
    parser.add_argument("--number", type=int, help="one problem alone")
    args = parser.parse_args()
    numbers = range(args.problems) if args.number is None else [args.number]
    names = args.only or list(ESTIMATORS)
    tasks = [(name, args.seed, k, args.seconds) for name in names for k in numbers]
    counts, failures = collections.defaultdict(collections.Counter), 0
    slowest = collections.defaultdict(float)
    # a crash of a worker breaks the pool, so that no result is lost in silence
    with concurrent.futures.ProcessPoolExecutor(
        args.jobs, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        runs = [pool.submit(attempt, task) for task in tasks]
        for run in concurrent.futures.as_completed(runs):
            name, k, outcome, detail, took = run.result()
            counts[name][outcome] += 1
            slowest[name] = max(slowest[name], took)
            shown = outcome == "refused" and args.refusals
            if outcome.isupper() or outcome == "stopped" or shown:
                failures += outcome.isupper()
                print(f"{name} {k} ({took:.1f} s): {outcome} {detail}", flush=True)
    for name in names:
        found = ", ".join(f"{n} {what}" for what, n in sorted(counts[name].items()))
        print(f"{name}: {found}; slowest {slowest[name]:.1f} s")
    print(f"{len(tasks) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
