"""Linear dual by coordinate ascent, keeping the weight vector.

    maximise  sum_t phi_t(lam_t) - |w|^2 / 2 - variance (sum_t s_t lam_t)^2 / 2
    w = sum_t s_t lam_t x_t,   bias = centre + variance * sum_t s_t lam_t

One visit solves for one multiplier exactly; it costs O(nnz(x_t)).  ``level`` may hold
``level + sign * target`` for regression rows.  The epoch also sums the Fenchel-Young
terms it meets if asked: an estimate of the duality gap (rows are visited at different
times, so the certificate is computed apart).

Source: coordinate ascent after Hsieh et al. (2008); the closed-form step follows from
the exponential margin prior of Jaakkola, Meila & Jebara (1999), eq. (15a).
"""

from cpython.exc cimport PyErr_CheckSignals
from scipy.linalg.cython_blas cimport daxpy, ddot

from maxent._core.potentials cimport (
    Potential,
    coordinate_optimum,
    fenchel_young,
    unpack_potential,
)

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define mx_prefetch(p) __builtin_prefetch(p)
    #else
    #define mx_prefetch(p) ((void)0)
    #endif
    """
    void mx_prefetch(const void* p) noexcept nogil

cdef enum:
    # Visits in random order wait for memory unless what they read is asked for before:
    # the numbers of a constraint FAR visits ahead, its features, by their place, NEAR.
    FAR = 16
    NEAR = 6
    MOST = 512              # bytes asked for; the processor follows longer rows itself


cdef inline void expect(const void* first, Py_ssize_t size) noexcept nogil:
    """Ask for so many bytes."""
    cdef const char* p = <const char*>first
    cdef Py_ssize_t lo
    if size <= 0:
        return
    size = min(size, <Py_ssize_t>MOST)
    for lo in range(0, size, 64):           # a cache line
        mx_prefetch(p + lo)
    mx_prefetch(p + size - 1)


cdef inline void expect_row(
    const LinearRows* rows, Py_ssize_t t, const double* lam) noexcept nogil:
    """Ask for the numbers of a constraint."""
    mx_prefetch(lam + t)
    mx_prefetch(rows.level + t)
    mx_prefetch(rows.rate + t)
    mx_prefetch(rows.weight + t)
    mx_prefetch(rows.sign + t)
    mx_prefetch(rows.norm + t)


cdef double row_step(
    const Potential* p, const LinearRows* rows, Py_ssize_t t, double lam,
    double score, bint look, double* total) noexcept nogil:
    """New multiplier of row t at decision value `score`.

    Its Fenchel-Young term, or at least whether it is a number, goes into the total.
    """
    cdef double margin = rows.sign[t] * score
    if look:
        total[0] += rows.weight[t] * fenchel_young(
            p, lam / (rows.weight[t] * rows.rate[t]),
            rows.rate[t] * (rows.level[t] - margin))
    else:
        total[0] += 0 * score
    return coordinate_optimum(
        p, rows.level[t], rows.rate[t], rows.weight[t], lam, margin, rows.norm[t])


def epoch_csr(
    tuple spec,
    const double[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
    const double[::1] level,
    const double[::1] rate,
    const double[::1] weight,
    const double[::1] sign,
    const double[::1] norm,
    const Py_ssize_t[::1] rows,   # IN      data row of each constraint
    const Py_ssize_t[::1] order,  # IN      constraints to visit
    double variance,              # IN      of the bias, added to every |x|^2 in norm
    bint look,                    # IN      whether to sum the Fenchel-Young terms
    double[::1] lam,              # IN/OUT  (n,)
    double[::1] w,                # IN/OUT  (d,)
    double[::1] bias,             # IN/OUT  (1,)
):
    """One pass over `order`; returns (sum of Fenchel-Young terms, sum of changes).

    Without `look` the first is zero, or NaN if a decision value is not finite.
    """
    cdef Potential p = unpack_potential(spec)
    cdef LinearRows r
    cdef Py_ssize_t k, t, n = order.shape[0], ahead, work = 0
    cdef index_t j, lo, hi
    cdef double score, new, step, total = 0., moved = 0.
    if n == 0:
        return 0., 0.
    r.level = &level[0]
    r.rate = &rate[0]
    r.weight = &weight[0]
    r.sign = &sign[0]
    r.norm = &norm[0]
    for k in range(n):
        t = order[k]
        if k + FAR < n:
            ahead = order[k + FAR]
            expect_row(&r, ahead, &lam[0])
            mx_prefetch(&rows[ahead])
            mx_prefetch(&indptr[ahead])
        if k + NEAR < n:
            ahead = rows[order[k + NEAR]]
            lo, hi = indptr[ahead], indptr[ahead + 1]
            expect(&data[0] + lo, (hi - lo) * sizeof(double))
            expect(&indices[0] + lo, (hi - lo) * sizeof(index_t))
        lo = indptr[rows[t]]
        hi = indptr[rows[t] + 1]
        score = bias[0]
        for j in range(lo, hi):
            score += data[j] * w[indices[j]]
        new = row_step(&p, &r, t, lam[t], score, look, &total)
        step = sign[t] * (new - lam[t])
        if step != 0:
            lam[t] = new
            moved += step
            bias[0] += variance * step
            for j in range(lo, hi):
                w[indices[j]] += step * data[j]
        work += hi - lo + 16
        if work > 1000000:
            work = 0
            PyErr_CheckSignals()
    return total, moved


def epoch_dense(
    tuple spec,
    const double[:, ::1] X,
    const double[::1] level,
    const double[::1] rate,
    const double[::1] weight,
    const double[::1] sign,
    const double[::1] norm,
    const Py_ssize_t[::1] rows,
    const Py_ssize_t[::1] order,
    double variance,
    bint look,
    double[::1] lam,
    double[::1] w,
    double[::1] bias,
):
    """As `epoch_csr` for dense rows."""
    cdef Potential p = unpack_potential(spec)
    cdef LinearRows r
    cdef Py_ssize_t k, t, n = order.shape[0], ahead, work = 0
    cdef int d = <int>X.shape[1], one = 1
    cdef double score, new, step, total = 0., moved = 0.
    cdef double* x
    if n == 0:
        return 0., 0.
    r.level = &level[0]
    r.rate = &rate[0]
    r.weight = &weight[0]
    r.sign = &sign[0]
    r.norm = &norm[0]
    for k in range(n):
        t = order[k]
        if k + FAR < n:
            ahead = order[k + FAR]
            expect_row(&r, ahead, &lam[0])
            mx_prefetch(&rows[ahead])
        if k + NEAR < n:
            expect(&X[rows[order[k + NEAR]], 0], d * sizeof(double))
        x = <double*>&X[rows[t], 0]
        score = bias[0] + ddot(&d, x, &one, &w[0], &one)
        new = row_step(&p, &r, t, lam[t], score, look, &total)
        step = sign[t] * (new - lam[t])
        if step != 0:
            lam[t] = new
            moved += step
            bias[0] += variance * step
            daxpy(&d, &step, x, &one, &w[0], &one)
        work += d + 16
        if work > 1000000:
            work = 0
            PyErr_CheckSignals()
    return total, moved


def scale_rows(
    const double[:, :] X,         # IN   (n, d), rows contiguous
    const double[::1] factor,     # IN   (n,)
    float[:, ::1] out,            # OUT  (n, d + 1)
):
    """out = factor * [X, 1] row by row, in single precision."""
    cdef Py_ssize_t i, j, d = X.shape[1]
    cdef const double* x
    cdef float* z
    cdef double c
    with nogil:
        for i in range(factor.shape[0]):
            x = &X[i, 0] if d else NULL
            z = &out[i, 0]
            c = factor[i]
            for j in range(d):
                z[j] = <float>(c * x[j])
            z[d] = <float>c
