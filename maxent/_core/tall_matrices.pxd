"""Rows of a tall matrix that are written with gaps between them."""

cdef extern from "vector.h" nogil:
    void MX_PREFETCH_TO_WRITE(const void* address) noexcept

cdef enum:
    ROWS_AHEAD = 4      # of the row that is written: processors do not foresee the gaps


cdef inline void will_write(const double* x, Py_ssize_t n) noexcept nogil:
    """Ask for the memory of n entries."""
    cdef Py_ssize_t j
    for j in range(0, n, 8):
        MX_PREFETCH_TO_WRITE(x + j)
