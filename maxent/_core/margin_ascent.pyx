"""Pairwise dual ascent for margin problems with sparse rows.

    max  sum a q - |v|^2 / 2,   v = sum a_r z_r,   a >= 0,   sum over group i <= c_i

A visit of a group moves multipliers from the row with a > 0 of the smallest shortfall
m = q - z . v to the one of the largest; the rest of c_i counts as a row of zeros:

    t = min(a_from, (m_to - m_from) / |z_to - z_from|^2)

Source: Platt (1999), Fast training of support vector machines using sequential minimal
optimization; Crammer & Singer (2001), section 6.
"""

from cpython.exc cimport PyErr_CheckSignals

cdef enum:
    GROUPS = 4096           # groups between two checks for Ctrl-C

ctypedef fused index:
    int
    long long


cdef inline double row_dot(
    const index* at, const double* x, Py_ssize_t n, const double* v,
) noexcept nogil:
    cdef Py_ssize_t k
    cdef double out = 0.
    for k in range(n):
        out += x[k] * v[at[k]]
    return out


cdef inline double rows_dot(
    const index* at, const double* x, Py_ssize_t n,
    const index* at2, const double* x2, Py_ssize_t n2,
) noexcept nogil:
    """Inner product of two rows with sorted indices."""
    cdef Py_ssize_t k = 0, l = 0
    cdef double out = 0.
    while k < n and l < n2:
        if at[k] == at2[l]:
            out += x[k] * x2[l]
            k += 1
            l += 1
        elif at[k] < at2[l]:
            k += 1
        else:
            l += 1
    return out


cdef inline void add_row(
    const index* at, const double* x, Py_ssize_t n, double t, double* v,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        v[at[k]] += t * x[k]


cdef double visit(
    const index* indptr, const index* indices, const double* data, const double* q,
    const double* norm, Py_ssize_t lo, Py_ssize_t hi, double c, double* a, double* room,
    double* v, double* m,
) noexcept nogil:
    """Pair steps on rows lo .. hi - 1; returns the largest violation met."""
    cdef Py_ssize_t r, up, down, moves
    cdef double best, worst, size, t, violation = 0.
    for moves in range(1 if hi - lo == 1 else 2 * (hi - lo)):
        up = down = -1
        best, worst = 0., 0.
        if room[0] <= 0.:
            worst = 1e308
        for r in range(lo, hi):
            m[r - lo] = q[r] - row_dot(
                indices + indptr[r], data + indptr[r], indptr[r + 1] - indptr[r], v)
            if m[r - lo] > best:
                best, up = m[r - lo], r
            if a[r] > 0. and m[r - lo] < worst:
                worst, down = m[r - lo], r
        if up == down or best - worst <= 1e-15 * (1. + best - worst):
            return violation
        if moves == 0:
            violation = best - worst
        size = 0.
        if up >= 0:
            size += norm[up]
        if down >= 0:
            size += norm[down]
        if up >= 0 and down >= 0:
            size -= 2. * rows_dot(
                indices + indptr[up], data + indptr[up], indptr[up + 1] - indptr[up],
                indices + indptr[down], data + indptr[down],
                indptr[down + 1] - indptr[down])
        t = room[0] if down < 0 else a[down]
        if size > 0. and (best - worst) < t * size:
            t = (best - worst) / size
            if down < 0:
                room[0] -= t
            else:
                a[down] -= t
        elif down < 0:
            room[0] = 0.
        else:
            a[down] = 0.
        if up < 0:
            room[0] += t
        else:
            a[up] = min(a[up] + t, c)
            add_row(indices + indptr[up], data + indptr[up],
                    indptr[up + 1] - indptr[up], t, v)
        if down >= 0:
            add_row(indices + indptr[down], data + indptr[down],
                    indptr[down + 1] - indptr[down], -t, v)
    return violation


def ascend(
    const index[::1] indptr,          # IN   (rows + 1,), sorted indices
    const index[::1] indices,         # IN
    const double[::1] data,           # IN
    const double[::1] q,              # IN   (rows,)
    const double[::1] norm,           # IN   (rows,), |z_r|^2
    const Py_ssize_t[::1] starts,     # IN   (n + 1,)
    const double[::1] c,              # IN   (n,)
    const Py_ssize_t[::1] order,      # IN   groups to visit, in their order
    double[::1] a,                    # IN OUT (rows,)
    double[::1] room,                 # IN OUT (n,), c - sum a
    double[::1] v,                    # IN OUT (d,)
    double[::1] scratch,              # as many as the largest group has rows
    double[::1] violation,            # OUT  (n,), of the groups visited
):
    """One pass over groups."""
    cdef Py_ssize_t k, lo, hi, i
    for lo in range(0, order.shape[0], GROUPS):
        hi = min(lo + GROUPS, order.shape[0])
        with nogil:
            for k in range(lo, hi):
                i = order[k]
                violation[i] = visit(
                    &indptr[0], &indices[0], &data[0], &q[0], &norm[0], starts[i],
                    starts[i + 1], c[i], &a[0], &room[i], &v[0], &scratch[0])
        PyErr_CheckSignals()
