"""Hidden Markov chains: log-likelihoods, expected counts, Viterbi, draws.

    alpha_t(j) = p(z_t = j | x_0..x_t)              forward, scaled to sum to one
    gamma_t(j) = p(z_t = j | x), xi_t(i, j) = p(z_{t-1} = i, z_t = j | x)

Sequences come sorted by length and go eight to a vector; long ones go alone, eight
states to a vector. A sequence that underflows is redone in logs. Work is cut into
chunks that depend on the problem only and joined in their order.

Source: Rabiner (1989), section V.A.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, log
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from maxent._core.threads cimport team

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept

cdef extern from "chains/chain_loops.h" nogil:
    void mx_chain_best_steps(
        const double* log_start, const double* trans, const double* log_table,
        Py_ssize_t entries, const Py_ssize_t* row, Py_ssize_t begin, Py_ssize_t end,
        Py_ssize_t T, Py_ssize_t states, Py_ssize_t width, double* last, double* delta,
    ) noexcept

cdef enum:
    MOST_CHUNKS = 64
    CHUNK_STEPS = 4096          # steps of a chunk at least, if there are that many
    LANE_MEMORY = 1 << 23       # doubles of the forward pass of one vector of sequences
    WORK = 50000000             # ns of a thread between two checks for Ctrl-C, roughly
    PATH_WORK = 1 << 25         # pairs of states that Viterbi compares between them
    PATHS_MEMORY = 1 << 24      # values of Viterbi paths of several sequences
    APART = 16                  # doubles between what two threads write

cdef double DENSE = 1e-100      # transitions below it may hide what underflows
cdef double TINY = 1e-308       # what a likelihood that underflows is set to
cdef double FAINT = 1e-300      # probabilities below it are in logs only


# -- chain_loops.h for other packages --------------------------------------------------
cdef void forward_lanes(
    const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length, Py_ssize_t T,
    int keep, double* alpha, double* emission, double* inverse, double* log_scale,
    int* lost,
) noexcept nogil:
    mx_chain_forward_lanes(
        m, row, length, T, keep, alpha, emission, inverse, log_scale, lost)


cdef void backward_lanes(
    const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length, Py_ssize_t T,
    const double* alpha, const double* emission, const double* inverse,
    const double* weight, double* beta, double* ring, double** counts,
    double* start_counts, double* xi,
) noexcept nogil:
    mx_chain_backward_lanes(
        m, row, length, T, alpha, emission, inverse, weight, beta, ring, counts,
        start_counts, xi)


cdef int forward_one(
    const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, int keep, double* alpha,
    double* inverse, double* log_scale,
) noexcept nogil:
    return mx_chain_forward_one(m, row, T, keep, alpha, inverse, log_scale)


cdef void backward_one(
    const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, const double* alpha,
    const double* inverse, double weight, double* beta, double* ring, double* counts,
    double* start_counts, double* xi,
) noexcept nogil:
    mx_chain_backward_one(
        m, row, T, alpha, inverse, weight, beta, ring, counts, start_counts, xi)


cdef void add_lanes(
    const double* xi, const double* trans, Py_ssize_t n, double* out,
) noexcept nogil:
    mx_chain_add_lanes(xi, trans, n, out)


# -- in logs ---------------------------------------------------------------------------
cdef inline double log_row(
    const double* log_table, Py_ssize_t row, Py_ssize_t S, Py_ssize_t j,
) noexcept nogil:
    return 0. if row < 0 else log_table[row * S + j]


cdef double log_total(const double* x, Py_ssize_t n) noexcept nogil:
    """log sum exp x; -inf of nothing."""
    cdef Py_ssize_t i
    cdef double top = -INFINITY, value = 0.
    for i in range(n):
        top = max(top, x[i])
    if top == -INFINITY:
        return top
    for i in range(n):
        value += exp(x[i] - top)
    return top + log(value)


cdef void log_step(
    const double* prev, const double* log_trans, const double* log_table,
    Py_ssize_t row, Py_ssize_t S, double* own,
) noexcept nogil:
    """Logs of the states at a step together with what was seen until then."""
    cdef Py_ssize_t i, j
    cdef double top, value
    for j in range(S):
        top, value = -INFINITY, 0.
        for i in range(S):
            top = max(top, prev[i] + log_trans[i * S + j])
        if top > -INFINITY:
            for i in range(S):
                value += exp(prev[i] + log_trans[i * S + j] - top)
            top += log(value) + log_row(log_table, row, S, j)
        own[j] = top


cdef double log_forward(
    const double* log_start, const double* log_trans, const double* log_table,
    const Py_ssize_t* row, Py_ssize_t T, Py_ssize_t S, double* log_alpha,
) noexcept nogil:
    cdef Py_ssize_t t, j
    for j in range(S):
        log_alpha[j] = log_start[j] + log_row(log_table, row[0], S, j)
    for t in range(1, T):
        log_step(log_alpha + (t - 1) * S, log_trans, log_table, row[t], S,
                 log_alpha + t * S)
    return log_total(log_alpha + (T - 1) * S, S)


cdef double shares(const double* x, Py_ssize_t n, double* out) noexcept nogil:
    """out = exp(x - top); returns the largest x, or -inf where all are."""
    cdef Py_ssize_t i
    cdef double top = -INFINITY
    for i in range(n):
        top = max(top, x[i])
    for i in range(n):
        out[i] = exp(x[i] - top) if top > -INFINITY else 0.
    return top


cdef double plain_total(const double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double value = 0.
    for i in range(n):
        value += x[i]
    return value


cdef void log_counts(
    const double* log_trans, const double* log_table, const Py_ssize_t* row,
    Py_ssize_t T, Py_ssize_t S, const double* log_alpha, double weight,
    double* log_beta,             # scratch (3 + S, S)
    double* counts, double* start_counts, double* trans_counts,
) noexcept nogil:
    """Backward pass; adds weight times the posteriors to the counts.

    Those of a step are divided by their own sum: log p(x), which is the same for all of
    them, loses the digits of what is added to it.
    """
    cdef Py_ssize_t t, i, j
    cdef double value
    cdef double* term = log_beta + S
    cdef double* top = log_beta + 2 * S
    cdef double* ahead = log_beta + 3 * S   # (S, S), exp(log_trans + ... - top)
    cdef const double* own
    for i in range(S):
        log_beta[i] = 0.
    for t in range(T - 1, -1, -1):
        own = log_alpha + t * S
        for i in range(S):
            term[i] = own[i] + log_beta[i]
        shares(term, S, term)
        value = weight / plain_total(term, S)
        for i in range(S):
            if row[t] >= 0:
                counts[row[t] * S + i] += value * term[i]
            if t == 0:
                start_counts[i] += value * term[i]
        if t == 0:
            return
        own = log_alpha + (t - 1) * S
        for j in range(S):
            term[j] = log_beta[j] + log_row(log_table, row[t], S, j)
        for i in range(S):
            for j in range(S):
                ahead[i * S + j] = log_trans[i * S + j] + term[j]
            top[i] = shares(ahead + i * S, S, ahead + i * S)
            log_beta[i] = top[i]
            if top[i] > -INFINITY:
                log_beta[i] += log(plain_total(ahead + i * S, S))
            top[i] += own[i]
        shares(top, S, top)
        value = 0.
        for i in range(S):
            value += top[i] * plain_total(ahead + i * S, S)
        for i in range(S):
            for j in range(S):
                trans_counts[i * S + j] += weight / value * top[i] * ahead[i * S + j]


cdef double viterbi_trace(
    const double* delta, const double* log_trans_t, Py_ssize_t T, Py_ssize_t S,
    Py_ssize_t* path,
) noexcept nogil:
    """Log-probability and path from the end; ties go to the first state."""
    cdef Py_ssize_t t, j, i = 0
    cdef double value, most = delta[(T - 1) * S]
    cdef const double* prev
    cdef const double* into
    for j in range(1, S):
        if delta[(T - 1) * S + j] > most:
            i, most = j, delta[(T - 1) * S + j]
    value = most
    path[T - 1] = i
    for t in range(T - 2, -1, -1):
        prev = delta + t * S
        into = log_trans_t + i * S
        i, most = 0, prev[0] + into[0]
        for j in range(1, S):
            i = j if prev[j] + into[j] > most else i
            most = prev[j] + into[j] if prev[j] + into[j] > most else most
        path[t] = i
    return value


# -- chunks of sequences ---------------------------------------------------------------
cdef struct Pass:
    # Arguments that all chunks share. Sequences by falling length in `order`; group g
    # has the sequences order[first[g]] .. order[first[g + 1] - 1], one or a vector.
    mx_chain m
    Py_ssize_t n
    const double* log_start
    const Py_ssize_t* row
    const Py_ssize_t* offset    # (n + 1,)
    const Py_ssize_t* order
    const Py_ssize_t* first
    const Py_ssize_t* group     # first group of each chunk
    const double* weight
    double* log_lik             # (n,), NaN where lost
    double* counts              # (chunks or 1, rows, states)
    Py_ssize_t counts_step      # from one chunk to the next, 0 if rows belong to steps
    double* start_counts        # (chunks, states)
    double* trans_counts        # (chunks, states, states)


cdef int one_group(
    const Pass* p, Py_ssize_t chunk, Py_ssize_t g, double* memory,
) noexcept nogil:
    """Forward pass of a group, and its counts if requested."""
    cdef Py_ssize_t S = p.m.states, width = p.m.width, l, i, lo = p.first[g]
    cdef Py_ssize_t n = p.first[g + 1] - lo
    cdef Py_ssize_t T = p.offset[p.order[lo] + 1] - p.offset[p.order[lo]]
    cdef bint keep = p.counts != NULL, lanes = n > 1
    cdef Py_ssize_t size = S * MX_CHAIN_LANES if lanes else width
    cdef Py_ssize_t steps = T if keep else 2
    cdef double* alpha = memory
    cdef double* inverse = alpha + steps * size
    cdef double* emission = inverse + (T * MX_CHAIN_LANES if keep else 0)
    cdef double* beta = emission + ((T if keep else 1) * size if lanes else 0)
    cdef double* ring = beta + 2 * size
    cdef double* xi = ring + MX_CHAIN_RING * size
    cdef const Py_ssize_t* row[MX_CHAIN_LANES]
    cdef double* to[MX_CHAIN_LANES]
    cdef Py_ssize_t length[MX_CHAIN_LANES]
    cdef double log_scale[MX_CHAIN_LANES]
    cdef double weight[MX_CHAIN_LANES]
    cdef int lost[MX_CHAIN_LANES]
    cdef double* start_counts
    cdef double* trans_counts
    cdef double* first = xi + S * size
    for l in range(MX_CHAIN_LANES):
        row[l], length[l], weight[l], to[l] = NULL, 0, 0., NULL
        if l < n:
            i = p.order[lo + l]
            row[l] = p.row + p.offset[i]
            length[l] = p.offset[i + 1] - p.offset[i]
    if lanes:
        mx_chain_forward_lanes(
            &p.m, row, length, T, keep, alpha, emission, inverse, log_scale, lost)
    else:
        lost[0] = mx_chain_forward_one(
            &p.m, row[0], T, keep, alpha, inverse if keep else NULL, log_scale)
    for l in range(n):
        i = p.order[lo + l]
        p.log_lik[i] = INFINITY - INFINITY if lost[l] else log_scale[l]
        if keep:
            weight[l] = 0. if lost[l] else p.weight[i]
            to[l] = p.counts + chunk * p.counts_step
    if not keep:
        return 0
    start_counts = p.start_counts + chunk * S
    trans_counts = p.trans_counts + chunk * S * S
    memset(xi, 0, S * size * sizeof(double))
    if lanes:
        mx_chain_backward_lanes(
            &p.m, row, length, T, alpha, emission, inverse, weight, beta, ring, to,
            first, xi)
        for i in range(S):
            for l in range(MX_CHAIN_LANES):
                start_counts[i] += first[i * MX_CHAIN_LANES + l]
        mx_chain_add_lanes(xi, p.m.trans, S * S, trans_counts)
    elif not lost[0]:
        mx_chain_backward_one(
            &p.m, row[0], T, alpha, inverse, weight[0], beta, ring, to[0],
            start_counts, xi)
        for i in range(S):
            for l in range(S):
                trans_counts[i * S + l] += xi[i * width + l] * p.m.trans[i * S + l]
    return 0


cdef int one_chunk(const Pass* p, Py_ssize_t chunk) noexcept nogil:
    """All groups of a chunk, or 1 without memory."""
    cdef Py_ssize_t g, T, i, size = max(p.m.states * MX_CHAIN_LANES, p.m.width)
    cdef Py_ssize_t most = 0
    cdef double* memory
    for g in range(p.group[chunk], p.group[chunk + 1]):
        i = p.order[p.first[g]]
        T = p.offset[i + 1] - p.offset[i]
        i = p.first[g + 1] - p.first[g]
        # alpha and emissions, alpha alone; or two steps of alpha and one emission
        if p.counts == NULL:
            T, i = 2, 2 * size
        elif i > 1:
            i = 2 * p.m.states * MX_CHAIN_LANES
        else:
            i = p.m.width
        most = max(most, T * (i + MX_CHAIN_LANES))
    memory = <double*>malloc(
        (most + (3 + MX_CHAIN_RING + p.m.states) * size + 8) * sizeof(double))
    if memory == NULL:
        return 1
    for g in range(p.group[chunk], p.group[chunk + 1]):
        one_group(p, chunk, g, aligned(memory))
    free(memory)
    return 0


cdef int all_chunks(const Pass* p, Py_ssize_t n_chunks, int n_threads) except -1:
    """Run every chunk on one thread, with checks for Ctrl-C between some of them."""
    cdef Py_ssize_t c, first, stop, S = p.m.states
    cdef Py_ssize_t steps = p.offset[p.n] // n_chunks + 1
    cdef Py_ssize_t wave = n_threads * max(
        <Py_ssize_t>1, <Py_ssize_t>WORK // (steps * (30 + S * S)))
    cdef int failed = 0, threads = team(
        n_threads, n_chunks, <double>p.offset[p.n] * (30 + S * S))
    for first in range(0, n_chunks, wave):
        stop = min(first + wave, n_chunks)
        for c in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            failed |= one_chunk(p, c)
        if failed:
            raise MemoryError("the forward pass of the longest sequence needs more "
                              "memory than there is; cut it, or use fewer states")
        PyErr_CheckSignals()
    return 0


cdef Py_ssize_t cut(
    const Py_ssize_t[::1] offset, const Py_ssize_t[::1] order, Py_ssize_t S,
    Py_ssize_t[::1] first, Py_ssize_t[::1] group, Py_ssize_t* n_groups,
) noexcept:
    """Groups and chunks; returns the number of chunks."""
    cdef Py_ssize_t n = order.shape[0], i = 0, g = 0, c = 0, k, T, steps, held = 0
    cdef Py_ssize_t least = max(<Py_ssize_t>CHUNK_STEPS, offset[n] // MOST_CHUNKS + 1)
    group[0] = 0
    while i < n:
        first[g] = i
        T = offset[order[i] + 1] - offset[order[i]]
        steps = 0
        for k in range(i, min(i + MX_CHAIN_LANES, n)):
            steps += offset[order[k] + 1] - offset[order[k]]
        # a vector costs about as much as three single sequences
        if steps >= 3 * T and T * S * MX_CHAIN_LANES <= LANE_MEMORY:
            i = min(i + MX_CHAIN_LANES, n)
        else:
            steps = T
            i += 1
        g += 1
        held += steps
        if held >= least or i == n:
            c += 1
            group[c], held = g, 0
    first[g] = n
    n_groups[0] = g
    return c


def expect(
    const double[::1] start,              # IN  (states,)
    const double[:, ::1] trans,           # IN  (states, states)
    const double[::1] log_start,          # IN  (states,), also where start underflows
    const double[:, ::1] log_trans,       # IN  (states, states)
    const double[:, ::1] log_table,       # IN  (rows, states), largest of a row 0
    const Py_ssize_t[::1] row,            # IN  (steps,), -1 where nothing was observed
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
    const Py_ssize_t[::1] order,          # IN  (n,), by falling length
    weights,                              # IN  (n,), or None: log-likelihoods only
    bint shared,                          # whether sequences share rows of the table
    int n_threads,
):
    """Log-likelihoods (n,) and weighted expected counts of all sequences.

    Returns log_lik, counts (rows, states) of states by row of the table, start_counts
    (states,), trans_counts (states, states); the counts are None without weights.
    """
    cdef Py_ssize_t S = start.shape[0], n = order.shape[0], rows = log_table.shape[0]
    cdef Py_ssize_t width = (S + MX_CHAIN_LANES - 1) // MX_CHAIN_LANES * MX_CHAIN_LANES
    cdef Py_ssize_t n_chunks, n_groups, i, j
    cdef Pass p
    cdef const double[::1] weight
    cdef double[::1] log_lik = np.empty(n), ones = np.ones(S)
    cdef Py_ssize_t[::1] first = np.empty(n + 1, np.intp), group = np.empty_like(first)
    cdef double[:, ::1] table = np.empty((rows, S))
    cdef double[:, ::1] trans_t = np.transpose(trans).copy()
    cdef double[:, ::1] wide = np.zeros((width, width)), wide_t = wide.copy()
    cdef double[:, :, ::1] counts, trans_counts
    cdef double[:, ::1] start_counts
    if rows:
        exponentiate(&log_table[0, 0], rows * S, &table[0, 0])
    wide[:S, :S] = trans
    wide_t[:S, :S] = trans_t
    n_chunks = cut(offset, order, S, first, group, &n_groups)
    p.m.states, p.m.width = S, width
    p.m.start, p.m.trans, p.m.trans_t = &start[0], &trans[0, 0], &trans_t[0, 0]
    p.m.wide, p.m.wide_t, p.m.ones = &wide[0, 0], &wide_t[0, 0], &ones[0]
    p.m.table = &table[0, 0] if rows else NULL
    p.m.log_table = &log_table[0, 0] if rows else NULL
    p.m.log_trans, p.log_start = &log_trans[0, 0], &log_start[0]
    p.m.own_start = p.m.own_trans = p.m.own_trans_t = NULL
    p.m.own_table = NULL
    p.m.sparse = 0
    for i in range(S):
        for j in range(S):
            p.m.sparse |= trans[i, j] < DENSE
    p.n, p.row, p.offset, p.order = n, &row[0], &offset[0], &order[0]
    p.first, p.group, p.log_lik = &first[0], &group[0], &log_lik[0]
    p.counts = NULL
    if weights is not None:
        weight = weights
        # the sums of two threads share no cache line
        counts = np.zeros((n_chunks if shared else 1, rows + APART // S + 1, S))
        start_counts = np.zeros((n_chunks, S))
        trans_counts = np.zeros((n_chunks, S, S))
        p.weight, p.counts = &weight[0], &counts[0, 0, 0]
        p.counts_step = counts.shape[1] * S if shared else 0
        p.start_counts, p.trans_counts = &start_counts[0, 0], &trans_counts[0, 0, 0]
    if underflows(start, log_start) or underflows(trans, log_trans):
        log_lik[:] = INFINITY - INFINITY
    else:
        all_chunks(&p, n_chunks, n_threads)
    redo_in_logs(&p, n)
    out = np.asarray(log_lik)
    if weights is None:
        return out, None, None, None
    return (out, joined(counts)[:rows], joined(start_counts), joined(trans_counts))


def underflows(prob, log_prob):
    """True if an entry that is not zero is too small for products of doubles."""
    return bool((np.less(prob, FAINT) & np.greater(log_prob, -np.inf)).any())


def joined(parts):
    """Sum over chunks, in their order."""
    total = np.array(parts[0])
    for c in range(1, parts.shape[0]):
        total += np.asarray(parts[c])
    return total


def relative(const double[:, ::1] log_table):
    """Rows of a table less their largest entry, and these; rows of -inf stay."""
    cdef Py_ssize_t n = log_table.shape[0], S = log_table.shape[1], i, j
    out, tops = np.empty((n, S)), np.zeros(n)
    cdef double[:, ::1] less = out
    cdef double[::1] top = tops
    cdef double most
    with nogil:
        for i in range(n):
            most = -INFINITY
            for j in range(S):
                most = log_table[i, j] if log_table[i, j] > most else most
            if -INFINITY < most < INFINITY:
                top[i] = most
            for j in range(S):
                less[i, j] = log_table[i, j] - top[i]
    return out, tops


def likelihoods(const double[:, ::1] log_table):
    """exp of a table; entries that underflow become TINY, and -inf becomes 0."""
    out = np.empty((log_table.shape[0], log_table.shape[1]))
    cdef double[:, ::1] table = out
    if out.size:
        exponentiate(&log_table[0, 0], out.size, &table[0, 0])
    return out


cdef enum:
    BLOCK = 64                            # rows that stay in cache


def likelihoods_of_runs(
    const double[:, ::1] log_prob,        # IN  (runs * states, rows)
    const Py_ssize_t[::1] step,           # IN  (rows,), of each row
    double[:, :, ::1] table,              # OUT (runs, steps, states), 1 elsewhere
    double[:, ::1] top,                   # OUT (runs, steps), 0 elsewhere
):
    """Likelihoods of the steps, relative to their largest, and the logs of these.

    They are as `likelihoods` of what `relative` returns.
    """
    cdef Py_ssize_t runs = table.shape[0], S = table.shape[2], n = step.shape[0]
    cdef Py_ssize_t steps = table.shape[1], r, i, j, b, lo, m
    cdef double most
    if (log_prob.shape[0] != runs * S or log_prob.shape[1] != n
            or top.shape[0] != runs or top.shape[1] != steps):
        raise ValueError("shapes of the arrays do not fit together")
    cdef double[:, ::1] less = np.empty((BLOCK, S)), own = np.empty((BLOCK, S))
    if n < steps:
        table[:], top[:] = 1., 0.
    with nogil:
        for r in range(runs if S else 0):
            for b in range((n + BLOCK - 1) // BLOCK):
                lo = b * BLOCK
                m = min(<Py_ssize_t> BLOCK, n - lo)
                for i in range(m):
                    most = -INFINITY
                    for j in range(S):
                        most = max(most, log_prob[r * S + j, lo + i])
                    if not -INFINITY < most < INFINITY:
                        most = 0.
                    top[r, step[lo + i]] = most
                    for j in range(S):
                        less[i, j] = log_prob[r * S + j, lo + i] - most
                exponentiate(&less[0, 0], m * S, &own[0, 0])
                for i in range(m):
                    for j in range(S):
                        table[r, step[lo + i], j] = own[i, j]


cdef void exponentiate(const double* x, Py_ssize_t n, double* out) noexcept nogil:
    """exp; results that underflow become TINY, and that of -inf is 0."""
    cdef Py_ssize_t i
    mx_exp_shifted(x, 0., 0., n, out)
    for i in range(n):
        if out[i] < TINY:
            out[i] = TINY if x[i] > -INFINITY else 0.


cdef int redo_in_logs(const Pass* p, Py_ssize_t n) except -1:
    """Sequences whose scaled pass has underflowed; their counts go to chunk 0."""
    cdef Py_ssize_t i, S = p.m.states, T
    cdef double* memory
    cdef const Py_ssize_t* row
    for i in range(n):
        if p.log_lik[i] == p.log_lik[i]:
            continue
        row, T = p.row + p.offset[i], p.offset[i + 1] - p.offset[i]
        memory = <double*>malloc((T + 3 + S) * S * sizeof(double))
        if memory == NULL:
            raise MemoryError
        with nogil:
            p.log_lik[i] = log_forward(
                p.log_start, p.m.log_trans, p.m.log_table, row, T, S, memory)
            if p.counts != NULL and p.log_lik[i] > -INFINITY:
                log_counts(
                    p.m.log_trans, p.m.log_table, row, T, S, memory, p.weight[i],
                    memory + T * S, p.counts, p.start_counts, p.trans_counts)
        free(memory)
        PyErr_CheckSignals()
    return 0


# -- a model for each sequence ---------------------------------------------------------
cdef struct Each:
    # Models by falling length of their sequence, row[begin .. begin + length - 1];
    # lane l of vector v is model v * lanes + l.
    Py_ssize_t n
    Py_ssize_t states
    Py_ssize_t rows
    const double* start         # (vectors, states, lanes)
    const double* trans         # (vectors, states, states, lanes)
    const double* trans_t
    const double* table         # (n or 1, rows, states)
    Py_ssize_t table_step       # from one sequence to the next, 0 if they share it
    const double* ones
    const Py_ssize_t* row
    const Py_ssize_t* begin     # (n,)
    const Py_ssize_t* length
    int sparse
    double* log_lik             # (n,), NaN where lost
    double* start_counts        # (vectors, states, lanes)
    double* trans_counts        # (vectors, states, states, lanes)
    double* counts              # (n or 1, rows, states)
    Py_ssize_t counts_step


cdef int one_vector(const Each* p, Py_ssize_t v) noexcept nogil:
    """Forward and backward pass of the models of one vector; 1 without memory."""
    cdef Py_ssize_t S = p.states, L = MX_CHAIN_LANES, size = S * L, l, i, k
    cdef Py_ssize_t T = p.length[v * L]
    cdef double* memory = <double*>malloc(
        (T * (2 * size + L) + (2 + MX_CHAIN_RING) * size + 8) * sizeof(double))
    cdef double* alpha = aligned(memory)
    cdef double* emission = alpha + T * size
    cdef double* inverse = emission + T * size
    cdef double* beta = inverse + T * L
    cdef double* ring = beta + 2 * size
    cdef double* xi = p.trans_counts + v * S * size
    cdef const Py_ssize_t* row[MX_CHAIN_LANES]
    cdef double* to[MX_CHAIN_LANES]
    cdef const double* table[MX_CHAIN_LANES]
    cdef Py_ssize_t length[MX_CHAIN_LANES]
    cdef double log_scale[MX_CHAIN_LANES]
    cdef double weight[MX_CHAIN_LANES]
    cdef int lost[MX_CHAIN_LANES]
    cdef mx_chain m
    if memory == NULL:
        return 1
    m.states, m.sparse, m.ones = S, p.sparse, p.ones
    m.own_start, m.own_table = p.start + v * size, table
    m.own_trans, m.own_trans_t = p.trans + v * S * size, p.trans_t + v * S * size
    m.trans = m.trans_t = m.start = m.table = NULL
    for l in range(L):
        row[l], length[l], to[l], table[l] = NULL, 0, NULL, p.ones
        i = v * L + l
        if i < p.n:
            row[l], length[l] = p.row + p.begin[i], p.length[i]
            to[l] = p.counts + i * p.counts_step
            table[l] = p.table + i * p.table_step
    mx_chain_forward_lanes(
        &m, row, length, T, 1, alpha, emission, inverse, log_scale, lost)
    for l in range(min(L, p.n - v * L)):
        p.log_lik[v * L + l] = INFINITY - INFINITY if lost[l] else log_scale[l]
    for l in range(L):
        weight[l] = 0. if lost[l] or length[l] == 0 else 1.
    mx_chain_backward_lanes(
        &m, row, length, T, alpha, emission, inverse, weight, beta, ring, to,
        p.start_counts + v * size, xi)
    for k in range(S * size):
        xi[k] *= m.own_trans[k]
    free(memory)
    return 0


def lanes():
    """Models in one vector of `expect_each` and of `chain_pairs.hmm_kernel`."""
    return MX_CHAIN_LANES


def expect_each(
    const double[:, :, ::1] start,        # IN  (vectors, states, lanes)
    const double[:, :, :, ::1] trans,     # IN  (vectors, states, states, lanes)
    const double[:, :, :, ::1] trans_t,   # IN  the same, transposed
    const double[:, :, ::1] table,        # IN  (n or 1, rows, states) likelihoods
    const Py_ssize_t[::1] row,            # IN  (steps,), -1 where nothing was observed
    const Py_ssize_t[::1] begin,          # IN  (n,), where each sequence begins
    const Py_ssize_t[::1] length,         # IN  (n,), falling
    bint by_step,                         # whether each step has its own row
    int n_threads,
):
    """Log-likelihoods (n,) and expected counts of sequences, each under its own model.

    Returns log_lik (NaN where a sequence underflows), start counts (vectors, states,
    lanes), transition counts (vectors, states, states, lanes), counts (n, rows,
    states); (1, rows, states) with `by_step`.
    """
    cdef Py_ssize_t n = length.shape[0], S = start.shape[1], v, first, stop
    cdef Py_ssize_t vectors = start.shape[0], wave, longest = 1
    cdef double[::1] log_lik = np.empty(n), ones = np.ones(S)
    cdef double[:, :, ::1] starts = np.zeros_like(start)
    cdef double[:, :, :, ::1] moves = np.zeros_like(trans)
    cdef Py_ssize_t size = table.shape[1] * S
    cdef double[:, :, ::1] counts = np.zeros((1 if by_step else n, table.shape[1], S))
    cdef Each p
    cdef int failed = 0
    p.n, p.states, p.rows = n, S, table.shape[1]
    p.start, p.trans = &start[0, 0, 0], &trans[0, 0, 0, 0]
    p.trans_t, p.table, p.ones = &trans_t[0, 0, 0, 0], &table[0, 0, 0], &ones[0]
    p.row, p.begin, p.length = &row[0], &begin[0], &length[0]
    p.log_lik = &log_lik[0]
    p.start_counts, p.trans_counts = &starts[0, 0, 0], &moves[0, 0, 0, 0]
    p.counts = &counts[0, 0, 0]
    p.table_step = size if table.shape[0] > 1 else 0
    p.counts_step = 0 if by_step else size
    p.sparse = np.min(trans) < DENSE
    for v in range(n):
        longest = max(longest, length[v])
    wave = n_threads * max(<Py_ssize_t>1, WORK // (longest * (30 + 4 * S * S)))
    n_threads = team(n_threads, vectors, <double>vectors * longest * (30 + 4 * S * S))
    for first in range(0, vectors, wave):
        stop = min(first + wave, vectors)
        for v in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=n_threads):
            failed |= one_vector(&p, v)
        if failed:
            raise MemoryError
        PyErr_CheckSignals()
    return (np.asarray(log_lik), np.asarray(starts), np.asarray(moves),
            np.asarray(counts))


# -- Viterbi ---------------------------------------------------------------------------
cdef struct Paths:
    Py_ssize_t states
    Py_ssize_t width
    Py_ssize_t entries
    const double* log_start
    const double* wide                    # logarithms of transitions, (states, width)
    const double* log_trans_t
    const double* log_table
    const Py_ssize_t* row
    const Py_ssize_t* offset
    Py_ssize_t* path
    double* log_prob


def viterbi(
    const double[::1] log_start,          # IN  (states,)
    const double[:, ::1] log_trans,       # IN  (states, states)
    const double[:, ::1] log_table,       # IN  (rows, states)
    const Py_ssize_t[::1] row,            # IN  (steps,)
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
    int n_threads,
):
    """Most likely state paths (steps,) and their log-probabilities (n,)."""
    cdef Py_ssize_t n = offset.shape[0] - 1, first = 0, stop, S = log_start.shape[0]
    cdef Py_ssize_t piece = max(1, PATH_WORK // (S * S))
    # steps of sequences that share memory: their values take 128 MB at most
    cdef Py_ssize_t most = min(piece * n_threads, PATHS_MEMORY // S)
    cdef Py_ssize_t[::1] path = np.empty(row.shape[0], np.intp)
    cdef double[::1] log_prob = np.empty(n)
    cdef Py_ssize_t width = (S + MX_CHAIN_LANES - 1) // MX_CHAIN_LANES * MX_CHAIN_LANES
    cdef double[:, ::1] log_trans_t = np.transpose(log_trans).copy()
    cdef double[:, ::1] wide = np.full((S, width), -np.inf)
    cdef double[::1] delta = np.empty(1)  # whose large arrays have large pages
    cdef Paths p
    wide[:, :S] = log_trans
    p.states, p.width, p.entries = S, width, log_table.shape[0] * S
    p.log_start, p.wide, p.log_trans_t = &log_start[0], &wide[0, 0], &log_trans_t[0, 0]
    p.log_table = &log_table[0, 0] if log_table.shape[0] else NULL
    p.row, p.offset = &row[0], &offset[0]
    p.path, p.log_prob = &path[0], &log_prob[0]
    while first < n:
        stop = min(first + n_threads, n)
        while stop < n and offset[stop + 1] - offset[first] <= most:
            stop += 1
        if delta.shape[0] < (offset[stop] - offset[first]) * S:
            delta = np.empty((offset[stop] - offset[first]) * S)
        some_paths(&p, first, stop, piece, n_threads, &delta[0])
        first = stop
    return np.asarray(path), np.asarray(log_prob)


cdef int some_paths(
    const Paths* p, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t piece, int n_threads,
    double* delta,
) except -1:
    """Sequences side by side, piece by piece; checks for Ctrl-C between the pieces."""
    cdef Py_ssize_t S = p.states, i, begin, T, longest = 0, start = p.offset[first]
    cdef Py_ssize_t lane = 2 * p.width + APART            # on cache lines of their own
    cdef double* last = <double*>malloc((stop - first) * lane * sizeof(double))
    n_threads = team(
        n_threads, stop - first, <double>(p.offset[stop] - start) * S * (S + 10))
    try:
        if last == NULL:
            raise MemoryError
        for i in range(first, stop):
            longest = max(longest, p.offset[i + 1] - p.offset[i])
        for begin in range(0, longest, piece):
            for i in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=n_threads):
                T = p.offset[i + 1] - p.offset[i]
                mx_chain_best_steps(
                    p.log_start, p.wide, p.log_table, p.entries, p.row + p.offset[i],
                    begin, min(begin + piece, T), T, S, p.width,
                    last + (i - first) * lane, delta + (p.offset[i] - start) * S)
            PyErr_CheckSignals()
        for i in prange(first, stop, nogil=True, schedule="dynamic", chunksize=16,
                        num_threads=n_threads):
            T = p.offset[i + 1] - p.offset[i]
            p.log_prob[i] = viterbi_trace(
                delta + (p.offset[i] - start) * S, p.log_trans_t, T, S,
                p.path + p.offset[i])
    finally:
        free(last)
    return 0


def filtered(
    const double[::1] log_start,          # IN  (states,)
    const double[:, ::1] log_trans,       # IN  (states, states)
    const double[:, ::1] log_table,       # IN  (rows, states)
    const Py_ssize_t[::1] row,            # IN  (steps,), -1 where nothing was observed
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
):
    """Probabilities (steps, states) of the states given what was seen until then.

    They are NaN from the first step on that has probability zero.
    """
    cdef Py_ssize_t S = log_start.shape[0], n = offset.shape[0] - 1, i, t, j, lo, hi
    cdef double[:, ::1] out = np.empty((row.shape[0], S))
    cdef const double* table = &log_table[0, 0] if log_table.shape[0] else NULL
    cdef double total
    for i in range(n):
        for lo in range(offset[i], offset[i + 1], PATH_WORK // (64 * S * S) + 1):
            hi = min(lo + PATH_WORK // (64 * S * S) + 1, offset[i + 1])
            with nogil:
                for t in range(lo, hi):
                    if t > offset[i]:
                        log_step(&out[t - 1, 0], &log_trans[0, 0], table, row[t], S,
                                 &out[t, 0])
                    else:
                        for j in range(S):
                            out[t, j] = log_start[j] + log_row(table, row[t], S, j)
                    total = log_total(&out[t, 0], S)
                    for j in range(S):
                        out[t, j] -= total
            PyErr_CheckSignals()
    return np.exp(out)


# -- draws -----------------------------------------------------------------------------
def draw_chain(
    const double[:, ::1] edges,           # IN  (contexts, symbols), cumulative
    const Py_ssize_t[::1] context,        # IN  (n,), context of the first draw
    const double[::1] uniform,            # IN  (steps,), in [0, 1)
    const Py_ssize_t[::1] offset,         # IN  (n + 1,)
):
    """Symbols (steps,), drawn one after the other given the context of each.

    The context after symbol o is (context * symbols + o) mod contexts: the last symbols
    as digits; o itself with as many contexts as symbols.
    """
    cdef Py_ssize_t S = edges.shape[1], C = edges.shape[0], n = offset.shape[0] - 1
    cdef Py_ssize_t i, t, lo, hi, mid, at
    cdef Py_ssize_t[::1] path = np.empty(uniform.shape[0], np.intp)
    cdef const double* edge
    cdef double u
    with nogil:
        for i in range(n):
            at = context[i]
            for t in range(offset[i], offset[i + 1]):
                edge = &edges[at, 0]
                u = uniform[t] * edge[S - 1]
                lo, hi = 0, S - 1
                while lo < hi:
                    mid = (lo + hi) // 2
                    if edge[mid] > u:
                        hi = mid
                    else:
                        lo = mid + 1
                path[t] = lo
                at = (at * S + lo) % C
    return np.asarray(path)
