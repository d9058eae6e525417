"""Facts about OpenMP in this build; the policy lives in ``maxent._support``."""

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


def has_openmp():
    """True if the kernels were compiled with OpenMP."""
    return bool(mx_has_openmp)


def openmp_max_threads():
    """Threads a parallel region would use by default (1 without OpenMP)."""
    return omp_get_max_threads()
