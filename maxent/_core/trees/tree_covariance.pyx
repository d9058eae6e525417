"""Covariances of sums over the edges of a random spanning tree.

The covariance of the sums of f and of g is the second derivative of log Z along f and
g.  Along the star-mesh elimination (`elimination`), with F and G the derivatives of the
log weights at this stage, it is

    sum_k (2 - d_k) Cov(F_kj, G_kj; P_j)  +  sum_k,ij  p_ij a b D_ij(F) D_ij(G),

where d_k is the expected degree of node k when it is eliminated, a and b are the shares
of the old edge ij and of the path i-k-j in the new edge, D(F) the difference of their
derivatives and p_ij = W_ij R_ij the probability of the new edge; an effective
resistance R_ij is the same at all stages.  The node of the least expected degree is
eliminated, so that 2 - d_k >= 2 / (number of nodes): a variance is then a sum of
squares, and no term of a covariance is larger than what its two variances have there.

Where the inverse Laplacian is accurate, its products do instead (Jaakkola, Meila &
Jebara 1999, eq. 59).
"""

from libc.math cimport INFINITY, exp, log1p
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy
from scipy.linalg.cython_blas cimport dsymm

from maxent._core.trees.laplacian cimport tree_green
from maxent._core.trees.star_mesh cimport star_mesh_log_resistances
from maxent._core.trees.star_mesh_elimination cimport log_row_sum
from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_ILL_CONDITIONED,
    TREES_NO_MEMORY,
    TREES_OK,
    look_for_interrupts,
    total,
)

# exp(-40) is below the rounding error of a sum, but may be all there is of a covariance
cdef double FAR = 40.
cdef double GONE = 700.


cdef struct Stage:
    # The graph of the remaining nodes, (n, n) each and read below the diagonal.
    Py_ssize_t n
    double* L                     # log weights
    double* F                     # their derivatives along f
    double* G                     # along g
    double* R                     # log effective resistances
    double* p                     # probabilities of edges
    double* degree                # (n,) expected degrees


cdef void exchange(double* M, Py_ssize_t n, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
    """Swap nodes i <= k, nodes after k left alone, of a symmetric matrix."""
    cdef Py_ssize_t j
    for j in range(i):
        M[i * n + j], M[k * n + j] = M[k * n + j], M[i * n + j]
    for j in range(i + 1, k):
        M[j * n + i], M[k * n + j] = M[k * n + j], M[j * n + i]


cdef void least_degree_last(Stage* x, Py_ssize_t k) noexcept nogil:
    """Make the node of the least expected degree among 0 .. k number k."""
    cdef Py_ssize_t i, j, n = x.n, least = k
    cdef const double* row
    for i in range(k + 1):
        row = x.p + i * n
        x.degree[i] = total(row, i)
        for j in range(i):
            x.degree[j] += row[j]
    for i in range(k):
        least = i if x.degree[i] < x.degree[least] else least
    if least < k:
        x.degree[least], x.degree[k] = x.degree[k], x.degree[least]
        exchange(x.L, n, least, k)
        exchange(x.F, n, least, k)
        exchange(x.G, n, least, k)
        exchange(x.R, n, least, k)
        exchange(x.p, n, least, k)


cdef double centre(const double* f, const double* p, Py_ssize_t n) noexcept nogil:
    """Mean of f over the edges of a tree: a constant has no covariance."""
    cdef Py_ssize_t i, j
    cdef double mean = 0.
    for i in range(n):
        for j in range(i):
            mean += p[i * n + j] * f[i * n + j]
    return mean / (n - 1)


cdef double row_covariance(
    const double* L, const double* F, const double* G, Py_ssize_t k, double s,
    double* sf, double* sg) noexcept nogil:
    """Covariance of F and G over the edges of a row, and their means."""
    cdef Py_ssize_t j, at = 0
    cdef double p, df = 0., dg = 0., cov = 0.
    for j in range(k):
        at = j if L[j] > L[at] else at
    # differences to the likeliest edge: it adds nothing, so nothing cancels where it
    # has nearly all the probability
    for j in range(k):
        p = exp(L[j] - s)
        df += p * (F[j] - F[at])
        dg += p * (G[j] - G[at])
    for j in range(k):
        p = exp(L[j] - s)
        cov += p * (F[j] - F[at] - df) * (G[j] - G[at] - dg)
    sf[0] = F[at] + df
    sg[0] = G[at] + dg
    return cov


cdef double add_paths(
    Stage* x, Py_ssize_t k, Py_ssize_t i, double s, double sf, double sg
) noexcept nogil:
    """Join the paths i-k-j to the edges ij, j < i; their share of the covariance."""
    cdef const double* L = x.L + k * x.n
    cdef const double* F = x.F + k * x.n
    cdef const double* G = x.G + k * x.n
    cdef Py_ssize_t j, at = i * x.n
    cdef double t, d, e, b, df, dg, path, cov = 0.
    for j in range(i):
        t = L[i] + L[j] - s
        d = t - x.L[at]
        if d >= -GONE:         # False for NaN, two missing edges
            df = F[i] + F[j] - sf
            dg = G[i] + G[j] - sg
            if d <= 0:
                e = exp(d)
                b = e / (1. + e)
                df -= x.F[at]
                dg -= x.G[at]
                cov += x.p[at] * b * df * dg
                if d > -FAR:
                    x.L[at] += log1p(e)
                x.F[at] += b * df
                x.G[at] += b * dg
                x.p[at] *= 1. + e
            else:              # the path is the likelier; above GONE, the only one
                path = exp(t + x.R[at])
                e = exp(-d) if d <= GONE else 0.
                b = e / (1. + e)
                x.L[at] = t + log1p(e) if d < FAR else t
                if e > 0:
                    cov += path * b * (x.F[at] - df) * (x.G[at] - dg)
                    df += b * (x.F[at] - df)
                    dg += b * (x.G[at] - dg)
                x.F[at] = df
                x.G[at] = dg
                x.p[at] = path * (1. + e)
        at += 1
    return cov


cdef int covariance_by_elimination(
    const double* log_weight, const double* f, const double* g, Py_ssize_t n,
    double* X,                    # SCRATCH (5, n, n)
    double* result,
) except -1 nogil:
    cdef Py_ssize_t i, j, k, size = n * n, work = 0
    cdef double s, mf, mg, sf = 0., sg = 0., cov = 0.
    cdef Stage x
    cdef int status
    x.n = n
    x.L, x.F, x.G, x.R, x.p = X, X + size, X + 2 * size, X + 3 * size, X + 4 * size
    status = star_mesh_log_resistances(log_weight, n, x.p, x.R, True)
    if status != TREES_OK:
        return status
    x.degree = <double*>malloc(n * sizeof(double))
    if x.degree == NULL:
        return TREES_NO_MEMORY
    try:
        memcpy(x.L, log_weight, size * sizeof(double))
        for i in range(n):
            for j in range(i):
                k = i * n + j
                x.p[k] = exp(x.L[k] + x.R[k])
        mf = centre(f, x.p, n)
        mg = centre(g, x.p, n)
        for i in range(size):
            x.F[i] = f[i] - mf
            x.G[i] = g[i] - mg
        for k in range(n - 1, 0, -1):
            least_degree_last(&x, k)
            s = log_row_sum(x.L + k * n, k)
            if s == -INFINITY:
                return TREES_DISCONNECTED
            cov += (2. - x.degree[k]) * row_covariance(
                x.L + k * n, x.F + k * n, x.G + k * n, k, s, &sf, &sg)
            for i in range(1, k):
                if x.L[k * n + i] > -INFINITY:
                    cov += add_paths(&x, k, i, s, sf, sg)
                work += i
                if work > 500000:
                    work = 0
                    look_for_interrupts(True)
        result[0] = cov
        return TREES_OK
    finally:
        free(x.degree)


cdef int weighted_laplacian(
    const double* W, const double* f, double mean, Py_ssize_t n, double* out
) except -1 nogil:
    """Laplacian of the weights W (f - mean)."""
    cdef Py_ssize_t i, j
    cdef double own
    for i in range(n):
        own = 0.
        for j in range(n):
            # W is zero where there is no edge, for any value of f
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
    if result[0] < 0 and memcmp(f, g, size * sizeof(double)) == 0:
        result[0] = 0.            # a variance whose digits have cancelled
    return TREES_OK


def covariance(
    const double[:, ::1] log_weight,   # IN (n, n)
    const double[:, ::1] f,            # IN (n, n) finite
    const double[:, ::1] g,            # IN (n, n) finite
    bint fast,                         # by Cholesky where that is accurate
):
    """Status and covariance of the sums of f and of g over the edges of a tree."""
    cdef Py_ssize_t n = log_weight.shape[0], size = n * n
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
                status = covariance_by_elimination(
                    &log_weight[0, 0], &f[0, 0], &g[0, 0], n, X, &result)
        return status, result
    finally:
        free(X)
