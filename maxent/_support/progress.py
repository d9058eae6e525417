"""Progress of a fit: lines of `verbose`, the logger, and scikit-learn's callbacks.

The logger "maxent" gets what `verbose` prints, whether it prints or not: how fits ended
at level INFO, what is reached on the way at DEBUG. It has no handler that shows it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import numpy as np
import sklearn

from maxent._support.compiling import announced
from maxent._support.results import DualResult, Listener, Report, gap_text

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9
    CallbackSupportMixin, with_callbacks = object, None

_Fit = TypeVar("_Fit", bound=Callable[..., Any])
_LOG = logging.getLogger("maxent")
_LOG.addHandler(logging.NullHandler())
# seconds between two lines: a twentieth of the time so far, within these bounds
_SHORTEST, _LONGEST = 0.1, 10.0


class CallbacksMixin(CallbackSupportMixin):
    """Mixin of iterative estimators: callbacks of scikit-learn >= 1.9."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks that the next fits report to.

        Needs scikit-learn 1.9 or later. A callback whose ``on_fit_task_end`` returns
        True ends the fit: the best point until then is kept, and ``converged_`` is
        False.

        Parameters
        ----------
        *callbacks : callback instances
            Such as :class:`sklearn.callback.ScoringMonitor` or
            :class:`sklearn.callback.ProgressBar`, which needs rich too
            (``pip install "maxent[progress]"``); none removes those set before.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        RuntimeError
            If scikit-learn is older.
        """
        if with_callbacks is not None:
            super().set_callbacks(*callbacks)
        elif callbacks:
            raise RuntimeError(
                f"callbacks need scikit-learn >= 1.9, and {sklearn.__version__} is "
                "installed; pip install 'maxent[progress]' updates it, or use "
                "verbose=True to see the progress."
            )
        return self


def with_progress(fit: _Fit) -> _Fit:
    """Decorate `fit` so that it reports to `verbose` and to callbacks.

    Inside, :func:`progress_of` gives the callback for the solver.
    """

    names = tuple(inspect.signature(fit).parameters)[1:]

    @functools.wraps(fit)
    def fit_with_progress(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args), **kwargs)
        progress = self._progress = Progress(self, given)
        try:
            progress.begin()
            with announced(self.verbose):
                fit(self, *args, **kwargs)
            progress.end()
        finally:
            del self._progress
            progress.close()
        return self

    return cast(_Fit, fit_with_progress)


def progress_of(
    estimator: Any,
    store: Callable[[Any, Any], object] | None = None,
    *,
    unit: float = 1.0,
    task: str = "iteration",
) -> Listener | None:
    """Callback for the solver of an estimator in `fit`; None if none is set.

    Parameters
    ----------
    estimator : estimator
        Whose `fit` is decorated with :func:`with_progress`.
    store : callable(model, solution), optional
        Sets the fitted attributes of a copy of the estimator from a solution that the
        solver has reached; called only for callbacks that ask for a fitted estimator.
    unit : float, default=1
        Unit in which the solver has the objective and the gap.
    task : str, default="iteration"
        Name of the subtask of a report.
    """
    progress = vars(estimator).get("_progress")
    if progress is None:
        return None
    return cast(Listener | None, progress.callback(store, unit=unit, task=task))


class Progress:
    """The progress of one fit.

    Parameters
    ----------
    estimator : estimator
    given : dict
        X, and y and sample_weight if there are any, as `fit` got them.
    """

    def __init__(self, estimator: Any, given: dict[str, Any]):
        self.estimator, self.given = estimator, given
        self.lines: Lines | None = None
        if estimator.verbose or _LOG.isEnabledFor(logging.INFO):
            self.lines = Lines(type(estimator).__name__, bool(estimator.verbose))
        self.tasks: Tasks | None = None
        if hasattr(estimator, "_skl_callbacks"):
            self.tasks = Tasks(estimator, given)

    def __reduce__(self) -> Any:
        return type(None), ()  # copies of an estimator in `fit` have no progress

    @property
    def observed(self) -> bool:
        """True if a callback is set or lines on the way are printed or logged."""
        lines = self.lines is not None and self.lines.on_the_way
        return lines or self.tasks is not None

    def begin(self) -> None:
        if self.tasks is not None:
            self.tasks.begin()

    def callback(
        self,
        store: Callable[[Any, Any], object] | None = None,
        *,
        unit: float = 1.0,
        task: str = "iteration",
    ) -> Listener | None:
        """Return the callback for solvers, or None if nothing is reported."""
        if not self.observed:
            return None

        def hear(report: Report) -> bool:
            if self.lines is not None and self.lines.on_the_way:
                J, gap = report.objective * unit, report.gap * unit
                self.lines.show(replace(report, objective=J, gap=gap))
            return self.tasks is not None and self.tasks.step(task, report, store)

        if self.tasks is not None:
            self.tasks.open(task)
        return Listener(hear)

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """Named subtask around the reports inside."""
        if self.tasks is not None:
            self.tasks.open(name, max_subtasks=None)
        yield
        if self.tasks is not None:
            self.tasks.leave()

    def say(self, text: str) -> None:
        """Print a line of another kind."""
        if self.lines is not None:
            self.lines.print(text)

    def mention(self, text: str) -> None:
        """Print a line of another kind, unless the line before is recent."""
        if self.lines is not None and self.lines.due:
            self.lines.print(text)

    @property
    def stopped(self) -> bool:
        """True if a callback has asked to stop."""
        return self.tasks is not None and self.tasks.stopped

    def ended(self, result: DualResult) -> None:
        """Note how a dual ended, for the closing line."""
        gap = gap_text(result.relative_gap, 0.0)
        text = f"objective {result.objective:.6g}, relative gap {gap}"
        self.closing(result.status, result.solver, result.n_iter, text)

    def closing(self, status: str, solver: str, n_iter: int, text: str) -> None:
        """Note the closing line."""
        if self.lines is not None:
            count = f"{n_iter} iteration{'s' * (n_iter != 1)}"
            self.lines.last = f"{status} after {count} of {solver}: {text}"

    def end(self) -> None:
        """End all tasks, and print the closing line."""
        if self.lines is not None:
            self.lines.print(self.lines.last, logging.INFO)
        if self.tasks is not None:
            self.tasks.end()

    def close(self) -> None:
        """Tear the callbacks down, whether the fit has ended or failed."""
        if self.tasks is not None:
            _teardown(self.estimator)


def _nothing(estimator: Any) -> None:
    pass


# the decorator calls `teardown` of the callbacks as the function returns
_teardown = _nothing if with_callbacks is None else with_callbacks(_nothing)


class Lines:
    """Lines of progress, at most ten a second and ever fewer.

    On standard output if they are `printed`, and to the logger.
    """

    def __init__(self, name: str, printed: bool = True):
        self.name, self.start = name, time.perf_counter()
        self.printed = printed
        self.next = 0.0  # seconds after the start
        self.last = "done"  # the closing line

    @property
    def on_the_way(self) -> bool:
        """True if lines before the closing one are printed or logged."""
        return self.printed or _LOG.isEnabledFor(logging.DEBUG)

    def print(self, text: str, level: int = logging.DEBUG) -> None:
        """Print and log a text with the time since the beginning of the fit."""
        now = time.perf_counter() - self.start
        self.next = now + min(max(now / 20.0, _SHORTEST), _LONGEST)
        if self.printed:
            print(f"{self.name} {now:8.2f} s  {text}", flush=True)
        _LOG.log(level, "%s %8.2f s  %s", self.name, now, text)

    @property
    def due(self) -> bool:
        """True if enough time has passed since the last line."""
        return time.perf_counter() - self.start >= self.next

    def show(self, report: Report) -> None:
        """Print a report, unless the line before is recent."""
        if self.due:
            where = f"{report.solver} iteration {report.n_iter}"
            self.print(f"{where}: {_state(report)}")


def _state(report: Report) -> str:
    if np.isnan(report.objective):
        return "not certified yet"
    if np.isinf(report.objective):
        return "no feasible point yet"
    reached = f"{report.measure} {report.reached:.1e} (tol {report.tol:g})"
    note = f", {report.note}" if report.note else ""
    return f"objective {report.objective:.6g}, {reached}{note}"


class Tasks:
    """Tasks of a fit, for the callbacks: the fit, groups in it, and their reports.

    A report ends the task that has been open since the one before, so that its time is
    that of the work; the next begins at once unless the method ends.
    """

    def __init__(self, estimator: Any, given: dict[str, Any]):
        self.estimator = estimator
        weight = given.get("sample_weight")
        self.data = {
            "X": given.get("X"),
            "y": given.get("y"),
            "metadata": None if weight is None else {"sample_weight": weight},
        }
        self.contexts: list[Any] = []  # from the root to the task at work
        self.stopped = False

    def begin(self) -> None:
        """Begin the task of the whole fit."""
        root = self.estimator._init_callback_context(max_subtasks=None)
        self._begin(root)

    def _begin(self, context: Any) -> None:
        self.contexts.append(context)
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def _end(self, attributes: Any = None) -> None:
        context = self.contexts.pop()
        self.stopped |= context.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=attributes,
            **self.data,
        )

    def open(self, name: str, max_subtasks: int | None = 0) -> None:
        """Begin a subtask of the innermost group."""
        self._end_leaf()
        context = self.contexts[-1]
        self._begin(context.subcontext(task_name=name, max_subtasks=max_subtasks))

    def _end_leaf(self) -> None:
        """End a task that has begun and has not reported."""
        if self.contexts[-1].max_subtasks == 0:
            self._end()

    def step(
        self,
        task: str,
        report: Report,
        store: Callable[[Any, Any], object] | None,
    ) -> bool:
        """End the current task with a report; true if a callback asks to stop."""
        if self.contexts[-1].max_subtasks != 0:
            self.open(task)
        attributes = None
        if store is not None and report.solution is not None:
            attributes = functools.partial(self._attributes, report.solution, store)
        self._end(attributes)
        if not (self.stopped or report.last):
            self.open(task)
        return self.stopped

    def _attributes(
        self, solution: Callable[[], Any], store: Callable[[Any, Any], object]
    ) -> dict[str, Any]:
        """Return the fitted attributes that belong to a solution."""
        before = vars(self.estimator)
        model = copy.copy(self.estimator)
        model._progress = None
        store(model, solution())
        return {k: v for k, v in vars(model).items() if before.get(k, model) is not v}

    def leave(self) -> None:
        """End the innermost group."""
        self._end_leaf()
        self._end()

    def end(self) -> None:
        """End the task of the whole fit; the estimator is fitted."""
        self._end_leaf()
        self._end({})
