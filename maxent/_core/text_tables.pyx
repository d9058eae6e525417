"""Numbers and places of cells in delimited text, one pass over its bytes.

It knows regular text only: rows of one width, numbers as decimals, quotes that enclose
whole cells. At anything else it stops and says in which column.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint64_t

cdef extern from "decimals.h" nogil:
    ctypedef struct mx_power:
        uint64_t high
        uint64_t low
        int64_t exponent
    int mx_nearest_double(uint64_t a, const mx_power* p, double* out)
    int mx_eight_digits(const unsigned char* text, uint64_t* out)

cdef enum:
    LEAST = -342            # below it numbers of 19 digits have no normal double
    MOST = 308
    DIGITS = 19             # that 64 bits hold
    ROWS = 4096             # between two checks for Ctrl-C

cdef mx_power powers[MOST - LEAST + 1]


def _fill_powers():
    for q in range(LEAST, MOST + 1):
        five = 5 ** abs(q)
        exponent = five.bit_length() - 128 if q >= 0 else -five.bit_length() - 127
        if q < 0:
            five = (1 << -exponent) // five
        else:
            five = five >> exponent if exponent > 0 else five << -exponent
        powers[q - LEAST].high = five >> 64
        powers[q - LEAST].low = five & ((1 << 64) - 1)
        powers[q - LEAST].exponent = exponent + q


_fill_powers()

cdef struct Cells:
    const unsigned char* at
    const unsigned char* end
    unsigned char delimiter
    bint runs               # any run of blanks is one delimiter


cdef inline bint is_digit(unsigned char c) noexcept nogil:
    return <unsigned char> (c - c'0') < 10


cdef inline bint is_blank(const Cells* t) noexcept nogil:
    return t.at < t.end and (
        t.at[0] == c' ' or (t.at[0] == c'\t' and t.delimiter != c'\t'))


cdef inline bint ends_cell(const Cells* t) noexcept nogil:
    return t.at == t.end or t.at[0] == t.delimiter or t.at[0] == c'\n' or (
        t.runs and t.at[0] == c'\t')


cdef inline void skip_blanks(Cells* t) noexcept nogil:
    while is_blank(t):
        t.at += 1


cdef inline uint64_t digits(Cells* t, uint64_t value) noexcept nogil:
    """Go on with a number by all digits that follow, modulo 2^64."""
    cdef uint64_t eight = 0
    while t.end - t.at >= 8 and mx_eight_digits(t.at, &eight):
        value = value * 100000000 + eight
        t.at += 8
    while t.at < t.end and is_digit(t.at[0]):
        value = value * 10 + (t.at[0] - c'0')
        t.at += 1
    return value


cdef uint64_t first_digits(const unsigned char* at, Py_ssize_t* seen) noexcept nogil:
    """The first 19 digits but leading zeros; how many digits they are with these."""
    cdef uint64_t value = 0
    cdef int kept = 0
    while kept < DIGITS:
        if at[0] != c'.':
            value = value * 10 + (at[0] - c'0')
            kept += value > 0
            seen[0] += 1
        at += 1
    return value


cdef int number(Cells* t, bint* padded, double* out) except -1:
    """1 and the number at a place, which ends behind it; 0 if there is none."""
    cdef const unsigned char* start = t.at
    cdef const unsigned char* first
    cdef const unsigned char* point = NULL
    cdef const unsigned char* zeros
    cdef uint64_t value
    cdef Py_ssize_t n_digits, power = 0, raised = 0, seen = 0
    cdef bint negative, downwards, known, cut = False
    cdef double above = 0.
    negative = t.at < t.end and t.at[0] == c'-'
    if t.at < t.end and (t.at[0] == c'-' or t.at[0] == c'+'):
        t.at += 1
    first = t.at
    value = digits(t, 0)
    n_digits = t.at - first
    padded[0] = n_digits > 1 and first[0] == c'0'
    if t.at < t.end and t.at[0] == c'.':
        point = t.at
        t.at += 1
        value = digits(t, value)
        power = point + 1 - t.at
        n_digits -= power
    if n_digits == 0:
        return 0
    if t.at < t.end and (t.at[0] == c'e' or t.at[0] == c'E'):
        t.at += 1
        downwards = t.at < t.end and t.at[0] == c'-'
        if t.at < t.end and (t.at[0] == c'-' or t.at[0] == c'+'):
            t.at += 1
        if t.at == t.end or not is_digit(t.at[0]):
            return 0
        while t.at < t.end and is_digit(t.at[0]):
            raised = min(raised * 10 + (t.at[0] - c'0'), <Py_ssize_t> 100000000)
            t.at += 1
        power += -raised if downwards else raised
    if n_digits > DIGITS:
        zeros = first
        raised = n_digits
        while raised > DIGITS and (zeros[0] == c'0' or zeros[0] == c'.'):
            raised -= zeros[0] == c'0'
            zeros += 1
        if raised > DIGITS:
            value = first_digits(first, &seen)
            power += n_digits - seen
            cut = True
    if value == 0:
        out[0] = -0. if negative else 0.
        return 1
    known = LEAST <= power <= MOST
    known = known and mx_nearest_double(value, &powers[power - LEAST], out)
    if known and cut:  # the digits left out add less than a unit
        known = mx_nearest_double(value + 1, &powers[power - LEAST], &above)
        known = known and above == out[0]
    if not known:
        out[0] = float(start[:t.at - start])
    elif negative:
        out[0] = -out[0]
    return 1


cdef int number_cell(Cells* t, bint* padded, double* out) except -1:
    """1 and the number of a cell, which ends behind it; 0 if it holds none."""
    cdef bint quoted = t.at < t.end and t.at[0] == c'"'
    t.at += quoted
    skip_blanks(t)
    if not number(t, padded, out):
        return 0
    if not t.runs:
        skip_blanks(t)
    if quoted:
        if t.at == t.end or t.at[0] != c'"':
            return 0
        t.at += 1
    return ends_cell(t)


cdef bint text_cell(
    Cells* t, Py_ssize_t longest, const unsigned char** start,
    const unsigned char** end, bint* doubled,
) noexcept nogil:
    """1 and the ends of a cell of text, without quotes around it.

    It tells quotes that are doubled, as inside of others.
    """
    cdef bint quoted = t.at < t.end and t.at[0] == c'"'
    if not quoted:
        start[0] = t.at
        while not ends_cell(t):
            t.at += 1
        end[0] = t.at
        return end[0] - start[0] <= longest
    t.at += 1
    start[0] = t.at
    while t.at < t.end:
        if t.at[0] == c'"':
            if t.at + 1 == t.end or t.at[1] != c'"':
                break
            doubled[0] = True
            t.at += 1
        t.at += 1
    end[0] = t.at
    if t.at >= t.end or end[0] - start[0] > longest:
        return False
    t.at += 1
    return ends_cell(t)


def count_byte(str text, unsigned char byte):
    """How often a byte stands in the UTF-8 of a text."""
    cdef Py_ssize_t size, i, n = 0
    cdef const unsigned char* at = <const unsigned char*> PyUnicode_AsUTF8AndSize(
        text, &size)
    for i in range(size):
        n += at[i] == byte
    return n


def read_cells(
    str text,                       # IN  lines that end by \n
    Py_ssize_t lines,               # IN  of them above the first row
    unsigned char delimiter,        # IN  a blank stands for any run of blanks
    const Py_ssize_t[::1] place,    # IN  (width,), column of X, -1 if it is left out
    Py_ssize_t target,              # IN  column of y, -1 if there is none
    bint numeric,                   # IN  whether y holds numbers, without zeros ahead
    Py_ssize_t longest,             # IN  bytes of a cell
    double[:, ::1] X,               # OUT (rows or more, features)
    double[::1] y,                  # OUT (rows or more,), if numeric
    Py_ssize_t[:, ::1] ends,        # OUT (rows or more, 2), texts of y, if not numeric,
):                                  #     in bytes of UTF-8
    """How many rows there are; -1 and the column where text is not regular, else 0.

    A column beyond the last one stands for rows of another width.
    """
    cdef Py_ssize_t width = place.shape[0], row = 0, column, size
    cdef Cells t
    cdef const unsigned char* base = <const unsigned char*> PyUnicode_AsUTF8AndSize(
        text, &size)
    cdef const unsigned char* line
    cdef const unsigned char* first = NULL
    cdef const unsigned char* last = NULL
    cdef bint padded = False, doubled
    cdef double value = 0.
    t.at, t.end = base, base + size
    while lines and t.at < t.end:
        lines -= t.at[0] == c'\n'
        t.at += 1
    t.delimiter, t.runs = delimiter, delimiter == c' '
    while t.at < t.end:
        line = t.at
        skip_blanks(&t)
        if t.at == t.end or t.at[0] == c'\n':  # a blank line
            t.at += t.at < t.end
            continue
        if not t.runs:
            t.at = line
        if row == X.shape[0]:
            return -1, width
        for column in range(width):
            if t.runs and t.at < t.end and t.at[0] == c'"':
                return -1, column
            line, doubled = t.at, False
            if place[column] >= 0 or (column == target and numeric):
                if not number_cell(&t, &padded, &value) or t.at - line > longest:
                    return -1, column
                if place[column] >= 0:
                    X[row, place[column]] = value
            elif not text_cell(&t, longest, &first, &last, &doubled):
                return -1, column
            if column == target and numeric:
                if padded:
                    return -1, column
                y[row] = value
            elif column == target:
                if place[column] >= 0:  # read as a number above
                    t.at = line
                    text_cell(&t, longest, &first, &last, &doubled)
                if doubled:
                    return -1, column
                ends[row, 0], ends[row, 1] = first - base, last - base
            if t.runs:
                skip_blanks(&t)
            if column < width - 1:
                if t.at == t.end or t.at[0] == c'\n':
                    return -1, width
                t.at += not t.runs
        if t.at < t.end and t.at[0] != c'\n':
            return -1, width
        t.at += t.at < t.end
        row += 1
        if row % ROWS == 0:
            PyErr_CheckSignals()
    return row, 0
