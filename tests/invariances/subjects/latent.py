"""Maximum entropy, with hidden variables and without."""

import warnings

import numpy as np
from invariances import data as kinds
from invariances.subjects.models import moments
from invariances.subjects.table import EM, answers_of, dense, estimator, subject

from maxent import latent

estimator("MaxEntClassifier", kinds.three, latent.MaxEntClassifier(tol=1e-9))
estimator(
    "MaxEntClassifier, without penalty",
    kinds.three,
    latent.MaxEntClassifier(C=np.inf, tol=1e-9),
)
estimator(
    "LMEGaussianMixture",
    kinds.two_groups,
    latent.LMEGaussianMixture(2, n_init=4, random_state=0, tol=1e-9),
    EM,
)
estimator(
    "LMEGaussianMixture, likelihood",
    kinds.two_groups,
    latent.LMEGaussianMixture(
        2, selection="likelihood", prior="weak", n_init=4, random_state=0, tol=1e-9
    ),
    EM,
)
subject(
    "LMEGaussianMixture, prior",
    kinds.two_groups,
    lambda data: fit_with_prior(data.X),
    answers_of,
    EM,
    covers=("MixturePrior",),
)


def fit_with_prior(X):
    """One component, with a prior that is as wide as all rows."""
    prior = latent.MixturePrior(*moments(X))
    return latent.LMEGaussianMixture(1, prior=prior, tol=1e-9).fit(X)


estimator(
    "LMEGaussianMixture, spherical",
    kinds.two_groups,
    latent.LMEGaussianMixture(2, "spherical", n_init=4, random_state=0, tol=1e-9),
    EM,
)
estimator(
    "LMEDirichletMixture",
    kinds.shares,
    latent.LMEDirichletMixture(1, n_init=4, random_state=0, tol=1e-9),
    EM,
)
estimator(
    "LMEBoltzmannMachine",
    kinds.bits,
    latent.LMEBoltzmannMachine(1, n_init=4, random_state=0, tol=1e-9),
    EM,
)
estimator(
    "LMERBM", kinds.bits, latent.LMERBM(1, n_init=4, random_state=0, tol=1e-9), EM
)
estimator(
    "TrigramTopicModel",
    kinds.documents,
    latent.TrigramTopicModel(1, 1, random_state=0, tol=1e-7),
    EM,
    answers=lambda model, query: {
        "scores": [np.sum(model.log_prob(words)) for words in query]
    },
)


# -- maximum entropy -------------------------------------------------------------------
def means(F):
    """Targets inside the hull of the rows, whatever their order."""
    F = dense(F)
    return 0.7 * F.mean(axis=0) + 0.3 * F[standard(F).sum(axis=1).argmax()]


def standard(F):
    """Columns without unit and origin."""
    return (F - F.mean(axis=0)) / np.std(F, axis=0)


def maxent_answers(result, query):
    return {"rows": result.prob, "scores": result.entropy}


subject(
    "fit_maxent",
    kinds.table,
    lambda data: latent.fit_maxent(data.X, means(data.X), tol=1e-10),
    maxent_answers,
    1e-6,
    covers=("MaxEntResult",),
)
subject(
    "MaxEntModel",
    kinds.table,
    lambda data: latent.MaxEntModel.fit(data.X, means(data.X), tol=1e-10).fit_result,
    maxent_answers,
    1e-6,
)


def rows_of(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def sampled(data):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the effective sample size")
        return latent.SampledMaxEnt.fit(
            data.X, means(data.X), log_density=np.zeros(rows_of(data.X)), tol=1e-10
        ).fit_result


subject("SampledMaxEnt", kinds.table, sampled, maxent_answers, 1e-6)


def observations(data):
    """How often each observed value occurs: a function of its features."""
    size = standard(np.asarray(data.X, dtype=float)[:, 0]).sum(axis=1)
    return np.arange(len(data.X)), 4.0 + np.arctan(size)


def by_em_is(data):
    values, shares = observations(data)
    model = latent.FiniteLatentModel(data.X)
    zero = np.zeros(np.shape(data.X)[-1])
    options = {"sample_weight": shares, "tol": 1e-9, "method": "newton"}
    return latent.em_is(model, values, zero, **options)


subject(
    "em_is",
    kinds.latent_features,
    by_em_is,
    lambda result, query: {"scores": [result.log_likelihood, result.entropy]},
    EM,
    covers=("FiniteLatentModel", "EMISResult", "LogLinearModel"),
)


def by_latent_maxent(data):
    values, shares = observations(data)
    machine = latent.LatentMaxEnt(data.X, n_init=4, random_state=0, tol=1e-8)
    return machine.fit(values, sample_weight=shares)


subject(
    "LatentMaxEnt",
    kinds.latent_features,
    by_latent_maxent,
    lambda machine, query: {"scores": [machine.log_likelihood_, machine.entropy_]},
    EM,
)
