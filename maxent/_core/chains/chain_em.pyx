"""EM of many hidden Markov models with tables of emissions, a sequence for each.

Eight models share a vector of the passes of chain_loops.h; a model that ends leaves its
lane to the next. Groups of models are independent: their size depends on the number of
models only, so that the bits do not depend on the number of threads.

Source: Rabiner (1989), section V.A; the stopping rule is that of `maximize_by_em`.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, fmax, isfinite, log
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from maxent._core.chains.chain cimport (
    MX_CHAIN_LANES,
    MX_CHAIN_RING,
    aligned,
    mx_chain,
    mx_chain_backward_lanes,
    mx_chain_forward_lanes,
)

import numpy as np

cdef enum:
    L = MX_CHAIN_LANES
    GROUPS = 32            # of models at most, as far as a group is not too small
    LARGEST = 256          # models of a group at most
    WORK = 1 << 23         # vector products of a group between two checks for signals

cpdef enum:
    CONVERGED = 1
    STALLED
    MAX_ITER
    UNDERFLOW              # a pass has underflowed
    NOT_FINITE

cdef double DENSE = 1e-100   # transitions below it may hide what underflows


cdef struct Problems:
    Py_ssize_t states
    Py_ssize_t rows
    Py_ssize_t max_iter
    double smoothing
    double tol
    double rounding
    const Py_ssize_t* row
    const Py_ssize_t* begin     # (n,)
    const Py_ssize_t* length    # (n,), falling
    const double* ones          # (states,)
    double* start               # (n, states): starts of EM, then the best points
    double* trans               # (n, states, states)
    double* table               # (n, rows, states)
    double* trace               # (n, max_iter + 1)
    double* residual            # (n,)
    Py_ssize_t* n_iter
    char* status                # 0 while it runs


cdef struct Group:
    Py_ssize_t next             # the first problem that waits for a lane
    Py_ssize_t stop
    Py_ssize_t running
    Py_ssize_t problem[L]       # of each lane, -1 where there is none
    Py_ssize_t n_iter[L]
    double previous[L]
    double top[L]
    double* memory
    double* start               # (states, lanes)
    double* trans               # (states, states, lanes)
    double* trans_t
    double* starts              # counts of the same shapes
    double* moves
    double* table               # (lanes, rows, states)
    double* counts


# -- lanes -----------------------------------------------------------------------------
cdef int allocate(Group* g, const Problems* p) noexcept nogil:
    """Allocate empty lanes of uniform chains; 1 without memory."""
    cdef Py_ssize_t S = p.states, size = S * L, cells = L * p.rows * S, k, l
    g.memory = <double*>calloc(size * (2 + 3 * S) + 2 * cells + 8, sizeof(double))
    if g.memory == NULL:
        return 1
    g.start = aligned(g.memory)
    g.trans = g.start + size
    g.trans_t = g.trans + S * size
    g.starts = g.trans_t + S * size
    g.moves = g.starts + size
    g.table = g.moves + S * size
    g.counts = g.table + cells
    for k in range(size):
        g.start[k] = 1. / S
    for k in range(S * size):
        g.trans[k] = g.trans_t[k] = 1. / S
    for l in range(L):
        load(g, p, l)
    return 0


cdef void load(Group* g, const Problems* p, Py_ssize_t l) noexcept nogil:
    """Start the next problem in lane l; none if all have begun."""
    cdef Py_ssize_t S = p.states, cells = p.rows * S, i, j, problem = g.next
    cdef double x
    g.problem[l] = -1
    if problem == g.stop:
        return
    g.problem[l], g.n_iter[l] = problem, 0
    g.previous[l] = g.top[l] = -INFINITY
    g.next += 1
    g.running += 1
    for i in range(S):
        g.start[i * L + l] = p.start[problem * S + i]
        for j in range(S):
            x = p.trans[(problem * S + i) * S + j]
            g.trans[(i * S + j) * L + l] = g.trans_t[(j * S + i) * L + l] = x
    for i in range(cells):
        g.table[l * cells + i] = p.table[problem * cells + i]


cdef void keep(const Group* g, const Problems* p, Py_ssize_t l) noexcept nogil:
    """Store the point of lane l as the best of its problem so far."""
    cdef Py_ssize_t S = p.states, cells = p.rows * S, i, problem = g.problem[l]
    for i in range(S):
        p.start[problem * S + i] = g.start[i * L + l]
    for i in range(S * S):
        p.trans[problem * S * S + i] = g.trans[i * L + l]
    for i in range(cells):
        p.table[problem * cells + i] = g.table[l * cells + i]


# -- one EM step -----------------------------------------------------------------------
cdef Py_ssize_t expect(
    Group* g, const Problems* p, double* memory, double* log_lik, int* lost,
) noexcept nogil:
    """Log-likelihoods (lanes,) and expected counts; returns the steps of the pass."""
    cdef Py_ssize_t S = p.states, size = S * L, cells = p.rows * S, T = 0, l, k
    cdef double* alpha = aligned(memory)
    cdef double* emission
    cdef double* inverse
    cdef double* beta
    cdef const Py_ssize_t* row[L]
    cdef double* to[L]
    cdef const double* table[L]
    cdef Py_ssize_t length[L]
    cdef double weight[L]
    cdef mx_chain m
    m.states, m.ones, m.own_table = S, p.ones, table
    m.own_start, m.own_trans, m.own_trans_t = g.start, g.trans, g.trans_t
    m.trans = m.trans_t = m.start = m.table = NULL
    m.sparse = 0
    for l in range(L):
        row[l], length[l], to[l], table[l] = NULL, 0, NULL, p.ones
        if g.problem[l] >= 0:
            row[l] = p.row + p.begin[g.problem[l]]
            length[l] = p.length[g.problem[l]]
            table[l], to[l] = g.table + l * cells, g.counts + l * cells
            T = max(T, length[l])
    for k in range(S * size):
        m.sparse |= g.trans[k] < DENSE
    emission = alpha + T * size
    inverse = emission + T * size
    beta = inverse + T * L
    memset(g.counts, 0, L * cells * sizeof(double))
    memset(g.moves, 0, S * size * sizeof(double))
    mx_chain_forward_lanes(
        &m, row, length, T, 1, alpha, emission, inverse, log_lik, lost)
    for l in range(L):
        weight[l] = 0. if lost[l] or length[l] == 0 else 1.
    mx_chain_backward_lanes(
        &m, row, length, T, alpha, emission, inverse, weight, beta, beta + 2 * size,
        to, g.starts, g.moves)
    for k in range(S * size):
        g.moves[k] *= g.trans[k]
    return T


cdef void normalize(
    double* counts, const double* old, Py_ssize_t n, Py_ssize_t width, double smoothing,
    double* total, double* change,
) noexcept nogil:
    """Turn columns of counts (n, width) into probabilities; empty ones keep the old.

    Old probabilities of zero get no pseudo-counts, so they stay zero. The relative
    changes raise change (width,); total (width,) is scratch.
    """
    cdef double x
    cdef Py_ssize_t i, j
    for j in range(width):
        total[j] = 0.
    for i in range(n):
        for j in range(width):
            counts[i * width + j] += smoothing * (old[i * width + j] > 0.)
            total[j] += counts[i * width + j]
    for i in range(n):
        for j in range(width):
            x = counts[i * width + j] / total[j]
            x = x if total[j] > 0. else old[i * width + j]
            counts[i * width + j] = x
            x = fabs(x - old[i * width + j]) / (1. + old[i * width + j])
            change[j] = fmax(change[j], x)


cdef double log_product(
    const double* x, Py_ssize_t n, Py_ssize_t step,
) noexcept nogil:
    """sum log x, of probabilities above zero, step entries apart."""
    cdef Py_ssize_t i
    cdef double product = 1., value = 0., factor
    for i in range(n):
        factor = x[i * step] if x[i * step] > 0. else 1.
        if product * factor < 1e-150:  # before digits are lost
            value += log(product)
            product = factor
        else:
            product *= factor
    return value + log(product)


cdef double log_prior(const Group* g, const Problems* p, Py_ssize_t l) noexcept nogil:
    """Smoothing times the sum of logs of all probabilities above zero of lane l."""
    cdef Py_ssize_t S = p.states, cells = p.rows * S
    if p.smoothing == 0.:
        return 0.
    return p.smoothing * (
        log_product(g.start + l, S, L) + log_product(g.trans + l, S * S, L)
        + log_product(g.table + l * cells, cells, 1))


cdef void maximize(
    Group* g, const Problems* p, double* memory, double* change,
) noexcept nogil:
    """The M step of all lanes: points, and their relative changes (lanes,)."""
    cdef Py_ssize_t S = p.states, cells = p.rows * S, l, i, j
    cdef double c = p.smoothing
    cdef double total[L]
    cdef double* moved = memory + S
    for l in range(L):
        memset(moved, 0, S * sizeof(double))
        normalize(
            g.counts + l * cells, g.table + l * cells, p.rows, S, c, memory, moved)
        change[l] = 0.
        for j in range(S):
            change[l] = fmax(change[l], moved[j])
    normalize(g.starts, g.start, S, L, c, total, change)
    for i in range(S):
        normalize(g.moves + i * S * L, g.trans + i * S * L, S, L, c, total, change)
    g.start, g.starts = g.starts, g.start
    g.trans, g.moves = g.moves, g.trans
    g.table, g.counts = g.counts, g.table
    for i in range(S):
        for j in range(S):
            for l in range(L):
                g.trans_t[(j * S + i) * L + l] = g.trans[(i * S + j) * L + l]


cdef int ends(
    Group* g, const Problems* p, Py_ssize_t l, double objective, int lost,
) noexcept nogil:
    """Status of a lane after its E step, 0 if it continues."""
    cdef Py_ssize_t problem = g.problem[l], n_iter = g.n_iter[l]
    cdef double gain, size = 1. + fabs(objective), previous = g.previous[l]
    if lost:
        return UNDERFLOW
    p.trace[problem * (p.max_iter + 1) + n_iter] = objective
    if not isfinite(objective) and not (n_iter == 0 and objective == -INFINITY):
        return NOT_FINITE
    if objective > g.top[l]:
        g.top[l] = objective
        keep(g, p, l)
    g.previous[l] = objective
    if previous > -INFINITY:
        gain = objective - previous
        if gain < -p.rounding * size:
            return STALLED
        if gain <= p.tol * size:
            return CONVERGED
    return MAX_ITER if n_iter == p.max_iter else 0


cdef int advance(Group* g, const Problems* p) noexcept nogil:
    """EM steps of a group until it ends, or has done some work; 1 without memory."""
    cdef Py_ssize_t S = p.states, size = S * L, l, work = 0, T = 0
    cdef double* memory
    cdef double log_lik[L]
    cdef double change[L]
    cdef int lost[L]
    cdef int status[L]
    if g.memory == NULL and allocate(g, p):
        return 1
    for l in range(L):
        if g.problem[l] >= 0:
            T = max(T, p.length[g.problem[l]])
    if g.next < g.stop:
        T = max(T, p.length[g.next])
    memory = <double*>malloc(
        (T * (2 * size + L) + (2 + MX_CHAIN_RING) * size + 8) * sizeof(double))
    if memory == NULL:
        return 1
    while g.running and work < WORK:
        work += 3 * S * (S + 4) * expect(g, p, memory, log_lik, lost)
        for l in range(L):
            status[l] = 0
            if g.problem[l] >= 0:
                status[l] = ends(g, p, l, log_lik[l] + log_prior(g, p, l), lost[l])
        maximize(g, p, memory, change)
        for l in range(L):
            if status[l]:
                p.status[g.problem[l]] = status[l]
                p.n_iter[g.problem[l]] = g.n_iter[l]
                p.residual[g.problem[l]] = change[l]
                g.running -= 1
                load(g, p, l)
            else:
                g.n_iter[l] += 1
    free(memory)
    if g.running == 0:
        free(g.memory)
        g.memory = NULL
    return 0


# -- all of them -----------------------------------------------------------------------
def fit_each(
    double[:, ::1] start,                 # IN-OUT  (n, states): starts, best points
    double[:, :, ::1] trans,              # IN-OUT  (n, states, states)
    double[:, :, ::1] table,              # IN-OUT  (n, rows, states) probabilities
    const Py_ssize_t[::1] row,            # IN  (steps,), -1 where nothing was observed
    const Py_ssize_t[::1] begin,          # IN  (n,), where the sequence of each begins
    const Py_ssize_t[::1] length,         # IN  (n,), falling
    double smoothing,                     # IN  pseudo-counts of every probability
    double tol,
    double rounding,                      # IN  falls of the objective below it are none
    Py_ssize_t max_iter,
    int n_threads,
):
    """Run EM on every model until it ends.

    Returns status (n,), n_iter (n,), trace (n, max_iter + 1) of objectives, of which
    n_iter + 1 are set, residual (n,): the relative change of a parameter in the last
    step.
    """
    cdef Py_ssize_t n = start.shape[0], each, n_groups, g, k, i
    cdef double[::1] ones = np.ones(start.shape[1]), residual = np.zeros(n)
    cdef double[:, ::1] trace = np.empty((n, max_iter + 1))
    cdef Py_ssize_t[::1] n_iter = np.zeros(n, np.intp)
    cdef char[::1] status = np.zeros(n, np.int8)
    cdef Py_ssize_t[::1] pick
    cdef Group* groups
    cdef Problems p
    cdef int failed = 0, wave = 4 * n_threads
    each = (n + GROUPS - 1) // GROUPS
    each = min(max((each + L - 1) // L * L, L), LARGEST)
    n_groups = (n + each - 1) // each
    p.states, p.rows, p.max_iter = start.shape[1], table.shape[1], max_iter
    p.smoothing, p.tol, p.rounding = smoothing, tol, rounding
    p.row, p.begin, p.length, p.ones = &row[0], &begin[0], &length[0], &ones[0]
    p.start, p.trans, p.table = &start[0, 0], &trans[0, 0, 0], &table[0, 0, 0]
    p.trace, p.residual, p.n_iter = &trace[0, 0], &residual[0], &n_iter[0]
    p.status = &status[0]
    pick = np.empty(wave, np.intp)
    groups = <Group*>calloc(n_groups, sizeof(Group))
    if groups == NULL:
        raise MemoryError
    try:
        for g in range(n_groups):
            groups[g].next, groups[g].stop = g * each, min((g + 1) * each, n)
        g = 0
        while True:
            k = 0
            i = g
            while i < n_groups and k < wave:
                if groups[i].running or groups[i].next < groups[i].stop:
                    pick[k] = i
                    k += 1
                elif i == g:
                    g += 1
                i += 1
            if k == 0:
                break
            for i in prange(k, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=n_threads):
                failed |= advance(&groups[pick[i]], &p)
            if failed:
                raise MemoryError
            PyErr_CheckSignals()
    finally:
        for g in range(n_groups):
            free(groups[g].memory)
        free(groups)
    return (np.asarray(status), np.asarray(n_iter), np.asarray(trace),
            np.asarray(residual))
