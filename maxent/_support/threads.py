"""One policy for threads: their number in compiled loops, and BLAS kept to one.

Loops are cut into chunks that depend on the problem only, each chunk is computed by
one thread with single-threaded BLAS, and partial results are joined in chunk order;
so results have the same bits for any number of threads.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from maxent._core.threads import has_openmp, openmp_max_threads
from maxent._support.validation import check_jobs

_Method = TypeVar("_Method", bound=Callable[..., Any])

_WORTH_THREADS = 4e6  # ns; starting threads and waiting for them costs a part of this

# n_jobs of the estimator that runs, for the loops below it; one value per thread
_asked: contextvars.ContextVar[int | None] = contextvars.ContextVar("n_jobs")

# The threads of an OpenMP team do not survive a fork: a child that asks for them again
# waits for ever, so forked children compute with one thread.
_forked = False


def _mark_child():
    global _forked
    _forked = True
    _single_threaded.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_child)


def _affinity():
    """CPUs that the process may run on, where the system reports them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


@functools.lru_cache(maxsize=8)
def _cpus(affinity, limit):
    """CPU count of joblib, which reads files; cached until its inputs change."""
    from joblib import cpu_count

    return cpu_count()


def effective_threads(n_jobs=None):
    """Threads for the compiled loops.

    Parameters
    ----------
    n_jobs : int or None
        None takes that of :func:`threads_of`, or else what OpenMP would
        (OMP_NUM_THREADS, threadpoolctl limits and the limits that joblib sets in its
        workers are respected), never more than the CPUs this process may use. A
        positive number is a ceiling asked for by the user; -1 means all CPUs, -2 all
        but one, and so on.

    Returns
    -------
    int
        1 in a forked child and without OpenMP.

    Raises
    ------
    ValueError
        For 0, a number that is no integer, or more threads than any machine can run.
    """
    n_jobs = check_jobs(n_jobs)
    if n_jobs is None:
        n_jobs = _asked.get(None)
    if not has_openmp() or _forked:
        return 1
    cpus = _cpus(_affinity(), os.environ.get("LOKY_MAX_CPU_COUNT"))
    if n_jobs is None:
        return max(1, min(openmp_max_threads(), cpus))
    if n_jobs < 0:
        return max(1, cpus + 1 + n_jobs)
    return n_jobs


@contextlib.contextmanager
def threads_of(n_jobs):
    """Context that sets the number of threads of loops without an explicit number.

    None leaves the number as it is.
    """
    n_jobs = check_jobs(n_jobs)
    token = _asked.set(_asked.get(None) if n_jobs is None else n_jobs)
    try:
        yield
    finally:
        _asked.reset(token)


def with_own_threads(method: _Method) -> _Method:
    """Decorate a method of an estimator to run with its `n_jobs`, if it has one.

    BLAS runs on one thread in there.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with threads_of(getattr(self, "n_jobs", None)), single_threaded_blas():
            return method(self, *args, **kwargs)

    return cast(_Method, run)


def with_single_threaded_blas(function: _Method) -> _Method:
    """Decorate a function to run its BLAS calls on one thread.

    Results then do not depend on the number of threads, and those of BLAS do not wait
    for work, busily, on the processors that compiled loops use.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with single_threaded_blas():
            return function(*args, **kwargs)

    return cast(_Method, run)


def in_threads(work, n_items, n_threads):
    """Call ``work(item, thread, stop)`` for all items, on this thread and others.

    For work that releases the interpreter lock most of the time. Loops inside take one
    thread unless they are told otherwise, and BLAS does until the last thread has
    ended: its setting must not change while it works. Each thread takes the next item
    that none has taken, so results must not depend on which one it is.

    Parameters
    ----------
    work : callable(int, int, threading.Event)
        An exception sets the event: then no thread takes another item, and work that
        takes long should return when it sees this. Ctrl-C does not wait for that, so
        work must not touch anything that is used after it.
    n_items, n_threads : int
    """
    items, lock, stop = iter(range(n_items)), threading.Lock(), threading.Event()
    failures = []

    def run(thread):
        try:
            with threads_of(1), single_threaded_blas():
                while not stop.is_set():
                    with lock:
                        item = next(items, None)
                    if item is None:
                        return
                    work(item, thread, stop)
        except BaseException as failure:
            failures.append(failure)
            stop.set()

    others = [
        threading.Thread(
            target=contextvars.copy_context().run,
            args=(run, thread),
            name=f"in_threads-{thread}",
        )
        for thread in range(1, n_threads)
    ]
    try:
        for one in others:
            one.start()
        run(0)
        if not (failures and isinstance(failures[0], KeyboardInterrupt)):
            for one in others:
                one.join()
    except BaseException:  # a signal, between items or while waiting
        stop.set()
        raise
    if failures:
        raise failures[0]


def share_out(work, n_items, ns):
    """:func:`in_threads`, with one thread where all takes less than some milliseconds.

    Parameters
    ----------
    work, n_items
        As for :func:`in_threads`.
    ns : float
        What all items take on one thread, in nanoseconds.
    """
    threads = effective_threads() if ns > _WORTH_THREADS else 1
    in_threads(work, n_items, min(threads, n_items))


@functools.cache
def _controller():
    import scipy.linalg.cython_blas  # noqa: F401  (loads the BLAS we call)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control():
    """Let this thread set the limits, even if another one set them last.

    OpenBLAS has one setting a process, and threadpoolctl may heed only the thread that
    was first to change it.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


class _SingleThreadedBlas:
    """Context for many threads: the first one sets the limit, the last one lifts it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.inside = 0
        self.limiter = None

    def __enter__(self):
        with self.lock:
            if self.inside == 0:
                _take_control()
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *exc):
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                _take_control()
                self.limiter.restore_original_limits()
                self.limiter = None
                _take_control()

    def forget(self):
        """Reset the state of a forked child, which has one thread."""
        self.__init__()


_single_threaded = _SingleThreadedBlas()


def single_threaded_blas():
    """Context in which every BLAS call of the process runs on one thread."""
    return _single_threaded
