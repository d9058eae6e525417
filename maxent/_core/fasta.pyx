"""Headers and letters of FASTA, one pass over its bytes, and counts of letters.

Texts are what comes in and goes out: an array of bytes between would be a copy more.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.unicode cimport (
    PyUnicode_AsUTF8AndSize,
    PyUnicode_DecodeASCII,
    PyUnicode_DecodeUTF8,
)
from libc.string cimport memchr, memcpy, memset

cdef enum:
    BYTES = 1 << 24         # between two checks for Ctrl-C
    ODD = 0                 # the classes of bytes
    BLANK = 1
    LETTER = 2

cdef unsigned char kinds[256]


def _fill_kinds():
    for c in range(256):
        blank = c < 128 and chr(c).isspace()
        kinds[c] = BLANK if blank else LETTER if 32 < c < 127 else ODD


_fill_kinds()


cdef inline unsigned char kind_of(char c) noexcept nogil:
    return kinds[<unsigned char> c]


cdef inline bint all_letters(const char* line, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef unsigned char odd = 0
    for i in range(n):
        odd |= <unsigned char> (line[i] - c'!') > c'~' - c'!'
    return not odd


def fasta_records(
    str text,                           # IN  lines that end by \n
    unsigned char[::1] letters,         # OUT (len(text),), scratch
    list names,                         # OUT headers of the records,
    list sequences,                     # OUT their letters
    list lines,                         # OUT and numbers of the headers' lines
):
    """True if all lines are known, False if one is odd, as before the first header.

    Blanks are dropped, and lines that begin with a semicolon. Bytes that are neither
    letters nor blanks are odd but in headers.
    """
    cdef Py_ssize_t n = 0, line = 0, looked = 0, size
    cdef const char* base = PyUnicode_AsUTF8AndSize(text, &size)
    cdef const char* at = base
    cdef const char* end = base + size
    cdef const char* stop
    cdef bint begun = False
    while at < end:
        line += 1
        stop = <const char*> memchr(at, c'\n', end - at)
        if stop == NULL:
            stop = end
        if begun and at[0] != c'>' and at[0] != c';' and all_letters(at, stop - at):
            memcpy(&letters[0] + n, at, stop - at)
            n += stop - at
            at = stop
        while at < stop and kind_of(at[0]) == BLANK:
            at += 1
        if at == stop or at[0] == c';':
            pass
        elif at[0] == c'>':
            if begun:
                sequences.append(PyUnicode_DecodeASCII(<char*> &letters[0], n, NULL))
            begun, n = True, 0
            names.append(PyUnicode_DecodeUTF8(at + 1, stop - at - 1, NULL).strip())
            lines.append(line)
        elif not begun:
            return False
        else:
            while at < stop:
                if kind_of(at[0]) == ODD:
                    return False
                if kind_of(at[0]) == LETTER:
                    letters[n] = at[0]
                    n += 1
                at += 1
        at = stop + 1
        if at - base > looked:
            PyErr_CheckSignals()
            looked = at - base + BYTES
    if begun:
        sequences.append(PyUnicode_DecodeASCII(<char*> &letters[0], n, NULL))
    return begun


def count_letters(
    str text,                           # IN  ASCII
    Py_ssize_t[::1] counts,             # INOUT (128,)
):
    """Add the letters of a text to their counts."""
    cdef Py_ssize_t size, i
    cdef Py_ssize_t some[4][128]
    cdef const char* at = PyUnicode_AsUTF8AndSize(text, &size)
    memset(some, 0, sizeof(some))
    for i in range(size):  # equal neighbours do not wait for each other
        some[i & 3][at[i] & 127] += 1
    for i in range(128):
        counts[i] += some[0][i] + some[1][i] + some[2][i] + some[3][i]
