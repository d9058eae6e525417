"""Margin priors as objects: specifications, constants, names of estimators."""

import math
import re

import pytest
from discrimination.margins.margin_cases import every
from refusals import refusals

from maxent.discrimination import (
    CustomMargin,
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    MarginPrior,
    UniformExponentialMargin,
    margin_from_spec,
)
from maxent.discrimination._margin_parameters import (
    classification_margin,
    regression_margin,
)
from maxent.discrimination.margins.base import check_positive_mean
from maxent.discrimination.margins.priors import MARGINS

# ------------------------------------------------------------- objects


@every
def test_spec_repr_equality_and_hash(prior):
    again = margin_from_spec(prior.get_spec())
    assert again == prior
    assert hash(again) == hash(prior)
    assert eval(repr(prior)) == prior
    assert prior != ExponentialMargin(123.0)
    assert isinstance(prior, MarginPrior)
    assert MARGINS[prior.name] is type(prior)


@pytest.mark.parametrize("spec", [None, {}, {"name": "cauchy"}, "exponential", 3])
def test_unknown_specs_are_named(spec):
    with pytest.raises(ValueError, match="known names"):
        margin_from_spec(spec)


test_bad_constants_are_named = refusals(
    [
        (lambda: ExponentialMargin(0.0), "rate=0"),
        (lambda: ExponentialMargin(-1.0), "rate=-1"),
        (lambda: ExponentialMargin(math.nan), "rate=nan"),
        (lambda: LaplaceMargin(math.inf), "rate=inf"),
        (lambda: GaussianMargin(1.0, math.inf), "level=inf"),
        (lambda: FixedMargin(math.nan), "level=nan"),
        (lambda: HingeMargin(-math.inf), "level=-inf"),
        (lambda: ErlangMargin(0), "shape=0"),
        (lambda: ErlangMargin(math.nan), "shape=nan"),
        (lambda: UniformExponentialMargin(0.0), "width=0"),
        (lambda: UniformExponentialMargin(-0.1), "width=-0.1"),
    ]
)


@pytest.mark.parametrize("value", ["a", None, 1j, [1.0]])
def test_constants_of_the_wrong_kind_are_named(value):
    for make, name in (
        (ExponentialMargin, "rate"),
        (FixedMargin, "level"),
        (ErlangMargin, "shape"),
        (UniformExponentialMargin, "width"),
        (lambda upper: CustomMargin(abs, abs, abs, upper=upper), "upper"),
        (lambda sharpness: classification_margin("laplace", sharpness), "sharpness"),
        (lambda sharpness: regression_margin("laplace", sharpness, 0.1), "sharpness"),
    ):
        said = re.escape(f"{name}={value!r} must be ")
        with pytest.raises(ValueError, match=said):
            make(value)


@pytest.mark.parametrize(
    ("prior", "asks"),
    [
        (ExponentialMargin(1.0, 1.0), False),
        (ExponentialMargin(1.0 + 1e-9, 1.0), True),
        (ExponentialMargin(5.0, 0.2), False),
        (ErlangMargin(2, 2.0, 1.0), False),
        (ErlangMargin(2, 2.01, 1.0), True),
        (LaplaceMargin(5.0, 0.0), False),
        (LaplaceMargin(5.0, 1e-9), True),
        (GaussianMargin(5.0, -1.0), False),
        (FixedMargin(0.0), False),
        (HingeMargin(1e-9), True),
        (LogisticMargin(1.0, -50.0), True),
    ],
    ids=str,
)
def test_priors_that_ask_for_nothing_are_refused(prior, asks):
    if asks:
        check_positive_mean(prior)
        assert classification_margin(prior, None) is prior
    else:
        with pytest.raises(ValueError, match="not positive"):
            check_positive_mean(prior)
        with pytest.raises(ValueError, match="not positive"):
            classification_margin(prior, None)


@pytest.mark.parametrize("sharpness", [1.0, 0.5, -3.0, math.nan, math.inf, None, [5.0]])
def test_sharpness_must_exceed_one(sharpness):
    for name in ("exponential", "laplace", "erlang"):
        with pytest.raises(ValueError, match="sharpness"):
            classification_margin(name, sharpness)


@pytest.mark.parametrize("prior", [LogisticMargin(), ExponentialMargin(5.0, 1.0)])
def test_regression_refuses_positive_mean_margins(prior):
    with pytest.raises(ValueError, match="tube"):
        regression_margin(prior, 10.0, 0.1)


def test_names_of_estimators_become_priors():
    assert classification_margin("exponential", 7.0) == ExponentialMargin(7.0, 1.0)
    assert classification_margin("gaussian", 7.0) == GaussianMargin(1.0, 1.0)
    assert classification_margin("logistic", 7.0) == LogisticMargin(1.0, 0.0)
    assert regression_margin("hinge", 7.0, 0.3) == HingeMargin(-0.3)
    assert regression_margin("laplace", 7.0, 0.3) == LaplaceMargin(7.0, -0.3)
    tube = regression_margin("uniform_exponential", 7.0, 0.3)
    assert tube == UniformExponentialMargin(0.3, 7.0)
    no_tube = regression_margin("uniform_exponential", 7.0, 0)
    assert no_tube == ExponentialMargin(7.0, 0.0)
