"""EM of mixtures: starts, posterior shares and one step.

Source: Dempster, Laird & Rubin (1977), section 4.3.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.threads import with_single_threaded_blas
from maxent.families import _checks
from maxent.models._chain_input import log_of_pseudo_counts
from maxent.models._component_search import ComponentSearch, some_rows
from maxent.models._components import (
    Components,
    check_scatter,
    log_densities,
    posterior_of,
)
from maxent.models._family_choice import check_family
from maxent.models._holding import maximum_of_free, with_held_members
from maxent.models._partial import check_columns, refuse_infinite
from maxent.models.base import relative_change

_LEAST_SMOOTHING = 0.01  # of that search


class MixtureProblem:
    """One EM step of a mixture, for `maximize_by_em`; points are (weights, batch)."""

    def __init__(self, X, weights, family, smoothing, options, held=None):
        self.smoothing = v.check_nonnegative("smoothing", smoothing)
        self.held = {} if held is None else held
        self.X = v.as_doubles("X", X)
        if self.X.ndim == 0 or not len(self.X):
            raise ValueError(f"X has shape {self.X.shape}; there is no row to fit.")
        options = check_family(family, options)
        check_rows(family, X)
        refuse_infinite(self.X)
        n = len(self.X)
        own = np.ones(n) if weights is None else v.as_doubles("weights", weights)
        own, _ = _checks.row_weights(own, (n,))
        self.n_given, self.given = n, np.flatnonzero(own > 0)  # the others are no rows
        if len(self.given) < n:
            self.X, own = self.X[self.given], own[self.given]
        self.own, self.family = own, family
        self.components = Components(family, self.X, own, options)
        self.options = self.components.options
        if self.components.partial:
            self._check_partial()

    def _check_whole(self):
        """Refuse rows without a fit of the family, before any start."""
        if self.family._fills_gaps and not self.options:
            check_scatter(self.family, self.X, self.own)
        else:
            one = self.family.fit(self.X, self.own, **self.options)
            self._refuse_impossible(one, log_densities(one, self.X))

    def _refuse_impossible(self, components, joint):
        """Refuse rows that no component can show, which have no posterior."""
        impossible = np.isneginf(np.atleast_2d(joint)).all(axis=0)
        if not impossible.any():
            return
        rows = self.given[impossible]
        named = ", ".join(f"X[{i}]" for i in rows[:5]) + ", ..." * (len(rows) > 5)
        family, first = type(components).__name__, self.X[impossible][0].tolist()
        raise ValueError(
            f"{named}: {len(rows)} of {self.n_given} rows have probability 0 under "
            f"every component, as X[{rows[0]}]={v.shown(first)}. Drop or correct them; "
            f"the support of {family}: "
            f"{components._support_text(**components._fixed())}."
        )

    def _check_partial(self):
        """Refuse what missing entries of rows (n, d) cannot be taken with."""
        X = self.X
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}, expected (n_samples, n_features)."
            )
        if self.options and self.family._fills_gaps:
            raise ValueError(
                f"family_options={v.shown(self.options)} are not read where X has "
                "missing entries (NaN); leave them out, or fill X in."
            )
        v.check_range("X", X)
        lost = np.isnan(X).all(axis=1)
        if lost.any():
            raise ValueError(
                f"X[{self.given[np.argmax(lost)]}] is missing (NaN) altogether; drop "
                "the row."
            )

    def check_columns(self):
        """Refuse columns of partial rows that say nothing, or have no fit."""
        if not self.components.partial:
            return
        X = self.X
        check_columns(X, "X", "row")
        constant = np.nanmin(X, axis=0) == np.nanmax(X, axis=0)
        if self.family._fills_gaps and constant.any():
            raise ValueError(
                f"column {int(np.argmax(constant))} of X is constant where it was "
                "observed, so its variance is zero; drop it."
            )

    def start_of_shares(self, init):
        """The point of given posterior probabilities (n_samples, n_components)."""
        shares = v.as_doubles("init", init)
        if shares.ndim != 2 or len(shares) != self.n_given:
            raise ValueError(
                f"init has shape {shares.shape}; ({self.n_given}, n_components) is "
                "expected."
            )
        _checks.simplex_array("init", shares)
        shares = shares[self.given]
        self._set_prior(shares.argmax(axis=1), shares.shape[1])
        empty = self.own @ shares == 0
        start = self.maximum(np.where(empty, 1e-9, shares).T, None)
        self._refuse_impossible(start[1], self._joint(*start))
        return start

    def start_of_mixture(self, weights, components):
        """The point of a given mixture."""
        self.options.update(components._with_fixed(self.options))
        joint = self._joint(weights, components)
        self._refuse_impossible(components, joint)
        self._set_prior(joint.argmax(axis=0), len(weights))
        return weights, components

    def random_starts(self, n_components, n_init, random_state):
        """Checked arguments, and the points that they ask for, each a different one."""
        k = v.check_count("n_components", n_components)
        n_init = v.check_count("n_init", n_init)
        if k > len(self.X):
            raise ValueError(
                f"n_components={k} is more than the {len(self.X)} rows of positive "
                "weight; lower it or add rows."
            )
        return self._starts(k, n_init, as_generator(random_state))

    @with_single_threaded_blas
    def _starts(self, k, n_init, rng):
        if not self.components.partial:
            self._check_whole()
        X, own = some_rows(*self._whole_rows(), k, rng, many=True)
        c = self.smoothing or _LEAST_SMOOTHING
        search = ComponentSearch(X, own, self.family, k, c, self.options)
        starts = search.starts(n_init, rng)
        self._set_prior(self._joint(*starts[0]).argmax(axis=0), k)
        return [self._start_of_sample(*start) for start in starts]

    def _start_of_sample(self, weights, components):
        """The point, or one step from it where a sample has missed rare values."""
        joint = self._joint(weights, components)
        missed = np.isneginf(joint).all(axis=0)
        if not missed.any():
            return weights, components
        joint[:, missed] = 0.0
        return self.maximum(softmax(joint, axis=0), None)

    def _whole_rows(self):
        """Rows without missing entries, and their weights.

        Where few rows have none, the others are filled in with the means of columns.
        """
        if not self.components.partial:
            return self.X, self.own
        whole = ~np.isnan(self.X).any(axis=1)
        X = self.X[whole]
        if (
            2 * self.own[whole].sum() >= self.own.sum()
            and (X.min(axis=0) < X.max(axis=0)).all()
        ):
            return X, self.own[whole]
        return self.components.filled(), self.own

    def _set_prior(self, labels, k):
        """Prior of the components from a partition of the rows."""
        self.components.set_prior(labels, k, self.smoothing)

    def _joint(self, weights, components):
        with np.errstate(divide="ignore"):
            return self.components.log_prob(components) + np.log(weights)[:, None]

    def step(self, point):
        """Objective at a point, and the point after one EM step."""
        weights, components = point
        if not self.held:
            taken = self.components.quick_step(self.smoothing, point)
            if taken is not None:
                return taken
        passed = self.components.em_step(weights, components, self.held)
        if passed is None:
            log_prob = self.components.log_prob(components)
            objective, shares = posterior_shares(log_prob, weights, self.own)
            following = self.maximum(shares, components, weights)
        else:
            log_prob = None
            objective, counts, new = passed
            following = self._following(counts, new, components, weights)
        if self.smoothing:
            objective += log_of_pseudo_counts(self.smoothing, weights)
            prior = self.components.prior.log_density(components, log_prob)
            objective += float(prior.sum())
        return objective, following

    def maximum(self, shares, old, weights=None):
        """M step from posterior probabilities (n_components, n_samples).

        A component whose weight is zero, of the old ones (n_components,), keeps it.
        """
        mass = shares * self.own
        weights = np.ones(len(mass)) if weights is None else weights
        components = self.components.fit(mass, old, self.held)
        return self._following(mass.sum(axis=1), components, old, weights)

    def _following(self, counts, components, old, weights):
        """The point after an M step, with what is held."""
        stays = self.held.get("weights")
        new = maximum_of_free(counts, self.smoothing, weights, stays)
        return new, with_held_members(components, old, self.held.get("components"))


def check_rows(family, X):
    """Refuse data of other axes than rows (n_samples, event) of a family."""
    event = family._event_to_fit()
    shape = X.shape if hasattr(X, "shape") else v.as_doubles("X", X).shape
    if len(shape) == 1 + len(event):
        return
    columns = getattr(X, "columns", None)
    remedy = "Pass one observation per row."
    if not event and len(shape) == 2:
        one = "X.ravel()" if shape[1] == 1 else "one column, as X[:, 0]"
        remedy = f"Pass {one if columns is None else f'X[{columns[0]!r}]'}."
    elif len(event) == 1 and len(shape) == 1:
        remedy = "Pass numpy.reshape(X, (-1, 1)) if each row is one number."
    elif len(shape) == 2 + len(event):
        rows = ", ".join(map(str, (-1, *shape[2:])))
        remedy = (
            f"Pass X.reshape({rows}) to take all its rows together, or "
            "fit_many(list(X)) for a mixture of each array."
        )
    axes = ", ".join(("n_samples", *"k" * len(event)))
    raise ValueError(
        f"X has shape {tuple(shape)}, expected ({axes}{',' * (not event)}) for a "
        f"mixture of {family.__name__}. {remedy}"
    )


def posterior_shares(log_prob, weights, own):
    """Log-likelihood, and posterior shares (n_components, n)."""
    with np.errstate(divide="ignore"):
        joint = log_prob + np.log(weights)[:, None]
    total, shares = posterior_of(joint)
    used = own > 0
    log_likelihood = float(own[used] @ total[used])
    if not used.all():
        shares = np.where(used, shares, 0.0)
    return log_likelihood, shares


def mixture_change(old, new):
    """Relative change of weights and parameters."""
    old, new = ((weights, *batch._arrays()) for weights, batch in (old, new))
    return relative_change(old, new)
