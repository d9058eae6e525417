"""Sums over spanning trees: log-partition and edge probabilities from log weights.

    Z = sum over trees of prod W_uv = |Q|,
    P(uv in tree) = W_uv (G_uu + G_vv - 2 G_uv),   G = Q^{-1}

with Q the Laplacian of W without one row and column (Jaakkola, Meila & Jebara 1999,
eq. 31, 36, 61).  Inverting Q cancels digits when weights differ by orders of magnitude;
its error is about n eps chi with chi = max_v Q_vv G_vv, known only afterwards.  The
star-mesh transformation (`star_mesh`) needs no such proviso and costs the same, so
Cholesky serves where the inverse itself is wanted, and as a second way to the numbers.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, log
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from maxent._core.trees.star_mesh cimport star_mesh, star_mesh_resistances
from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_ILL_CONDITIONED,
    TREES_NO_MEMORY,
    TREES_OK,
    fill_weights,
    inner,
    look_for_interrupts,
    mirror,
    total,
    weight_range,
)

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_edge_row(
        double* w, const double* g, const double* diagonal, double own,
        Py_ssize_t n) noexcept

cdef enum:
    PATIENT = 1000      # larger matrices answer Ctrl-C, in batches too
    BLOCK = 128         # of these

# The error of log Z and p was below 5 n eps chi in all cases measured.
cdef double PREDICTED = 1e-11
cdef double EPSILON = 2.220446049250313e-16


# -- Cholesky --------------------------------------------------------------------------
cdef int invert(
    double* Q,                    # IN/OUT (m, m) lower: positive definite -> inverse
    Py_ssize_t m,
    double* log_det,              # OUT
    bint interruptible,
) except -1 nogil:
    """TREES_ILL_CONDITIONED if a pivot is not positive.

    Block by block, K that of a diagonal block and U'U its factor: with Y = U'^{-1} Q_K.
    all other rows and columns lose Y'Y, those of K become Q_KK^{-1} Q_K., and Q_KK its
    negative inverse; after the last block, all of Q is its negative inverse.  One block
    is LAPACK's factor and inverse; several can be interrupted, and cost the same.
    """
    cdef Py_ssize_t block = m if m <= PATIENT else BLOCK, lo = 0, hi, i, j
    cdef int order = <int>m, count, info = 0
    cdef double one = 1., minus = -1., z = 0.
    cdef double* Y = NULL         # (block, m)
    cdef double* corner
    try:
        if block < m:
            Y = <double*>malloc(block * m * sizeof(double))
            if Y == NULL:
                return TREES_NO_MEMORY
        while lo < m:
            hi = min(m, lo + block)
            count = <int>(hi - lo)
            corner = Q + lo * m + lo
            dpotrf(b"U", &count, corner, &order, &info)
            for i in range(count):
                if info != 0 or not 0 < corner[i * m + i] < INFINITY:
                    return TREES_ILL_CONDITIONED
                z += log(corner[i * m + i])
            if block < m:
                for i in range(lo, hi):
                    for j in range(m):
                        Y[(i - lo) * m + j] = Q[i * m + j] if j < lo else 0.
                for j in range(hi, m):
                    for i in range(lo, hi):
                        Y[(i - lo) * m + j] = Q[j * m + i]
                dtrsm(b"R", b"U", b"N", b"N", &order, &count, &one, corner, &order,
                      Y, &order)
                look_for_interrupts(interruptible)
                dsyrk(b"U", b"N", &order, &count, &minus, Y, &order, &one, Q, &order)
                look_for_interrupts(interruptible)
                dtrsm(b"R", b"U", b"T", b"N", &order, &count, &one, corner, &order,
                      Y, &order)
                for i in range(lo, hi):
                    for j in range(lo):
                        Q[i * m + j] = Y[(i - lo) * m + j]
                for j in range(hi, m):
                    for i in range(lo, hi):
                        Q[j * m + i] = Y[(i - lo) * m + j]
            dpotri(b"U", &count, corner, &order, &info)
            if block < m:
                for i in range(count):
                    for j in range(i + 1):
                        corner[i * m + j] = -corner[i * m + j]
            lo = hi
            look_for_interrupts(interruptible)
        if block < m:
            for i in range(m):
                for j in range(i + 1):
                    Q[i * m + j] = -Q[i * m + j]
        log_det[0] = 2. * z
        return TREES_OK
    finally:
        free(Y)


cdef int cholesky(
    const double* log_weight, Py_ssize_t n, double shift, double* W, double* G,
    double* log_z, Py_ssize_t* root, bint interruptible) except -1 nogil:
    """W lower (n, n) weights, G lower (n - 1, n - 1) the inverse without the root.

    TREES_ILL_CONDITIONED if the factor fails or predicts errors above PREDICTED.  The
    root is the node of the largest weight, which keeps the predictor small:
    Q_vv G_vv >= Q_vv / Q_root,root.
    """
    cdef Py_ssize_t i, j, r = 0, m = n - 1
    cdef double* degree = <double*>malloc(2 * n * sizeof(double))
    cdef double* diagonal = degree + n
    cdef double value, worst = 0.
    cdef double* row
    cdef int status
    if degree == NULL:
        return TREES_NO_MEMORY
    try:
        fill_weights(log_weight, n, shift, W)
        look_for_interrupts(interruptible)
        for i in range(n):
            row = W + i * n
            degree[i] = total(row, i)
            for j in range(i):
                degree[j] += row[j]
        for i in range(n):
            r = i if degree[i] > degree[r] else r
        root[0] = r
        for i in range(n):
            if i == r:
                continue
            row = G + (i - (i > r)) * m
            for j in range(min(i, r)):
                row[j] = -W[i * n + j]
            for j in range(r + 1, i):
                row[j - 1] = -W[i * n + j]
            row[i - (i > r)] = degree[i]
            diagonal[i - (i > r)] = degree[i]
        status = invert(G, m, log_z, interruptible)
        if status != TREES_OK:
            return status
        log_z[0] += m * shift
        for i in range(m):
            value = diagonal[i] * G[i * m + i]
            worst = value if value > worst else worst
        return TREES_OK if n * EPSILON * worst <= PREDICTED else TREES_ILL_CONDITIONED
    finally:
        free(degree)


cdef double share(double p) noexcept nogil:
    """Clip a probability that rounding moved out of [0, 1]."""
    p = p if p > 0. else 0.
    return p if p < 1. else 1.


cdef int cholesky_marginals(
    const double* log_weight, Py_ssize_t n, double shift, double* G, double* log_z,
    double* prob, bint interruptible) except -1 nogil:
    cdef Py_ssize_t i, j, a, r = 0, m = n - 1
    cdef double entry
    cdef double* row
    cdef const double* g
    cdef double* diagonal
    cdef int status = cholesky(
        log_weight, n, shift, prob, G, log_z, &r, interruptible)
    if status != TREES_OK:
        return status
    diagonal = <double*>malloc(n * sizeof(double))
    if diagonal == NULL:
        return TREES_NO_MEMORY
    for i in range(n):
        a = i - (i > r)
        diagonal[i] = 0. if i == r else G[a * m + a]
    for i in range(n):
        row = prob + i * n
        entry = diagonal[i]
        if i == r:
            for j in range(i):
                row[j] = share(row[j] * diagonal[j])
            continue
        g = G + (i - (i > r)) * m
        mx_edge_row(row, g, diagonal, entry, min(i, r))
        if r < i:
            row[r] = share(row[r] * entry)
            mx_edge_row(row + r + 1, g + r, diagonal + r + 1, entry, i - r - 1)
    free(diagonal)
    mirror(prob, n)
    return TREES_OK


cdef int tree_green(
    const double* log_weight, Py_ssize_t n, double* W, double* G, double* shift,
    double* log_z, bint interruptible) except -1 nogil:
    cdef double least, largest
    cdef Py_ssize_t i, j, a, r = 0, m = n - 1
    cdef int status
    weight_range(log_weight, n, &least, &largest)
    if largest == -INFINITY:
        return TREES_DISCONNECTED
    shift[0] = largest
    status = cholesky(log_weight, n, largest, W, G, log_z, &r, interruptible)
    if status != TREES_OK:
        return status
    for i in range(n - 1, -1, -1):          # spread in place, from the end
        if i == r:
            for j in range(i + 1):
                G[i * n + j] = 0.
            continue
        a = i - (i > r)
        for j in range(i, -1, -1):
            G[i * n + j] = 0. if j == r else G[a * m + j - (j > r)]
    mirror(W, n)
    mirror(G, n)
    return TREES_OK


# -- the choice ------------------------------------------------------------------------
cdef int tree_partition(
    const double* log_weight, Py_ssize_t n, int method, double* log_z, double* prob,
    bint interruptible) except -1 nogil:
    cdef double least, largest
    cdef Py_ssize_t root = 0
    cdef double* W = <double*>malloc(n * n * sizeof(double))
    cdef double* G = NULL
    try:
        if W == NULL:
            return TREES_NO_MEMORY
        if method != TREES_CHOLESKY:
            return star_mesh(log_weight, n, W, log_z, prob, interruptible)
        weight_range(log_weight, n, &least, &largest)
        if largest == -INFINITY:
            return TREES_DISCONNECTED
        if prob != NULL:
            return cholesky_marginals(
                log_weight, n, largest, W, log_z, prob, interruptible)
        G = <double*>malloc(n * n * sizeof(double))
        if G == NULL:
            return TREES_NO_MEMORY
        return cholesky(log_weight, n, largest, W, G, log_z, &root, interruptible)
    finally:
        free(W)
        free(G)


cdef int tree_walk_steps(
    const double* log_weight, Py_ssize_t n, double* steps,
    bint interruptible) except -1 nogil:
    """steps[r] = sum_v Q_vv R_vr."""
    cdef double shift
    cdef Py_ssize_t i
    cdef double* W = <double*>malloc(n * n * sizeof(double))
    cdef double* R = <double*>malloc(n * n * sizeof(double))
    cdef double* degree = <double*>malloc(n * sizeof(double))
    cdef int status
    try:
        if W == NULL or R == NULL or degree == NULL:
            return TREES_NO_MEMORY
        status = star_mesh_resistances(log_weight, n, W, R, &shift, interruptible)
        if status == TREES_ILL_CONDITIONED:
            for i in range(n):
                steps[i] = INFINITY
            return TREES_OK
        if status != TREES_OK:
            return status
        fill_weights(log_weight, n, shift, W)
        mirror(W, n)
        for i in range(n):
            degree[i] = total(W + i * n, n)
        for i in range(n):
            steps[i] = inner(degree, R + i * n, n)
        return TREES_OK
    finally:
        free(W)
        free(R)
        free(degree)


def partition(
    const double[:, :, ::1] log_weight,   # IN  (batch, n, n)
    int method,
    int n_threads,
    double[::1] log_z,                    # OUT (batch,)
    double[:, :, ::1] prob,               # OUT (batch, n, n), or None
    int[::1] status,                      # OUT (batch,) TreeStatus
):
    """Log-partition and edge probabilities of a batch of graphs with n >= 2 nodes."""
    cdef Py_ssize_t size = log_weight.shape[0], n = log_weight.shape[1], b, start, stop
    cdef bint both = prob is not None
    cdef double* out = NULL
    # about 20 ms of work between two checks for Ctrl-C
    cdef Py_ssize_t chunk = n_threads * max(
        <Py_ssize_t>1, <Py_ssize_t>(1e8 / (<double>n * n * n + 1000.)))
    if size <= 1 or n > PATIENT or n_threads == 1:
        with nogil:
            for b in range(size):
                if both:
                    out = &prob[b, 0, 0]
                status[b] = tree_partition(
                    &log_weight[b, 0, 0], n, method, &log_z[b], out, True)
        return
    for start in range(0, size, chunk):
        stop = min(size, start + chunk)
        for b in prange(start, stop, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=n_threads):
            status[b] = tree_partition(
                &log_weight[b, 0, 0], n, method, &log_z[b],
                &prob[b, 0, 0] if both else NULL, False)
        PyErr_CheckSignals()


def walk_steps(const double[:, ::1] log_weight, double[::1] steps):
    """`tree_walk_steps` of one graph."""
    return tree_walk_steps(
        &log_weight[0, 0], log_weight.shape[0], &steps[0], True)
