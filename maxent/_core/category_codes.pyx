"""Passes over blocks of rows of integers that stand for categories.

Blocks are short and without the interpreter lock: callers share them out to threads.
"""

cdef enum:
    ROWS = 32                   # read together, so that each writes a part of a line


def count_values(
    const Py_ssize_t[:, ::1] X,       # IN     (n, d) blocks of rows
    const Py_ssize_t[::1] least,      # IN     (d,) smallest values, near zero
    const Py_ssize_t[::1] first,      # IN     (d + 1,) where their counts start
    Py_ssize_t[::1] counts,           # IN/OUT (first[d],)
):
    """counts[first[k] + X[t, k] - least[k]] += 1 where there is such a count."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], t, k, size
    if least.shape[0] != d or first.shape[0] != d + 1 or counts.shape[0] < first[d]:
        raise ValueError("columns and counts do not fit")
    with nogil:
        for t in range(n):
            for k in range(d):
                size = first[k + 1] - first[k]
                if least[k] <= X[t, k] < least[k] + size:
                    counts[first[k] + (X[t, k] - least[k])] += 1


def look_up(
    const Py_ssize_t[:, ::1] X,       # IN   (n, d) block of rows
    const Py_ssize_t[::1] least,      # IN   (d,) smallest values in the table, near 0
    const Py_ssize_t[::1] first,      # IN   (d + 1,) where the columns start in it
    const Py_ssize_t[::1] table,      # IN   (first[d],)
    Py_ssize_t[:, :] codes,           # OUT  (n, d)
):
    """codes[t, k] = table[first[k] + X[t, k] - least[k]], -1 outside."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], t, k, size
    if (least.shape[0] != d or first.shape[0] != d + 1 or table.shape[0] < first[d]
            or codes.shape[0] != n or codes.shape[1] != d):
        raise ValueError("columns and tables do not fit")
    with nogil:
        for t in range(n):
            for k in range(d):
                size = first[k + 1] - first[k]
                if least[k] <= X[t, k] < least[k] + size:
                    codes[t, k] = table[first[k] + (X[t, k] - least[k])]
                else:
                    codes[t, k] = -1


def transpose_codes(
    const Py_ssize_t[:, ::1] X,       # IN   (n, d) block of rows
    const Py_ssize_t[::1] sizes,      # IN   (d,) categories of the columns, < 65536
    unsigned short[:, :] out,         # OUT  (d, n), rows contiguous
):
    """out[k, t] = X[t, k], or sizes[k] where that is -1.

    Returns
    -------
    wrong : int
        First t d + k at which X is none of -1 .. sizes[k] - 1, or -1.
    missing : int
        Whether some are -1.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], t, k, code
    cdef Py_ssize_t block, start, stop
    cdef Py_ssize_t wrong = -1
    cdef bint missing = False
    if sizes.shape[0] != d or out.shape[0] != d or out.shape[1] != n:
        raise ValueError("columns and codes do not fit")
    if n and d and out.strides[1] != sizeof(unsigned short):
        raise ValueError("out needs contiguous rows")
    with nogil:
        for block in range((n + ROWS - 1) // ROWS):
            start, stop = block * ROWS, min((block + 1) * ROWS, n)
            for k in range(d):
                for t in range(start, stop):
                    code = X[t, k]
                    if not -1 <= code < sizes[k] and (wrong < 0 or t * d + k < wrong):
                        wrong = t * d + k
                    missing |= code < 0
                    out[k, t] = <unsigned short>(code if code >= 0 else sizes[k])
    return wrong, missing
