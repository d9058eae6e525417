"""Edges of trees over categorical columns: their features, their covariances, and how
far rows agree.

Rows are codes (n, T), letter codes[v, t] of column v being number offset[v] +
codes[v, t] among all D letters; tables are D x D and read at (letter of u, letter of
v), u < v.  Edges are the p = n (n - 1) / 2 pairs u < v in the order (0, 1), (0, 2) ...

Source of the sums: Jaakkola, Meila & Jebara (1999), eq. (28), (36), (59), (62).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    OK = 0
    DISCONNECTED = 1        # as in triangles.pxd
    WORK = 4000000          # entries between two checks for Ctrl-C

cdef double WINDOW = 600.   # weights below exp(-600) of the largest are raised to it


cdef void letters_of(
    const unsigned short[:, ::1] codes, const Py_ssize_t[::1] offset, Py_ssize_t t,
    Py_ssize_t* letter) noexcept nogil:
    cdef Py_ssize_t v
    for v in range(codes.shape[0]):
        letter[v] = offset[v] + codes[v, t]


def edge_features(
    const unsigned short[:, ::1] codes,   # IN  (n, T)
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
    const double[:, ::1] M,               # IN  (D, D)
    double[:, ::1] out,                   # OUT (T, p)
):
    """out[t, uv] = M_uv at the letters of row t."""
    cdef Py_ssize_t n = codes.shape[0], T = codes.shape[1], t, u, v, e, done = 0
    cdef const double* row
    cdef Py_ssize_t* letter = <Py_ssize_t*>malloc(n * sizeof(Py_ssize_t))
    if letter == NULL:
        raise MemoryError
    try:
        for t in range(T):
            letters_of(codes, offset, t, letter)
            e = 0
            for u in range(n):
                row = &M[letter[u], 0]
                for v in range(u + 1, n):
                    out[t, e] = row[letter[v]]
                    e += 1
            done += e
            if done > WORK:
                done = 0
                PyErr_CheckSignals()
    finally:
        free(letter)


def row_weights(
    const unsigned short[:, ::1] codes,   # IN  (n, T)
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
    const double[:, ::1] M,               # IN  (D, D)
    const double[:, ::1] base,            # IN  (n, n)
    Py_ssize_t start,
    double[:, :, ::1] out,                # OUT (rows, n, n) symmetric
):
    """out[t] = base plus M at the letters of row start + t."""
    cdef Py_ssize_t n = codes.shape[0], t, u, v
    cdef const double* row
    cdef Py_ssize_t* letter = <Py_ssize_t*>malloc(n * sizeof(Py_ssize_t))
    if letter == NULL:
        raise MemoryError
    with nogil:
        for t in range(out.shape[0]):
            letters_of(codes, offset, start + t, letter)
            for u in range(n):
                row = &M[letter[u], 0]
                out[t, u, u] = -INFINITY
                for v in range(u + 1, n):
                    out[t, u, v] = base[u, v] + row[letter[v]]
                    out[t, v, u] = out[t, u, v]
    free(letter)


def agreements(
    const unsigned short[:, ::1] codes,   # IN  (n, T)
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
    const double[:, ::1] M,               # IN  (D, D), single letters on the diagonal
    double constant,
    double[:, ::1] out,                   # OUT (T, T) symmetric
):
    """out[t, s] = constant + sum of M over the columns, and pairs of columns, in which
    rows t and s have the same letters."""
    cdef Py_ssize_t n = codes.shape[0], T = codes.shape[1], s, t, v, i, j, k, done = 0
    cdef double value
    cdef const double* row
    cdef Py_ssize_t* letter = <Py_ssize_t*>malloc(2 * n * sizeof(Py_ssize_t))
    cdef Py_ssize_t* same = letter + n
    if letter == NULL:
        raise MemoryError
    try:
        for t in range(T):
            letters_of(codes, offset, t, letter)
            for s in range(t + 1):
                k = 0
                for v in range(n):
                    if codes[v, s] == codes[v, t]:
                        same[k] = letter[v]
                        k += 1
                value = constant
                for i in range(k):
                    row = &M[same[i], 0]
                    for j in range(i, k):
                        value += row[same[j]]
                out[t, s] = value
                out[s, t] = value
                done += n + k * k // 2
                if done > WORK:
                    done = 0
                    PyErr_CheckSignals()
    finally:
        free(letter)


def edge_vectors(
    const double[:, ::1] log_weight,      # IN  (n, n) symmetric, -inf for no edge
    double[:, ::1] q,                     # OUT (p, n - 1) orthonormal columns
):
    """Vectors of the edges with P(e and f in the tree) = |q_e|^2 |q_f|^2 - (q_e q_f)^2.

    The projection K = q q' of the determinantal process (eq. 59), from the elimination
    of nodes n - 1 .. 1: with pivots S_k and P_kj = W_kj / S_k the reduced Laplacian is
    (1 - P)' S (1 - P), and q_uv = sqrt(W_uv / S) (V_v - V_u) with V = (1 - P)^-1.
    Rows of V of nodes that a large weight joins are nearly the same; their difference

        V_v - V_u = e_v + sum_{j < v} P_vj (V_j - V_u)

    leaves out the large P_vu, and with it the cancellation.  O(n^4) time.
    """
    cdef Py_ssize_t n = log_weight.shape[0], i, j, k, u, v
    cdef double top = -INFINITY, part, x
    cdef double* to
    cdef const double* a
    cdef double* W = <double*>malloc((n * n * n + 3 * n * n) * sizeof(double))
    cdef double* P = W + n * n
    cdef double* weight = P + n * n
    cdef double* diff = weight + n * n    # (v, u, k): V_v - V_u
    cdef double* S = <double*>malloc(n * sizeof(double))
    cdef int status = OK
    if W == NULL or S == NULL:
        free(W)
        free(S)
        raise MemoryError
    with nogil:
        for i in range(n):
            for j in range(i):
                top = log_weight[i, j] if log_weight[i, j] > top else top
        for i in range(n):
            W[i * n + i] = 0.
            for j in range(i):
                x = log_weight[i, j] - top
                x = 0. if x == -INFINITY else exp(x if x > -WINDOW else -WINDOW)
                W[i * n + j] = x
                W[j * n + i] = x
                weight[i * n + j] = x
        for k in range(n - 1, 0, -1):
            S[k] = 0.
            for j in range(k):
                S[k] += W[k * n + j]
            if not S[k] > 0.:
                status = DISCONNECTED
                break
            for j in range(k):
                P[k * n + j] = W[k * n + j] / S[k]
            for i in range(k):
                part = P[k * n + i]
                if part == 0.:
                    continue
                for j in range(k):
                    if j != i:
                        W[i * n + j] += part * W[k * n + j]
        if status == OK:
            memset(diff, 0, n * n * n * sizeof(double))
            for v in range(1, n):
                for u in range(v):
                    to = diff + (v * n + u) * n
                    for j in range(v):
                        part = P[v * n + j]
                        if j == u or part == 0.:
                            continue
                        a = diff + (j * n + u) * n
                        for k in range(1, v):
                            to[k] += part * a[k]
                    to[v] += 1.
                for u in range(v):
                    for k in range(1, v + 1):
                        diff[(u * n + v) * n + k] = -diff[(v * n + u) * n + k]
            i = 0
            for u in range(n):
                for v in range(u + 1, n):
                    part = sqrt(weight[v * n + u])
                    a = diff + (v * n + u) * n
                    for k in range(1, n):
                        q[i, k - 1] = part / sqrt(S[k]) * a[k]
                    i += 1
    free(W)
    free(S)
    return status
