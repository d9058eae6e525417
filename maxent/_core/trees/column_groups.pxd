"""Groups of neighbouring categorical columns, callable without the GIL.

A table of pairs is D x D, D the number of letters of all columns; column v owns the
rows and columns offset[v] .. offset[v + 1].  Codes are column by column:
code[v * T + t] is the letter of column v in row t.
"""

cdef struct Groups:
    # Neighbouring columns read as one column of all combinations of their letters.
    Py_ssize_t n                # columns
    Py_ssize_t count            # groups
    Py_ssize_t largest          # combinations of the largest group
    Py_ssize_t* first           # (count + 1,) columns of a group
    Py_ssize_t* size            # (count,) combinations
    Py_ssize_t* at              # (n,) where the letters of a column start in `letter`
    unsigned short* letter      # letter[at[v] + x]: letter of column v in combination x

# 0, or -1 without memory; a group has at most `most` combinations or one column
cdef int group_columns(
    const Py_ssize_t* offset, Py_ssize_t n, Py_ssize_t most, Groups* groups
) noexcept nogil
cdef void free_groups(Groups* groups) noexcept nogil

# combined[g * T + t] for all rows
cdef void combine_codes(
    const Groups* groups, const Py_ssize_t* offset, const unsigned short* code,
    Py_ssize_t T, unsigned short* combined) noexcept nogil

# table[g[t] * size_h + h[t]] += weight[t] (1 where weight is NULL)
cdef void scatter_pair(
    const unsigned short* g, const unsigned short* h, const double* weight,
    Py_ssize_t T, Py_ssize_t size_h, double* table) noexcept nogil

# out[t] += table[g[t] * size_h + h[t]]
cdef void gather_pair(
    const unsigned short* g, const unsigned short* h, const double* table,
    Py_ssize_t T, Py_ssize_t size_h, double* out) noexcept nogil

# table of two groups, cleared first
cdef void count_groups(
    const unsigned short* g, const unsigned short* h, const double* weight,
    Py_ssize_t T, Py_ssize_t size_g, Py_ssize_t size_h, double* table) noexcept nogil

# out[i * ld + j] += the entries of the combinations with letters i and j
cdef void take_apart(
    const double* table, Py_ssize_t size_g, Py_ssize_t size_h,
    const unsigned short* letter_u, const unsigned short* letter_v, Py_ssize_t ld,
    double* out) noexcept nogil

# table (size_g, size_h): sums of M (D, D) over the pairs u <= v of columns of the two
# groups g <= h; for g = h on the diagonal
cdef void put_together(
    const double* M, Py_ssize_t D, const Py_ssize_t* offset, const Groups* groups,
    Py_ssize_t g, Py_ssize_t h, double* table) noexcept nogil
