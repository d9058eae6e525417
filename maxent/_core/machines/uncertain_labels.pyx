"""Best label means of rows whose labels are uncertain, at given decision values.

Each row has the dimensionless multiplier u >= 0 that maximises

    c u + g(u) - log cosh(u x + h) + log cosh h,      x = rate * f,  c = rate * level

with h half the log odds of the positive label; its label mean is tanh(u x + h). The
slope c + g'(u) - x tanh(u x + h) falls as u grows. Newton steps inside a bracket.
"""

from libc.math cimport INFINITY, exp, fabs, log1p, tanh

from maxent._core.potentials cimport (
    Potential,
    potential_curvature,
    potential_slope,
    potential_value,
    unpack_potential,
)

cdef enum:
    STEPS = 200                    # bisections alone need 60 or so
cdef double LAST = 1e-8            # a step this short is followed by one below rounding
cdef double LOG2 = 0.69314718055994530942


cdef inline double log_cosh(double z) noexcept nogil:
    return fabs(z) + log1p(exp(-2. * fabs(z))) - LOG2


cdef double multiplier(
    const Potential* g, bint closed, double slope_at_zero, double x, double c, double h,
    double near) noexcept nogil:
    """Root of the slope, from a start `near` if that is positive."""
    cdef double low = 0., high = g.upper, now, s, t, new, curvature
    cdef bint inside
    cdef int _
    if not c + slope_at_zero > x * tanh(h):
        return 0.
    if closed:
        if c + potential_slope(g, high) - x * tanh(high * x + h) >= 0:
            return high
    elif high == INFINITY:
        high = 1.
        while (high < 1e300
                and c + potential_slope(g, high) - x * tanh(high * x + h) > 0):
            high *= 4.
    now = near if 0 < near < high else 0.5 * high
    for _ in range(STEPS):
        t = tanh(now * x + h)
        s = c + potential_slope(g, now) - x * t
        if s == 0:
            return now
        if s > 0:
            low = now
        else:
            high = now
        curvature = potential_curvature(g, now) + x * x * (1. - t * t)
        new = now + s / curvature
        inside = low < new < high
        if not inside:
            new = 0.5 * (low + high)
        if high - low <= 4e-16 * high or inside and fabs(new - now) <= LAST * now:
            return new
        now = new
    return now


def least_losses(
    tuple spec,
    bint closed,
    double slope_at_zero,
    const double[::1] x,           # IN     (n,) rate * f
    const double[::1] c,           # IN     (n,) rate * level
    const double[::1] h,           # IN     (n,) half log odds
    double[::1] u,                 # INOUT  (n,) a start, or 0; the multipliers
    double[::1] mean,              # OUT    (n,) label means
    double[::1] loss,              # OUT    (n,) least losses, of weight one
):
    """Multipliers, label means and least losses in one pass."""
    cdef Potential g = unpack_potential(spec)
    cdef Py_ssize_t i, n = x.shape[0]
    cdef double z
    if not (c.shape[0] == h.shape[0] == u.shape[0] == mean.shape[0] == n
            and loss.shape[0] == n):
        raise ValueError("arrays of different lengths")
    with nogil:
        for i in range(n):
            u[i] = multiplier(&g, closed, slope_at_zero, x[i], c[i], h[i], u[i])
            z = u[i] * x[i] + h[i]
            mean[i] = tanh(z)
            loss[i] = c[i] * u[i] + potential_value(&g, u[i]) - log_cosh(z)
            loss[i] += log_cosh(h[i])
