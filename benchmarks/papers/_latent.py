"""What the experiments of the latent maximum entropy paper share.

Trials over sample sizes, each from one pool of candidates: the choice by entropy (LME)
and by likelihood (MLE), with the gates and without them.
"""

import warnings

import numpy as np
from _results import column, mean_and_error, parser, share

CHOICES = ("entropy", "likelihood")


def arguments(doc, draws, sizes, starts):
    """Options, to be parsed."""
    out = parser(doc, draws)
    if sizes:
        out.add_argument("--sizes", type=int, nargs="+", default=sizes)
    out.add_argument("--starts", type=int, default=starts)
    return out


def rate(sizes, means):
    """Slope of log divergence against log size by least squares: minus the rate."""
    sizes, means = np.asarray(sizes, float), np.asarray(means)
    at = np.isfinite(means) & (means > 0)
    if at.sum() < 2:
        return np.nan
    return float(np.polyfit(np.log(sizes[at]), np.log(means[at]), 1)[0])


def fitted(estimator, X):
    """Fitted estimator, None if the gates reject every candidate."""
    from maxent.latent import NoAdmissibleCandidateError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator.fit(X)
    except NoAdmissibleCandidateError:
        return None


def both(model, log_density, test, base):
    """Divergence, likelihood and entropy of both choices, as columns of a trial."""
    out = {}
    for choice in CHOICES if model is not None else ():
        own = model.select(choice)
        out[f"{choice} divergence"] = base - float(log_density(own, test).mean())
        out[f"{choice} log_likelihood"] = own.log_likelihood_
        out[f"{choice} entropy"] = own.entropy_
    return out | counts(model)


def counts(model):
    """How many candidates were admitted, and rejected by each gate, as columns."""
    if model is None:
        return {}
    admitted = int((model.candidates_["reason"] == "").sum())
    return {"admitted": admitted} | model.rejected_


def compared(mle, lme, digits):
    """Cells: divergences of both, paired difference, how often LME is better."""
    known = np.isfinite(mle) & np.isfinite(lme)
    differ = known & (np.abs(mle - lme) > 1e-6)
    return [
        *(mean_and_error(each, digits) for each in (mle, lme, mle - lme)),
        f"{share(np.where(differ, lme < mle, np.nan))} of {differ.sum()}",
    ]


def size_display(rows, sizes, what, ylabel):
    """Display of a column of both choices against sizes."""
    from maxent.displays import SampleSizeDisplay

    def own(choice):
        name = f"{choice} {what}"
        return np.stack([column(rows, name, size=n) for n in sizes], axis=1)

    return SampleSizeDisplay(sizes, {c: own(c) for c in CHOICES}, ylabel=ylabel)
