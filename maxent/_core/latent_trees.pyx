"""Tempered sums, marginals and best states of tree-structured hidden variables.

    s(h) = sum_v unary[v, h_v] + sum_{v: parent} pair[v, h_parent(v), h_v]
    L(t) = log sum_h exp(t s(h)),  mu^(t) = marginals,  L' = E_t[s],  d mu^(t) / dt

from one upward and one downward pass in logs, each with its tangent in t. Nodes are
numbered so that a parent comes before its children: a chain has parent[v] = v - 1.
An example is one task, so results have the same bits for any number of threads.

Source: Miller, Kumar, Packer, Goodman & Koller (2012), section 3; Pearl (1988).
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, log
from libc.stdlib cimport free, malloc

from maxent._core.threads cimport team

cdef enum:
    WORK = 2000000          # exponentials of a thread between two checks for Ctrl-C


cdef struct Tree:
    Py_ssize_t nodes
    Py_ssize_t states
    const Py_ssize_t* parent    # (nodes,), -1 of a root


cdef inline double log_total(const double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double top = -INFINITY, value = 0.
    for i in range(n):
        top = max(top, x[i])
    if top == -INFINITY:
        return top
    for i in range(n):
        value += exp(x[i] - top)
    return top + log(value)


cdef void upward(
    const Tree* g, const double* unary, const double* pair, double t,
    double* own, double* down, double* q, double* dq, double* L, double* dL,
) noexcept nogil:
    # own (nodes, states): log-sums of subtrees, down their tangents; q (nodes, states,
    # states) = p(h_v | h_parent), dq the tangent of its log, at roots of row 0 alone
    cdef Py_ssize_t v, i, j, S = g.states, rows
    cdef double value, mean
    cdef double* term
    L[0] = dL[0] = 0.
    for v in range(g.nodes * S):
        own[v] = t * unary[v]
        down[v] = unary[v] if unary[v] > -INFINITY else 0.
    for v in range(g.nodes - 1, -1, -1):
        rows = S if g.parent[v] >= 0 else 1
        for i in range(rows):
            term = q + (v * S + i) * S
            for j in range(S):
                term[j] = own[v * S + j]
                dq[(v * S + i) * S + j] = down[v * S + j]
                if g.parent[v] >= 0:
                    value = pair[(v * S + i) * S + j]
                    term[j] += t * value
                    dq[(v * S + i) * S + j] += value if value > -INFINITY else 0.
            value = log_total(term, S)
            mean = 0.
            for j in range(S):
                term[j] = exp(term[j] - value) if value > -INFINITY else 0.
                mean += term[j] * dq[(v * S + i) * S + j]
            for j in range(S):
                dq[(v * S + i) * S + j] -= mean
            if g.parent[v] >= 0:
                own[g.parent[v] * S + i] += value
                down[g.parent[v] * S + i] += mean
            else:
                L[0] += value
                dL[0] += mean


cdef void downward(
    const Tree* g, const double* q, const double* dq, double* mu, double* dmu,
    double* edge, double* dedge,
) noexcept nogil:
    """Marginals of nodes and edges and their tangents; at roots edges are zero."""
    cdef Py_ssize_t v, i, j, S = g.states, at
    cdef double above, dabove
    for v in range(g.nodes):
        for j in range(S):
            mu[v * S + j] = dmu[v * S + j] = 0.
        for i in range(S):
            at = (v * S + i) * S
            if g.parent[v] < 0:
                for j in range(S):
                    edge[at + j] = dedge[at + j] = 0.
                    if i == 0:
                        mu[v * S + j] = q[at + j]
                        dmu[v * S + j] = q[at + j] * dq[at + j]
                continue
            above = mu[g.parent[v] * S + i]
            dabove = dmu[g.parent[v] * S + i]
            for j in range(S):
                edge[at + j] = above * q[at + j]
                dedge[at + j] = dabove * q[at + j] + edge[at + j] * dq[at + j]
                mu[v * S + j] += edge[at + j]
                dmu[v * S + j] += dedge[at + j]


cdef int one_tree(
    const Tree* g, const double* unary, const double* pair, double t, double* L,
    double* dL, double* mu, double* dmu, double* edge, double* dedge,
) noexcept nogil:
    cdef Py_ssize_t size = g.nodes * g.states
    cdef double* own = <double*>malloc(2 * size * (1 + g.states) * sizeof(double))
    cdef double* q = own + 2 * size
    if own == NULL:
        return 1
    upward(g, unary, pair, t, own, own + size, q, q + size * g.states, L, dL)
    if mu != NULL:
        downward(g, q, q + size * g.states, mu, dmu, edge, dedge)
    free(own)
    return 0


cdef int best_tree(
    const Tree* g, const double* unary, const double* pair, double* value,
    Py_ssize_t* state,
) noexcept nogil:
    """Best states, ties to the first one; `state` is (nodes,)."""
    cdef Py_ssize_t v, i, j, S = g.states, rows, arg
    cdef double top, x
    cdef double* own = <double*>malloc(g.nodes * S * sizeof(double))
    cdef int* back = <int*>malloc(g.nodes * S * sizeof(int))
    if own == NULL or back == NULL:
        free(own)
        free(back)
        return 1
    value[0] = 0.
    for v in range(g.nodes * S):
        own[v] = unary[v]
    for v in range(g.nodes - 1, -1, -1):
        rows = S if g.parent[v] >= 0 else 1
        for i in range(rows):
            top, arg = -INFINITY, 0
            for j in range(S):
                x = own[v * S + j]
                if g.parent[v] >= 0:
                    x += pair[(v * S + i) * S + j]
                if x > top:
                    top, arg = x, j
            back[v * S + i] = <int>arg
            if g.parent[v] >= 0:
                own[g.parent[v] * S + i] += top
            else:
                value[0] += top
    for v in range(g.nodes):
        state[v] = back[v * S + (state[g.parent[v]] if g.parent[v] >= 0 else 0)]
    free(own)
    free(back)
    return 0


cdef Py_ssize_t trees_at_once(const Tree* g, int n_threads) noexcept nogil:
    """Trees between two checks for Ctrl-C."""
    return n_threads * max(
        <Py_ssize_t>1, <Py_ssize_t>WORK // (1 + g.nodes * g.states * g.states))


def tree_sums(
    const double[:, :, ::1] unary,         # IN  (n, nodes, states)
    const double[:, :, :, ::1] pair,       # IN  (n, nodes, S, S), parent first
    const Py_ssize_t[::1] parent,          # IN  (nodes,), -1 of a root, else < node
    double t,                              # IN  temper, > 0
    double[::1] L,                         # OUT (n,)
    double[::1] dL,                        # OUT (n,), E_t[s]
    double[:, :, ::1] mu,                  # OUT (n, nodes, states), or empty
    double[:, :, ::1] dmu,                 # OUT the same
    double[:, :, :, ::1] edge,             # OUT (n, nodes, states, states)
    double[:, :, :, ::1] dedge,            # OUT the same
    int n_threads,
):
    """Log-sums, means, marginals and the tangents of these."""
    cdef Py_ssize_t n = unary.shape[0], i, lo, hi
    cdef Tree g
    cdef bint full = mu.shape[0] > 0
    cdef int failed = 0
    if n == 0:
        return
    g.nodes, g.states, g.parent = unary.shape[1], unary.shape[2], &parent[0]
    cdef Py_ssize_t wave = trees_at_once(&g, n_threads)
    n_threads = team(n_threads, n, 10. * n * g.nodes * g.states * g.states)
    for lo in range(0, n, wave):
        hi = min(lo + wave, n)
        for i in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=n_threads):
            failed |= one_tree(
                &g, &unary[i, 0, 0], &pair[i, 0, 0, 0], t, &L[i], &dL[i],
                &mu[i, 0, 0] if full else NULL, &dmu[i, 0, 0] if full else NULL,
                &edge[i, 0, 0, 0] if full else NULL,
                &dedge[i, 0, 0, 0] if full else NULL)
        if failed:
            raise MemoryError
        PyErr_CheckSignals()


def tree_best(
    const double[:, :, ::1] unary,         # IN  (n, nodes, states)
    const double[:, :, :, ::1] pair,       # IN  (n, nodes, states, states)
    const Py_ssize_t[::1] parent,          # IN  (nodes,)
    double[::1] value,                     # OUT (n,)
    Py_ssize_t[:, ::1] state,              # OUT (n, nodes)
    int n_threads,
):
    """Largest scores and the states that attain them; ties go to the first state."""
    cdef Py_ssize_t n = unary.shape[0], i, lo, hi
    cdef Tree g
    cdef int failed = 0
    if n == 0:
        return
    g.nodes, g.states, g.parent = unary.shape[1], unary.shape[2], &parent[0]
    cdef Py_ssize_t wave = trees_at_once(&g, n_threads)
    n_threads = team(n_threads, n, 10. * n * g.nodes * g.states * g.states)
    for lo in range(0, n, wave):
        hi = min(lo + wave, n)
        for i in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=n_threads):
            failed |= best_tree(
                &g, &unary[i, 0, 0], &pair[i, 0, 0, 0], &value[i], &state[i, 0])
        if failed:
            raise MemoryError
        PyErr_CheckSignals()
