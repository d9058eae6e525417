"""Independent tasks, in joblib's processes where these save more than they cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

from maxent._support.threads import threads_of

_WORTH = 0.5  # seconds that processes must save: about the time of their start


def spread(
    function: Callable[..., Any], tasks: Sequence[Any], n_jobs: int | None
) -> Generator[Any, None, None]:
    """Yield ``function(*task)`` of all tasks, in their order.

    The first task is done here, and tells how long the others would take. Results must
    not depend on where they are computed.

    Parameters
    ----------
    function : callable
        To be pickled, as tasks and results.
    tasks : sequence of tuple
    n_jobs : int or None
        As for joblib, whose context managers are heeded.
    """
    from joblib import effective_n_jobs

    n = len(tasks)
    jobs, done = min(effective_n_jobs(n_jobs), n), 0
    if jobs > 1:
        start = time.perf_counter()
        with threads_of(1):
            first = function(*tasks[0])
        seconds = (time.perf_counter() - start) * (n - 1)
        yield first
        done = 1
        if seconds * (1.0 - 1.0 / jobs) > _WORTH:
            yield from _in_processes(function, tasks[1:], n_jobs)
            return
    for task in tasks[done:]:
        with threads_of(1 if jobs > 1 else None):
            result = function(*task)
        yield result


def _in_processes(function, tasks, n_jobs):
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    results = parallel(delayed(function)(*task) for task in tasks)
    try:
        for left in range(len(tasks), 0, -1):
            result = next(results)
            if left == 1:
                next(results, None)  # the idle processes are kept
            yield result
    finally:
        with warnings.catch_warnings():  # of abandoned tasks
            warnings.simplefilter("ignore", UserWarning)
            results.close()
