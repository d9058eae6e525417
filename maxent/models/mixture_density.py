"""Mixtures as an estimator of scikit-learn's form."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent._support.typing import MatrixLike
from maxent.models._model_estimator import (
    Array,
    Family,
    MixtureMethods,
    ModelEstimator,
    family_of,
)
from maxent.models.mixture import Mixture


class MixtureDensity(MixtureMethods, ModelEstimator):
    """Density of rows as a mixture of any family.

    A :class:`~maxent.models.Mixture` as an estimator of scikit-learn: for pipelines and
    grid searches. Its components also are clusters.

    Parameters
    ----------
    n_components : int, default=2
        Components >= 1.
    family : str or class, default="Gaussian"
        Of the components, by its name in :mod:`maxent.families` or the class itself.
        Columns of a family of numbers are independent within a component.
    smoothing : float, default=3.0
        Rows that the prior of every component counts as.
    n_init : int, default=3
        Starts.
    tol : float, default=1e-8
        Relative gain of the objective at which a run ends.
    max_iter : int, default=2000
        EM steps of a run at most.
    random_state : int, Generator, RandomState or None, default=None
        Source of the starts and draws.
    family_options : dict, optional
        Further arguments of the family's `fit`, such as ``{"n_categories": 4}``.

    Attributes
    ----------
    model_ : Mixture
        The fitted mixture.
    n_iter_ : int
        EM steps of the kept run, and later calls of `partial_fit`.
    converged_ : bool
        Whether it met `tol`; False after these.
    objective_history_ : ndarray
        Objective after each step of the run.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : ndarray of str
        Their names, of a data frame.

    See Also
    --------
    maxent.models.Mixture : The model, with all options of the fit.
    maxent.models.select : Choice of the number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MixtureDensity
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> X[30:] += 9
    >>> clusters = MixtureDensity(2, random_state=0).fit(X)
    >>> labels = clusters.predict(X)
    >>> bool(labels[0] != labels[-1])
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        family: Family = "Gaussian",
        *,
        smoothing: float = 3.0,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        random_state: Any = None,
        family_options: dict[str, Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.smoothing = smoothing
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.family_options = family_options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = family_of(self.family)._takes_gaps
        return tags

    def _rows(self, X: MatrixLike, **options: Any) -> Any:
        """Checked rows, of numbers where the family has these."""
        family = family_of(self.family)
        finite = "allow-nan" if family._takes_gaps else True
        X = validated(self, X, dtype=np.float64, ensure_all_finite=finite, **options)
        scalar = not family._event_to_fit() and X.shape[1] == 1
        return X[:, 0] if scalar else X

    def _seen(self, X: MatrixLike) -> Any:
        check_is_fitted(self)
        return self._rows(X, reset=False)

    @fresh_state
    def fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Rows; NaN is a missing entry under Gaussian families.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0; weight 2 equals the row twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._rows(X, ensure_min_samples=2)
        model = Mixture.fit(
            X,
            v.check_weights(sample_weight, len(X)),
            n_components=self.n_components,
            family=family_of(self.family),
            smoothing=self.smoothing,
            n_init=self.n_init,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            family_options=self.family_options,
        )
        return self._keep(model)

    def partial_fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the mixture to the first batch of rows; update it by every other one.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Rows of the batch, as for `fit`; of the first one enough for a fit.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        self : object
            The estimator; a batch that is refused leaves it as it was.

        Raises
        ------
        ValueError
            As of :meth:`maxent.models.Mixture.update`, which makes the steps.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent import MixtureDensity
        >>> rng = np.random.default_rng(0)
        >>> clusters = MixtureDensity(2, random_state=0)
        >>> for _ in range(20):
        ...     batch = rng.normal(size=(50, 1)) + 9.0 * rng.integers(2, size=(50, 1))
        ...     clusters = clusters.partial_fit(batch)
        >>> np.sort(clusters.model_.components.mean[:, 0]).round()
        array([0., 9.])
        """
        if "model_" not in vars(self):
            return self.fit(X, y, sample_weight)
        X = self._seen(X)
        weights = v.check_weights(sample_weight, len(X))
        return self._keep_updated(
            self.model_.update(X, weights, smoothing=self.smoothing)
        )

    def score_samples(self, X: MatrixLike) -> Array:
        return self.model_.log_prob(self._seen(X))

    def predict_proba(self, X: MatrixLike) -> Array:
        return self.model_.posterior(self._seen(X))

    def predict(self, X: MatrixLike) -> NDArray[np.intp]:
        return self.predict_proba(X).argmax(axis=1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        check_is_fitted(self)
        rng = self._generator(random_state)
        X, parts = self.model_.sample(n_samples, rng, return_components=True)
        return X.reshape(len(X), -1), parts

    def _criterion(self, name: str, X: MatrixLike) -> float:
        value: float = getattr(self.model_, name)(self._seen(X))
        return value
