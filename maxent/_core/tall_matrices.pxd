"""Rows of matrices that need not be stored: who knows them writes some at a time."""

cdef struct Rows:
    const void* state
    Py_ssize_t width

    # out[i] = by[i] (1 where NULL) times row start + i, of rows up to stop; NULL where
    # products with vectors are all there is
    void (*write)(
        const void* state, Py_ssize_t start, Py_ssize_t stop, const double* by,
        double* out, Py_ssize_t lead) noexcept nogil

    # The others may be NULL: rows are written, and multiplied.
    # out[i] = row . x; sums += w[i] row
    void (*times)(
        const void* state, Py_ssize_t start, Py_ssize_t stop, const double* x,
        double* out) noexcept nogil
    void (*add_transposed)(
        const void* state, Py_ssize_t start, Py_ssize_t stop, const double* w,
        double* sums) noexcept nogil
    # x as `times` takes it; from the sums of `add_transposed` those of the rows
    void (*prepare)(const void* state, const double* x, double* out) noexcept nogil
    void (*finish)(const void* state, double* sums) noexcept nogil


cdef class RowSource:
    cdef Rows rows
    cdef readonly Py_ssize_t n_rows
    cdef readonly bint finite       # whether what the rows are made of is
    cdef Py_ssize_t n_entries       # that a product with a vector reads
