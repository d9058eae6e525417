"""The built-in margin priors rebuilt from functions, as a user would write them."""

import functools
import math

import numba

from maxent.discrimination import (
    CustomMargin,
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
)


def exponential(c, level, k=1.0):
    return CustomMargin(
        lambda t: level * t + k * math.log1p(-t / c),
        lambda t: level - k / (c - t),
        lambda t: k / (c - t) ** 2,
        upper=c,
    )


def laplace(c, level):
    return CustomMargin(
        lambda t: level * t + math.log1p(-t / c) + math.log1p(t / c),
        lambda t: level - 1.0 / (c - t) + 1.0 / (c + t),
        lambda t: 1.0 / (c - t) ** 2 + 1.0 / (c + t) ** 2,
        upper=c,
    )


def gaussian(c, level):
    return CustomMargin(
        lambda t: level * t - 0.5 * (t / c) ** 2,
        lambda t: level - t / c**2,
        lambda t: 1.0 / c**2,
    )


def logistic(c, level):
    def value(t):
        u = t / c
        if u <= 0.0 or u >= 1.0:
            return level * t
        return level * t - u * math.log(u) - (1.0 - u) * math.log1p(-u)

    def slope(t):
        u = t / c
        if u <= 0.0:
            return math.inf
        if u >= 1.0:
            return -math.inf
        return level + (math.log1p(-u) - math.log(u)) / c

    def curvature(t):
        u = t / c
        if u <= 0.0 or u >= 1.0:
            return math.inf
        return 1.0 / (u * (1.0 - u)) / c**2

    return CustomMargin(value, slope, curvature, upper=c)


def linear(level, upper):
    return CustomMargin(
        lambda t: level * t, lambda t: level, lambda t: 0.0, upper=upper
    )


def tube(width, c):
    """Tolerance uniform on [0, width], exponential beyond, at level zero."""

    @numba.njit
    def tail(t):
        head = width if t == 0.0 else -math.expm1(-width * t) / t
        return head + 1.0 / (c - t)

    def value(t):
        return math.log(width + 1.0 / c) - width * t - math.log(tail(t))

    @numba.njit
    def first(t):
        x = width * t
        if x < 1e-3:
            d = width**2 * (-0.5 + x / 3.0 - x * x / 8.0 + x**3 / 30.0)
        else:
            d = (x * math.exp(-x) + math.expm1(-x)) / (t * t)
        return d + 1.0 / (c - t) ** 2

    @numba.njit
    def second(t):
        x = width * t
        if x < 1e-2:
            d = width**3 * (1.0 / 3.0 - x / 4.0 + x * x / 10.0 - x**3 / 36.0)
        else:
            e = math.exp(-x)
            d = (-2.0 * math.expm1(-x) - 2.0 * x * e - x * x * e) / t**3
        return d + 2.0 / (c - t) ** 3

    return CustomMargin(
        value,
        lambda t: -width - first(t) / tail(t),
        lambda t: second(t) / tail(t) - (first(t) / tail(t)) ** 2,
        upper=c,
    )


# name -> a function that makes the built-in prior and the same from functions, which
# are compiled once, by the test that needs them; levels suit classification
CLASSIFICATION = {
    "exponential": lambda: (ExponentialMargin(5.0, 1.0), exponential(5.0, 1.0)),
    "erlang": lambda: (ErlangMargin(2, 8.0, 1.0), exponential(8.0, 1.0, 2.0)),
    "laplace": lambda: (LaplaceMargin(4.0, 1.0), laplace(4.0, 1.0)),
    "gaussian": lambda: (GaussianMargin(2.0, 1.0), gaussian(2.0, 1.0)),
    "logistic": lambda: (LogisticMargin(3.0, 0.0), logistic(3.0, 0.0)),
    "hinge": lambda: (HingeMargin(1.0), linear(1.0, 1.0)),
    "fixed": lambda: (FixedMargin(1.0), linear(1.0, math.inf)),
}
CLASSIFICATION = {name: functools.cache(f) for name, f in CLASSIFICATION.items()}

# and regression: mean margins at most zero
REGRESSION = {
    "exponential": lambda: (ExponentialMargin(5.0, -0.1), exponential(5.0, -0.1)),
    "erlang": lambda: (ErlangMargin(2, 8.0, 0.0), exponential(8.0, 0.0, 2.0)),
    "laplace": lambda: (LaplaceMargin(4.0, -0.1), laplace(4.0, -0.1)),
    "gaussian": lambda: (GaussianMargin(2.0, -0.1), gaussian(2.0, -0.1)),
    "hinge": lambda: (HingeMargin(-0.1), linear(-0.1, 1.0)),
    "uniform_exponential": lambda: (
        UniformExponentialMargin(0.1, 10.0),
        tube(0.1, 10.0),
    ),
}
REGRESSION = {name: functools.cache(f) for name, f in REGRESSION.items()}
