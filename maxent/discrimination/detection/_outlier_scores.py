"""Scores of rows under the posterior of an outlier detector, and columns' shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, psi, softmax
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.categories import (
    encode_categories,
    validate_categories,
)
from maxent._inputs.estimator_input import validated
from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v
from maxent._support.fitted import check_fitted, check_scores, check_value
from maxent._support.shares import pairwise_shares
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    NDArray,
)
from maxent._support.validation import names_of_columns
from maxent.discrimination._tree_parameters import check_two_features
from maxent.discrimination._varying_features import kept_features
from maxent.discrimination.detection._outlier_models import (
    CATEGORICAL,
    BlockScorer,
)
from maxent.discrimination.detection.latent_mixture import (
    LatentMixture,
    MixturePosterior,
)
from maxent.families.priors.dirichlet_nets import DirichletProduct
from maxent.families.priors.normal_wishart import NormalInverseWishart
from maxent.models.trees.dirichlet_trees import DirichletTrees


class OutlierScores:
    """Methods of an outlier detector that judge rows by its ``posterior_``."""

    model: Any
    missing: Any
    likelihood: str
    posterior_: Any
    n_features_in_: int

    @with_own_threads
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-likelihoods of rows, in nats: small for outliers.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to judge. Categories that training did not meet count as categories
            with the prior's pseudo-count alone, out of all training rows; missing
            values are left out.

        Returns
        -------
        ndarray (n,)
            Expected log-likelihoods, or logs of expected likelihoods (`likelihood`).
        """
        return self._scores(*self._checked_rows(X))

    @with_own_threads
    def feature_scores(self, X: ArrayLike) -> FloatArray:
        """Shares of the columns in the scores of rows: the most negative ones say why.

        A share is the Shapley value of the column in the difference between the score
        of the row and that of a reference: the mean of a Gaussian, and of categories
        the row of the commonest ones. It does not depend on the order of the columns.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows, as for `score_samples`.

        Returns
        -------
        ndarray (n, n_features)
            In nats; constant features, which are not in the model, have none. Rows sum
            to ``score_samples(X)`` less the score of the reference, the same for all
            rows. Of a mixture they are the means of the shares in its components by
            the responsibilities q of the row, and sum to the score less ``sum_k q_k
            reference_k - sum_k q_k log q_k``, where ``reference_k`` is the joint score
            of the reference of component k: nearly one of these for an outlier.

        Raises
        ------
        ValueError
            For models that do not split exactly: kernels, blocks and priors other than
            "gaussian", "multinomial" and "tree", and of "tree" with
            ``likelihood="predictive"``.

        Notes
        -----
        With z the deviation from the mean and P the expected precision, the score of
        a Gaussian is a constant less ``z'Pz / 2``, and the shares are ``-z_j (P z)_j /
        2``. Where columns depend on each other, one of them may have a positive share:
        its value makes the row as a whole less strange. The predictive score, a
        function of ``z'Pz``, has the same proportions. The cost is that of two scores
        of the rows for every feature of "multinomial" and "tree".

        References
        ----------
        Shapley (1953), A value for n-person games; Sundararajan, Taly & Yan (2017),
        Axiomatic attribution for deep networks; Alcala & Qin (2009), Reconstruction-
        based contribution for process monitoring.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent import MEDOutlierDetector
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> detector = MEDOutlierDetector().fit(X)
        >>> shares = detector.feature_scores([[0.1, 6.0, -0.2]])
        >>> int(shares.argmin())
        1
        """
        X, unseen = self._checked_rows(X)
        predictive = self.likelihood == "predictive"
        mixture = isinstance(self.posterior_, MixturePosterior)
        if not mixture:
            shares = self._shares_of(self.posterior_, X, unseen, predictive)
        else:
            parts = self.posterior_.components
            joint = self._joint(X, unseen)
            q = softmax(joint, axis=1)
            each = [self._shares_of(part, X, unseen, predictive) for part in parts]
            shares = np.einsum("nk,knj->nj", q, each)
        kept = vars(self).get("features_")
        if kept is None or len(kept) == self.n_features_in_:
            return shares
        every = np.zeros((len(shares), self.n_features_in_))
        every[:, kept] = shares
        return every

    def _shares_of(self, part, X, unseen, predictive):
        """Shares of the columns in the scores of one posterior."""
        if isinstance(part, NormalInverseWishart):
            shares: FloatArray = part._shares(X, predictive)
            return shares
        tree = isinstance(part, DirichletTrees)
        if (tree and predictive) or not isinstance(
            part, (DirichletProduct, DirichletTrees)
        ):
            raise ValueError(
                "feature_scores splits the scores of the models 'gaussian', "
                "'multinomial' and, with likelihood='expected', 'tree'; those of "
                f"model={v.shown(self.model)} with likelihood={self.likelihood!r} have "
                "no exact shares. Change one column at a time, and compare "
                "score_samples."
            )
        marks = np.zeros(X.shape, dtype=bool) if unseen is None else unseen

        def score(rows):  # codes, and beside them the marks of unseen ones
            codes, new = np.hsplit(rows, 2)
            return self._scores_of(part, codes, new.astype(bool), predictive)

        d = X.shape[1]
        reference = np.concatenate([_commonest(part), np.zeros(d, dtype=X.dtype)])
        rows = np.hstack([X, marks.astype(X.dtype)])
        return pairwise_shares(score, rows, reference, d)

    def _checked_rows(self, X):
        """Rows as the model takes them, and of categories which are unseen."""
        check_is_fitted(self)
        needed = CATEGORICAL[str(self._rows_model)] if self._categorical() else object
        parts = [self.posterior_]
        if self._mixture() is not None:
            parts = getattr(self.posterior_, "components", [None])
        if not all(
            isinstance(part, needed) and hasattr(part, "expected_log_prob")
            for part in parts
        ):
            raise ValueError(
                "the fitted model is inconsistent: posterior_="
                f"{v.shown(self.posterior_)} cannot score rows. Fit it again."
            )
        check_value("posterior_", self.posterior_)
        for part in parts if self._mixture() is not None else ():
            check_value("posterior_.components", part)
        X = self._validated(X, reset=False)
        if self._categorical():
            names = names_of_columns(self)
            known = encode_categories(
                X, self.categories_, "ignore", self.missing, names
            )
            unseen = known == -1
            if self.missing is None:
                unseen &= ~missing_values(X)
            return known, unseen
        return kept_features(self, X), None

    def _scores(self, X, unseen=None):
        """Scores of checked rows; of categories their codes, and which are unseen."""
        predictive = self.likelihood == "predictive"
        mixture = isinstance(self.posterior_, MixturePosterior)
        parts = self.posterior_.components if mixture else [self.posterior_]
        if predictive and not all(hasattr(p, "predictive_log_prob") for p in parts):
            raise ValueError(
                "likelihood='predictive' needs a model of probabilities; with "
                f"{v.shown(self.model)} use likelihood='expected'."
            )
        if mixture:
            scores = logsumexp(self._joint(X, unseen), axis=1)
        else:
            scores = self._scores_of(self.posterior_, X, unseen, predictive)
        if isinstance(self.posterior_, BlockScorer):
            return scores  # a user's model may find a row impossible
        return check_scores(scores, X)

    def _scores_of(self, part, X, unseen, predictive):
        """Scores of rows by one posterior."""
        score = "predictive_log_prob" if predictive else "expected_log_prob"
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(part, score)(X) + self._extra(part, unseen, predictive)

    def _joint(self, X, unseen):
        """Joint scores of rows and components of a mixture, (n, K)."""
        predictive = self.likelihood == "predictive"
        parts = self.posterior_.components
        extra = [self._extra(part, unseen, predictive) for part in parts]
        with np.errstate(over="ignore", invalid="ignore"):
            joint = self.posterior_.log_joint(X, predictive)
            return joint + np.stack(np.broadcast_arrays(*extra), axis=-1)

    def _extra(self, part, unseen, predictive):
        """Scores (n,) that unseen categories add to those of a posterior, or 0."""
        if unseen is None or not unseen.any():
            return 0.0
        return self._unseen(part, unseen, np.log if predictive else psi)

    def _unseen(self, posterior, unseen, log):
        """Scores of categories with a pseudo-count and no row, (n,).

        No training row has them, so that the total is that of all training rows at
        least: a prior that reaches the level without multipliers has learnt no row, and
        would give them what it gives the others.
        """
        sizes = np.array([len(c) for c in self.categories_])
        if self._is("tree"):  # as much as the prior gives the others, without an edge
            count, total = 1.0 / sizes, posterior.total
        else:
            count = np.ones(len(sizes))
            total = np.array([t.sum() for t in posterior.pseudo_counts])
        weight = np.asarray(getattr(self, "total_weight_", 0.0))  # not in old files
        check_fitted("total_weight_", weight, ())
        least = sizes * count + weight
        return unseen @ (log(count) - log(np.maximum(total, least)))

    def _mixture(self):
        """The mixture that is the model; None if the model is another."""
        if isinstance(self.model, str) and self.model == "mixture":
            return LatentMixture()
        return self.model if isinstance(self.model, LatentMixture) else None

    @property
    def _rows_model(self):
        """Model of one kind of row: of a mixture, its component."""
        mixture = self._mixture()
        return self.model if mixture is None else mixture.component

    def _is(self, name):
        return isinstance(self._rows_model, str) and self._rows_model == name

    def _categorical(self):
        model = self._rows_model
        return isinstance(model, str) and model in CATEGORICAL

    def _takes_sparse(self):
        return bool(getattr(self.model, "_takes_sparse", False))

    def _validated(self, X: ArrayLike, reset: bool = True) -> NDArray[Any]:
        if self._categorical():
            data: NDArray[Any] = validate_categories(self, X, reset=reset)
            if self._is("tree"):
                check_two_features(self, data)
            return data
        if self.missing is not None:
            raise ValueError(
                f"missing={v.shown(self.missing)} is for the models 'multinomial' and "
                f"'tree'; with model={v.shown(self.model)} leave it None."
            )
        sparse = "csr" if self._takes_sparse() else False
        data = validated(self, X, dtype=np.float64, accept_sparse=sparse, reset=reset)
        v.check_range("X", data, at=True, columns=names_of_columns(self))
        return data


def _commonest(posterior):
    """Code of the commonest category of every column."""
    if isinstance(posterior, DirichletTrees):
        counts = np.split(
            posterior.pseudo_counts.diagonal(), np.cumsum(posterior.n_categories)[:-1]
        )
    else:
        counts = [table[0] for table in posterior.pseudo_counts]
    return np.array([own.argmax() for own in counts], dtype=np.intp)
