"""Random spanning trees.

Wilson's walk joins the nodes one by one by loop-erased walks (Wilson 1996).  Where
two nodes are held together by a huge weight the walk is trapped between them; then
trees come from the star-mesh elimination instead, played backwards.  A tree of the
graph without node k is given, and each of its edges stems either from an edge that was
there before or from a pair of edges at k.  Those of the second kind are taken away;
k is joined to each part that is left, at a node drawn by weight.  This is exact:
the trees over the parts have the total prod_c x_c / S_k under the weights x_c x_d / S_k
of pairs, and joining k to every part has prod_c x_c, x_c the weight from k to part c
(Cayley's formula).  A tree costs O(n^2) after one elimination.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy

from maxent._core.trees.maximum_tree cimport part_of
from maxent._core.trees.star_mesh_elimination cimport log_eliminate
from maxent._core.trees.triangles cimport (
    TREES_NO_MEMORY,
    TREES_OK,
    look_for_interrupts,
    mirror,
)

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept

cdef enum:
    ROWS = 64               # between two checks for Ctrl-C

cdef double FAR = 40.       # exp(-40) of a sum is below its rounding error


# -- random numbers --------------------------------------------------------------------
cdef struct Random:
    # xoshiro256** of Blackman & Vigna (2021); every tree has a generator of its own
    uint64_t a
    uint64_t b
    uint64_t c
    uint64_t d


cdef uint64_t mixed(uint64_t x) noexcept nogil:
    """Finaliser of splitmix64: neighbouring integers become unrelated ones."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef Random random_of(uint64_t seed, Py_ssize_t tree) noexcept nogil:
    cdef Random r
    cdef uint64_t step = <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t x = mixed(seed + step) ^ mixed((<uint64_t>tree + 1) * step)
    r.a = mixed(x + step)
    r.b = mixed(x + 2 * step)
    r.c = mixed(x + 3 * step)
    r.d = mixed(x + 4 * step)
    return r


cdef double uniform(Random* r) noexcept nogil:
    """In [0, 1), 53 bits."""
    cdef uint64_t x = r.b * 5, t = r.b << 17
    x = ((x << 7) | (x >> 57)) * 9
    r.c ^= r.a
    r.d ^= r.b
    r.b ^= r.c
    r.a ^= r.d
    r.c ^= t
    r.d = (r.d << 45) | (r.d >> 19)
    return <double>(x >> 11) * 1.1102230246251565e-16


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*>a)[0], y = (<const int64_t*>b)[0]
    return (x > y) - (x < y)


cdef void write_edges(
    int64_t* codes, Py_ssize_t n, Py_ssize_t* out) noexcept nogil:
    """Edges u * n + v, u < v, sorted, as pairs."""
    cdef Py_ssize_t k
    qsort(codes, n - 1, sizeof(int64_t), &ascending)
    for k in range(n - 1):
        out[2 * k] = codes[k] // n
        out[2 * k + 1] = codes[k] % n


# -- Wilson's walk ---------------------------------------------------------------------
cdef int cumulative_rows(
    const double* log_weight, Py_ssize_t n, double* cdf) except -1 nogil:
    """Distribution functions of the next node of the walk."""
    cdef Py_ssize_t i, j
    cdef double top, x
    cdef double* row
    cdef const double* own
    for i in range(n):
        own = log_weight + i * n
        row = cdf + i * n
        top = -INFINITY
        for j in range(n):
            top = own[j] if j != i and own[j] > top else top
        mx_exp_shifted(own, top, 0., n, row)
        row[i] = 0.
        x = 0.
        for j in range(n):
            x += row[j]
            row[j] = x
        for j in range(n):
            row[j] /= x
        row[n - 1] = 1.
        if i % ROWS == 0:
            look_for_interrupts(True)
    return 0


cdef void walk_tree(
    const double* cdf, Py_ssize_t n, Py_ssize_t root, Random* r, Py_ssize_t* towards,
    signed char* joined, int64_t* codes, Py_ssize_t* out) noexcept nogil:
    cdef Py_ssize_t v, u, lo, hi, mid, k = 0
    cdef double x
    cdef const double* row
    for v in range(n):
        joined[v] = 0
    joined[root] = 1
    for v in range(n):
        u = v
        while not joined[u]:      # the last exit of each node erases the loops
            x = uniform(r)
            row = cdf + u * n
            lo = 0
            hi = n - 1
            while lo < hi:        # first node whose value exceeds x
                mid = (lo + hi) // 2
                if row[mid] > x:
                    hi = mid
                else:
                    lo = mid + 1
            towards[u] = lo
            u = lo
        u = v
        while not joined[u]:
            joined[u] = 1
            lo = towards[u]
            codes[k] = u * n + lo if u < lo else lo * n + u
            k += 1
            u = lo
    write_edges(codes, n, out)


# -- the elimination backwards ---------------------------------------------------------
cdef struct Workshop:
    Py_ssize_t* u               # (n,) edges of the tree so far
    Py_ssize_t* v
    Py_ssize_t* source          # (n,) node whose pair of edges it stems from, or 0
    Py_ssize_t* up              # (n,) parts, as a forest of pointers
    Py_ssize_t* choice          # (n,) node drawn in a part
    double* top                 # (n,) largest log weight from k to a part
    double* mass                # (n,) weight from k to a part, less what was passed
    int64_t* codes              # (n,)


cdef Py_ssize_t draw_source(
    const double* log_weight, const double* L, const double* s, Py_ssize_t n,
    Py_ssize_t k, Py_ssize_t a, Random* r) noexcept nogil:
    """Origin of edge (k, a), a < k: 0 for the edge itself, or a later node."""
    cdef double direct = log_weight[k * n + a], top = direct, sum = 0., t, x
    cdef Py_ssize_t m, source = 0
    for m in range(k + 1, n):     # the upper triangle of L mirrors the lower one
        t = L[k * n + m] + L[a * n + m] - s[m]
        top = t if t > top else top
    sum = exp(direct - top)
    for m in range(k + 1, n):
        t = L[k * n + m] + L[a * n + m] - s[m] - top
        if t > -FAR:
            sum += exp(t)
    x = uniform(r) * sum - exp(direct - top)
    if x < 0:
        return 0
    for m in range(k + 1, n):
        t = L[k * n + m] + L[a * n + m] - s[m] - top
        if t > -FAR:
            source = m
            x -= exp(t)
            if x < 0:
                break
    return source


cdef void unfold_tree(
    const double* log_weight, const double* L, const double* s, Py_ssize_t n,
    Random* r, Workshop* w, Py_ssize_t* out) noexcept nogil:
    cdef Py_ssize_t k, e, a, c, edges = 0, kept
    cdef const double* row
    for k in range(1, n):
        row = L + k * n
        kept = 0
        for e in range(edges):
            if w.source[e] != k:
                w.u[kept] = w.u[e]
                w.v[kept] = w.v[e]
                w.source[kept] = w.source[e]
                kept += 1
        if kept == edges:         # one part
            for a in range(k):
                w.up[a] = 0
        else:
            for a in range(k):
                w.up[a] = a
            for e in range(kept):
                w.up[part_of(w.up, w.u[e])] = part_of(w.up, w.v[e])
            for a in range(k):
                w.up[a] = part_of(w.up, a)
        for a in range(k):
            w.top[a] = -INFINITY
            w.mass[a] = 0.
            w.choice[a] = -1
        for a in range(k):
            c = w.up[a]
            w.top[c] = row[a] if row[a] > w.top[c] else w.top[c]
        for a in range(k):
            c = w.up[a]
            if row[a] - w.top[c] > -FAR:
                w.mass[c] += exp(row[a] - w.top[c])
        for c in range(k):
            if w.up[c] == c:
                w.mass[c] *= uniform(r)
        for a in range(k):
            c = w.up[a]
            if w.mass[c] >= 0 and row[a] - w.top[c] > -FAR:
                w.choice[c] = a
                w.mass[c] -= exp(row[a] - w.top[c])
        edges = kept
        for c in range(k):
            if w.up[c] == c:
                a = w.choice[c]
                w.u[edges] = a
                w.v[edges] = k
                w.source[edges] = draw_source(log_weight, L, s, n, k, a, r)
                edges += 1
    for e in range(n - 1):
        w.codes[e] = w.u[e] * n + w.v[e]
    write_edges(w.codes, n, out)


# -- many trees ------------------------------------------------------------------------
cdef void place_workshop(char* memory, Py_ssize_t n, Workshop* w) noexcept nogil:
    """Eight arrays of n eight-byte values."""
    cdef Py_ssize_t* words = <Py_ssize_t*>memory
    w.u = words
    w.v = words + n
    w.source = words + 2 * n
    w.up = words + 3 * n
    w.choice = words + 4 * n
    w.top = <double*>(words + 5 * n)
    w.mass = <double*>(words + 6 * n)
    w.codes = <int64_t*>(words + 7 * n)


cdef void some_trees(
    bint walk, const double* log_weight, const double* table, const double* s,
    Py_ssize_t n, Py_ssize_t root, uint64_t seed, Py_ssize_t first, Py_ssize_t last,
    char* memory, Py_ssize_t* out) noexcept nogil:
    cdef Workshop w
    cdef Random r
    cdef Py_ssize_t t
    place_workshop(memory, n, &w)
    for t in range(first, last):
        r = random_of(seed, t)
        if walk:
            walk_tree(table, n, root, &r, w.u, <signed char*>w.v, w.codes,
                      out + 2 * t * (n - 1))
        else:
            unfold_tree(log_weight, table, s, n, &r, &w, out + 2 * t * (n - 1))


def sample(
    const double[:, ::1] log_weight,   # IN  (n, n), n >= 2, connected
    Py_ssize_t root,                   # of the walk; < 0: by the elimination
    double steps,                      # elementary steps that a tree takes
    uint64_t seed,
    int n_threads,
    Py_ssize_t[:, :, ::1] out,         # OUT (size, n - 1, 2)
):
    """Independent random spanning trees; tree t depends on the seed and t alone."""
    cdef Py_ssize_t n = log_weight.shape[0], size = out.shape[0]
    cdef Py_ssize_t c, first, stop, chunks
    cdef Py_ssize_t block = max(<Py_ssize_t>1, <Py_ssize_t>(1e6 / (steps + 20. * n)))
    cdef Py_ssize_t memory = 8 * n * sizeof(int64_t)
    cdef int status = TREES_OK
    cdef double* table = <double*>malloc((n + 1) * n * sizeof(double))
    cdef char* scratch = <char*>malloc(n_threads * memory)
    cdef double* s = table + n * n
    try:
        if table == NULL or scratch == NULL:
            return TREES_NO_MEMORY
        with nogil:
            if root >= 0:
                cumulative_rows(&log_weight[0, 0], n, table)
            else:
                memcpy(table, &log_weight[0, 0], n * n * sizeof(double))
                status = log_eliminate(table, s, n, True)
                mirror(table, n)
        if status != TREES_OK:
            return status
        chunks = (size + block - 1) // block
        for first in range(0, chunks, n_threads):
            stop = min(first + n_threads, chunks)
            for c in prange(first, stop, nogil=True, schedule="static", chunksize=1,
                            num_threads=n_threads):
                some_trees(
                    root >= 0, &log_weight[0, 0], table, s, n, root, seed, c * block,
                    min(size, (c + 1) * block), scratch + (c - first) * memory,
                    &out[0, 0, 0])
            PyErr_CheckSignals()
        return TREES_OK
    finally:
        free(table)
        free(scratch)
