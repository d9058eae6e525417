"""Emissions of hidden Markov models to and from those of hmmlearn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent.families import (
    Categorical,
    DiagonalGaussian,
    ExponentialFamily,
    Gaussian,
    Independent,
    Multinomial,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.families.gaussian import AnyGaussian
from maxent.models._chain_input import check_kind, hmmlearn
from maxent.models.mixtures import Mixtures

if TYPE_CHECKING:
    from maxent.models.chains.hidden_markov import HiddenMarkovModel


def emission_of_peer(model: Any) -> ExponentialFamily | Mixtures:
    """Emissions of a fitted Poisson, multinomial or mixture model of hmmlearn."""
    emission: ExponentialFamily | Mixtures
    if type(model).__name__ == "GMMHMM":
        check_kind(model, "GMMHMM", "weights_")
        emission = _mixtures_of(model)
    elif type(model).__name__ == "MultinomialHMM":
        check_kind(model, "MultinomialHMM", "emissionprob_")
        total = np.unique(model.n_trials)
        if len(total) > 1:
            raise ValueError(
                f"model has n_trials={v.shown(total.tolist())}; one number of "
                "trials is expected."
            )
        emission = Multinomial(model.emissionprob_, int(total[0]))
    else:
        check_kind(model, "PoissonHMM", "lambdas_")
        rates = np.asarray(model.lambdas_)
        one = rates.shape[1] == 1
        emission = Poisson(rates[:, 0]) if one else Independent(Poisson(rates))
    return emission


def _mixtures_of(model: Any) -> Mixtures:
    """Emissions of a fitted ``GMMHMM`` of hmmlearn."""
    mean, cov = np.asarray(model.means_), np.asarray(model.covars_)
    (S, M, d), kind = mean.shape, model.covariance_type
    if kind == "tied":  # one matrix for the components of a state
        cov = np.broadcast_to(cov[:, None], (S, M, d, d))
    families = {"diag": DiagonalGaussian, "spherical": SphericalGaussian}
    return Mixtures(model.weights_, families.get(kind, Gaussian)(mean, cov))


def peer_of(model: HiddenMarkovModel) -> Any:
    """Model of hmmlearn with the emissions of a model."""
    n, emission = model.n_states, model.emission
    if isinstance(emission, Categorical):
        out = hmmlearn().CategoricalHMM(n, n_features=emission.prob.shape[1])
        out.emissionprob_ = np.array(emission.prob)
    elif isinstance(emission, AnyGaussian):
        spreads = _spreads(emission)
        out = hmmlearn().GaussianHMM(n, covariance_type=_covariances(emission))
        out.means_, out.n_features = np.array(emission.mean), emission.mean.shape[1]
        out.covars_ = np.array(
            spreads[0] if isinstance(emission, TiedGaussian) else spreads
        )
    elif isinstance(emission, Poisson) or _are_counts(emission):
        counts = emission if isinstance(emission, Poisson) else emission.members
        out = hmmlearn().PoissonHMM(n)
        out.lambdas_ = np.array(counts.rate).reshape(n, -1)
        out.n_features = out.lambdas_.shape[1]
    elif isinstance(emission, Multinomial):
        out = hmmlearn().MultinomialHMM(n, n_trials=int(emission.total))
        out.emissionprob_ = np.array(emission.prob)
        out.n_features = emission.prob.shape[1]
    elif isinstance(emission, Mixtures) and isinstance(
        emission.components, AnyGaussian
    ):
        parts = emission.components
        kind = _covariances(parts).replace("tied", "full")
        M, d = parts.mean.shape[1:]
        out = hmmlearn().GMMHMM(n, M, covariance_type=kind)
        out.n_features, out.weights_ = d, np.array(emission.weights)
        out.means_, out.covars_ = np.array(parts.mean), np.array(_spreads(parts))
    else:
        raise TypeError(
            f"hmmlearn has no model whose states show {v.shown(emission)}; it has "
            "categories, Gaussians, mixtures of them, Poisson and multinomial counts."
        )
    return out


def _covariances(gaussians: AnyGaussian) -> str:
    """hmmlearn's word for the covariances of Gaussians."""
    if isinstance(gaussians, DiagonalGaussian):
        return "diag"
    if isinstance(gaussians, SphericalGaussian):
        return "spherical"
    return "tied" if isinstance(gaussians, TiedGaussian) else "full"


def _spreads(gaussians: AnyGaussian) -> Any:
    """Variances of diagonal and spherical Gaussians, else covariances."""
    diagonal = isinstance(gaussians, (DiagonalGaussian, SphericalGaussian))
    return gaussians.var if diagonal else gaussians.cov  # type: ignore[attr-defined]


def _are_counts(emission: Any) -> bool:
    """True of independent columns of Poisson counts."""
    return isinstance(emission, Independent) and isinstance(emission.members, Poisson)
