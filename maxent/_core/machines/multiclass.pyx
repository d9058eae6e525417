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
from scipy.linalg.cython_blas cimport daxpy, dgemv

from maxent._core.machines.coordinate cimport index_t
from maxent._core.potentials cimport (
    Potential,
    coordinate_optimum,
    fenchel_young,
    potential_slope,
    unpack_potential,
)

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_add_row(
        float* v, const float* row, float c, Py_ssize_t n) noexcept
    void MX_PREFETCH(const void* address) noexcept
    void mx_add_rows(
        float* v, const float* const* rows, const float* c, Py_ssize_t m,
        Py_ssize_t n) noexcept

cdef enum:
    WINDOW = 16                # examples whose scores are read at a time
    SLICE = 10000000           # work between checks for signals


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
    # From this margin on a multiplier of zero is the best one.
    cdef double enough = level + potential_slope(p, 0.) / rate
    for j in range(m):
        moved[j] = 0.
    for _ in range(2):
        change = 0.
        for s in range(m - 1):
            j = s + (s >= y)
            if lam[s] == 0 and score[y] - score[j] >= enough:
                continue
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
    double variance, double k_tt, Py_ssize_t y, Py_ssize_t m, bint look, double* lam,
    double* score, double* moved) noexcept nogil:
    """Improve all multipliers of one example; its Fenchel-Young terms on arrival.

    Without `look` these are zero.
    """
    cdef Py_ssize_t s, j
    cdef double fenchel = 0., scale = weight * rate
    for s in range(m - 1 if look else 0):
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
    multiplier counts as zero.
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
        if not excess <= worst:         # a NaN is kept
            worst = excess
    return worst


cdef struct Moves:
    # changes of a window of examples: multiples of their rows of K, for each class
    Py_ssize_t n_rows
    const float* row[WINDOW]
    Py_ssize_t* count          # (m,)
    Py_ssize_t* which          # (m, WINDOW) of the rows
    float* multiple            # (m, WINDOW)


cdef struct Block:
    Potential prior
    double level, rate, class_weight_variance, variance, skip, least
    Py_ssize_t m, q, ld, n_order
    const float* K
    const double* F
    float* change
    const Py_ssize_t* codes
    const double* weight
    const Py_ssize_t* order
    double* lam
    double* bias
    double* score              # (m,) of the example visited
    double* moved              # (m,) change of its beta
    float* near                # (m, WINDOW) changes of the scores of the examples ahead
    Moves found                # what this window changes
    double total, largest
    Py_ssize_t next, visits    # place in the order, examples improved


cdef void add_found(Block* b) noexcept nogil:
    """Add the changes of a window to the scores of all examples, class by class."""
    cdef const Moves* found = &b.found
    cdef Py_ssize_t k, i
    cdef const float* rows[WINDOW]
    for k in range(b.m):
        for i in range(found.count[k]):
            rows[i] = found.row[found.which[k * WINDOW + i]]
        mx_add_rows(b.change + k * b.q, rows, found.multiple + k * WINDOW,
                    found.count[k], b.q)


cdef void read_window(Block* b, Py_ssize_t count) noexcept nogil:
    """Changes of the scores of the next examples."""
    cdef Py_ssize_t k, l, t
    for l in range(count):
        t = b.order[b.next + l]
        for k in range(b.m):
            b.near[k * WINDOW + l] = b.change[k * b.q + t]
            MX_PREFETCH(b.F + k * b.q + t)


cdef void visit_one(Block* b, Py_ssize_t l, Py_ssize_t count) noexcept nogil:
    """Improve example l of the window of `count` if it violates enough."""
    cdef const Potential* p = &b.prior
    cdef Moves* found = &b.found
    cdef Py_ssize_t m = b.m, k, t = b.order[b.next + l], ahead, i
    cdef double violation, terms = 0.
    cdef double* lam = b.lam + t * (m - 1)
    cdef const float* row = b.K + t * b.ld
    cdef float values[WINDOW]
    for k in range(m):
        b.score[k] = b.F[k * b.q + t] + <double>b.near[k * WINDOW + l] + b.bias[k]
    violation = violation_of(p, b.level, b.rate, b.weight[t] * b.rate, b.least,
                             b.codes[t], m, lam, b.score, &terms)
    b.total += b.weight[t] * terms
    if not violation <= b.largest:
        b.largest = violation
    if violation <= b.skip:
        return
    for ahead in range(l + 1, count):
        MX_PREFETCH(row + b.order[b.next + ahead])
    improve(p, b.level, b.rate, b.weight[t], b.class_weight_variance, b.variance,
            row[t], b.codes[t], m, lam, b.score, b.moved)
    b.visits += 1
    for ahead in range(l + 1, count):
        values[ahead] = row[b.order[b.next + ahead]]
    for k in range(m):
        if b.moved[k] != 0:
            b.bias[k] += b.variance * b.moved[k]
            i = k * WINDOW + found.count[k]
            found.count[k] += 1
            found.which[i] = found.n_rows
            found.multiple[i] = <float>(b.class_weight_variance * b.moved[k])
            mx_add_row(b.near + k * WINDOW + l + 1, values + l + 1, found.multiple[i],
                       count - l - 1)
    found.row[found.n_rows] = row
    found.n_rows += 1


cdef void visit_block(Block* b) noexcept nogil:
    """Visit the examples of a block in order, for a slice of work.

    Their scores are read a window at a time, and what a window changes is added to all
    scores together.
    """
    cdef Py_ssize_t k, l, count, work = 0
    while b.next < b.n_order and work <= SLICE:
        count = min(<Py_ssize_t>WINDOW, b.n_order - b.next)
        read_window(b, count)
        b.found.n_rows = 0
        for k in range(b.m):
            b.found.count[k] = 0
        for l in range(count):
            visit_one(b, l, count)
        b.next += count
        if b.found.n_rows:
            add_found(b)
        work += b.m * (count + b.found.n_rows * (b.q // 8))


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
    double least,                 # IN     share of a multiplier that counts as zero
):
    """One pass; (Fenchel-Young sum on arrival, visits, largest violation).

    Examples that violate the optimality condition by less than `skip` are passed over.
    Single precision is enough for the change of scores, and takes a third of the time.
    """
    cdef Py_ssize_t m = F.shape[0], q = F.shape[1], most = WINDOW * m
    cdef Block b
    cdef void* memory
    if K.shape[0] < q or K.shape[1] < q or K.strides[1] != sizeof(float):
        raise ValueError("K needs contiguous rows of one value for each of F")
    if change.shape[0] != m or change.shape[1] != q:
        raise ValueError("the change needs the shape of F")
    if q == 0 or order.shape[0] == 0:
        return 0., 0, 0.
    memory = malloc(2 * m * sizeof(double) + (m + most) * sizeof(Py_ssize_t)
                    + 2 * most * sizeof(float))
    if memory == NULL:
        raise MemoryError
    b.prior = unpack_potential(spec)
    b.level, b.rate, b.class_weight_variance = level, rate, class_weight_variance
    b.variance, b.skip, b.least = variance, skip, least
    b.m, b.q, b.ld = m, q, K.strides[0] // <Py_ssize_t>sizeof(float)
    b.n_order, b.next, b.visits = order.shape[0], 0, 0
    b.K, b.F, b.change = &K[0, 0], &F[0, 0], &change[0, 0]
    b.codes, b.weight, b.order = &codes[0], &weight[0], &order[0]
    b.lam, b.bias = &lam[0, 0], &bias[0]
    b.score = <double*>memory
    b.moved = b.score + m
    b.found.count = <Py_ssize_t*>(b.moved + m)
    b.found.which = b.found.count + m
    b.found.multiple = <float*>(b.found.which + most)
    b.near = b.found.multiple + most
    b.total = b.largest = 0.
    try:
        while b.next < b.n_order:
            with nogil:
                visit_block(&b)
            PyErr_CheckSignals()
    finally:
        free(memory)
    return b.total, b.visits, b.largest


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
    bint look,                    # IN     whether to sum the Fenchel-Young terms
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
                           codes[t], m, look, &lam[t, 0], score, moved)
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
    bint look,
    double[:, ::1] lam,
    double[:, ::1] W,             # IN/OUT (m, d) weights of every class
    double[::1] bias,
):
    """As `joint_csr` for dense rows; here W has one row a class."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t m = W.shape[0], k, t, u, work = 0
    cdef int classes = <int>m, d = <int>X.shape[1], one = 1
    cdef double total = 0., step, unit = 1.
    cdef double* score = <double*>malloc(2 * m * sizeof(double))
    cdef double* moved = score + m
    cdef double* x
    if score == NULL:
        raise MemoryError
    try:
        for u in range(order.shape[0]):
            t = order[u]
            x = <double*>&X[t, 0]
            for k in range(m):
                score[k] = bias[k]
            dgemv("T", &d, &classes, &unit, &W[0, 0], &d, x, &one, &unit, score, &one)
            total += visit(&p, level, rate, weight[t], class_weight_variance,
                           variance, norm[t],
                           codes[t], m, look, &lam[t, 0], score, moved)
            for k in range(m):
                if moved[k] != 0:
                    bias[k] += variance * moved[k]
                    step = class_weight_variance * moved[k]
                    daxpy(&d, &step, x, &one, &W[k, 0], &one)
            work += (d + 16) * m
            if work > 1000000:
                work = 0
                PyErr_CheckSignals()
    finally:
        free(score)
    return total
