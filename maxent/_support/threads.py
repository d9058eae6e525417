"""One policy for threads: how many our loops use, and BLAS kept to one.

Loops are cut into chunks that depend on the problem only, each chunk is computed by
one thread with single-threaded BLAS, and partial results are joined in chunk order;
so results have the same bits for any number of threads.
"""

from __future__ import annotations

import contextlib
import functools

from maxent._core.threads import has_openmp, openmp_max_threads


def effective_threads(n_jobs=None):
    """Threads for the compiled loops.

    Parameters
    ----------
    n_jobs : int or None
        None takes what OpenMP would (OMP_NUM_THREADS, threadpoolctl limits and the
        limits that joblib sets in its workers are respected), never more than the
        CPUs this process may use. A positive number is a ceiling asked for by the
        user; -1 means all CPUs, -2 all but one, and so on.
    """
    if not has_openmp():
        return 1
    from joblib import cpu_count

    cpus = cpu_count()
    if n_jobs is None:
        return max(1, min(openmp_max_threads(), cpus))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, 1, more, or -1 for all.")
    if n_jobs < 0:
        return max(1, cpus + 1 + n_jobs)
    return int(n_jobs)


@functools.cache
def _controller():
    import scipy.linalg.cython_blas  # noqa: F401  (loads the BLAS we call)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextlib.contextmanager
def single_threaded_blas():
    """Keep every BLAS call inside the block on one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
