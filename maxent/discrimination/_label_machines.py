"""Machines trained on label means, by the solvers of the estimators they belong to.

A soft label of mean p enters a kernel dual as a row of sign(p), level l / |p| and rate
c |p|, since its loss G(c (l - p f)) is G(c |p| (l / |p| - sign(p) f)). A row with p = 0
says nothing of the machine and is left out.

Source: Jaakkola, Meila & Jebara (1999), appendix C, eqs. (72)-(74).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._optimize.rows import NEGATIVE, POSITIVE, Rows
from maxent._support import validation as v
from maxent._support.gram_store import WholeGram
from maxent.discrimination._label_costs import LabelCosts
from maxent.discrimination._margin_parameters import classification_margin
from maxent.discrimination.classifier import MEDClassifier
from maxent.discrimination.duals._signed_dual import (
    SignedProblem,
    clip_signed_to_domain,
)


@dataclass
class Machine:
    """A machine trained on label means.

    Attributes
    ----------
    p : ndarray (n,)
        The means.
    f : ndarray (n,)
        Decision values of the rows, bias included.
    penalty : float
        Divergence of its parameters from their prior.
    gap : float
        Bound of its distance from the best machine for p; NaN if there is none.
    result : DualResult
        What the solver returned, with entries for all rows.
    """

    p: np.ndarray
    f: np.ndarray
    penalty: float
    gap: float
    result: Any


_KINDS = ("MEDClassifier",)


def check_machine(estimator):
    """An estimator that can be trained on label means."""
    if isinstance(estimator, MEDClassifier):
        return estimator
    raise TypeError(
        f"estimator={v.shown(estimator)} cannot be trained on label means; use one of "
        f"{', '.join(_KINDS)}. Put scalers and other steps before the whole, in a "
        "pipeline."
    )


def machines_of(estimator, X, labels):
    """What trains an estimator on label means."""
    return KernelMachines(estimator, X, labels)


def check_losses(margin):
    """Refuse margin priors without losses, which no label mean of 0 can meet."""
    if not margin.unit_potential.finite_loss:
        raise ValueError(
            f"{margin!r} allows no losses, and a row without a label has an expected "
            "margin of 0; use a margin prior that allows losses, such as "
            "margin='exponential'."
        )


class KernelMachines:
    """Trains the kernel machine of a MEDClassifier.

    Parameters
    ----------
    estimator : MEDClassifier
        Whose features are known.
    X : ndarray or CSR
        Its checked rows, or their kernel matrix.
    labels : LabelPriors
    """

    def __init__(self, estimator, X, labels):
        self.estimator, self.labels = estimator, labels
        self.bias, self.tol = estimator._check_machine_parameters()
        self.margin = classification_margin(estimator.margin, estimator.sharpness)
        check_losses(self.margin)
        self.X, self.data = estimator._rows_to_fit(X, labels.keep)
        estimator.classes_ = labels.classes
        estimator.gamma_ = estimator._gamma(self.data, labels.sample)
        weight = labels.weight * self.margin.unit_weight(estimator.C)
        self.costs = LabelCosts(Rows.of(self.margin, weight), labels.half_odds)
        self._held = None

    def train(self, p, before=None):
        """Machine of label means p, started from one of other means."""
        inside = np.flatnonzero(p)
        rows = self.costs.rows.subset(inside)
        size = np.abs(p[inside])
        problem = SignedProblem(
            self.margin,
            rows.q / size,
            rows.rate * size,
            rows.weight,
            np.zeros(len(inside)),
            np.where(p[inside] > 0, POSITIVE, NEGATIVE).astype(np.int8),
            self.bias,
        )
        init = None
        if before is not None:
            init = clip_signed_to_domain(self._start(p, before)[inside], problem)
        everything = len(inside) == len(p)
        data = self.data if everything else self._some(inside)
        gram = self._gram(problem, data) if everything else None
        result = self.estimator._solve(
            data, problem, self.tol, None, init=init, gram=gram
        )
        a = np.zeros(len(p))
        a[inside] = result.lam
        return self._machine(p, replace(result, lam=a))

    def _start(self, p, before):
        """Signed multipliers near those of label means p.

        Multipliers of new rows are those that the decision values ask for; the others
        stay what they are, apart from the label mean in a = p lam.
        """
        was = before.p
        lam = np.where(was == 0, self.costs.multipliers(p, before.f), 0.0)
        np.divide(before.result.lam, was, out=lam, where=was != 0)
        return p * np.maximum(lam, 0.0)

    def _some(self, inside):
        if self.estimator._has_kernel("precomputed"):
            return self.data[np.ix_(inside, inside)]
        return self.data[inside]

    def _gram(self, problem, data):
        """The matrix of all rows, once for all label means, if memory allows it."""
        estimator = self.estimator
        if self._held is None and not estimator._goes_linear(data, problem):
            kernel = estimator._kernel(data).held(estimator.cache_size)
            if WholeGram.megabytes(kernel) <= estimator.cache_size:
                self._held = WholeGram(kernel, 0 if self.bias == "flat" else 1)
        return self._held

    def _machine(self, p, result):
        a, b = result.lam, float(result.bias)
        if result.coef is not None:
            w = np.ravel(result.coef)
            f, norm = np.asarray(self.data @ w), float(w @ w)
        else:
            f = self._product(a)
            norm = float(a @ f)
        if self.bias not in ("flat", None):
            norm += b * b / self.bias
        return Machine(p, f + b, 0.5 * norm, float(result.gap), result)

    def _product(self, a):
        if self._held is not None:
            return self._held.product(a)
        inside = np.flatnonzero(a)
        if not len(inside):
            return np.zeros(len(a))
        kernel = self.estimator._kernel(self.data)
        return np.asarray(kernel.apply(inside, a[inside, None])[:, 0], dtype=float)

    def store(self, machine):
        """Fitted estimator of a machine."""
        model = copy.copy(self.estimator)
        b = np.array([float(machine.result.bias)])
        result = replace(machine.result, gap=machine.gap)
        model._store(result, result.lam[None, :], b, self.labels.keep, self.X)
        model.loo_bound_ = np.nan
        return without_names(model)

    def close(self):
        """Give memory back."""
        if self._held is not None:
            self._held.release()
            self._held = None


def without_names(model):
    """The model without names of columns: who holds it has them."""
    vars(model).pop("feature_names_in_", None)
    return model
