"""Derivatives of the log-likelihood of linear dynamical systems, by one backward pass.

With v = x - C a - c, F = C P C' + R, M = P C' the filter makes a+ = a + M F^{-1} v and
P+ = P - M F^{-1} M', then predicts.  Its adjoint, from the last step to the first, is

    lam = A' r,   N+ = A' N A,   H+ = lam lam' - N+
    e = F^{-1} (v - M' lam),     D = F^{-1} + F^{-1} M' N+ M F^{-1}
    r <- lam + C' e,   N <- C' F^{-1} C + (I - M F^{-1} C)' N+ (I - M F^{-1} C)

where r and (r r' - N) / 2 are the derivatives by the predicted mean and covariance, and
e and (e e' - D) / 2 those by c and R.  No inverse of Q, R or P is taken: they may be
singular.  The smoothed mean is a + P r.

Means come as columns: the first is the mean, the others say how it moves with the
parts of the first state that no prior limits.  Products of vectors are then sums over
columns, which are expectations over these parts.

Sources: Koopman & Shephard (1992); Durbin & Koopman (2012), section 7.3; de Jong (1991)
"""

from libc.math cimport isnan
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from maxent._core.systems.small_matrices cimport (
    factor,
    product,
    product_t,
    solve_lower,
    solve_upper,
)
from maxent._core.systems.statespace cimport System, system_of


cdef void t_product(
    const double* A, const double* B, Py_ssize_t k, Py_ssize_t n, Py_ssize_t m,
    double* out) noexcept nogil:
    """out (n, m) = A' B with A (k, n), B (k, m)."""
    cdef Py_ssize_t i, j, p
    memset(out, 0, n * m * sizeof(double))
    for p in range(k):
        for i in range(n):
            for j in range(m):
                out[i * m + j] += A[p * n + i] * B[p * m + j]


cdef void add(
    const double* A, Py_ssize_t size, double scale, double* out) noexcept nogil:
    """out += scale A."""
    cdef Py_ssize_t i
    for i in range(size):
        out[i] += scale * A[i]


cdef bint innovations(
    const System* s, Py_ssize_t r, const double* x, const double* mean,
    const double* cov, Py_ssize_t k, double* F, double* M, double* v
) noexcept nogil:
    """Cholesky factor of F, M' = C P (d, n) and the innovations v (d, k) of columns."""
    cdef Py_ssize_t n = s.n, d = s.d, i
    cdef const double* C = s.observation + r * d * n
    cdef double log_det
    product(C, cov, d, n, n, M)
    product_t(M, C, d, n, d, F)
    add(s.observation_cov + r * d * d, d * d, 1., F)
    product(C, mean, d, n, k, v)
    for i in range(d * k):
        v[i] = -v[i]
    for i in range(d):
        v[i * k] += x[i] - s.observation_offset[r * d + i]
    return factor(F, d, &log_det)


def spread_columns(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] x,             # IN   (T, d), a row of NaN is missing
    const double[:, :, ::1] cov,        # IN   (T, n, n) predicted
    double[:, :, ::1] mean,             # IN   [0] the first mean and its columns;
                                        # OUT  (T, n, k) predicted
    double[:, :, ::1] filtered,         # OUT  (T, n, k)
    double[:, :, ::1] information,      # OUT  (T, k, k) sum of v' F^{-1} v so far
):
    """Columns of the means of all steps; False where F is not positive definite."""
    cdef Py_ssize_t T = x.shape[0], n = mean.shape[1], k = mean.shape[2], t, i, r
    cdef System s = system_of(arrays, T)
    cdef Py_ssize_t d = s.d
    cdef bint good = True
    _check(&s, x, cov, mean)
    if not filtered.shape[0] == information.shape[0] == T:
        raise ValueError("outputs do not fit")
    cdef double* F = <double*>malloc((d * d + d * n + d * k + n * k) * sizeof(double))
    if F == NULL:
        raise MemoryError
    cdef double* M = F + d * d
    cdef double* v = M + d * n
    cdef double* work = v + d * k
    with nogil:
        for t in range(T):
            r = s.which[t] if s.which != NULL else 0
            if t:
                product(s.transition + r * n * n, &filtered[t - 1, 0, 0], n, n, k,
                        &mean[t, 0, 0])
                for i in range(n):
                    mean[t, i, 0] += s.transition_offset[r * n + i]
                memcpy(&information[t, 0, 0], &information[t - 1, 0, 0],
                       k * k * sizeof(double))
            else:
                memset(&information[0, 0, 0], 0, k * k * sizeof(double))
            memcpy(&filtered[t, 0, 0], &mean[t, 0, 0], n * k * sizeof(double))
            if isnan(x[t, 0]):
                continue
            if not innovations(
                    &s, r, &x[t, 0], &mean[t, 0, 0], &cov[t, 0, 0], k, F, M, v):
                good = False
                break
            # L^{-1} v and L^{-1} M'
            solve_lower(F, d, v, k)
            solve_lower(F, d, M, n)
            t_product(M, v, d, n, k, work)
            add(work, n * k, 1., &filtered[t, 0, 0])
            add_squares(v, d, k, &information[t, 0, 0])
    free(F)
    return good


cdef void add_squares(
    const double* v, Py_ssize_t d, Py_ssize_t k, double* out) noexcept nogil:
    """out (k, k) += v' v."""
    cdef Py_ssize_t i, j, p
    for p in range(d):
        for i in range(k):
            for j in range(k):
                out[i * k + j] += v[p * k + i] * v[p * k + j]


cdef int _check(
    const System* s, const double[:, ::1] x, const double[:, :, ::1] cov,
    const double[:, :, ::1] mean) except -1:
    if (
        x.shape[0] == 0 or x.shape[1] != s.d or mean.shape[2] == 0
        or not cov.shape[0] == mean.shape[0] == x.shape[0]
        or not cov.shape[1] == cov.shape[2] == mean.shape[1] == s.n
    ):
        raise ValueError("columns do not fit")
    return 0


cdef struct Sums:
    # Derivatives, summed over steps, and what the pass carries backward.
    double* transition
    double* transition_cov
    double* observation
    double* observation_cov
    double* r                   # (n, k)
    double* N                   # (n, n)
    double* work                # 4 n^2 + 2 n k + 4 d n + 3 d^2 + 2 d k


cdef void back_transition(
    const System* s, Py_ssize_t row, const double* filtered, const double* filtered_cov,
    Py_ssize_t k, Sums* out) noexcept nogil:
    """Through a' = A a+ + b and P' = A P+ A' + Q."""
    cdef Py_ssize_t n = s.n
    cdef const double* A = s.transition + row * n * n
    cdef double* H = out.work
    cdef double* AP = H + n * n
    cdef double* both = AP + n * n
    cdef double* lam = both + n * n
    product_t(out.r, out.r, n, k, n, H)
    add(out.N, n * n, -1., H)
    add(H, n * n, 0.5, out.transition_cov)
    product(A, filtered_cov, n, n, n, AP)
    product(H, AP, n, n, n, both)
    add(both, n * n, 1., out.transition)
    product_t(out.r, filtered, n, k, n, both)
    add(both, n * n, 1., out.transition)
    t_product(A, out.r, n, n, k, lam)
    memcpy(out.r, lam, n * k * sizeof(double))
    product(out.N, A, n, n, n, AP)
    t_product(A, AP, n, n, n, out.N)


cdef bint back_observation(
    const System* s, Py_ssize_t row, const double* x, const double* mean,
    const double* cov, Py_ssize_t k, double* error, Sums* out) noexcept nogil:
    """Through the update by one observation."""
    cdef Py_ssize_t n = s.n, d = s.d, i
    cdef const double* C = s.observation + row * d * n
    cdef double* G = out.work           # I - M F^{-1} C
    cdef double* half = G + n * n
    cdef double* H = half + n * n
    cdef double* M = H + n * n          # (d, n) M'
    cdef double* FM = M + d * n         # F^{-1} M'
    cdef double* FMN = FM + d * n
    cdef double* sum = FMN + d * n      # (d, n)
    cdef double* F = sum + d * n
    cdef double* W = F + d * d
    cdef double* Fv = W + d * d         # (d, k) F^{-1} v
    cdef double* e = Fv + d * k
    cdef double* square = e + d * k
    if not innovations(s, row, x, mean, cov, k, F, M, Fv):
        return False
    memcpy(FM, M, d * n * sizeof(double))
    solve_lower(F, d, FM, n)
    solve_upper(F, d, FM, n)
    solve_lower(F, d, Fv, k)
    solve_upper(F, d, Fv, k)
    product(FM, out.r, d, n, k, e)
    for i in range(d * k):
        e[i] = Fv[i] - e[i]
    for i in range(d):
        error[i] = e[i * k]
    # W = e e' - F^{-1} - F^{-1} M' N M F^{-1}
    memset(W, 0, d * d * sizeof(double))
    for i in range(d):
        W[i * d + i] = -1.
    solve_lower(F, d, W, d)
    solve_upper(F, d, W, d)
    product_t(e, e, d, k, d, square)
    add(square, d * d, 1., W)
    product(FM, out.N, d, n, n, FMN)
    product_t(FMN, FM, d, n, d, square)
    add(square, d * d, -1., W)
    add(W, d * d, 0.5, out.observation_cov)
    # derivative by C: e a' + W C P + (F^{-1} v lam' - F^{-1} M' H) P
    product_t(e, mean, d, k, n, sum)
    add(sum, d * n, 1., out.observation)
    product(W, M, d, d, n, sum)
    add(sum, d * n, 1., out.observation)
    product_t(out.r, out.r, n, k, n, H)
    add(out.N, n * n, -1., H)
    product(FM, H, d, n, n, FMN)
    product_t(Fv, out.r, d, k, n, sum)
    add(FMN, d * n, -1., sum)
    product(sum, cov, d, n, n, FMN)
    add(FMN, d * n, 1., out.observation)
    # r and N
    t_product(FM, C, d, n, n, G)
    for i in range(n * n):
        G[i] = -G[i]
    for i in range(n):
        G[i * n + i] += 1.
    product(out.N, G, n, n, n, half)
    t_product(G, half, n, n, n, out.N)
    memcpy(FM, C, d * n * sizeof(double))
    solve_lower(F, d, FM, n)
    add_squares(FM, d, n, out.N)
    t_product(C, e, d, n, k, half)
    add(half, n * k, 1., out.r)
    return True


def adjoint(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] x,             # IN   (T, d), a row of NaN is missing
    const double[:, :, ::1] mean,       # IN   (T, n, k) predicted, in columns
    const double[:, :, ::1] cov,        # IN   (T, n, n)
    const double[:, :, ::1] filtered,   # IN   (T, n, k)
    const double[:, :, ::1] filtered_cov,   # IN   (T, n, n)
    double[::1] out,                    # OUT  by A, Q, C and R, one after the other
    double[:, :, ::1] states,           # OUT  (T, n, k) derivatives r by the means
    double[:, ::1] errors,              # OUT  (T, d) e
    double[:, ::1] first_cov,           # OUT  (n, n) by the first covariance
):
    """Derivatives of the log-likelihood; False where F is not positive definite.

    That by b of a step is the first column of `states` of the step.
    """
    cdef Py_ssize_t T = x.shape[0], n = mean.shape[1], k = mean.shape[2], t, row, later
    cdef System s = system_of(arrays, T)
    cdef Py_ssize_t d = s.d, size = 2 * n * n + d * n + d * d
    cdef Sums sums
    cdef bint good = True
    _check(&s, x, cov, mean)
    if (out.shape[0] != size or not states.shape[0] == errors.shape[0] == T
            or not filtered.shape[0] == filtered_cov.shape[0] == T
            or first_cov.shape[0] != n or first_cov.shape[1] != n):
        raise ValueError("outputs do not fit")
    cdef Py_ssize_t room = 5 * n * n + 3 * n * k + 4 * d * n + 3 * d * d + 2 * d * k
    cdef double* scratch = <double*>malloc(room * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    with nogil:
        memset(&out[0], 0, size * sizeof(double))
        memset(&errors[0, 0], 0, T * d * sizeof(double))
        memset(scratch, 0, (n * n + n * k) * sizeof(double))
        sums.transition = &out[0]
        sums.transition_cov = sums.transition + n * n
        sums.observation = sums.transition_cov + n * n
        sums.observation_cov = sums.observation + d * n
        sums.N = scratch
        sums.r = scratch + n * n
        sums.work = sums.r + n * k
        for t in range(T - 1, -1, -1):
            row = s.which[t] if s.which != NULL else 0
            if t < T - 1:
                later = s.which[t + 1] if s.which != NULL else 0
                back_transition(
                    &s, later, &filtered[t, 0, 0], &filtered_cov[t, 0, 0], k, &sums)
            if not isnan(x[t, 0]):
                if not back_observation(
                        &s, row, &x[t, 0], &mean[t, 0, 0], &cov[t, 0, 0], k,
                        &errors[t, 0], &sums):
                    good = False
                    break
            memcpy(&states[t, 0, 0], sums.r, n * k * sizeof(double))
        product_t(sums.r, sums.r, n, k, n, &first_cov[0, 0])
        add(sums.N, n * n, -1., &first_cov[0, 0])
        for t in range(n * n):
            (&first_cov[0, 0])[t] *= 0.5
    free(scratch)
    return good
