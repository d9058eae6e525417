"""Spanning-tree sums without cancellation, for weights of any range.

    Z = sum over trees of prod W_uv,   P(uv in tree) = W_uv R_uv

with R the effective resistance (Jaakkola, Meila & Jebara 1999, eq. 31, 36, 61), both
from the elimination of one node after the other (`elimination`).

Doubles hold weights that differ by up to exp(WINDOW).  Where weights span more, the
bottlenecks of the graph (the least weights on the paths of its maximum spanning tree)
are cut into windows.  A window sees the parts that stronger bottlenecks hold together
as single nodes, and the parts that only weaker ones join as graphs of their own; both
change the rest by n^2 exp(-MARGIN) at most.  So every bottleneck is a pivot in one
window, or in two if it is within MARGIN of a border, and every pair of nodes is looked
at where its bottleneck is.  Nodes are eliminated in the order in which the maximum
spanning tree joins their parts, so that pivot k is of the size of bottleneck k.
"""

from libc.math cimport INFINITY, log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from maxent._core.trees.maximum_tree cimport (
    TreeEdge,
    maximum_spanning_tree,
    merge_order,
)
from maxent._core.trees.star_mesh_elimination cimport (
    bring_back,
    eliminate,
    panel_memory,
)
from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_ILL_CONDITIONED,
    TREES_NO_MEMORY,
    TREES_OK,
    fill_weights,
    join_triangles,
    look_for_interrupts,
    mirror,
    weight_range,
)

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept

# V = W / sqrt(S) must not underflow at the floor nor R = 1 / floor overflow.
cdef double CEILING = 690.      # as in triangles.pyx
cdef double FLOOR = -350.
cdef double MARGIN = 60.
cdef double WINDOW = CEILING - FLOOR - 2. * MARGIN


# -- one window ------------------------------------------------------------------------
cdef int one_window(
    const double* log_weight, Py_ssize_t n, double shift, double* W, double* S,
    double* log_z, double* R, double* prob, bint interruptible) except -1 nogil:
    """Star-mesh where all weights fit one window; R (n, n) or NULL, prob or NULL.

    prob may be R: the probabilities then take the place of the resistances.
    """
    cdef Py_ssize_t k, j
    cdef double z = 0., value
    cdef double* row
    cdef double* to
    cdef int status
    fill_weights(log_weight, n, shift, W)
    look_for_interrupts(interruptible)
    status = eliminate(W, n, S, interruptible)
    if status != TREES_OK:
        return status
    for k in range(1, n):
        z += log(S[k])
    log_z[0] = z + (n - 1) * shift
    if R == NULL:
        return TREES_OK
    cdef double* A = <double*>malloc(panel_memory(n) * sizeof(double))
    if A == NULL:
        return TREES_NO_MEMORY
    try:
        bring_back(W, S, n, R, A, interruptible)
    finally:
        free(A)
    if prob == NULL:
        return TREES_OK
    for k in range(n):
        row = W + k * n
        mx_exp_shifted(log_weight + k * n, shift, CEILING, k, row)
        to = prob + k * n
        for j in range(k):
            value = row[j] * R[k * n + j]
            to[j] = value if value < 1. else 1.
        to[k] = 0.
    look_for_interrupts(interruptible)
    mirror(prob, n)
    return TREES_OK


# -- several windows -------------------------------------------------------------------
cdef struct Span:
    # Positions of a window: pivots lo .. hi, those that count first .. last.
    Py_ssize_t lo
    Py_ssize_t first
    Py_ssize_t last
    Py_ssize_t hi
    double shift


cdef struct Graph:
    # Inputs of all windows, and their scratch; arrays of n unless noted.
    Py_ssize_t n
    const double* log_weight    # (n, n), both triangles
    const Py_ssize_t* order     # node at each position
    const Py_ssize_t* partner   # position that a position merges into
    Py_ssize_t* node            # position that stands for the single node it is part of
    Py_ssize_t* part            # position that stands for the graph of its own
    Py_ssize_t* below           # part by the pivots first .. n - 1 alone
    Py_ssize_t* above           # part by the pivots last + 1 .. n - 1 alone
    Py_ssize_t* sorted          # positions by part, then node
    Py_ssize_t* count           # (n + 1,)
    Py_ssize_t* swap
    Py_ssize_t* place           # row of the window's matrix of a sorted position
    double* gathered
    double* value
    double* S
    double* W                   # (n, n)
    double* R                   # (n, n), NULL for sums alone
    double* A                   # (panel_memory(n),)
    double* out                 # (n, n), NULL for sums alone; one triangle is written
    bint log_resistances        # are written there, in the place of probabilities


cdef void label(
    const Py_ssize_t* partner, Py_ssize_t n, Py_ssize_t pivots, Py_ssize_t* out
) noexcept nogil:
    """Least position of the part of each one, those from `pivots` on having merged."""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] = k if k < pivots else out[partner[k]]


cdef void sort_by(
    const Py_ssize_t* key, Py_ssize_t n, const Py_ssize_t* items, Py_ssize_t* count,
    Py_ssize_t* out) noexcept nogil:
    """Items in the order of their keys 0 .. n - 1, otherwise as they come."""
    cdef Py_ssize_t k
    memset(count, 0, (n + 1) * sizeof(Py_ssize_t))
    for k in range(n):
        count[key[k] + 1] += 1
    for k in range(n):
        count[k + 1] += count[k]
    for k in range(n):
        out[count[key[items[k]]]] = items[k]
        count[key[items[k]]] += 1


cdef int one_part(
    Graph* g, const Span* span, Py_ssize_t start, Py_ssize_t stop, double* log_z,
    bint interruptible) except -1 nogil:
    """The part at sorted[start:stop] of a window."""
    cdef Py_ssize_t p, q, m = 0, row, first, at
    cdef const Py_ssize_t* own = g.sorted
    cdef const double* x
    cdef double* to
    cdef double value
    cdef int status
    for p in range(start, stop):
        if p > start and g.node[own[p]] != g.node[own[p - 1]]:
            m += 1
        g.place[p] = m
    m += 1
    memset(g.W, 0, m * m * sizeof(double))
    first = start                     # of the members of this node
    for p in range(start, stop):
        row = g.place[p]
        if row != g.place[first]:
            first = p
            if stop - start > 256:
                look_for_interrupts(interruptible)
        x = g.log_weight + g.order[own[p]] * g.n
        for q in range(start, first):
            g.gathered[q] = x[g.order[own[q]]]
        mx_exp_shifted(g.gathered + start, span.shift, CEILING, first - start, g.value)
        to = g.W + row * m
        if row == first - start:      # every node so far has one member
            for q in range(row):
                to[q] += g.value[q]
        else:
            for q in range(start, first):
                to[g.place[q]] += g.value[q - start]
    status = eliminate(g.W, m, g.S, interruptible)
    if status != TREES_OK:
        return status
    for p in range(start + 1, stop):
        at = g.node[own[p]]
        if at == own[p] and span.first <= at <= span.last:
            log_z[0] += span.shift + log(g.S[g.place[p]])
    if g.out == NULL:
        return TREES_OK
    bring_back(g.W, g.S, m, g.R, g.A, interruptible)
    first = start
    for p in range(start, stop):
        row = g.place[p]
        if row != g.place[first]:
            first = p
            if stop - start > 256:
                look_for_interrupts(interruptible)
        x = g.log_weight + g.order[own[p]] * g.n
        for q in range(start, first):
            g.gathered[q] = 0.5 * x[g.order[own[q]]]
        # exp(x) may underflow where exp(x) R does not: half of x before R, half after
        mx_exp_shifted(
            g.gathered + start, 0.5 * span.shift, CEILING, first - start, g.value)
        to = g.out + g.order[own[p]] * g.n
        for q in range(start, first):
            if (g.below[own[p]] == g.below[own[q]]
                    and g.above[own[p]] != g.above[own[q]]):
                if g.log_resistances:
                    value = log(g.R[row * m + g.place[q]]) - span.shift
                else:
                    value = g.value[q - start]
                    value *= g.R[row * m + g.place[q]] * value
                    value = value if value < 1. else 1.
                to[g.order[own[q]]] = value
    return TREES_OK


cdef int one_span(
    Graph* g, const Span* span, double* log_z, bint interruptible) except -1 nogil:
    """All parts of a window."""
    cdef Py_ssize_t n = g.n, k, start = 0, stop
    cdef bint counts
    cdef int status
    label(g.partner, n, span.hi + 1, g.node)
    label(g.partner, n, span.lo, g.part)
    label(g.partner, n, span.first, g.below)
    label(g.partner, n, span.last + 1, g.above)
    for k in range(n):
        g.place[k] = k
    sort_by(g.node, n, g.place, g.count, g.swap)
    sort_by(g.part, n, g.swap, g.count, g.sorted)
    while start < n:
        stop = start
        counts = False
        while stop < n and g.part[g.sorted[stop]] == g.part[g.sorted[start]]:
            counts = counts or span.first <= g.sorted[stop] <= span.last
            stop += 1
        if counts:
            status = one_part(g, span, start, stop, log_z, interruptible)
            if status != TREES_OK:
                return status
        start = stop
    return TREES_OK


cdef int many_windows(
    const double* log_weight, Py_ssize_t n, double* W, double* S, double* log_z,
    double* out, bint log_resistances, bint interruptible) except -1 nogil:
    """Star-mesh window by window, from the strongest bottlenecks down.

    out (n, n) or NULL: the probabilities, or the logarithms of the resistances.
    """
    cdef TreeEdge* edges = <TreeEdge*>malloc(n * sizeof(TreeEdge))
    cdef Py_ssize_t* places = <Py_ssize_t*>malloc((10 * n + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t* order = places
    cdef Py_ssize_t* partner = places + n
    cdef double* values = <double*>malloc(3 * n * sizeof(double))
    cdef double* bottleneck = values
    cdef double* both = <double*>malloc(n * n * sizeof(double))
    cdef double z = 0., reach
    cdef Graph g
    cdef Span span
    cdef int status
    g.R = g.A = NULL
    try:
        if edges == NULL or places == NULL or values == NULL or both == NULL:
            return TREES_NO_MEMORY
        memcpy(both, log_weight, n * n * sizeof(double))
        mirror(both, n)
        look_for_interrupts(interruptible)
        status = maximum_spanning_tree(both, n, edges)
        if status == TREES_OK:
            status = merge_order(edges, n, order, partner, bottleneck)
        if status != TREES_OK:
            return status
        look_for_interrupts(interruptible)
        g.n, g.log_weight, g.order, g.partner = n, both, order, partner
        g.node, g.part, g.below, g.above = (
            places + 2 * n, places + 3 * n, places + 4 * n, places + 5 * n)
        g.sorted, g.swap, g.place, g.count = (
            places + 6 * n, places + 7 * n, places + 8 * n, places + 9 * n)
        g.gathered, g.value = values + n, values + 2 * n
        g.S, g.W, g.out, g.log_resistances = S, W, out, log_resistances
        if out != NULL:
            memset(out, 0, n * n * sizeof(double))
            g.R = <double*>malloc(n * n * sizeof(double))
            g.A = <double*>malloc(panel_memory(n) * sizeof(double))
            if g.R == NULL or g.A == NULL:
                return TREES_NO_MEMORY
        # up to n^2 / 4 weights come together between two single nodes
        reach = CEILING - MARGIN - 2. * log(<double>n)
        span.last = n - 1
        while span.last > 0:
            look_for_interrupts(interruptible)
            span.shift = bottleneck[span.last] - reach
            span.first = span.lo = span.last
            while (span.first > 1
                   and bottleneck[span.first - 1] >= bottleneck[span.last] - WINDOW):
                span.first -= 1
            span.lo = span.first
            while (span.lo > 1
                   and bottleneck[span.lo - 1] >= bottleneck[span.first] - MARGIN):
                span.lo -= 1
            span.hi = span.last
            while (span.hi < n - 1
                   and bottleneck[span.hi + 1] <= bottleneck[span.last] + MARGIN):
                span.hi += 1
            status = one_span(&g, &span, &z, interruptible)
            if status != TREES_OK:
                return status
            span.last = span.first - 1
        log_z[0] = z
        if out != NULL:
            look_for_interrupts(interruptible)
            join_triangles(out, n)
        return TREES_OK
    finally:
        free(edges)
        free(places)
        free(values)
        free(both)
        free(g.R)
        free(g.A)


# -- the choice of windows -------------------------------------------------------------
cdef int as_windows(
    const double* log_weight, Py_ssize_t n, double* W, double* log_z, double* out,
    bint log_resistances, bint interruptible) except -1 nogil:
    """One window or several; out as for `many_windows`."""
    cdef double least, largest, shift
    cdef Py_ssize_t i, j
    cdef double* S
    cdef int status
    weight_range(log_weight, n, &least, &largest)
    if largest == -INFINITY:
        return TREES_DISCONNECTED
    S = <double*>malloc(n * sizeof(double))
    if S == NULL:
        return TREES_NO_MEMORY
    try:
        if largest - least > WINDOW:
            return many_windows(
                log_weight, n, W, S, log_z, out, log_resistances, interruptible)
        shift = largest
        if least < largest + FLOOR + MARGIN:
            shift = largest - (CEILING - MARGIN)
        status = one_window(log_weight, n, shift, W, S, log_z, out,
                            NULL if log_resistances else out, interruptible)
        if log_resistances and status == TREES_OK:
            for i in range(n):
                for j in range(i):
                    out[i * n + j] = log(out[i * n + j]) - shift
        return status
    finally:
        free(S)


cdef int star_mesh(
    const double* log_weight, Py_ssize_t n, double* W, double* log_z, double* prob,
    bint interruptible) except -1 nogil:
    return as_windows(log_weight, n, W, log_z, prob, False, interruptible)


cdef int star_mesh_log_resistances(
    const double* log_weight, Py_ssize_t n, double* W, double* log_R,
    bint interruptible) except -1 nogil:
    cdef double log_z
    return as_windows(log_weight, n, W, &log_z, log_R, True, interruptible)


cdef int star_mesh_resistances(
    const double* log_weight, Py_ssize_t n, double* W, double* R, double* shift,
    bint interruptible) except -1 nogil:
    cdef double least, largest, log_z
    cdef double* S
    cdef int status
    weight_range(log_weight, n, &least, &largest)
    if largest == -INFINITY:
        return TREES_DISCONNECTED
    # weights in [exp(-290), exp(340)], so that weight * R stays below exp(630) n
    if largest - least > CEILING - MARGIN:
        return TREES_ILL_CONDITIONED
    shift[0] = largest
    if least < largest + FLOOR + MARGIN:
        shift[0] = least - FLOOR - MARGIN
    S = <double*>malloc(n * sizeof(double))
    if S == NULL:
        return TREES_NO_MEMORY
    try:
        status = one_window(
            log_weight, n, shift[0], W, S, &log_z, R, NULL, interruptible)
        if status == TREES_OK:
            mirror(R, n)
        return status
    finally:
        free(S)
