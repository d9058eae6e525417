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
from libc.math cimport INFINITY, fabs, fmax, fmin, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memset

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
    cdef int _
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


cdef Py_ssize_t dual_padded(Py_ssize_t n) noexcept nogil:
    """Columns of K that the sweeps read for n rows."""
    return (n + MX_LANES - 1) // MX_LANES * MX_LANES


cdef int dual_open(
    DualMachine* machine, const Potential* prior, const float* K, Py_ssize_t ld,
    Py_ssize_t n, double* a, const double* residual, const double* level,
    const double* rate, const double* weight, const signed char* sides
) noexcept nogil:
    """Prepare a machine at multipliers a; -1 when there is no memory.

    residual[t] is target_t - (K a)_t - bias.  K, a and the sizes must outlive the
    machine; the other arrays are copied.
    """
    cdef Py_ssize_t t, size = dual_padded(n)
    cdef Py_ssize_t chunks = (size + MX_SWEEP_CHUNK - 1) // MX_SWEEP_CHUNK
    cdef float top, bottom
    cdef double mean = 0., largest = 1.
    memset(machine, 0, sizeof(DualMachine))
    machine.rows = <DualRow*>malloc(max(n, 1) * sizeof(DualRow))
    machine.v = <float*>malloc((4 * size + 2 * (chunks + 1) * MX_LANES) * sizeof(float))
    if machine.rows == NULL or machine.v == NULL:
        dual_close(machine)
        return -1
    machine.prior = prior[0]
    machine.K = K
    machine.ld = ld
    machine.n = n
    machine.size = size
    machine.a = a
    machine.up = machine.v + size
    machine.low = machine.up + size
    machine.e = machine.low + size
    machine.lanes = machine.e + size
    machine.least = INFINITY
    # an open domain ends before the slope becomes infinite
    machine.end = 1. if isfinite(potential_slope(prior, prior.upper)) else 1. - 2.3e-16
    machine.huge = HUGE_MULTIPLIER
    for t in range(n):
        machine.rows[t].level = level[t]
        machine.rows[t].rate = rate[t]
        machine.rows[t].weight = weight[t]
        machine.rows[t].sides = sides[t]
        machine.v[t] = <float>(residual[t] + base_slope(prior, &machine.rows[t], a[t]))
        place_row(prior, &machine.rows[t], a[t], K[t * ld + t], machine.up + t,
                  machine.low + t, machine.e + t)
        mean += K[t * ld + t]
        largest = max(largest, abs(residual[t]))
    # small kernels have large multipliers, and so have large targets
    machine.huge *= largest
    if 0 < mean < n:
        machine.huge *= n / mean
    for t in range(n, size):
        machine.v[t] = 0
        machine.up[t] = -BARRED
        machine.low[t] = BARRED
        machine.e[t] = 1
    if n:
        machine.next = mx_smo_update(
            machine.v, machine.up, machine.low, K, K, 0, 0, size, machine.lanes,
            &top, &bottom)
        set_gap(machine, top, bottom)
    return 0


cdef void dual_close(DualMachine* machine) noexcept nogil:
    """Free what dual_open took."""
    free(machine.rows)
    free(machine.v)
    machine.rows = NULL
    machine.v = NULL


cdef void dual_read(const DualMachine* machine, double* residual) noexcept nogil:
    """residual[t] = target_t - (K a)_t - bias as the machine has updated it."""
    cdef Py_ssize_t t
    for t in range(machine.n):
        residual[t] = <double>machine.v[t] - base_slope(
            &machine.prior, &machine.rows[t], machine.a[t])


cdef void set_gap(DualMachine* machine, float top, float bottom) noexcept nogil:
    machine.violation = <double>top - <double>bottom
    machine.middle = 0.5 * (<double>top + <double>bottom)
    if top < -0.5 * BARRED or bottom > 0.5 * BARRED:
        machine.violation = 0.      # nothing may move in one of the directions
        machine.middle = 0.


cdef bint all_numbers(const DualMachine* machine) noexcept nogil:
    """Comparisons pass over NaN, so look once at the end."""
    cdef Py_ssize_t t
    cdef float total = 0
    for t in range(machine.n):
        total += machine.v[t] * 0
    return total == 0


cdef int dual_run(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil:
    """At most `steps` steps towards an optimality gap of tol; a DualStatus."""
    cdef const Potential* p = &machine.prior
    cdef const float* ki
    cdef const float* kj
    cdef float* v = machine.v
    cdef float* up = machine.up
    cdef float* low = machine.low
    cdef float* e = machine.e
    cdef double* a = machine.a
    cdef Py_ssize_t i, j, step, patience = 20000 + 20 * machine.n
    cdef double tau, ai, aj
    cdef float vi, top = 0, bottom = 0
    for step in range(steps + 1):
        if not isfinite(machine.violation):
            return DUAL_NONFINITE
        if machine.violation <= tol:
            return DUAL_CONVERGED if all_numbers(machine) else DUAL_NONFINITE
        if step == steps:
            break
        if machine.violation < 0.99 * machine.least:
            machine.least = machine.violation
            machine.since = machine.steps
        elif machine.steps - machine.since > patience:
            return DUAL_STALLED
        i = machine.next
        ki = machine.K + i * machine.ld
        vi = v[i] + up[i]
        j = mx_smo_select(v, low, e, ki, vi, e[i], machine.size, machine.lanes)
        if j < 0:
            return DUAL_STALLED
        kj = machine.K + j * machine.ld
        ai = a[i]
        aj = a[j]
        tau = solve_pair(
            p, &machine.rows[i], &machine.rows[j], ai, aj,
            <double>vi - (<double>v[j] + <double>low[j]),
            max(<double>ki[i] + <double>kj[j] - 2. * <double>ki[j], 1e-12))
        if not (tau < machine.huge):
            return DUAL_UNBOUNDED
        a[i] = fmin(ai + tau, machine.end * row_upper(p, &machine.rows[i]))
        a[j] = fmax(aj - tau, -machine.end * row_upper(p, &machine.rows[j]))
        if a[i] == ai and a[j] == aj:
            return DUAL_STALLED
        v[i] += <float>(base_slope(p, &machine.rows[i], a[i])
                        - base_slope(p, &machine.rows[i], ai))
        v[j] += <float>(base_slope(p, &machine.rows[j], a[j])
                        - base_slope(p, &machine.rows[j], aj))
        place_row(p, &machine.rows[i], a[i], ki[i], up + i, low + i, e + i)
        place_row(p, &machine.rows[j], a[j], kj[j], up + j, low + j, e + j)
        machine.next = mx_smo_update(v, up, low, ki, kj, <float>tau, <float>-tau,
                                     machine.size, machine.lanes, &top, &bottom)
        machine.steps += 1
        set_gap(machine, top, bottom)
    return DUAL_RUNNING


def padded(Py_ssize_t n):
    """Columns that the Gram matrix given to `smo` needs for n rows."""
    return dual_padded(n)


def smo(
    tuple spec,
    const float[:, :] K,          # IN     (>= n, >= padded(n)), rows contiguous
    double[::1] a,                # IN/OUT (n,) signed multipliers, sum fixed
    double[::1] residual,         # IN/OUT (n,) target - K a - bias, exact on entry
    const double[::1] level,      # IN     (n,)
    const double[::1] rate,       # IN     (n,)
    const double[::1] weight,     # IN     (n,)
    const signed char[::1] sides,  # IN     (n,)
    double tol,
    Py_ssize_t max_iter,
):
    """Returns (steps taken, optimality gap reached, middle of the gap, status)."""
    cdef Potential p = unpack_potential(spec)
    cdef DualMachine machine
    # about 10 ms between looks for an interrupt
    cdef Py_ssize_t n = a.shape[0], slice_ = max(16, 10000000 // max(n, 1)), part
    cdef int status = DUAL_RUNNING
    if n == 0:
        return 0, 0., 0., DUAL_CONVERGED
    if K.strides[1] != sizeof(float) or K.shape[0] < n or K.shape[1] < dual_padded(n):
        raise ValueError("K needs contiguous rows and padded(n) columns")
    if dual_open(&machine, &p, &K[0, 0], K.strides[0] // <Py_ssize_t>sizeof(float), n,
                 &a[0], &residual[0], &level[0], &rate[0], &weight[0], &sides[0]):
        raise MemoryError
    try:
        while status == DUAL_RUNNING:
            part = min(slice_, max_iter - machine.steps)
            with nogil:
                status = dual_run(&machine, tol, part)
            if machine.steps >= max_iter:
                break
            PyErr_CheckSignals()
        dual_read(&machine, &residual[0])
    finally:
        dual_close(&machine)
    return machine.steps, machine.violation, machine.middle, status


def compress(
    const float[:, :] K,          # IN   rows contiguous
    const Py_ssize_t[::1] keep,   # IN   (m,) ascending
    float[:, :] out,              # OUT  (>= m, >= m), rows contiguous; may be K
):
    """out[s, t] = K[keep[s], keep[t]]; in place it closes the gaps."""
    cdef Py_ssize_t m = keep.shape[0], s, t
    cdef const float* source
    cdef float* target
    if m == 0:
        return
    with nogil:
        for s in range(m):
            source = &K[keep[s], 0]
            target = &out[s, 0]
            for t in range(m):
                target[t] = source[keep[t]]
