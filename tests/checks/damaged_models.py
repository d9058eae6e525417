"""Damaged fitted states and model files: an answer or a clear error, never harm.

    python tests/checks/damaged_models.py [--states 10000] [--files 10000] [--seed 0]
                                          [--jobs 2] [--only NAME] [--seconds 20]

States: every estimator is fitted once to few rows; each trial changes one part of a
copy of its fitted state and asks it for everything that it says of good rows.

Files: everything that `maxent.save` stores is saved once; each trial changes bytes of
the file, or its metadata and arrays with a checksum that agrees again, loads it, and
asks what was loaded.

An answer is finite, or there is a ValueError, TypeError, AttributeError or
NotFittedError (of files OSError too, and of models the FloatingPointError that says
where a covariance is lost); their counts are printed. Anything else is a failure:
another exception, NaN or infinity in an answer, a RuntimeWarning, a crash of the
process, no end after the given seconds of processor time, a gigabyte of memory, or a
marker that only unpickling can make. Logarithms of probabilities may be -inf. The part,
name and number of a failing trial are printed; `--only NAME --number K` makes it again.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import copy
import enum
import faulthandler
import functools
import io
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

GIGABYTE = 2**30
ALLOWED = (ValueError, TypeError, AttributeError, NotFittedError)
TRIALS_PER_TASK = 25

# what an estimator is asked of rows, where it can be
OF_ROWS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "transform",
    "predict_hidden",
    "hidden_proba",
    "predict_window",
    "aic",
    "bic",
    "gibbs",
    "perplexity",
)
# what it is asked without rows
OF_ITSELF = ("joint_proba", "get_support", "get_feature_names_out")
PROPERTIES = (
    "best_trees_",
    "edge_log_weights_",
    "edge_probabilities_",
    "means_",
    "motif_",
    "background_",
    "weights_",
    "lower_bound_",
    "lower_bounds_",
    "threshold_",
)
OF_VALUES = ("log_prob", "log_likelihood", "posterior", "viterbi")
MAY_BE_MINUS_INFINITY = (
    "predict_log_proba",
    "score_samples",
    "log_prob",
    "log_likelihood",
)


class NoEnd(BaseException):
    """The time of a trial is over; no code of the package catches it."""


class Bomb:
    """An object whose unpickling makes a folder."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


# -- what is damaged -----------------------------------------------------------------
@functools.cache
def _data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=30) > 0).astype(int)
    return X, y, np.arange(30) % 3, rng.integers(0, 3, size=(30, 4))


def _rows(make, classes=2):
    """Subject: an estimator of real rows."""

    def fit():
        X, y, y3, _ = _data()
        return make().fit(X, y if classes == 2 else y3), X[:7]

    return fit


def _codes(make, classes=2):
    def fit():
        _, y, y3, codes = _data()
        return make().fit(codes, y if classes == 2 else y3), codes[:7]

    return fit


def _sparse_machine():
    import maxent

    X, y, _, _ = _data()
    rows = sparse.csr_array(X * (X > 0))
    return maxent.MEDClassifier().fit(rows, y), rows[:7]


def _letters():
    import maxent

    _, y, _, codes = _data()
    words = np.array(["c", "a", "b"], dtype=object)[codes]
    model = maxent.MEDTreeClassifier().fit(words, np.where(y, "yes", "no"))
    return model, words[:7]


def _partial_labels():
    import maxent

    X, y, _, _ = _data()
    model = maxent.MEDPartialLabelClassifier()
    return model.fit(X, np.where(np.arange(30) % 3, y, -1)), X[:7]


def _sequences():
    import maxent

    X = ["ab" * 10, "ba" * 12, "ab" * 8, "ba" * 9] * 5
    model = maxent.MEDSequenceOutlierDetector(2, alphabet="ab", random_state=0)
    return model.fit(X), ["abab", "bbbaa", "a"]


def _series():
    import maxent

    X = np.random.default_rng(3).normal(size=(12, 6, 2))
    model = maxent.MEDSequenceOutlierDetector(2, emission="gaussian", random_state=0)
    return model.fit(X), X[:3]


def _binary(name):
    def fit():
        import maxent

        rng = np.random.default_rng(0)
        X = np.repeat(rng.integers(0, 2, size=(40, 1)), 4, axis=1)
        X = np.abs(X - (rng.random(X.shape) < 0.1))
        model = getattr(maxent, name)(1, n_init=2, max_iter=300, random_state=0)
        return model.fit(X), X[:7]

    return fit


def _proportions():
    import maxent

    rng = np.random.default_rng(0)
    X = np.vstack([rng.dirichlet([2, 5, 1], 25), rng.dirichlet([9, 2, 3], 25)])
    model = maxent.LMEDirichletMixture(2, n_init=2, max_iter=500, random_state=0)
    return model.fit(X), X[:7]


def _mixture(kind):
    def fit():
        import maxent

        rng = np.random.default_rng(0)
        X = np.vstack([rng.normal(size=(25, 2)), rng.normal(size=(25, 2)) + 4])
        model = maxent.LMEGaussianMixture(2, kind, n_init=2, random_state=0)
        return model.fit(X), X[:7]

    return fit


def _coins():
    import maxent

    heads = np.arange(4.0)
    f = np.zeros((4, 2, 3))
    f[:, 0, 0] = 1.0
    f[:, 0, 1] = f[:, 1, 2] = heads
    y = np.repeat([0, 1, 2, 3], [30, 20, 20, 30])
    return maxent.LatentMaxEnt(f, n_init=3, random_state=0).fit(y), y[::20]


def _documents():
    import maxent

    documents = [list("ababacab"), list("xyxyzxyx")] * 3
    model = maxent.TrigramTopicModel(2, 1, n_init=2, max_iter=60, random_state=0)
    return model.fit(documents), [list("abab"), list("xzy")]


def _bags():
    import maxent

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 4, 2)), np.arange(24) % 2
    X[y == 1, 3] += 3.0
    model = maxent.M3EClassifier(C=10.0, n_init=1, random_state=0)
    return model.fit(X, y), X[:5]


def _bags_of_three():
    import maxent

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 4, 2)), np.arange(24) % 3
    X[np.arange(24), y] += 3.0
    model = maxent.M3EClassifier(alpha=2.0, n_init=1, random_state=0)
    return model.fit(X, y), X[:5]


def _motifs():
    import maxent

    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(20)]
    X = [x[:4] + "TATA" + x[8:] if i % 2 else x for i, x in enumerate(X)]
    model = maxent.M3EMotifClassifier(
        4, alpha=2.0, C=10.0, n_init=1, both_strands=True, random_state=0
    )
    return model.fit(X, np.arange(20) % 2), X[:5]


def _grids():
    import maxent

    rng = np.random.default_rng(0)
    y, X = np.arange(20) % 2, 0.3 * rng.standard_normal((20, 4, 4, 1))
    X[y == 1, 1:3, 1:3, 0] += [[2.0, -2.0], [-2.0, 2.0]]
    model = maxent.M3EGridClassifier(
        (2, 2), alpha=2.0, C=10.0, n_init=1, random_state=0
    )
    return model.fit(X, y), X[:5]


def _feature_map(kind):
    def fit():
        import maxent
        from maxent.minentropy import ChainMap

        rng = np.random.default_rng(0)
        y = np.arange(16) % 2
        X = rng.standard_normal((16, 3, 2)) + y[:, None, None]
        options = {"alpha": 2.0, "n_init": 1, "random_state": 0}
        if kind == "chain":
            model = maxent.M3EModel(ChainMap(2), **options)
        else:
            X = np.stack([X, -X], axis=1)
            model = maxent.M3EModel(**options)
        return model.fit(X, y), X[:5]

    return fit


def _fisher_scores():
    from maxent.kernels import FisherScores
    from maxent.models import MarkovChain

    model = MarkovChain([0.5, 0.5], [[0.5, 0.5], [0.25, 0.75]], alphabet="AB")
    X = ["AABA", "BBB", "A"]
    return FisherScores(model).fit(X), X


def _product_kernel():
    from maxent.kernels import ProductKernel

    X = [[4, 1, 0], [3, 2, 0], [5, 0, 1], [0, 2, 4], [1, 1, 5], [0, 1, 3]]
    return ProductKernel().fit(X), X[:3]


def _model_kernel():
    from maxent.kernels import ProductKernel

    X = ["AABABA", "ABAABB", "BBBAAA", "BBABAB"]
    return ProductKernel("MarkovChain", model_params={"alphabet": "AB"}).fit(X), X[:3]


def _pipeline():
    from sklearn.pipeline import make_pipeline

    import maxent

    X, y, _, _ = _data()
    machine = maxent.MEDClassifier(kernel="linear")
    return make_pipeline(maxent.FisherFeatures(), machine).fit(X, y), X[:7]


def _calibrated():
    from sklearn.calibration import CalibratedClassifierCV

    import maxent

    X, _, y3, _ = _data()
    machine = maxent.MEDClassifier(kernel="linear")
    return CalibratedClassifierCV(machine, cv=2).fit(X, y3), X[:7]


def _of(name, *args, home="maxent", **options):
    """Maker of an estimator, imported when it is called."""

    def make():
        module = __import__(home, fromlist=[name])
        return getattr(module, name)(*args, **options)

    return make


def _outliers_by(kind):
    def make():
        import maxent
        from maxent.discrimination import LatentMixture

        model = LatentMixture(random_state=0) if kind == "latent" else kind
        return maxent.MEDOutlierDetector(model)

    return make


def _trees_of_table(kind):
    return _codes(_of("MEDTreeClassifier", kind, ess=20.0))


ESTIMATORS = {
    "kernel": _rows(_of("MEDClassifier")),
    "linear": _rows(_of("MEDClassifier", "linear")),
    "poly": _rows(_of("MEDClassifier", "poly", margin="laplace", bias=1.0)),
    "sparse": _sparse_machine,
    "ovo": _rows(_of("MEDClassifier", multi_class="ovo"), classes=3),
    "joint": _rows(_of("MEDClassifier", multi_class="joint"), classes=3),
    "nystroem": _rows(
        _of("MEDClassifier", approximation="nystroem", n_components=9, random_state=0)
    ),
    "regressor": _rows(_of("MEDRegressor")),
    "selector": _rows(_of("MEDFeatureSelector", 0.5)),
    "selector of numbers": _rows(_of("MEDRegressionSelector", 0.5)),
    "gaussian": _rows(_of("MEDGaussianClassifier")),
    "gaussian_three": _rows(_of("MEDGaussianClassifier", tol=1e-4), classes=3),
    "bayes_net": _codes(_of("MEDBayesNetClassifier")),
    "bayes_net_parents": _codes(
        _of("MEDBayesNetClassifier", [(), (0,), (0, 1), (2,)], likelihood="predictive")
    ),
    "trees": _codes(_of("MEDTreeClassifier")),
    "trees_of_words": _letters,
    "trees_of_three": _codes(_of("MEDTreeClassifier", tol=1e-4), classes=3),
    "random_tables": _trees_of_table("dirichlet"),
    "chow_liu": _codes(_of("ChowLiuClassifier"), classes=3),
    "normal_rows": _rows(_outliers_by("gaussian")),
    "normal_codes": _codes(_outliers_by("multinomial")),
    "normal_trees": _codes(_outliers_by("tree")),
    "normal_mixtures": _rows(_outliers_by("latent")),
    "normal_sequences": _sequences,
    "normal_series": _series,
    "partial_labels": _partial_labels,
    "maxent": _rows(_of("MaxEntClassifier"), classes=3),
    "maxent_binary": _rows(_of("MaxEntClassifier")),
    "mixture_full": _mixture("full"),
    "mixture_diag": _mixture("diag"),
    "mixture_spherical": _mixture("spherical"),
    "dirichlet_mixture": _proportions,
    "boltzmann": _binary("LMEBoltzmannMachine"),
    "rbm": _binary("LMERBM"),
    "latent_maxent": _coins,
    "topics": _documents,
    "bags": _bags,
    "bags_of_three": _bags_of_three,
    "motifs": _motifs,
    "grids": _grids,
    "feature_map": _feature_map("dense"),
    "chain_map": _feature_map("chain"),
    "fisher_features": _rows(_of("FisherFeatures")),
    "fisher_scores": _fisher_scores,
    "product_kernel": _product_kernel,
    "product_kernel_of_models": _model_kernel,
    "pipeline": _pipeline,
    "calibrated": _calibrated,
}


# lengths of the work that is asked for: a large one takes long, as it should
WORK = ("horizon", "horizon_")
# scores of a model that is given: `fit` learns nothing; and an object of scikit-learn,
# whose state is scikit-learn's (files of it are checked by the package)
WITHOUT_STATE = ("fisher_scores", "calibrated")


def _spd(rng, *shape, d=2):
    A = rng.normal(size=(*shape, d, 2 * d + 2))
    return A @ A.swapaxes(-2, -1) / d


def _value_makers():
    """Name -> maker of a model, family or prior from a generator."""
    from maxent import families as f
    from maxent import models as m
    from maxent.discrimination import DirichletTrees, SpanningTrees
    from maxent.latent import MaxEntModel, SampledMaxEnt

    s = (2, 3)

    def chain(r, n):
        return r.dirichlet(np.ones(n)), r.dirichlet(np.ones(n), size=n)

    def unit(r):
        v = r.normal(size=(*s, 3))
        return v / np.linalg.norm(v, axis=-1, keepdims=True)

    def system(r, *lead):
        return (
            0.3 * r.normal(size=(*lead, 2, 2)),
            _spd(r, *lead),
            r.normal(size=(3, 2)),
            _spd(r, d=3),
            r.normal(size=2),
            _spd(r),
        )

    def net(r):
        first, then = chain(r, 2)
        return m.BayesNet([(("a",), first), (("a", "b"), then)], ["b"])

    def factorial(r):
        starts, moves = zip(*[chain(r, n) for n in s])
        return m.FactorialHMM(
            starts, moves, [r.normal(size=(n, 2)) for n in s], _spd(r)
        )

    def field(r):
        return m.MarkovRandomField(
            [(("a",), r.normal(size=2)), (("a", "b"), r.normal(size=s))], ["b"]
        )

    return {
        "BayesNet": net,
        "CategoricalHMM": lambda r: m.CategoricalHMM(
            *chain(r, 3), r.dirichlet(np.ones(4), size=3), "ACGT", "N"
        ),
        "FactorialHMM": factorial,
        "GaussianHMM": lambda r: m.GaussianHMM(
            *chain(r, 2), r.normal(size=(2, 2)), _spd(r, 2)
        ),
        "LinearDynamicalSystem": lambda r: m.LinearDynamicalSystem(*system(r)),
        "LinearGaussianNetwork": lambda r: m.LinearGaussianNetwork.fit(
            r.normal(size=(9, 3)), ["a", ("b", 2)], {"b": ["a"]}
        ),
        "MarkovChain": lambda r: m.MarkovChain.fit(["ABBA"], 2, alphabet="AB"),
        "MarkovRandomField": field,
        "Mixture": lambda r: m.Mixture(
            [0.2, 0.8], f.Gaussian(r.normal(size=(2, 3)), _spd(r, 2, d=3))
        ),
        "SwitchingLDS": lambda r: m.SwitchingLDS(*chain(r, 2), *system(r, 2)),
        "Gaussian": lambda r: f.Gaussian(r.normal(size=(*s, 2)), _spd(r, *s)),
        "DiagonalGaussian": lambda r: f.DiagonalGaussian(
            r.normal(size=(*s, 3)), r.uniform(0.3, 3.0, size=(*s, 3))
        ),
        "SphericalGaussian": lambda r: f.SphericalGaussian(
            r.normal(size=(*s, 3)), r.uniform(0.3, 3.0, size=s)
        ),
        "Bernoulli": lambda r: f.Bernoulli(r.uniform(0.02, 0.98, size=s)),
        "Categorical": lambda r: f.Categorical(r.dirichlet(np.ones(4), size=s)),
        "Multinomial": lambda r: f.Multinomial(r.dirichlet(np.ones(3), size=s), 5),
        "Poisson": lambda r: f.Poisson(r.uniform(0.1, 9.0, size=s)),
        "Geometric": lambda r: f.Geometric(r.uniform(0.1, 0.9, size=s)),
        "NegativeBinomial": lambda r: f.NegativeBinomial(
            r.uniform(0.2, 0.9, size=s), 2.5
        ),
        "Exponential": lambda r: f.Exponential(r.uniform(0.2, 5.0, size=s)),
        "Gamma": lambda r: f.Gamma(
            r.uniform(1.1, 5.0, size=s), r.uniform(0.3, 3.0, size=s)
        ),
        "Beta": lambda r: f.Beta(
            r.uniform(1.1, 6.0, size=s), r.uniform(1.1, 6.0, size=s)
        ),
        "Dirichlet": lambda r: f.Dirichlet(r.uniform(1.1, 5.0, size=(*s, 3))),
        "Wishart": lambda r: f.Wishart(r.uniform(3.5, 8.0, size=s), _spd(r, *s)),
        "InverseWishart": lambda r: f.InverseWishart(
            r.uniform(5.5, 9.0, size=s), _spd(r, *s)
        ),
        "VonMisesFisher": lambda r: f.VonMisesFisher(
            unit(r), r.uniform(0.1, 20.0, size=s)
        ),
        "NormalInverseWishart": lambda r: f.NormalInverseWishart(
            np.zeros(3), 1.0, 5.0, np.eye(3)
        ),
        "NormalGamma": lambda r: f.NormalGamma(np.zeros(2), np.eye(2), 2.0, 1.0),
        "DirichletCounts": lambda r: f.DirichletCounts([1.0, 1.0, 2.0]),
        "DirichletProduct": lambda r: f.DirichletProduct(1.0, [3, 3, 3, 3]).posterior(
            _data()[3]
        ),
        "DirichletBayesNet": lambda r: f.DirichletBayesNet(
            1.0, [(), (0,), (0,), (1, 2)], [3, 3, 3, 3]
        ).posterior(_data()[3]),
        "DirichletTrees": lambda r: DirichletTrees(1.0, [3, 3, 3, 3]).posterior(
            _data()[3]
        ),
        "SpanningTrees": lambda r: _spanning_trees(SpanningTrees, r),
        "MaxEntModel": lambda r: MaxEntModel(r.normal(size=(6, 2)), [0.5, -1.0]),
        "SampledMaxEnt": lambda r: SampledMaxEnt(r.normal(size=(6, 2)), [0.5, -1.0]),
    }


def _spanning_trees(cls, rng):
    import maxent

    _, y, _, codes = _data()
    found = maxent.MEDTreeClassifier().fit(codes, y)
    for value in vars(found).values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, cls):
                return part
    raise RuntimeError("no SpanningTrees in a MEDTreeClassifier")


def _value_rows(name, value):
    """Good rows for a value; None where it is asked of nothing."""
    X, _, _, codes = _data()
    if name in ("CategoricalHMM", "MarkovChain"):
        return [value.alphabet[:2] * 2, value.alphabet[0] * 3]
    if name in ("FactorialHMM", "GaussianHMM", "LinearDynamicalSystem", "SwitchingLDS"):
        return value.sample(3, 4, random_state=0)
    if name in ("NormalInverseWishart", "NormalGamma"):
        return X[:5]
    if name == "DirichletCounts":
        return np.array([[2, 0, 1], [0, 3, 1]])
    if name in (
        "DirichletProduct",
        "DirichletBayesNet",
        "DirichletTrees",
        "SpanningTrees",
    ):
        return codes[:5]
    if name in ("MaxEntModel", "SampledMaxEnt"):
        return None
    return value.sample(5, random_state=0)


def value_names():
    """Names of the models, families and priors that have files of their own."""
    return list(_value_makers())


@functools.cache
def subject(name):
    """(estimator or value, rows to ask it of)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in ESTIMATORS:
            return ESTIMATORS[name]()
        value = _value_makers()[name](np.random.default_rng(1))
        return value, _value_rows(name, value)


# -- what is asked -------------------------------------------------------------------
def _asked(thing, X, name):
    """(question, call) of everything that is asked of an estimator or value."""
    if name in ESTIMATORS:
        for question in OF_ROWS:
            yield question, lambda q=question: getattr(thing, q)(X)
        for question in OF_ITSELF:
            yield question, lambda q=question: getattr(thing, q)()
        for question in PROPERTIES:
            yield question, lambda q=question: getattr(thing, q)
        yield "sample", lambda: thing.sample(3, random_state=0)
        yield "sample_trees", lambda: thing.sample_trees(3, random_state=0)
        yield "log_prob", lambda: thing.log_prob(X[0])
        yield "select", lambda: _selected(thing, X)
    elif X is None:
        for question in ("log_prob", "entropy", "moments", "covariance"):
            yield question, lambda q=question: getattr(thing, q)()
        yield "sample", lambda: thing.sample(3, random_state=0)
    else:
        for question in OF_VALUES:
            yield question, lambda q=question: getattr(thing, q)(X)
        for question in ("expected_log_prob", "predictive_log_prob"):
            yield question, lambda q=question: getattr(thing, q)(X)
        for question in ("edge_probabilities", "best_tree"):
            yield question, lambda q=question: getattr(thing, q)
        yield "sample", lambda: _sampled(thing)


def _selected(thing, X):
    other = thing.select("likelihood")
    score = "perplexity" if hasattr(other, "perplexity") else "score_samples"
    return getattr(other, score)(X)


def _sampled(thing):
    if hasattr(thing, "transition"):
        return thing.sample(2, 3, random_state=0)
    return thing.sample(2, random_state=0)


@functools.cache
def questions(name):
    """Names of the questions that the undamaged subject answers."""
    thing, X = subject(name)
    known = []
    for question, call in _asked(copy.deepcopy(thing), X, name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = call()
            except (AttributeError, NotImplementedError):
                continue
        fault = _fault(found, question)
        if fault:
            raise RuntimeError(f"{question} of the undamaged {name}: {fault}")
        known.append(question)
    if not known:
        raise RuntimeError(f"the undamaged {name} answers nothing")
    return frozenset(known)


def _fault(found, question, depth=4):
    """What is wrong with an answer; empty if nothing."""
    if sparse.issparse(found):
        found = found.data
    if isinstance(found, (np.ndarray, float, np.floating)):
        array = np.asarray(found)
        if array.dtype.kind == "O":
            return _fault(list(array.ravel()), question, depth - 1) if depth else ""
        if array.dtype.kind not in "fc" or np.isfinite(array).all():
            return ""
        bad = array[~np.isfinite(array)]
        logarithm = question in MAY_BE_MINUS_INFINITY or "log" in question
        if logarithm and (bad == -np.inf).all():
            return ""
        return f"{bad[0]} in {question}"
    if isinstance(found, dict):
        found = list(found.values())
    elif hasattr(found, "__dict__") and type(found).__module__.startswith("maxent"):
        parts = [(k, x) for k, x in vars(found).items() if not k.startswith("_")]
        faults = [_fault(x, f"{question}.{k}", depth - 1) for k, x in parts if depth]
        return next(filter(None, faults), "")
    if isinstance(found, (list, tuple)) and depth:
        for part in found:
            fault = _fault(part, question, depth - 1)
            if fault:
                return fault
    return ""


def ask(thing, name):
    """(outcome, detail) of asking everything: the worst of the single outcomes."""
    _, X = subject(name)
    refusals = collections.Counter()
    for question, call in _asked(thing, X, name):
        if question not in questions(name):
            continue
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found = call()
            except (*ALLOWED, FloatingPointError) as error:
                # a model of state space says so where a covariance is lost
                refusals[type(error).__name__] += 1
                continue
            except Exception:
                return "EXCEPTION", f"{question}: {_end_of_trace()}"
        bad = [w for w in said if issubclass(w.category, RuntimeWarning)]
        if question in PROPERTIES:  # show what they are made of, good or not
            continue
        fault = _fault(found, question)
        if fault:
            return "NOT FINITE", fault
        if bad:
            where = f"{bad[0].filename}:{bad[0].lineno}"
            return "RUNTIME WARNING", f"{question}: {bad[0].message} {where}"
    if not refusals:
        return "answered", ""
    return f"{refusals.most_common(1)[0][0]} of what was asked", ""


def _end_of_trace():
    return traceback.format_exc()[-700:]


# -- changes of values ---------------------------------------------------------------
def other_value(rng):
    """A value of a type that may not be meant."""
    choices = (
        None,
        "text",
        "",
        -1,
        0,
        10**30,
        2**62,
        True,
        float("nan"),
        float("inf"),
        -1e308,
        [],
        [1, "a", None],
        {},
        {"a": 1},
        (),
        (3, 4),
        object(),
        b"bytes",
        3 + 4j,
        np.zeros(0),
        np.zeros((2, 2)),
        np.array([None, "x"], dtype=object),
        np.float64("nan"),
    )
    return choices[rng.integers(len(choices))]


def changed_array(rng, array):
    """An array of the same or another kind, changed in one entry or everywhere."""
    new = np.array(array)
    kind = rng.integers(20)
    if kind < 6 and new.size and new.dtype.kind in "iuf":
        floating = new.dtype.kind == "f"
        values = (
            [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -1.0, 1e-320, 1e160]
            if floating
            else [np.iinfo(new.dtype).max, np.iinfo(new.dtype).min, 0, 1, 60, 7]
        )
        value = values[rng.integers(len(values))]
        if rng.random() < 0.5:
            new.reshape(-1)[rng.integers(new.size)] = value
        else:
            new[...] = value
        return new
    if kind == 6:
        with np.errstate(all="ignore"):
            return -new if new.dtype.kind in "if" else new[..., :0]
    if kind == 7:
        return new.T if new.ndim > 1 else new[:, None] if new.ndim else new[None]
    if kind in (8, 9) and new.ndim:
        axis, cut = rng.integers(new.ndim), rng.integers(3)
        length = min((new.shape[axis] - 1, 1, 0)[cut], new.shape[axis])
        return np.take(new, np.arange(max(length, 0)), axis=axis)
    if kind in (10, 11) and new.ndim:
        axis = rng.integers(new.ndim)
        more = new[tuple(slice(0, 1 if a == axis else None) for a in range(new.ndim))]
        return np.concatenate([new, more if kind == 10 else new], axis=axis)
    if kind == 12:
        return new.ravel() if new.ndim != 1 else new.reshape(1, -1)
    if kind in (13, 14):
        types = (object, np.int64, str, np.float32, complex, bool, np.uint8, ">f8")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return new.astype(types[rng.integers(len(types))])
        except (ValueError, TypeError, OverflowError):
            return new.astype(object)
    if kind == 15:
        return new.reshape(-1)[rng.permutation(new.size)].reshape(new.shape)
    if kind == 16:  # every second entry of a larger array
        large = np.repeat(new, 2, axis=-1) if new.ndim else new
        return large[..., ::2] if new.ndim else new
    if kind == 17:
        return new.tolist()
    if kind == 18:
        return np.zeros((0,) * max(new.ndim, 1), dtype=new.dtype)
    return other_value(rng)


def changed_sparse(rng, matrix):
    new = matrix.copy()
    kind = rng.integers(7)
    if kind == 0 and new.nnz:
        new.data[rng.integers(new.nnz)] = [np.nan, np.inf, 1e308][rng.integers(3)]
    elif kind == 1 and new.nnz:
        indices = [-1, 10**6, new.shape[1], np.iinfo(new.indices.dtype).max]
        new.indices[rng.integers(new.nnz)] = indices[rng.integers(4)]
    elif kind == 2:
        new.indptr[rng.integers(len(new.indptr))] = [-1, 10**6, 2**30][rng.integers(3)]
    elif kind == 3:
        new.data = new.data[:-1]
    elif kind == 4:
        new.indices = new.indices.astype(float)
    elif kind == 5:
        new = new[:-1]
    else:
        return other_value(rng)
    return new


def changed_value(rng, value):
    """Anything, changed."""
    if sparse.issparse(value):
        return changed_sparse(rng, value)
    if isinstance(value, np.ndarray):
        return changed_array(rng, value)
    kind = rng.integers(3)
    if kind == 0:
        return other_value(rng)
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, float, np.number)):
        numbers = [np.nan, np.inf, -np.inf, -1, -7.5, 0, 1, 2, 1e308, 1e-320, 2**40]
        new = numbers[rng.integers(len(numbers))]
        if isinstance(value, (int, np.integer)) and np.isfinite(new) and abs(new) < 1e9:
            return type(value)(new)
        return new
    if isinstance(value, str):
        return ["", "rbf", "linear", value + "x", value[:-1], "\0"][rng.integers(6)]
    if isinstance(value, (list, tuple)) and value:
        cut = rng.integers(4)
        if cut == 0:
            return value[:-1]
        if cut == 1:
            return value + value[:1]
        if cut == 2:
            return value[::-1]
        new = list(value)
        new[rng.integers(len(new))] = other_value(rng)
        return type(value)(new) if type(value) in (list, tuple) else new
    if isinstance(value, dict) and value:
        new = dict(value)
        key = list(new)[rng.integers(len(new))]
        if kind == 1:
            del new[key]
        else:
            new[key] = other_value(rng)
        return new
    return other_value(rng)


# -- states --------------------------------------------------------------------------
def places(thing, path=(), depth=5):
    """Paths of everything in the fitted state of an estimator, containers too."""
    if isinstance(thing, (list, tuple)):
        items = list(enumerate(thing))
    elif isinstance(thing, dict):
        items = list(thing.items())
    elif hasattr(thing, "__dict__") and not isinstance(thing, (type, enum.Enum)):
        given = set(getattr(type(thing), "_get_param_names", tuple)())
        given -= {"steps"}  # those of a pipeline are fitted
        given |= set(_memos(thing))
        items = [(k, x) for k, x in vars(thing).items() if k not in given]
    else:
        return
    for key, value in items:
        if callable(value) and not hasattr(value, "get_spec"):
            continue
        here = (*path, key)
        if here[0] != "steps" or len(here) > 3:  # not the list of a pipeline itself
            yield here
        single = isinstance(value, (str, bytes, np.ndarray)) or sparse.issparse(value)
        if depth and not single:
            yield from places(value, here, depth - 1)


def _memos(value):
    """What a value keeps to answer faster: no part of its specification makes it.

    No file can hold it, and whoever changes it in a running process can change anything
    there.
    """
    from maxent._support.registry import rebuilt

    if not hasattr(value, "get_spec"):
        return []
    try:
        fresh = vars(rebuilt(type(value), value.get_spec()))
    except (ValueError, TypeError):  # a margin prior of functions
        return []
    return [k for k in vars(value) if k.startswith("_") and fresh.get(k) is None]


def part(thing, key):
    return thing[key] if isinstance(thing, (list, tuple, dict)) else vars(thing)[key]


def replaced(thing, path, change):
    """The thing with the part at a path changed; tuples are made anew."""
    key, rest = path[0], path[1:]
    old = part(thing, key)
    new = replaced(old, rest, change) if rest else change(old)
    if isinstance(thing, tuple):
        items = [*thing[:key], new, *thing[key + 1 :]]
        return thing._make(items) if hasattr(thing, "_make") else tuple(items)
    if isinstance(thing, (list, dict)):
        thing[key] = new
    else:
        vars(thing)[key] = new
    return thing


@functools.cache
def state_places(name):
    """Paths by fitted attribute, so that a long one is not tried more often."""
    by_attribute = collections.defaultdict(list)
    for path in places(subject(name)[0]):
        by_attribute[path[0]].append(path)
    return list(by_attribute.values())


def damaged_state(name, rng):
    """(copy with a change, what was changed)."""
    paths = state_places(name)
    paths = paths[rng.integers(len(paths))]
    path = paths[rng.integers(len(paths))]
    other = copy.deepcopy(subject(name)[0])
    seen = {}

    def change(old):
        new = changed_value(rng, old)
        seen["new"] = 3 if path[-1] in WORK and _large(new) else new
        return seen["new"]

    other = replaced(other, path, change)
    where = ".".join(map(str, path))
    return other, f"{where} = {_shown(seen['new'])}"


def _large(value):
    return isinstance(value, (int, float)) and value > 10_000


def _shown(value):
    if isinstance(value, np.ndarray):
        few = np.array2string(value.ravel()[:4], separator=",", threshold=5)
        return f"{value.dtype}{list(value.shape)} {few}".replace("\n", "")[:120]
    return repr(value)[:80]


def state_trial(name, rng, folder):
    other, what = damaged_state(name, rng)
    outcome, detail = ask(other, name)
    return outcome, f"{what}: {detail}"


# -- files ---------------------------------------------------------------------------
@functools.cache
def saved(name):
    """Bytes of the model file of a subject, or None if it has none."""
    import maxent

    thing, _ = subject(name)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.npz"
        maxent.save(thing, path)
        return path.read_bytes()


def changed_bytes(rng, raw):
    """(bytes, what was done) of a file that was damaged."""
    new, size = bytearray(raw), len(raw)
    kind = rng.integers(5)
    if kind < 2:
        count = int(rng.integers(1, 9))
        for where in rng.integers(0, size, count):
            new[where] = int(rng.integers(256))
        return bytes(new), f"{count} bytes"
    if kind == 2:
        length = int(rng.integers(0, size))
        return bytes(new[:length]), f"cut to {length}"
    if kind == 3:
        where, count = int(rng.integers(0, size)), int(rng.integers(1, 200))
        new[where:where] = rng.integers(0, 256, count).astype(np.uint8).tobytes()
        return bytes(new), f"{count} bytes more at {where}"
    length = int(rng.integers(1, max(size // 3, 2)))
    a, b = sorted(rng.integers(0, size - length, 2).tolist())
    block = new[a : a + length]
    new[a : a + length] = new[b : b + length]
    new[b : b + length] = block
    return bytes(new), f"blocks of {length} at {a}, {b} swapped"


def members_of(raw):
    """(metadata, arrays) of a model file."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    del arrays["checksum"]
    return json.loads(arrays.pop("metadata").tobytes()), arrays


def signed(metadata, arrays, raw_members=()):
    """Bytes of a model file with a checksum that agrees; raw members as they are."""
    from maxent._persistence.archive import checksum

    text = json.dumps(metadata).encode("ascii", "replace")
    members = {"metadata": np.frombuffer(text, dtype=np.uint8), **arrays}
    contents = dict(raw_members)
    try:
        digest = checksum({k: x for k, x in members.items() if k not in contents})
    except (ValueError, TypeError):  # object arrays have no plain bytes
        digest = bytes(32)
    members["checksum"] = np.frombuffer(digest, dtype=np.uint8)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in members.items():
            if name not in contents:
                part = io.BytesIO()
                np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=True)
                contents[name] = part.getvalue()
            archive.writestr(f"{name}.npy", contents[name])
    return stream.getvalue()


def _nodes(node, path=()):
    """Paths of every node of JSON."""
    items = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from _nodes(value, (*path, key))


def _json_value(rng, arrays):
    """A value of JSON, plain or with a tag of the format."""
    from maxent._support.registry import CLASSES, VALUES

    names = [*CLASSES, *VALUES, "os:system", "builtins", "object"]
    name = names[rng.integers(len(names))]
    array = list(arrays)[rng.integers(len(arrays))] if arrays else "a0"
    choices = (
        None,
        True,
        0,
        -1,
        3,
        2**40,
        10**25,
        1e308,
        -1e308,
        1e-320,
        0.5,
        "",
        "text",
        name,
        [],
        [0, 1],
        {"__float__": "nan"},
        {"__float__": "inf"},
        {"__float__": "-inf"},
        {"__tuple__": []},
        {"__tuple__": [1, 2]},
        {"__dict__": [[1, 2]]},
        {"__array__": array},
        {"__array__": array, "object": True},
        {"__scalar__": ["<i8", 2**62]},
        {"__scalar__": ["<U", "x"]},
        {"__value__": [name, {}]},
        {"__value__": [name, {"__dict__": []}]},
        {"__value__": ["FixedMargin", {"__dict__": [["level", 1.0]]}]},
        {"__estimator__": [name, {}, {}]},
        {"__estimator__": ["MEDClassifier", {"kernel": "linear"}, {}]},
    )
    return choices[rng.integers(len(choices))]


def changed_metadata(rng, metadata, arrays):
    """Change one node of the metadata in place; what was done."""
    paths = list(_nodes(metadata))
    if rng.random() < 0.9:
        paths = [p for p in paths if p[0] in ("params", "fitted")] or paths
    path = paths[rng.integers(len(paths))]
    holder = metadata
    for key in path[:-1]:
        holder = holder[key]
    key, old = path[-1], holder[path[-1]]
    kind = rng.integers(10)
    where = "/".join(map(str, path))
    if kind == 0:
        del holder[key]
        return f"{where} deleted"
    if kind == 1 and isinstance(old, list) and old:
        holder[key] = [old[:-1], old + old, old[::-1], old * 50][rng.integers(4)]
    elif kind == 2 and isinstance(holder, dict):
        names = ["coef_", "x_", "__class__", "kernel", "n_features_in_", "classes_"]
        holder[names[rng.integers(len(names))]] = old
        return f"{where} under another name too"
    elif kind == 3:
        other = paths[rng.integers(len(paths))]
        found = metadata
        for step in other:
            found = found[step]
        holder[key] = copy.deepcopy(found)
        return f"{where} as {'/'.join(map(str, other))}"
    elif type(old) in (int, float) and kind < 8:
        numbers = [0, -1, old + 1, -old, 1e308, 10**20, old * 1e-300, 0.5, 7, 1e6]
        holder[key] = numbers[rng.integers(len(numbers))]
    elif isinstance(old, str) and kind < 8:
        words = ["", old + "x", old[:-1], "a" * 300, "rbf", "linear", "tree", "a1"]
        holder[key] = words[rng.integers(len(words))]
    else:
        holder[key] = _json_value(rng, arrays)
    if path[-1] in WORK and _large(holder[key]):
        holder[key] = 3
    return f"{where} = {_shown(holder[key])}"


def hostile_array(rng, array, marker):
    """Bytes of a .npy member that must be refused or read as plain numbers."""
    stream = io.BytesIO()
    kind = rng.integers(5)
    if kind == 0:  # an object array: reading it would unpickle
        bombs = np.empty(array.shape or (1,), dtype=object)
        bombs.ravel()[:1] = [Bomb(marker)]
        if not bombs.size:
            bombs = np.array([Bomb(marker)], dtype=object)
        np.lib.format.write_array(stream, bombs, allow_pickle=True)
        return stream.getvalue(), "pickled objects"
    shapes = [
        (2**40,),
        (2**31, 2**31),
        (10**9,),
        (-1,),
        (2**62, 4),
        (0, 2**62),
        (1,) * 40,
    ]
    shape = shapes[rng.integers(len(shapes))] if kind < 3 else array.shape
    types = ["<f8", "|O", ">f8", "<c16", "<M8[s]", "|V8", "<U100", "|S3", "<f2"]
    descr = array.dtype.str if kind < 3 else types[rng.integers(len(types))]
    head = {"shape": shape, "fortran_order": bool(rng.integers(2)), "descr": descr}
    np.lib.format.write_array_header_1_0(stream, head)
    return stream.getvalue() + array.tobytes(), f"header {head}"


def damaged_file(name, rng, marker):
    """(bytes, what was changed)."""
    raw = saved(name)
    kind = rng.integers(10)
    if kind < 2:
        return changed_bytes(rng, raw)
    metadata, arrays = members_of(raw)
    if kind < 6 or not arrays:
        what = changed_metadata(rng, metadata, arrays)
        return signed(metadata, arrays), what
    chosen = list(arrays)[rng.integers(len(arrays))]
    if kind == 6:
        content, what = hostile_array(rng, arrays[chosen], marker)
        return signed(metadata, arrays, {chosen: content}), f"{chosen}: {what}"
    new = changed_array(rng, arrays[chosen])
    what = f"{_home(metadata, chosen)} = {_shown(new)}"
    if isinstance(new, np.ndarray) and new.dtype != object:
        arrays[chosen] = new
        return signed(metadata, arrays), what
    bombs = np.array([Bomb(marker)], dtype=object)
    arrays[chosen] = bombs
    return signed(metadata, arrays), f"{_home(metadata, chosen)} = pickled objects"


def _home(metadata, name):
    """Path of the node of an array."""
    for path in _nodes(metadata):
        if path[-1] == "__array__":
            node = metadata
            for key in path:
                node = node[key]
            if node == name:
                return "/".join(map(str, path[:-1]))
    return name


def file_trial(name, rng, folder):
    import maxent

    path, marker = os.path.join(folder, "model.npz"), os.path.join(folder, "marker")
    raw, what = damaged_file(name, rng, marker)
    with open(path, "wb") as stream:
        stream.write(raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thing = maxent.load(path)
    except (*ALLOWED, OSError) as error:
        outcome, detail = f"{type(error).__name__} at loading", ""
    except Exception:
        outcome, detail = "EXCEPTION", f"load: {_end_of_trace()}"
    else:
        outcome, detail = ask(thing, name)
    if os.path.exists(marker):
        os.rmdir(marker)
        outcome = "CODE RUN"
    return outcome, f"{what}: {detail}"


# -- trials in worker processes ------------------------------------------------------
PARTS = {"states": state_trial, "files": file_trial}


def prepare():
    """A worker: few threads, a bound on memory, a trace if it crashes."""
    import maxent  # noqa: F401  (its memory is not that of a trial)

    threadpool_limits(1)
    faulthandler.enable()
    used = _status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * GIGABYTE,) * 2)


def _status(name):
    """Bytes of an entry of /proc/self/status."""
    with open("/proc/self/status") as lines:
        found = next(line for line in lines if line.startswith(name + ":"))
    return int(found.split()[1]) * 1024


def _forget_peak():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")


def attempt(part, name, k, seed, seconds, folder):
    """(outcome, detail, seconds) of one trial."""
    rng = np.random.default_rng(
        [seed, *map(zlib.crc32, (part.encode(), name.encode())), k]
    )
    subject(name), questions(name)

    def stop(signum, frame):
        raise NoEnd

    signal.signal(signal.SIGPROF, stop)
    _forget_peak()
    before, start = _status("VmRSS"), time.process_time()
    # compiled code that never returns is ended from outside of Python
    faulthandler.dump_traceback_later(4 * seconds + 20, exit=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        outcome, detail = PARTS[part](name, rng, folder)
    except NoEnd:
        outcome, detail = "NO END", _end_of_trace()
    except Exception:
        outcome, detail = "EXCEPTION", _end_of_trace()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    grown = _status("VmHWM") - before
    if grown > GIGABYTE and not outcome.isupper():
        outcome, detail = "MEMORY", f"{grown / GIGABYTE:.1f} GiB, {detail}"
    return outcome, detail, time.process_time() - start


def run_task(task):
    """Outcomes of some trials of one subject, and which is under way in a journal."""
    part, name, numbers, seed, seconds, folder = task
    found = []
    with tempfile.TemporaryDirectory() as own:
        journal = os.path.join(folder, f"{part}-{name}-{numbers[0]}")
        for k in numbers:
            with open(journal, "w") as stream:
                stream.write(str(k))
            found.append((k, *attempt(part, name, k, seed, seconds, own)))
        os.remove(journal)
    return found


def _tasks(args):
    """Trials of every part, spread evenly over the subjects."""
    tasks = []
    for part in PARTS:
        names = [*ESTIMATORS, *value_names()]
        if part == "states":
            names = [name for name in ESTIMATORS if name not in WITHOUT_STATE]
        count = -(-getattr(args, part) // len(names))
        numbers = list(range(count)) if args.number is None else [args.number]
        for name in names:
            if args.only and name not in args.only:
                continue
            if args.number is not None and not getattr(args, part):
                continue
            for start in range(0, len(numbers), TRIALS_PER_TASK):
                few = numbers[start : start + TRIALS_PER_TASK]
                tasks.append((part, name, few, args.seed, args.seconds))
    return tasks


def _run_all(tasks, jobs, report):
    """Run tasks; of one that crashed its worker, the trials after the crash too."""
    with tempfile.TemporaryDirectory() as folder:
        while tasks:
            left = {}
            with concurrent.futures.ProcessPoolExecutor(
                jobs,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=prepare,
            ) as pool:
                for task in tasks:
                    left[pool.submit(run_task, (*task, folder))] = task
                try:
                    for run in concurrent.futures.as_completed(list(left)):
                        for result in run.result():
                            report(*left[run][:2], *result)
                        del left[run]
                except concurrent.futures.process.BrokenProcessPool:
                    pass
            tasks = list(left.values())
            for crashed in os.listdir(folder):
                tasks = _after_crash(folder, crashed, tasks, report)


def _after_crash(folder, journal, tasks, report):
    """Tasks without the trial that crashed; trials beside it are tried again."""
    path = os.path.join(folder, journal)
    k = int(pathlib.Path(path).read_text() or 0)
    os.remove(path)
    out = []
    for part, name, numbers, *rest in tasks:
        if f"{part}-{name}-{numbers[0]}" == journal:
            report(part, name, k, "CRASH", "or ended beside one that crashed", 0.0)
            numbers = [n for n in numbers if n != k]
        if numbers:
            out.append((part, name, numbers, *rest))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only", choices=[*ESTIMATORS, *value_names()], metavar="NAME", action="append"
    )
    parser.add_argument("--number", type=int, help="one trial of each alone")
    args = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    slowest = collections.defaultdict(float)

    def report(part, name, k, outcome, detail, took):
        counts[part, name][outcome] += 1
        slowest[part, name] = max(slowest[part, name], took)
        if outcome.isupper() or args.number is not None:
            print(f"{part} {name} {k} ({took:.1f} s): {outcome} {detail}", flush=True)

    _run_all(_tasks(args), args.jobs, report)
    failed = 0
    for part in PARTS:
        total = collections.Counter()
        for (of, name), found in counts.items():
            if of == part:
                total.update(found)
                shown = ", ".join(f"{n} {what}" for what, n in sorted(found.items()))
                slow = slowest[of, name]
                print(f"{part} of {name}: {shown}; slowest {slow:.1f} s")
        if total:
            shown = ", ".join(f"{n} {what}" for what, n in total.most_common())
            print(f"{part}, {total.total()} in all: {shown}")
        failed += sum(n for what, n in total.items() if what.isupper())
    done = sum(found.total() for found in counts.values())
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
