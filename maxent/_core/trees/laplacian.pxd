"""Sums over all spanning trees of a weighted complete graph, callable without the GIL.

Log weights are n x n, row by row; only entries below the diagonal are read, -inf is no
edge.  Functions return a TreeStatus; with `interruptible` they check for Ctrl-C between
blocks (which takes the GIL for a moment) and return -1 with the exception set.
"""

from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_ILL_CONDITIONED,
    TREES_NO_MEMORY,
    TREES_OK,
)

cdef enum TreeMethod:
    TREES_STAR_MESH = 0
    TREES_CHOLESKY = 1          # TREES_ILL_CONDITIONED where it predicts large errors

# log of the sum over trees of the product of weights; prob (n, n) or NULL returns the
# probability of every edge
cdef int tree_partition(
    const double* log_weight, Py_ssize_t n, int method, double* log_z, double* prob,
    bint interruptible) except -1 nogil

# G (n, n, both triangles): inverse of the Laplacian without the row and column of a
# root, which are zero in G; W (n, n): weights exp(log_weight - shift)
cdef int tree_green(
    const double* log_weight, Py_ssize_t n, double* W, double* G, double* shift,
    double* log_z, bint interruptible) except -1 nogil

# steps[r]: steps that Wilson's walk with root r is expected to take; infinite where the
# weights leave one window of double precision
cdef int tree_walk_steps(
    const double* log_weight, Py_ssize_t n, double* steps,
    bint interruptible) except -1 nogil
