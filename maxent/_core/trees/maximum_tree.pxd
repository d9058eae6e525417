"""Maximum spanning trees, and the order in which they join the nodes."""

cdef struct TreeEdge:
    double weight
    Py_ssize_t u
    Py_ssize_t v

# the part that v belongs to in a forest of pointers; shortens the way for the next time
cdef inline Py_ssize_t part_of(Py_ssize_t* up, Py_ssize_t v) noexcept nogil:
    while up[v] != v:
        up[v] = up[up[v]]
        v = up[v]
    return v

# edges (n - 1,) of the tree with the largest sum of weights, by Prim's method; v joins
# at u; weight (n, n) has both triangles
cdef int maximum_spanning_tree(
    const double* weight, Py_ssize_t n, TreeEdge* edges) noexcept nogil

# positions of the nodes such that the strongest merger has the last one
cdef int merge_order(
    TreeEdge* edges,            # IN/OUT (n - 1,) a spanning tree, sorted afterwards
    Py_ssize_t n,
    Py_ssize_t* order,          # OUT (n,) node at each position
    Py_ssize_t* partner,        # OUT (n,) position < k that position k > 0 merges into
    double* bottleneck,         # OUT (n,) weight at which it does, rising with k
) noexcept nogil
