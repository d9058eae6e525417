"""Categorical columns of few letters as rows of bits."""

from libc.stdint cimport uint64_t

cdef enum:
    BIT_LETTERS = 5         # up to here (r - 1)^2 / 64 counts beat one look-up a row

# bits ((letters - 1) * words): rows for the letters from 1 on; single (letters,) counts
cdef void write_bits(
    const unsigned short* code, Py_ssize_t T, Py_ssize_t letters, Py_ssize_t words,
    uint64_t* bits, double* single) noexcept nogil

# table (ra, rb) of two columns of T rows, ld apart, from bits and counts of letters
cdef void count_bits(
    const uint64_t* a, Py_ssize_t ra, const uint64_t* b, Py_ssize_t rb,
    const double* count_a, const double* count_b, Py_ssize_t words, double T,
    double* table, Py_ssize_t ld) noexcept nogil
