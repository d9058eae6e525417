"""Joint multi-class duals by coordinate ascent over the constraints of one example.

Example t with class y has a multiplier for every wrong class j, stored in the order of
the classes with y left out:

    score_k(t) = class_weight_variance sum_s beta_sk K_st + bias_k,
    beta_ty = sum_j lam_tj,  beta_tj = -lam_tj,
    bias_k = centre_k + variance sum_t beta_tk

`joint_block` works on a block of examples with their Gram matrix, `joint_csr` and
`joint_dense` keep one weight vector a class.  All of them sum the Fenchel-Young terms
met on the way, an estimate of the duality gap.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.coordinate cimport index_t
from maxent._core.potentials cimport (
    Potential,
    coordinate_optimum,
    fenchel_young,
    unpack_potential,
)


cdef double visit(
    const Potential* p, double level, double rate, double weight,
    double class_weight_variance,
    double variance, double k_tt, Py_ssize_t y, Py_ssize_t m, double* lam,
    double* score, double* moved) noexcept nogil:
    """Improve all multipliers of one example; its Fenchel-Young terms on arrival.

    score (m,) includes the bias and is kept up to date; moved (m,) returns the change
    of beta.
    """
    cdef Py_ssize_t s, j, _
    cdef double diagonal = class_weight_variance * k_tt + variance
    cdef double new, step, fenchel = 0., change
    cdef double scale = weight * rate
    for j in range(m):
        moved[j] = 0.
    for s in range(m - 1):
        j = s + (s >= y)
        fenchel += fenchel_young(
            p, lam[s] / scale, rate * (level - score[y] + score[j]))
    for _ in range(2):
        change = 0.
        for s in range(m - 1):
            j = s + (s >= y)
            new = coordinate_optimum(
                p, level, rate, weight, lam[s], score[y] - score[j], 2. * diagonal)
            step = new - lam[s]
            if step != 0:
                lam[s] = new
                moved[y] += step
                moved[j] -= step
                score[y] += diagonal * step
                score[j] -= diagonal * step
                change += 1.
        if change <= 1. and m > 2:
            break
    return weight * fenchel


def joint_block(
    tuple spec,
    const float[:, ::1] K,        # IN     (q, q) Gram matrix of the block
    const double[:, ::1] F,       # IN     (q, m) scores without bias on entry
    const Py_ssize_t[::1] codes,  # IN     (q,) classes
    const double[::1] weight,     # IN     (q,)
    double level,
    double rate,
    double class_weight_variance,
    double variance,              # IN     of the bias, added to multiples of K
    const Py_ssize_t[:, ::1] order,   # IN (passes, q) visits
    double[:, ::1] lam,           # IN/OUT (q, m - 1)
    double[::1] bias,             # IN/OUT (m,)
    double[:, ::1] beta_change,   # OUT    (q, m) change of beta
):
    """Passes over a block; returns the Fenchel-Young sums of first and last pass."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t q = K.shape[0], m = F.shape[1], k, t, u, r, visits = 0
    cdef Py_ssize_t passes = order.shape[0]
    cdef double total = 0., first = 0.
    cdef float step
    cdef const float* row
    # what the block itself has added to the scores, one row a class
    cdef float* added = <float*>malloc(m * q * sizeof(float))
    cdef double* score = <double*>malloc(2 * m * sizeof(double))
    cdef double* moved = score + m
    cdef float* target
    if added == NULL or score == NULL:
        free(added)
        free(score)
        raise MemoryError
    memset(added, 0, m * q * sizeof(float))
    beta_change[:, :] = 0
    try:
        for r in range(passes):
            total = 0.
            for u in range(q):
                t = order[r, u]
                for k in range(m):
                    score[k] = F[t, k] + <double>added[k * q + t] + bias[k]
                total += visit(&p, level, rate, weight[t], class_weight_variance,
                               variance, K[t, t],
                               codes[t], m, &lam[t, 0], score, moved)
                row = &K[t, 0]
                for k in range(m):
                    if moved[k] == 0:
                        continue
                    beta_change[t, k] += moved[k]
                    bias[k] += variance * moved[k]
                    step = <float>(class_weight_variance * moved[k])
                    target = added + k * q
                    for visits in range(q):
                        target[visits] += step * row[visits]
                if u % 256 == 0:
                    PyErr_CheckSignals()
            if r == 0:
                first = total
    finally:
        free(added)
        free(score)
    return first, total


def joint_csr(
    tuple spec,
    const double[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
    const double[::1] norm,       # IN     (n,) squared norms of the rows
    const Py_ssize_t[::1] codes,  # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    double level,
    double rate,
    double class_weight_variance,
    double variance,
    const Py_ssize_t[::1] order,  # IN     visits
    double[:, ::1] lam,           # IN/OUT (n, m - 1)
    double[:, ::1] W,             # IN/OUT (d, m) weights of every class
    double[::1] bias,             # IN/OUT (m,)
):
    """One pass over the examples; returns the Fenchel-Young sum."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t m = W.shape[1], k, t, u, work = 0
    cdef index_t j, lo, hi
    cdef double total = 0., x
    cdef bint any_moved
    cdef double* score = <double*>malloc(2 * m * sizeof(double))
    cdef double* moved = score + m
    cdef double* w
    if score == NULL:
        raise MemoryError
    try:
        for u in range(order.shape[0]):
            t = order[u]
            lo = indptr[t]
            hi = indptr[t + 1]
            for k in range(m):
                score[k] = bias[k]
            for j in range(lo, hi):
                w = &W[indices[j], 0]
                x = data[j]
                for k in range(m):
                    score[k] += x * w[k]
            total += visit(&p, level, rate, weight[t], class_weight_variance,
                           variance, norm[t],
                           codes[t], m, &lam[t, 0], score, moved)
            any_moved = False
            for k in range(m):
                if moved[k] != 0:
                    any_moved = True
                    bias[k] += variance * moved[k]
                    moved[k] *= class_weight_variance
            if any_moved:
                for j in range(lo, hi):
                    w = &W[indices[j], 0]
                    x = data[j]
                    for k in range(m):
                        w[k] += x * moved[k]
            work += (hi - lo + 16) * m
            if work > 1000000:
                work = 0
                PyErr_CheckSignals()
    finally:
        free(score)
    return total


def joint_dense(
    tuple spec,
    const double[:, ::1] X,
    const double[::1] norm,
    const Py_ssize_t[::1] codes,
    const double[::1] weight,
    double level,
    double rate,
    double class_weight_variance,
    double variance,
    const Py_ssize_t[::1] order,
    double[:, ::1] lam,
    double[:, ::1] W,             # IN/OUT (m, d) weights of every class
    double[::1] bias,
):
    """As `joint_csr` for dense rows; here W has one row a class."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t m = W.shape[0], d = X.shape[1], k, j, t, u, work = 0
    cdef double total = 0., sum0, sum1, sum2, sum3, step
    cdef double* score = <double*>malloc(2 * m * sizeof(double))
    cdef double* moved = score + m
    cdef double* w
    cdef const double* x
    if score == NULL:
        raise MemoryError
    try:
        for u in range(order.shape[0]):
            t = order[u]
            x = &X[t, 0]
            for k in range(m):
                w = &W[k, 0]
                sum0 = sum1 = sum2 = sum3 = 0.
                for j in range(0, d - 3, 4):
                    sum0 += x[j] * w[j]
                    sum1 += x[j + 1] * w[j + 1]
                    sum2 += x[j + 2] * w[j + 2]
                    sum3 += x[j + 3] * w[j + 3]
                for j in range(d - d % 4, d):
                    sum0 += x[j] * w[j]
                score[k] = bias[k] + ((sum0 + sum1) + (sum2 + sum3))
            total += visit(&p, level, rate, weight[t], class_weight_variance,
                           variance, norm[t],
                           codes[t], m, &lam[t, 0], score, moved)
            for k in range(m):
                if moved[k] != 0:
                    bias[k] += variance * moved[k]
                    step = class_weight_variance * moved[k]
                    w = &W[k, 0]
                    for j in range(d):
                        w[j] += step * x[j]
            work += (d + 16) * m
            if work > 1000000:
                work = 0
                PyErr_CheckSignals()
    finally:
        free(score)
    return total
