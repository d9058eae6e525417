"""Neighbouring categorical columns read as one column of all combinations of letters.

Two columns of four letters, or four of two, make one column of sixteen.  One look-up
then serves 4 to 16 pairs of columns, and the small tables of the groups are taken apart
into (or put together from) those of the pairs.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memset


cdef int group_columns(
    const Py_ssize_t* offset, Py_ssize_t n, Py_ssize_t most, Groups* groups
) noexcept nogil:
    cdef Py_ssize_t v, w, c, x, g = 0, size = 1, letters, total, place
    groups.n = n
    groups.letter = NULL
    groups.first = <Py_ssize_t*>malloc((3 * n + 1) * sizeof(Py_ssize_t))
    if groups.first == NULL:
        return -1
    groups.size = groups.first + n + 1
    groups.at = groups.size + n
    groups.first[0] = 0
    for v in range(n):
        letters = offset[v + 1] - offset[v]
        if v > groups.first[g]:
            if size > most // letters:
                groups.size[g] = size
                g += 1
                groups.first[g] = v
                size = 1
        size *= letters
    groups.size[g] = size
    groups.count = g + 1
    groups.first[g + 1] = n
    groups.largest = 0
    total = 0
    for c in range(groups.count):
        groups.largest = max(groups.largest, groups.size[c])
        for v in range(groups.first[c], groups.first[c + 1]):
            groups.at[v] = total
            total += groups.size[c]
    groups.letter = <unsigned short*>malloc(total * sizeof(unsigned short))
    if groups.letter == NULL:
        free_groups(groups)
        return -1
    for c in range(groups.count):
        for v in range(groups.first[c], groups.first[c + 1]):
            place = 1
            for w in range(v + 1, groups.first[c + 1]):
                place *= offset[w + 1] - offset[w]
            for x in range(groups.size[c]):
                groups.letter[groups.at[v] + x] = <unsigned short>(
                    x // place % (offset[v + 1] - offset[v]))
    return 0


cdef void free_groups(Groups* groups) noexcept nogil:
    free(groups.first)
    free(groups.letter)
    groups.first = NULL
    groups.letter = NULL


cdef void combine_codes(
    const Groups* groups, const Py_ssize_t* offset, const unsigned short* code,
    Py_ssize_t T, unsigned short* combined) noexcept nogil:
    cdef Py_ssize_t c, v, t
    cdef unsigned short letters
    cdef unsigned short* to
    cdef const unsigned short* x
    for c in range(groups.count):
        to = combined + c * T
        for v in range(groups.first[c], groups.first[c + 1]):
            x = code + v * T
            if v == groups.first[c]:
                for t in range(T):
                    to[t] = x[t]
            else:
                letters = <unsigned short>(offset[v + 1] - offset[v])
                for t in range(T):
                    to[t] = to[t] * letters + x[t]


cdef void scatter_pair(
    const unsigned short* g, const unsigned short* h, const double* weight,
    Py_ssize_t T, Py_ssize_t size_h, double* table) noexcept nogil:
    cdef Py_ssize_t t
    if weight == NULL:
        for t in range(T):
            table[g[t] * size_h + h[t]] += 1.
    else:
        for t in range(T):
            table[g[t] * size_h + h[t]] += weight[t]


cdef void gather_pair(
    const unsigned short* g, const unsigned short* h, const double* table,
    Py_ssize_t T, Py_ssize_t size_h, double* out) noexcept nogil:
    cdef Py_ssize_t t
    for t in range(T):
        out[t] += table[g[t] * size_h + h[t]]


cdef void count_groups(
    const unsigned short* g, const unsigned short* h, const double* weight,
    Py_ssize_t T, Py_ssize_t size_g, Py_ssize_t size_h, double* table) noexcept nogil:
    """Table of two groups, cleared first."""
    memset(table, 0, size_g * size_h * sizeof(double))
    scatter_pair(g, h, weight, T, size_h, table)


cdef void take_apart(
    const double* table, Py_ssize_t size_g, Py_ssize_t size_h,
    const unsigned short* letter_u, const unsigned short* letter_v, Py_ssize_t ld,
    double* out) noexcept nogil:
    """out[i * ld + j] += the entries of the combinations with letters i and j."""
    cdef Py_ssize_t x, y
    cdef double* row
    for x in range(size_g):
        row = out + letter_u[x] * ld
        for y in range(size_h):
            row[letter_v[y]] += table[x * size_h + y]


cdef void put_together(
    const double* M, Py_ssize_t D, const Py_ssize_t* offset, const Groups* groups,
    Py_ssize_t g, Py_ssize_t h, double* table) noexcept nogil:
    """Scores of all combinations of two groups; for g = h on the diagonal."""
    cdef Py_ssize_t u, v, x, y, size_g = groups.size[g], size_h = groups.size[h]
    cdef const unsigned short* a
    cdef const unsigned short* b
    cdef const double* row
    cdef double sum
    if g == h:
        for x in range(size_g):
            sum = 0.
            for u in range(groups.first[g], groups.first[g + 1]):
                row = M + (offset[u] + groups.letter[groups.at[u] + x]) * D
                for v in range(u, groups.first[g + 1]):
                    sum += row[offset[v] + groups.letter[groups.at[v] + x]]
            table[x * size_h + x] = sum
        return
    for u in range(groups.first[g], groups.first[g + 1]):
        a = groups.letter + groups.at[u]
        for v in range(groups.first[h], groups.first[h + 1]):
            b = groups.letter + groups.at[v]
            for x in range(size_g):
                row = M + (offset[u] + a[x]) * D + offset[v]
                if u == groups.first[g] and v == groups.first[h]:
                    for y in range(size_h):
                        table[x * size_h + y] = row[b[y]]
                else:
                    for y in range(size_h):
                        table[x * size_h + y] += row[b[y]]
