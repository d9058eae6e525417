"""Margin priors: potentials, conjugate losses, and their domains."""

from maxent.discrimination.margins.base import MarginPrior
from maxent.discrimination.margins.custom import CustomMargin
from maxent.discrimination.margins.priors import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
    margin_from_spec,
)
from maxent.discrimination.margins.quadrature import QuadratureMargin

__all__ = [
    "CustomMargin",
    "ErlangMargin",
    "ExponentialMargin",
    "FixedMargin",
    "GaussianMargin",
    "HingeMargin",
    "LaplaceMargin",
    "LogisticMargin",
    "MarginPrior",
    "QuadratureMargin",
    "UniformExponentialMargin",
    "margin_from_spec",
]
