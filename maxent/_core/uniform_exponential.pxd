"""The unit function of uniform-exponential margins, k = rate * width:

    g(u) = log(1 + k) - k u - log S(u),   S(u) = (1 - exp(-k u)) / u + 1 / (1 - u)

with relative errors near rounding for all 0 < u < 1.
"""

from libc.math cimport exp, expm1, log, log1p


cdef inline double mean_decay(
    double x, double* excess, double* slope, double* curvature) noexcept nogil:
    """A(x) = (1 - exp(-x)) / x, A(x) - 1 and the two derivatives, x >= 0.

    (-1)^n times the n-th derivative is M_n, the integral of t^n exp(-x t) over [0, 1].
    """
    cdef double e = exp(-x), s = 1., mean
    cdef int j
    if x < 0.5:
        # 3 exp(x) M_2 = 1 + x/4 (1 + x/5 (1 + ..)), and by parts n M_{n-1} = x M_n + e;
        # the next term is below 3e-17
        for j in range(16, 3, -1):
            s = 1. + x / j * s
        curvature[0] = e * s / 3.
        slope[0] = -0.5 * (x * curvature[0] + e)
        mean = e - x * slope[0]
        excess[0] = -x * (mean + slope[0])
        return mean
    mean = -expm1(-x) / x
    slope[0] = (e - mean) / x
    curvature[0] = -(e + 2. * slope[0]) / x
    excess[0] = mean - 1.
    return mean


cdef inline double uniform_value(double k, double u) noexcept nogil:
    """-k u - log(S(u) / S(0)), S(u) = (1 - exp(-k u)) / u + 1 / (1 - u)."""
    cdef double excess, d1, d2, relative
    cdef double mean = mean_decay(k * u, &excess, &d1, &d2)
    # S / (1 + k) - 1: near zero nothing is subtracted from log(1 + k)
    relative = (k * excess + u / (1. - u)) / (1. + k)
    if relative > -0.5:
        return -k * u - log1p(relative)
    return -k * u - log((k * mean + 1. / (1. - u)) / (1. + k))


cdef inline void uniform_derivatives(
    double k, double u, double* slope, double* curvature) noexcept nogil:
    """Its first derivative and the negative of its second."""
    cdef double excess, d1, d2, s = 1. / (1. - u)
    cdef double S = k * mean_decay(k * u, &excess, &d1, &d2) + s
    d1 = (k * k * d1 + s * s) / S
    slope[0] = -k - d1
    curvature[0] = (k * k * k * d2 + 2. * s * s * s) / S - d1 * d1
