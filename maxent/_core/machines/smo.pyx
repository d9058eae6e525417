"""Kernel dual by sequential minimal optimisation over signed multipliers.

    maximise  sum_t [ target_t a_t + phi_t(|a_t|) ] - a' K a / 2,   sum_t a_t = 0

A classification row has one sign (a_t = y_t lam_t); a regression row has both, with a
kink at zero.

A step moves one pair of multipliers.  Where no cache holds K, pairs are also taken from
small blocks of the worst rows, many steps in a round, so that the rows of K are read
once for all of them.  The step type with the larger gain per unit of work is used next.

Source: pairs by second-order information after Fan, Chen & Lin (2005), blocks after
Joachims (1999), Making large-scale SVM learning practical.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport fmax
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.machines.dual_machine cimport (
    DUAL_CONVERGED,
    DUAL_NONFINITE,
    DUAL_RUNNING,
    DUAL_UNBOUNDED,
    DualMachine,
    dual_slope,
    dual_close,
    dual_finished,
    dual_least,
    dual_move,
    dual_open,
    dual_padded,
    dual_read,
    dual_refresh,
    dual_pairs,
)
from maxent._core.machines.dual_rows cimport DualRow
from maxent._core.potentials cimport Potential, unpack_potential
from maxent._core.threads cimport team

cdef extern from "<math.h>" nogil:
    float fminf(float x, float y) noexcept

cdef extern from "machines/rbf_loops.h" nogil:
    const int MX_LANES
    const int MX_SWEEP_CHUNK
    void mx_smo_apply(
        float* v, const float* const* rows, const float* c, Py_ssize_t m,
        Py_ssize_t n) noexcept

cdef enum:
    BLOCK = 32                 # rows of a round; their matrix stays in cache
    FEW = 2000                 # rows whose whole matrix nearly does
    BINS = 256
    WINDOW = 64                # work between checks of the rate of progress
    PERIOD = 32                # windows after which both kinds of step are tried
    SLICE_NS = 10000000        # between checks for signals, about

cdef double SHARE = 0.5        # of the optimality gap that a round leaves


cdef Py_ssize_t violators(
    const DualMachine* machine, float side, Py_ssize_t most, Py_ssize_t* rows
) noexcept nogil:
    """At most `most` of the worst rows of one side, the very worst among them.

    The last sweep has left the worst of every few rows; of those, a histogram finds
    the worst in turn.  Among nearly equal ones the first are taken.
    """
    cdef Py_ssize_t chunks = (machine.size + MX_SWEEP_CHUNK - 1) // MX_SWEEP_CHUNK
    cdef Py_ssize_t slots = chunks * MX_LANES, slot, t, at, stop
    cdef const float* extreme = machine.lanes if side > 0 else machine.below
    cdef const float* shift = machine.up if side > 0 else machine.low
    cdef float middle = side * <float>machine.middle, x, largest = 0
    cdef float scale = <float>(2. * BINS / machine.violation)
    cdef Py_ssize_t count[BINS]
    cdef Py_ssize_t bin_, bar = BINS, room = most - 1, worst = -1, found = 0
    memset(count, 0, sizeof(count))
    for slot in range(slots):
        x = extreme[slot] - middle
        if x > 0:
            count[<int>fminf(x * scale, BINS - 1)] += 1
            if x > largest:
                largest = x
                worst = slot
    if worst < 0:
        return 0
    count[<int>fminf(largest * scale, BINS - 1)] -= 1
    while bar > 0 and count[bar - 1] <= room:
        bar -= 1
        room -= count[bar]
    for slot in range(slots):
        x = extreme[slot] - middle
        if not x > 0:
            continue
        bin_ = <int>fminf(x * scale, BINS - 1)
        if slot != worst and bin_ < bar:
            if bin_ < bar - 1 or room == 0:
                continue
            room -= 1
        t = slot // MX_LANES * MX_SWEEP_CHUNK + slot % MX_LANES
        stop = min(t - slot % MX_LANES + MX_SWEEP_CHUNK, machine.size)
        at = t
        while t < stop:
            if side * (machine.v[t] + shift[t]) > side * (machine.v[at] + shift[at]):
                at = t
            t += MX_LANES
        rows[found] = at
        found += 1
    return found


cdef struct Block:
    # Rows taken out of a machine, for a machine of their own.
    Py_ssize_t rows[BLOCK]
    double a[BLOCK]
    double residual[BLOCK]
    double level[BLOCK]
    double rate[BLOCK]
    double weight[BLOCK]
    signed char sides[BLOCK]
    float change[BLOCK]
    const float* source[BLOCK]
    float K[BLOCK * BLOCK]


cdef Py_ssize_t take_block(const DualMachine* machine, Block* block) noexcept nogil:
    """Fill a block with the worst rows of either side; their number."""
    cdef Py_ssize_t above = violators(machine, 1, BLOCK // 2, block.rows)
    cdef Py_ssize_t below = violators(machine, -1, BLOCK // 2, block.rows + above)
    cdef Py_ssize_t m = above + below, ld = dual_padded(m), s, t, k
    cdef const DualRow* row
    cdef const float* source
    if above == 0 or below == 0:
        return 0
    memset(block.K, 0, m * ld * sizeof(float))
    for s in range(m):
        t = block.rows[s]
        row = &machine.rows[t]
        block.a[s] = machine.a[t]
        block.residual[s] = machine.v[t] - dual_slope(&machine.prior, row, machine.a[t])
        block.level[s] = row.level
        block.rate[s] = row.rate
        block.weight[s] = row.weight
        block.sides[s] = row.sides
        source = machine.K + t * machine.ld
        for k in range(s + 1):
            block.K[s * ld + k] = source[block.rows[k]]
            block.K[k * ld + s] = block.K[s * ld + k]
    return m


cdef bint put_block(DualMachine* machine, Block* block, Py_ssize_t m) noexcept nogil:
    """Write the multipliers of a block back to the machine; true if any changed."""
    cdef Py_ssize_t s, t, moved = 0
    for s in range(m):
        t = block.rows[s]
        if block.a[s] != machine.a[t]:
            block.change[moved] = <float>(block.a[s] - machine.a[t])
            block.source[moved] = machine.K + t * machine.ld
            dual_move(machine, t, block.a[s], block.source[moved][t])
            moved += 1
    mx_smo_apply(machine.v, block.source, block.change, moved, machine.size)
    dual_refresh(machine)
    return moved > 0


cdef int run_rounds(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil:
    """Steps of pairs within blocks of violators; a DualStatus.

    The rows of K, which no cache holds, are read for many steps together.
    """
    cdef DualMachine part
    cdef Py_ssize_t last = machine.steps + steps, m
    cdef double enough = machine.work + WINDOW
    cdef int status, code
    cdef Block* block = <Block*>malloc(sizeof(Block))
    if block == NULL:
        return dual_pairs(machine, tol, steps)
    while True:
        status = dual_finished(machine, tol)
        if status != DUAL_RUNNING or machine.steps >= last or machine.work >= enough:
            break
        m = take_block(machine, block)
        if dual_open(&part, &machine.prior, block.K, dual_padded(m), m, block.a,
                     block.residual, block.level, block.rate, block.weight,
                     block.sides):
            break
        part.huge = machine.huge
        code = dual_pairs(&part, fmax(tol, SHARE * machine.violation),
                          min(last - machine.steps, <Py_ssize_t>(20 * BLOCK)))
        dual_close(&part)
        machine.steps += part.steps
        machine.indefinite = machine.indefinite or part.indefinite
        machine.gain += part.gain
        # costs are in units of a step of one pair, which passes over K and v twice
        machine.work += 0.3 + 0.16 * m
        if code == DUAL_UNBOUNDED or code == DUAL_NONFINITE:
            status = code
            break
        if not put_block(machine, block, m):
            break               # pairs will tell whether it is over
    free(block)
    return status


cdef int dual_run(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil:
    """At most `steps` steps towards an optimality gap of tol; a DualStatus.

    Pairs chosen from all rows and rounds of blocks alternate at first; then the step
    type with the larger gain per unit of work is used next.  Pairs converge faster on
    badly conditioned matrices.
    """
    cdef Py_ssize_t last = machine.steps + steps
    cdef double gain, work, gap
    cdef int status, turn
    cdef bint rounds
    if machine.n <= FEW:
        return dual_pairs(machine, tol, steps)
    while True:
        gain, work, gap = machine.gain, machine.work, machine.violation
        turn = machine.turn % PERIOD
        rounds = turn == 1 or (turn > 1 and machine.merit[1] > machine.merit[0])
        if rounds:
            status = run_rounds(machine, tol, last - machine.steps)
        else:
            status = dual_pairs(
                machine, tol, min(last - machine.steps, <Py_ssize_t>WINDOW))
        if status != DUAL_RUNNING or machine.steps >= last:
            return status
        work = machine.work - work
        machine.merit[rounds] = 0.
        if work > 0:
            machine.merit[rounds] = (machine.gain - gain) / (work * gap * gap)
        machine.turn += 1


def padded(Py_ssize_t n):
    """Columns that the Gram matrix given to `smo` needs for n rows."""
    return dual_padded(n)


def least_share(tuple spec):
    """Least multiplier as a share of weight * rate: 0 unless the slope there is inf."""
    cdef Potential p = unpack_potential(spec)
    return dual_least(&p)


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
    """Returns (steps taken, optimality gap reached, middle of the gap, status, whether
    a pair was met along which K has negative curvature)."""
    cdef Potential p = unpack_potential(spec)
    cdef DualMachine machine
    cdef Py_ssize_t n = a.shape[0], slice_ = max(16, SLICE_NS // max(n, 1)), part
    cdef int status = DUAL_RUNNING
    if n == 0:
        return 0, 0., 0., DUAL_CONVERGED, False
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
    return (machine.steps, machine.violation, machine.middle, status,
            bool(machine.indefinite))


def compress(
    const float[:, :] K,          # IN   rows contiguous
    const Py_ssize_t[::1] keep,   # IN   (m,) ascending
    float[:, :] out,              # OUT  (>= m, >= m), rows contiguous; may be K
    int n_threads=1,
):
    """out[s, t] = K[keep[s], keep[t]]; in place it closes the gaps.

    In place, rows are moved together up to the first that is still to be read.
    """
    cdef Py_ssize_t m = keep.shape[0], first = 0, stop, s
    cdef int threads
    cdef bint in_place
    if m == 0:
        return
    in_place = &K[0, 0] == &out[0, 0]
    with nogil:
        while first < m:
            stop = min(m, max(keep[first], first + 1)) if in_place else m
            threads = team(n_threads, stop - first, <double>(stop - first) * m)
            if threads == 1:
                for s in range(first, stop):
                    compress_row(&K[keep[s], 0], &keep[0], m, &out[s, 0])
            else:
                for s in prange(first, stop, num_threads=threads, schedule="dynamic",
                                chunksize=16):
                    compress_row(&K[keep[s], 0], &keep[0], m, &out[s, 0])
            first = stop


cdef void compress_row(
    const float* source, const Py_ssize_t* keep, Py_ssize_t m, float* target
) noexcept nogil:
    """target[t] = source[keep[t]]; target may be source."""
    cdef Py_ssize_t t
    for t in range(m):
        target[t] = source[keep[t]]
