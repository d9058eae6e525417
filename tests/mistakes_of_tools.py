"""Mistakes with displays, model files, data sets, names and the command line.

Rows as in `mistakes_of_estimators`.
"""

import contextlib
import io
import os
import pathlib
import tempfile
from functools import cache

import numpy as np
from mistakes_of_estimators import CODES, TARGET, E, X, Y, fitted
from mistakes_of_models import SYSTEM
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import maxent
from maxent import MEDClassifier, MEDRegressor, MEDTreeClassifier
from maxent._persistence.archive import ModelFileError
from maxent.cli import main
from maxent.datasets import (
    load_breast_cancer_wisconsin,
    load_crabs,
    make_switching_series,
)


@cache
def tree():
    return MEDTreeClassifier(C=1.0, level=4.0).fit(CODES, Y)


@cache
def in_plane():
    return MEDClassifier().fit(X[:, :2], Y)


def _selected():
    return make_pipeline(SelectKBest(k=1), MEDClassifier()).fit(X, Y)


def drawing(name, method, *args, **kwargs):
    """Draw; arguments that are functions make what is drawn."""

    def draw():
        import pytest

        pytest.importorskip("matplotlib")
        from maxent import displays

        made = [make() if callable(make) else make for make in args]
        return getattr(getattr(displays, name), method)(*made, **kwargs)

    return draw


DISPLAYS = {
    "three columns in a plane": (
        *(drawing("MEDBoundaryDisplay", "from_estimator", fitted, X, Y), E),
        *("X", "(30, 3)", "Choose two"),
    ),
    "boundary of a regressor": (
        *(
            drawing(
                *("MEDBoundaryDisplay", "from_estimator"),
                *(lambda: MEDRegressor().fit(X[:, :2], TARGET), X[:, :2], Y),
            ),
            E,
        ),
        *("estimator", "MEDRegressor()", "such as MEDClassifier"),
    ),
    "boundary before fit": (
        *(
            drawing(
                *("MEDBoundaryDisplay", "from_estimator"),
                *(MEDClassifier, X[:, :2], Y),
            ),
            NotFittedError,
        ),
        *("MEDClassifier", "not fitted", "Call 'fit'"),
    ),
    "rows of another fit": (
        *(
            drawing(
                *("MEDBoundaryDisplay", "from_estimator"),
                *(in_plane, X[::-1, :2] + 1.0, Y),
            ),
            E,
        ),
        *("X", "support vectors", "Pass the training rows"),
    ),
    "tree of a kernel machine": (
        *(drawing("TreeGraphDisplay", "from_estimator", fitted), E),
        *("estimator", "MEDClassifier", "MEDTreeClassifier"),
    ),
    "class beyond the last": (
        *(drawing("TreeGraphDisplay", "from_estimator", tree, class_index=2), E),
        *("class_index", "2", "from 0 to 1"),
    ),
    "margin prior of a tree": (
        *(drawing("MarginPriorDisplay", "from_estimator", tree), E),
        *("estimator", "MEDTreeClassifier", "MarginPriorDisplay([prior])"),
    ),
    "scores without names": (
        *(drawing("ROCComparisonDisplay", "from_predictions", Y, TARGET), E),
        *("scores", "array", "must be a dict"),
    ),
    "scores of other rows": (
        *(
            drawing("ROCComparisonDisplay", "from_predictions", Y, {"a": TARGET[:5]}),
            E,
        ),
        *("scores['a']", "(5,)", "one score per label"),
    ),
    "curve of a regressor": (
        *(
            drawing(
                *("ROCComparisonDisplay", "from_estimators"),
                *(lambda: {"r": LinearRegression().fit(X, TARGET)}, X, Y),
            ),
            E,
        ),
        *("estimators['r']", "LinearRegression()", "a fitted classifier"),
    ),
    "likelihood of a classifier": (
        *(
            drawing("LogLikelihoodDisplay", "from_models", lambda: {"a": fitted()}, X),
            E,
        ),
        *("models['a']", "MEDClassifier", "outlier detector"),
    ),
    "path of estimators": (
        *(
            drawing(
                *("DualPathDisplay", "from_results"),
                *([1.0, 2.0], lambda: [fitted()] * 2),
            ),
            E,
        ),
        *("results", "MEDClassifier", "maxent.discrimination.dual_path"),
    ),
    "states of a model without them": (
        *(drawing("StatePathDisplay", "from_model", SYSTEM, X), TypeError),
        *("model", "LinearDynamicalSystem", "hidden Markov"),
    ),
    "candidates of a classifier": (
        *(drawing("CandidatesDisplay", "from_estimator", fitted), E),
        *("estimator", "MEDClassifier", "LMEGaussianMixture"),
    ),
    "place as axes": (
        *(drawing("MarginPriorDisplay", "from_estimator", fitted, ax="left"), E),
        *("ax", "'left'", "plt.subplots()"),
    ),
}


def in_folder(work):
    """Call with the path of a new folder, which is removed afterwards."""

    def run():
        with tempfile.TemporaryDirectory() as folder:
            return work(pathlib.Path(folder))

    return run


def load_bytes(folder, name="model.npz", content=b"hello"):
    (folder / name).write_bytes(content)
    return maxent.load(folder / name)


def load_arrays(folder):
    np.savez(folder / "model.npz", weights=np.ones(3))
    return maxent.load(folder / "model.npz")


def save_function():
    model = MEDClassifier(kernel=lambda a, b: a @ b.T).fit(X, Y)
    maxent.save(model, os.devnull)


class CommandFailedError(Exception):
    """What the command wrote to standard error."""


def command(*args, table="a,b,label\n1,2,x\n3,4,y\n5,6,x\n"):
    """Run the command in a new folder with data.csv, as the shell does."""

    def run(folder):
        (folder / "data.csv").write_text(table, encoding="utf-8")
        err = io.StringIO()
        paths = [str(folder / a) if a.endswith((".csv", ".npz")) else a for a in args]
        with contextlib.redirect_stderr(err):
            code = main(paths)
        assert code == 2
        raise CommandFailedError(err.getvalue().strip())

    return in_folder(run)


FILES = {
    "save with swapped arguments": (
        *(lambda: maxent.save("model.npz", fitted()), TypeError),
        *("estimator", "'model.npz'", "save(estimator, path)"),
    ),
    "save before fit": (
        *(lambda: maxent.save(MEDClassifier(), "model.npz"), NotFittedError),
        *("MEDClassifier", "not fitted", "Call 'fit'"),
    ),
    "save a class": (
        *(lambda: maxent.save(MEDClassifier, "model.npz"), TypeError),
        *("estimator", "MEDClassifier", "instance that was fitted"),
    ),
    "save a pipeline with a step of another kind": (
        *(lambda: maxent.save(_selected(), "model.npz"), TypeError),
        *("step 'selectkbest'", "Pipeline(", "pipeline[-1]"),
    ),
    "save another library's model": (
        *(lambda: maxent.save(SVC().fit(X, Y), "model.npz"), TypeError),
        *("estimator", "SVC()", "MEDClassifier"),
    ),
    "save nowhere": (
        *(lambda: maxent.save(fitted(), None), TypeError),
        *("path", "None", "such as 'model.npz'"),
    ),
    "save to a folder that is missing": (
        *(
            in_folder(lambda f: maxent.save(fitted(), f / "no" / "m.npz")),
            FileNotFoundError,
        ),
        *("m.npz", "does not exist", "create it first"),
    ),
    "save to a folder": (
        *(lambda: maxent.save(fitted(), os.curdir), IsADirectoryError),
        *(os.curdir, "is a folder", "name a file in it"),
    ),
    "save a function": (
        *(save_function, TypeError),
        *("parameter kernel", "lambda", 'kernel="precomputed"'),
    ),
    "load an estimator": (
        *(lambda: maxent.load(fitted()), TypeError),
        *("path", "MEDClassifier", "path of a model file"),
    ),
    "load some text": (
        *(in_folder(load_bytes), ModelFileError),
        *("model.npz", "not a zip file", "not a model file"),
    ),
    "load other arrays": (
        *(in_folder(load_arrays), ModelFileError),
        *("model.npz", "archive of arrays", "not a model file of maxent"),
    ),
    "column of another data set": (
        *(lambda: load_crabs(target="gender"), E),
        *("target", "'gender'", "'sex' or 'species'"),
    ),
    "missing values of another library": (
        *(lambda: load_breast_cancer_wisconsin(missing="fill"), E),
        *("missing", "'fill'", "'drop' or 'nan'"),
    ),
    "probability beyond 1": (
        *(lambda: make_switching_series(stay=1.5), E),
        *("stay", "1.5", "from 0 to 1"),
    ),
    "name misspelled": (
        *(lambda: maxent.MEDClasifier, AttributeError),
        *("module 'maxent'", "'MEDClasifier'", "did you mean MEDClassifier"),
    ),
    "name shortened": (
        *(lambda: maxent.models.HMM, AttributeError),
        *("module 'maxent.models'", "'HMM'", "CategoricalHMM"),
    ),
    "label of another file": (
        *(
            command("fit", "data.csv", "model.npz", "--label", "sex"),
            CommandFailedError,
        ),
        *("data.csv", "'sex'", "its columns are"),
    ),
    "text labels for a regressor": (
        *(
            command("fit", "data.csv", "model.npz", "--estimator", "regressor"),
            CommandFailedError,
        ),
        *("data.csv", "labels are text", "--label"),
    ),
    "unknown margin for the command": (
        *(
            command("fit", "data.csv", "model.npz", "--margin", "exponental"),
            CommandFailedError,
        ),
        *("--margin", "exponental", "Did you mean 'exponential'"),
    ),
    "table that is no model": (
        *(command("info", "data.csv"), CommandFailedError),
        *("data.csv", "not a zip file", "not a model file"),
    ),
}
