"""Fitted state that was changed, as by a damaged file: an answer or a clear error."""

import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxent import (
    ChowLiuClassifier,
    FisherFeatures,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDPartialLabelClassifier,
    MEDRegressionSelector,
    MEDRegressor,
    MEDSequenceOutlierDetector,
    MEDTreeClassifier,
)
from maxent.discrimination import LatentMixture

_rng = np.random.default_rng(5)
REAL = _rng.normal(size=(40, 3))
CODES = _rng.integers(0, 3, size=(40, 4))
Y = (REAL[:, 0] + 0.5 * _rng.normal(size=40) > 0).astype(int)

FITTED = {
    "kernel": (MEDClassifier(), REAL),
    "linear": (MEDClassifier(kernel="linear"), REAL),
    "regressor": (MEDRegressor(), REAL),
    "selector": (MEDFeatureSelector(prior_inclusion=0.5), REAL),
    "selector of numbers": (MEDRegressionSelector(0.5, threshold=0.0), REAL),
    "gaussian": (MEDGaussianClassifier(), REAL),
    "net": (MEDBayesNetClassifier(), CODES),
    "tree": (MEDTreeClassifier(), CODES),
    "random_tables": (MEDTreeClassifier("dirichlet", ess=20.0), CODES),
    "chow_liu": (ChowLiuClassifier(), CODES),
    "normal_rows": (MEDOutlierDetector("gaussian"), REAL),
    "normal_codes": (MEDOutlierDetector("multinomial"), CODES),
    "normal_mixtures": (MEDOutlierDetector(LatentMixture(random_state=0)), REAL),
    "normal_kinds": (
        MEDOutlierDetector(LatentMixture("multinomial", random_state=0)),
        CODES,
    ),
    "normal_sequences": (MEDSequenceOutlierDetector(2, random_state=0), CODES),
    "normal_paths": (
        MEDSequenceOutlierDetector(2, emission="gaussian", random_state=0),
        REAL[:, :, None],
    ),
    "normal_trees": (MEDOutlierDetector("tree"), CODES),
    "partial_labels": (MEDPartialLabelClassifier(), REAL),
    "scores": (FisherFeatures(), REAL),
}


@pytest.fixture(scope="module", params=FITTED)
def fitted(request):
    estimator, X = FITTED[request.param]
    return estimator.fit(X, Y), X


def answers(estimator, X):
    """Everything that the estimator says of rows."""
    names = ("predict", "decision_function", "score_samples", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def places(thing, path=()):
    """(holder, key, array or number) of everything numeric in a fitted estimator."""
    if isinstance(thing, (list, tuple)):
        items = list(enumerate(thing))
    elif isinstance(thing, dict):
        items = list(thing.items())
    elif hasattr(thing, "__dict__"):
        items = [
            (k, x)
            for k, x in vars(thing).items()
            if path or k.endswith("_") or "_" in k
        ]
    else:
        return
    for key, value in items:
        if isinstance(value, (np.ndarray, float)) and np.size(value):
            yield (*path, key), value
        elif len(path) < 4 and not isinstance(value, (str, bytes, type, np.ndarray)):
            yield from places(value, (*path, key))


def put(thing, path, value):
    for key in path[:-1]:
        thing = vars(thing)[key] if hasattr(thing, "__dict__") else thing[key]
    if hasattr(thing, "__dict__"):
        vars(thing)[path[-1]] = value
    elif isinstance(thing, (list, dict)):
        thing[path[-1]] = value
    else:
        return False  # a tuple
    return True


def changed(value, how, rng):
    """The array or number with one entry, or the shape, changed."""
    array = np.array(value)
    if how in ("nan", "huge", "negative"):
        entry = {"nan": np.nan, "huge": 1e308, "negative": -7.0}[how]
        if array.dtype.kind not in "fiu" or (array.dtype.kind != "f" and how == "nan"):
            return None
        if array.dtype.kind != "f":
            entry = np.iinfo(array.dtype).max if how == "huge" else 60_000
            if entry > np.iinfo(array.dtype).max:
                entry = np.iinfo(array.dtype).max
        array.reshape(-1)[rng.integers(array.size)] = entry
        return array if isinstance(value, np.ndarray) else float(array)
    if not isinstance(value, np.ndarray) or array.ndim == 0:
        return None
    return array[:-1] if how == "shorter" else np.concatenate([array, array])


# the mask of a selector may be empty after the change
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.parametrize("how", ["nan", "huge", "negative", "shorter", "longer"])
def test_changed_arrays_give_finite_answers_or_a_clear_error(fitted, how, rng):
    estimator, X = fitted
    met = 0
    for path, value in list(places(estimator)):
        new = changed(value, how, rng)
        if new is None:
            continue
        other = copy.deepcopy(estimator)
        if not put(other, path, new):
            continue
        met += 1
        try:
            found = answers(other, X)
        except ValueError as error:
            assert str(error), path
        else:
            for part in found:
                assert part.dtype.kind != "f" or np.isfinite(part).all(), (path, how)
    assert met


def test_untouched_state_answers(fitted):
    estimator, X = fitted
    assert all(len(part) == len(X) for part in answers(copy.deepcopy(estimator), X))


def test_missing_attributes_are_named(fitted):
    estimator, X = fitted
    needed = 0
    for name in [k for k in vars(estimator) if k.endswith("_")]:
        other = copy.deepcopy(estimator)
        delattr(other, name)
        try:
            answers(other, X)
        except NotFittedError as error:
            needed += 1
            assert repr(name) in str(error)
            assert "Call 'fit' first" in str(error)
        assert not hasattr(other, name)
    assert needed
