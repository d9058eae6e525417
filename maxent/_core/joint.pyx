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

from maxent._core.coordinate cimport index_t
from maxent._core.potentials cimport (
    Potential,
    coordinate_optimum,
    fenchel_young,
    potential_slope,
    unpack_potential,
)

cdef extern from "vector.h" nogil:
    void mx_add_row(
        float* v, const float* row, float c, Py_ssize_t n) noexcept


cdef void improve(
    const Potential* p, double level, double rate, double weight,
    double class_weight_variance,
    double variance, double k_tt, Py_ssize_t y, Py_ssize_t m, double* lam,
    double* score, double* moved) noexcept nogil:
    """Improve all multipliers of one example.

    score (m,) includes the bias and is kept up to date; moved (m,) returns the change
    of beta.
    """
    cdef Py_ssize_t s, j, _
    cdef double diagonal = class_weight_variance * k_tt + variance
    cdef double new, step, change
    for j in range(m):
        moved[j] = 0.
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


cdef double visit(
    const Potential* p, double level, double rate, double weight,
    double class_weight_variance,
    double variance, double k_tt, Py_ssize_t y, Py_ssize_t m, double* lam,
    double* score, double* moved) noexcept nogil:
    """Improve all multipliers of one example; its Fenchel-Young terms on arrival."""
    cdef Py_ssize_t s, j
    cdef double fenchel = 0., scale = weight * rate
    for s in range(m - 1):
        j = s + (s >= y)
        fenchel += fenchel_young(
            p, lam[s] / scale, rate * (level - score[y] + score[j]))
    improve(p, level, rate, weight, class_weight_variance, variance, k_tt, y, m, lam,
            score, moved)
    return weight * fenchel


cdef double violation_of(
    const Potential* p, double level, double rate, double scale, double least,
    Py_ssize_t y, Py_ssize_t m, const double* lam, const double* score,
    double* fenchel) noexcept nogil:
    """Largest violation of the optimality condition by one example's constraints.

    Adds their Fenchel-Young terms.  `least` is the share of the scale up to which a
    multiplier is as good as zero.
    """
    cdef Py_ssize_t s, j
    cdef double worst = 0., excess, shortfall, share
    cdef double at_zero = potential_slope(p, 0.) / rate
    for s in range(m - 1):
        j = s + (s >= y)
        shortfall = level - score[y] + score[j]
        if lam[s] == 0:
            excess = shortfall + at_zero
            if excess <= 0:
                continue                # no loss, and no wish for a multiplier
            share = 0.
        else:
            share = lam[s] / scale
            excess = shortfall + potential_slope(p, share) / rate
            if excess < 0:
                excess = -excess if share > least else 0.
            elif share >= p.upper:
                excess = 0.
        fenchel[0] += fenchel_young(p, share, rate * shortfall)
        if not excess <= worst:         # a NaN goes on
            worst = excess
    return worst


def joint_block(
    tuple spec,
    const float[:, :] K,          # IN     (>= q, >= q) Gram matrix, rows contiguous
    const double[:, ::1] F,       # IN     (m, q) scores without bias, once
    float[:, ::1] change,         # IN/OUT (m, q) what they have changed by since
    const Py_ssize_t[::1] codes,  # IN     (q,) classes
    const double[::1] weight,     # IN     (q,)
    double level,
    double rate,
    double class_weight_variance,
    double variance,              # IN     of the bias, added to multiples of K
    const Py_ssize_t[::1] order,  # IN     visits
    double[:, ::1] lam,           # IN/OUT (q, m - 1)
    double[::1] bias,             # IN/OUT (m,)
    double skip,                  # IN     violation up to which a visit is spared
    double least,                 # IN     share of a multiplier as good as zero
):
    """One pass; (Fenchel-Young sum on arrival, visits, largest violation).

    Examples that violate the optimality condition by less than `skip` are passed over.
    Single precision is enough for the change of scores, and takes a third of the time.
    """
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t m = F.shape[0], q = F.shape[1], k, t, u, visits = 0, work = 0
    cdef double total = 0., largest = 0., violation, terms
    cdef const float* row
    cdef double* score = <double*>malloc(2 * m * sizeof(double))
    cdef double* moved = score + m
    if score == NULL:
        raise MemoryError
    if K.shape[0] < q or K.shape[1] < q or K.strides[1] != sizeof(float):
        raise ValueError("K needs contiguous rows of one value for each of F")
    if change.shape[0] != m or change.shape[1] != q:
        raise ValueError("the change needs the shape of F")
    try:
        for u in range(order.shape[0]):
            t = order[u]
            for k in range(m):
                score[k] = F[k, t] + <double>change[k, t] + bias[k]
            work += m
            terms = 0.
            violation = violation_of(&p, level, rate, weight[t] * rate, least,
                                     codes[t], m, &lam[t, 0], score, &terms)
            total += weight[t] * terms
            if not violation <= largest:
                largest = violation
            if not violation <= skip:
                row = &K[t, 0]
                improve(&p, level, rate, weight[t], class_weight_variance, variance,
                        row[t], codes[t], m, &lam[t, 0], score, moved)
                visits += 1
                for k in range(m):
                    if moved[k] != 0:
                        bias[k] += variance * moved[k]
                        mx_add_row(&change[k, 0], row,
                                   <float>(class_weight_variance * moved[k]), q)
                        work += q // 4
            if work > 10000000:
                work = 0
                PyErr_CheckSignals()
    finally:
        free(score)
    return total, visits, largest


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
