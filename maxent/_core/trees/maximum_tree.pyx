"""Maximum spanning trees of dense graphs, and the order in which they join the nodes.

The edges of a maximum spanning tree, taken from the strongest to the weakest, merge
parts of the graph; the weight at which two nodes come together is the bottleneck
between them, the best that the weakest edge of a path can be (Kruskal 1956; Prim 1957).
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy

from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_NO_MEMORY,
    TREES_OK,
    mirror,
)


cdef int maximum_spanning_tree(
    const double* weight, Py_ssize_t n, TreeEdge* edges) noexcept nogil:
    # the nodes that are not in the tree, without gaps
    cdef double* best = <double*>malloc(n * sizeof(double))
    cdef Py_ssize_t* left = <Py_ssize_t*>malloc(2 * n * sizeof(Py_ssize_t))
    cdef Py_ssize_t* at = left + n
    cdef Py_ssize_t i, v = 0, next_one, count = n - 1
    cdef double value, top
    cdef const double* row
    cdef int status = TREES_OK
    if best == NULL or left == NULL:
        free(best)
        free(left)
        return TREES_NO_MEMORY
    for i in range(count):
        left[i] = i + 1
        best[i] = -INFINITY
        at[i] = 0
    while count > 0:
        row = weight + v * n
        next_one = 0
        top = -INFINITY
        for i in range(count):
            value = row[left[i]]
            if value > best[i]:
                best[i] = value
                at[i] = v
            if best[i] > top:
                top = best[i]
                next_one = i
        if top == -INFINITY:
            status = TREES_DISCONNECTED
            break
        v = left[next_one]
        edges[n - 1 - count].weight = top
        edges[n - 1 - count].u = at[next_one]
        edges[n - 1 - count].v = v
        count -= 1
        left[next_one] = left[count]
        best[next_one] = best[count]
        at[next_one] = at[count]
    free(best)
    free(left)
    return status


cdef int stronger(const void* a, const void* b) noexcept nogil:
    cdef const TreeEdge* x = <const TreeEdge*>a
    cdef const TreeEdge* y = <const TreeEdge*>b
    if x.weight != y.weight:
        return -1 if x.weight > y.weight else 1
    if x.v != y.v:                # each node joins once
        return -1 if x.v < y.v else 1
    return 0


cdef int merge_order(
    TreeEdge* edges, Py_ssize_t n, Py_ssize_t* order, Py_ssize_t* partner,
    double* bottleneck) noexcept nogil:
    cdef Py_ssize_t* up = <Py_ssize_t*>malloc(3 * n * sizeof(Py_ssize_t))
    cdef Py_ssize_t* size = up + n
    cdef Py_ssize_t* place = up + 2 * n
    cdef Py_ssize_t k, a, b
    if up == NULL:
        return TREES_NO_MEMORY
    qsort(edges, n - 1, sizeof(TreeEdge), &stronger)
    for k in range(n):
        up[k] = k
        size[k] = 1
    for k in range(n - 1, 0, -1):
        a = part_of(up, edges[n - 1 - k].u)
        b = part_of(up, edges[n - 1 - k].v)
        if size[a] < size[b]:
            a, b = b, a
        up[b] = a
        size[a] += size[b]
        order[k] = b
        place[b] = k
        partner[k] = a            # a node; its position is known when it merges
        bottleneck[k] = edges[n - 1 - k].weight
    a = part_of(up, 0)
    order[0] = a
    place[a] = 0
    partner[0] = 0
    bottleneck[0] = -INFINITY
    for k in range(1, n):
        partner[k] = place[partner[k]]
    free(up)
    return TREES_OK


def maximum_tree(
    const double[:, ::1] weight,       # IN  (n, n), n >= 2, read below the diagonal
    Py_ssize_t[:, ::1] edges,          # OUT (n - 1, 2)
):
    """Edges u < v of a maximum spanning tree; the status."""
    cdef Py_ssize_t n = weight.shape[0], k
    cdef TreeEdge* tree = <TreeEdge*>malloc(n * sizeof(TreeEdge))
    cdef double* both = <double*>malloc(n * n * sizeof(double))
    cdef int status = TREES_NO_MEMORY
    if tree != NULL and both != NULL:
        with nogil:
            memcpy(both, &weight[0, 0], n * n * sizeof(double))
            mirror(both, n)
            status = maximum_spanning_tree(both, n, tree)
            if status == TREES_OK:
                for k in range(n - 1):
                    edges[k, 0] = min(tree[k].u, tree[k].v)
                    edges[k, 1] = max(tree[k].u, tree[k].v)
    free(tree)
    free(both)
    return status
