"""Margin priors from the parameters of estimators: `margin`, `C`, `sharpness`, `level`.

The scale of C and sharpness is described in :doc:`/guide/margins`.
"""

from __future__ import annotations

import math

from maxent._support import validation as v
from maxent.discrimination.margins.base import MarginPrior, check_positive_mean
from maxent.discrimination.margins.priors import (
    MARGINS,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    UniformExponentialMargin,
)

_GENERATIVE = (
    "exponential",
    "erlang",
    "laplace",
    "gaussian",
    "logistic",
    "hinge",
    "fixed",
)


def classification_margin(margin, sharpness):
    """Prior meant by a classifier's `margin` and `sharpness`; checked.

    The prior mean must be positive: otherwise zero multipliers satisfy it.
    """
    if isinstance(margin, MarginPrior):
        prior = margin
    else:
        known = ("exponential", "erlang", "laplace", "gaussian", "logistic")
        _check_name(margin, (*known, "fixed", "hinge"), ", in classification")
        if margin in ("exponential", "erlang", "laplace"):
            if not (v.is_real(sharpness) and 1 < sharpness < math.inf):
                raise ValueError(
                    f"sharpness={v.shown(sharpness)} must be a finite number > 1: with "
                    "sharpness <= 1 the mean margin is not positive and every "
                    "multiplier is zero."
                )
            prior = MARGINS[margin](rate=sharpness, level=1.0)
        elif margin == "gaussian":
            prior = GaussianMargin(rate=1.0, level=1.0)
        else:
            prior = MARGINS[margin]()
    check_positive_mean(prior)
    return prior


def regression_margin(margin, sharpness, epsilon):
    """Prior of finite loss meant by a regressor's margin, sharpness, epsilon."""
    epsilon = v.check_nonnegative("epsilon", epsilon)
    if isinstance(margin, MarginPrior):
        if margin.prior_mean > 0:
            raise ValueError(
                f"{margin!r} has mean margin {margin.prior_mean:g} > 0: a regression "
                "tube needs level = -epsilon <= 0."
            )
        if not margin.unit_potential.finite_loss:
            raise ValueError(
                f"margin={margin!r} has no finite loss to prove a regression by; use "
                "margin='hinge' with a large C for a hard tube."
            )
        return margin
    known = ("exponential", "erlang", "laplace", "gaussian", "uniform_exponential")
    _check_name(margin, (*known, "hinge"), ", in regression")
    if margin == "hinge":
        return HingeMargin(level=-epsilon)
    if margin == "gaussian":
        return GaussianMargin(rate=1.0, level=-epsilon)
    sharpness = v.check_positive("sharpness", sharpness)
    if margin == "uniform_exponential":
        if epsilon == 0:
            return ExponentialMargin(rate=sharpness, level=0.0)
        return UniformExponentialMargin(width=epsilon, rate=sharpness, level=0.0)
    return MARGINS[margin](rate=sharpness, level=-epsilon)


def _check_name(margin, names, what):
    if not isinstance(margin, str) or margin not in names:
        raise v.unknown("margin", margin, names, f", or a MarginPrior object{what}")


def generative_margin(margin, C, level):
    """(prior, level or None, weight of a row): the prior of rate C that `margin` names.

    An object stays as it is. A hinge has no rate; its multipliers end at the weight.
    """
    C = v.check_positive("C", C)
    if level is not None:
        level = v.check_number("level", level)
    if isinstance(margin, MarginPrior):
        return margin, margin.level if level is None else level, 1.0
    if not (isinstance(margin, str) and margin in _GENERATIVE):
        raise v.unknown("margin", margin, _GENERATIVE, ", or a MarginPrior object")
    if margin in ("hinge", "fixed"):
        return MARGINS[margin](level=1.0), level, C if margin == "hinge" else 1.0
    return MARGINS[margin](rate=C, level=1.0), level, 1.0


def at_level(margin, level):
    """The prior moved to the level that holds, as errors are to show it."""
    return margin.with_level(level) if margin.has_level else margin


def free_margin(margin):
    """Distance of the level from the mean margin, above which nothing is lost."""
    return margin.level - margin.prior_mean
