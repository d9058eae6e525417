"""Kalman filter and smoother of one sequence, as C functions."""

cdef struct System:
    # Parameters of a linear dynamical system in C order. Step t, into state t, and the
    # observation at t use record which[t] of the arrays; which is NULL: record 0.
    Py_ssize_t n                # states
    Py_ssize_t d                # observed coordinates
    const double* initial_mean  # (n,)
    const double* initial_cov   # (n, n)
    const double* transition    # (records, n, n)
    const double* transition_offset
    const double* transition_cov
    const double* observation   # (records, d, n)
    const double* observation_offset
    const double* observation_cov
    const Py_ssize_t* which     # (n_steps,)

cdef Py_ssize_t filter_scratch(Py_ssize_t n, Py_ssize_t d) noexcept nogil

# Joseph form. NULL for outputs that are not wanted. x NULL observes zero everywhere, a
# row that begins with NaN is missing. Returns the first step at which an innovation
# covariance is not positive definite, or -1.
cdef Py_ssize_t kalman_filter(
    const System* system,
    const double* x,            # IN   (n_steps, d)
    Py_ssize_t n_steps,
    double* predicted_mean,     # OUT  (n_steps, n)
    double* predicted_cov,      # OUT  (n_steps, n, n)
    double* mean,               # OUT  (n_steps, n) filtered
    double* cov,                # OUT  (n_steps, n, n)
    double* log_det,            # OUT  (n_steps,) of the innovation covariances
    double* distance,           # OUT  (n_steps,) squared, of the innovations
    double* scratch,            # filter_scratch(n, d) doubles
) noexcept nogil

cdef Py_ssize_t smoother_scratch(Py_ssize_t n) noexcept nogil

# Rauch-Tung-Striebel in Joseph form; singular predicted covariances are allowed.
cdef void kalman_smoother(
    const System* system, Py_ssize_t n_steps,
    const double* predicted_mean, const double* predicted_cov,
    double* mean,               # IN   filtered, OUT smoothed
    double* cov,
    double* lag,                # OUT  (n_steps - 1, n, n) Cov(s_{t + 1}, s_t)
    double* scratch,            # smoother_scratch(n) doubles
) noexcept nogil

# From (initial_mean, initial_cov, transition, ..., which), checked; the tuple must
# outlive the result.
cdef System system_of(tuple arrays, Py_ssize_t n_steps) except *

# Longest of sequences with these offsets, which are checked.
cdef Py_ssize_t longest(const Py_ssize_t[::1] offsets, Py_ssize_t steps) except -1
