"""Finite mixtures of the distributions of any family, fitted by EM."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from maxent._inputs.bags import read_bags
from maxent._inputs.frames import column_names
from maxent._inputs.text_columns import coded
from maxent._partitions.partitions import is_partitioned
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.registry import rebuilt
from maxent._support.typing import Callback
from maxent.families import ExponentialFamily, Gaussian, _checks
from maxent.families.base import family_named
from maxent.models._chain_input import with_pseudo_counts
from maxent.models._components import log_densities
from maxent.models._criteria import (
    NONE_HELD,
    RowCriteria,
    free_of_batch,
    free_probabilities,
)
from maxent.models._family_choice import (
    Family,
    categories_of,
    columns_of_rows,
    family_of_columns,
)
from maxent.models._holding import held_of
from maxent.models._mixture_em import (
    MixtureProblem,
    check_rows,
    mixture_change,
    posterior_shares,
)
from maxent.models._online import (
    mixed,
    refitted,
    refuse_without_sums,
    share_of_batch,
)
from maxent.models._partitioned_mixture import PartitionedMixture
from maxent.models.base import Model, maximize_by_em

Array = NDArray[np.float64]


class Mixture(RowCriteria, Model):
    """Finite mixture ``p(x) = sum_h weights[h] p_h(x)``.

    Parameters
    ----------
    weights : array-like (n_components,)
        Probabilities of the components; zeros are allowed.
    components : family batch (n_components,)
        For instance ``Gaussian(mean, cov)`` with means (n_components, d).

    Attributes
    ----------
    weights : ndarray (n_components,)
    components : ExponentialFamily
    fit_result : EMResult or None
        How the fit ended.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Poisson
    >>> from maxent.models import Mixture
    >>> M = Mixture([0.5, 0.5], Poisson([1.0, 20.0]))
    >>> X = M.sample(500, random_state=0)
    >>> fitted = Mixture.fit(X, n_components=2, family=Poisson, random_state=0)
    >>> np.sort(fitted.components.rate).round(0)
    array([ 1., 20.])
    """

    _data = "rows"
    _size = "n_components"
    _names = ("weights", "components")
    weights: Array
    components: Any  # an ExponentialFamily with attributes of its own

    def __init__(self, weights: ArrayLike, components: ExponentialFamily) -> None:
        share = _checks.simplex_array("weights", weights)
        if not isinstance(components, ExponentialFamily):
            raise TypeError(
                f"components={v.shown(components)} must be a batch of a family, for "
                "instance maxent.families.Gaussian(mean, cov)."
            )
        if share.ndim != 1 or components.batch_shape != share.shape:
            raise ValueError(
                f"weights has shape {share.shape} and components are a batch of shape "
                f"{components.batch_shape}; both must be (n_components,)."
            )
        self._set(weights=share, components=components)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.weights)

    def _free_parameters(self, held=NONE_HELD):
        weights = free_probabilities(self.weights, held.get("weights"))
        return weights + free_of_batch(self.components, held, "components")

    def _n_observed(self, X: ArrayLike) -> int:
        return super()._n_observed(coded(X, self.categories))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.components.event_shape

    @functools.cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def _joint(self, X: ArrayLike) -> Array:
        """log weights[h] p_h(x), (n_components, n_samples)."""
        column_names("X", X, self._columns)
        X = coded(X, self.categories)
        check_rows(type(self.components), X)
        log_prob = log_densities(self.components, X)
        return log_prob + self._log_weights[:, None]

    def log_prob(self, X: ArrayLike) -> Array:
        """Log-density, or log-probability of discrete data.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows. NaN is a missing entry where a fit takes it so, and the density that
            of what was observed of the row.

        Returns
        -------
        ndarray (n_samples,)
            In nats; -inf outside the support of all components.
        """
        return logsumexp(self._joint(X), axis=0)

    def log_likelihood(self, X: ArrayLike) -> Array:
        """Log-likelihood of every row, as all models have it: :meth:`log_prob`.

        Parameters
        ----------
        X : array-like (n_samples, event)
            As for :meth:`log_prob`.

        Returns
        -------
        ndarray (n_samples,)
            In nats. The sum is that of the rows as independent draws.
        """
        return self.log_prob(X)

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities of the components.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows inside the support; NaN as of :meth:`log_prob`.

        Returns
        -------
        ndarray (n_samples, n_components)
            Rows sum to one.

        Raises
        ------
        ValueError
            If no component can produce a row; the first one is named.
        """
        joint = self._joint(X)
        impossible = np.isneginf(joint).all(axis=0)
        if impossible.any():
            raise ValueError(
                f"X[{int(np.argmax(impossible))}] has probability 0 under every "
                "component, so it has no posterior."
            )
        return softmax(joint, axis=0).T

    def impute(self, X: ArrayLike, *, return_variance: bool = False) -> Any:
        """Rows with their missing entries (NaN) filled in, from what the rest shows.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows; NaN where an entry is missing.
        return_variance : bool, default=False
            Return the variances of what was filled in too.

        Returns
        -------
        X : ndarray (n_samples, event)
            Missing entries are at their expectations given the rest of the row;
            categories are the most probable ones.
        variance : ndarray (n_samples, event)
            Only if `return_variance`; 0 where an entry was seen.
        """
        shares = self.posterior(X).T
        rows = v.as_doubles("X", coded(X, self.categories))
        filled, variance = self.components._imputed(rows, shares)
        lost = np.isnan(rows)
        filled = np.where(lost, filled, rows)
        return (filled, np.where(lost, variance, 0.0)) if return_variance else filled

    def predict_proba(self, X: ArrayLike) -> Array:
        """Posterior probabilities of the components: :meth:`posterior`.

        Parameters
        ----------
        X : array-like (n_samples, event)
            As for :meth:`posterior`.

        Returns
        -------
        ndarray (n_samples, n_components)
        """
        return self.posterior(X)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Most probable component of every row.

        Parameters
        ----------
        X : array-like (n_samples, event)
            As for :meth:`posterior`.

        Returns
        -------
        ndarray of int (n_samples,)
        """
        return self.posterior(X).argmax(axis=1)

    def sample(
        self, n: int, random_state: Any = None, *, return_components: bool = False
    ) -> Any:
        """Independent draws.

        Parameters
        ----------
        n : int
            Number of draws, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.
        return_components : bool, default=False
            Return the components that the rows come from too.

        Returns
        -------
        X : ndarray (n, event)
        components : ndarray of int (n,)
            Only if `return_components`.
        """
        n = v.check_count("n", n)
        rng = as_generator(random_state)
        which = rng.choice(self.n_components, size=n, p=self.weights)
        X = None
        for h in np.unique(which):
            own = np.flatnonzero(which == h)
            drawn = self.components[h].sample(len(own), rng)
            if X is None:
                X = np.empty((n, *drawn.shape[1:]), drawn.dtype)
            X[own] = drawn
        return (X, which) if return_components else X

    def _holdable(self):
        """Shapes of masks of parameters that may stay in a fit."""
        names = ["weights", "components"]
        if self.components._fills_gaps:
            names += ["mean", "cov"]
        return dict.fromkeys(names, self.weights.shape)

    def _arguments(self):
        family = type(self.components)
        return {
            "weights": self.weights,
            "family": family.__name__,
            "components": self.components.get_spec(),
        }

    @classmethod
    def _from_arguments(cls, arguments):
        family = family_named(arguments["family"])
        return cls(arguments["weights"], rebuilt(family, arguments["components"]))

    # -- fit -----------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_components: int = 2,
        family: Family = Gaussian,
        smoothing: float = 3.0,
        init: Mixture | ArrayLike | None = None,
        fixed: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        callback: Callback | None = None,
        random_state: Any = None,
        family_options: dict[str, Any] | None = None,
    ) -> Self:
        """Fit by EM from several starts.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows in the support of the family. NaN is a missing entry under Gaussians
            and where columns are independent; others need whole rows.
        weights : array-like (n_samples,), optional
            Weights >= 0; weight 2 equals the row twice.
        n_components : int, default=2
        family : class or dict, default=Gaussian
            Of the components; any with a `fit` to weighted rows. One of numbers, such
            as Bernoulli, has independent columns. A dict {columns: class} has a family
            for each column or tuple of columns, by names or numbers; (class, options)
            has further arguments of its `fit`. Texts of a Categorical in a data frame
            become codes.
        smoothing : float, default=3.0
            Rows >= 0 that the prior of every component counts as. They add to the
            counts of the weights; to the covariance of a Gaussian as rows about its own
            mean, spread like those within the groups of the start; to components of
            other families as rows distributed like those of their group. A full
            covariance of d columns gets (d + 2) / 3 times as many. Groups far apart do
            not widen each other; a group of less spread than the others gets fewer, so
            that none of some rows is widened by more than 4 % of its standard
            deviations. 0 is maximum likelihood, which may be unbounded.
        init : Mixture or array-like (n_samples, n_components), optional
            Start of a single run: a mixture, or posterior probabilities of the
            components; `n_components` and `n_init` are then not read. A weight of zero
            stays zero.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`, a Mixture: "weights", "components", and
            of Gaussians "mean" or "cov"; or {name: boolean mask (n_components,)}, True
            where a component's stays.
        n_init : int, default=3
            Starts: k-means, then components merged and split where that raises the
            objective. The run of the greatest objective is kept.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant. That of
            densities depends on the units of the data: near zero the rule is strictest.
        max_iter : int, default=2000
            EM steps of a run at most.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step of every start; True ends the fit with the best
            parameters until then.
        random_state : int, Generator, RandomState or None, default=None
            Source of the starts.
        family_options : dict, optional
            Further arguments of the family's `fit`, such as ``n_categories``.

        Returns
        -------
        Mixture
            Its `fit_result` has the objective after every step.

        Raises
        ------
        ValueError
            If a row is outside the support, or a component has no maximum-likelihood
            fit with ``smoothing=0``.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.

        Notes
        -----
        The objective is

            sum_i w_i log p(x_i) + smoothing * sum_h log weights[h] + sum_h log prior_h,

        with, for Gaussians of covariance S_h,
        ``log prior_h = -c_h/2 (tr(S_h^{-1} W) - log|S_h^{-1} W| - d)``: W is the
        covariance within the groups of the best start, and c_h is what `smoothing`
        means for component h. The objective never
        falls. Of rows that miss entries, p is the density of what was observed; every
        component fills in the rest at its expectation, with its covariance (entries
        missing at random).

        A start takes the partition of k-means in standardised columns, the first one in
        columns that are scaled by what they vary within groups; a few steps of EM, and
        then moves that merge two components and split a third one, as long as
        they raise the objective (Ueda, Nakano, Ghahramani & Hinton 2000).

        References
        ----------
        Dempster, Laird & Rubin (1977), section 4.3; Ghahramani & Jordan (1994),
        Supervised learning from incomplete data via an EM approach, NIPS 6; Fraley &
        Raftery (2007), Bayesian regularization for normal mixture estimation and
        model-based clustering, Journal of Classification 24; Ueda, Nakano, Ghahramani &
        Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.
        """
        tol, max_iter = v.check_stop(tol, max_iter)
        if weights is not None and np.ndim(weights) == 0:
            raise ValueError(
                f"weights={v.shown(weights)} must be one weight per row; the number of "
                "components is a keyword: Mixture.fit(X, n_components=2)."
            )
        names = None
        if isinstance(init, Mixture):
            family, names = type(init.components), init._columns
            family_options = init.components._with_fixed(family_options or {})
            categories = init.categories
            X = coded(X, categories)
        else:
            categories = categories_of(family, X)
            X = coded(X, categories)
            family, family_options = family_of_columns(
                family, family_options, *columns_of_rows(X)
            )
        if is_partitioned(X):
            if fixed is not None:
                raise ValueError(
                    f"fixed={v.shown(fixed)} is not read where X comes in blocks; pass "
                    "X.compute()."
                )
            parts = PartitionedMixture(
                X,
                weights,
                family,
                smoothing,
                family_options,
                (init, n_components, n_init, random_state),
            )
            return parts.fit(cls, tol, max_iter, callback)._warned(tol, max_iter)
        names = column_names("X", X, names)
        held = held_of(fixed, init if isinstance(init, Mixture) else None)
        problem = MixtureProblem(X, weights, family, smoothing, family_options, held)
        problem.check_columns()
        if isinstance(init, Mixture):
            starts = [problem.start_of_mixture(init.weights, init.components)]
        elif init is not None:
            starts = [problem.start_of_shares(init)]
        else:
            starts = problem.random_starts(n_components, n_init, random_state)
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            change=mixture_change,
        )
        model = cls(*best)._with_result(result)._with_names(names)._with_held(held)
        model._with_seen(rows=float(problem.own.sum()))
        return model._with_categories(categories)._warned(tol, max_iter)

    def update(
        self,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        step: float | None = None,
        smoothing: float = 0.0,
    ) -> Mixture:
        """Mixture after one more batch of rows, by one step of online EM.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows, as for `fit`; what a row misses is expected given the rest of it.
        weights : array-like (n_samples,), optional
            Weights >= 0 of the rows.
        step : float, optional
            Share in (0, 1] of the batch in the statistics after it; 1 forgets all rows
            before. None is the share of the batch in all rows so far, to the power 0.6:
            the t-th of equal batches has the share ``t ** -0.6``.
        smoothing : float, default=0.0
            Pseudo-counts >= 0 of the weights.

        Returns
        -------
        Mixture
            A new one; it knows the number of rows that it has seen, also in its file.

        Raises
        ------
        ValueError
            If a row has probability zero or misses all entries, or the fits of the
            family are no functions of sums over rows.

        Notes
        -----
        The memory does not grow with the number of batches. The likelihood of all rows
        may fall in a step. A mixture made by its constructor has seen no row, so that
        its first step is one step of EM on the batch.

        References
        ----------
        Cappé & Moulines (2009), On-line expectation-maximization algorithm for latent
        data models.

        Examples
        --------
        >>> from maxent.families import Poisson
        >>> from maxent.models import Mixture
        >>> truth = Mixture([0.5, 0.5], Poisson([1.0, 20.0]))
        >>> model = Mixture([0.5, 0.5], Poisson([2.0, 10.0]))
        >>> for seed in range(20):
        ...     model = model.update(truth.sample(200, random_state=seed))
        >>> model.components.rate.round()
        array([ 1., 20.])
        """
        refuse_without_sums(self.components)
        column_names("X", X, self._columns)
        X = coded(X, self.categories)
        options = self.components._fixed()
        problem = MixtureProblem(X, weights, type(self.components), smoothing, options)
        log_prob = problem.components.log_prob(self.components)
        problem._refuse_impossible(
            self.components, log_prob + self._log_weights[:, None]
        )
        _, shares = posterior_shares(log_prob, self.weights, problem.own)
        new, seen = float(problem.own.sum()), (self._rows_seen or {}).get("rows", 0.0)
        batch = self.components._part_sums(problem.X, shares * problem.own)
        own = self.components._own_sums(self.weights)
        share = share_of_batch(step, seen, new)
        sums = mixed(share, own, [part / new for part in batch])
        rows = seen + new
        weight = with_pseudo_counts(rows * sums[0], problem.smoothing, self.weights)
        model = Mixture(weight, refitted(self.components, sums))._with_seen(rows=rows)
        model._with_names(self._columns)._with_count(self._count)
        return model._with_categories(self.categories)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        data = list(data)
        column_names("data", data)
        read_bags("data", data)
        return data
