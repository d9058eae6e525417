"""Kernel dual by sequential minimal optimisation over signed multipliers.

    maximise  sum_t [ target_t a_t + phi_t(|a_t|) ] - a' K a / 2,   sum_t a_t = 0

A classification row has one sign (a_t = y_t lam_t); a regression row has both, with a
kink at zero.  Write v_t for the derivative of row t's own terms minus (K a)_t, that is
the bias which row t asks for (at a kink, for the middle of its two one-sided
derivatives).  ``up`` and ``low`` turn v into the one-sided derivatives: they are 0
away from the kinks and +-infinite where a move is not allowed, so the optimality gap
is  max(v + up) - min(v + low).

K and v are single precision: v is a residual around zero (the caller subtracts the
current bias), and the caller restarts from residuals recomputed in double precision
whenever it needs more digits.

Source: working sets by second-order information after Fan, Chen & Lin (2005); the
potentials after Jaakkola, Meila & Jebara (1999), eq. (14).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdlib cimport free, malloc

from maxent._core.potentials cimport (
    Potential,
    potential_curvature,
    potential_slope,
    unpack_potential,
)

cdef extern from "vector.h" nogil:
    const int MX_LANES
    const int MX_SWEEP_CHUNK
    Py_ssize_t mx_smo_update(
        float* v, const float* up, const float* low, const float* ki, const float* kj,
        float ci, float cj, Py_ssize_t n, float* lanes, float* top,
        float* bottom) noexcept
    Py_ssize_t mx_smo_select(
        const float* v, const float* low, const float* e, const float* ki,
        float vi, float ei, Py_ssize_t n, float* lanes) noexcept

cdef enum Status:
    CONVERGED = 0
    MAX_ITER = 1
    STALLED = 2
    UNBOUNDED = 3
    NONFINITE = 4

cdef float BARRED = 1e30       # stands for infinity in `up` and `low`
cdef double HUGE_MULTIPLIER = 1e13


cdef double row_upper(const Potential* p, const DualRow* row) noexcept nogil:
    """Supremum of |a|."""
    return p.upper * row.weight * row.rate


cdef double row_slope(
    const Potential* p, const DualRow* row, double a, int direction) noexcept nogil:
    """Derivative of phi(|a|); at a = 0 the one-sided one (direction +1 or -1)."""
    cdef double sign = 1. if a > 0 or (a == 0 and direction > 0) else -1.
    if row.weight == INFINITY:
        return 0.
    return sign * (
        row.level
        + potential_slope(p, fabs(a) / (row.weight * row.rate)) / row.rate)


cdef double row_curvature(
    const Potential* p, const DualRow* row, double a) noexcept nogil:
    """Minus the second derivative of phi(|a|)."""
    cdef double scale = row.weight * row.rate
    if row.weight == INFINITY:
        return 0.
    return potential_curvature(p, fabs(a) / scale) / (scale * row.rate)


cdef double solve_pair(
    const Potential* p, const DualRow* ri, const DualRow* rj, double ai, double aj,
    double excess, double eta) noexcept nogil:
    """Step tau >= 0 of the problem a_i += tau, a_j -= tau.

    Root of the decreasing function
        excess + [s_i(a_i + tau) - s_i(a_i)] - [s_j(a_j - tau) - s_j(a_j)] - eta tau
    on [0, hi], where no multiplier crosses zero or its upper bound; hi if there is
    no root.  Newton's method inside a shrinking bracket.
    """
    cdef double lo = 0., hi, tau, g, h
    cdef double si = row_slope(p, ri, ai, 1), sj = row_slope(p, rj, aj, -1)
    cdef double room
    cdef int it
    hi = -ai if ai < 0 else row_upper(p, ri) - ai
    room = aj if aj > 0 else row_upper(p, rj) + aj
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
    for it in range(60):
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


cdef double base_slope(const Potential* p, const DualRow* row, double a) noexcept nogil:
    """Slope of phi(|a|) that is part of v: zero, by symmetry, at a kink."""
    if a == 0 and row.sides == 3:
        return 0.
    return row_slope(p, row, a, -1 if row.sides == 2 else 1)


cdef void place_row(
    const Potential* p, const DualRow* row, double a, float k_tt,
    float* up, float* low, float* e) noexcept nogil:
    """Set the one-sided corrections and the curvature of one row at multiplier a."""
    cdef double upper = row_upper(p, row)
    up[0] = 0
    low[0] = 0
    if a == 0:
        if row.sides == 1:
            low[0] = BARRED
        elif row.sides == 2:
            up[0] = -BARRED
        else:
            up[0] = <float>row_slope(p, row, 0., 1)
            low[0] = <float>row_slope(p, row, 0., -1)
    elif a >= upper * (1. - 1e-15):
        up[0] = -BARRED
    elif -a >= upper * (1. - 1e-15):
        low[0] = BARRED
    e[0] = k_tt + <float>row_curvature(p, row, a)


def padded(Py_ssize_t n):
    """Columns that the Gram matrix given to `smo` needs for n rows."""
    return (n + MX_LANES - 1) // MX_LANES * MX_LANES


def smo(
    tuple spec,
    const float[:, ::1] K,        # IN     (n, padded(n)) or larger
    double[::1] a,                # IN/OUT (n,) signed multipliers, sum fixed
    const double[::1] residual,   # IN     (n,) target - K a - bias, exact
    const double[::1] level,      # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    const signed char[::1] sides,  # IN     (n,)
    double tol,
    Py_ssize_t max_iter,
):
    """Returns (steps taken, optimality gap reached, middle of the gap, status)."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = a.shape[0], size = (n + MX_LANES - 1) // MX_LANES * MX_LANES
    cdef Py_ssize_t chunks = (n + MX_SWEEP_CHUNK - 1) // MX_SWEEP_CHUNK
    cdef Py_ssize_t t, i, j, step = 0, check = max(1, 4000000 // max(n, 1))
    cdef int status = MAX_ITER
    cdef Py_ssize_t since = 0, patience = 20000 + 20 * n
    cdef double tau, ai, aj, violation = 0., middle = 0., least = INFINITY
    cdef float vi, top = 0, bottom = 0
    cdef DualRow* rows = NULL
    cdef float* v = NULL
    cdef float *up
    cdef float *low
    cdef float *e
    cdef float *lanes
    if n == 0:
        return 0, 0., 0., CONVERGED
    rows = <DualRow*>malloc(n * sizeof(DualRow))
    v = <float*>malloc((4 * size + 2 * chunks * MX_LANES) * sizeof(float))
    if rows == NULL or v == NULL:
        free(rows)
        free(v)
        raise MemoryError
    up = v + size
    low = up + size
    e = low + size
    lanes = e + size
    try:
        for t in range(n):
            rows[t].level = level[t]
            rows[t].rate = rate[t]
            rows[t].weight = weight[t]
            rows[t].sides = sides[t]
            v[t] = <float>(residual[t] + base_slope(&p, &rows[t], a[t]))
            place_row(&p, &rows[t], a[t], K[t, t], up + t, low + t, e + t)
        for t in range(n, size):
            v[t] = 0
            up[t] = -BARRED
            low[t] = BARRED
            e[t] = 1
        i = mx_smo_update(v, up, low, &K[0, 0], &K[0, 0], 0, 0, size, lanes,
                          &top, &bottom)
        while True:
            violation = <double>top - <double>bottom
            middle = 0.5 * (<double>top + <double>bottom)
            if not isfinite(violation):
                status = NONFINITE
                break
            if top < -0.5 * BARRED or bottom > 0.5 * BARRED or violation <= tol:
                status = CONVERGED
                break
            if step >= max_iter:
                break
            if violation < 0.99 * least:
                least = violation
                since = step
            elif step - since > patience:
                status = STALLED        # single precision has no more digits
                break
            # the pair
            vi = v[i] + up[i]
            j = mx_smo_select(v, low, e, &K[i, 0], vi, e[i], size, lanes)
            if j < 0:
                status = STALLED
                break
            # the step
            ai = a[i]
            aj = a[j]
            tau = solve_pair(
                &p, &rows[i], &rows[j], ai, aj,
                <double>vi - (<double>v[j] + <double>low[j]),
                max(<double>K[i, i] + <double>K[j, j] - 2. * <double>K[i, j], 1e-12))
            if not (tau < HUGE_MULTIPLIER):
                status = UNBOUNDED
                break
            a[i] = ai + tau
            a[j] = aj - tau
            if a[i] == ai and a[j] == aj:
                status = STALLED
                break
            v[i] += <float>(
                base_slope(&p, &rows[i], a[i]) - base_slope(&p, &rows[i], ai))
            v[j] += <float>(
                base_slope(&p, &rows[j], a[j]) - base_slope(&p, &rows[j], aj))
            place_row(&p, &rows[i], a[i], K[i, i], up + i, low + i, e + i)
            place_row(&p, &rows[j], a[j], K[j, j], up + j, low + j, e + j)
            i = mx_smo_update(v, up, low, &K[i, 0], &K[j, 0], <float>tau, <float>-tau,
                              size, lanes, &top, &bottom)
            step += 1
            if step % check == 0:
                PyErr_CheckSignals()
    finally:
        free(rows)
        free(v)
    return step, violation, middle, status
