"""Hidden Markov models as an estimator of scikit-learn's form."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent.families import Categorical, ExponentialFamily
from maxent.models._model_estimator import Array, Family, ModelEstimator, family_of
from maxent.models.chains.gaussian_hmm import FAMILIES, GaussianHMM
from maxent.models.chains.hidden_markov import HiddenMarkovModel
from maxent.models.chains.hmm import CategoricalHMM

# the models of some families, which read more than HiddenMarkovModel, and their options
_CHAINS: dict[type[ExponentialFamily], tuple[Any, dict[str, Any]]] = {
    Categorical: (CategoricalHMM, {}),
    **{
        family: (GaussianHMM, {"covariance_type": name})
        for name, family in FAMILIES.items()
    },
}


class HiddenMarkovEstimator(ModelEstimator):
    """Hidden Markov model of sequences of any family.

    A :class:`~maxent.models.CategoricalHMM`, :class:`~maxent.models.GaussianHMM` or
    :class:`~maxent.models.HiddenMarkovModel` as an estimator of scikit-learn, whose
    samples are whole sequences: for pipelines and grid searches.

    Parameters
    ----------
    n_states : int or None, default=2
        States; None takes :func:`~maxent.models.states_per_sequence`.
    family : str or class, optional
        Of what the states show, by its name in :mod:`maxent.families` or the class
        itself. None is "Categorical" with an alphabet, else "Gaussian".
    alphabet : str, optional
        Letters of strings.
    n_components : int, default=1
        Components of the mixture that each state shows, where more than one.
    smoothing : float, default=0.01
        Pseudo-counts >= 0.
    n_init : int, default=3
        Starts.
    tol : float, default=1e-8
        Relative gain of the objective at which a run ends.
    max_iter : int, default=2000
        EM steps of a run at most.
    random_state : int, Generator, RandomState or None, default=None
        Source of the starts and draws.
    n_jobs : int, optional
        Threads.
    model_params : dict, optional
        Further arguments of the model's `fit`, such as ``{"missing": "N"}``.

    Attributes
    ----------
    model_ : CategoricalHMM, GaussianHMM or HiddenMarkovModel
        The fitted model.
    n_iter_ : int
        EM steps of the kept run, and later calls of `partial_fit`.
    converged_ : bool
        Whether it met `tol`; False after these.
    objective_history_ : ndarray
        Objective after each step of the run.

    See Also
    --------
    maxent.models.HiddenMarkovModel : The model.
    maxent.models.select : Choice of the number of states.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from maxent import HiddenMarkovEstimator
    >>> X = ["ABABAB", "BABA", "ABABA", "BABABA"]
    >>> machine = HiddenMarkovEstimator(alphabet="AB", random_state=0)
    >>> search = GridSearchCV(machine, {"n_states": [1, 2]}, cv=2).fit(X)
    >>> search.best_params_["n_states"]
    2
    >>> len(search.predict(["ABA"])[0])
    3
    """

    def __init__(
        self,
        n_states: int | None = 2,
        family: Family | None = None,
        *,
        alphabet: str | None = None,
        n_components: int = 1,
        smoothing: float = 0.01,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        random_state: Any = None,
        n_jobs: int | None = None,
        model_params: dict[str, Any] | None = None,
    ) -> None:
        self.n_states = n_states
        self.family = family
        self.alphabet = alphabet
        self.n_components = n_components
        self.smoothing = smoothing
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.model_params = model_params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = self.alphabet is not None
        return tags

    def _chain(self) -> tuple[Any, dict[str, Any]]:
        """Class of the model, and the options that belong to it."""
        family = self.family
        if family is None:
            family = "Gaussian" if self.alphabet is None else "Categorical"
        family = family_of(family)
        if self.n_components != 1 and self.alphabet is None:
            own = {"family": family, "n_components": self.n_components}
            return HiddenMarkovModel, {**own, **(self.model_params or {})}
        model, options = _CHAINS.get(family, (HiddenMarkovModel, {"family": family}))
        if self.alphabet is not None:
            if family is not Categorical:
                raise ValueError(
                    f"alphabet={v.shown(self.alphabet)} belongs to family="
                    f"'Categorical', and family={v.shown(self.family)} has no letters; "
                    "leave one of them out."
                )
            if self.n_components != 1:
                raise ValueError(
                    f"n_components={v.shown(self.n_components)} mixes families, and "
                    "letters have none to mix; leave it 1."
                )
            options = {**options, "alphabet": self.alphabet}
        return model, {**options, **(self.model_params or {})}

    @fresh_state
    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : list of sequences, or array-like with `lengths`
            Strings, codes, numbers or vectors, as the family has them.
        y : None
            Ignored.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        sample_weight : array-like (n_sequences,), optional
            Weights >= 0; weight 2 equals the sequence twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        model, options = self._chain()
        return self._keep(
            model.fit(
                X,
                self.n_states,
                lengths=lengths,
                weights=sample_weight,
                smoothing=self.smoothing,
                n_init=self.n_init,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
                **options,
            )
        )

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to the first batch of sequences; update it by every other one.

        Parameters
        ----------
        X, lengths
            Sequences of the batch, as for `fit`; of the first one enough for a fit.
        y : None
            Ignored.
        sample_weight : array-like (n_sequences,), optional
            Weights >= 0.

        Returns
        -------
        self : object
            The estimator; a batch that is refused leaves it as it was.

        Raises
        ------
        ValueError
            As of :meth:`maxent.models.HiddenMarkovModel.update`, which makes the steps.

        Examples
        --------
        >>> from maxent import HiddenMarkovEstimator
        >>> machine = HiddenMarkovEstimator(alphabet="AB", random_state=0)
        >>> for batch in (["ABABAB", "BABA"], ["BABAB"], ["ABAB", "BABABA"]):
        ...     machine = machine.partial_fit(batch)
        >>> machine.predict_proba(["AB"])[0].argmax(axis=1).tolist() in ([0, 1], [1, 0])
        True
        """
        if "model_" not in vars(self):
            return self.fit(X, y, lengths, sample_weight)
        return self._keep_updated(
            self.model_.update(
                X,
                lengths,
                weights=sample_weight,
                smoothing=self.smoothing,
                n_jobs=self.n_jobs,
            )
        )

    def score_samples(self, X: Any, lengths: ArrayLike | None = None) -> Array:
        """Log-likelihood of sequences.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.

        Returns
        -------
        ndarray (n_sequences,)
            Nats.
        """
        return self.model_.log_likelihood(X, lengths, n_jobs=self.n_jobs)

    def score(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> float:
        """Mean log-likelihood of sequences.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats per sequence.
        """
        return float(self.score_samples(X, lengths).mean())

    def predict(
        self, X: Any, lengths: ArrayLike | None = None
    ) -> list[NDArray[np.intp]]:
        """Most likely state path of every sequence.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.

        Returns
        -------
        list of ndarray of int (n_steps,)
            Numbers of states.
        """
        return self.model_.viterbi(X, lengths, n_jobs=self.n_jobs)[0]

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None) -> list[Array]:
        """Posterior probabilities of the states at every step.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.

        Returns
        -------
        list of ndarray (n_steps, n_states)
            Rows sum to one.
        """
        return self.model_.posterior(X, lengths, n_jobs=self.n_jobs)

    def sample(
        self, n_samples: int = 1, length: ArrayLike = 100, random_state: Any = None
    ) -> list[Any]:
        """Draw sequences.

        Parameters
        ----------
        n_samples : int, default=1
            Sequences, >= 1.
        length : int or array-like of int (n_samples,), default=100
            Steps of each, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            None takes the estimator's.

        Returns
        -------
        list
            Arrays, or strings of a model with an alphabet.
        """
        return self.model_.sample(n_samples, length, self._generator(random_state))

    def bic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Bayesian information criterion; lower is better.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.

        Returns
        -------
        float
            Nats.
        """
        return self.model_.bic(X, lengths)

    def aic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Akaike information criterion; lower is better.

        Parameters
        ----------
        X, lengths
            Sequences as for `fit`.

        Returns
        -------
        float
            Nats.
        """
        return self.model_.aic(X, lengths)
