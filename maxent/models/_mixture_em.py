"""EM of mixtures: starts, posterior shares and one step.

Source: Dempster, Laird & Rubin (1977), section 4.3.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import ExponentialFamily, _checks
from maxent.models._gaussian_em import (
    FAMILIES,
    covariances,
    fitted_gaussians,
    gaussians,
)
from maxent.models._partial import (
    check_columns,
    expected_fit,
    marginal_table,
    refuse_infinite,
    with_column_means,
)
from maxent.models.base import relative_change


class MixtureProblem:
    """One EM step of a mixture, for `maximize_by_em`; points are (weights, batch)."""

    def __init__(self, X, weights, family, smoothing, options):
        check_family(family)
        self.smoothing = v.check_nonnegative("smoothing", smoothing)
        self.X = v.as_doubles("X", X)
        if self.X.ndim == 0 or not len(self.X):
            raise ValueError(f"X has shape {self.X.shape}; there is no row to fit.")
        n = len(self.X)
        own = np.ones(n) if weights is None else v.as_doubles("weights", weights)
        self.own, _ = _checks.row_weights(own, (n,))
        self.share = self.own / self.own.sum()
        self.family, self.options = family, options
        self.partial = family in FAMILIES.values() and bool(np.isnan(self.X).any())
        if self.partial:
            self._check_partial()

    def _check_partial(self):
        """Refuse what missing entries of rows (n, d) cannot be taken with."""
        X = self.X
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}, expected (n_samples, n_features)."
            )
        if self.options:
            raise ValueError(
                f"family_options={v.shown(self.options)} are not read where X has "
                "missing entries (NaN); leave them out, or fill X in."
            )
        refuse_infinite(X)
        v.check_range("X", X)
        lost = np.isnan(X).all(axis=1)
        if lost.any():
            raise ValueError(
                f"X[{int(np.argmax(lost))}] is missing (NaN) altogether; drop the row."
            )
        check_columns(X[self.own > 0], "X", "row")
        constant = np.nanmin(X, axis=0) == np.nanmax(X, axis=0)
        if constant.any():
            raise ValueError(
                f"column {int(np.argmax(constant))} of X is constant where it was "
                "observed, so its variance is zero; drop it."
            )

    def start_of_shares(self, init):
        """The point of given posterior probabilities (n_samples, n_components)."""
        shares = v.as_doubles("init", init)
        if shares.ndim != 2 or len(shares) != len(self.X):
            raise ValueError(
                f"init has shape {shares.shape}; ({len(self.X)}, n_components) is "
                "expected."
            )
        _checks.simplex_array("init", shares)
        return self.maximum(shares.T, None)

    def random_starts(self, n_components, n_init, random_state):
        """Checked arguments, and the points that they ask for."""
        k = v.check_count("n_components", n_components)
        n_init = v.check_count("n_init", n_init)
        rows = int(np.count_nonzero(self.own))
        if k > rows:
            raise ValueError(
                f"n_components={k} is more than the {rows} rows of positive weight; "
                "lower it or add rows."
            )
        return self._starts(k, n_init, as_generator(random_state))

    def _starts(self, k, n_init, rng):
        """Random rows as centres, and every row with a random share of the nearest.

        Components of the rows' posterior under equal weights, so any family will do.
        """
        rows = with_column_means(self.X) if self.partial else self.X
        rows = rows.reshape(len(rows), -1)
        deviation = np.sqrt(self.share @ np.square(rows - self.share @ rows))
        rows = rows / np.where(deviation > 0, deviation, 1.0)
        for _ in range(n_init):
            centres = spread_rows(rows, self.share, k, rng)
            distance = np.stack([np.square(rows - c).sum(axis=1) for c in centres])
            shares = 0.1 / k + 0.9 * (distance == distance.min(axis=0))
            shares = shares * rng.uniform(0.9, 1.1, size=shares.shape)
            yield self.maximum(shares / shares.sum(axis=0), None)

    def step(self, point):
        """Objective at a point, and the point after one EM step."""
        weights, components = point
        objective, spread, shares = posterior_shares(
            self.X, self.own, self.share, point, self.smoothing
        )
        if self.smoothing:
            objective += self.smoothing * float(np.log(weights).sum() + spread)
        return objective, self.maximum(shares, components)

    def maximum(self, shares, old):
        """M step from posterior probabilities (n_components, n_samples)."""
        mass = shares * self.own
        counts = mass.sum(axis=1) + self.smoothing
        rows = mass + self.smoothing * self.share
        used = rows.sum(axis=1) > 0
        if self.partial:
            old = self._overall(len(rows)) if old is None else old
            before = old[used]
            fitted = fitted_gaussians(
                *expected_fit(self.X, rows[used], before.mean, covariances(before))
            )
        else:
            fitted = self.family.fit(self.X, rows[used], **self.options)
        return counts / counts.sum(), in_place(fitted, old, used)

    def _overall(self, k):
        """Equal Gaussians, with the means and variances of what was observed."""
        mean, var = np.nanmean(self.X, axis=0), np.nanvar(self.X, axis=0)
        if self.family is FAMILIES["full"]:
            cov = np.diag(var)
        else:
            cov = var if self.family is FAMILIES["diagonal"] else var.mean()
        return gaussians(np.tile(mean, (k, 1)), np.tile(cov, (k,) + (1,) * cov.ndim))


def in_place(fitted, old, used):
    """Members of the fit where used; a component without a row stays as it is."""
    if used.all():
        return fitted
    place = np.where(used, np.cumsum(used) - 1, 0)
    return merged(fitted[place], old, used)


def log_densities(components, X):
    """Log-densities (n_components, n) of rows; of Gaussians, of what is not NaN."""
    X = v.as_doubles("X", X)
    if (
        isinstance(components, tuple(FAMILIES.values()))
        and X.shape[1:] == components.event_shape
        and np.isnan(X).any()
    ):
        refuse_infinite(X)
        mean, cov = components.mean, covariances(components)
        return marginal_table(gaussians, mean, cov, X).T
    return components.log_prob(X)


def check_family(family):
    """Refuse what is no class of exponential families."""
    if not (isinstance(family, type) and issubclass(family, ExponentialFamily)):
        raise TypeError(
            f"family={v.shown(family)} must be a class of maxent.families, such as "
            "maxent.families.Gaussian."
        )


def posterior_shares(X, own, share, point, smoothing):
    """Log-likelihood, mean log-densities by `share`, and shares (n_components, n)."""
    weights, components = point
    log_prob = log_densities(components, X)
    with np.errstate(divide="ignore"):
        joint = log_prob + np.log(weights)[:, None]
    total = logsumexp(joint, axis=0)
    used = own > 0
    log_likelihood = float(own[used] @ total[used])
    spread = (log_prob[:, used] @ share[used]).sum() if smoothing else 0.0
    with np.errstate(invalid="ignore"):
        shares = np.where(used, np.exp(joint - total), 0.0)
    return log_likelihood, spread, shares


def merged(new, old, used):
    """Members of `new` where used, else of `old`."""
    parts = {}
    for name, value in new.parameters().items():
        if isinstance(value, np.ndarray) and value.shape[:1] == used.shape:
            axes = (slice(None),) + (None,) * (value.ndim - 1)
            value = np.where(used[axes], value, getattr(old, name))
        parts[name] = value
    return type(new)(**parts)


def mixture_change(old, new):
    """Relative change of weights and parameters."""

    def arrays(point):
        inside = point[1].parameters().values()
        return (point[0], *(a for a in inside if isinstance(a, np.ndarray)))

    return relative_change(arrays(old), arrays(new))


def spread_rows(rows, share, k, rng):
    """Rows drawn one after the other by their squared distance to those drawn."""
    centres = [rows[rng.choice(len(rows), p=share)]]
    for _ in range(k - 1):
        nearest = np.min([np.square(rows - c).sum(axis=1) for c in centres], axis=0)
        chance = share * nearest
        chance = chance / chance.sum() if chance.sum() > 0 else share
        centres.append(rows[rng.choice(len(rows), p=chance)])
    return centres
