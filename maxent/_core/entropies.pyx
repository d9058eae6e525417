"""Renyi scores of log-linear models, their signed weights, and tempered moments.

    F_a(s) = [log sum_h exp(a s_h) - log sum_h exp(s_h)] / (a - 1)
    F_0 = log mean exp s,   F_1 = E_1[s],   F_inf = max s
    beta_h = dF / ds_h = (a p^(a)_h - p_h) / (a - 1),   p^(t) = softmax(t s)

With m = max s, d0 = s - m, p = softmax(s) and d = d0 - E_1[d0], near a = 1

    k = log1p(sum p expm1((a - 1) d)),   F = m + E_1[d0] + k / (a - 1)
    x = (a - 1) d - k,                   beta = p (exp(x) + expm1(x) / (a - 1))

so nothing cancels. Rows are ragged: row r is s[offset[r] : offset[r + 1]]; entries of
-inf are hidden values that are not allowed. Each row belongs to one thread.

Source: Miller, Kumar, Packer, Goodman & Koller (2012), eqs. (1)-(5).
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, expm1, log, log1p, sqrt
from libc.stdlib cimport free, malloc

from maxent._core.threads cimport team

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept

cdef enum:
    CHUNK = 4096            # entries of a chunk of rows, at least
    WORK = 2000000          # entries of a thread between two checks for Ctrl-C

cdef double NEAR_ONE = 0.1  # |a - 1| up to which the form without cancellation is used


cdef inline double row_max(const double* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t h
    cdef double m = -INFINITY
    for h in range(n):
        m = s[h] if s[h] > m else m
    return m


cdef inline double total(const double* x, Py_ssize_t n) noexcept nogil:
    """Sum in four lanes: shorter chains of additions, smaller rounding errors."""
    cdef Py_ssize_t h, whole = n - n % 4
    cdef double a = 0., b = 0., c = 0., d = 0.
    h = 0
    while h < whole:
        a += x[h]
        b += x[h + 1]
        c += x[h + 2]
        d += x[h + 3]
        h = h + 4
    for h in range(whole, n):
        a += x[h]
    return (a + b) + (c + d)


cdef void scaled_exp(
    const double* s, double m, double a, Py_ssize_t n, double* out,
) noexcept nogil:
    """out = exp(a (s - m)), a > 0; s may be out."""
    cdef Py_ssize_t h
    for h in range(n):
        out[h] = a * (s[h] - m)
    mx_exp_shifted(out, 0., 0., n, out)


cdef double uniform_on_best(
    const double* s, double m, Py_ssize_t n, double* beta,
) noexcept nogil:
    """a = inf: the maximum, and equal weights of its places."""
    cdef Py_ssize_t h, ties = 0
    if beta != NULL:
        for h in range(n):
            ties += s[h] == m
        for h in range(n):
            beta[h] = 1. / ties if s[h] == m else 0.
    return m


cdef double near_one(
    const double* s, double m, double a, Py_ssize_t n, double* p, double* beta,
) noexcept nogil:
    """|a - 1| <= NEAR_ONE; p comes as exp(s - m)."""
    cdef Py_ssize_t h
    cdef double Z = total(p, n), mean = 0., b = a - 1., k = 0., x
    for h in range(n):
        p[h] /= Z
        if p[h] > 0.:
            mean += p[h] * (s[h] - m)
    if b != 0.:
        for h in range(n):
            if p[h] > 0.:
                k += p[h] * expm1(b * (s[h] - m - mean))
        k = log1p(k)
    if beta != NULL:
        for h in range(n):
            if p[h] == 0.:
                beta[h] = 0.
            elif b == 0.:
                beta[h] = p[h] * (1. + (s[h] - m - mean))
            else:
                x = b * (s[h] - m - mean) - k
                beta[h] = p[h] * (exp(x) + expm1(x) / b)
    return m + mean + (k / b if b != 0. else 0.)


cdef double far_from_one(
    const double* s, double m, double a, Py_ssize_t n, double* e, double* u,
    double* beta,
) noexcept nogil:
    """|a - 1| > NEAR_ONE; e comes as exp(s - m), u is scratch."""
    cdef Py_ssize_t h, allowed = 0
    cdef double Z = total(e, n), Za, b = a - 1.
    if a == 0.:
        for h in range(n):
            allowed += s[h] > -INFINITY
        if beta != NULL:
            for h in range(n):
                beta[h] = e[h] / Z
        return m + log(Z / allowed)
    if a == 2.:
        for h in range(n):
            u[h] = e[h] * e[h]
    elif a == 0.5:
        for h in range(n):
            u[h] = sqrt(e[h])
    else:
        scaled_exp(s, m, a, n, u)
    Za = total(u, n)
    if beta != NULL:
        for h in range(n):
            beta[h] = (a * (u[h] / Za) - e[h] / Z) / b
    return m + (log(Za) - log(Z)) / b


cdef double renyi_row(
    const double* s, Py_ssize_t n, double a, double* scratch, double* beta,
) noexcept nogil:
    # scratch (2 n); beta (n) or NULL
    cdef double m = row_max(s, n)
    cdef Py_ssize_t h
    if m == -INFINITY:
        if beta != NULL:
            for h in range(n):
                beta[h] = 0.
        return m
    if a == INFINITY:
        return uniform_on_best(s, m, n, beta)
    mx_exp_shifted(s, m, 0., n, scratch)
    if -NEAR_ONE <= a - 1. <= NEAR_ONE:
        return near_one(s, m, a, n, scratch, beta)
    return far_from_one(s, m, a, n, scratch, scratch + n, beta)


cdef double tempered_row(
    const double* s, Py_ssize_t n, double t, double* p,
) noexcept nogil:
    # p (n)
    cdef double m = row_max(s, n), Z
    cdef Py_ssize_t h
    if m == -INFINITY:
        for h in range(n):
            p[h] = 0.
        return m
    if t == INFINITY:
        m = uniform_on_best(s, m, n, p)
        for h in range(n):      # one place, the first, as in the argument of the max
            if p[h] > 0.:
                Z = 1.
                p[h] = 1.
                break
        for h in range(h + 1, n):
            p[h] = 0.
        return m
    scaled_exp(s, m, t, n, p)
    Z = total(p, n)
    for h in range(n):
        p[h] /= Z
    return t * m + log(Z)


cdef Py_ssize_t chunk_ends(
    const Py_ssize_t[::1] offset, Py_ssize_t[::1] first,
) noexcept nogil:
    """First row of every chunk of about CHUNK entries; returns how many there are."""
    cdef Py_ssize_t r, chunks = 0, rows = offset.shape[0] - 1, begin = 0
    for r in range(rows):
        if r == 0 or offset[r] - begin >= CHUNK:
            first[chunks] = r
            chunks += 1
            begin = offset[r]
    first[chunks] = rows
    return chunks


cdef int renyi_chunk(
    const double* s, const Py_ssize_t* offset, const double* alpha, Py_ssize_t lo,
    Py_ssize_t hi, Py_ssize_t longest, int kind, double* F, double* beta,
) noexcept nogil:
    cdef double* scratch = <double*>malloc((2 * longest + 1) * sizeof(double))
    cdef Py_ssize_t r, n, o
    if scratch == NULL:
        return 1
    for r in range(lo, hi):
        o = offset[r]
        n = offset[r + 1] - o
        if kind == 0:
            F[r] = renyi_row(s + o, n, alpha[r], scratch,
                             beta + o if beta != NULL else NULL)
        else:
            F[r] = tempered_row(s + o, n, alpha[r],
                                beta + o if beta != NULL else scratch)
    free(scratch)
    return 0


cdef object run(
    const double[::1] s, const Py_ssize_t[::1] offset, const double[::1] alpha,
    int kind, double[::1] F, double[::1] beta, int n_threads,
):
    cdef Py_ssize_t rows = offset.shape[0] - 1, c, lo, hi, r, longest = 1, chunks
    cdef Py_ssize_t[::1] first
    cdef int failed = 0
    cdef double* out = &beta[0] if beta.shape[0] else NULL
    cdef Py_ssize_t wave
    import numpy as np
    if rows == 0:
        return
    for r in range(rows):
        longest = max(longest, offset[r + 1] - offset[r])
    first = np.empty(rows + 1, np.intp)
    chunks = chunk_ends(offset, first)
    wave = n_threads * max(<Py_ssize_t>1, <Py_ssize_t>WORK // (CHUNK + longest))
    n_threads = team(n_threads, chunks, 10. * s.shape[0])
    for lo in range(0, chunks, wave):
        hi = min(lo + wave, chunks)
        for c in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=n_threads):
            failed |= renyi_chunk(
                &s[0], &offset[0], &alpha[0], first[c], first[c + 1], longest, kind,
                &F[0], out)
        if failed:
            raise MemoryError
        PyErr_CheckSignals()


def renyi(
    const double[::1] s,              # IN   (entries,), -inf where not allowed
    const Py_ssize_t[::1] offset,     # IN   (rows + 1,), rows are not empty
    const double[::1] alpha,          # IN   (rows,), orders >= 0, inf included
    double[::1] F,                    # OUT  (rows,), -inf where nothing is allowed
    double[::1] beta,                 # OUT  (entries,), or empty: not wanted
    int n_threads,
):
    """Renyi scores of ragged rows and the derivatives by their entries."""
    run(s, offset, alpha, 0, F, beta, n_threads)


def tempered(
    const double[::1] s,              # IN   (entries,), -inf where not allowed
    const Py_ssize_t[::1] offset,     # IN   (rows + 1,), rows are not empty
    const double[::1] t,              # IN   (rows,), > 0; inf: the first best place
    double[::1] log_sum,              # OUT  (rows,), log sum exp(t s); max s at inf
    double[::1] p,                    # OUT  (entries,), softmax(t s), or empty
    int n_threads,
):
    """Tempered log-sums of ragged rows and their posteriors."""
    run(s, offset, t, 1, log_sum, p, n_threads)
