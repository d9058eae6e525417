"""Margin priors made of functions, against the named ones."""

import math

import numpy as np
import pytest
from discrimination.margins.custom_margins import linear
from discrimination.margins.margin_cases import margins_around, multipliers

from maxent.datasets import load_crabs
from maxent.discrimination import (
    CustomMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    solve_kernel_dual,
)

# ------------------------------------------------------------- custom priors


@pytest.fixture(scope="module")
def exponential():
    return CustomMargin(
        lambda lam: lam + math.log1p(-lam / 5.0),
        lambda lam: 1.0 - 1.0 / (5.0 - lam),
        lambda lam: 1.0 / (5.0 - lam) ** 2,
        upper=5.0,
    )


@pytest.fixture(scope="module")
def gaussian():
    return CustomMargin(
        lambda lam: lam - lam * lam / 8.0, lambda lam: 1.0 - lam / 4.0, lambda lam: 0.25
    )


@pytest.mark.parametrize("name", ["exponential", "gaussian"])
def test_custom_priors_equal_the_named_ones(name, request):
    mine = request.getfixturevalue(name)
    named = {"exponential": ExponentialMargin(5.0), "gaussian": GaussianMargin(2.0)}
    named = named[name]
    lam, m = multipliers(named)[:-1], margins_around(named)
    np.testing.assert_allclose(mine.potential(lam), named.potential(lam), rtol=1e-13)
    np.testing.assert_allclose(mine.mean(lam), named.mean(lam), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(mine.curvature(lam), named.curvature(lam), rtol=1e-13)
    np.testing.assert_allclose(mine.loss(m), named.loss(m), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(
        mine.loss_slope(m), named.loss_slope(m), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(
        mine.fenchel_young(lam[:4], m[:4]),
        named.fenchel_young(lam[:4], m[:4]),
        rtol=1e-9,
    )
    assert mine.upper == named.upper
    assert mine.prior_mean == pytest.approx(named.prior_mean)


@pytest.mark.parametrize("size", [1e20, 1e160])
def test_losses_of_custom_priors_grow_linearly_too(exponential, size):
    assert exponential.loss(-size) == pytest.approx(5.0 * size, rel=1e-12)
    assert math.isnan(exponential.loss(math.nan))
    assert math.isnan(exponential.fenchel_young(1.0, math.nan))
    # the functions themselves change their signs beyond the upper end
    assert exponential.mean(5.0 + 1e-9) == -math.inf


def test_custom_priors_refuse_what_they_cannot_do(exponential):
    with pytest.raises(ValueError, match="level"):
        exponential.with_level(2.0)
    with pytest.raises(ValueError, match="compiled functions"):
        exponential.get_spec()


def identity(lam):
    return lam


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((lambda t: t + 1.0, lambda t: 1.0, lambda t: 0.0), "potential"),
        ((identity, lambda t: 2.0, lambda t: 0.0), "mean"),
        ((identity, lambda t: 1.0, lambda t: 3.0), "curvature"),
        ((lambda t: t * t, lambda t: 2.0 * t, lambda t: -2.0), "phi''"),
        ((lambda t: math.nan, lambda t: 1.0, lambda t: 0.0), "finite"),
    ],
)
def test_custom_functions_that_do_not_belong_together_are_named(functions, message):
    with pytest.raises(ValueError, match=message):
        CustomMargin(*functions)


def test_custom_constructor_arguments_are_named():
    with pytest.raises(ValueError, match="upper"):
        CustomMargin(identity, identity, identity, upper=0.0)
    with pytest.raises(TypeError, match="mean"):
        CustomMargin(identity, 3.0, identity)


def test_custom_priors_reach_other_processes(exponential):
    """With their functions, not the addresses that these have in this process."""
    from sklearn.base import clone

    from maxent import MEDClassifier

    exponential.unit_potential  # noqa: B018  (computed once, with addresses)
    make, given = exponential.__reduce__()
    again = make(*given)
    assert again.core_spec != exponential.core_spec
    lam = np.linspace(0.0, 4.9, 7)
    np.testing.assert_array_equal(again.potential(lam), exponential.potential(lam))
    assert clone(MEDClassifier(margin=exponential)).margin is exponential


@pytest.mark.parametrize("upper", [0.2, 1.0, 5.0])
def test_a_straight_potential_is_a_hinge_at_any_upper_bound(upper):
    margin = linear(1.0, upper)
    assert margin.upper == upper and margin.parameters()["upper"] == upper
    assert margin.unit_weight(3.0) * margin.upper == pytest.approx(3.0)
    X, y = load_crabs(return_X_y=True)
    hinge = solve_kernel_dual(
        X, 2 * y - 1, HingeMargin(1.0), sample_weight=np.full(len(y), 3.0)
    )
    weight = np.full(len(y), margin.unit_weight(3.0))
    own = solve_kernel_dual(X, 2 * y - 1, margin, sample_weight=weight)
    np.testing.assert_allclose(own.objective, hinge.objective, rtol=1e-6)
