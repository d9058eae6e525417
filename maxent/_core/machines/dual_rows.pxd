"""One row of the signed dual: its slope, its curvature, its bounds; steps of pairs.

A row contributes phi(|a|), with its own level, rate and weight; a is the signed
multiplier.
"""

from libc.math cimport INFINITY, fabs

from maxent._core.potentials cimport Potential, potential_curvature, potential_slope

cdef struct DualRow:
    # One signed multiplier a: phi(|a|) with the row's own level, rate and weight.
    double level
    double rate
    double weight           # infinite: no potential at all (a Gaussian bias)
    double unit             # 1 / (weight rate) and 1 / rate: divisions take long
    double per_rate
    double least            # |a| stays above it where the slope at zero is infinite
    double most             # and below it where the end of the domain is open
    int sides               # 1: a >= 0, 2: a <= 0, 3: both


cdef inline double row_upper(const Potential* p, const DualRow* row) noexcept nogil:
    """Supremum of |a|."""
    return p.upper * row.weight * row.rate


cdef inline double row_slope(
    const Potential* p, const DualRow* row, double a, int direction) noexcept nogil:
    """Derivative of phi(|a|); at a = 0 the one-sided one (direction +1 or -1)."""
    cdef double sign = 1. if a > 0 or (a == 0 and direction > 0) else -1.
    if row.weight == INFINITY:
        return 0.
    return sign * (
        row.level
        + potential_slope(p, fabs(a) * row.unit) * row.per_rate)


cdef inline double row_curvature(
    const Potential* p, const DualRow* row, double a) noexcept nogil:
    """Minus the second derivative of phi(|a|)."""
    if row.weight == INFINITY:
        return 0.
    return potential_curvature(p, fabs(a) * row.unit) * (row.unit * row.per_rate)


cdef inline double row_bounded(const DualRow* row, double a) noexcept nogil:
    """The multiplier nearest to a, on its side of zero, that the row may take."""
    if a > row.most:
        return row.most
    if a < -row.most:
        return -row.most
    if fabs(a) < row.least:
        return row.least if row.sides == 1 else -row.least
    return a


cdef inline double solve_pair(
    const Potential* p, const DualRow* ri, const DualRow* rj, double ai, double aj,
    double excess, double eta) noexcept nogil:
    """Step tau >= 0 of the problem a_i += tau, a_j -= tau.

    Root of the decreasing function
        excess + [s_i(a_i + tau) - s_i(a_i)] - [s_j(a_j - tau) - s_j(a_j)] - eta tau
    on [0, hi], where no multiplier crosses its bounds or comes nearer to zero than it
    may; hi if there is no root.  Newton's method inside a shrinking bracket.
    """
    cdef double lo = 0., hi, tau, g, h
    cdef double si = row_slope(p, ri, ai, 1), sj = row_slope(p, rj, aj, -1)
    cdef double room
    cdef int _
    hi = -ai - ri.least if ai < 0 else row_upper(p, ri) - ai
    room = aj - rj.least if aj > 0 else row_upper(p, rj) + aj
    if room < hi:
        hi = room
    h = eta + row_curvature(p, ri, ai) + row_curvature(p, rj, aj)
    tau = excess / h if h > 0 else INFINITY
    if tau >= hi:
        if hi == INFINITY:
            return INFINITY
        # is the end of the segment still uphill?  (a finite slope there)
        g = (excess + row_slope(p, ri, ai + hi, -1) - si
             - row_slope(p, rj, aj - hi, 1) + sj - eta * hi)
        if g >= 0 or g != g:
            if g == g:
                return hi
        tau = 0.5 * hi
    for _ in range(60):
        g = (excess + row_slope(p, ri, ai + tau, 1) - si
             - row_slope(p, rj, aj - tau, -1) + sj - eta * tau)
        if fabs(g) <= 1e-5 * excess:
            return tau
        if g > 0:
            lo = tau
        else:
            hi = tau
        h = eta + row_curvature(p, ri, ai + tau) + row_curvature(p, rj, aj - tau)
        tau += g / h
        if not (lo < tau < hi):
            tau = 0.5 * (lo + hi) if hi < INFINITY else 2. * lo + 1.
        if hi - lo <= 1e-14 * hi:
            return tau
    return tau
