"""Sums over pairs of categorical columns, callable without the GIL.

Columns, codes, offsets and groups are those of `column_groups`; make the groups and the
combined codes there, once.  Pairs of groups g <= h have the numbers
h (h + 1) / 2 + g, which may be shared out among threads; table is scratch of
groups.largest^2 doubles, one a thread.
"""

from maxent._core.trees.column_groups cimport Groups

# counts (D, D) += the weighted counts (1 a row where weight is NULL) of all pairs of
# columns of the index-th pair of groups, both triangles
cdef void count_pair(
    const Groups* groups, const Py_ssize_t* offset, const unsigned short* combined,
    const double* weight, Py_ssize_t T, Py_ssize_t index, double* table,
    double* counts) noexcept nogil

# out[start:stop] = sum over columns u <= v of M (D, D) at the letters of u and v
cdef void score_rows(
    const Groups* groups, const Py_ssize_t* offset, const unsigned short* combined,
    Py_ssize_t T, Py_ssize_t start, Py_ssize_t stop, const double* M, double* table,
    double* out) noexcept nogil

# mutual information in nats of a table (ru, rv) of counts, each with an equal share of
# ess added; row (ru,) and column (rv,) are scratch
cdef double table_information(
    const double* C, Py_ssize_t ru, Py_ssize_t rv, double ess,
    double* row, double* column) noexcept nogil
