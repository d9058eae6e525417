"""EM of linear Gaussian networks, in standardised columns."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent.families import _checks
from maxent.models._holding import as_given
from maxent.models._partial import check_columns
from maxent.models.networks import _network_input as net_input
from maxent.models.systems._lds_em import CovariancePrior, regression, residual_scatter


class NetworkProblem:
    """EM of a network: parameters are tuples (B, b, S) of standardised columns."""

    def __init__(self, net, X, parents, weights, prior, held):
        self.net, self.nodes, self.place = type(net), net.order, net._place
        self.parents, self.held = parents, held
        self.masks = net_input.masks_of(held, net.order)
        self.observed, self.shown = net.observed, net._shown
        X, D = net._rows(X), len(net.offsets)
        v.check_range("X", X)
        self.w, self.total = _checks.row_weights(weights, X.shape[:1])
        check_columns(X[self.w > 0], "X", "row")
        seen = self.w @ ~np.isnan(X)
        self.centre = np.zeros(D)
        self.centre[self.shown] = self.w @ np.nan_to_num(X) / seen
        away = X - self.centre[self.shown]
        variance = self.w @ np.square(np.nan_to_num(away)) / seen
        if self.masks[1].any():  # about a centre, offsets change with coefficients
            self.centre[:] = 0.0
        self.scale = np.ones(D)
        self.scale[self.shown] = np.sqrt(np.where(variance > 0, variance, 1.0))
        self.X = (X - self.centre[self.shown]) / self.scale[self.shown]
        self.prior = CovariancePrior(prior)
        self.size = float(seen.sum())  # observed values
        # of the log-density of data and prior in their own units
        counted = seen + prior * ~np.diagonal(self.masks[2])[self.shown]
        self.shift = -float(counted @ np.log(self.scale[self.shown]))

    def inward(self, net):
        """The point of a network."""
        scale = self.scale
        b = (net.offsets + net.coefficients @ self.centre - self.centre) / scale
        B = net.coefficients / scale[:, None] * scale
        return B, b, net.covs / np.outer(scale, scale)

    def outward(self, point):
        """Coefficients, offsets and covariances of the network of a point."""
        (B, b, S), scale = point, self.scale
        B = B * scale[:, None] / scale
        offsets = b * scale + (np.eye(len(b)) - B) @ self.centre
        return B, offsets, S * np.outer(scale, scale)

    def start(self, rng, first, is_first):
        """The first point, or a random one with what is held of it."""
        if first is None:
            return self._random_start(rng)
        if is_first:
            return first
        return tuple(map(as_given, self._random_start(rng), first, self.masks))

    def _random_start(self, rng):
        """Hidden nodes of variance one, random coefficients from them."""
        D = len(self.centre)
        B, S = np.zeros((D, D)), np.eye(D)
        for name, _ in self.nodes:
            own = self.place[name]
            for parent in self.parents[name]:
                if parent not in self.observed:
                    size = B[own, self.place[parent]].shape
                    B[own, self.place[parent]] = 0.5 * rng.normal(size=size)
        return B, np.zeros(D), S

    def step(self, point):
        B, b, S = point
        net = self.net(self.nodes, B, b, S, self.observed)
        objective = float(self.w @ net.log_likelihood(self.X)) + self._log_prior(S)
        kept, _, fixed = self.masks
        mean, cov = net._all_given(self.X)
        z = np.column_stack([mean, np.ones(len(mean))])
        products = (z * self.w[:, None]).T @ z
        products[:-1, :-1] += (
            self.total * cov if cov.ndim == 2 else np.einsum("n,nij->ij", self.w, cov)
        )
        new_B, new_b, new_S = np.zeros_like(B), np.zeros_like(b), np.zeros_like(S)
        index = np.arange(len(b))
        for name, _ in self.nodes:
            own = self.place[name]
            above = [index[self.place[p]] for p in self.parents[name]]
            above = np.concatenate([*above, [-1]]).astype(np.intp)  # -1 is the one
            second = products[np.ix_(above, above)]
            cross = products[own][:, above]
            old = np.column_stack([B[own, above[:-1]], b[own]])
            held = np.column_stack([kept[own, above[:-1]], self.masks[1][own]])
            both = regression(cross, second, old, held, S[own, own])
            new_B[own, above[:-1]], new_b[own] = both[:, :-1], both[:, -1]
            if fixed[own, own].all():
                new_S[own, own] = S[own, own]
                continue
            square = products[own, own]
            scatter = residual_scatter(both[:, :-1], both[:, -1], square, cross, second)
            new_S[own, own] = self.prior.mode(scatter, self.total)
            if name in self.observed and self.prior.count == 0:
                self._check(name, new_S[own, own])
        return objective, (new_B, new_b, new_S)

    def _check(self, name, S):
        values = np.linalg.eigvalsh(S)
        if values[0] <= 1e-14:
            raise ValueError(
                f"covs[{name!r}] is singular (smallest eigenvalue {values[0]:.3g}); "
                "its parents explain it without error. Set prior > 0, add rows, or "
                "take parents away."
            )

    def _log_prior(self, S):
        places = (self.place[name] for name, _ in self.nodes)
        free = (at for at in places if not self.masks[2][at, at].all())
        return self.shift + sum(self.prior.term(S[at, at]) for at in free)
