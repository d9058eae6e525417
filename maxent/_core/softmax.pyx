"""What lies between two matrix products of conditional maximum entropy on dense rows.

    s = X W + b,   p_i = softmax(s_i),   loss = sum w_i (log sum e^{s_i} - s_i[y_i])
    gradient = X' R,     r_i = w_i (p_i - e_{y_i})
    Hessian V = X' T,    t_i = w_i p_i * (u_i - p_i' u_i),   u = X V

Scores become r_i, and u_i becomes t_i, where they lie. A few rows at a time: nothing
here looks for signals.
"""

from libc.math cimport log

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept

cdef enum:
    TILE = 2048                 # entries that stay in cache


def residuals(
    double[:, ::1] s,           # IN scores less biases, OUT w (p - e_y)
    const double[::1] bias,     # IN     (K,)
    const Py_ssize_t[::1] y,    # IN     (n,)
    const double[::1] w,        # IN     (n,)
    double[:, ::1] P,           # OUT    (n, K) probabilities
    double[::1] sums,           # IN/OUT (K,) to which the residuals are added
):
    """The loss."""
    cdef Py_ssize_t n = s.shape[0], K = s.shape[1], start = 0, stop, i, k
    cdef Py_ssize_t rows = max(<Py_ssize_t>1, TILE // max(K, <Py_ssize_t>1))
    cdef double loss = 0., top, own, total
    cdef double* row
    cdef double* p
    check(s, P, w, sums)
    if bias.shape[0] != K or y.shape[0] != n:
        raise ValueError("scores, biases and classes do not fit")
    for i in range(n):
        if not 0 <= y[i] < K:
            raise ValueError(f"no class {y[i]} of {K}")
    while start < n:
        stop = min(start + rows, n)
        with nogil:
            for i in range(start, stop):
                row, own = &s[i, 0], s[i, y[i]] + bias[y[i]]
                top = row[0] + bias[0]
                for k in range(K):
                    row[k] += bias[k]
                    top = row[k] if row[k] > top else top
                for k in range(K):
                    row[k] -= top
                loss += w[i] * (top - own)
            mx_exp_shifted(&s[start, 0], 0., 0., (stop - start) * K, &P[start, 0])
            for i in range(start, stop):
                row, p = &s[i, 0], &P[i, 0]
                total = 0.
                for k in range(K):
                    total += p[k]
                loss += w[i] * log(total)
                total = 1. / total
                for k in range(K):
                    p[k] *= total
                    row[k] = w[i] * p[k]
                row[y[i]] -= w[i]
                for k in range(K):
                    sums[k] += row[k]
        start = stop
    return loss


def curvatures(
    double[:, ::1] u,           # IN u less the moves of the biases, OUT t
    const double[::1] v,        # IN     (K,) those moves
    const double[:, ::1] P,     # IN     (n, K)
    const double[::1] w,        # IN     (n,)
    double[::1] sums,           # IN/OUT (K,) to which t is added
):
    """Turns products with rows into what their transpose is to be multiplied with."""
    cdef Py_ssize_t n = u.shape[0], K = u.shape[1], i, k
    cdef double mean
    cdef double* row
    cdef const double* p
    check(u, P, w, sums)
    if v.shape[0] != K:
        raise ValueError("products and moves do not fit")
    with nogil:
        for i in range(n):
            row, p = &u[i, 0], &P[i, 0]
            mean = 0.
            for k in range(K):
                row[k] += v[k]
                mean += p[k] * row[k]
            for k in range(K):
                row[k] = w[i] * p[k] * (row[k] - mean)
                sums[k] += row[k]


def check(
    double[:, ::1] s, const double[:, ::1] P, const double[::1] w, double[::1] sums
):
    cdef Py_ssize_t n = s.shape[0], K = s.shape[1]
    if P.shape[0] != n or P.shape[1] != K or w.shape[0] != n or sums.shape[0] != K:
        raise ValueError("scores, probabilities and weights do not fit")
