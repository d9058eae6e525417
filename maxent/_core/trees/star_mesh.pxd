"""Spanning-tree sums by star-mesh elimination, for weights of any range."""

# W (n, n) is scratch; prob (n, n) or NULL returns the probability of every edge
cdef int star_mesh(
    const double* log_weight, Py_ssize_t n, double* W, double* log_z, double* prob,
    bint interruptible) except -1 nogil

# R (n, n), both triangles, in units of exp(-shift); TREES_ILL_CONDITIONED where the
# weights do not fit one window
cdef int star_mesh_resistances(
    const double* log_weight, Py_ssize_t n, double* W, double* R, double* shift,
    bint interruptible) except -1 nogil

# log R (n, n), to be read below the diagonal, for weights of any range; W (n, n) is
# scratch
cdef int star_mesh_log_resistances(
    const double* log_weight, Py_ssize_t n, double* W, double* log_R,
    bint interruptible) except -1 nogil
