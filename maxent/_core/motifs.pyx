"""Scores of a motif at all places of sequences, and the adjoint of that.

    t_h = sum_j W[j, x_(h+j)] - sum_(k = h .. h+m-1) bg[word_k],   h = 0 .. L - m

word_k is the word that begins at place k, -1 where it is not whole or not known; a
letter of -1 adds nothing. A read is a sequence or its reverse complement; the reads of
an example follow one another, and an example is one task.

Source: Yu & Joachims (2009), Learning structural SVMs with latent variables, sect. 5.2.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange

cdef enum:
    CHUNK = 64              # examples of one task
    WAVE = 64               # tasks a thread between two looks for Ctrl-C


cdef void score_read(
    const signed char* x, const int* word, Py_ssize_t L, Py_ssize_t m, Py_ssize_t A,
    const double* W, const double* bg, double* t,
) noexcept nogil:
    cdef Py_ssize_t h, j
    cdef double below = 0., value
    for j in range(m):
        below += bg[word[j]] if word[j] >= 0 else 0.
    for h in range(L - m + 1):
        value = -below
        for j in range(m):
            value += W[j * A + x[h + j]] if x[h + j] >= 0 else 0.
        t[h] = value
        below -= bg[word[h]] if word[h] >= 0 else 0.
        if h + m < L:
            below += bg[word[h + m]] if word[h + m] >= 0 else 0.


cdef void pool_read(
    const signed char* x, const int* word, Py_ssize_t L, Py_ssize_t m, Py_ssize_t A,
    const double* beta, double* gW, double* gbg,
) noexcept nogil:
    cdef Py_ssize_t h, j, k, H = L - m + 1
    cdef double above
    for h in range(H):
        for j in range(m):
            if x[h + j] >= 0:
                gW[j * A + x[h + j]] += beta[h]
    for k in range(L):
        if word[k] >= 0:
            above = 0.
            for h in range(max(0, k - m + 1), min(k, H - 1) + 1):
                above += beta[h]
            gbg[word[k]] -= above


def motif_scores(
    const signed char[::1] codes,      # IN  letters of all reads, -1 unknown
    const int[::1] words,              # IN  the word that begins at each letter, or -1
    const Py_ssize_t[::1] reads,       # IN  (reads + 1,), where each read begins
    const Py_ssize_t[::1] entries,     # IN  (reads + 1,), where its scores begin
    const double[:, ::1] W,            # IN  (m, A)
    const double[::1] bg,              # IN  (words or 1,)
    double[::1] t,                     # OUT (entries,)
    int n_threads,
):
    """Scores of all places of all reads."""
    cdef Py_ssize_t n = reads.shape[0] - 1, m = W.shape[0], A = W.shape[1], r, lo, hi
    cdef Py_ssize_t wave = WAVE * CHUNK * n_threads
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
    Py_ssize_t A,
    const double[::1] beta,            # IN  (entries,)
    double[:, ::1] G,                  # OUT (n, m A + words or more), comes as zeros
    int n_threads,
):
    """Sums of the features of all places, weighted by beta."""
    cdef Py_ssize_t n = G.shape[0], i, s, r, lo, hi
    cdef Py_ssize_t wave = WAVE * CHUNK * n_threads
    for lo in range(0, n, wave):
        hi = min(lo + wave, n)
        for i in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=CHUNK,
                        num_threads=n_threads):
            for s in range(strands):
                r = i * strands + s
                pool_read(
                    &codes[reads[r]], &words[reads[r]], reads[r + 1] - reads[r], m, A,
                    &beta[entries[r]], &G[i, 0], &G[i, 0] + m * A)
        PyErr_CheckSignals()
