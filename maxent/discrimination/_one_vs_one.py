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
import scipy.sparse as sp

from maxent._core.machines.pair_votes import pair_votes
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
from maxent.discrimination.duals._short_pairs import SHORT, ShortPairs
from maxent.discrimination.duals._signed_problem import SignedProblem, binary_problem
from maxent.discrimination.grams.gram_store import ClassGrams

_VALUES = 5_000_000  # kernel values, or scores of pairs, in memory at a time
_LONG = 2000  # rows of a pair whose solver looks whether it should stop


def pairs_of(n_classes):
    """Pairs (i, j) of classes, i < j; a positive score is one for j."""
    return list(combinations(range(n_classes), 2))


def pair_leads(scores, votes):
    """By how much each class wins over the others (n, n_classes), from pair scores.

    The least of its scores against them: a distance from the boundary in margin units.
    Where no class wins against all others, by its lead in votes.
    """
    least = np.full(votes.shape, np.inf)
    for k, (i, j) in enumerate(pairs_of(votes.shape[1])):
        least[:, j] = np.minimum(least[:, j], scores[:, k])
        least[:, i] = np.minimum(least[:, i], -scores[:, k])
    tied = least.max(axis=1) <= 0
    least[tied] = lead_over_others(votes[tied])
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
        total, holds = nothing_solved(), True
        left = list(enumerate(pairs_of(self.m)))
        with single_threaded_blas():  # entered once for all pairs
            kernel = self._shared_kernel()
            if kernel is not None:
                left, holds = self._solve_short(kernel, left, callback, total)
            if left and total.status is not Status.STOPPED:
                holds &= self._solve_others(kernel, left, callback, total)
        if holds and total.status is not Status.STOPPED:
            self.loo_bound = float((self._of_all_rows() != 0).any(axis=0).mean())
        return total

    def _shared_kernel(self):
        """Kernel of all rows; None where linear machines of pairs do without."""
        model, sizes = self.model, np.sort(np.diff(self.ends, prepend=0))
        short = model.solver == "auto" and sizes[-2:].sum() <= SHORT
        if self.coef is not None and not short:
            return None
        return model._kernel(self.data).held(model.cache_size)

    def _solve_short(self, kernel, pairs, callback, total):
        """Solve pairs of few rows: those left, and whether there is a bound of all."""
        model, threads = self.model, effective_threads(self.model.n_jobs)
        spec = kernel, self.ends, self.rows, self.tol
        asked = model.solver in ("auto", "smo")
        if not (asked and ShortPairs.serves(*spec, model.cache_size)):
            return pairs, True
        short, left, start = ShortPairs(*spec, model.max_iter, threads), [], 0
        holds = bool(np.isfinite(self.margin.prior_mean))
        for i in range(self.m - 1):
            found = short.against_later(i, self.multipliers)
            these = pairs[start : start + len(found)]
            start += len(found)
            solved = found[:, 0] > 0
            left += [pair for pair, done in zip(these, solved, strict=True) if not done]
            holds &= bool((found[solved, 6] > 0).all())
            self.bias[[k for k, _ in these]] = found[:, 1]
            add_solved(total, found[solved], self.tol)
            if self._asks_to_stop(callback, total):
                total.status = Status.STOPPED
                break
        if self.coef is not None:
            self._add_weights()
        return left, holds

    def _add_weights(self):
        """Weights of the pairs solved so far, for the linear kernel."""
        each = [
            self.multipliers[:, lo:hi] @ self.data[lo:hi]
            for lo, hi in (self._ends(c) for c in range(self.m))
        ]
        for k, (i, j) in enumerate(pairs_of(self.m)):
            self.coef[k] = each[i][j - 1] + each[j][i]

    def _solve_others(self, kernel, pairs, callback, total):
        """Solve pairs each by the solver that suits it; whether there is a bound."""
        model, grams, holds = self.model, None, True
        threads = effective_threads(model.n_jobs) if callback is None else 1
        if kernel is not None:
            extra = 0 if self.bias_prior == "flat" else 1
            grams = ClassGrams(kernel, self.ends, model.cache_size, extra, threads)
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
        return holds

    def _of_all_rows(self):
        """Multipliers of all rows, in the order of their classes."""
        if self.equal is None:
            return self.multipliers
        return self.equal.spread(self.multipliers)

    def _one_by_one(self, pairs, grams, callback, total):
        """Yield the result of each pair, and whether it has a leave-one-out bound."""
        for k, pair in pairs:
            yield self._solve_pair(k, pair, grams, _heard(callback, total))

    def _side_by_side(self, pairs, grams):
        """Solve pairs in threads of their own; a list as `_one_by_one` yields it."""
        found = [None] * len(pairs)

        def work(at, thread, stop):
            stopping = Listener(lambda report: stop.is_set())
            k, (i, j) = pairs[at]
            rows = sum(s.stop - s.start for s in (grams.slices[i], grams.slices[j]))
            heard = stopping if rows > _LONG else None
            found[at] = self._solve_pair(k, (i, j), grams, heard, thread)

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


def add_solved(total, found, kkt_tol):
    """As :func:`add`, of pairs that have converged, by what ShortPairs says of them."""
    if not len(found):
        return
    steps = total.n_iter + np.cumsum(found[:, 5]).astype(int)
    objective = total.objective + np.cumsum(found[:, 2])
    gap = total.gap + np.cumsum(found[:, 3])
    total.history += zip(steps.tolist(), objective.tolist(), gap.tolist(), strict=True)
    total.n_iter, total.objective, total.gap = total.history[-1]
    total.unit += len(found)
    worst = total.kkt_violation or 0.0
    total.kkt_violation = max(worst, float(found[:, 4].max()))
    total.kkt_tol = kkt_tol


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


class PairDecisions:
    """Decisions of the machines of all pairs of a fitted model.

    Parameters
    ----------
    model : MEDClassifier
        Its fitted arrays are checked.
    n_classes : int
    """

    def __init__(self, model, n_classes):
        self.model, self.m = model, n_classes
        self.threads = effective_threads(model.n_jobs)
        self.first, self.coef = np.zeros(n_classes + 1, dtype=np.intp), None
        if not model._has_kernel("linear"):
            self.first[1:] = np.cumsum(model.n_support_)
            self.coef = np.ascontiguousarray(model.dual_coef_, dtype=np.float64)

    def votes(self, X, scores=None):
        """Votes (n, n_classes) at rows; `scores` (n, n_pairs) takes those of the pairs.

        The votes for each class, and between classes of equally many the sums of the
        scores, brought into (-1/3, 1/3).
        """
        out = np.empty((X.shape[0], self.m))
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            for part, values in self._values(X):
                held = None if scores is None else scores[part]
                if not self._count(values, out[part], held):
                    self.model._refuse_overflow(X)
        return out

    def _values(self, X):
        """Blocks of rows and their kernel values, or their scores without biases."""
        if self.coef is not None:
            yield from self.model._kernel_values(X).blocks(_VALUES)
            return
        step = max(1, _VALUES // self.m**2)
        for lo in range(0, X.shape[0], step):
            part = slice(lo, lo + step)
            yield part, np.asarray(X[part] @ self.model.coef_.T)

    def _count(self, values, votes, scores):
        """Fill the votes and the scores of one block; True if these are finite."""
        if sp.issparse(values):
            values = values.toarray()
        bias = np.ascontiguousarray(self.model.intercept_, dtype=np.float64)
        options = self.first, self.coef, bias, votes, scores, self.threads
        return pair_votes(np.asarray(values, dtype=np.float64), *options)


def check_support_counts(model, n_classes):
    """Refuse counts of support vectors that do not fit the others."""
    check_fitted("n_support_", model.n_support_, (n_classes,), kind="iu")
    total, held = int(model.n_support_.sum()), len(model.support_)
    if total != held or (model.n_support_ < 0).any():
        raise ValueError(
            f"the fitted model is inconsistent: n_support_ adds up to {total}, and "
            f"there are {held} support vectors. Fit it again."
        )
