"""Outlier detection with hidden variables: rounds of a dual and of posteriors.

With posteriors Q_t of the hidden variables of every datum, the constraint

    E_P[ sum_h Q_t(h) log p(x_t, h | theta) ] + H(Q_t) >= gamma_t

implies the one on the log-likelihood itself, whose lower bound the left side is. A
round solves the dual of these constraints at fixed Q, of objective D, and then sets
every Q_t to its maximiser under the new P; D never rises (Theorem 6). Several starts,
as D is not convex in P and Q together.

Source: Jaakkola, Meila & Jebara (1999), section 4.1, eqs. (47)-(50).
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from maxent._support.processes import spread
from maxent._support.remedies import SCALE_FEATURES
from maxent._support.results import DualResult, Monitor, Report, Status, tell
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import Callback, FloatArray
from maxent._support.validation import user_stacklevel
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.margins.base import MarginPrior
from maxent.families.priors.block import Block
from maxent.models.em import maximize_by_em, relative_change

_BASELINE_TOL = 1e-6  # of the Bayes posteriors that rounds start from
_BASELINE_STEPS = 500
_COARSE = 1e-4  # tolerance of the first rounds of several starts
_LOOSE = 1e-2 * _COARSE  # relative gap of their duals
_NEAR = 1e-3  # relative distance from the least divergence that more rounds may cross
_WARM_STEPS = 20  # of Newton from the round before, which takes 1 to 3 where it suits


@dataclass
class Hidden:
    """Posteriors of the hidden variables, as one distribution over models gives them.

    Attributes
    ----------
    bound : ndarray (n,)
        Lower bounds of the expected log-likelihoods, in the unit of the constraints.
    entropy : ndarray (n,)
        Entropies H(Q_t), in the same unit.
    expected : object
        What the blocks of the complete data need: expected statistics.
    """

    bound: FloatArray
    entropy: FloatArray
    expected: Any


class LatentProblem(ABC):
    """A model with hidden variables, bound to data.

    Attributes
    ----------
    n : int
        Number of data.
    largest : float
        Upper bound of all log-likelihoods.
    """

    n: int
    largest: float

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Hidden:
        """Random posteriors, different ones for the hidden values."""

    @abstractmethod
    def blocks(self, hidden: Hidden) -> tuple[list[Block], list[Any]]:
        """Blocks of the complete data, and the maps of data weights to them."""

    @abstractmethod
    def hidden(self, blocks: list[Block], weights: list[FloatArray]) -> Hidden:
        """Best posteriors of the hidden variables, at weights of the blocks."""

    @abstractmethod
    def posterior(self, blocks: list[Block], weights: list[FloatArray]) -> Any:
        """Distribution over models at these weights, as an estimator keeps it."""


def weights_of(maps: list[Any], lam: FloatArray) -> list[FloatArray]:
    """Weights of the rows of every block."""
    return [A @ lam for A in maps]


# -- the Bayes posterior: every datum with its own weight -----------------------------
@dataclass
class Baseline:
    """A variational Bayes posterior: data of given weights, no constraints."""

    objective: float
    hidden: Hidden
    posterior: Any


def bayes(
    problem: LatentProblem,
    start: Hidden,
    weight: FloatArray,
    callback: Callable[[int, float, float], object] | None = None,
) -> Baseline:
    """Variational Bayes from a start: the largest bound of the evidence near it."""

    def step(hidden: Hidden) -> tuple[float, Hidden]:
        blocks, maps = problem.blocks(hidden)
        own = weights_of(maps, weight)
        gain = sum(b.log_partition(a) for b, a in zip(blocks, own, strict=True))
        value = float(weight @ hidden.entropy) + float(gain)
        return value, problem.hidden(blocks, own)

    with single_threaded_blas():
        hidden, result = maximize_by_em(
            step,
            [start],
            tol=_BASELINE_TOL,
            max_iter=_BASELINE_STEPS,
            change=lambda a, b: relative_change(a.entropy, b.entropy),
            callback=callback,
        )
        blocks, maps = problem.blocks(hidden)
        own = weights_of(maps, weight)
        posterior = problem.posterior(blocks, own)
        return Baseline(result.objective, problem.hidden(blocks, own), posterior)


def different(found: Sequence[Baseline]) -> list[Baseline]:
    """Baselines by falling objective, those that agree with an earlier one left out.

    They agree if they give every datum the same bound: numbers of hidden values, which
    any permutation may change, do not count.
    """
    kept: list[Baseline] = []
    for one in sorted(found, key=lambda one: -one.objective):
        bound = one.hidden.bound
        room = 1e-3 * (1.0 + float(np.abs(bound).max()))
        if all(np.abs(bound - k.hidden.bound).max() > room for k in kept):
            kept.append(one)
    return kept


# -- rounds ---------------------------------------------------------------------------
@dataclass
class RoundSettings:
    """What all starts share.

    Attributes
    ----------
    margin : MarginPrior
    level : float
        In the unit of the constraints.
    weight : ndarray (n,)
        Weights of the constraints.
    tol : float
        A start ends once a round lowers the divergence by at most ``tol * (1 + D)``.
    max_rounds : int
    gap_tol : float
        Relative duality gap of the dual of a round.
    max_iter : int
        Bound on the steps of the dual of a round.
    """

    margin: MarginPrior
    level: float
    weight: FloatArray
    tol: float
    max_rounds: int
    gap_tol: float
    max_iter: int


@dataclass
class LatentResult:
    """How the rounds from one start ended.

    Attributes
    ----------
    dual : DualResult
        Of the last round, but for `n_iter` and `history`, which are of rounds: the
        divergence and its decrease; `status` is that of the rounds too.
    posterior : object
        Distribution over models.
    hidden : Hidden
        Posteriors of the hidden variables that the last dual was given.
    blocks : list of Block
    weights : list of ndarray
        Of the last dual; they give the posteriors of the hidden variables under P.
    """

    dual: DualResult
    posterior: Any
    hidden: Hidden
    blocks: list[Block]
    weights: list[FloatArray]


class _Rounds(Monitor):
    """Record of divergences; `record` takes the decrease in the place of the gap."""

    def _meets(self, certified):
        return certified.gap <= self.tol * (1.0 + max(certified.objective, 0.0))

    def rank(self, certified):
        return certified.objective

    def report(self, n_iter, objective=np.nan, gap=np.nan, certified=None):
        if self.callback is None:
            return
        report = Report(
            n_iter,
            objective,
            gap,
            self.solver,
            gap / (1.0 + max(objective, 0.0)),
            self.tol,
            measure="relative decrease",
            last=self._met,
            solution=lambda: certified.point.result(Status.STOPPED, self.history),
        )
        self.stopping |= tell(self.callback, report)


def descend(
    problem: LatentProblem,
    start: Hidden | LatentResult,
    settings: RoundSettings,
    callback: Callback | None = None,
) -> LatentResult:
    """Rounds until the divergence settles.

    They begin with posteriors of the hidden variables, or with the last of the rounds
    that have ended with larger tolerances.
    """
    with single_threaded_blas():  # once: entering it costs a tenth of a short round
        return _descend(problem, start, settings, callback)


def _descend(problem, hidden, settings, callback):
    monitor = _Rounds(settings.tol, callback, solver="rounds")
    status, before, lam = Status.MAX_ITER, math.inf, None
    if isinstance(hidden, LatentResult):
        *monitor.history, (_, objective, fall) = hidden.dual.history
        hidden, lam, before = hidden.hidden, hidden.dual.lam, objective + fall
    for n_round in range(len(monitor.history) + 1, settings.max_rounds + 1):
        point = _one_round(problem, hidden, settings, lam)
        dual, lam = point.dual, point.dual.lam
        # the last P at the new Q: no optimum of the new dual is above it
        if monitor.record(n_round, dual.objective, before - dual.objective, point):
            status = monitor.status
            break
        before = dual.objective + dual.gap
        if n_round < settings.max_rounds:
            hidden = problem.hidden(point.blocks, point.weights)
    return point.result(status, monitor.history)


def _one_round(problem, hidden, settings, init):
    """The dual at fixed posteriors, from the multipliers of the round before."""
    blocks, maps = problem.blocks(hidden)
    dual = _solve(blocks, maps, settings, settings.level - hidden.entropy, init)
    return _Round(problem, hidden, blocks, weights_of(maps, dual.lam), dual)


def _solve(blocks, maps, settings, level, init):
    """The dual of a round; near the optimum a Newton step or two will do."""

    def solve(**options):
        return solve_blocks(
            blocks,
            maps,
            settings.margin,
            sample_weight=settings.weight,
            level=level,
            tol=settings.gap_tol,
            init=init,
            **options,
        )

    potential = settings.margin.unit_potential
    if init is not None and potential.finite_at_zero and potential.finite_loss:
        steps = min(_WARM_STEPS, settings.max_iter)
        dual = solve(solver="newton", max_iter=steps)
        if dual.converged:
            return dual
    return solve(max_iter=settings.max_iter)


@dataclass
class _Round:
    """The end of a round, and what a fit that stops there returns."""

    problem: LatentProblem
    hidden: Hidden
    blocks: list[Block]
    weights: list[FloatArray]
    dual: DualResult

    def result(self, status, history):
        with single_threaded_blas():
            posterior = self.problem.posterior(self.blocks, self.weights)
        if status is Status.CONVERGED and not self.dual.converged:
            status = self.dual.status
        dual = replace(
            self.dual,
            n_iter=history[-1][0],
            status=status,
            solver="rounds",
            history=list(history),
        )
        return LatentResult(dual, posterior, self.hidden, self.blocks, self.weights)


# -- starts ---------------------------------------------------------------------------
def baselines(
    problem: LatentProblem,
    rngs: Sequence[np.random.Generator],
    weight: FloatArray,
    n_jobs: int | None,
    progress: Any = None,
) -> list[Baseline]:
    """Bayes posteriors from random starts, the best first, without repetitions.

    In one process `progress` hears of the steps.
    """
    from joblib import effective_n_jobs

    if effective_n_jobs(n_jobs) > 1 and len(rngs) > 1:
        tasks = [(problem, rng, weight) for rng in rngs]
        return different(list(spread(_baseline, tasks, n_jobs)))
    found = []
    for number, rng in enumerate(rngs, 1):
        heard = None
        if progress is not None:
            heard = partial(_mention, progress, f"{number} of {len(rngs)}")
        found.append(_baseline(problem, rng, weight, heard))
    return different(found)


def _baseline(problem, rng, weight, callback=None):
    return bayes(problem, problem.start(rng), weight, callback)


def _mention(progress, start, n_iter, objective, gain):
    progress.mention(
        f"start {start}: step {n_iter} of the Bayes posterior, bound {objective:.6g}"
    )


def best_descent(
    problem: LatentProblem,
    starts: Sequence[Baseline],
    settings: RoundSettings,
    n_jobs: int | None,
    progress: Any,
    store: Any,
) -> tuple[LatentResult, FloatArray]:
    """Least divergence over the starts, and that of each.

    All take rounds until these lower it by less than `_COARSE`; only those that are
    near the least one then go on to the tolerance asked for, which on plateaus takes
    most of the rounds: short runs before long ones, as Biernacki, Celeux & Govaert
    (2003) have it for EM. With several processes `progress` hears of whole starts only.
    """
    race = len(starts) > 1 and settings.tol < _COARSE
    first = settings
    if race:
        first = replace(settings, tol=_COARSE, gap_tol=max(settings.gap_tol, _LOOSE))
    run = _Starts(problem, n_jobs, progress, store)
    results = run([one.hidden for one in starts], first)
    divergences = np.array([one.dual.objective for one in results])
    if race and not progress.stopped:
        best = divergences.min()
        going = [
            k
            for k, one in enumerate(results)
            if one.dual.status is Status.CONVERGED
            and divergences[k] <= best + _NEAR * (1.0 + abs(best))
        ]
        for k, one in zip(going, run([results[k] for k in going], settings)):
            results[k], divergences[k] = one, one.dual.objective
    return results[int(np.argmin(divergences))], divergences


@dataclass
class _Starts:
    """Rounds from several starts, one after the other or in several processes."""

    problem: LatentProblem
    n_jobs: int | None
    progress: Any
    store: Any

    def __call__(self, starts, settings):
        """LatentResult of each start, or of those until a callback stops the fit."""
        progress, results = self.progress, []
        found = self._found(starts, settings)
        for number, _ in enumerate(starts, 1):
            with progress.group("start") if len(starts) > 1 else nullcontext():
                results.append(next(found))
            progress.say(f"{number} of {len(starts)} starts have ended")
            if progress.stopped:
                break
        found.close()
        return results

    def _found(self, starts, settings):
        from joblib import effective_n_jobs

        problem = self.problem
        if effective_n_jobs(self.n_jobs) > 1 and len(starts) > 1:
            tasks = [(problem, start, settings) for start in starts]
            return spread(descend, tasks, self.n_jobs)
        return (
            descend(
                *(problem, start, settings),
                self.progress.callback(self.store, task="round"),
            )
            for start in starts
        )


def warn_of_rounds(name: str, result: LatentResult, settings: RoundSettings) -> None:
    """One ConvergenceWarning that says how far the rounds came and what to change."""
    from sklearn.exceptions import ConvergenceWarning

    dual = result.dual
    if dual.status in (Status.CONVERGED, Status.STOPPED):
        return
    rounds = len(dual.history)
    if dual.relative_gap > settings.gap_tol:
        what = (
            f"the dual of round {rounds} has a relative gap of "
            f"{dual.relative_gap:.2e}, {settings.gap_tol:g} asked; raise max_iter or "
            f"tol, or {SCALE_FEATURES}"
        )
    else:
        fall = dual.history[-1][2] / (1.0 + max(dual.objective, 0.0))
        what = (
            f"round {rounds}, the last one, lowered the divergence by {fall:.2e} of "
            f"itself, tol={settings.tol:g} asked; allow more rounds or raise the "
            "tolerance of the rounds"
        )
    warnings.warn(
        f"{name} has not converged: {what}.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
