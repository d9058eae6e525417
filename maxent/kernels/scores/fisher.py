"""Fisher kernel: score vectors compared in the metric of the Fisher information.

A generative model P(x | theta) gives every datum its score, the gradient
``U_x = d log P(x | theta) / d theta`` at the fitted theta. The kernel

    K(x, x') = U_x' F^{-1} U_x',     F = E[U U'] under the model

does not depend on how the model is parametrised. It is computed as
``K = Phi Phi'`` with ``Phi = U L^{-T}`` and ``F = L L'``: one Cholesky factor and one
triangular solve, never an inverse.

Source: Jaakkola, Meila & Jebara (1999), eq. (20); Jaakkola & Haussler (1999).
"""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from maxent._core.machines import gram as _gram
from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import FittedState, check_fitted, check_scores, fresh_state
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.typing import ArrayLike, FloatArray, NDArray, Numbers
from maxent.kernels.scores._whitening import is_estimated, learn_whitening, whiten

Information: TypeAlias = Literal["empirical", "diagonal", "identity"]

_LINEAR = (0, 1.0, 0.0, 1)  # the kernel of the compiled Gram tiles


def fisher_kernel(
    scores: ArrayLike,
    other: ArrayLike | None = None,
    *,
    information: Information | Numbers = "empirical",
    reference: ArrayLike | None = None,
    ridge: float = 0.0,
    center: bool = False,
    n_jobs: int | None = None,
) -> FloatArray:
    """Fisher kernel between score vectors.

    ``K[i, j] = scores[i]' F^{-1} other[j]`` (JMJ 1999, eq. 20).

    Parameters
    ----------
    scores : array-like (n, p)
        Gradients of the log-likelihood with respect to the p parameters, one datum per
        row, all at the same parameters.
    other : array-like (m, p), optional
        Second set of scores; None takes `scores` again.
    information : {"empirical", "diagonal", "identity"} or array-like, \
default="empirical"
        The Fisher information F:

        - "empirical": mean of u u' over the rows u of `reference`;
        - "diagonal": the diagonal of that matrix;
        - "identity": F = I, the plain inner product of scores;
        - array (p, p): given, symmetric and positive definite, as from a formula;
        - array (p,): a given diagonal, > 0.
    reference : array-like (r, p), optional
        Rows that an estimated information and the centre are taken from: the training
        scores, or scores of draws from the model (a Monte-Carlo information). None
        takes `scores`. With two sets of scores it must be named.
    ridge : float, default=0.0
        Adds ``ridge * trace(F) / p`` to the diagonal of F, >= 0, no unit.
    center : bool, default=False
        Subtract the mean score of `reference` from every score. At the
        maximum-likelihood fit of these rows that mean is zero already.
    n_jobs : int, optional
        Threads of the matrix product. Results do not depend on it.

    Returns
    -------
    ndarray (n, n) or (n, m)
        Positive semidefinite; exactly symmetric for one set of scores.

    Raises
    ------
    ValueError
        For scores that are not finite or whose widths differ; for an empirical
        information of r <= p rows (r - 1 <= p if centred) without ridge; for an
        information that is not symmetric and positive definite; where two sets of
        scores come without the `reference` that is needed; and for `n_jobs` that is
        no number of threads.

    Warns
    -----
    UserWarning
        If r < 5 p (with a ridge: five times the effective number of parameters), or
        if an information is estimated from scores whose mean is not zero.

    See Also
    --------
    FisherFeatures : The explicit features Phi, for linear machines and pipelines.

    Notes
    -----
    Time O(r p^2 + p^3 + (n + m) p^2 + n m p). Scores at redundant parameters (a
    softmax, say) have a singular information: drop one parameter of each redundancy
    or add a ridge. The kernel of "diagonal" and "identity" changes with the
    parametrisation of the model; the others do not, except for a ridge.

    The distance between models that belongs to this kernel is
    ``D' F D / 2`` with D the difference of parameters; JMJ print F^{-1} in its
    place (22).

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, eq. (20).
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative
    classifiers.

    Examples
    --------
    Bernoulli bits with probability 1/4; the score of p is (x - p) / (p (1 - p)):

    >>> import numpy as np
    >>> from maxent.kernels import fisher_kernel
    >>> p = 0.25
    >>> x = np.array([0.0, 1.0])
    >>> scores = ((x - p) / (p * (1 - p)))[:, None]
    >>> fisher_kernel(scores, information=[1 / (p * (1 - p))]).round(6)
    array([[ 0.333333, -1.      ],
           [-1.      ,  3.      ]])
    """
    threads = effective_threads(n_jobs)
    U = _checked_scores("scores", scores)
    V = None if other is None else _checked_scores("other", other, U.shape[1])
    if reference is not None:
        R = _checked_scores("reference", reference, U.shape[1])
    elif other is not None and (center or is_estimated(information)):
        raise ValueError(
            "two sets of scores are given, but not the rows that the information or "
            "the centre is taken from; pass reference=... (the training scores)."
        )
    else:
        R = U
    with single_threaded_blas():
        mean, factor = learn_whitening(R, information, ridge, center)
        A = _whitened(U, mean, factor)
        if V is None:
            out = np.empty((len(A), len(A)))
            _gram.gram_symmetric(_LINEAR, A, np.zeros(len(A)), out, threads)
            return out
        B = _whitened(V, mean, factor)
        out = np.empty((len(A), len(B)))
        _gram.gram(_LINEAR, A, np.zeros(len(A)), B, np.zeros(len(B)), out, threads)
        return out


class FisherFeatures(
    FittedState, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Whitened scores: features whose inner products are the Fisher kernel.

    ``Phi = (U - mean) L^{-T}`` with the information ``F = L L'``. `fit` learns the
    information on the scores it gets and `transform` applies it to any scores of the
    same model, so that new data are measured in the metric of the training data. A
    linear machine on these features is the kernel machine with :func:`fisher_kernel`.

    Parameters
    ----------
    information : {"empirical", "diagonal", "identity"} or array-like, \
default="empirical"
        As for :func:`fisher_kernel`; estimated from the scores given to `fit`. For a
        Monte-Carlo information fit on scores of draws from the model.
    ridge : float, default=0.0
        Adds ``ridge * trace(F) / p`` to the diagonal of F, >= 0.
    center : bool, default=False
        Subtract the mean score of the rows given to `fit`.

    Attributes
    ----------
    mean_ : ndarray (p,)
        What is subtracted from scores; zeros unless `center`.
    factor_ : ndarray (p, p) or (p,)
        Lower Cholesky factor L of the information, ridge included; of a diagonal
        information the square roots of the diagonal.
    n_features_in_, feature_names_in_
        As usual.

    See Also
    --------
    fisher_kernel : The same as a kernel matrix.

    Notes
    -----
    Time O(n p^2 + p^3), memory O(n p + p^2). The features are as many as the
    parameters. They depend on the order of the parameters; their inner products do
    not.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, eq. (20).

    Examples
    --------
    Scores of a Gaussian mean, in a linear machine:

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxent import MEDClassifier
    >>> from maxent.kernels import FisherFeatures
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 2)) + 2 * y[:, None]
    >>> scores = (X - X.mean(axis=0)) @ np.linalg.inv(np.cov(X.T))
    >>> machine = make_pipeline(FisherFeatures(), MEDClassifier(kernel="linear"))
    >>> machine.fit(scores, y).score(scores, y) > 0.9
    True
    """

    mean_: FloatArray
    factor_: FloatArray
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        information: Information | Numbers = "empirical",
        *,
        ridge: float = 0.0,
        center: bool = False,
    ) -> None:
        self.information = information
        self.ridge = ridge
        self.center = center

    @fresh_state
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the information.

        Parameters
        ----------
        X : array-like (n, p)
            Scores.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for :func:`fisher_kernel`.

        Warns
        -----
        UserWarning
            As for :func:`fisher_kernel`.
        """
        _refuse_strings(X)
        X = validated(self, X, dtype=np.float64)
        with single_threaded_blas():
            self.mean_, self.factor_ = learn_whitening(
                X, self.information, self.ridge, self.center
            )
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Whitened scores.

        Parameters
        ----------
        X : array-like (n, p)

        Returns
        -------
        ndarray (n, p)
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype=np.float64)
        p = self.n_features_in_
        if self.mean_.shape != (p,) or self.factor_.shape not in ((p,), (p, p)):
            raise ValueError(
                f"the fitted transformer is inconsistent: factor_ has shape "
                f"{self.factor_.shape} for {p} parameters. Fit it again."
            )
        check_fitted("mean_", self.mean_, (p,), once=True)
        check_fitted("factor_", self.factor_, self.factor_.shape, once=True)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            return check_scores(whiten(X, self.mean_, self.factor_), X)

    @property
    def _n_features_out(self):
        check_fitted("mean_", self.mean_, (self.n_features_in_,), once=True)
        return self.n_features_in_


def _refuse_strings(X):
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], str):
        raise ValueError(
            f"X[0]={v.shown(X[0])} is a string, and FisherFeatures takes scores "
            "(n, p); put FisherScores(model) before it in the pipeline."
        )


def _whitened(U, mean, factor):
    """Whitened scores whose inner products stay in double precision."""
    Phi = whiten(U, mean, factor)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", Phi, Phi)
    if not np.isfinite(squares).all():
        raise ValueError(
            f"kernel values overflow: whitened scores reach {np.abs(Phi).max():.3g}. "
            "Rescale the parameters of the model, or the information with them."
        )
    return Phi


def _checked_scores(name, U, p=None):
    U = check_array(v.as_doubles(name, U), ensure_all_finite=False, input_name=name)
    if p is not None and U.shape[1] != p:
        raise ValueError(
            f"{name} has {U.shape[1]} columns, but scores has {p}; all scores must be "
            "of the same parameters."
        )
    if not np.isfinite(U).all():
        i, j = np.argwhere(~np.isfinite(U))[0]
        raise ValueError(
            f"{name}[{i}, {j}]={U[i, j]} is not finite. A datum of probability zero "
            "has no score: smooth the model, or leave the row out."
        )
    return np.ascontiguousarray(U)
