"""Fisher scores of data under a generative model."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import FittedState, fresh_state
from maxent._support.registry import VALUES, resolve
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import FloatArray, NDArray
from maxent.families import ExponentialFamily
from maxent.kernels._fits import fit_stacks
from maxent.kernels.scores._scores import (
    Coordinates,
    Scorer,
    has_scores,
    refuse_impossible,
    scorer_of,
)
from maxent.models.base import Model

Representation: TypeAlias = Literal["minimal", "overcomplete"]


class FisherScores(FittedState, TransformerMixin, BaseEstimator):
    """Score vectors of data: gradients of their log-likelihood under one model.

    ``U[i] = d log p(x_i | theta) / d theta`` at the parameters of the model. A datum is
    a row of an array for families, mixtures, Bayes nets and Markov random fields, and a
    whole sequence for models of sequences. :func:`fisher_kernel` of the scores, or
    :class:`FisherFeatures` after this in a pipeline, compares data by how they would
    change the model.

    Parameters
    ----------
    model : model or distribution
        A fitted :class:`~maxent.models.Mixture`, :class:`~maxent.models.MarkovChain`,
        :class:`~maxent.models.CategoricalHMM`, :class:`~maxent.models.GaussianHMM`,
        :class:`~maxent.models.BayesNet`, :class:`~maxent.models.MarkovRandomField`,
        :class:`~maxent.models.LinearDynamicalSystem`,
        :class:`~maxent.models.LinearGaussianNetwork`,
        :class:`~maxent.models.SwitchingLDS` or :class:`~maxent.models.FactorialHMM`;
        or one distribution of a family, or a batch (d,) of distributions of numbers for
        d independent columns. Or the name of a class of these, such as "Mixture", or
        the class: `fit` fits it to its data, in every fold of a cross-validation again.
    representation : {"minimal", "overcomplete"}, default="minimal"
        "minimal" leaves out scores that others determine: of each row of probabilities
        those of zeros and of the last positive entry; of each symmetric matrix the
        upper half, so that an entry of the lower half is the derivative by both.
        "overcomplete" keeps all, which treats all alike if the scores are compared
        without an information matrix.
    model_params : dict, optional
        Arguments of the class's ``fit``, such as ``{"n_components": 3, "random_state":
        0}``; of a name or a class only.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Attributes
    ----------
    model_ : model or distribution
        What `fit` has fitted, where `model` is a name or a class.
    n_features_in_, feature_names_in_
        Of a family that was fitted to a data frame.

    Raises
    ------
    TypeError
        For a model without scores.

    See Also
    --------
    FisherFeatures : Whitened scores, in which a linear machine is the kernel machine.
    fisher_kernel : The kernel between scores.

    Notes
    -----
    With hidden variables scores are posterior expectations (Fisher's identity), from
    one pass of inference for each datum. The coordinates are

    - logits of rows of probabilities, ``theta_k = exp(a_k) / sum_j exp(a_j)``: the
      score is the expected count of k less theta_k times that of the row;
    - natural parameters of families and of the distributions in mixtures and hidden
      Markov models: the score is the statistics less their mean;
    - logarithms of the entries of the factors of Markov random fields;
    - the parameters of linear Gaussian models as they are.

    Of switching and factorial models the scores are gradients of ``lower_bound``, whose
    beliefs stand in for the posterior.

    Scores are sums over the steps of a sequence and grow with its length. Rows may be
    missing in part (NaN) under mixtures of Gaussians, LinearGaussianNetwork,
    GaussianHMM, LinearDynamicalSystem, SwitchingLDS and FactorialHMM; a whole row of
    NaN is a missing observation of every model of series of vectors.

    Two kinds of models have redundant parameters in every representation, so that an
    empirical information needs a ridge: linear dynamical systems, whose states may be
    measured in any coordinates, and random fields whose factors share nodes.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative
    classifiers. Jebara, Kondor & Howard (2004), Probability product kernels, section 7.

    Examples
    --------
    >>> from maxent.kernels import FisherScores
    >>> from maxent.models import MarkovChain
    >>> model = MarkovChain([0.5, 0.5], [[0.5, 0.5], [0.25, 0.75]], alphabet="AB")
    >>> scores = FisherScores(model)
    >>> scores.transform(["AAB", "BBBB"])
    array([[ 0.5 ,  0.  ,  0.  ],
           [-0.5 ,  0.  , -0.75]])
    >>> scores.get_feature_names_out()
    array(['start[0]', 'transition[0,0]', 'transition[1,0]'], dtype=object)

    Strings in a linear machine:

    >>> from sklearn.pipeline import make_pipeline
    >>> from maxent import MEDClassifier
    >>> from maxent.kernels import FisherFeatures
    >>> machine = make_pipeline(scores, FisherFeatures("identity"),
    ...                         MEDClassifier(kernel="linear"))
    >>> machine.fit(["AABA", "ABAA", "BBB", "BBAB"], [0, 0, 1, 1]).predict(["AAA"])
    array([0])
    """

    model_: Any

    def __init__(
        self,
        model: Model | ExponentialFamily | str | type[Model] | type[ExponentialFamily],
        *,
        representation: Representation = "minimal",
        model_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.representation = representation
        self.model_params = model_params
        self.n_jobs = n_jobs

    @fresh_state
    def fit(self, X: Any = None, y: object = None) -> Self:
        """Fit the model if it is named; of a fitted one check the parameters.

        Parameters
        ----------
        X : list, array or other data
            As the ``fit`` of the class takes them. Families of numbers take the columns
            of an array (n, d) as independent. Not read where `model` is fitted.
        y : ignored

        Returns
        -------
        self
        """
        cls = self._class()
        if cls is not None and X is not None:
            self.model_ = self._fitted_to(X, cls)
        elif cls is None and self.model_params is not None:
            raise ValueError(
                "model_params are arguments of a fit, and model="
                f"{v.shown(self.model)} is fitted; leave them None, or name its class."
            )
        else:
            scorer_of(self.model if cls is None else cls, None)  # refuses a class
        self._checked()
        return self

    def _class(self) -> type[Any] | None:
        """The class that `fit` fits, or None of a fitted model."""
        if isinstance(self.model, str):
            home = VALUES.get(self.model)
            return resolve(home) if home else None
        return self.model if isinstance(self.model, type) else None

    def _fitted_to(self, X: Any, cls: type[Any]) -> Any:
        """The model of the data."""
        if not has_scores(cls):
            scorer_of(cls, None)  # refuses it
        params = dict(self.model_params or {})
        if issubclass(cls, ExponentialFamily):
            if hasattr(X, "columns"):  # models keep the names themselves
                validated(self, X, skip_check_array=True)
            v.refuse_sparse("X", X)
            return fit_stacks(cls, v.as_array("X", X)[None], params)[0]
        return cls.fit(X, **params)

    def transform(self, X: Any) -> FloatArray:
        """Return the scores of data.

        Parameters
        ----------
        X : list, array or other data
            As the model's ``log_likelihood`` or ``log_prob`` takes them.

        Returns
        -------
        ndarray (n_samples, n_parameters)

        Raises
        ------
        ValueError
            For data that the model cannot produce, and scores that are not finite.
        """
        scorer, coordinates = self._checked()
        if "feature_names_in_" in vars(self) and hasattr(X, "columns"):
            validated(self, X, skip_check_array=True, reset=False)
        with single_threaded_blas():
            log_lik, blocks = scorer.blocks(X)
        refuse_impossible(log_lik)
        n = len(log_lik)
        parts = [np.reshape(block, (n, -1)) for block in blocks]
        if self.representation == "minimal":
            parts = [u[:, c.kept] * c.factor for u, c in zip(parts, coordinates)]
        out = np.concatenate(parts, axis=1)
        wrong = ~np.isfinite(out).all(axis=1)
        if wrong.any():
            raise ValueError(
                f"the score of datum {int(np.argmax(wrong))} is not finite: it lies on "
                "the edge of the support, or is too large; leave it out or rescale it."
            )
        return out

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return names of the parameters, such as ``transition[0,1]``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str (n_parameters,)
        """
        _, coordinates = self._checked()
        minimal = self.representation == "minimal"
        names = [name for c in coordinates for name in c.names(minimal)]
        return np.array(names, dtype=object)

    def _checked(self) -> tuple[Scorer, list[Coordinates]]:
        v.check_choice(
            "representation", self.representation, ("minimal", "overcomplete")
        )
        check_is_fitted(self)
        model = self.model if self._class() is None else self.model_
        scorer = scorer_of(model, self.n_jobs)
        return scorer, scorer.coordinates()

    def __sklearn_is_fitted__(self) -> bool:
        return self._class() is None or "model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self._class() is not None
        tags.input_tags.two_d_array = False
        return tags
