# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Edge probabilities of dependency trees on many small data sets, without the GIL.

An example of a package of its own that uses the compiled functions of maxent: counts
over pairs of categorical columns, and sums over all spanning trees.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from maxent.cython.column_groups cimport (
    Groups,
    combine_codes,
    free_groups,
    group_columns,
)
from maxent.cython.laplacian cimport TREES_NO_MEMORY, TREES_STAR_MESH, tree_partition
from maxent.cython.tables cimport count_pair, table_information


cdef int one_data_set(
    const Groups* groups, const Py_ssize_t* offset, const unsigned short* code,
    Py_ssize_t T, double* log_z, double* prob) except -1 nogil:
    """The weight of an edge is exp(rows times mutual information); a TreeStatus."""
    cdef Py_ssize_t n = groups.n, D = offset[groups.n], u, v, i, j, ru, rv, k
    cdef Py_ssize_t pairs = groups.count * (groups.count + 1) // 2
    cdef int status = TREES_NO_MEMORY
    cdef unsigned short* combined = <unsigned short*>malloc(
        groups.count * T * sizeof(unsigned short))
    cdef double* scratch = <double*>malloc(
        groups.largest * groups.largest * sizeof(double))
    cdef double* counts = <double*>malloc(D * D * sizeof(double))
    cdef double* pair = <double*>malloc((D * D + 2 * D) * sizeof(double))
    cdef double* weight = <double*>malloc(n * n * sizeof(double))
    try:
        if (combined == NULL or scratch == NULL or counts == NULL or pair == NULL
                or weight == NULL):
            return TREES_NO_MEMORY
        combine_codes(groups, offset, code, T, combined)
        for k in range(D * D):
            counts[k] = 0.
        for k in range(pairs):
            count_pair(groups, offset, combined, NULL, T, k, scratch, counts)
        for u in range(n):
            ru = offset[u + 1] - offset[u]
            weight[u * n + u] = -INFINITY
            for v in range(u):                  # what tree_partition reads
                rv = offset[v + 1] - offset[v]
                for i in range(ru):
                    for j in range(rv):
                        pair[i * rv + j] = counts[(offset[u] + i) * D + offset[v] + j]
                weight[u * n + v] = T * table_information(
                    pair, ru, rv, 0., pair + ru * rv, pair + ru * rv + ru)
        status = tree_partition(weight, n, TREES_STAR_MESH, log_z, prob, False)
        return status
    finally:
        free(combined)
        free(scratch)
        free(counts)
        free(pair)
        free(weight)


def edge_probabilities(const unsigned short[:, :, ::1] codes, Py_ssize_t letters):
    """log Z (b,) and edge probabilities (b, n, n) of b data sets.

    codes is (b, n, T), column by column, with entries 0 .. letters - 1.
    """
    cdef Py_ssize_t b = codes.shape[0], n = codes.shape[1], T = codes.shape[2], k
    cdef Groups groups
    cdef const Py_ssize_t[::1] offset = np.arange(0, letters * n + 1, letters)
    log_zs, probs = np.zeros(b), np.zeros((b, n, n))
    cdef double[::1] log_z = log_zs
    cdef double[:, :, ::1] prob = probs
    cdef int failed = 0
    if group_columns(&offset[0], n, 16, &groups) != 0:
        raise MemoryError
    try:
        with nogil:
            for k in range(b):
                if one_data_set(&groups, &offset[0], &codes[k, 0, 0], T, &log_z[k],
                                &prob[k, 0, 0]) != 0:
                    failed += 1
    finally:
        free_groups(&groups)
    if failed:
        raise RuntimeError(f"{failed} of {b} data sets failed")
    return log_zs, probs
