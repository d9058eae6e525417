"""Decisions of one-against-one machines: votes of the pairs, and their scores."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.threads cimport team

cdef extern from "machines/pair_loops.h" nogil:
    enum:
        MX_PAIR_ROWS
    int mx_pair_decisions(
        const double* values, const Py_ssize_t* first, Py_ssize_t n_classes,
        const double* coef, const double* bias, double* votes, double* sums,
        double* scores) noexcept

cdef enum:
    WORK = 1000000000           # multiplications between two checks for signals

cdef double NS = 0.05           # of one of them


cdef int decide(
    const double[:, :] values, const Py_ssize_t* first, Py_ssize_t m,
    const double* coef, const double* bias, Py_ssize_t start, double[:, ::1] votes,
    double[:, ::1] scores
) noexcept nogil:
    """Rows start, ...; 0 unless all scores are finite, -1 without memory."""
    cdef Py_ssize_t rows = min(values.shape[0] - start, <Py_ssize_t>MX_PAIR_ROWS)
    cdef Py_ssize_t columns = values.shape[1], pairs = m * (m - 1) // 2, r, c, k
    cdef Py_ssize_t room = columns + 2 * m + (pairs if scores is not None else 0)
    cdef double* block = <double*>malloc((room * MX_PAIR_ROWS + 1) * sizeof(double))
    cdef double* counted = block + columns * MX_PAIR_ROWS
    cdef double* sums = counted + m * MX_PAIR_ROWS
    cdef double* out = NULL
    cdef double x
    cdef int finite
    if block == NULL:
        return -1
    if scores is not None:
        out = sums + m * MX_PAIR_ROWS
    memset(block, 0, room * MX_PAIR_ROWS * sizeof(double))
    for r in range(rows):
        for c in range(columns):
            block[c * MX_PAIR_ROWS + r] = values[start + r, c]
    finite = mx_pair_decisions(
        block, first, m, coef, bias, counted, sums, out)
    for r in range(rows):
        for c in range(m):
            x = sums[c * MX_PAIR_ROWS + r]
            votes[start + r, c] = counted[c * MX_PAIR_ROWS + r] + x / (
                3. * (fabs(x) + 1.))
        if out != NULL:
            for k in range(pairs):
                scores[start + r, k] = out[k * MX_PAIR_ROWS + r]
    free(block)
    return finite


def pair_votes(
    const double[:, :] values,      # IN   (n, columns)
    const Py_ssize_t[::1] first,    # IN   (m + 1,) columns of each class
    const double[:, ::1] coef,      # IN   (m - 1, columns) or None
    const double[::1] bias,         # IN   (n_pairs,)
    double[:, ::1] votes,           # OUT  (n, m)
    double[:, ::1] scores=None,     # OUT  (n, n_pairs)
    int n_threads=1,
):
    """Votes for each class; True if all scores are finite.

    A score is the sum of a bias and of the values of two classes, each by its row of
    coefficients against the other; without coefficients, of a bias and a value.
    Between classes of equally many votes the sums of their scores, brought into
    (-1/3, 1/3), decide.
    """
    cdef Py_ssize_t n = values.shape[0], columns = values.shape[1]
    cdef Py_ssize_t m = first.shape[0] - 1, pairs = m * (m - 1) // 2, c, work, k
    cdef Py_ssize_t blocks = (n + MX_PAIR_ROWS - 1) // MX_PAIR_ROWS, start = 0, some
    cdef const double* by = NULL
    cdef int threads
    if m < 2 or first[0] != 0:
        raise ValueError("columns and classes do not fit")
    for c in range(m):
        if first[c] > first[c + 1]:
            raise ValueError("columns and classes do not fit")
    if (pairs if coef is None else first[m]) != columns or bias.shape[0] != pairs:
        raise ValueError("columns, biases and pairs do not fit")
    if coef is not None:
        if coef.shape[0] != m - 1 or coef.shape[1] != columns:
            raise ValueError("coefficients and columns do not fit")
        by = &coef[0, 0] if columns else &bias[0]
    if votes.shape[0] != n or votes.shape[1] != m or scores is not None and (
            scores.shape[0] != n or scores.shape[1] != pairs):
        raise ValueError("votes, scores and rows do not fit")
    found = np.ones(max(blocks, 1), dtype=np.intc)
    cdef int[::1] each = found
    work = MX_PAIR_ROWS * (columns * (m - 1) + 3 * pairs)
    while start < blocks:
        some = min(blocks - start, 1 + WORK // work)
        threads = team(n_threads, some, NS * some * work)
        for k in prange(start, start + some, nogil=True, num_threads=threads):
            each[k] = decide(values, &first[0], m, by, &bias[0], k * MX_PAIR_ROWS,
                             votes, scores)
        start += some
        PyErr_CheckSignals()
    if (found < 0).any():
        raise MemoryError
    return bool(found.all())
