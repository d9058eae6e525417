"""Models of rows, of sequences and of series."""

import inspect

import numpy as np
from invariances import data as kinds
from invariances.subjects.table import EM, FORMULA, alphabet, dense, subject

from maxent import families, models
from maxent import models as M


# -- models ----------------------------------------------------------------------------
def model(name, kind, fit, answers=None, tolerance=EM):
    words = inspect.signature(getattr(models, name.split(",")[0]).fit).parameters
    if kind in (kinds.one_series, kinds.one_series_with_holes):
        words = {"n_jobs"}
    more = {"weights": "weights", "n_jobs": "jobs", "lengths": "joined"}
    more = " ".join(group for word, group in more.items() if word in words)

    def run(data, **options):
        if data.weight is not None:
            options["weights"] = data.weight
        return fit(data.X, **options)

    def likelihood(fitted, query):
        return {"log_density": fitted.log_likelihood(query)}

    subject(name, kind, run, answers or likelihood, tolerance, more)


DRAWN = {"random_state": 0, "tol": 1e-10}
ABC = {"c": [], "a": ["c"], "d": ["a", "c"]}
model("Mixture", kinds.two_groups, lambda X, **o: M.Mixture.fit(X, **DRAWN, **o))
model(
    "Mixture, with holes",
    kinds.table_with_holes,
    lambda X, **o: M.Mixture.fit(X, random_state=0, tol=1e-12, **o),
    tolerance=1e-5,
)
model(
    "LinearGaussianNetwork, with holes",
    kinds.table_with_holes,
    lambda X, **o: M.LinearGaussianNetwork.fit(X, ["c", "a", "d"], ABC, **o),
)
for name, fit in {
    "GaussianHMM": lambda X, **o: M.GaussianHMM.fit(X, 2, **DRAWN, **o),
    "LinearDynamicalSystem": lambda X, **o: M.LinearDynamicalSystem.fit(
        X, 1, tol=1e-9, **o
    ),
}.items():
    model(f"{name}, with holes", kinds.series_with_holes, fit)
model(
    "Mixture, Poisson",
    kinds.whole,
    lambda X, **o: M.Mixture.fit(X, family=families.Poisson, **DRAWN, **o),
)
model(
    "CategoricalHMM",
    kinds.symbols,
    lambda X, **o: M.CategoricalHMM.fit(X, 2, **alphabet(X), **DRAWN, **o),
)
model(
    "MarkovChain",
    kinds.symbols,
    lambda X, **o: M.MarkovChain.fit(X, **alphabet(X), **o),
    tolerance=FORMULA,
)
model("GaussianHMM", kinds.series, lambda X, **o: M.GaussianHMM.fit(X, 2, **DRAWN, **o))
model(
    "HiddenMarkovModel",
    kinds.series,
    lambda X, **o: M.HiddenMarkovModel.fit(X, 2, **DRAWN, **o),
)
model(
    "HiddenMarkovModel, mixtures",
    kinds.series,
    lambda X, **o: M.HiddenMarkovModel.fit(X, 2, n_components=2, **DRAWN, **o),
)
model(
    "LinearDynamicalSystem",
    kinds.series,
    lambda X, **o: M.LinearDynamicalSystem.fit(X, 1, tol=1e-9, random_state=0, **o),
)
model(
    "SwitchingLDS",
    kinds.series,
    lambda X, **o: M.SwitchingLDS.fit(X, 2, 1, random_state=0, **o),
    answers=lambda fitted, query: {"log_density": fitted.lower_bound(query)},
)
model(
    "SwitchingLDS, init",
    kinds.series,
    lambda X, **o: M.SwitchingLDS.fit(X, init=regimes_of(X), tol=1e-3, **o),
    answers=lambda fitted, query: {"log_density": fitted.lower_bound(query)},
)
for name, kind in {
    "GaussianHMM, one series": kinds.one_series,
    "GaussianHMM, one series with holes": kinds.one_series_with_holes,
}.items():
    model(
        name,
        kind,
        lambda X, **o: M.GaussianHMM.fit(X, 2, **DRAWN, **o),
        answers=lambda fitted, query: {"scores": fitted.posterior(query)[0]},
    )
model(
    "FactorialHMM",
    kinds.series,
    lambda X, **o: M.FactorialHMM.fit(X, [2, 2], random_state=0, **o),
)
model("BayesNet", kinds.coded_signs, lambda X, **o: M.BayesNet.fit(X, ABC, **o))
model(
    "BayesNet, hidden",
    kinds.coded_signs,
    lambda X, **o: M.BayesNet.fit(
        X,
        {"h": [], "c": ["h"], "a": ["h"], "d": ["h"]},
        ["c", "a", "d"],
        n_categories={"h": 2},
        **DRAWN,
        **o,
    ),
)
model(
    "MarkovRandomField",
    kinds.coded_signs,
    lambda X, **o: M.MarkovRandomField.fit(X, [("c", "a"), ("a", "d")], **DRAWN, **o),
)
model(
    "LinearGaussianNetwork",
    kinds.table,
    lambda X, **o: M.LinearGaussianNetwork.fit(X, ["c", "a", "d"], ABC, **o),
)


def moments(x):
    x = dense(x)
    return x.mean(axis=0), np.cov(x.T)


def chains(X):
    return [M.GaussianHMM.fit([x], 1, smoothing=0.0) for x in X]


def systems(X):
    """Systems that go half of the way to the mean of each series."""
    out = []
    for mean, cov in map(moments, X):
        eye = np.eye(len(mean))
        out.append(
            M.LinearDynamicalSystem(
                0.5 * eye, cov, eye, cov, mean, cov, transition_offset=mean / 2.0
            )
        )
    return out


def regimes_of(X):
    """Two regimes, a function of all steps: states of variance one, without a unit."""
    steps = np.asarray(X, dtype=float) if np.ndim(X[0]) == 1 else np.concatenate(X)
    mean, cov = moments(steps)
    eye, shape = np.eye(len(mean)), np.linalg.cholesky(cov)
    noise = [0.96 * eye, 0.36 * eye]
    system = [0.2 * eye, 0.8 * eye], noise, shape, 0.1 * cov, 0.0 * mean, eye
    start, turn = [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]
    return M.SwitchingLDS(start, turn, *system, observation_offset=mean)


def switching(X):
    out = []
    for mean, cov in map(moments, X):
        eye = np.eye(len(mean))
        system = [0.2 * eye, 0.8 * eye], [cov, cov], eye, cov, mean, cov
        offset = [0.8 * mean, 0.2 * mean]
        start, turn = [0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]]
        out.append(M.SwitchingLDS(start, turn, *system, transition_offset=offset))
    return out


def factorial(X):
    out = []
    for mean, cov in map(moments, X):
        size = np.sqrt(np.diag(cov))
        tables = [[mean, mean + size], [0.0 * mean, size]]
        turn = [[0.7, 0.3], [0.3, 0.7]]
        out.append(M.FactorialHMM([[0.5, 0.5]] * 2, [turn] * 2, tables, cov))
    return out


def many(name, kind, fit):
    """One model of each datum; all judge the query."""

    def answers(fitted, query):
        values = np.array([log_likelihoods(p, query) for p in fitted])
        return {"rows log_density": values}

    def log_likelihoods(p, query):
        entries = query if kind is kinds.bags else [[x] for x in query]
        return [p.log_likelihood(x).sum() for x in entries]

    def run(data, **options):
        return fit(data.X, **options)

    subject(f"{name}, many", kind, run, answers, EM, "jobs")


ONE = {"n_init": 1, **DRAWN}
many(
    "GaussianHMM",
    kinds.series,
    lambda X, **o: M.GaussianHMM.fit_many(X, n_states=2, **ONE, **o),
)
many(
    "CategoricalHMM",
    kinds.symbols,
    lambda X, **o: M.CategoricalHMM.fit_many(X, n_states=1, **alphabet(X), **ONE, **o),
)
many(
    "MarkovChain",
    kinds.symbols,
    lambda X, **o: M.MarkovChain.fit_many(X, **alphabet(X), **o),
)
many(
    "Mixture",
    kinds.bags,
    lambda X, **o: M.Mixture.fit_many(X, n_components=1, **ONE, **o),
)


def of_moments(name, make, likelihood):
    """Models that are made of the moments of each series; all judge the query."""

    def answers(fitted, query):
        return {"rows log_density": np.array([likelihood(p)(query) for p in fitted])}

    subject(f"{name}, of moments", kinds.series, lambda d: make(d.X), answers, FORMULA)


of_moments("LinearDynamicalSystem", systems, lambda system: system.log_likelihood)
of_moments("SwitchingLDS", switching, lambda system: system.lower_bound)
of_moments("FactorialHMM", factorial, lambda model: model.log_likelihood)
of_moments("GaussianHMM", chains, lambda model: model.log_likelihood)
