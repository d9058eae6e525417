"""Mistakes in calls of estimators and solvers: what is called, and what the error says.

Each row: a call; the error; the argument, the value and the remedy that its text names.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import (
    MaxEntClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDPartialLabelClassifier,
    MEDRegressor,
    MEDTreeClassifier,
)
from maxent.discrimination import (
    ExponentialMargin,
)

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(30, 3))
Y = np.repeat([0, 1], 15)
SIGNS = 2.0 * Y - 1.0
TARGET = X @ [1.0, 2.0, 3.0]
GRAM = X @ X.T
CODES = np.array([[0, 1, 2], [2, 0, 0], [1, 1, 0]] * 10)
LETTERS = np.array(["c", "a", "b"])[CODES]
RAGGED = [[1.0, 2.0], [3.0]]
HOLED = np.where(np.arange(90).reshape(30, 3) == 7, np.nan, X)


@cache
def fitted():
    return MEDClassifier("linear").fit(X, Y)


def frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def twins():
    return frame(a=X[:, 0], b=X[:, 1], c=X[:, 2]).rename(columns={"c": "a"})


def norm_of_difference(a, b):
    return np.exp(-np.sum((a - b) ** 2))


def objects(*pattern):
    return np.array(pattern * (30 // len(pattern)), dtype=object)


def svm(**parameters):
    return lambda: MEDClassifier(**parameters).fit(X, Y)


def regression(y, **parameters):
    return lambda: MEDRegressor(**parameters).fit(X, y)


E = ValueError
DATA = {
    "X and y swapped": (
        *(lambda: MEDClassifier().fit(Y, X), E),
        *("X", "(30,)", "swap X and y"),
    ),
    "X of one axis": (
        *(lambda: MEDClassifier().fit(X[:, 0], Y), E),
        *("X", "(30,)", "X.reshape(-1, 1)"),
    ),
    "two columns of one name": (
        *(lambda: MaxEntClassifier().fit(twins(), Y), E),
        *("X has the column 'a' 2 times", "[0, 2]", "drop all but one"),
    ),
    "two columns of one name to predict": (
        *(lambda: fitted().predict(twins()), E),
        *("X has the column 'a' 2 times", "[0, 2]", "drop all but one"),
    ),
    "two columns of one name in categories": (
        *(lambda: MEDTreeClassifier().fit(twins(), Y), E),
        *("X has the column 'a' 2 times", "[0, 2]", "drop all but one"),
    ),
    "one row to predict": (
        *(lambda: fitted().predict(X[0]), E),
        *("X", "(3,)", "X.reshape(1, -1)"),
    ),
    "y too short": (
        *(lambda: MEDClassifier().fit(X, Y[1:]), E),
        *("y has 29", "30 rows", "one entry of y per row"),
    ),
    "y of two columns": (
        *(lambda: MEDClassifier().fit(X, np.c_[Y, Y]), E),
        *("y", "(30, 2)", "y[:, 0]"),
    ),
    "one class": (
        *(lambda: MEDClassifier().fit(X, np.zeros(30)), E),
        *("y", "[0.0]", "needs two classes"),
    ),
    "targets as labels": (
        *(lambda: MEDClassifier().fit(X, TARGET), E),
        *("y=", str(TARGET[0])[:8], "MEDRegressor"),
    ),
    "None among labels": (
        *(lambda: MEDClassifier().fit(X, objects("yes", None)), E),
        *("y[1]", "None", "drop such rows"),
    ),
    "None among labels of a tree": (
        *(lambda: MEDTreeClassifier().fit(CODES, objects("yes", None)), E),
        *("y[1]", "None", "drop such rows"),
    ),
    "NaN among labels of a maximum-entropy classifier": (
        *(lambda: MaxEntClassifier().fit(X, objects("yes", np.nan)), E),
        *("y[1]", "nan", "drop such rows"),
    ),
    "labels of two types": (
        *(lambda: MEDGaussianClassifier().fit(X, objects(1, "a")), E),
        *("y[0]=1", "y[1]='a'", "y.astype(str)"),
    ),
    "missing entry": (
        *(lambda: MEDClassifier().fit(HOLED, Y), E),
        *("X[2, 1]", "nan", "SimpleImputer"),
    ),
    "missing entry at prediction": (
        *(lambda: fitted().predict(HOLED), E),
        *("X[2, 1]", "nan", "SimpleImputer"),
    ),
    "infinite entry": (
        *(lambda: MEDGaussianClassifier().fit(np.where(X[3, 2] == X, np.inf, X), Y), E),
        *("X[3, 2]", "inf", "drop their rows"),
    ),
    "text": (
        *(lambda: MEDClassifier().fit(LETTERS, Y), E),
        *("X[0, 0]", "'c'", "OneHotEncoder"),
    ),
    "documents": (
        *(lambda: MaxEntClassifier().fit(["good film", "bad film"], [1, 0]), E),
        *("X[0]", "good film", "CountVectorizer"),
    ),
    "documents as lists of words": (
        *(lambda: MaxEntClassifier().fit([["good", "film"], ["bad"]], [1, 0]), E),
        *("X[0]", "['good', 'film']", "CountVectorizer(analyzer=list)"),
    ),
    "column of text": (
        *(lambda: MEDRegressor().fit(frame(a=X[:, 0], b=LETTERS[:, 0]), TARGET), E),
        *("column 'b'", "'c'", "drop the column"),
    ),
    "column of dates": (
        *(
            lambda: MEDClassifier().fit(
                frame(a=X[:, 0], when=np.full(30, "2024-02-29", "datetime64[ns]")), Y
            ),
            E,
        ),
        *("column 'when'", "2024-02-29", "days since"),
    ),
    "rows of unequal length": (
        *(lambda: MEDClassifier().fit(RAGGED, [0, 1]), E),
        *("X=", "[[1.0, 2.0], [3.0]]", "same number of entries"),
    ),
    "complex features": (
        *(lambda: MEDClassifier().fit(X * 1j, Y), E),
        *("X", "complex128", "real and imaginary parts"),
    ),
    "huge features": (
        *(lambda: MEDClassifier().fit(X * 1e200, Y), E),
        *("X", "e+200", "scale X below"),
    ),
    "other columns at prediction": (
        *(lambda: fitted().predict(X[:, :2]), E),
        *("X", "2 features", "expecting 3 features"),
    ),
    "weights too few": (
        *(lambda: MEDClassifier().fit(X, Y, sample_weight=np.ones(29)), E),
        *("sample_weight", "(29,)", "(30,)"),
    ),
    "negative weights": (
        *(lambda: MEDClassifier().fit(X, Y, sample_weight=-np.ones(30)), E),
        *("sample_weight[0]", "-1", "must be >= 0"),
    ),
    "missing weights": (
        *(lambda: MEDClassifier().fit(X, Y, sample_weight=HOLED[:, 1]), E),
        *("sample_weight[2]", "nan", "0 drops the row"),
    ),
    "a word as weights": (
        *(lambda: MEDClassifier().fit(X, Y, sample_weight="balanced"), E),
        *("sample_weight", "'balanced'", "array of numbers"),
    ),
    "text as targets": (
        *(regression(LETTERS[:, 0]), E),
        *("y[0]", "'c'", "y.astype(float)"),
    ),
    "dates as targets": (
        *(regression(np.full(30, "2024-02-29", "datetime64[D]")), E),
        *("y[0]", "2024, 2, 29", "days since"),
    ),
    "missing target": (
        *(regression(HOLED[:, 1]), E),
        *("y[2]", "nan", "drop such rows"),
    ),
    "two targets": (
        *(regression(np.c_[TARGET, TARGET]), E),
        *("y", "(30, 2)", "y[:, 0]"),
    ),
}

PARAMETERS = {
    "negative C": (svm(C=-1), E, "C", "-1", "> 0"),
    "C as text": (svm(C="10"), E, "C", "'10'", "without quotes"),
    "C as array": (svm(C=np.array(10.0)), E, "C", "array(10.)", "its entry, 10.0"),
    "C as list": (svm(C=[1, 10]), E, "C", "[1, 10]", "GridSearchCV"),
    "C as kernel": (svm(kernel=10), E, "kernel", "10", "'linear', 'rbf'"),
    "kernel misspelled": (
        svm(kernel="rfb"),
        E,
        "kernel",
        "'rfb'",
        "Did you mean 'rbf'",
    ),
    "margin misspelled": (
        *(svm(margin="exponental"), E),
        *("margin", "'exponental'", "Did you mean 'exponential'"),
    ),
    "margin as class": (
        *(svm(margin=ExponentialMargin), E),
        *("margin", "ExponentialMargin", "MarginPrior object"),
    ),
    "margin without pull": (
        *(svm(margin=ExponentialMargin(rate=0.5)), E),
        *("rate=0.5", "-1", "Raise its level or its rate"),
    ),
    "sharpness of one": (svm(sharpness=1), E, "sharpness", "=1 ", "> 1"),
    "bias as truth": (svm(bias=True), E, "bias", "True", "'flat', None"),
    "solver misspelled": (svm(solver="sgd"), E, "solver", "'sgd'", "'smo'"),
    "solver of another kernel": (
        *(svm(solver="newton"), E),
        *("solver", "'newton'", "use 'auto'"),
    ),
    "negative gamma": (svm(gamma=-1), E, "gamma", "-1", "'scale', 'auto'"),
    "gamma misspelled": (svm(gamma="scaled"), E, "gamma", "'scaled'", "mean 'scale'"),
    "fractional degree": (
        *(svm(kernel="poly", degree=2.5), E),
        *("degree", "2.5", "an integer between 0 and 64"),
    ),
    "max_iter as float": (svm(max_iter=1e3), E, "max_iter", "1000.0", "pass 1000"),
    "no tolerance": (svm(tol=0), E, "tol", "0", "> 0"),
    "no thread": (svm(n_jobs=0), E, "n_jobs", "0", "-1 for all CPUs"),
    "cache with a unit": (
        svm(cache_size="1GB"),
        E,
        "cache_size",
        "'1GB'",
        "number > 0",
    ),
    "class_weight misspelled": (
        *(svm(class_weight="balance"), E),
        *("class_weight", "'balance'", "'balanced'"),
    ),
    "class_weight of other classes": (
        *(svm(class_weight={"0": 1, "1": 2}), E),
        *("class_weight", "'0'", "use the classes [0, 1]"),
    ),
    "parameter misspelled": (
        *(lambda: MEDClassifier().set_params(c=3), E),
        *("'c'", "MEDClassifier", "Valid parameters are: ['C'"),
    ),
    "no square matrix": (
        *(svm(kernel="precomputed"), E),
        *("K", "(30, 3)", "must be square"),
    ),
    "kernel matrix not symmetric": (
        *(lambda: MEDClassifier("precomputed").fit(np.triu(GRAM), Y), E),
        *("K[", "=0", "(K + K.T) / 2"),
    ),
    "kernel of two rows": (
        *(svm(kernel=norm_of_difference), E),
        *("kernel", "norm_of_difference", "lambda A, B: numpy.array"),
    ),
    "inner product of two rows": (
        *(svm(kernel=lambda a, b: float(a @ b)), E),
        *("kernel", "(8, 3)", "function of whole arrays"),
    ),
    "kernel block transposed": (
        *(svm(kernel=lambda a, b: b[:2] @ a.T), E),
        *("kernel", "(2, 8)", "must return (8, 8)"),
    ),
    "prediction before fit": (
        *(lambda: MEDClassifier().predict(X), NotFittedError),
        *("MEDClassifier", "not fitted", "Call 'fit'"),
    ),
    "attribute before fit": (
        *(lambda: MEDClassifier().support_, NotFittedError),
        *("'support_'", "not fitted", "Call 'fit'"),
    ),
    "weights of a nonlinear kernel": (
        *(lambda: MEDClassifier().fit(X, Y).coef_, NotFittedError),
        *("'coef_'", "kernel='rbf'", "Use 'dual_coef_'"),
    ),
    "fixed margin on classes that overlap": (
        *(
            lambda: MEDClassifier("linear", margin="fixed").fit(
                np.ones((30, 1)) * Y[::-1, None] * np.arange(30)[:, None] % 3, Y
            ),
            E,
        ),
        *("fixed margin", "level=1.0", "margin='exponential'"),
    ),
    "tube of negative width": (
        *(regression(TARGET, epsilon=-0.1), E),
        *("epsilon", "-0.1", ">= 0"),
    ),
    "margin of classes in regression": (
        *(regression(TARGET, margin="logistic"), E),
        *("margin", "'logistic'", "'exponential'"),
    ),
    "prior of classes in regression": (
        *(regression(TARGET, margin=ExponentialMargin(10.0, 1.0)), E),
        *("rate=10.0", "0.9", "level = -epsilon"),
    ),
    "inclusion in per cent": (
        *(lambda: MEDFeatureSelector(prior_inclusion=10).fit(X, Y), E),
        *("prior_inclusion", "10", "(0, 1]"),
    ),
    "labels -1 and 1 where -1 is none": (
        *(lambda: MEDPartialLabelClassifier().fit(X, 2 * Y - 1), E),
        *("one class only", "-1 stands for rows without a label", "recoded"),
    ),
    "label priors in per cent": (
        *(lambda: MEDPartialLabelClassifier().fit(X, Y, 90.0 * Y + 5.0), E),
        *("label_prior[", "=5 ", "between 0 and 1"),
    ),
    "scaler inside of the machine": (
        *(
            lambda: MEDPartialLabelClassifier(
                make_pipeline(StandardScaler(), MEDClassifier())
            ).fit(X, Y),
            TypeError,
        ),
        *("estimator=Pipeline", "MEDClassifier", "in a pipeline"),
    ),
    "selection among three classes": (
        *(lambda: MEDFeatureSelector().fit(X, np.arange(30) % 3), E),
        *("target", "3 classes", "OneVsRestClassifier"),
    ),
}
