"""The machine of the kernel dual: its state, and the step of a pair.

v_t is the derivative of row t's own terms minus (K a)_t, that is the bias which row t
asks for (at a kink, for the middle of its two one-sided derivatives).  ``up`` and
``low`` turn v into the one-sided derivatives: they are 0 away from the kinks and
+-infinite where a move is not allowed, so the optimality gap is
max(v + up) - min(v + low).

K and v are single precision: v is a residual around zero (the caller subtracts the
current bias), and the caller restarts from residuals recomputed in double precision
whenever it needs more digits.

Source: pairs by second-order information after Fan, Chen & Lin (2005); the potentials
after Jaakkola, Meila & Jebara (1999), eq. (14).
"""

from libc.math cimport INFINITY, fabs, fmax, fmin, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.machines.dual_rows cimport (
    DualRow,
    row_bounded,
    row_curvature,
    row_slope,
    row_upper,
    solve_pair,
)
from maxent._core.potentials cimport (
    Potential,
    conjugate_argmax,
    potential_slope,
    potential_value,
)

cdef extern from "machines/rbf_loops.h" nogil:
    const int MX_LANES
    const int MX_SWEEP_CHUNK
    void mx_smo_update(
        float* v, const float* up, const float* low, const float* ki, const float* kj,
        float ci, float cj, Py_ssize_t n, float* above, float* below) noexcept
    Py_ssize_t mx_smo_extremes(
        const float* v, const float* up, Py_ssize_t n, const float* above,
        const float* below, float* top, float* bottom) noexcept
    void mx_smo_gains(
        const float* v, const float* low, const float* e, const float* ki, float vi,
        float ei, Py_ssize_t n, float* lanes) noexcept
    Py_ssize_t mx_smo_largest(
        const float* v, const float* low, const float* e, const float* ki, float vi,
        float ei, Py_ssize_t n, const float* lanes) noexcept

cdef float BARRED = 1e30       # stands for infinity in `up` and `low`
cdef double HUGE_MULTIPLIER = 1e13
# An entropy has a finite value but an infinite slope at an end of its domain. There
# multipliers stop at a distance that counts as zero, or as the bound:
# 1e-15 of the domain, which differences of doubles can still tell from it.
cdef double CLOSEST = 1e-15
cdef double AT_END = 1e-15     # what counts as the end where it is attained
cdef double NOISE = 1e-5       # of kernel values, relative to the largest
cdef enum:
    RENEWALS = 100             # mean curvatures renewed for one choice of a pair
    CACHE_LINE = 64


cdef double domain(const Potential* prior) noexcept nogil:
    """Length of the domain of u; 1 where it is unbounded."""
    return prior.upper if isfinite(prior.upper) else 1.


cdef double dual_least(const Potential* prior) noexcept nogil:
    """The least u > 0 where the slope at zero is infinite, else zero."""
    if isfinite(potential_slope(prior, 0.)):
        return 0.
    return CLOSEST * domain(prior)


cdef bint steep_end(const Potential* prior) noexcept nogil:
    """True if the end of the domain has a finite value and an infinite slope."""
    return (isfinite(prior.upper) and isfinite(potential_value(prior, prior.upper))
            and not isfinite(potential_slope(prior, prior.upper)))


cdef double dual_slope(
    const Potential* p, const DualRow* row, double a) noexcept nogil:
    """Slope of phi(|a|) that is part of v: zero, by symmetry, at a kink."""
    if a == 0 and row.sides == 3:
        return 0.
    return row_slope(p, row, a, -1 if row.sides == 2 else 1)


cdef double chosen_curvature(
    const DualMachine* machine, const DualRow* row, double a) noexcept nogil:
    """Curvature by which the gain of a step away from an end is judged.

    That at a itself, or the mean one on the way that changes the slope by as much as
    the pair in hand was apart.  Near an end of infinite slope the former is unbounded,
    although a multiplier that leaves the end soon meets little of it.
    """
    cdef const Potential* p = &machine.prior
    cdef double scale = row.weight * row.rate, tangent = row_curvature(p, row, a)
    cdef double u, change, mean
    if not (machine.steep[0] or machine.steep[1]) or row.weight == INFINITY:
        return tangent
    u = fabs(a) / scale
    change = row.rate * machine.excess
    if u < 0.5 * domain(p):
        if not machine.steep[0]:
            return tangent
        mean = conjugate_argmax(p, change - potential_slope(p, u)) - u
    else:
        if not machine.steep[1]:
            return tangent
        mean = u - conjugate_argmax(p, -change - potential_slope(p, u))
    return fmin(tangent, change / (mean * scale * row.rate)) if mean > 0 else tangent


cdef void place_row(
    const DualMachine* machine, const DualRow* row, double a, float k_tt,
    float* up, float* low, float* e) noexcept nogil:
    """Set the one-sided corrections and the curvature of one row at multiplier a."""
    cdef const Potential* p = &machine.prior
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
    elif a >= upper * (1. - AT_END):
        up[0] = -BARRED
    elif -a >= upper * (1. - AT_END):
        low[0] = BARRED
    elif fabs(a) <= 1.5 * row.least:
        if a > 0:
            low[0] = BARRED
        else:
            up[0] = -BARRED
    e[0] = k_tt + <float>chosen_curvature(machine, row, a)


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
    cdef double mean = 0., largest = 1., end, least
    memset(machine, 0, sizeof(DualMachine))
    machine.rows = <DualRow*>malloc(max(n, 1) * sizeof(DualRow))
    machine.memory = malloc(
        (4 * size + 2 * (chunks + 1) * MX_LANES) * sizeof(float) + CACHE_LINE)
    if machine.rows == NULL or machine.memory == NULL:
        dual_close(machine)
        return -1
    machine.prior = prior[0]
    machine.K = K
    machine.ld = ld
    machine.n = n
    machine.size = size
    machine.a = a
    # two threads that sweep over halves share no line of a cache
    machine.v = <float*>(
        (<size_t>machine.memory + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE)
    machine.up = machine.v + size
    machine.low = machine.up + size
    machine.e = machine.low + size
    machine.lanes = machine.e + size
    machine.below = machine.lanes + chunks * MX_LANES
    machine.least = INFINITY
    # an open domain ends before the slope becomes infinite
    end = 1. if isfinite(potential_slope(prior, prior.upper)) else 1. - 6e-16
    least = dual_least(prior)
    machine.steep[0] = least > 0
    machine.steep[1] = steep_end(prior)
    machine.huge = HUGE_MULTIPLIER
    for t in range(n):
        machine.rows[t].level = level[t]
        machine.rows[t].rate = rate[t]
        machine.rows[t].weight = weight[t]
        machine.rows[t].unit = 1. / (weight[t] * rate[t])
        machine.rows[t].per_rate = 1. / rate[t]
        machine.rows[t].sides = sides[t]
        machine.rows[t].most = end * row_upper(prior, &machine.rows[t])
        machine.rows[t].least = 0.
        if weight[t] < INFINITY and sides[t] != 3:
            machine.rows[t].least = least * weight[t] * rate[t]
        machine.v[t] = <float>(residual[t] + dual_slope(prior, &machine.rows[t], a[t]))
        place_row(machine, &machine.rows[t], a[t], K[t * ld + t], machine.up + t,
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
        dual_refresh(machine)
    if machine.steep[0] or machine.steep[1]:
        for t in range(n):
            machine.e[t] = K[t * ld + t] + <float>chosen_curvature(
                machine, &machine.rows[t], a[t])
    return 0


cdef void dual_close(DualMachine* machine) noexcept nogil:
    """Free the memory of dual_open."""
    free(machine.rows)
    free(machine.memory)
    machine.rows = NULL
    machine.memory = NULL


cdef void dual_read(const DualMachine* machine, double* residual) noexcept nogil:
    """residual[t] = target_t - (K a)_t - bias as the machine has updated it."""
    cdef Py_ssize_t t
    for t in range(machine.n):
        residual[t] = <double>machine.v[t] - dual_slope(
            &machine.prior, &machine.rows[t], machine.a[t])


cdef void sweep(
    DualMachine* machine, const float* ki, const float* kj, float ci, float cj
) noexcept nogil:
    """v -= ci ki + cj kj; update the extremes of v and the optimality gap."""
    cdef float top = 0, bottom = 0
    mx_smo_update(machine.v, machine.up, machine.low, ki, kj, ci, cj, machine.size,
                  machine.lanes, machine.below)
    machine.next = mx_smo_extremes(machine.v, machine.up, machine.size, machine.lanes,
                                   machine.below, &top, &bottom)
    machine.top = top
    machine.violation = <double>top - <double>bottom
    machine.middle = 0.5 * (<double>top + <double>bottom)
    machine.excess = machine.violation
    if top < -0.5 * BARRED or bottom > 0.5 * BARRED:
        machine.violation = 0.      # nothing may move in one of the directions
        machine.middle = 0.


cdef void dual_refresh(DualMachine* machine) noexcept nogil:
    """Find the extremes of v after changes from outside."""
    sweep(machine, machine.K, machine.K, 0, 0)


cdef bint all_numbers(const DualMachine* machine) noexcept nogil:
    """True if v has no NaN, which the comparisons of the sweeps skip."""
    cdef Py_ssize_t t
    cdef float total = 0
    for t in range(machine.n):
        total += machine.v[t] * 0
    return total == 0


cdef int dual_finished(DualMachine* machine, double tol) noexcept nogil:
    """DUAL_RUNNING while a violation remains and the machine has not stalled."""
    # beyond the value that bars a row from moving, rows could not be told from padding
    if not machine.violation <= 0.25 * BARRED:
        return DUAL_NONFINITE
    if machine.violation <= tol:
        return DUAL_CONVERGED if all_numbers(machine) else DUAL_NONFINITE
    if machine.violation < 0.99 * machine.least:
        machine.least = machine.violation
        machine.since = machine.steps
    elif machine.steps - machine.since > 20000 + 20 * machine.n:
        return DUAL_STALLED
    return DUAL_RUNNING


cdef void dual_move(
    DualMachine* machine, Py_ssize_t t, double a, float k_tt) noexcept nogil:
    """Row t at multiplier a: its own terms, not those of the other rows."""
    cdef const DualRow* row = &machine.rows[t]
    machine.v[t] += <float>(dual_slope(&machine.prior, row, a)
                            - dual_slope(&machine.prior, row, machine.a[t]))
    machine.a[t] = a
    place_row(machine, row, a, k_tt, machine.up + t, machine.low + t,
              machine.e + t)


cdef Py_ssize_t partner(DualMachine* machine, Py_ssize_t i) noexcept nogil:
    """Row whose step with row i has the largest estimated gain, or -1.

    Near an end of infinite slope the mean curvature depends on the length of the way.
    One that was computed for another way is renewed, and the choice repeated, where it
    had been estimated far too high: the working set would cycle without any gain.
    At most RENEWALS choices, each a sweep, are repeated; a poor partner still raises
    the objective.
    """
    cdef float* v = machine.v
    cdef const float* ki = machine.K + i * machine.ld
    cdef float vi = machine.top, e
    cdef Py_ssize_t j
    cdef int _
    for _ in range(RENEWALS + 1):
        mx_smo_gains(v, machine.low, machine.e, ki, vi, machine.e[i], machine.size,
                     machine.lanes)
        j = mx_smo_largest(v, machine.low, machine.e, ki, vi, machine.e[i],
                           machine.size, machine.lanes)
        if j < 0 or not (machine.steep[0] or machine.steep[1]):
            return j
        machine.excess = <double>vi - (<double>v[j] + <double>machine.low[j])
        e = machine.K[j * machine.ld + j] + <float>chosen_curvature(
            machine, &machine.rows[j], machine.a[j])
        if not e > 4 * fmax(machine.e[j], 1e-12):
            return j
        machine.e[j] = e
        machine.work += 0.5
    return j


cdef bint curves_up(
    const DualMachine* machine, Py_ssize_t i, Py_ssize_t j, double kii, double kjj,
    double eta) noexcept nogil:
    """True if the objective is convex along a pair by more than the error of K."""
    if not eta < 0:
        return False
    eta += 0.5 * row_curvature(&machine.prior, &machine.rows[i], machine.a[i])
    eta += 0.5 * row_curvature(&machine.prior, &machine.rows[j], machine.a[j])
    return eta < -NOISE * (fabs(kii) + fabs(kjj))


cdef int dual_pairs(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil:
    """Take steps of the pair with the largest estimated gain; a DualStatus."""
    cdef const Potential* p = &machine.prior
    cdef const float* ki
    cdef const float* kj
    cdef float* v = machine.v
    cdef double* a = machine.a
    cdef Py_ssize_t i, j, last = machine.steps + steps
    cdef double tau, ai, aj, excess, eta
    cdef float vi
    cdef int status
    while True:
        status = dual_finished(machine, tol)
        if status != DUAL_RUNNING or machine.steps >= last:
            return status
        i = machine.next
        ki = machine.K + i * machine.ld
        vi = machine.top        # of this row, where the last sweep has left it
        j = partner(machine, i)
        if j < 0:
            return DUAL_STALLED
        kj = machine.K + j * machine.ld
        excess = <double>vi - (<double>v[j] + <double>machine.low[j])
        eta = <double>ki[i] + <double>kj[j] - 2. * <double>ki[j]
        if curves_up(machine, i, j, ki[i], kj[j], eta):
            machine.indefinite = True
        # With the curvature of K cut off at zero the root is no farther than that of
        # the pair itself, or at the end of its segment, and the objective rises to it.
        tau = solve_pair(p, &machine.rows[i], &machine.rows[j], a[i], a[j], excess,
                         fmax(eta, 1e-12))
        if not (tau < machine.huge):
            return DUAL_UNBOUNDED
        ai = row_bounded(&machine.rows[i], a[i] + tau)
        aj = row_bounded(&machine.rows[j], a[j] - tau)
        if a[i] == ai and a[j] == aj:
            return DUAL_STALLED
        machine.gain += 0.5 * tau * excess
        machine.excess = excess
        machine.work += 1.
        dual_move(machine, i, ai, ki[i])
        dual_move(machine, j, aj, kj[j])
        sweep(machine, ki, kj, <float>tau, <float>-tau)
        machine.steps += 1
