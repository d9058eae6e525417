"""What stands here for arguments and words of scikit-learn's machines.

Constructors and `set_params` refuse an argument of SVC, SVR, OneClassSVM or
LogisticRegression that an estimator lacks with a sentence that says what to write in
its place; checks of words add the sentence to theirs.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

_NONE = "leave it out: "
_MACHINES = {
    "shrinking": _NONE + "rows that cannot matter are set aside wherever that pays",
    "nu": "C bounds the multipliers in its place, as in SVC and SVR",
    "loss": "margin= chooses the loss: 'hinge' that of SVC, 'gaussian' the squared one",
    "dual": _NONE + "solver= chooses, and the dual is always there for the certificate",
    "fit_intercept": "fit_intercept=False is bias=None; True is the default, 'flat'",
    "intercept_scaling": "bias= is the variance of a Gaussian prior of the intercept",
    "warm_start": "each fit starts afresh: dual_path follows one machine over many C, "
    "and solve_kernel_dual(init=) starts from multipliers",
    "penalty": _NONE + "the penalty is the squared norm; MEDFeatureSelector and "
    "MEDRegressionSelector switch features off as 'l1' does",
    "l1_ratio": _NONE + "the penalty is the squared norm; MEDFeatureSelector and "
    "MEDRegressionSelector switch features off as 'l1' does",
}
_CLASSIFIERS = _MACHINES | {
    "probability": "margin='logistic' has predict_proba; for other margins wrap the "
    "machine: CalibratedClassifierCV(MEDClassifier(), ensemble=False)",
    "decision_function_shape": _NONE + "decision_function of three or more classes has "
    "a column for each class, as with 'ovr'; multi_class='ovo' trains pairs",
    "break_ties": _NONE + "predict takes the class of the largest decision_function "
    "wherever votes are equal",
}
_SELECTORS = {
    "dual": _NONE + "the dual is always there for the certificate",
    "penalty": _NONE + "switches of the weights take features out, as 'l1' does",
    "l1_ratio": _NONE + "switches of the weights take features out, as 'l1' does",
}
# Class here: its peers' argument, and what to write in its place.
COUNTERPARTS = {
    "MEDClassifier": _CLASSIFIERS,
    "MEDFeatureSelector": _CLASSIFIERS | _SELECTORS,
    "MEDRegressor": _MACHINES,
    "MEDRegressionSelector": _MACHINES | _SELECTORS,
    "MEDOutlierDetector": {
        "nu": "contamination= is the share of the training rows that predict calls "
        "outliers, and level= decides how many rows shape the fit",
        **{
            name: f"a kernel is a model: MEDOutlierDetector(GaussianScores('rbf', "
            f"{name}=...), margin='hinge')"
            for name in ("gamma", "degree", "coef0")
        },
        "kernel": "a kernel is a model: MEDOutlierDetector(GaussianScores('rbf'), "
        "margin='hinge')",
        "shrinking": _MACHINES["shrinking"],
        "cache_size": _NONE + "the kernel matrix of the training rows is kept whole",
    },
    "MaxEntClassifier": {
        "penalty": _NONE + "the penalty is the squared norm, and C=inf is none; "
        "MEDFeatureSelector switches features off as 'l1' does",
        "l1_ratio": _NONE + "the penalty is the squared norm, and C=inf is none; "
        "MEDFeatureSelector switches features off as 'l1' does",
        "dual": _NONE + "the dual, with the certificate, is what Newton steps solve",
        "intercept_scaling": _NONE + "the intercept has no penalty",
        "random_state": _NONE + "nothing is drawn",
        "solver": _NONE + "Newton steps with conjugate gradients, as 'newton-cg'",
        "multi_class": _NONE + "three or more classes are one multinomial model",
        "warm_start": _NONE + "each fit starts at zero and takes about ten steps",
        "n_jobs": _NONE + "OMP_NUM_THREADS sets the threads",
    },
}
_OF_MACHINES = (
    *("kernel", "margin", "sharpness", "bias", "tol", "max_iter", "solver", "degree"),
    *("coef0", "cache_size", "class_weight", "multi_class", "approximation"),
    *("n_components", "random_state", "epsilon"),
)
for _search, _machine in (
    ("MEDClassifierCV", "MEDClassifier"),
    ("MEDRegressorCV", "MEDRegressor"),
):
    COUNTERPARTS[_search] = {
        name: f"it belongs to the machine: {_search}({_machine}({name}=...))"
        for name in _OF_MACHINES
    } | {
        "C": "Cs= has the candidates, or their number",
        "gamma": "gammas= has the candidates, or their number",
        "param_grid": "Cs= and gammas= have the candidates",
        "refit": _NONE + "the best candidate is fitted to all rows",
    }
COUNTERPARTS["MEDClassifierCV"]["probability"] = (
    "the machine with the logistic margin has predict_proba: "
    "MEDClassifierCV(MEDClassifier(margin='logistic'))"
)
# Fitted attribute of a peer, and where its contents are.
ATTRIBUTES = {
    "n_support_": "'support_' has the rows with a multiplier: "
    "numpy.bincount(numpy.searchsorted(classes_, y[support_])) counts them by class",
    "fit_status_": "'converged_' and 'status_' say how the fit ended",
    "probA_": "there is no calibration after the fit; margin='logistic' has "
    "predict_proba",
    "probB_": "there is no calibration after the fit; margin='logistic' has "
    "predict_proba",
    "class_weight_": "class_weight= holds the factors, and they are in 'dual_coef_'",
    "shape_fit_": "'n_features_in_' is the number of columns",
    "refit_time_": "'cv_results_' has the seconds of the candidates",
    "scorer_": "'score' uses the scoring that was given",
}
# Parameter: word of a peer, and what to write in its place.
WORDS: dict[str, dict[Any, str]] = {
    "solver": {
        **dict.fromkeys(
            ("lbfgs", "newton-cg", "newton-cholesky"),
            "'newton' is the solver of this kind",
        ),
        **dict.fromkeys(
            ("liblinear", "sag", "saga"), "'coordinate' is the solver of this kind"
        ),
    },
    "multi_class": {
        "ovr": "wrap the machine: sklearn.multiclass.OneVsRestClassifier",
        "multinomial": "'joint' is one problem of all classes",
        "crammer_singer": "'joint' is one problem of all classes",
    },
    "margin": {
        "squared_hinge": "'gaussian' is the squared hinge",
        "log_loss": "'logistic' is the logarithmic loss",
    },
    "model": dict.fromkeys(
        ("linear", "rbf", "poly", "sigmoid"),
        "a kernel is a model: GaussianScores('rbf') from maxent.discrimination",
    ),
    "max_iter": {-1: "For no bound pass a large number, such as 10**9."},
}


class Counterparts:
    """Mixin of estimators: arguments of peers are refused with what to write."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse arguments of peers before the constructor refuses them."""
        found = _refusal(cls, kwargs)
        if found:
            raise TypeError(found)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, of steps inside by ``step__name``; as in scikit-learn.

        Parameters
        ----------
        **params
            Parameters of the constructor.

        Returns
        -------
        self : object
            The estimator.
        """
        found = _refusal(type(self), params)
        if found:
            raise ValueError(found)
        return super().set_params(**params)  # type: ignore[misc]


def _refusal(cls, names):
    """Sentence about the first of some arguments that a class lacks, or None."""
    for base in cls.__mro__:
        table = COUNTERPARTS.get(base.__name__, {})
        for name in names:
            if name in table and name not in inspect.signature(cls).parameters:
                return f"{cls.__name__} has no parameter {name!r}; {table[name]}."
    return None


def counterpart(name: str, value: object) -> str:
    """Sentence about a word of a peer, "" for others."""
    words = WORDS.get(name, {})
    known = isinstance(value, (str, int)) and not isinstance(value, bool)
    return words.get(value, "") if known else ""
