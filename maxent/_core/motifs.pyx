"""Scores of a motif at all places of sequences, and the adjoint of that.

    t_h = sum_j W[j, x_(h+j)] - sum_(k = h .. h+m-1) bg[word_k],   h = 0 .. L - m

word_k is the word that begins at place k; one code more, with a weight of zero, stands
for words that are not whole or not known, and for unknown letters.
A read is a sequence or its reverse complement; the reads of
an example follow one another, and an example is one task.

Source: Yu & Joachims (2009), Learning structural SVMs with latent variables, sect. 5.2.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free

from maxent._core.threads cimport team

cdef enum:
    CHUNK = 64              # examples of one task
    WAVE = 64               # tasks a thread between two checks for Ctrl-C


cdef void score_read(
    const signed char* x, const int* word, Py_ssize_t L, Py_ssize_t m, Py_ssize_t A,
    const double* W, const double* bg, double* t,
) noexcept nogil:
    # W (m, A) and bg end with zeros for what is not known
    cdef Py_ssize_t h, j, H = L - m + 1
    cdef double below = 0.
    for j in range(m):
        below += bg[word[j]]
    for h in range(H):
        t[h] = -below
        below -= bg[word[h]]
        if h + m < L:
            below += bg[word[h + m]]
    for j in range(m):
        for h in range(H):
            t[h] += W[j * A + x[h + j]]


cdef void pool_read(
    const signed char* x, const int* word, Py_ssize_t L, Py_ssize_t m, Py_ssize_t A,
    const double* beta, double* gW, double* gbg,
) noexcept nogil:
    cdef Py_ssize_t h, j, k, H = L - m + 1
    cdef double* row
    cdef double above
    for j in range(m):
        row = gW + j * A
        for h in range(H):
            row[x[h + j]] += beta[h]
    for k in range(L):
        above = 0.
        for h in range(max(0, k - m + 1), min(k, H - 1) + 1):
            above += beta[h]
        gbg[word[k]] -= above


cdef int pool_example(
    const signed char* codes, const int* words, const Py_ssize_t* reads,
    const Py_ssize_t* entries, Py_ssize_t strands, Py_ssize_t m, Py_ssize_t A,
    Py_ssize_t n_words, const double* beta, double* G,
) noexcept nogil:
    cdef Py_ssize_t s, j, a, size = m * A + n_words + 1
    cdef double* own = <double*>calloc(size, sizeof(double))
    if own == NULL:
        return 1
    for s in range(strands):
        pool_read(codes + reads[s], words + reads[s], reads[s + 1] - reads[s], m, A,
                  beta + entries[s], own, own + m * A)
    for j in range(m):
        for a in range(A - 1):
            G[j * (A - 1) + a] = own[j * A + a]
    for a in range(n_words):
        G[m * (A - 1) + a] = own[m * A + a]
    free(own)
    return 0


def motif_scores(
    const signed char[::1] codes,      # IN  letters of all reads
    const int[::1] words,              # IN  the word that begins at each letter
    const Py_ssize_t[::1] reads,       # IN  (reads + 1,), where each read begins
    const Py_ssize_t[::1] entries,     # IN  (reads + 1,), where its scores begin
    const double[:, ::1] W,            # IN  (m, A), the last column zero
    const double[::1] bg,              # IN  (words + 1,), the last one zero
    double[::1] t,                     # OUT (entries,)
    int n_threads,
):
    """Scores of all places of all reads."""
    cdef Py_ssize_t n = reads.shape[0] - 1, m = W.shape[0], A = W.shape[1], r, lo, hi
    cdef Py_ssize_t wave = WAVE * CHUNK * n_threads
    n_threads = team(n_threads, (n + CHUNK - 1) // CHUNK, <double>codes.shape[0] * m)
    for lo in range(0, n, wave):
        hi = min(lo + wave, n)
        for r in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=CHUNK,
                        num_threads=n_threads):
            score_read(&codes[reads[r]], &words[reads[r]], reads[r + 1] - reads[r], m,
                       A, &W[0, 0], &bg[0], &t[entries[r]])
        PyErr_CheckSignals()


def motif_pool(
    const signed char[::1] codes,      # IN  as for motif_scores
    const int[::1] words,              # IN
    const Py_ssize_t[::1] reads,       # IN
    const Py_ssize_t[::1] entries,     # IN
    Py_ssize_t strands,                # IN  reads of every example
    Py_ssize_t m,
    Py_ssize_t A,                      # letters, the unknown one included
    Py_ssize_t n_words,
    const double[::1] beta,            # IN  (entries,)
    double[:, ::1] G,                  # OUT (n, m A + words or more), zeros
    int n_threads,
):
    """Sums of the features of all places, weighted by beta."""
    cdef Py_ssize_t n = G.shape[0], i, lo, hi
    cdef Py_ssize_t wave = WAVE * CHUNK * n_threads
    cdef int failed = 0
    n_threads = team(n_threads, (n + CHUNK - 1) // CHUNK, <double>codes.shape[0] * m)
    for lo in range(0, n, wave):
        hi = min(lo + wave, n)
        for i in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=CHUNK,
                        num_threads=n_threads):
            failed |= pool_example(
                &codes[0], &words[0], &reads[i * strands], &entries[i * strands],
                strands, m, A, n_words, &beta[0], &G[i, 0])
        if failed:
            raise MemoryError
        PyErr_CheckSignals()
