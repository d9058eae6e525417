"""Machines trained on label means, by the solvers of the estimators they belong to.

Machines with blocks or switches take label means in the place of labels. In a kernel
dual a label mean p is a row of sign(p), level l / |p| and rate c |p|, since its loss
G(c (l - p f)) is G(c |p| (l / |p| - sign(p) f)). A row with p = 0 says nothing of the
machine and is left out.

Source: Jaakkola, Meila & Jebara (1999), appendix C, eqs. (72)-(74).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._optimize.kernel_descent import KernelDescent
from maxent._optimize.rows import NEGATIVE, POSITIVE, Rows
from maxent._support import validation as v
from maxent._support.threads import threads_of
from maxent.discrimination._approximation import refuse_approximation
from maxent.discrimination._class_biases import ClassBias
from maxent.discrimination._far_rows import near_zero
from maxent.discrimination._margin_parameters import at_level, classification_margin
from maxent.discrimination.duals._selection_dual import solve_selection
from maxent.discrimination.duals._signed_problem import (
    SignedProblem,
    clip_signed_to_domain,
)
from maxent.discrimination.duals.class_pairs import ClassPairs
from maxent.discrimination.grams.gram_store import WholeGram
from maxent.discrimination.labels._label_costs import LabelCosts

MAX_CHANGE = 0.5  # of a decision value: longer steps leave the nearest minimum


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
    more : object
        Whatever else the estimator stores.
    """

    p: np.ndarray
    f: np.ndarray
    penalty: float
    gap: float
    result: Any
    more: Any = None


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

    linear = True  # in the multipliers: has `descended`

    def __init__(self, estimator, X, labels):
        self.estimator, self.labels = estimator, labels
        self.bias, self.tol = estimator._check_machine_parameters()
        refuse_approximation(estimator, "MEDPartialLabelClassifier")
        self.margin = classification_margin(estimator.margin, estimator.sharpness)
        check_losses(self.margin)
        self.X, data = estimator._rows_to_fit(X, labels.keep)
        self.data, self.origin = estimator._near_zero(data, self.bias)
        estimator.classes_ = labels.classes
        estimator.gamma_ = estimator._gamma(self.data, labels.sample)
        weight = labels.weight * self.margin.unit_weight(estimator.C)
        self.costs = LabelCosts(Rows.of(self.margin, weight), labels.half_odds)
        self._held = []  # the matrix of all rows, if it is held

    @property
    def _is_linear(self):
        return self.estimator._has_kernel("linear")

    def train(self, p, before=None, loose=1.0):
        """Machine of label means p, started from one of other means.

        Its tolerance is `loose` times that of the estimator.
        """
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
        data = self.data if everything else self.estimator._some_rows(self.data, inside)
        gram = self._hold(problem) if everything else None
        result = self.estimator._solve(
            data, problem, loose * self.tol, None, init=init, gram=gram
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

    def _hold(self, problem=None):
        """The matrix of all rows, once for all label means, if memory allows it.

        A linear kernel has one where the estimator's solver of `problem` works on it.
        """
        estimator, linear = self.estimator, self._is_linear
        if linear and problem is not None:
            linear = estimator._goes_linear(self.data, problem)
        if not self._held and not linear:
            kernel = estimator._kernel(self.data).held(estimator.cache_size)
            if WholeGram.megabytes(kernel) <= estimator.cache_size:
                self._held.append(WholeGram(kernel, 0 if self.bias == "flat" else 1))
        return self._held[0] if self._held else None

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

    def descended(self, start, *, tol, max_iter, callback=None):
        """Machine with the best label means, by L-BFGS from `start`, and iterations.

        It has no certificate. Parameters are those of :meth:`KernelDescent.run`.
        """
        self._hold()
        descent = KernelDescent(
            self._product, self.costs.least_loss, self.precision, MAX_CHANGE
        )
        a, b = start.result.lam, float(start.result.bias)
        # not start.f - b: the multipliers of a machine that was descended to are those
        # that its decision values ask for, and weights of a linear one have a tolerance
        point = descent.run(
            *(a, self._product(a), b),
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
        means = self.costs.best_means(point.Ka + point.b)
        return self.at_point(start, point, means), point.n_iter

    @property
    def precision(self):
        """Precision of the bias: 0 for a flat one, None for none."""
        if self.bias is None:
            return None
        return 0.0 if self.bias == "flat" else 1.0 / self.bias

    def at_point(self, start, point, means):
        """Machine of a KernelPoint that was reached from another machine."""
        penalty = 0.5 * float(point.a @ point.Ka)
        penalty += 0.5 * (self.precision or 0.0) * point.b**2
        coef = start.result.coef
        if coef is not None:
            coef = (self.data.T @ point.a).reshape(coef.shape)
        # what the decision values ask for: sparse, and in the domain
        result = replace(start.result, lam=-point.slope, bias=point.b, coef=coef)
        return Machine(means, point.Ka + point.b, penalty, np.nan, result)

    def _product(self, a):
        """Kernel matrix times a (n,)."""
        if self._held:
            return self._held[0].product(a)
        if self._is_linear:
            return np.asarray(self.data @ (self.data.T @ a))
        inside = np.flatnonzero(a)
        if not len(inside):
            return np.zeros(len(a))
        kernel = self.estimator._kernel(self.data)
        return np.asarray(kernel.apply(inside, a[inside, None])[:, 0], dtype=float)

    def matrix(self):
        """Kernel matrix of all rows, (n, n)."""
        if self.estimator._has_kernel("precomputed"):
            return self.data
        everything = np.arange(self.data.shape[0])
        return self.estimator._kernel(self.data).block(everything, everything)

    def store(self, machine):
        """Fitted estimator of a machine."""
        model = copy.copy(self.estimator)
        b = np.array([float(machine.result.bias)])
        result = replace(machine.result, gap=machine.gap)
        given = self.labels.keep, self.X, self.origin
        model._store(result, result.lam[None, :], b, *given)
        model.loo_bound_ = np.nan
        return without_names(model)

    def share(self, first):
        """Hold the matrix of all rows once, with the machines of another label."""
        self._held = first._held

    def close(self):
        """Give memory back."""
        self._held.clear()


class SelectionMachines:
    """Trains the linear machine with switches of a MEDFeatureSelector.

    Parameters
    ----------
    estimator : MEDFeatureSelector
        Whose features are known.
    X : ndarray or CSR
        Its checked rows.
    labels : LabelPriors
    """

    linear = False

    def __init__(self, estimator, X, labels):
        self.estimator, self.labels = estimator, labels
        self.options = estimator._checked_options()
        margin = self.options["margin"]
        check_losses(margin)
        estimator.classes_ = labels.classes
        data = estimator._rows_to_fit(X, labels.keep)
        self.data, self.origin = near_zero(data, self.options["bias"])
        self.weight = labels.weight * margin.unit_weight(estimator.C)
        self.costs = LabelCosts(Rows.of(margin, self.weight), labels.half_odds)

    def train(self, p, before=None, loose=1.0):
        """Machine of label means p."""
        found = solve_selection(self.data, p, weight=self.weight, **self.options)
        result, inclusion = found
        f = self.data @ result.coef + result.bias
        return _certified(self.costs, p, f, result, inclusion)

    def store(self, machine):
        """Fitted estimator of a machine."""
        model = copy.copy(self.estimator)
        result = replace(machine.result, gap=machine.gap)
        given = machine.p * result.lam, self.labels.keep, self.origin
        model._store(result, machine.more, *given)
        model.loo_bound_ = np.nan
        return without_names(model)

    def share(self, first):
        """Nothing is held."""

    def close(self):
        """Nothing is held."""


class BlockMachines:
    """Trains the class models of a generative classifier.

    Priors of the classes are made once, of the rows with labels: the label means have
    no part in them. A row of which the label prior says little counts little.

    Parameters
    ----------
    estimator : GenerativeClassifier
        Whose features are known.
    X : ndarray
        Its checked rows.
    labels : LabelPriors
    """

    linear = False

    def __init__(self, estimator, X, labels):
        self.estimator, self.labels = estimator, labels
        margin, level, unit = estimator._checked_margin()
        check_losses(margin)
        estimator._check_parameters()
        tol, max_iter = v.check_stop(estimator.tol, estimator.max_iter)
        if estimator._by_training_errors():
            raise ValueError(
                "bias='train_error' counts errors, and labels are uncertain here; use "
                "bias='flat'."
            )
        estimator.classes_ = labels.classes
        data = estimator._learn_encoding(X[labels.keep])
        codes = np.where(labels.evidence == 0, -1, labels.evidence > 0)
        trust = labels.sample * np.abs(labels.evidence)
        self.blocks = estimator._class_blocks(data, codes, trust)
        estimator.level_ = float(self._level(level, codes, trust))
        self.margin = at_level(margin, estimator.level_)
        n = len(data)
        level = np.full(n, estimator.level_)
        rows = Rows.of(self.margin, unit * labels.weight, level)
        self.costs = LabelCosts(rows, labels.half_odds)
        self.options = {"tol": tol, "max_iter": max_iter, "callback": None}

    def _level(self, level, codes, trust):
        """The level given, or the one that labelled rows make."""
        if level is not None:
            return level
        known = np.flatnonzero(codes >= 0)
        none = np.zeros(len(codes))
        scores = np.column_stack([block.mean(none)[known] for block in self.blocks])
        pairs = ClassPairs(codes[known], 2, trust[known])
        return self.estimator._level_of(scores, pairs)

    def train(self, p, before=None, loose=1.0):
        """Machine of label means p."""
        pairs = self._pairs(p)
        with threads_of(getattr(self.estimator, "n_jobs", None)):
            maps = [sp.diags_array(q, format="csr") for q in (-p, p)]
            bias = ClassBias(self.estimator.bias, 2)
            blocks, maps, more = bias.problem(self.blocks, maps, pairs)
            result = self.estimator._solve(
                blocks,
                self.margin,
                pairs,
                maps=maps,
                **more,
                sample_weight=self.costs.rows.weight,
                level=self.costs.rows.q,
                **self.options,
            )
            result = bias.solved(result, pairs)
            beta = pairs.beta(result.lam)
            low, high = (
                block.mean(np.ascontiguousarray(beta[:, k]))
                for k, block in enumerate(result.blocks or self.blocks)
            )
        b = result.bias
        return _certified(self.costs, p, high - low + (b[1] - b[0]), result)

    def _pairs(self, p):
        codes = (self.labels.evidence > 0).astype(np.intp)
        trust = self.labels.sample * np.abs(self.labels.evidence)
        return SoftPairs(p, codes, trust)

    def store(self, machine):
        """Fitted estimator of a machine."""
        model = copy.copy(self.estimator)
        result = replace(machine.result, gap=machine.gap)
        blocks = result.blocks or self.blocks
        pairs = self._pairs(machine.p)
        model._store(result, blocks, pairs)
        model._store_support(result.lam, pairs, self.labels.keep)
        model.loo_bound_ = np.nan
        return without_names(model)

    def share(self, first):
        """Nothing is held."""

    def close(self):
        """Nothing is held."""


class SoftPairs(ClassPairs):
    """Constraints of two classes with label means for labels.

    Parameters
    ----------
    p : ndarray (n,)
    codes, weight : ndarray (n,)
        Classes and weights of the rows that count for the shares of the classes.
    """

    def __init__(self, p, codes, weight):
        super().__init__(codes, 2, weight)
        self.p = p

    def beta(self, lam):
        """Class coefficients (n, 2) of multipliers (n,)."""
        return np.column_stack([-self.p * lam, self.p * lam])

    def sparse_incidence(self, whole=False):
        """Columns (n, 1) of the first class, or (n, 2) of both."""
        both = sp.csr_array(np.column_stack([-self.p, self.p]))
        return both if whole else both[:, :1]


def _certified(costs, p, f, result, more=None):
    """Machine whose penalty follows from the certificate: primal less losses."""
    penalty = result.objective + result.gap - costs.loss(p, f)
    return Machine(p, f, penalty, float(result.gap), result, more)


def without_names(model):
    """The model without names of columns: who holds it has them."""
    vars(model).pop("feature_names_in_", None)
    return model
