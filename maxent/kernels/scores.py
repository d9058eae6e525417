"""Fisher scores of data under a generative model."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import FloatArray, NDArray
from maxent.families import ExponentialFamily
from maxent.kernels._scores import Coordinates, Scorer, refuse_impossible, scorer_of
from maxent.models.base import Model

Representation: TypeAlias = Literal["minimal", "overcomplete"]


class FisherScores(TransformerMixin, BaseEstimator):
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
        d independent columns.
    representation : {"minimal", "overcomplete"}, default="minimal"
        "minimal" leaves out scores that others determine: of each row of probabilities
        those of zeros and of the last positive entry; of each symmetric matrix the
        upper half, so that an entry of the lower half is the derivative by both.
        "overcomplete" keeps all, which treats all alike if the scores are compared
        without an information matrix.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

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

    def __init__(
        self,
        model: Model | ExponentialFamily,
        *,
        representation: Representation = "minimal",
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.representation = representation
        self.n_jobs = n_jobs

    def fit(self, X: object = None, y: object = None) -> Self:
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        self._checked()
        return self

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
        scorer = scorer_of(self.model, self.n_jobs)
        return scorer, scorer.coordinates()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags
