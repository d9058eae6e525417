"""The bias of smallest gap: of an interval of best ones the middle, or zero in it."""

import numpy as np
import pytest
from problems import PRIORS, by_name
from scipy.optimize import minimize_scalar

from maxent._optimize.bias import best_bias
from maxent._optimize.rows import Rows
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    HingeMargin,
    LaplaceMargin,
)


def rows_of(margin, n, weight=None):
    weight = np.ones(n) if weight is None else weight
    return Rows.of(margin, weight)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
@pytest.mark.parametrize("guess", [0.0, 3.0, -200.0])
def test_no_other_bias_has_a_smaller_loss(margin, guess, soft, rng):
    n = 40
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    if soft:  # means of uncertain labels, some of them zero
        sign *= np.where(np.arange(n) % 5 == 4, 0.0, rng.uniform(0.2, 1.0, n))
    weight = rng.uniform(0.5, 2.0, n)
    # classes that overlap: a single best point, or a short interval of a hinge
    d = 1.0 + rng.normal(size=n)
    rows = rows_of(margin, n, weight)

    def loss(b):
        return float(weight @ margin.loss(margin.level - (d - sign * b)))

    b = best_bias(rows, d, sign, guess)
    best = minimize_scalar(loss, bounds=(-40, 40), options={"xatol": 1e-10})
    assert loss(b) <= best.fun * (1 + 1e-12) + 1e-12


# the ends of the losses, in units of the shortfall d: no loss below
ENDS = [
    (HingeMargin(), 0.0),
    (ExponentialMargin(4.0), 0.25),
    (ErlangMargin(3, rate=4.0), 0.75),
    (LaplaceMargin(4.0), 0.0),
]


@pytest.mark.parametrize(("margin", "end"), ENDS, ids=by_name)
@pytest.mark.parametrize("guess", [0.0, 0.7, 5.0])
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-1.0, 2.0, 0.0), (0.5, 2.0, 1.25), (-3.0, -1.0, -2.0), (0.0, 1.0, 0.0)],
)
def test_of_an_interval_without_loss_the_middle_or_zero(
    margin, end, guess, low, high, expected
):
    # +1 rows lose nothing from b = d - end on, -1 rows up to b = end - d
    sign = np.array([1.0, 1.0, -1.0, -1.0])
    d = np.array([low + end, low + end - 1.0, end - high, end - high - 1.0])
    b = best_bias(rows_of(margin, 4), d, sign, guess)
    assert b == pytest.approx(expected, abs=1e-9)


def test_fixed_margins_get_the_bias_of_the_largest_smallest_margin():
    sign = np.array([1.0, 1.0, -1.0])
    d = np.array([0.3, -1.0, -0.9])
    b = best_bias(rows_of(FixedMargin(), 3), d, sign)
    assert b == pytest.approx(0.6)
    worst = (d - sign * b).max()
    assert worst == pytest.approx(-0.3)


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_with_one_sign_alone_the_bias_stays_finite(margin, sign):
    # the loss falls for ever in one direction
    rows = rows_of(margin, 3)
    b = best_bias(rows, np.ones(3), np.full(3, sign), 0.4)
    assert np.isfinite(b)
    before, after = (rows.loss(1.0 - np.full(3, sign) * x)[0] for x in (0.4, b))
    assert after <= before
