"""Categorical columns of few letters as rows of bits, counted 64 at a time."""

cdef extern from "machines/rbf_loops.h" nogil:
    Py_ssize_t mx_count_both(
        const uint64_t* a, const uint64_t* b, Py_ssize_t words) noexcept


cdef void write_bits(
    const unsigned short* code, Py_ssize_t T, Py_ssize_t letters, Py_ssize_t words,
    uint64_t* bits, double* single) noexcept nogil:
    """Rows of bits for the letters from 1 on; counts of all letters."""
    cdef Py_ssize_t t, w, i, stop
    cdef uint64_t word[BIT_LETTERS]
    single[0] = T
    for w in range(words):
        for i in range(letters):
            word[i] = 0
        stop = min(<Py_ssize_t>64, T - 64 * w)
        for t in range(stop):
            word[code[64 * w + t]] |= <uint64_t>1 << t
        for i in range(1, letters):
            bits[(i - 1) * words + w] = word[i]
    for i in range(1, letters):
        single[i] = mx_count_both(bits + (i - 1) * words, bits + (i - 1) * words, words)
        single[0] -= single[i]


cdef void count_bits(
    const uint64_t* a, Py_ssize_t ra, const uint64_t* b, Py_ssize_t rb,
    const double* count_a, const double* count_b, Py_ssize_t words, double T,
    double* table, Py_ssize_t ld) noexcept nogil:
    """Table of two columns from their bits and the counts of their letters."""
    cdef Py_ssize_t i, j
    cdef double left
    table[0] = T
    for j in range(1, rb):
        table[j] = count_b[j]
        table[0] -= count_b[j]
    for i in range(1, ra):
        left = count_a[i]
        for j in range(1, rb):
            table[i * ld + j] = mx_count_both(
                a + (i - 1) * words, b + (j - 1) * words, words)
            left -= table[i * ld + j]
            table[j] -= table[i * ld + j]
        table[i * ld] = left
        table[0] -= left
