"""Renyi scores in 60 digits, written apart from the code."""

import mpmath

DIGITS = 60


def score_and_weights(s, alpha):
    """F and beta of finite scores by the definitions, as Python floats."""
    with mpmath.workdps(DIGITS):
        s = [mpmath.mpf(float(x)) for x in s if x > -mpmath.inf]
        top = max(s)
        if alpha == float("inf"):
            ties = [x == top for x in s]
            return float(top), [float(t) / sum(ties) for t in ties]
        a = mpmath.mpf(alpha)
        e = [mpmath.exp(x - top) for x in s]
        Z = mpmath.fsum(e)
        p = [x / Z for x in e]
        if a == 0:
            return float(top + mpmath.log(Z / len(s))), [float(x) for x in p]
        if a == 1:
            mean = mpmath.fsum(x * y for x, y in zip(p, s))
            return float(mean), [float(x * (1 + y - mean)) for x, y in zip(p, s)]
        u = [mpmath.exp(a * (x - top)) for x in s]
        Za = mpmath.fsum(u)
        F = top + (mpmath.log(Za) - mpmath.log(Z)) / (a - 1)
        beta = [(a * x / Za - y) / (a - 1) for x, y in zip(u, p)]
        return float(F), [float(x) for x in beta]
