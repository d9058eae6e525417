"""Fitted machines in one form: kernel values with rows, weights, biases."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.typing import FloatArray
from maxent.discrimination._one_vs_one import check_support_counts, pairs_of

KERNELS = ("linear", "rbf", "poly", "sigmoid")
_REGRESSORS = ("MEDRegressor", "MEDRegressionSelector")


@dataclass(frozen=True)
class Machine:
    """f(x) = k(x, rows) @ weights + bias, of one output or several.

    Attributes
    ----------
    kind : {"target", "two", "scores", "pairs", "outliers"}
        A regressor; two classes, the second one where f > 0; a score for each class;
        for each pair of classes, the later one where f > 0; normal where f >= 0.
    kernel : str
    gamma, coef0 : float
    degree : int
    rows : ndarray (m, n_features) or None
        None of a linear machine, where k(x, rows) is x.
    weights : ndarray (m, n_outputs) or (n_features, n_outputs)
    bias : ndarray (n_outputs,)
    classes : ndarray or None
    rate : float or None
        Probabilities are the logistic function, or the softmax, of rate times f.
    owner : ndarray of int (m,) or None
        Class of each row, of pairs.
    """

    kind: str
    kernel: str
    gamma: float
    coef0: float
    degree: int
    rows: FloatArray | None
    weights: FloatArray
    bias: FloatArray
    classes: NDArray[Any] | None = None
    rate: float | None = None
    owner: NDArray[np.intp] | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int((self.weights if self.rows is None else self.rows.T).shape[0])


def machine_of(estimator: Any) -> Machine:
    """The machine of a fitted estimator.

    Raises
    ------
    TypeError
        For an estimator that is no such machine.
    ValueError
        For kernels that are functions or matrices.
    """
    from sklearn.utils.validation import check_is_fitted

    from maxent import discrimination as d
    from maxent import latent

    known: list[Any] = [
        getattr(d, name) for name in ("MEDOutlierDetector", *_REGRESSORS)
    ]
    known += [d.MEDClassifier, d.MEDFeatureSelector, latent.MaxEntClassifier]
    if not isinstance(estimator, tuple(known)):
        names = ", ".join(cls.__name__ for cls in known)
        raise TypeError(
            f"estimator={v.shown(estimator)} has no kernel expansion to write; give "
            f"one of {names}."
        )
    check_is_fitted(estimator)
    if isinstance(estimator, d.MEDOutlierDetector):
        return _detector(estimator)
    kernel = getattr(estimator, "kernel", "linear")
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"kernel={v.shown(kernel)} has no rows of features to write; fit with one "
            f"of {', '.join(KERNELS)}."
        )
    _check_arrays(estimator)
    found = _expansion(estimator, kernel)
    if not hasattr(estimator, "classes_"):
        return found
    K = len(estimator.classes_)
    pairs = K > 2 and getattr(estimator, "_by_pairs", bool)()
    kind = "two" if K == 2 else "pairs" if pairs else "scores"
    rate = None
    if hasattr(estimator, "predict_proba"):
        rate = getattr(estimator, "_rate", lambda: 1.0)()
    return replace(found, kind=kind, classes=estimator.classes_, rate=rate)


def _check_arrays(estimator: Any) -> None:
    """Check the fitted arrays, which may come from a file, as a prediction does."""

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        estimator.predict(np.zeros((1, estimator.n_features_in_)))


def _expansion(estimator, kernel):
    """Rows, weights and biases, of a kernel machine or of a linear one."""
    settings = {
        "kind": "target",
        "kernel": kernel,
        "gamma": float(getattr(estimator, "gamma_", 1.0)),
        "coef0": float(getattr(estimator, "coef0", 0.0)),
        "degree": int(getattr(estimator, "degree", 1)),
        "bias": np.array(estimator.intercept_, dtype=np.float64),
    }
    if kernel == "linear" and getattr(estimator, "approximation", None) is None:
        weights = np.array(estimator.coef_.T, dtype=np.float64)
        return Machine(rows=None, weights=weights, **settings)
    rows = estimator.support_vectors_
    rows = rows.toarray() if sp.issparse(rows) else np.array(rows, dtype=np.float64)
    weights, owner = estimator.dual_coef_.T, None
    if len(getattr(estimator, "classes_", "ab")) > 2 and estimator._by_pairs():
        weights, owner = _of_pairs(estimator)
    rows = rows.astype(np.float64)
    return Machine(rows=rows, weights=np.array(weights), owner=owner, **settings)


def _of_pairs(estimator):
    """Weights (m, n_pairs) of the rows, and the class of each."""
    K = len(estimator.classes_)
    check_support_counts(estimator, K)
    owner = np.repeat(np.arange(K), estimator.n_support_)
    pairs = pairs_of(K)
    weights = np.zeros((len(owner), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        weights[owner == i, k] = estimator.dual_coef_[j - 1, owner == i]
        weights[owner == j, k] = estimator.dual_coef_[i, owner == j]
    return weights, owner


def _detector(estimator):
    from maxent.discrimination.kernel_blocks import GaussianScores, KernelPosterior

    posterior = estimator.posterior_
    if not isinstance(posterior, KernelPosterior) or not isinstance(
        posterior.model, GaussianScores
    ):
        raise TypeError(
            f"model={v.shown(estimator.model)} has no kernel expansion to write; fit "
            "MEDOutlierDetector(GaussianScores(kernel))."
        )
    model = posterior.model
    return Machine(
        kind="outliers",
        kernel=model.kernel,
        gamma=posterior.gamma,
        coef0=float(model.coef0),
        degree=int(model.degree),
        rows=np.array(posterior.X),
        weights=posterior.scale * posterior.weight[:, None],
        bias=np.array([-estimator.offset_]),
    )
