"""Threads of the compiled loops: one rule, by the time that a loop takes.

The requested number comes from ``maxent._support.threads``.  Results do not
depend on how many threads a loop gets.
"""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static const int mx_has_openmp = 1;
    #else
    static const int mx_has_openmp = 0;
    static int omp_get_max_threads(void) { return 1; }
    #endif
    """
    const int mx_has_openmp
    int omp_get_max_threads() noexcept nogil

cdef enum:
    SHORT = 300000         # ns: a loop that is not worth threads


cdef int team(int n_threads, Py_ssize_t tasks, double ns) noexcept nogil:
    if n_threads <= 1 or tasks <= 1 or ns <= SHORT:
        return 1
    return <int>min(<Py_ssize_t>n_threads, tasks)


def has_openmp():
    """True if the kernels were compiled with OpenMP."""
    return bool(mx_has_openmp)


def openmp_max_threads():
    """Threads a parallel region would use by default (1 without OpenMP)."""
    return omp_get_max_threads()


def threads_worth(int n_threads, Py_ssize_t tasks, double ns):
    """Threads for a compiled loop of so many tasks and so many ns on one thread."""
    return team(n_threads, tasks, ns)
