"""Covariances of sums over the edges of a random spanning tree.

The covariance of the sums of f and of g is the second derivative of log Z along f and
g.  It is taken along the elimination, where every weight carries the first and the
mixed second derivatives of its logarithm; or, where the inverse Laplacian is accurate,
from its products (Jaakkola, Meila & Jebara 1999, eq. 59).
"""

from libc.math cimport INFINITY, exp, log1p
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dsymm

from maxent._core.elimination cimport log_row_sum
from maxent._core.laplacian cimport tree_green
from maxent._core.triangles cimport (
    TREES_DISCONNECTED,
    TREES_ILL_CONDITIONED,
    TREES_NO_MEMORY,
    TREES_OK,
    look_for_interrupts,
)

# exp(-40) is below the rounding error of a sum, but may be all there is of a covariance
cdef double GONE = 700.


cdef int covariance_by_derivatives(
    double* L,                    # IN/OUT (n, n) lower: log weights
    double* F,                    # IN/OUT (n, n) lower: their derivatives along f
    double* G,                    # IN/OUT (n, n) lower: along g
    double* C,                    # IN/OUT (n, n) lower: mixed, zero at first
    Py_ssize_t n,
    double* result,
) except -1 nogil:
    cdef Py_ssize_t i, j, k, at, work = 0
    cdef double s, sf, sg, sc, p, t, d, e, a, b, df, dg, lost
    cdef double cov = 0.
    for k in range(n - 1, 0, -1):
        s = log_row_sum(L + k * n, k)
        if s == -INFINITY:
            return TREES_DISCONNECTED
        at = k * n
        for j in range(k * n, k * n + k):
            at = j if L[j] > L[at] else at
        # differences to the likeliest edge: it adds nothing, so nothing cancels
        # where it has nearly all the probability
        sf = sg = sc = 0.
        for j in range(k * n, k * n + k):
            p = exp(L[j] - s)
            df = F[j] - F[at]
            dg = G[j] - G[at]
            sf += p * df
            sg += p * dg
            sc += p * (C[j] + df * dg)
        sc -= sf * sg
        sf += F[at]
        sg += G[at]
        cov += sc
        for i in range(k * n + 1, k * n + k):
            if L[i] == -INFINITY:
                continue
            at = (i - k * n) * n
            for j in range(k * n, i):
                t = L[i] + L[j] - s
                d = t - L[at]
                if d >= -GONE:     # False for NaN, two missing edges
                    df = F[i] + F[j] - sf
                    dg = G[i] + G[j] - sg
                    lost = C[i] + C[j] - sc
                    if d > GONE:   # the new path replaces the edge, if there was one
                        L[at] = t
                        F[at] = df
                        G[at] = dg
                        C[at] = lost
                    else:
                        e = exp(-d if d > 0 else d)
                        L[at] = (t if d > 0 else L[at]) + log1p(e)
                        b = 1. / (1. + e)
                        a = e / (1. + e)
                        if d <= 0:
                            a, b = b, a
                        df -= F[at]
                        dg -= G[at]
                        F[at] += b * df
                        G[at] += b * dg
                        C[at] = a * C[at] + b * lost + a * b * df * dg
                at += 1
            work += i - k * n
            if work > 500000:
                work = 0
                look_for_interrupts(True)
    result[0] = cov
    return TREES_OK


cdef int weighted_laplacian(
    const double* W, const double* f, double mean, Py_ssize_t n, double* out
) except -1 nogil:
    """Laplacian of the weights W (f - mean)."""
    cdef Py_ssize_t i, j
    cdef double own
    for i in range(n):
        own = 0.
        for j in range(n):
            # W is zero where there is no edge, whatever f is there
            out[i * n + j] = -W[i * n + j] * (f[i * n + j] - mean)
            own -= out[i * n + j]
        out[i * n + i] += own
        if i % 64 == 0:
            look_for_interrupts(True)
    return 0


cdef int product(
    const double* G, double* L, Py_ssize_t n, double* out) except -1 nogil:
    """out = L G, both symmetric, some rows at a time."""
    cdef Py_ssize_t lo
    cdef double one = 1., zero = 0.
    cdef int ld = <int>n, rows
    for lo in range(0, n, 64):
        rows = <int>min(<Py_ssize_t>64, n - lo)
        dsymm(b"L", b"U", &ld, &rows, &one, <double*>G, &ld, L + lo * n, &ld, &zero,
              out + lo * n, &ld)
        look_for_interrupts(True)
    return 0


cdef int covariance_by_cholesky(
    const double* log_weight, const double* f, const double* g, Py_ssize_t n,
    double* X,                    # SCRATCH (5, n, n)
    double* result,
) except -1 nogil:
    """sum p f g - tr(G L[W f] G L[W g]) (JMJ 1999, eq. 59), f and g centred."""
    cdef Py_ssize_t i, j, size = n * n
    cdef double* W = X
    cdef double* G = X + size
    cdef double* L = X + 2 * size
    cdef double* Y = X + 3 * size
    cdef double* Z = X + 4 * size
    cdef double shift, log_z, p, mf = 0., mg = 0., own = 0., both = 0.
    cdef int status = tree_green(log_weight, n, W, G, &shift, &log_z, True)
    if status != TREES_OK:
        return status
    for i in range(n):
        for j in range(i):
            p = W[i * n + j] * (G[i * n + i] + G[j * n + j] - 2. * G[i * n + j])
            mf += p * f[i * n + j]
            mg += p * g[i * n + j]
    mf /= n - 1
    mg /= n - 1
    for i in range(n):
        for j in range(i):
            p = W[i * n + j] * (G[i * n + i] + G[j * n + j] - 2. * G[i * n + j])
            own += p * (f[i * n + j] - mf) * (g[i * n + j] - mg)
    look_for_interrupts(True)
    weighted_laplacian(W, f, mf, n, L)
    product(G, L, n, Y)
    weighted_laplacian(W, g, mg, n, L)
    product(G, L, n, Z)
    for i in range(n):
        for j in range(n):
            both += Y[i * n + j] * Z[j * n + i]
        if i % 64 == 0:
            look_for_interrupts(True)
    result[0] = own - both
    return TREES_OK


def covariance(
    const double[:, ::1] log_weight,   # IN (n, n)
    const double[:, ::1] f,            # IN (n, n) finite
    const double[:, ::1] g,            # IN (n, n) finite
    bint fast,                         # by Cholesky where that is accurate
):
    """Status and covariance of the sums of f and of g over the edges of a tree."""
    cdef Py_ssize_t n = log_weight.shape[0], i, size = n * n
    cdef double result = 0.
    cdef int status = TREES_ILL_CONDITIONED
    cdef double* X = <double*>malloc(5 * size * sizeof(double))
    if X == NULL:
        return TREES_NO_MEMORY, result
    try:
        with nogil:
            if fast:
                status = covariance_by_cholesky(
                    &log_weight[0, 0], &f[0, 0], &g[0, 0], n, X, &result)
            if status == TREES_ILL_CONDITIONED:
                memcpy(X, &log_weight[0, 0], size * sizeof(double))
                memcpy(X + size, &f[0, 0], size * sizeof(double))
                memcpy(X + 2 * size, &g[0, 0], size * sizeof(double))
                for i in range(3 * size, 4 * size):
                    X[i] = 0.
                status = covariance_by_derivatives(
                    X, X + size, X + 2 * size, X + 3 * size, n, &result)
        return status, result
    finally:
        free(X)
