"""Independent tasks, in joblib's processes where these save more than they cost."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxent._support.threads import threads_of

_COLD, _WARM = 1.0, 0.15  # s that processes must save, not yet running or at rest
_KEPT = 250.0  # s that idle processes are sure to be kept


class _Pool:
    """What is known of joblib's processes.

    They are started once they would have saved as much as their start takes: then no
    sequence of calls takes more than about twice as long as with the best choice.
    """

    def __init__(self):
        self.last_use, self.missed = -_KEPT, 0.0

    def cost(self):
        """Seconds that processes must save."""
        if time.monotonic() - self.last_use < _KEPT:
            return _WARM
        return max(_COLD - self.missed, _WARM)

    def used(self):
        self.last_use, self.missed = time.monotonic(), 0.0

    def spared(self, seconds):
        """Note what they would have saved in a call that went without them."""
        if seconds > _WARM:
            self.missed += seconds


_pool = _Pool()


def spread(
    function: Callable[..., Any], tasks: Sequence[Any], n_jobs: int | None
) -> Iterator[Any]:
    """Yield ``function(*task)`` of all tasks, in their order.

    The first task begins here. Once tasks turn out so long that processes would save
    more than they cost, all that are left go there. Results must not depend on where
    they are computed.

    Parameters
    ----------
    function : callable
        To be pickled, as tasks and results.
    tasks : sequence of tuple
    n_jobs : int or None
        As for joblib, whose context managers are heeded.
    """
    from joblib import effective_n_jobs

    jobs = min(effective_n_jobs(n_jobs), len(tasks))
    if jobs < 2:
        for task in tasks:
            yield function(*task)
        return
    saved = 1.0 - 1.0 / jobs  # of the time of tasks
    worth = _pool.cost() / saved
    others = _Others(function, tasks, n_jobs, worth / (len(tasks) - 1))
    others.start()
    try:
        spent = 0.0
        for k, task in enumerate(tasks):
            if k and others.begins(k, spent / k * (len(tasks) - k) > worth):
                break
            start = time.perf_counter()
            with threads_of(1):
                found = function(*task)
            spent += time.perf_counter() - start
            yield found
        # no `yield from`: that would close results in this thread
        for found in others.results():
            yield found
        if others.began:
            _pool.used()
        else:
            _pool.spared(spent * saved)
    finally:
        others.end()


class _Others(threading.Thread):
    """The tasks that go to processes, none at first.

    All but the first do while that takes longer than `patience`. It is a thread, since
    only the thread in which joblib's results begin may give them up.
    """

    def __init__(self, function, tasks, n_jobs, patience):
        from joblib import Parallel

        super().__init__(name="spread", daemon=True)
        self._function, self._tasks, self._patience = function, tasks, patience
        # made in the thread of the caller, whose context it heeds
        self._parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        self._from = None  # number of the first of these tasks, once it is known
        self._lock, self._found, self._failure = threading.Lock(), (), None
        self._waited, self._asked = threading.Event(), threading.Event()
        self._begun, self._over = threading.Event(), threading.Event()

    def begins(self, k, worth):
        """True if tasks are done there, from the k-th on if not yet but worth it."""
        with self._lock:
            self._waited.set()
            if self._from is None and worth:
                self._from = k
                self._asked.set()
        return self.began

    def results(self):
        """Those of the tasks that are done there, as they come."""
        if self.began:
            self._begun.wait()
        if self._failure is not None:
            raise self._failure
        return self._found

    @property
    def began(self):
        """True if there are such tasks."""
        return self._from is not None

    def end(self):
        """Give up what is not done."""
        for event in (self._waited, self._over, self._asked):
            event.set()
        self.join()

    def run(self):
        if not self._waited.wait(self._patience):
            with self._lock:
                if not self._waited.is_set():
                    self._from = 1
                    self._asked.set()
        self._asked.wait()
        if not self.began:
            return
        try:
            self._begin()
        except BaseException as failure:
            self._failure = failure
        self._begun.set()
        self._over.wait()
        if self._failure is None:
            with warnings.catch_warnings():  # of tasks given up
                warnings.simplefilter("ignore", UserWarning)
                self._found.close()

    def _begin(self):
        from joblib import delayed

        one = delayed(self._function)
        self._found = self._parallel(one(*task) for task in self._tasks[self._from :])


def end_tasks(found: Iterator[Any], given_up: bool) -> None:
    """End a generator of results, of which no more are wanted.

    Parameters
    ----------
    found : generator
    given_up : bool
        Whether tasks may be left, which are given up; otherwise all results were
        taken, and the pool of processes is left at rest.
    """
    if given_up:
        found.close()  # type: ignore[attr-defined]
    else:
        next(found, None)
