"""One-against-one machines: a two-class machine for every pair of classes, and votes.

The rows of a pair are those of its two classes. Kernel values within a class serve all
pairs that the class is in; only the values between two classes are computed for each.

Coefficients are stored as in scikit-learn's SVC: support vectors lie class by class,
and row k of the coefficients of a class is its machine against the k-th of the others.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from maxent._optimize.rows import NEGATIVE, POSITIVE
from maxent._support.fitted import check_fitted
from maxent._support.results import (
    DualResult,
    Listener,
    Report,
    Status,
    relayed,
    store_certificate,
    tell,
)
from maxent._support.threads import (
    effective_threads,
    in_threads,
    single_threaded_blas,
)
from maxent.discrimination._class_rows import others_keep_the_machine
from maxent.discrimination._equal_rows import EqualRows
from maxent.discrimination._far_rows import at_zero
from maxent.discrimination.duals._signed_problem import SignedProblem, binary_problem
from maxent.discrimination.grams.gram_store import ClassGrams

_SCORES = 10_000_000  # values of pairs in memory at a time
_SHORT = 100  # rows of a pair up to which an interior point costs more than all else
_MANY_CLASSES = 10  # pairs of fewer take the time, and every digit, that it gives
_LONG = 2000  # rows of a pair whose solver looks whether it should stop


def pairs_of(n_classes):
    """Pairs (i, j) of classes, i < j; a positive score is one for j."""
    return list(combinations(range(n_classes), 2))


def votes(scores, n_classes):
    """Class scores (n, n_classes) from those of all pairs (n, n_pairs).

    The votes for each class, and between classes of equally many the sums of the
    scores, brought into (-1/3, 1/3).
    """
    total = np.zeros((len(scores), n_classes))
    confidence = np.zeros_like(total)
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        for_j = scores[:, k] > 0
        total[:, j] += for_j
        total[:, i] += ~for_j
        confidence[:, j] += scores[:, k]
        confidence[:, i] -= scores[:, k]
    with np.errstate(over="ignore"):  # scores of a damaged model: a sure one
        return total + confidence / (3.0 * (np.abs(confidence) + 1.0))


def pair_leads(scores, n_classes):
    """By how much each class wins over the others (n, n_classes), from pair scores.

    The least of its scores against them: a distance from the boundary in margin units.
    Where no class wins against all others, by its lead in votes.
    """
    least = np.full((len(scores), n_classes), np.inf)
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        least[:, j] = np.minimum(least[:, j], scores[:, k])
        least[:, i] = np.minimum(least[:, i], -scores[:, k])
    tied = least.max(axis=1) <= 0
    least[tied] = lead_over_others(votes(scores[tied], n_classes))
    return least


def lead_over_others(f):
    """Scores (n, m) of classes less the largest one of the other classes."""
    order = np.sort(f, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    return f - np.where(f == best, second, best)


class OneVsOneFit:
    """The machines of all pairs of classes, and what predictions need of them.

    Parameters
    ----------
    model : MEDClassifier
    data : ndarray or CSR (n, n_features), or the kernel matrix
    codes : ndarray of int (n,)
    n_classes : int
    margin : MarginPrior
    bias : "flat", float or None
    weight : ndarray (n,)
    tol : float

    Attributes
    ----------
    bias : ndarray (n_pairs,)
    coef : ndarray (n_pairs, n_features) or None
        Weights, for the linear kernel.
    loo_bound : float
        Share of rows with a multiplier: the others win all their votes without it. NaN
        where this does not hold for a pair.
    """

    def __init__(self, model, data, codes, n_classes, margin, bias, weight, tol):
        self.model, self.m, self.tol = model, n_classes, tol
        self.order = np.argsort(codes, kind="stable")
        self.codes = codes = codes[self.order]
        self.data = model._some_rows(data, self.order)
        self.margin, self.bias_prior = margin, bias
        # of all rows; level, rate and target are the same for each
        ones = np.ones(len(codes))
        self.rows = binary_problem(ones, margin, bias, weight[self.order])
        self.equal = None
        if not model._has_kernel("precomputed"):
            self.equal = EqualRows.of(self.data, self.rows, codes)
        if self.equal is not None:
            first, self.rows = self.equal.first, self.equal.problem
            self.data, codes = self.data[first], codes[first]
        self.ends = np.cumsum(np.bincount(codes, minlength=n_classes))
        pairs = len(pairs_of(n_classes))
        # of row t, the multiplier against the k-th of the other classes
        self.multipliers = np.zeros((n_classes - 1, len(codes)))
        self.bias, self.coef, self.loo_bound = np.zeros(pairs), None, np.nan
        if model._has_kernel("linear"):
            self.coef = np.zeros((pairs, self.data.shape[1]))

    def solve(self, callback):
        """DualResult of all pairs: sums of objectives, gaps and steps.

        Pairs are solved side by side where they share kernel values, unless a callback
        is to hear of them in their order.
        """
        model, pairs, grams = self.model, pairs_of(self.m), None
        threads = effective_threads(model.n_jobs) if callback is None else 1
        if self.coef is None or self._has_few_rows():
            kernel = model._kernel(self.data).held(model.cache_size)
            extra = 0 if self.bias_prior == "flat" else 1
            grams = ClassGrams(kernel, self.ends, model.cache_size, extra, threads)
        total, holds = nothing_solved(), True
        with single_threaded_blas():  # entered once for all pairs
            if grams is not None and grams.at_once > 1:
                found = self._side_by_side(pairs, grams)
            else:
                found = self._one_by_one(pairs, grams, callback, total)
            for result, bounded in found:
                add(total, result)
                holds &= bounded
                stop = self._asks_to_stop(callback, total)
                if stop or result.status is Status.STOPPED:
                    total.status, holds = Status.STOPPED, False
                    break
        if holds:
            self.loo_bound = float((self._of_all_rows() != 0).any(axis=0).mean())
        return total

    def _of_all_rows(self):
        """Multipliers of all rows, in the order of their classes."""
        if self.equal is None:
            return self.multipliers
        return self.equal.spread(self.multipliers)

    def _has_few_rows(self):
        """True if working sets are faster for every pair of a linear machine."""
        sizes = np.sort(np.diff(self.ends, prepend=0))
        many = self.m >= _MANY_CLASSES and self.model.solver == "auto"
        return many and sizes[-2:].sum() <= _SHORT

    def _one_by_one(self, pairs, grams, callback, total):
        """Yield the result of each pair, and whether it has a leave-one-out bound."""
        for k in range(len(pairs)):
            yield self._solve_pair(k, pairs[k], grams, _heard(callback, total))

    def _side_by_side(self, pairs, grams):
        """Solve pairs in threads of their own; a list as `_one_by_one` yields it."""
        found = [None] * len(pairs)

        def work(k, thread, stop):
            stopping = Listener(lambda report: stop.is_set())
            i, j = pairs[k]
            rows = sum(s.stop - s.start for s in (grams.slices[i], grams.slices[j]))
            heard = stopping if rows > _LONG else None
            found[k] = self._solve_pair(k, pairs[k], grams, heard, thread)

        in_threads(work, len(pairs), grams.at_once)
        return found

    def _solve_pair(self, k, pair, grams, callback, thread=0):
        """Machine of one pair, kept, and whether it has a leave-one-out bound."""
        i, j = pair
        one, other = (slice(*self._ends(c)) for c in pair)
        problem = self._problem(one, other)
        first = one.stop - one.start
        data = kernel = gram = None
        if self.coef is not None:
            data = self.model._some_rows(self.data, np.r_[one, other])
        if grams is not None:
            kernel, gram = grams.pair(i, j, thread)
        result = self.model._solve_rows(
            data, problem, self.tol, callback, kernel=kernel, gram=gram
        )
        self.multipliers[j - 1, one] = result.lam[:first]
        self.multipliers[i, other] = result.lam[first:]
        self.bias[k] = result.bias
        if self.coef is not None:
            found = result.coef
            self.coef[k] = result.lam @ data if found is None else found
        codes = problem.sides == POSITIVE
        spec = self.margin, self.bias_prior, problem.weight
        return result, others_keep_the_machine(result, codes, *spec)

    def _problem(self, one, other):
        """SignedProblem of the rows of two classes, the first on the negative side."""
        rows = self.rows
        weight = np.concatenate([rows.weight[one], rows.weight[other]])
        n = len(weight)
        sides = np.full(n, POSITIVE, dtype=np.int8)
        sides[: one.stop - one.start] = NEGATIVE
        alike = rows.level[:n], rows.rate[:n], weight, rows.target[:n]
        return SignedProblem(self.margin, *alike, sides, self.bias_prior)

    def _ends(self, c):
        return (self.ends[c - 1] if c else 0), self.ends[c]

    def _asks_to_stop(self, callback, total):
        """Report the pairs solved so far; whether a callback asks to stop."""
        if callback is None:
            return False
        return tell(
            callback,
            Report(
                total.n_iter,
                total.objective,
                total.gap,
                total.solver,
                total.relative_gap,
                self.tol,
                note=f"{len(total.history)} of {len(self.bias)} pairs",
                last=len(total.history) == len(self.bias),
                solution=lambda: total,
            ),
        )

    def store(self, model, result, keep, X, origin):
        """Set the fitted attributes of a model; `keep` are places of rows in X.

        `origin` is what the data are counted from, or None.
        """
        every = self._of_all_rows()
        inside = np.flatnonzero((every != 0).any(axis=0))
        model.support_ = keep[self.order[inside]]
        model.n_support_ = np.bincount(self.codes[inside], minlength=self.m)
        model.dual_coef_ = np.ascontiguousarray(every[:, inside])
        model.intercept_ = self.bias.copy()
        model._keep_rows(X)
        if self.coef is not None:
            model.coef_ = self.coef.copy()
            model.intercept_ = at_zero(model.intercept_, model.coef_, origin)
        store_certificate(model, result)


def nothing_solved():
    """DualResult of no problems, for :func:`add`."""
    return DualResult(
        np.empty(0), 0.0, 0.0, 0.0, 0, Status.CONVERGED, solver="pairs", unit=0.0
    )


def add(total, result):
    """Add the result of one problem to that of others it has nothing in common with.

    The status is the first that is not convergence; the optimality condition is that
    of the worst.
    """
    total.n_iter += result.n_iter
    total.objective += result.objective
    total.gap += result.gap
    total.unit += result.unit
    total.history.append((total.n_iter, total.objective, total.gap))
    if total.status is Status.CONVERGED:
        total.status = result.status
    if result.kkt_violation is not None:
        worst = total.kkt_violation or 0.0
        total.kkt_violation = max(worst, result.kkt_violation)
        total.kkt_tol = result.kkt_tol


def _heard(callback, total):
    """Callback for the solver of one pair, which counts on from those before."""
    if callback is None:
        return None
    done = replace(total)

    def change(report):
        return replace(
            report,
            n_iter=done.n_iter + report.n_iter,
            objective=done.objective + report.objective,
            gap=done.gap + report.gap,
            last=False,
            solution=None,
        )

    return relayed(callback, change)


def pair_scores(model, X, n_classes):
    """Scores of all pairs (n, n_pairs) without biases, by the kernel of the model."""
    ends = np.cumsum(model.n_support_)
    each = []
    for c in range(n_classes):
        part = slice(ends[c] - model.n_support_[c], ends[c])
        each.append(model._kernel_sums(X, part))
    out = np.empty((X.shape[0], len(pairs_of(n_classes))))
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        out[:, k] = each[i][:, j - 1] + each[j][:, i]
    return out


def rows_at_once(n_classes):
    """Rows whose scores for all pairs are in memory together."""
    return max(1, _SCORES // n_classes**2)


def check_support_counts(model, n_classes):
    """Refuse counts of support vectors that do not fit the others."""
    check_fitted("n_support_", model.n_support_, (n_classes,), kind="iu")
    total, held = int(model.n_support_.sum()), len(model.support_)
    if total != held or (model.n_support_ < 0).any():
        raise ValueError(
            f"the fitted model is inconsistent: n_support_ adds up to {total}, and "
            f"there are {held} support vectors. Fit it again."
        )
