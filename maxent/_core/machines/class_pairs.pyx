"""The machines of many pairs of small classes, one after another in compiled code.

Of a pair of some rows, calls from Python cost more than its solution. A machine is
kept if its certificate, in double precision, meets the tolerances; the others are left
to the caller.
"""

from cython.parallel cimport prange
from libc.math cimport fmax
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.machines.dual_machine cimport (
    DUAL_CONVERGED,
    DUAL_STALLED,
    DualMachine,
    dual_close,
    dual_open,
    dual_padded,
)
from maxent._core.machines.signed_rows cimport (
    SignedRows,
    balance_rows,
    bounds_of,
    certify_rows,
)
from maxent._core.machines.smo cimport dual_run
from maxent._core.potentials cimport Potential, unpack_potential
from maxent._core.threads cimport team

cdef enum:
    TRIES = 4                   # at most, each from exact residuals
    ARRAYS = 11                 # of n doubles

# what is known of a pair
cdef enum:
    SOLVED = 0
    BIAS = 1
    OBJECTIVE = 2
    GAP = 3
    VIOLATION = 4
    STEPS = 5
    USED = 6                    # rows with a multiplier
    FOUND = 7

cdef double NS = 150.           # of a row of a pair


cdef struct Pair:
    # Two classes: p and q rows, and the values within and between them.
    Py_ssize_t p, q
    const double* one           # (p, p)
    const double* other         # (q, q)
    const double* between       # p rows, `ld` apart
    Py_ssize_t ld


cdef double product(const Pair* pair, const double* a, double* f) noexcept nogil:
    """f = K a, and half of a' K a."""
    cdef Py_ssize_t p = pair.p, q = pair.q, s, t
    cdef double x, value = 0.
    cdef const double* row
    memset(f, 0, (p + q) * sizeof(double))
    for s in range(p):
        x = a[s]
        if x != 0:
            row = pair.one + s * p
            for t in range(p):
                f[t] += x * row[t]
            row = pair.between + s * pair.ld
            for t in range(q):
                f[p + t] += x * row[t]
    for s in range(q):
        x = a[p + s]
        if x != 0:
            row = pair.other + s * q
            for t in range(q):
                f[p + t] += x * row[t]
            for t in range(p):
                f[t] += x * pair.between[t * pair.ld + s]
    for t in range(p + q):
        value += a[t] * f[t]
    return 0.5 * value


cdef void matrix_of(const Pair* pair, float* K, Py_ssize_t ld) noexcept nogil:
    """The matrix of a pair in single precision; what pads its rows is zero."""
    cdef Py_ssize_t p = pair.p, q = pair.q, s, t
    for s in range(p):
        for t in range(p):
            K[s * ld + t] = <float>pair.one[s * p + t]
        for t in range(q):
            K[s * ld + p + t] = <float>pair.between[s * pair.ld + t]
            K[(p + t) * ld + s] = K[s * ld + p + t]
        memset(K + s * ld + p + q, 0, (ld - p - q) * sizeof(float))
    for s in range(q):
        for t in range(q):
            K[(p + s) * ld + p + t] = <float>pair.other[s * q + t]
        memset(K + (p + s) * ld + p + q, 0, (ld - p - q) * sizeof(float))


cdef void solve(
    const Potential* prior, const Pair* pair, const SignedRows* rows, double tol,
    double kkt_tol, Py_ssize_t max_iter, const float* K, Py_ssize_t ld, double* a,
    double* scratch, double* found
) noexcept nogil:
    """Multipliers of one pair and what is found of it; scratch (6, n)."""
    cdef DualMachine machine
    cdef Py_ssize_t n = rows.n, t, steps = 0
    cdef double* f = scratch
    cdef double* residual = scratch + n
    cdef double* up = scratch + 2 * n
    cdef double* low = scratch + 3 * n
    cdef double b = 0., asked = 0.9 * kkt_tol, highest, lowest, objective, gap = 0.
    cdef int status, _
    memset(a, 0, n * sizeof(double))
    memset(f, 0, n * sizeof(double))
    for _ in range(TRIES):
        for t in range(n):
            residual[t] = rows.target[t] - f[t] - b
        if dual_open(&machine, prior, K, ld, n, a, residual, rows.level, rows.rate,
                     rows.weight, rows.sides):
            return
        status = dual_run(&machine, asked, max_iter - steps)
        steps += machine.steps
        b += machine.middle
        dual_close(&machine)
        if machine.indefinite or status not in (DUAL_CONVERGED, DUAL_STALLED):
            return
        balance_rows(a, n, prior.upper, rows.rate, rows.weight)
        objective = product(pair, a, f)
        if not certify_rows(prior, rows, a, f, True, scratch + 4 * n, &b, &objective,
                            &gap):
            return
        bounds_of(prior, rows, a, f, b, 0., up, low)
        highest, lowest = up[0], low[0]
        for t in range(1, n):
            highest = fmax(highest, up[t])
            lowest = low[t] if low[t] < lowest else lowest
        if gap <= tol * (1. + fmax(objective, 0.)) and highest - lowest <= kkt_tol:
            found[SOLVED], found[BIAS], found[STEPS] = 1., b, steps
            found[OBJECTIVE], found[GAP] = objective, gap
            found[VIOLATION] = highest - lowest
            for t in range(n):
                found[USED] += a[t] != 0
            return
        asked *= 0.2


cdef void solve_pair(
    const Potential* prior, const Pair* pair, double level, double rate,
    const double* weight_one, const double* weight_other, double tol, double kkt_tol,
    Py_ssize_t max_iter, double* lam_one, double* lam_other, double* found
) noexcept nogil:
    """Multipliers and what is found of a pair, the first class on the negative side."""
    cdef SignedRows rows
    cdef Py_ssize_t p = pair.p, n = p + pair.q, ld = dual_padded(n), t
    cdef double* memory = <double*>malloc(
        ARRAYS * n * sizeof(double) + n * ld * sizeof(float) + n)
    cdef double* a = memory + 4 * n
    cdef float* K = <float*>(memory + ARRAYS * n)
    cdef signed char* sides = <signed char*>(K + n * ld)
    memset(found, 0, FOUND * sizeof(double))
    if memory == NULL:
        return
    for t in range(n):
        memory[t], memory[n + t], memory[2 * n + t] = 0., level, rate
        memory[3 * n + t] = weight_one[t] if t < p else weight_other[t - p]
        sides[t] = 2 if t < p else 1
    rows.n, rows.sides = n, sides
    rows.target, rows.level, rows.rate = memory, memory + n, memory + 2 * n
    rows.weight = memory + 3 * n
    matrix_of(pair, K, ld)
    solve(prior, pair, &rows, tol, kkt_tol, max_iter, K, ld, a, memory + 5 * n, found)
    if found[SOLVED]:
        for t in range(p):
            lam_one[t] = a[t]
        for t in range(pair.q):
            lam_other[t] = a[p + t]
    free(memory)


def solve_against_later(
    tuple spec,
    Py_ssize_t i,
    const Py_ssize_t[::1] first,    # IN   (m + 1,) rows of each class
    const double[::1] within,       # IN   matrices within the classes, one by one
    const Py_ssize_t[::1] place,    # IN   (m,) where that of each begins
    const double[:, ::1] between,   # IN   (rows of i, later rows) values
    double level,
    double rate,
    const double[::1] weight,       # IN   (n,)
    double tol,
    double kkt_tol,
    Py_ssize_t max_iter,
    Py_ssize_t most,                # IN   rows of a pair
    double[:, ::1] lam,             # OUT  (m - 1, n) signed, against the k-th other
    double[:, ::1] found,           # OUT  (m - 1 - i, 7), 0 if not solved: 1, bias,
                                    #      objective, gap, violation, steps, rows used
    int n_threads=1,
):
    """Solve the pairs of class i and every later class, flat biases, no targets.

    `spec` is of a prior with a finite slope at zero and a smooth loss.
    """
    cdef Potential prior = unpack_potential(spec)
    cdef Py_ssize_t m = first.shape[0] - 1, j, rows = first[m]
    cdef int threads
    if not (0 <= i < m - 1 and weight.shape[0] == rows and lam.shape[0] == m - 1
            and lam.shape[1] == rows and found.shape[0] == m - 1 - i
            and found.shape[1] == FOUND and place.shape[0] == m
            and between.shape[0] == first[i + 1] - first[i]
            and between.shape[1] == rows - first[i + 1]):
        raise ValueError("classes and arrays do not fit")
    for j in range(m):
        rows = first[j + 1] - first[j]
        if rows < most and rows * rows > within.shape[0] - place[j]:
            raise ValueError("classes and their matrices do not fit")
    rows = first[m]
    threads = team(n_threads, m - 1 - i, NS * (
        rows - first[i] + (m - 1 - i) * (first[i + 1] - first[i])))
    for j in prange(i + 1, m, nogil=True, schedule="dynamic", num_threads=threads):
        solve_with_class(&prior, i, j, first, within, place, between, level, rate,
                         weight, tol, kkt_tol, max_iter, most, lam, found)


cdef void solve_with_class(
    const Potential* prior, Py_ssize_t i, Py_ssize_t j, const Py_ssize_t[::1] first,
    const double[::1] within, const Py_ssize_t[::1] place,
    const double[:, ::1] between, double level, double rate, const double[::1] weight,
    double tol, double kkt_tol, Py_ssize_t max_iter, Py_ssize_t most,
    double[:, ::1] lam, double[:, ::1] found
) noexcept nogil:
    cdef Pair pair
    cdef double* out = &found[j - i - 1, 0]
    pair.p, pair.q = first[i + 1] - first[i], first[j + 1] - first[j]
    if pair.p + pair.q > most or pair.p == 0 or pair.q == 0:
        memset(out, 0, FOUND * sizeof(double))
        return
    pair.one, pair.other = &within[place[i]], &within[place[j]]
    pair.between = &between[0, first[j] - first[i + 1]]
    pair.ld = between.shape[1]
    solve_pair(prior, &pair, level, rate, &weight[first[i]], &weight[first[j]], tol,
               kkt_tol, max_iter, &lam[j - 1, first[i]], &lam[i, first[j]], out)
