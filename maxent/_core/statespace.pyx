"""Linear dynamical systems: Kalman filter, smoother, expected products, pairs.

    s_0 ~ N(m, P),   s_t = A s_{t-1} + b + N(0, Q),   x_t = C s_t + c + N(0, R)

The filter updates by P <- (I - K C) P (I - K C)' + K R K' (Joseph), the smoother by

    P_t|T = (I - J A) P_t|t (I - J A)' + J (P_{t+1}|T + Q) J',
    J = P_t|t A' P_{t+1|t}^-1

with a generalised inverse, so that both keep covariances positive semidefinite and Q and
P may be singular.  Sizes are small: plain loops, no BLAS, cost O(n_steps (n + d)^3).

Pairs of systems: the law of (x_0 .. x_T) is Gaussian with covariance S; log|S + S'| and
(mu - mu')' (S + S')^{-1} (mu - mu') are the sums of log|F_t| and e_t' F_t^{-1} e_t in the
filter of x - x' at observations zero.  `pair_filter.c` runs it for eight pairs at once,
here pairs with ill-conditioned updates are run again in Joseph form.

Sources: Jebara, Kondor & Howard (2004), section 4.5, with the corrections on the errata
page of the documentation; Shumway & Stoffer (1982).
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport isnan, log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cdef extern from "pair_filter.h" nogil:
    enum: MX_PAIRS
    ctypedef struct mx_pairs:
        Py_ssize_t n
        Py_ssize_t m
        Py_ssize_t d
        Py_ssize_t row_step
        Py_ssize_t lane_step
        Py_ssize_t n_horizons
        const Py_ssize_t* horizons
        int triangular
        int freeze
    Py_ssize_t mx_pair_scratch(Py_ssize_t n, Py_ssize_t m, Py_ssize_t d) noexcept
    void mx_pair_filter(
        const mx_pairs* p, const double* row, const double* lanes, double* scratch,
        double* log_det, double* distance, unsigned char* suspect) noexcept

PAIRS = MX_PAIRS
ALIGNMENT = ALIGNED     # of packed lanes, in bytes

cdef enum:
    ALIGNED = 64

# A pivot of at most this share of its diagonal entry is rounding: a direction without
# variance.
cdef double SINGULAR = 1e-14


# -- small matrices --------------------------------------------------------------------
cdef void product(
    const double* A, const double* B, Py_ssize_t n, Py_ssize_t k, Py_ssize_t m,
    double* out) noexcept nogil:
    """out (n, m) = A (n, k) B (k, m)."""
    cdef Py_ssize_t i, j, p
    cdef double a
    for i in range(n):
        for j in range(m):
            out[i * m + j] = 0.
        for p in range(k):
            a = A[i * k + p]
            for j in range(m):
                out[i * m + j] += a * B[p * m + j]


cdef void product_t(
    const double* A, const double* B, Py_ssize_t n, Py_ssize_t k, Py_ssize_t m,
    double* out) noexcept nogil:
    """out (n, m) = A (n, k) B' with B (m, k)."""
    cdef Py_ssize_t i, j, p
    cdef double s
    for i in range(n):
        for j in range(m):
            s = 0.
            for p in range(k):
                s += A[i * k + p] * B[j * k + p]
            out[i * m + j] = s


cdef void congruence(
    const double* A, const double* P, Py_ssize_t n, Py_ssize_t k, double* work,
    double* out) noexcept nogil:
    """out (n, n) += A P A', A (n, k) and P (k, k) symmetric; exactly symmetric."""
    cdef Py_ssize_t i, j, p
    cdef double s
    product(A, P, n, k, k, work)
    for i in range(n):
        for j in range(i + 1):
            s = 0.
            for p in range(k):
                s += work[i * k + p] * A[j * k + p]
            out[i * n + j] += s
            if i != j:
                out[j * n + i] = out[i * n + j]


cdef bint factor(double* F, Py_ssize_t d, double* log_det) noexcept nogil:
    """Lower Cholesky factor in place; whether F is positive definite."""
    cdef Py_ssize_t i, j, k
    cdef double s
    log_det[0] = 0.
    for j in range(d):
        s = F[j * d + j]
        for k in range(j):
            s -= F[j * d + k] * F[j * d + k]
        if not s > 0.:
            return False
        log_det[0] += log(s)
        F[j * d + j] = s = s ** 0.5
        for i in range(j + 1, d):
            for k in range(j):
                F[i * d + j] -= F[i * d + k] * F[j * d + k]
            F[i * d + j] /= s
    return True


cdef void solve_lower(const double* L, Py_ssize_t d, double* x, Py_ssize_t m) noexcept nogil:
    """x (d, m) <- L^{-1} x."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(d):
        for k in range(i):
            a = L[i * d + k]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = 1. / L[i * d + i]
        for j in range(m):
            x[i * m + j] *= a


cdef void solve_upper(const double* L, Py_ssize_t d, double* x, Py_ssize_t m) noexcept nogil:
    """x (d, m) <- L'^{-1} x."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            a = L[k * d + i]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = 1. / L[i * d + i]
        for j in range(m):
            x[i * m + j] *= a


cdef void semidefinite_factor(double* P, Py_ssize_t n) noexcept nogil:
    """L with L L' = P in place, P semidefinite: zero columns where the pivot vanishes."""
    cdef Py_ssize_t i, j, k
    cdef double s, own
    for j in range(n):
        own = P[j * n + j]
        s = own
        for k in range(j):
            s -= P[j * n + k] * P[j * n + k]
        if not s > SINGULAR * own:
            for i in range(j, n):
                P[i * n + j] = 0.
            continue
        P[j * n + j] = s = s ** 0.5
        for i in range(j + 1, n):
            for k in range(j):
                P[i * n + j] -= P[i * n + k] * P[j * n + k]
            P[i * n + j] /= s


cdef void solve_semidefinite(
    const double* L, Py_ssize_t n, double* x, Py_ssize_t m) noexcept nogil:
    """x (n, m) <- a solution y of L L' y = x, where there is one."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(n):
        for k in range(i):
            a = L[i * n + k]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = L[i * n + i]
        a = 1. / a if a > 0. else 0.
        for j in range(m):
            x[i * m + j] *= a
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            a = L[k * n + i]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = L[i * n + i]
        a = 1. / a if a > 0. else 0.
        for j in range(m):
            x[i * m + j] *= a


# -- filter ----------------------------------------------------------------------------
cdef Py_ssize_t filter_scratch(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    return 4 * n * n + 2 * n + 3 * n * d + d * d + 2 * d


cdef Py_ssize_t kalman_filter(
    const System* system, const double* x, Py_ssize_t n_steps, double* predicted_mean,
    double* predicted_cov, double* mean, double* cov, double* log_det, double* distance,
    double* scratch) noexcept nogil:
    cdef Py_ssize_t n = system.n, d = system.d, t, i, j, k, r
    cdef const double* A
    cdef const double* C
    cdef double* P = scratch
    cdef double* work = P + n * n
    cdef double* G = work + n * n       # I - K C
    cdef double* out = G + n * n
    cdef double* m = out + n * n
    cdef double* old = m + n
    cdef double* V = old + n            # (d, n) C P, then L^{-1} C P, then F^{-1} C P
    cdef double* K = V + n * d          # (n, d)
    cdef double* KR = K + n * d
    cdef double* F = KR + n * d
    cdef double* e = F + d * d
    cdef double* z = e + d
    cdef double s, value
    memcpy(m, system.initial_mean, n * sizeof(double))
    memcpy(P, system.initial_cov, n * n * sizeof(double))
    for t in range(n_steps):
        r = system.which[t] if system.which != NULL else 0
        A = system.transition + r * n * n
        C = system.observation + r * d * n
        if t:
            memcpy(old, m, n * sizeof(double))
            for i in range(n):
                s = system.transition_offset[r * n + i]
                for j in range(n):
                    s += A[i * n + j] * old[j]
                m[i] = s
            memcpy(out, system.transition_cov + r * n * n, n * n * sizeof(double))
            congruence(A, P, n, n, work, out)
            memcpy(P, out, n * n * sizeof(double))
        if predicted_mean != NULL:
            memcpy(predicted_mean + t * n, m, n * sizeof(double))
            memcpy(predicted_cov + t * n * n, P, n * n * sizeof(double))
        if log_det != NULL:
            log_det[t] = distance[t] = 0.
        if x == NULL or not isnan(x[t * d]):
            product(C, P, d, n, n, V)
            memcpy(F, system.observation_cov + r * d * d, d * d * sizeof(double))
            for i in range(d):
                for j in range(i + 1):
                    s = F[i * d + j]
                    for k in range(n):
                        s += V[i * n + k] * C[j * n + k]
                    F[i * d + j] = s
                s = 0. if x == NULL else x[t * d + i]
                s -= system.observation_offset[r * d + i]
                for j in range(n):
                    s -= C[i * n + j] * m[j]
                e[i] = z[i] = s
            if not factor(F, d, &value):
                return t
            solve_lower(F, d, z, 1)
            s = 0.
            for i in range(d):
                s += z[i] * z[i]
            if log_det != NULL:
                log_det[t] = value
                distance[t] = s
            solve_lower(F, d, V, n)
            solve_upper(F, d, V, n)
            for i in range(n):
                for j in range(d):
                    K[i * d + j] = V[j * n + i]
            for i in range(n):
                for j in range(d):
                    m[i] += K[i * d + j] * e[j]
            product(K, C, n, d, n, G)
            for i in range(n * n):
                G[i] = -G[i]
            for i in range(n):
                G[i * n + i] += 1.
            memset(out, 0, n * n * sizeof(double))
            congruence(G, P, n, n, work, out)
            congruence(K, system.observation_cov + r * d * d, n, d, KR, out)
            memcpy(P, out, n * n * sizeof(double))
        if mean != NULL:
            memcpy(mean + t * n, m, n * sizeof(double))
            memcpy(cov + t * n * n, P, n * n * sizeof(double))
    return -1


# -- smoother --------------------------------------------------------------------------
cdef Py_ssize_t smoother_scratch(Py_ssize_t n) noexcept nogil:
    return 6 * n * n


cdef void kalman_smoother(
    const System* system, Py_ssize_t n_steps, const double* predicted_mean,
    const double* predicted_cov, double* mean, double* cov, double* lag, double* scratch
) noexcept nogil:
    cdef Py_ssize_t n = system.n, t, i, j, r
    cdef double* J = scratch
    cdef double* L = J + n * n
    cdef double* X = L + n * n          # J'
    cdef double* G = X + n * n          # I - J A
    cdef double* work = G + n * n
    cdef double* sum = work + n * n
    cdef const double* A
    cdef double* P
    cdef double s
    for t in range(n_steps - 2, -1, -1):
        r = system.which[t + 1] if system.which != NULL else 0
        A = system.transition + r * n * n
        P = cov + t * n * n
        product(A, P, n, n, n, X)
        memcpy(L, predicted_cov + (t + 1) * n * n, n * n * sizeof(double))
        semidefinite_factor(L, n)
        solve_semidefinite(L, n, X, n)
        for i in range(n):
            for j in range(n):
                J[i * n + j] = X[j * n + i]
        for i in range(n):
            s = 0.
            for j in range(n):
                s += J[i * n + j] * (
                    mean[(t + 1) * n + j] - predicted_mean[(t + 1) * n + j])
            mean[t * n + i] += s
        product(J, A, n, n, n, G)
        for i in range(n * n):
            G[i] = -G[i]
            sum[i] = cov[(t + 1) * n * n + i] + system.transition_cov[r * n * n + i]
        for i in range(n):
            G[i * n + i] += 1.
        product_t(cov + (t + 1) * n * n, J, n, n, n, lag + t * n * n)
        memcpy(X, P, n * n * sizeof(double))
        memset(P, 0, n * n * sizeof(double))
        congruence(G, X, n, n, work, P)
        congruence(J, sum, n, n, work, P)


# -- Python: one system, many sequences ------------------------------------------------
cdef System system_of(tuple arrays, Py_ssize_t n_steps):
    """Pointers into arrays that fit each other; the tuple must outlive them.

    The nine arrays are those of `System`, in its order; `which` is empty where there is
    one record.
    """
    cdef const double[::1] initial_mean = arrays[0]
    cdef const double[:, ::1] initial_cov = arrays[1]
    cdef const double[:, :, ::1] transition = arrays[2]
    cdef const double[:, ::1] transition_offset = arrays[3]
    cdef const double[:, :, ::1] transition_cov = arrays[4]
    cdef const double[:, :, ::1] observation = arrays[5]
    cdef const double[:, ::1] observation_offset = arrays[6]
    cdef const double[:, :, ::1] observation_cov = arrays[7]
    cdef const Py_ssize_t[::1] which = arrays[8]
    cdef Py_ssize_t n = initial_mean.shape[0], d = observation.shape[1], t
    cdef Py_ssize_t k = transition.shape[0]
    cdef System s
    if (
        n == 0 or d == 0 or k == 0
        or not initial_cov.shape[0] == initial_cov.shape[1] == n
        or not transition.shape[1] == transition.shape[2] == n
        or not transition_offset.shape[0] == transition_cov.shape[0] == k
        or not observation.shape[0] == observation_offset.shape[0] == k
        or not observation_cov.shape[0] == k
        or not transition_offset.shape[1] == n
        or not transition_cov.shape[1] == transition_cov.shape[2] == n
        or not observation.shape[2] == n
        or not observation_offset.shape[1] == d
        or not observation_cov.shape[1] == observation_cov.shape[2] == d
        or which.shape[0] < (n_steps if k > 1 else 0)
    ):
        raise ValueError("the arrays of the system do not fit each other")
    for t in range(which.shape[0]):
        if not 0 <= which[t] < k:
            raise ValueError("a step names no record")
    s.n, s.d = n, d
    s.initial_mean, s.initial_cov = &initial_mean[0], &initial_cov[0, 0]
    s.transition = &transition[0, 0, 0]
    s.transition_offset = &transition_offset[0, 0]
    s.transition_cov = &transition_cov[0, 0, 0]
    s.observation = &observation[0, 0, 0]
    s.observation_offset = &observation_offset[0, 0]
    s.observation_cov = &observation_cov[0, 0, 0]
    s.which = &which[0] if k > 1 else NULL
    return s


def log_likelihoods(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] values,        # IN   (steps, d)
    const Py_ssize_t[::1] offsets,      # IN   (sequences + 1,)
    double[::1] log_det,                # OUT  (steps,)
    double[::1] distance,               # OUT  (steps,)
):
    """Terms of the log-likelihood; the step at which the filter fails, or -1."""
    cdef Py_ssize_t i, lo, hi, bad = -1, n_sequences = offsets.shape[0] - 1
    cdef System s = system_of(arrays, longest(offsets, values.shape[0]))
    if values.shape[1] != s.d or not (
            log_det.shape[0] == distance.shape[0] == values.shape[0]):
        raise ValueError("values and outputs do not fit")
    cdef double* scratch = <double*>malloc(filter_scratch(s.n, s.d) * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    try:
        for i in range(n_sequences):
            lo, hi = offsets[i], offsets[i + 1]
            with nogil:
                bad = kalman_filter(
                    &s, &values[lo, 0], hi - lo, NULL, NULL, NULL, NULL, &log_det[lo],
                    &distance[lo], scratch)
            if bad >= 0:
                return lo + bad
            PyErr_CheckSignals()
    finally:
        free(scratch)
    return -1


def longest(const Py_ssize_t[::1] offsets, Py_ssize_t steps):
    """Longest of sequences with these offsets, which are checked."""
    cdef Py_ssize_t i, most = 0
    if offsets.shape[0] < 2 or offsets[0] != 0 or (
            offsets[offsets.shape[0] - 1] != steps):
        raise ValueError("offsets do not fit")
    for i in range(offsets.shape[0] - 1):
        if offsets[i + 1] <= offsets[i]:
            raise ValueError("offsets do not increase")
        most = max(most, offsets[i + 1] - offsets[i])
    return most


def smooth(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] x,             # IN   (n_steps, d), a row of NaN is missing
    double[:, ::1] predicted_mean,      # OUT  (n_steps, n)
    double[:, :, ::1] predicted_cov,    # OUT  (n_steps, n, n)
    double[:, ::1] filtered_mean,       # OUT
    double[:, :, ::1] filtered_cov,     # OUT
    double[:, ::1] mean,                # OUT  smoothed
    double[:, :, ::1] cov,              # OUT
    double[:, :, ::1] lag,              # OUT  (n_steps, n, n), the last is not written
    double[::1] log_det,                # OUT  (n_steps,)
    double[::1] distance,               # OUT
):
    """Filter and smoother of one sequence; the step at which it fails, or -1."""
    cdef Py_ssize_t T = x.shape[0], n, bad
    cdef System s = system_of(arrays, T)
    n = s.n
    if (
        T == 0 or x.shape[1] != s.d
        or not log_det.shape[0] == distance.shape[0] == lag.shape[0] == T
        or not predicted_mean.shape[0] == filtered_mean.shape[0] == mean.shape[0] == T
        or not predicted_cov.shape[0] == filtered_cov.shape[0] == cov.shape[0] == T
        or not predicted_mean.shape[1] == filtered_mean.shape[1] == mean.shape[1] == n
        or not predicted_cov.shape[1] == predicted_cov.shape[2] == n
        or not filtered_cov.shape[1] == filtered_cov.shape[2] == n
        or not cov.shape[1] == cov.shape[2] == lag.shape[1] == lag.shape[2] == n
    ):
        raise ValueError("outputs do not fit")
    cdef Py_ssize_t size = max(filter_scratch(n, s.d), smoother_scratch(n))
    cdef double* scratch = <double*>malloc(size * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    try:
        with nogil:
            bad = kalman_filter(
                &s, &x[0, 0], T, &predicted_mean[0, 0], &predicted_cov[0, 0, 0],
                &filtered_mean[0, 0], &filtered_cov[0, 0, 0], &log_det[0], &distance[0],
                scratch)
            if bad < 0:
                memcpy(&mean[0, 0], &filtered_mean[0, 0], T * n * sizeof(double))
                memcpy(&cov[0, 0, 0], &filtered_cov[0, 0, 0],
                       T * n * n * sizeof(double))
                kalman_smoother(
                    &s, T, &predicted_mean[0, 0], &predicted_cov[0, 0, 0], &mean[0, 0],
                    &cov[0, 0, 0], &lag[0, 0, 0], scratch)
    finally:
        free(scratch)
    return bad


# -- expected products for EM ----------------------------------------------------------
cdef Py_ssize_t n_statistics(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    return 2 * (n + 1) * (n + 1) + n * (n + 1) + n * n + d * (n + 1) + d * d + n + n * n


cdef void add_state(
    const double* mean, const double* cov, Py_ssize_t n, double* out) noexcept nogil:
    """out (n + 1, n + 1) += E[(s, 1) (s, 1)']."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(n):
            out[i * (n + 1) + j] += cov[i * n + j] + mean[i] * mean[j]
        out[i * (n + 1) + n] += mean[i]
        out[n * (n + 1) + i] += mean[i]
    out[n * (n + 1) + n] += 1.


cdef void add_products(
    const double* x, Py_ssize_t T, Py_ssize_t n, Py_ssize_t d, const double* mean,
    const double* cov, const double* lag, double* out) noexcept nogil:
    """Sums over a sequence; see `statistics`."""
    cdef Py_ssize_t t, i, j, m = n + 1
    cdef double* before = out                   # (m, m) sum_{t >= 1} E z_{t-1} z_{t-1}'
    cdef double* across = before + m * m        # (n, m) sum_{t >= 1} E s_t z_{t-1}'
    cdef double* after = across + n * m         # (n, n) sum_{t >= 1} E s_t s_t'
    cdef double* seen = after + n * n           # (m, m) sum over observed E z_t z_t'
    cdef double* xz = seen + m * m              # (d, m) sum x_t E z_t'
    cdef double* xx = xz + d * m                # (d, d)
    cdef double* first = xx + d * d             # (n,) and (n, n): E s_0, E s_0 s_0'
    memset(out, 0, n_statistics(n, d) * sizeof(double))
    for t in range(T):
        if t:
            add_state(mean + (t - 1) * n, cov + (t - 1) * n * n, n, before)
            for i in range(n):
                for j in range(n):
                    across[i * m + j] += lag[((t - 1) * n + i) * n + j] + (
                        mean[t * n + i] * mean[(t - 1) * n + j])
                    after[i * n + j] += cov[(t * n + i) * n + j] + (
                        mean[t * n + i] * mean[t * n + j])
                across[i * m + n] += mean[t * n + i]
        else:
            for i in range(n):
                first[i] = mean[i]
                for j in range(n):
                    first[n + i * n + j] = cov[i * n + j] + mean[i] * mean[j]
        if not isnan(x[t * d]):
            add_state(mean + t * n, cov + t * n * n, n, seen)
            for i in range(d):
                for j in range(n):
                    xz[i * m + j] += x[t * d + i] * mean[t * n + j]
                xz[i * m + n] += x[t * d + i]
                for j in range(d):
                    xx[i * d + j] += x[t * d + i] * x[t * d + j]


cdef void one_sequence(
    const System* s, const double* x, Py_ssize_t T, double* work, double* out,
    double* log_likelihood, Py_ssize_t* bad) noexcept nogil:
    cdef Py_ssize_t n = s.n, d = s.d, t
    cdef double* pm = work
    cdef double* pP = pm + T * n
    cdef double* mean = pP + T * n * n
    cdef double* cov = mean + T * n
    cdef double* lag = cov + T * n * n
    cdef double* log_det = lag + T * n * n
    cdef double* distance = log_det + T
    cdef double* scratch = distance + T
    cdef double total = 0.
    bad[0] = kalman_filter(s, x, T, pm, pP, mean, cov, log_det, distance, scratch)
    if bad[0] >= 0:
        return
    kalman_smoother(s, T, pm, pP, mean, cov, lag, scratch)
    add_products(x, T, n, d, mean, cov, lag, out)
    for t in range(T):
        total -= 0.5 * (log_det[t] + distance[t])
    log_likelihood[0] = total


def statistics(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] values,        # IN   (steps, d)
    const Py_ssize_t[::1] offsets,      # IN   (sequences + 1,)
    int n_threads,
    double[:, ::1] out,                 # OUT  (sequences, n_statistics)
    double[::1] log_likelihood,         # OUT  (sequences,) without (d / 2) log 2 pi
    Py_ssize_t[::1] bad,                # OUT  (sequences,) step of failure, or -1
):
    """Expected products of states and observations, one row per sequence, z = (s, 1).

    In the order of a row: sum z_{t-1} z_{t-1}', sum s_t z_{t-1}', sum s_t s_t' over
    t >= 1; sum z z', sum x z', sum x x' over observed steps; s_0 and s_0 s_0'.
    """
    cdef Py_ssize_t most = longest(offsets, values.shape[0])
    cdef System s = system_of(arrays, most)
    cdef Py_ssize_t n = s.n, d = s.d, i, first, stop, N = offsets.shape[0] - 1
    cdef Py_ssize_t room = most * (2 * n + 3 * n * n + 2) + max(
        filter_scratch(n, d), smoother_scratch(n))
    cdef Py_ssize_t block = n_threads * max(
        1, <Py_ssize_t>(1e6 / (most * 12. * (n + d) ** 3)))
    if (values.shape[1] != d or out.shape[1] != n_statistics(n, d) or not
            out.shape[0] == log_likelihood.shape[0] == bad.shape[0] == N):
        raise ValueError("values and outputs do not fit")
    block = min(block, N)
    cdef double* work = <double*>malloc(block * room * sizeof(double))
    if work == NULL:
        raise MemoryError
    try:
        for first in range(0, N, block):
            stop = min(first + block, N)
            for i in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=n_threads):
                one_sequence(
                    &s, &values[offsets[i], 0], offsets[i + 1] - offsets[i],
                    work + (i - first) * room, &out[i, 0], &log_likelihood[i], &bad[i])
            PyErr_CheckSignals()
    finally:
        free(work)


# -- Gaussian chains in information form -----------------------------------------------
def information_chain(
    double[:, :, ::1] diagonal,         # IN   (T, n, n) blocks (t, t); overwritten
    const double[:, :, ::1] below,      # IN   (T - 1, n, n) blocks (t + 1, t)
    const double[:, ::1] linear,        # IN   (T, n)
    double[:, ::1] mean,                # OUT  (T, n)
    double[:, :, ::1] cov,              # OUT  (T, n, n)
    double[:, :, ::1] lag,              # OUT  (T - 1, n, n) Cov(s_{t + 1}, s_t)
):
    """Moments of exp(h' s - s' Lam s / 2), Lam block tridiagonal and positive definite.

    Returns log|Lam|, or None if it is not positive definite. Block Cholesky forward,
    with D_t = Lam_tt - E_{t-1} D_{t-1}^{-1} E_{t-1}'; backward
    s_t = D_t^{-1} (h_t - E_t' s_{t+1}), P_t = D_t^{-1} + G P_{t+1} G' with
    G = D_t^{-1} E_t'.
    """
    cdef Py_ssize_t T = diagonal.shape[0], n = diagonal.shape[1], t, i, j, k
    cdef double total = 0., value, s
    cdef bint good = True
    if (
        T == 0 or n == 0 or diagonal.shape[2] != n
        or not below.shape[0] == lag.shape[0] == T - 1
        or not linear.shape[0] == mean.shape[0] == cov.shape[0] == T
        or not linear.shape[1] == mean.shape[1] == cov.shape[1] == cov.shape[2] == n
        or T > 1 and not (
            below.shape[1] == below.shape[2] == lag.shape[1] == lag.shape[2] == n)
    ):
        raise ValueError("the blocks do not fit")
    cdef double* U = <double*>malloc(3 * n * n * sizeof(double))
    if U == NULL:
        raise MemoryError
    cdef double* G = U + n * n
    cdef double* work = G + n * n
    cdef double* D
    try:
        with nogil:
            for t in range(T):
                D = &diagonal[t, 0, 0]
                for i in range(n):
                    mean[t, i] = linear[t, i]
                if t:
                    # U = L^{-1} E', D -= U' U, h -= U' L^{-1} h
                    for i in range(n):
                        for j in range(n):
                            U[i * n + j] = below[t - 1, j, i]
                    solve_lower(&diagonal[t - 1, 0, 0], n, U, n)
                    for i in range(n):
                        s = 0.
                        for k in range(n):
                            s += U[k * n + i] * mean[t - 1, k]
                        mean[t, i] -= s
                        for j in range(i + 1):
                            s = 0.
                            for k in range(n):
                                s += U[k * n + i] * U[k * n + j]
                            D[i * n + j] -= s
                if not factor(D, n, &value):
                    good = False
                    break
                total += value
                solve_lower(D, n, &mean[t, 0], 1)   # L^{-1} h
            if good:
                for t in range(T - 1, -1, -1):
                    D = &diagonal[t, 0, 0]
                    memset(&cov[t, 0, 0], 0, n * n * sizeof(double))
                    # G = D^{-1} E'
                    if t < T - 1:
                        for i in range(n):
                            for j in range(n):
                                G[i * n + j] = below[t, j, i]
                        solve_lower(D, n, G, n)
                        for i in range(n):
                            for j in range(n):
                                mean[t, i] -= G[i * n + j] * mean[t + 1, j]
                        solve_upper(D, n, G, n)
                    solve_upper(D, n, &mean[t, 0], 1)
                    memset(U, 0, n * n * sizeof(double))
                    for i in range(n):
                        U[i * n + i] = 1.
                    solve_lower(D, n, U, n)
                    for i in range(n):
                        for j in range(n):
                            s = 0.
                            for k in range(n):
                                s += U[k * n + i] * U[k * n + j]
                            cov[t, i, j] = s
                    if t < T - 1:
                        congruence(G, &cov[t + 1, 0, 0], n, n, work, &cov[t, 0, 0])
                        product_t(&cov[t + 1, 0, 0], G, n, n, n, &lag[t, 0, 0])
                        for i in range(n * n):
                            (&lag[t, 0, 0])[i] = -(&lag[t, 0, 0])[i]
    finally:
        free(U)
    return total if good else None


# -- pairs -----------------------------------------------------------------------------
cdef void one_row(
    const mx_pairs* p, const double* row, const double* lanes, Py_ssize_t lane_size,
    Py_ssize_t first, Py_ssize_t blocks, Py_ssize_t columns, double* scratch,
    double* log_det, double* distance, unsigned char* suspect) noexcept nogil:
    """One system against all blocks from `first` on; outputs (columns, n_horizons)."""
    cdef Py_ssize_t b, l, h, H = p.n_horizons, j
    cdef double* both = scratch + mx_pair_scratch(p.n, p.m, p.d)
    cdef double* far = both + MX_PAIRS * H
    cdef unsigned char marks[MX_PAIRS]
    for b in range(first, blocks):
        mx_pair_filter(p, row, lanes + b * lane_size, scratch, both, far, marks)
        for l in range(min(<Py_ssize_t>MX_PAIRS, columns - b * MX_PAIRS)):
            j = b * MX_PAIRS + l
            suspect[j] = marks[l]
            for h in range(H):
                log_det[j * H + h] = both[h * MX_PAIRS + l]
                distance[j * H + h] = far[h * MX_PAIRS + l]


def pair_terms(
    const double[:, ::1] rows,          # IN   (N, size) packed systems of n states
    Py_ssize_t n,
    bint rows_vary,                     # a record for every step
    const double[:, :, ::1] lanes,      # IN   (blocks, size, PAIRS) packed, of m states
    Py_ssize_t m,
    bint lanes_vary,
    Py_ssize_t d,
    const Py_ssize_t[::1] horizons,     # IN   increasing, >= 0
    bint symmetric,                     # rows and lanes are the same: from the diagonal on
    bint triangular,                    # observation matrices are
    bint freeze,                        # hold covariances that have converged
    int n_threads,
    double[:, :, ::1] log_det,          # OUT  (N, M, n_horizons)
    double[:, :, ::1] distance,         # OUT
    unsigned char[:, ::1] suspect,      # OUT  (N, M) pairs that lost digits
):
    """log|S_i + S'_j| and squared distances of means for all pairs and horizons."""
    cdef Py_ssize_t N = rows.shape[0], M = log_det.shape[1], H = horizons.shape[0]
    cdef Py_ssize_t blocks = lanes.shape[0], i, h, first, stop, T
    cdef Py_ssize_t head_n = n + n * n, head_m = m + m * m
    cdef Py_ssize_t step_n = 2 * n * n + n + d * n + d + d * d + 1
    cdef Py_ssize_t step_m = 2 * m * m + m + d * m + d + d * d + 1
    cdef mx_pairs p
    if H == 0 or horizons[0] < 0 or n < 1 or m < 1 or d < 1 or n_threads < 1:
        raise ValueError("no horizons")
    for h in range(1, H):
        if horizons[h] <= horizons[h - 1]:
            raise ValueError("horizons do not increase")
    T = horizons[H - 1]
    if (
        rows.shape[1] < head_n + step_n * (T + 1 if rows_vary else 1)
        or lanes.shape[1] < head_m + step_m * (T + 1 if lanes_vary else 1)
        or lanes.shape[2] != MX_PAIRS or blocks != (M + MX_PAIRS - 1) // MX_PAIRS
        or not log_det.shape[0] == distance.shape[0] == suspect.shape[0] == N
        or not distance.shape[1] == suspect.shape[1] == M
        or not log_det.shape[2] == distance.shape[2] == H
    ):
        raise ValueError("packed systems and outputs do not fit")
    if N == 0 or M == 0:
        return
    p.n, p.m, p.d, p.n_horizons, p.horizons = n, m, d, H, &horizons[0]
    p.row_step, p.lane_step = step_n if rows_vary else 0, step_m if lanes_vary else 0
    p.triangular, p.freeze = triangular, freeze
    cdef Py_ssize_t room = (mx_pair_scratch(n, m, d) + 2 * MX_PAIRS * H + 7) // 8 * 8
    cdef Py_ssize_t size = lanes.shape[1] * MX_PAIRS
    cdef double cost = 1. * (n + m) ** 3 * (T + 1) * M
    cdef Py_ssize_t block = min(N, n_threads * max(1, <Py_ssize_t>(2e7 / cost)))
    cdef double* memory = <double*>malloc(block * room * sizeof(double) + ALIGNED)
    if memory == NULL:
        raise MemoryError
    cdef double* scratch = <double*>(
        (<size_t>memory + ALIGNED - 1) // ALIGNED * ALIGNED)
    try:
        for first in range(0, N, block):
            stop = min(first + block, N)
            for i in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=n_threads):
                one_row(
                    &p, &rows[i, 0], &lanes[0, 0, 0], size,
                    i // MX_PAIRS if symmetric else 0, blocks, M,
                    scratch + (i - first) * room, &log_det[i, 0, 0],
                    &distance[i, 0, 0], &suspect[i, 0])
            PyErr_CheckSignals()
    finally:
        free(memory)
