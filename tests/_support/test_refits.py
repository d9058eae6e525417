"""A refit that fails or is interrupted leaves an estimator that is not fitted."""

import copy
import functools
import importlib
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxent._support.registry import CLASSES, resolve
from maxent._support.validation import user_stacklevel
from maxent.discrimination import LatentMixture

_rng = np.random.default_rng(3)
REAL = _rng.normal(size=(60, 3))
CODES = _rng.integers(0, 3, size=(60, 4))
TWO = (REAL[:, 0] + 0.5 * _rng.normal(size=60) > 0).astype(int)
THREE = _rng.integers(0, 3, 60)
CLUSTERS = np.where(TWO[:, None] == 1, REAL + 4.0, REAL)
SHARES = np.where(
    TWO[:, None] == 1,
    _rng.dirichlet([2.0, 5.0, 1.0], size=60),
    _rng.dirichlet([9.0, 2.0, 3.0], size=60),
)
BITS = np.abs(TWO[:, None] - (_rng.random((60, 4)) < 0.1))
# two coins of which one is thrown three times; features: which coin, heads of each
HEADS = np.repeat([0, 1, 2, 3], [30, 20, 20, 30])
COINS = np.zeros((4, 2, 3))
COINS[:, 0, 0] = 1.0
COINS[:, 0, 1] = COINS[:, 1, 2] = np.arange(4.0)
FEW = {"n_init": 3, "random_state": 0}

# for every class: estimators with rows and labels, and where its work is done
WORK = {
    "ChowLiuClassifier": ([({}, CODES, TWO)], "chow_liu:most_likely_tree"),
    "FisherFeatures": ([({}, REAL, None)], "kernels.scores.fisher:learn_whitening"),
    "M3EClassifier": ([({"n_init": 1}, REAL, THREE)], "minentropy._base:learn"),
    "M3EGridClassifier": (
        [({"template": (1, 2), "init": "path"}, REAL.reshape(60, 1, 3), TWO)],
        "minentropy._base:learn",
    ),
    "M3EModel": (
        [({"init": "path"}, REAL.reshape(30, 2, 1, 3), TWO[:30])],
        "minentropy._base:learn",
    ),
    "M3EMotifClassifier": (
        [({"width": 2, "alphabet": "ABC", "init": "path"}, CODES, TWO)],
        "minentropy._base:learn",
    ),
    "HiddenMarkovEstimator": (
        [({"family": "Categorical", **FEW}, CODES[:, 0], None)],
        "models.chains.hidden_markov:fitted_chain",
    ),
    "MixtureDensity": ([({**FEW}, CLUSTERS, None)], "models.mixture:maximize_by_em"),
    "LMEBoltzmannMachine": (
        [({"n_hidden": 1, **FEW}, BITS, None)],
        "latent.boltzmann._boltzmann_base:candidates",
    ),
    "LMEDirichletMixture": (
        [({"n_components": 2, **FEW}, SHARES, None)],
        "latent.mixtures._mixture_base:climb",
    ),
    "LMEGaussianMixture": (
        [({"n_components": 2, **FEW}, CLUSTERS, None)],
        "latent.mixtures._mixture_base:climb",
    ),
    "LMERBM": (
        [({"n_hidden": 1, **FEW}, BITS, None)],
        "latent.boltzmann._boltzmann_base:candidates",
    ),
    "LatentMaxEnt": (
        [({"features": COINS, **FEW}, HEADS, None)],
        "latent.candidates:candidates",
    ),
    "MEDBayesNetClassifier": ([({}, CODES, THREE)], "_generative_base:solve_blocks"),
    "MEDClassifier": ([({}, REAL, THREE)], "_several_classes:OneVsOneFit"),
    "MEDFeatureSelector": ([({}, REAL, TWO)], "selection:solve_selection"),
    "MEDGaussianClassifier": ([({}, REAL, THREE)], "_generative_base:solve_blocks"),
    "MEDGenerativeClassifier": ([({}, REAL, THREE)], "_generative_base:solve_blocks"),
    "MEDOutlierDetector": (
        [
            ({"model": "gaussian"}, REAL, None),
            ({"model": "multinomial"}, CODES, None),
            ({"model": "tree"}, CODES, None),
            ({"model": LatentMixture(n_init=2, random_state=0)}, CLUSTERS, None),
        ],
        "duals.block_dual:BlockSum",
    ),
    "MEDPartialLabelClassifier": (
        [({}, REAL, np.where(np.arange(60) % 3, TWO, -1))],
        "discrimination.labels.partial_labels:alternate",
    ),
    "MEDRegressionSelector": (
        [({}, REAL, REAL[:, 1])],
        "regression_selection:solve_selection",
    ),
    "MEDRegressor": ([({}, REAL, REAL[:, 1])], "_kernel_machine:solve_signed"),
    "MEDSequenceOutlierDetector": (
        [({"n_init": 2, "random_state": 0}, CODES, None)],
        "discrimination.detection._latent_rounds:solve_blocks",
    ),
    "MEDTreeClassifier": ([({"level": 3.0}, CODES, TWO)], "trees:solve_blocks"),
    "MaxEntClassifier": ([({}, REAL, THREE)], "latent.classifier:newton_cg"),
    "ProductKernel": (
        [({}, CODES + 1, None), ({"model": "Gaussian"}, REAL.reshape(6, 10, 3), None)],
        "kernels._fits:fit_options",
    ),
}
CASES = [(name, k) for name, (cases, _) in WORK.items() for k in range(len(cases))]
ERRORS = (ValueError, MemoryError, KeyboardInterrupt)


def make(name, k):
    """An estimator, its rows and labels, and the module and name of its solver."""
    cases, home = WORK[name]
    options, X, y = cases[k]
    module, _, work = home.partition(":")
    if "." not in module or module.startswith("duals."):
        module = f"discrimination.{module}"
    module = importlib.import_module(f"maxent.{module}")
    return resolve(CLASSES[name])(**options), X, y, (module, work)


@functools.cache
def _fitted(name, k):
    estimator, X, y, _ = make(name, k)
    return estimator.fit(X, y)


def make_fitted(name, k):
    """As `make`, with an estimator that is fitted."""
    return copy.deepcopy(_fitted(name, k)), *make(name, k)[1:]


def answer(estimator, X):
    """What the estimator says of rows."""
    for name in ("predict", "transform", "predict_proba"):
        if hasattr(estimator, name):
            return getattr(estimator, name)(X)
    raise AssertionError(f"{estimator} answers nothing")


def assert_not_fitted(estimator, X):
    questions = ("decision_function", "predict_proba", "score_samples")
    for name in ("predict", "transform", *questions):
        if hasattr(estimator, name):
            with pytest.raises(NotFittedError):
                getattr(estimator, name)(X)
    assert not [k for k in vars(estimator) if k.endswith("_")]


def test_every_class_of_the_registry_is_here():
    stateless = {"FisherScores", "Pipeline"}  # of its data a fit keeps nothing
    documents = {"TrigramTopicModel"}  # no rows; in the tests of language
    foreign = {"CalibratedClassifierCV"}
    assert set(WORK) == set(CLASSES) - stateless - documents - foreign


@pytest.mark.parametrize(
    "name, k, error", [(*case, ERRORS[i % 3]) for i, case in enumerate(CASES)]
)
def test_solvers_that_fail_leave_no_model(name, k, error, monkeypatch):
    estimator, X, y, (module, work) = make_fitted(name, k)

    def fail(*args, **options):
        raise error("no")

    with monkeypatch.context() as patch:
        patch.setattr(module, work, fail)
        with pytest.raises(error, match="no"):
            estimator.fit(X[::-1], y)
    assert_not_fitted(estimator, X)
    # and the next fit is that of a new estimator
    expected = answer(_fitted(name, k), X)
    np.testing.assert_array_equal(answer(estimator.fit(X, y), X), expected)
    np.testing.assert_array_equal(answer(clone(estimator).fit(X, y), X), expected)


@pytest.mark.parametrize("name, k", CASES)
@pytest.mark.parametrize("bad", ["rows", "labels", "width", "parameter"])
def test_input_that_is_refused_leaves_no_model(name, k, bad):
    estimator, X, y, _ = make_fitted(name, k)
    if bad == "parameter":
        parameter = {
            "ChowLiuClassifier": "ess",
            "FisherFeatures": "ridge",
            "ProductKernel": "rho",
        }
        estimator.set_params(**{parameter.get(name, "tol"): -1.0})
        args = X, y
    elif bad == "labels":
        if y is None:
            pytest.skip("takes no labels")
        args = X, y[:-1]
    elif bad == "width" and name == "HiddenMarkovEstimator":
        pytest.skip("an array of either width is a sequence")
    else:
        other = X[:, 0] if X.ndim > 1 else X[:, None]
        args = (other if bad == "width" else X * np.nan), y
    with pytest.raises(ValueError):
        estimator.fit(*args)
    assert_not_fitted(estimator, X)


@pytest.mark.parametrize("name, k", CASES)
def test_a_refit_forgets_what_it_does_not_learn(name, k):
    estimator, X, y, _ = make_fitted(name, k)
    estimator.left_over_ = 1
    assert not hasattr(estimator.fit(X, y), "left_over_")


def test_warnings_name_the_line_of_the_user():
    X, y = REAL, TWO
    fits = [
        lambda: resolve(CLASSES["MEDClassifier"])(C=1e4, max_iter=1).fit(X, y),
        lambda: resolve(CLASSES["MEDGaussianClassifier"])(level=-1e3).fit(X, y),
        lambda: resolve(CLASSES["FisherFeatures"])().fit(X[:12]),
    ]
    for fit in fits:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fit()
        assert found and {one.filename for one in found} == {__file__}


def test_stack_level_of_a_user_is_one():
    assert user_stacklevel() == 1
