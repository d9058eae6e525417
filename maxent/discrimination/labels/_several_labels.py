"""Uncertain labels of several classes: one machine a class, one label a row.

Machine k tells class k from the others. Its label is s_k(y) = 1 for y = k and -1
otherwise, so that a row with label probabilities P(y) costs

    weight * { sum_k ell(q_k f_k) + KL(P || P0) },    q_k = E s_k(y) = 2 P(k) - 1,

and for given probabilities the machines part into those of two classes with label means
q_k. For given decision values the probabilities of a row are the minimum of a convex
function that is a sum over classes, with one constraint, that they add up to one: its
Newton systems are diagonal.

The report has two classes only; this is its Definition 4 for a machine that is a
product of one machine a class.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from maxent._optimize.kernel_descent import KernelDescent, KernelPoint
from maxent._optimize.rows import Rows
from maxent.discrimination.labels._label_machines import MAX_CHANGE, Machine

_STEPS = 100  # of Newton; ten to thirty are usual
_DECREMENT = 1e-13  # fall of the linear model at the last step, relative
_INSIDE = 0.99  # share of the way to the boundary
_LEAST = 1e-12  # probability to start from


class SeveralCosts:
    """Losses of rows with label probabilities; label means q are 2 P - 1.

    Parameters
    ----------
    parts : list of LabelCosts
        Of every class against the others.
    labels : SeveralPriors
    """

    def __init__(self, parts, labels):
        self.parts, self.prior = parts, labels.prior
        if not parts[0].rows.potential.smooth:
            raise ValueError(
                "label probabilities of more than two classes need a loss without a "
                "kink, which margin='hinge' has; use margin='exponential' with a large "
                "sharpness."
            )
        self.uncertain = labels.open_rows
        self.known = np.ones(len(self.prior), dtype=bool)
        self.known[self.uncertain] = False
        self.weight = parts[0].rows.weight
        self._near = self.prior[self.uncertain]  # the last probabilities

    def loss(self, q, f):
        """Total loss of the margins q f."""
        return sum(c.loss(q[:, k], f[:, k]) for k, c in enumerate(self.parts))

    def divergence(self, q):
        """Total divergence of the label probabilities from their priors."""
        P, P0 = 0.5 * (1.0 + q[self.uncertain]), self.prior[self.uncertain]
        terms = _relative_entropy(P, P0).sum(axis=1)
        return float(self.weight[self.uncertain] @ np.maximum(terms, 0.0))

    def feasible(self, q):
        """Label means of probabilities next to those of q."""
        P = np.maximum(0.5 * (1.0 + q), 0.0)
        return 2.0 * P / P.sum(axis=1, keepdims=True) - 1.0

    @cached_property
    def _rows(self):
        """Rows of weight one for every uncertain row and class."""
        n = len(self.uncertain) * len(self.parts)
        each = [part.rows.subset(self.uncertain) for part in self.parts]
        q, rate = (
            np.column_stack([getattr(rows, name) for rows in each]).ravel()
            for name in ("q", "rate")
        )
        return Rows(each[0].potential, q, rate, np.ones(n))

    def _at(self, P, f):
        """Cost (rows,) of probabilities, its gradient and its Hessian's diagonal."""
        P0 = self.prior[self.uncertain]
        d = self._rows.q - ((2.0 * P - 1.0) * f).ravel()
        value, lam, curvature = (x.reshape(P.shape) for x in self._rows.losses(d))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(P0 > 0, np.log(P / P0) + 1.0 - 2.0 * lam * f, 0.0)
            bend = np.where(P0 > 0, 1.0 / P + 4.0 * curvature * f * f, np.inf)
        return (value + _relative_entropy(P, P0)).sum(axis=1), slope, bend

    def least_loss(self, f):
        """Least cost over all label probabilities, and its derivative by f."""
        q, derivative = self.best_means(f), np.empty_like(f)
        value = self.divergence(q)
        for k, part in enumerate(self.parts):
            loss, lam, _ = part.rows.loss(part.rows.q - q[:, k] * f[:, k])
            value, derivative[:, k] = value + loss, -q[:, k] * lam
        return value, derivative

    def best_means(self, f):
        """Label means (n, n_classes) of the least cost at decision values f."""
        q, f = 2.0 * self.prior - 1.0, f[self.uncertain]
        P0 = self.prior[self.uncertain]
        P = np.where(P0 > 0, np.maximum(self._near, _LEAST), 0.0)
        P /= P.sum(axis=1, keepdims=True)
        value, slope, bend = self._at(P, f)
        for _ in range(_STEPS):
            # minimum of the quadratic model on the plane of probabilities
            shift = (slope / bend).sum(axis=1) / (1.0 / bend).sum(axis=1)
            step = (shift[:, None] - slope) / bend
            fall = np.where(P0 > 0, step * slope, 0.0).sum(axis=1)
            if not (-fall > _DECREMENT * (1.0 + np.abs(value))).any():
                break
            down = np.where(step < 0, -step / np.maximum(P, 1e-300), 0.0)
            a = np.minimum(1.0, _INSIDE / np.maximum(down.max(axis=1), 1e-300))
            for _ in range(_STEPS):
                new = P + a[:, None] * step
                found = self._at(new, f)
                # rounding of values is no rise
                short = found[0] > value + 1e-4 * a * fall + 1e-15 * np.abs(value)
                if not short.any():
                    break
                a = np.where(short, 0.5 * a, a)
            P, (value, slope, bend) = new, found
        self._near = P
        q[self.uncertain] = 2.0 * P - 1.0
        return self.feasible(q)


class SeveralMachines:
    """Trains one machine a class on the label means of that class.

    Parameters
    ----------
    kind : class
        Of the machines of two classes, such as KernelMachines.
    estimator : estimator
        Whose features are known.
    X : ndarray or CSR
        Its checked rows.
    labels : SeveralPriors
    """

    def __init__(self, kind, estimator, X, labels):
        self.labels = labels
        self.parts = [
            kind(copy.copy(estimator), X, labels.of_class(k))
            for k in range(len(labels.classes))
        ]
        for part in self.parts:
            part.share(self.parts[0])
        self.costs = SeveralCosts([part.costs for part in self.parts], labels)
        self.linear = self.parts[0].linear

    def train(self, q, before=None, loose=1.0):
        """Machines of label means q (n, n_classes)."""
        was = [None] * len(self.parts) if before is None else before.more
        found = [
            part.train(np.ascontiguousarray(q[:, k]), was[k], loose)
            for k, part in enumerate(self.parts)
        ]
        return _together(q, found)

    def descended(self, start, *, tol, max_iter, callback=None):
        """Machines with the best label probabilities, by L-BFGS, and iterations.

        As :meth:`KernelMachines.descended`.
        """
        m, first = len(self.parts), self.parts[0]
        first._hold()

        def product(a):
            columns = a.reshape(-1, m).T
            each = [first._product(np.ascontiguousarray(one)) for one in columns]
            return np.column_stack(each).ravel()

        def loss(f):
            value, derivative = self.costs.least_loss(f.reshape(-1, m))
            return value, derivative.ravel()

        descent = KernelDescent(product, loss, first.precision, MAX_CHANGE, m)
        a = np.column_stack([one.result.lam for one in start.more]).ravel()
        b = np.array([float(one.result.bias) for one in start.more])
        options = {"tol": tol, "max_iter": max_iter, "callback": callback}
        point = descent.run(a, product(a), b, **options)
        a, Ka, slope = (
            np.ascontiguousarray(x.reshape(-1, m).T)
            for x in (point.a, point.Ka, point.slope)
        )
        q = self.costs.best_means(Ka.T + point.b)
        found = [
            self.parts[k].at_point(
                start.more[k],
                KernelPoint(a[k], Ka[k], float(point.b[k]), slope[k]),
                np.ascontiguousarray(q[:, k]),
            )
            for k in range(m)
        ]
        return _together(q, found), point.n_iter

    def store(self, machine):
        """Fitted estimators of all classes, each with the gap of all together."""
        return [
            part.store(replace(one, gap=machine.gap))
            for part, one in zip(self.parts, machine.more, strict=True)
        ]

    def close(self):
        """Give memory back."""
        for part in self.parts:
            part.close()


def _together(q, machines):
    """Machine of all classes, whose result is one that has not converged if any."""
    return Machine(
        q,
        np.column_stack([one.f for one in machines]),
        sum(one.penalty for one in machines),
        sum(one.gap for one in machines),
        min((one.result for one in machines), key=lambda one: one.converged),
        machines,
    )


def _relative_entropy(P, P0):
    """Terms of KL(P || P0), 0 where both are."""
    return xlogy(P, P) - xlogy(P, np.where(P0 > 0, P0, 1.0))
