"""Dual potentials of margin priors as inline scalar functions.

Every prior is one *unit function* g(u) on 0 <= u < upper, in the dimensionless
multiplier u = lam / (weight * rate):

    phi(lam)  = level * lam + weight * g(u)                 dual potential
    phi'(lam) = level + g'(u) / rate                        mean margin
    ell(m)    = weight * G(x),   x = rate * (level - m)     implied loss
    G(x)      = sup_u g(u) + x u,  attained at u*(x) = G'(x)

so level, rate and weight may differ from row to row at no cost.  A Fenchel-Young
term is G(x) - x u - g(u) >= 0, zero exactly when u = u*(x); it is evaluated without
subtracting large numbers.

A NaN stays a NaN: branches ask for the case without loss (x <= 0, not x > 0), because
a NaN that turned into "no loss" would certify a broken machine.

Source: Jaakkola, Meila & Jebara (1999), eq. (9)-(15); the Laplace and Gaussian
potentials printed there are corrected (see the errata page of the documentation).
"""

from libc.math cimport INFINITY, NAN, exp, fabs, fmin, log, log1p, sqrt

from maxent._core.uniform_exponential cimport uniform_derivatives, uniform_value

ctypedef double (*unit_function)(double) noexcept nogil

cdef enum Kind:
    EXPONENTIAL = 0
    ERLANG = 1
    LAPLACE = 2
    GAUSSIAN = 3
    LOGISTIC = 4
    FIXED = 5
    HINGE = 6
    UNIFORM_EXPONENTIAL = 7
    CUSTOM = 8
    NODES = 9

cdef enum:
    HEAD = 6                # numbers before the nodes in a table

cdef struct Potential:
    int kind
    double shape            # ERLANG: k;  UNIFORM_EXPONENTIAL: rate * width
    double upper            # supremum of u (may be infinite)
    unit_function value     # CUSTOM only: g, g', -g''
    unit_function slope
    unit_function curvature
    const double* table     # NODES only, see `nodes_at`


cdef inline double positive_part(double x) noexcept nogil:
    """max(x, 0), and NaN of NaN (of which fmax makes 0)."""
    return 0. if x < 0 else x


cdef inline double psi_excess(double e) noexcept nogil:
    """psi(1 + e) = e - log(1 + e), accurate near e = 0."""
    if fabs(e) < 1e-3:
        return e * e * (0.5 - e * (1. / 3. - e * (0.25 - e * (0.2 - e / 6.))))
    if e > 1e300:
        return e                                  # inf - inf is NaN
    return e - log1p(e)


cdef inline double softplus(double x) noexcept nogil:
    """log(1 + exp(x))."""
    return x + log1p(exp(-x)) if x > 0 else log1p(exp(x))


cdef inline double sigmoid(double x) noexcept nogil:
    cdef double e
    if x >= 0:
        return 1. / (1. + exp(-x))
    e = exp(x)
    return e / (1. + e)


cdef inline double entropy_term(double u, double x) noexcept nogil:
    """s - u - u log(s / u) >= 0, s = sigmoid(x): its share of a relative entropy."""
    cdef double s = sigmoid(x)
    if 0.5 * u < s < 2. * u:
        return u * psi_excess(s / u - 1.)
    return positive_part((s - u) + u * (log(u) + softplus(-x)))


cdef inline double laplace_value(double u) noexcept nogil:
    """log(1 - u^2): near 1 the square would lose the digits of 1 - u."""
    return log1p(-u * u) if u < 0.7 else log((1. - u) * (1. + u))


cdef inline double laplace_argmax(double x) noexcept nogil:
    """x / (1 + sqrt(1 + x^2)) for x > 0, also where x^2 overflows."""
    if x > 1e8:
        return 1. - 1. / x
    return x / (1. + sqrt(1. + x * x))


cdef inline void nodes_at(
    const Potential* p, double u, double* value, double* slope, double* curvature
) noexcept nogil:
    """g, g' and -g'' of a distribution on n nodes, S(u) = sum_j exp(m_j + (u - v) z_j).

    g = log S(0) - log S. The masses exp(m_j) are those at v: the end of a bounded
    domain, where nothing of a far tail is lost, or 0. Beyond `top`, from where on the
    nodes do not reach far enough, g is continued with the value, the slope and the
    curvature that it has there: by a multiple of log(1 - u) in a bounded domain, by a
    parabola in another. Table: n, log S(0), top, g(top), g'(top), -g''(top), z, m;
    z ascends.
    """
    cdef const double* t = p.table
    cdef Py_ssize_t n = <Py_ssize_t>t[0], j, k = 0
    cdef const double* z = t + HEAD
    cdef const double* m = z + n
    cdef double top = t[2], s, end, e, w, d, best = -INFINITY, s0 = 0., s1 = 0., s2 = 0.
    if u != u:
        value[0] = slope[0] = curvature[0] = u
        return
    if u > top:
        if p.upper < INFINITY:
            d = t[5] * (1. - top) * (1. - top)
            e = t[4] + d / (1. - top)
            if u >= 1.:
                value[0] = slope[0] = -INFINITY
                curvature[0] = INFINITY
                return
            value[0] = t[3] + d * log((1. - u) / (1. - top)) + e * (u - top)
            slope[0] = e - d / (1. - u)
            curvature[0] = d / ((1. - u) * (1. - u))
        else:
            value[0] = t[3] + (u - top) * (t[4] - 0.5 * t[5] * (u - top))
            slope[0] = t[4] - t[5] * (u - top)
            curvature[0] = t[5]
        return
    s = fmin(u, 1e300) - (p.upper if p.upper < INFINITY else 0.)
    end = z[n - 1] if s > 0 else z[0]
    for j in range(n):
        e = m[j] + s * (z[j] - end)
        if e > best:
            best = e
            k = j
    for j in range(n):
        e = m[j] + s * (z[j] - end) - best
        if e > -60.:
            w = exp(e)
            d = z[j] - z[k]
            s0 += w
            s1 += w * d
            s2 += w * d * d
    d = s1 / s0
    value[0] = 0. if u == 0 else t[1] - (s * end + best + log(s0))
    slope[0] = -(z[k] + d)
    curvature[0] = positive_part(s2 / s0 - d * d)


cdef inline double potential_value(const Potential* p, double u) noexcept nogil:
    """g(u); -inf outside the domain."""
    cdef double value, slope, curvature
    if u < 0 or u > p.upper:
        return -INFINITY
    if p.kind == EXPONENTIAL:
        return log1p(-u)
    if p.kind == ERLANG:
        return p.shape * log1p(-u)
    if p.kind == LAPLACE:
        return laplace_value(u)
    if p.kind == GAUSSIAN:
        return -0.5 * u * u
    if p.kind == LOGISTIC:
        if u == 0 or u == 1:
            return 0.
        return -u * log(u) - (1. - u) * log1p(-u)
    if p.kind == UNIFORM_EXPONENTIAL:
        if u == 0:
            return 0.
        if u == 1:
            return -INFINITY
        return uniform_value(p.shape, u)
    if p.kind == CUSTOM:
        return p.value(u)
    if p.kind == NODES:
        nodes_at(p, u, &value, &slope, &curvature)
        return value
    return u if u != u else 0.


cdef inline double potential_slope(const Potential* p, double u) noexcept nogil:
    """g'(u); a u that rounding put beyond the upper end has the slope of the end."""
    cdef double value, slope, curvature
    if p.kind == EXPONENTIAL:
        return -INFINITY if u >= 1 else -1. / (1. - u)
    if p.kind == ERLANG:
        return -INFINITY if u >= 1 else -p.shape / (1. - u)
    if p.kind == LAPLACE:
        return -INFINITY if u >= 1 else -2. * u / ((1. - u) * (1. + u))
    if p.kind == GAUSSIAN:
        return -u
    if p.kind == LOGISTIC:
        if u <= 0:
            return INFINITY
        return -INFINITY if u >= 1 else log1p(-u) - log(u)
    if p.kind == UNIFORM_EXPONENTIAL:
        if u >= 1:
            return -INFINITY
        uniform_derivatives(p.shape, u, &slope, &curvature)
        return slope
    if p.kind == CUSTOM:
        return p.slope(p.upper if u > p.upper else u)
    if p.kind == NODES:
        nodes_at(p, p.upper if u > p.upper else u, &value, &slope, &curvature)
        return slope
    return u if u != u else 0.


cdef inline double potential_curvature(const Potential* p, double u) noexcept nogil:
    """-g''(u) >= 0."""
    cdef double value, slope, curvature
    if p.kind == EXPONENTIAL:
        return 1. / ((1. - u) * (1. - u))
    if p.kind == ERLANG:
        return p.shape / ((1. - u) * (1. - u))
    if p.kind == LAPLACE:
        return 1. / ((1. - u) * (1. - u)) + 1. / ((1. + u) * (1. + u))
    if p.kind == GAUSSIAN:
        return 1.
    if p.kind == LOGISTIC:
        return INFINITY if u <= 0 or u >= 1 else 1. / (u * (1. - u))
    if p.kind == UNIFORM_EXPONENTIAL:
        if u >= 1:
            return INFINITY
        uniform_derivatives(p.shape, u, &slope, &curvature)
        return curvature
    if p.kind == CUSTOM:
        return p.curvature(p.upper if u > p.upper else u)
    if p.kind == NODES:
        nodes_at(p, p.upper if u > p.upper else u, &value, &slope, &curvature)
        return curvature
    return u if u != u else 0.


cdef inline double potential_derivatives(
    const Potential* p, double u, double* curvature) noexcept nogil:
    """g'(u), and -g''(u), in one pass over nodes."""
    cdef double value, slope
    if p.kind == NODES:
        nodes_at(p, p.upper if u > p.upper else u, &value, &slope, curvature)
        return slope
    curvature[0] = potential_curvature(p, u)
    return potential_slope(p, u)


cdef inline double conjugate_argmax(const Potential* p, double x) noexcept nogil:
    """u*(x) = argmax_u g(u) + x u = G'(x)."""
    cdef double lo, hi, u, s, step, curvature
    cdef int _
    if p.kind == EXPONENTIAL:
        return 0. if x <= 1 else 1. - 1. / x
    if p.kind == ERLANG:
        return 0. if x <= p.shape else 1. - p.shape / x
    if p.kind == LAPLACE:
        return 0. if x <= 0 else laplace_argmax(x)
    if p.kind == GAUSSIAN:
        return positive_part(x)
    if p.kind == LOGISTIC:
        return sigmoid(x)
    if x != x:
        return x
    if p.kind == FIXED:
        return INFINITY if x > 0 else 0.
    if p.kind == HINGE:
        return 1. if x > 0 else 0.
    # safeguarded Newton on the decreasing function g'(u) + x
    if potential_slope(p, 0.) + x <= 0:
        return 0.
    lo = 0.
    hi = p.upper
    if hi == INFINITY:
        hi = 1.
        while potential_slope(p, hi) + x > 0:
            if hi >= 1e300:
                return INFINITY               # no margin lies so low: an infinite loss
            lo = hi
            hi *= 4.
    u = 0.5 * (lo + hi)
    for _ in range(200):
        s = potential_derivatives(p, u, &curvature) + x
        if s > 0:
            lo = u
        else:
            hi = u
        step = s / curvature
        if fabs(step) <= 2e-16 * fabs(u):
            break
        if lo < u + step < hi:
            u += step
        else:
            u = 0.5 * (lo + hi)
        if hi - lo <= 2e-16 * hi:
            break
    return u


cdef inline double attained_value(
    const Potential* p, double x, double u) noexcept nogil:
    """g(u) + x u >= 0 at u = u*(x) from Newton's method."""
    cdef double g
    if u == 0:
        return 0.
    g = potential_value(p, u)
    if u == INFINITY or (g == -INFINITY and p.upper == INFINITY):
        return INFINITY                       # infinite, or beyond the doubles
    if g == -INFINITY:
        # the optimum rounded to an open end; one step inside it costs x * 1e-16
        u = p.upper * (1. - 1.2e-16)
        g = potential_value(p, u)
    return positive_part(g + x * u)


cdef inline double conjugate_value(const Potential* p, double x) noexcept nogil:
    """G(x) = sup_u g(u) + x u >= 0, the loss of weight and rate one."""
    cdef double r
    if p.kind == EXPONENTIAL:
        return 0. if x <= 1 else psi_excess(x - 1.)
    if p.kind == ERLANG:
        return 0. if x <= p.shape else p.shape * psi_excess(x / p.shape - 1.)
    if p.kind == LAPLACE:
        if x <= 0:
            return 0.
        # 2 r = sqrt(1 + x^2) - 1, free of cancellation; G = 2 r - log(1 + r)
        r = 0.5 * x * laplace_argmax(x)
        return r + psi_excess(r)
    if p.kind == GAUSSIAN:
        return 0. if x <= 0 else 0.5 * x * x
    if p.kind == LOGISTIC:
        return softplus(x)
    if p.kind == HINGE:
        return positive_part(x)
    if p.kind == FIXED:
        return 0. if x <= 0 else x * INFINITY
    return attained_value(p, x, conjugate_argmax(p, x))

cdef inline double conjugate_curvature(const Potential* p, double x) noexcept nogil:
    """G''(x) >= 0."""
    cdef double r, u
    if p.kind == EXPONENTIAL:
        return 0. if x <= 1 else 1. / (x * x)
    if p.kind == ERLANG:
        return 0. if x <= p.shape else p.shape / (x * x)
    if p.kind == LAPLACE:
        if x <= 0:
            return 0.
        r = sqrt(1. + x * x)
        return 1. / (r * (1. + r))
    if p.kind == GAUSSIAN:
        return 0. if x <= 0 else (1. if x > 0 else x)
    if p.kind == LOGISTIC:
        u = sigmoid(-fabs(x))
        return u * (1. - u)
    if p.kind == FIXED or p.kind == HINGE:
        return x if x != x else 0.
    u = conjugate_argmax(p, x)
    return 0. if u <= 0 else 1. / potential_curvature(p, u)


cdef inline double fenchel_young(const Potential* p, double u, double x) noexcept nogil:
    """G(x) - x u - g(u) >= 0; zero when u = u*(x)."""
    cdef double r, s
    if u < 0 or u > p.upper:
        return INFINITY
    if p.kind == EXPONENTIAL:
        if x >= 1:
            return psi_excess(x * (1. - u) - 1.)
        return -u * x - log1p(-u)
    if p.kind == ERLANG:
        if x >= p.shape:
            return p.shape * psi_excess(x * (1. - u) / p.shape - 1.)
        return -u * x - p.shape * log1p(-u)
    if p.kind == LAPLACE:
        if x <= 0:
            return -u * x - laplace_value(u)
        # Bregman divergence of -log(1-u) - log(1+u) between u and u*
        r = x if x > 1e8 else sqrt(1. + x * x)
        s = (1. + 1. / (x + r)) / (1. + r)        # 1 - u*
        return psi_excess((1. - u) / s - 1.) + psi_excess((1. + u) / (2. - s) - 1.)
    if p.kind == GAUSSIAN:
        return u * (0.5 * u - x) if x <= 0 else 0.5 * (u - x) * (u - x)
    if p.kind == LOGISTIC:
        # relative entropy of (u, 1-u) from (s, 1-s), s = sigmoid(x)
        if u == 0:
            return softplus(x)
        if u == 1:
            return softplus(-x)
        return entropy_term(u, x) + entropy_term(1. - u, -x)
    if p.kind == FIXED:
        return INFINITY if x > 0 else -x * u
    if p.kind == HINGE:
        return x * (1. - u) if x > 0 else -x * u
    return positive_part(conjugate_value(p, x) - x * u - potential_value(p, u))


cdef inline double logistic_optimum(double a, double k, double u) noexcept nogil:
    """The u with log(1/u - 1) + a - k u = 0, k >= 0, from a guess.

    By safeguarded Newton in t = log(u / (1 - u)), where the function is nearly straight
    at both ends; in u its slope has no bound there.
    """
    cdef double lo = a - k, hi = a, t = 0., s = u, g, step
    cdef int _
    if 0. < u < 1.:
        t = log(u / (1. - u))
    if not lo < t < hi:
        t = 0.5 * (lo + hi)
    for _ in range(100):
        s = sigmoid(t)
        g = a - t - k * s
        if g > 0:
            lo = t
        else:
            hi = t
        step = g / (1. + k * s * (1. - s))
        if fabs(step) <= 1e-7:
            # What is left after this step is below its square: s follows by its slope.
            return s + s * (1. - s) * step
        if lo < t + step < hi:
            t += step
        else:
            t = 0.5 * (lo + hi)
        if hi - lo <= 1e-15 * (fabs(lo) + fabs(hi)):
            break
    return sigmoid(t)


cdef inline double coordinate_optimum(
    const Potential* p, double level, double rate, double weight,
    double lam, double margin, double k
) noexcept nogil:
    """argmax over one multiplier, all others fixed.

    `margin` is the row's margin at multiplier `lam`; moving to lam' changes it by
    k (lam' - lam), k >= 0.  Solves phi'(lam') = margin + k (lam' - lam), lam' >= 0.
    """
    cdef double scale = weight * rate, a, s, q, lo, hi, u, g, step, curvature
    cdef int _
    if p.kind == EXPONENTIAL or p.kind == ERLANG:
        # quadratic in s = scale - lam'; the root without cancellation
        q = weight if p.kind == EXPONENTIAL else weight * p.shape
        a = level - margin - k * (scale - lam)
        s = sqrt(a * a + 4. * k * q)
        if a > 0:
            s = 2. * q / (a + s)
        elif k > 0:
            s = (s - a) / (2. * k)
        else:
            return 0.
        return scale - s if s < scale else 0.
    if p.kind == GAUSSIAN:
        # phi' = level - lam / (weight rate^2)
        s = (level - margin + k * lam) / (k + 1. / (scale * rate))
        return s if s > 0 else 0.
    if p.kind == HINGE or p.kind == FIXED:
        a = level - margin
        if k > 0:
            s = lam + a / k
        else:
            s = lam if a == 0 else (INFINITY if a > 0 else 0.)
        if s > scale * p.upper:
            return scale * p.upper
        return s if s > 0 else 0.
    a = level - margin + k * lam
    if p.kind == LOGISTIC:
        return scale * logistic_optimum(rate * a, rate * k * scale, lam / scale)
    # safeguarded Newton in u on the decreasing slope of the one-variable dual
    if a + potential_slope(p, 0.) / rate <= 0:
        return 0.
    lo = 0.
    hi = p.upper
    if hi == INFINITY:
        hi = 1.
        while a + potential_slope(p, hi) / rate - k * hi * scale > 0 and hi < 1e300:
            lo = hi
            hi *= 4.
    u = lam / scale
    if not lo < u < hi:
        u = 0.5 * (lo + hi)
    for _ in range(100):
        g = a + potential_derivatives(p, u, &curvature) / rate - k * u * scale
        if g > 0:
            lo = u
        else:
            hi = u
        step = g / (curvature / rate + k * scale)
        if fabs(step) <= 1e-13 * fmin(u, p.upper - u):
            break
        if lo < u + step < hi:
            u += step
        else:
            u = 0.5 * (lo + hi)
        if hi - lo <= 1e-15 * hi:
            break
    return u * scale


cdef Potential unpack_potential(tuple spec) except *
