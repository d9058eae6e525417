"""Passes over the rows of a dual of signed multipliers: bounds, balance, certificate.

Row t contributes phi(|a_t|), with its own level, rate and weight; its sides are 1 where
a_t >= 0, 2 where a_t <= 0, 3 where both signs are allowed.
"""

from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite
from libc.stdlib cimport free, malloc

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
    cdef Py_ssize_t t
    cdef double base, slope, scale, size
    with nogil:
        for t in range(a.shape[0]):
            scale = weight[t] * rate[t]
            size = fabs(a[t])
            base = target[t] - f[t] - b
            slope = level[t] + potential_slope(&p, size / scale) / rate[t]
            if a[t] == 0:
                up[t] = base + slope if sides[t] & 1 else -INFINITY
                low[t] = base - slope if sides[t] & 2 else INFINITY
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


def balance(
    double[::1] a,                # IN/OUT (n,) signed multipliers
    double upper,                 # IN     supremum of |a| / (weight rate)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
):
    """Take the rounding error of sum a = 0 from the multipliers that have room."""
    cdef Py_ssize_t t, n = a.shape[0]
    cdef double total, size, room, square
    cdef int _
    for _ in range(3):
        total = size = square = 0.
        with nogil:
            for t in range(n):
                total += a[t]
                size += fabs(a[t])
                room = room_of(a[t], upper * weight[t] * rate[t])
                square += room * room
        if fabs(total) <= 1e-16 * size or not square > 0:
            return
        with nogil:
            for t in range(n):
                room = room_of(a[t], upper * weight[t] * rate[t])
                a[t] -= room * room * (total / square)


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
    cdef Py_ssize_t t, n = a.shape[0]
    cdef double objective = -value, gap = 0., lam, u
    cdef double* d = <double*>malloc(2 * max(n, 1) * sizeof(double))
    cdef double* sign = d + n
    if d == NULL:
        raise MemoryError
    with nogil:
        for t in range(n):
            sign[t] = 1. if sides[t] == 1 else -1.
            d[t] = level[t] + sign[t] * (target[t] - f[t])
        if polish and n:
            b = newton(&p, d, sign, &rate[0], &weight[0], n, b)
        if b == b:
            for t in range(n):
                lam = sign[t] * a[t]
                if lam < 0:
                    lam = 0.        # and a NaN is kept
                u = lam / (weight[t] * rate[t])
                objective += (level[t] + sign[t] * target[t]) * lam
                objective += weight[t] * potential_value(&p, u)
                gap += weight[t] * fenchel_young(&p, u, rate[t] * (d[t] - sign[t] * b))
        free(d)
    return (objective, gap, b) if b == b else None
