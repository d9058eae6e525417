"""Linear dynamical systems: Kalman filter and smoother of one sequence.

    s_0 ~ N(m, P),   s_t = A s_{t-1} + b + N(0, Q),   x_t = C s_t + c + N(0, R)

The filter updates by P <- (I - K C) P (I - K C)' + K R K' (Joseph), the smoother by

    P_t|T = (I - J A) P_t|t (I - J A)' + J (P_{t+1}|T + Q) J',
    J = P_t|t A' P_{t+1|t}^-1

with a generalised inverse, so that both keep covariances positive semidefinite and Q
and P may be singular.  Sizes are small: plain loops, no BLAS, O(n_steps (n + d)^3).

Source: Shumway & Stoffer (1982).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isnan
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from maxent._core.systems.small_matrices cimport (
    congruence,
    factor,
    product,
    product_t,
    semidefinite_factor,
    solve_lower,
    solve_semidefinite,
    solve_upper,
)

cdef enum:
    # Covariances that differ by less than 1 / EQUAL of their units have settled: what
    # is left to go is 1 / (1 - rho) times that, of a convergence at the rate rho.
    EQUAL = 250000000000000

cdef double SAME = 1. / EQUAL


# -- filter ----------------------------------------------------------------------------
cdef Py_ssize_t filter_scratch(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    return 6 * n * n + 2 * n + 3 * n * d + d * d + 2 * d


cdef bint same_covariance(
    const double* P, const double* Q, Py_ssize_t n) noexcept nogil:
    """Whether matrices agree up to rounding in the units of their diagonals."""
    cdef Py_ssize_t i, j
    cdef double away
    for i in range(n):
        for j in range(i + 1):
            away = P[i * n + j] - Q[i * n + j]
            if not away * away <= SAME * SAME * P[i * n + i] * P[j * n + j]:
                return False
    return True


cdef void predict_mean(
    const System* s, Py_ssize_t r, double* mean, double* old) noexcept nogil:
    """mean <- A mean + b; scratch of n."""
    cdef Py_ssize_t n = s.n, i, j
    cdef const double* A = s.transition + r * n * n
    cdef double value
    memcpy(old, mean, n * sizeof(double))
    for i in range(n):
        value = s.transition_offset[r * n + i]
        for j in range(n):
            value += A[i * n + j] * old[j]
        mean[i] = value


cdef void predict(
    const System* s, Py_ssize_t r, double* mean, double* cov, double* scratch
) noexcept nogil:
    """mean <- A mean + b, cov <- A cov A' + Q; scratch of 2 n^2 + n."""
    cdef Py_ssize_t n = s.n
    cdef const double* A = s.transition + r * n * n
    cdef double* work = scratch
    cdef double* out = work + n * n
    predict_mean(s, r, mean, out + n * n)
    memcpy(out, s.transition_cov + r * n * n, n * n * sizeof(double))
    congruence(A, cov, n, n, work, out)
    memcpy(cov, out, n * n * sizeof(double))


cdef bint update(
    const System* s, Py_ssize_t r, const double* x, double* mean, double* cov,
    double* log_det, double* distance, double* scratch) noexcept nogil:
    """Condition on one observation (NULL: zero); whether F is positive definite.

    F = C P C' + R, K = P C' F^{-1}, P <- (I - K C) P (I - K C)' + K R K'. Scratch of
    3 n^2 + 3 n d + d^2 + 2 d.
    """
    cdef Py_ssize_t n = s.n, d = s.d, i, j, k
    cdef const double* C = s.observation + r * d * n
    cdef const double* R = s.observation_cov + r * d * d
    cdef double* work = scratch
    cdef double* G = work + n * n       # I - K C
    cdef double* out = G + n * n
    cdef double* V = out + n * n        # (d, n) C P, then L^{-1} C P, then F^{-1} C P
    cdef double* K = V + n * d          # (n, d)
    cdef double* KR = K + n * d
    cdef double* F = KR + n * d
    cdef double* e = F + d * d
    cdef double* z = e + d
    cdef double value
    product(C, cov, d, n, n, V)
    memcpy(F, R, d * d * sizeof(double))
    for i in range(d):
        for j in range(i + 1):
            value = F[i * d + j]
            for k in range(n):
                value += V[i * n + k] * C[j * n + k]
            F[i * d + j] = value
        value = (0. if x == NULL else x[i]) - s.observation_offset[r * d + i]
        for j in range(n):
            value -= C[i * n + j] * mean[j]
        e[i] = z[i] = value
    if not factor(F, d, log_det):
        return False
    solve_lower(F, d, z, 1)
    distance[0] = 0.
    for i in range(d):
        distance[0] += z[i] * z[i]
    solve_lower(F, d, V, n)
    solve_upper(F, d, V, n)
    for i in range(n):
        for j in range(d):
            K[i * d + j] = V[j * n + i]
            mean[i] += K[i * d + j] * e[j]
    product(K, C, n, d, n, G)
    for i in range(n * n):
        G[i] = -G[i]
        out[i] = 0.
    for i in range(n):
        G[i * n + i] += 1.
    congruence(G, cov, n, n, work, out)
    congruence(K, R, n, d, KR, out)
    memcpy(cov, out, n * n * sizeof(double))
    return True


cdef void steady_update(
    const System* s, const double* x, double* mean, double* distance, double* scratch
) noexcept nogil:
    """The same with the gain and the factor that the last update has left."""
    cdef Py_ssize_t n = s.n, d = s.d, i, j
    cdef double* K = scratch + 3 * n * n + n * d
    cdef double* F = K + 2 * n * d
    cdef double* e = F + d * d
    cdef double* z = e + d
    cdef double value
    for i in range(d):
        value = (0. if x == NULL else x[i]) - s.observation_offset[i]
        for j in range(n):
            value -= s.observation[i * n + j] * mean[j]
        e[i] = z[i] = value
    solve_lower(F, d, z, 1)
    distance[0] = 0.
    for i in range(d):
        distance[0] += z[i] * z[i]
    for i in range(n):
        for j in range(d):
            mean[i] += K[i * d + j] * e[j]


cdef Py_ssize_t kalman_filter(
    const System* system, const double* x, Py_ssize_t n_steps, double* predicted_mean,
    double* predicted_cov, double* mean, double* cov, double* log_det, double* distance,
    double* scratch) noexcept nogil:
    cdef Py_ssize_t n = system.n, d = system.d, t, r
    cdef double* m = scratch
    cdef double* P = m + n
    cdef double* last = P + n * n       # the predicted covariance before
    cdef double* updated = last + n * n
    cdef double* work = updated + n * n
    cdef double value = 0., far
    # Of a constant system all covariances settle; a gap starts them again.
    cdef bint seen = False, steady = False, now
    memcpy(m, system.initial_mean, n * sizeof(double))
    memcpy(P, system.initial_cov, n * n * sizeof(double))
    for t in range(n_steps):
        r = system.which[t] if system.which != NULL else 0
        now = x == NULL or not isnan(x[t * d])
        if steady and now:
            predict_mean(system, 0, m, work)
        elif t:
            predict(system, r, m, P, work)
            steady = (seen and now and system.which == NULL
                      and same_covariance(P, last, n))
            if steady:                  # go on with the covariances of the step before
                memcpy(P, updated, n * n * sizeof(double))
        if predicted_mean != NULL:
            memcpy(predicted_mean + t * n, m, n * sizeof(double))
            memcpy(predicted_cov + t * n * n, last if steady else P,
                   n * n * sizeof(double))
        far = 0.
        if steady and now:
            steady_update(system, NULL if x == NULL else x + t * d, m, &far, work)
        elif now:
            memcpy(last, P, n * n * sizeof(double))
            if not update(
                    system, r, NULL if x == NULL else x + t * d, m, P, &value, &far,
                    work):
                return t
            memcpy(updated, P, n * n * sizeof(double))
        seen = now
        steady = steady and now
        if log_det != NULL:
            log_det[t] = value if now else 0.
            distance[t] = far
        if mean != NULL:
            memcpy(mean + t * n, m, n * sizeof(double))
            memcpy(cov + t * n * n, P, n * n * sizeof(double))
    return -1


# -- smoother --------------------------------------------------------------------------
cdef Py_ssize_t smoother_scratch(Py_ssize_t n) noexcept nogil:
    return 7 * n * n


cdef void smoother_gain(
    const double* A, const double* P, const double* predicted, Py_ssize_t n, double* J,
    double* L, double* X) noexcept nogil:
    """J = P A' predicted^{-1}; scratch of n^2 each in L and X."""
    cdef Py_ssize_t i, j
    product(A, P, n, n, n, X)
    memcpy(L, predicted, n * n * sizeof(double))
    semidefinite_factor(L, n)
    solve_semidefinite(L, n, X, n)
    for i in range(n):
        for j in range(n):
            J[i * n + j] = X[j * n + i]


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
    cdef double* before = sum + n * n   # the filtered covariance of step t + 1
    cdef const double* A
    cdef double* P
    cdef double s
    cdef Py_ssize_t size = n * n * sizeof(double)
    cdef bint settled                   # whether J is that of step t + 1
    for t in range(n_steps - 2, -1, -1):
        r = system.which[t + 1] if system.which != NULL else 0
        A = system.transition + r * n * n
        P = cov + t * n * n
        settled = (
            system.which == NULL and t < n_steps - 2 and memcmp(P, before, size) == 0
            and memcmp(predicted_cov + (t + 1) * n * n,
                       predicted_cov + (t + 2) * n * n, size) == 0)
        memcpy(before, P, size)
        if not settled:
            smoother_gain(A, P, predicted_cov + (t + 1) * n * n, n, J, L, X)
        for i in range(n):
            s = 0.
            for j in range(n):
                s += J[i * n + j] * (
                    mean[(t + 1) * n + j] - predicted_mean[(t + 1) * n + j])
            mean[t * n + i] += s
        if settled and same_covariance(P + n * n, P + 2 * n * n, n):
            memcpy(P, P + n * n, size)
            memcpy(lag + t * n * n, lag + (t + 1) * n * n, size)
            continue
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
cdef System system_of(tuple arrays, Py_ssize_t n_steps) except *:
    """Set pointers into arrays of consistent shapes; the tuple must outlive them.

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


cdef Py_ssize_t longest(const Py_ssize_t[::1] offsets, Py_ssize_t steps) except -1:
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
    double[::1] log_det,                # OUT  (n_steps,)
    double[::1] distance,               # OUT
    double[:, ::1] mean=None,           # OUT  smoothed; None: filter only
    double[:, :, ::1] cov=None,         # OUT
    double[:, :, ::1] lag=None,         # OUT  (n_steps, n, n), the last is not written
):
    """Filter and smoother of one sequence; the step at which it fails, or -1."""
    cdef Py_ssize_t T = x.shape[0], n, bad
    cdef System s = system_of(arrays, T)
    n = s.n
    if (
        T == 0 or x.shape[1] != s.d
        or not log_det.shape[0] == distance.shape[0] == T
        or not predicted_mean.shape[0] == filtered_mean.shape[0] == T
        or not predicted_cov.shape[0] == filtered_cov.shape[0] == T
        or not predicted_mean.shape[1] == filtered_mean.shape[1] == n
        or not predicted_cov.shape[1] == predicted_cov.shape[2] == n
        or not filtered_cov.shape[1] == filtered_cov.shape[2] == n
    ):
        raise ValueError("outputs do not fit")
    if mean is not None and not (
        mean.shape[0] == cov.shape[0] == lag.shape[0] == T
        and mean.shape[1] == cov.shape[1] == cov.shape[2] == n
        and lag.shape[1] == lag.shape[2] == n
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
            if bad < 0 and mean is not None:
                memcpy(&mean[0, 0], &filtered_mean[0, 0], T * n * sizeof(double))
                memcpy(&cov[0, 0, 0], &filtered_cov[0, 0, 0],
                       T * n * n * sizeof(double))
                kalman_smoother(
                    &s, T, &predicted_mean[0, 0], &predicted_cov[0, 0, 0], &mean[0, 0],
                    &cov[0, 0, 0], &lag[0, 0, 0], scratch)
    finally:
        free(scratch)
    return bad
