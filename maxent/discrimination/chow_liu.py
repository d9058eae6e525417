"""Chow-Liu trees as a classifier: the maximum-likelihood counterpart of MED trees."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from maxent._inputs.categories import CategoricalMixin
from maxent._support import validation as v
from maxent._support.fitted import check_fitted, fresh_state
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    ClassWeight,
    FloatArray,
    IntArray,
    NDArray,
    Numbers,
    Unknown,
)
from maxent.discrimination._class_models import ClassModels
from maxent.discrimination._class_rows import class_rows
from maxent.discrimination._probabilities import log_probabilities, probabilities
from maxent.discrimination._tree_parameters import check_two_features, class_tables
from maxent.models.trees.chow_liu import most_likely_tree
from maxent.models.trees.spanning_trees import SpanningTrees, complete_rows


class ChowLiuClassifier(CategoricalMixin, ClassModels):
    """The most likely dependency tree of every class, and Bayes' rule.

    The baseline of :class:`MEDTreeClassifier`: tree and tables of a class are those of
    largest likelihood for its own rows, after smoothing.

    Parameters
    ----------
    ess : float, default=1.0
        Equivalent sample size, in rows, >= 0: so many pseudo-counts are spread evenly
        over every table; 0 needs every pair of categories in every class.
    class_prior : str or array-like (n_classes,), default="empirical"
        Probabilities of the classes: "empirical", their shares of the rows; "uniform",
        all the same; or numbers in the order of ``classes_``.
    class_weight : dict or "balanced", optional
        Multiplies the probabilities of the classes, as costs of their errors do; the
        trees do not see it.
    handle_unknown, missing
        As for :class:`MEDTreeClassifier`.
    n_jobs : int, optional
        As for :class:`MEDTreeClassifier`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The labels.
    categories_ : list of ndarray
        Categories of every feature.
    trees_ : ndarray of int (n_classes, n_features - 1, 2)
        Edges (u, v), u < v, of every tree.
    information_ : ndarray (n_classes, n_features, n_features)
        Mutual information of the features in every class, in nats.
    models_ : list of SpanningTrees
        Each with the edges of one tree only.
    class_log_prior_ : ndarray (n_classes,)
        Logarithms of the class probabilities.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    chow_liu_tree : The tree alone.

    References
    ----------
    Chow & Liu (1968), Approximating discrete probability distributions with dependence
    trees, IEEE Transactions on Information Theory 14.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import ChowLiuClassifier
    >>> X = np.random.default_rng(0).integers(0, 3, size=(60, 4))
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = ChowLiuClassifier().fit(X, y)
    >>> model.predict([[2, 2, 0, 1], [2, 1, 0, 1]])
    array(['same', 'other'], dtype='<U5')
    """

    categories_: list[NDArray[Any]]
    trees_: IntArray
    information_: FloatArray
    models_: list[SpanningTrees]
    class_log_prior_: FloatArray

    def __init__(
        self,
        ess: float = 1.0,
        *,
        class_prior: Literal["empirical", "uniform"] | Numbers = "empirical",
        class_weight: ClassWeight = None,
        handle_unknown: Unknown = "ignore",
        missing: Literal["category"] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.ess = ess
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.handle_unknown = handle_unknown
        self.missing = missing
        self.n_jobs = n_jobs

    @fresh_state
    @with_own_threads
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit one tree per class.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Categories of any kind, two features or more.
        y : array-like (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, one class or one feature only, and
            ``ess=0`` with a pair of categories that a class never has.
        """
        v.check_nonnegative("ess", self.ess)
        data, y = self._validated(X, y)
        check_two_features(self, data)
        self.classes_, keep, codes, weight, cost = class_rows(
            type(self).__name__, y, sample_weight, self.class_weight
        )
        factor = np.bincount(codes, cost) / np.bincount(codes, weight)
        self.class_log_prior_ = self._log_prior(codes, weight, factor)
        data = self._learn_encoding(data if len(keep) == len(data) else data[keep])
        rows = complete_rows(data, self._sizes())
        n, ess = data.shape[1], float(self.ess)
        trees, information, self.models_ = [], [], []
        for k in range(len(self.classes_)):
            own = np.flatnonzero(codes == k)
            part = rows.part(own)
            edges, mutual = most_likely_tree(part.columns, weight[own], ess)
            trees.append(edges)
            information.append(mutual)
            allowed = np.full((n, n), -np.inf)
            allowed[edges[:, 0], edges[:, 1]] = allowed[edges[:, 1], edges[:, 0]] = 0.0
            self.models_.append(class_tables(self, part, weight[own], k, allowed))
        self.trees_, self.information_ = np.array(trees), np.array(information)
        return self

    def _log_prior(self, codes, weight, factor):
        m = len(self.classes_)
        if isinstance(self.class_prior, str):
            v.check_choice("class_prior", self.class_prior, ("empirical", "uniform"))
            if self.class_prior == "uniform":
                share = np.ones(m)
            else:
                share = np.bincount(codes, weight)
        else:
            share = v.as_doubles("class_prior", self.class_prior)
            if share.shape != (m,) or not (
                np.isfinite(share).all() and (share > 0).all()
            ):
                raise ValueError(
                    f"class_prior={v.shown(self.class_prior)} must be 'empirical', "
                    f"'uniform' or hold a probability > 0 for each of {m} classes."
                )
        share = share * factor
        return np.log(share / share.sum())

    def _decision(self, X):
        """log P(class) + log P(row | class), (n, n_classes)."""
        scores = self._model_scores(X, "models_", SpanningTrees, "trees")
        check_fitted("class_log_prior_", self.class_log_prior_, scores.shape[1:])
        return scores + self.class_log_prior_

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithms of the posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n, n_classes)
            In the order of ``classes_``.
        """
        return log_probabilities(self._decision(X))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n, n_classes)
            In the order of ``classes_``; rows add up to one.
        """
        return probabilities(self._decision(X))
