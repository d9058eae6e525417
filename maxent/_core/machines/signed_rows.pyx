"""Passes over the rows of a dual of signed multipliers: bounds, balance, certificate.

Row t contributes phi(|a_t|), with its own level, rate and weight; its sides are 1 where
a_t >= 0, 2 where a_t <= 0, 3 where both signs are allowed.
"""

from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.potentials cimport (
    LOGISTIC,
    Potential,
    conjugate_argmax,
    conjugate_curvature,
    fenchel_young,
    potential_slope,
    potential_value,
    unpack_potential,
)

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_softplus_sigmoid(
        const double* x, Py_ssize_t n, double* value, double* slope) noexcept

cdef enum:
    CHUNK = 256                # rows of a pass at a time

cdef double AT_END = 1e-15     # what counts as the end of the domain


cdef void bounds_of(
    const Potential* p, const SignedRows* rows, const double* a, const double* f,
    double b, double least, double* up, double* low
) noexcept nogil:
    """The derivatives of :func:`kkt_bounds`."""
    cdef Py_ssize_t t
    cdef double base, slope, scale, size
    for t in range(rows.n):
        scale = rows.weight[t] * rows.rate[t]
        size = fabs(a[t])
        base = rows.target[t] - f[t] - b
        slope = rows.level[t] + potential_slope(p, size / scale) / rows.rate[t]
        if a[t] == 0:
            up[t] = base + slope if rows.sides[t] & 1 else -INFINITY
            low[t] = base - slope if rows.sides[t] & 2 else INFINITY
            continue
        up[t] = low[t] = base + slope if a[t] > 0 else base - slope
        if size >= p.upper * scale * (1. - AT_END):
            if a[t] > 0:
                up[t] = -INFINITY
            else:
                low[t] = INFINITY
        if least > 0 and size <= 1.5 * least * scale:
            if a[t] > 0:
                low[t] = INFINITY
            else:
                up[t] = -INFINITY


cdef SignedRows rows_of(
    const double[::1] target, const double[::1] level, const double[::1] rate,
    const double[::1] weight, const signed char[::1] sides
) noexcept:
    cdef SignedRows rows
    memset(&rows, 0, sizeof(rows))
    rows.n = target.shape[0]
    if rows.n:
        rows.target, rows.level, rows.rate = &target[0], &level[0], &rate[0]
        rows.weight, rows.sides = &weight[0], &sides[0]
    return rows


def kkt_bounds(
    tuple spec,
    const double[::1] a,          # IN     (n,) signed multipliers
    const double[::1] f,          # IN     (n,) decision values without bias
    double b,
    const double[::1] target,     # IN     (n,)
    const double[::1] level,      # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    const signed char[::1] sides,  # IN    (n,)
    double least,                 # IN     share of a multiplier that counts as zero
    double[::1] up,               # OUT    (n,)
    double[::1] low,              # OUT    (n,)
):
    """One-sided derivatives of the objective in each multiplier at f + b.

    A derivative along which a row may not move is -infinite (up) or infinite (low).
    """
    cdef Potential p = unpack_potential(spec)
    cdef SignedRows rows = rows_of(target, level, rate, weight, sides)
    if rows.n:
        with nogil:
            bounds_of(&p, &rows, &a[0], &f[0], b, least, &up[0], &low[0])


cdef void balance_rows(
    double* a, Py_ssize_t n, double upper, const double* rate, const double* weight
) noexcept nogil:
    """Take the rounding error of sum a = 0 from the multipliers that have room."""
    cdef Py_ssize_t t
    cdef double total, size, room, square
    cdef int _
    for _ in range(3):
        total = size = square = 0.
        for t in range(n):
            total += a[t]
            size += fabs(a[t])
            room = room_of(a[t], upper * weight[t] * rate[t])
            square += room * room
        if fabs(total) <= 1e-16 * size or not square > 0:
            return
        for t in range(n):
            room = room_of(a[t], upper * weight[t] * rate[t])
            a[t] -= room * room * (total / square)


def balance(
    double[::1] a,                # IN/OUT (n,) signed multipliers
    double upper,                 # IN     supremum of |a| / (weight rate)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
):
    """Take the rounding error of sum a = 0 from the multipliers that have room."""
    if a.shape[0]:
        with nogil:
            balance_rows(&a[0], a.shape[0], upper, &rate[0], &weight[0])


cdef inline double room_of(double a, double top) noexcept nogil:
    """Distances of a multiplier from zero and from its upper end."""
    a = fabs(a)
    return fmax(fmin(a, top - a), 0.) if isfinite(top) else a


cdef void slope_of(
    const Potential* p, const double* d, const double* sign, const double* rate,
    const double* weight, Py_ssize_t n, double b, double* slope, double* curvature
) noexcept nogil:
    """Derivatives in b of the total loss at shortfalls d - sign b."""
    cdef Py_ssize_t start = 0, stop, i
    cdef double scale
    cdef double x[CHUNK]
    cdef double value[CHUNK]
    cdef double first[CHUNK]
    slope[0] = curvature[0] = 0.
    while start < n:
        stop = min(n - start, <Py_ssize_t>CHUNK)
        for i in range(stop):
            x[i] = rate[start + i] * (d[start + i] - sign[start + i] * b)
        if p.kind == LOGISTIC:
            mx_softplus_sigmoid(x, stop, value, first)
        for i in range(stop):
            scale = weight[start + i] * rate[start + i] * sign[start + i]
            if p.kind == LOGISTIC:
                slope[0] -= scale * first[i]
                scale *= first[i] * (1. - first[i])
            else:
                slope[0] -= scale * conjugate_argmax(p, x[i])
                scale *= conjugate_curvature(p, x[i])
            curvature[0] += scale * rate[start + i] * sign[start + i]
        start += CHUNK


cdef double newton(
    const Potential* p, const double* d, const double* sign, const double* rate,
    const double* weight, Py_ssize_t n, double b) noexcept nogil:
    """Bias of the smallest loss near a guess; NaN if the guess is poor."""
    cdef double slope, curvature, step, last = INFINITY
    cdef int _
    for _ in range(12):
        slope_of(p, d, sign, rate, weight, n, b, &slope, &curvature)
        if not curvature > 0:
            return NAN
        step = -slope / curvature
        if not fabs(step) < 0.5 * last:
            # rounding, if the steps were tiny already
            return b if fabs(step) <= 1e-11 * fmax(1., fabs(b)) else NAN
        b += step
        if fabs(step) <= 1e-13 * fmax(1., fabs(b)):
            return b
        last = fabs(step)
    return NAN


def loss_slope(
    tuple spec,
    const double[::1] d,          # IN     (n,) shortfalls without bias
    const double[::1] sign,       # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    double b,
):
    """Slope and curvature in the bias b of the total loss at shortfalls d - sign b."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = d.shape[0]
    cdef double slope = 0., curvature = 0.
    if n:
        with nogil:
            slope_of(&p, &d[0], &sign[0], &rate[0], &weight[0], n, b, &slope,
                     &curvature)
    return slope, curvature


def newton_bias(
    tuple spec,
    const double[::1] d,          # IN     (n,) shortfalls without bias
    const double[::1] sign,       # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    double guess,
):
    """Root of the slope of the loss in the bias by Newton's method, or None."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = d.shape[0]
    cdef double b = NAN
    if n:
        with nogil:
            b = newton(&p, &d[0], &sign[0], &rate[0], &weight[0], n, guess)
    return b if b == b else None


cdef bint certify_rows(
    const Potential* p, const SignedRows* rows, const double* a, const double* f,
    bint polish, double* scratch, double* b, double* objective, double* gap
) noexcept nogil:
    """Objective, gap and bias of rows of one sign; false if no bias was reached.

    `objective` holds the value of the quadratic at a, and b a bias, or a guess if it is
    to be polished; scratch (2, n).
    """
    cdef Py_ssize_t t, n = rows.n
    cdef double lam, u
    cdef double* d = scratch
    cdef double* sign = scratch + n
    for t in range(n):
        sign[t] = 1. if rows.sides[t] == 1 else -1.
        d[t] = rows.level[t] + sign[t] * (rows.target[t] - f[t])
    if polish and n:
        b[0] = newton(p, d, sign, rows.rate, rows.weight, n, b[0])
    if b[0] != b[0]:
        return False
    objective[0] = -objective[0]
    gap[0] = 0.
    for t in range(n):
        lam = sign[t] * a[t]
        if lam < 0:
            lam = 0.        # and a NaN is kept
        u = lam / (rows.weight[t] * rows.rate[t])
        objective[0] += (rows.level[t] + sign[t] * rows.target[t]) * lam
        objective[0] += rows.weight[t] * potential_value(p, u)
        gap[0] += rows.weight[t] * fenchel_young(
            p, u, rows.rate[t] * (d[t] - sign[t] * b[0]))
    return True


def certificate(
    tuple spec,
    const double[::1] a,          # IN     (n,) signed multipliers
    const double[::1] f,          # IN     (n,) decision values without bias
    const double[::1] target,     # IN     (n,)
    const double[::1] level,      # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    const signed char[::1] sides,  # IN    (n,) 1 or 2
    double value,                 # IN     of the quadratic at a
    double b,                     # IN     bias, or a guess at it
    bint polish,                  # IN     whether it is a guess
):
    """(objective, gap, bias) of rows of one sign; None if no bias was reached."""
    cdef Potential p = unpack_potential(spec)
    cdef SignedRows rows = rows_of(target, level, rate, weight, sides)
    cdef double objective = value, gap = 0.
    cdef bint found
    cdef double* scratch = <double*>malloc(2 * max(rows.n, 1) * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    with nogil:
        found = certify_rows(&p, &rows, &a[0] if rows.n else NULL,
                             &f[0] if rows.n else NULL, polish, scratch, &b,
                             &objective, &gap)
        free(scratch)
    return (objective, gap, b) if found else None
