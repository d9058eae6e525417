"""Everything public that learns or compares: how to make it, and what it answers.

A subject is fitted to small data and asked about a query. An answer is named by its
role, which says how a transformation of the data changes it (see ``Data.restored``).
``tolerance`` follows from where the fit stops, in units of the answers: a duality gap
of 1e-10 leaves decision values free by the root of twice of it; EM that stops at rises
below 1e-11 leaves log-densities free by about their root; what is a formula is exact
to rounding.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from invariances import data as kinds
from sklearn.base import clone

from maxent import discrimination, families, kernels, latent, minentropy, models
from maxent.discrimination import ExponentialMargin

FORMULA, CONVEX, EM = 1e-8, 2e-4, 2e-4

# groups of transformations that data of a kind have
ARRAYS = "numbers memory nested"
TABLES = "numbers memory nested frames whole names"
REAL = f"unit units origin rows columns truths {TABLES} sparse dask"
CODED = f"rows columns naturals categories {TABLES} sparse dask"
KINDS: dict[Callable[..., kinds.Data], str] = {
    kinds.table: REAL,
    kinds.two_groups: REAL.replace(" truths", ""),  # they would tell the group alone
    kinds.signs: REAL,
    kinds.labelled: REAL + " labels two",
    kinds.three: REAL + " labels",
    kinds.partly: REAL.replace(" truths", ""),  # few have a label
    kinds.targets: REAL + " targets",
    kinds.gram: f"rows {ARRAYS}",
    kinds.codes: CODED + " labels two",
    kinds.coded_signs: CODED,
    kinds.bits: f"rows columns naturals bits {TABLES} sparse dask",
    kinds.counts: f"rows columns naturals {TABLES} sparse dask",
    kinds.truths: f"rows naturals bits {ARRAYS}",
    kinds.totals: f"rows columns naturals {TABLES} sparse dask",
    kinds.regressors: f"rows {ARRAYS}",
    kinds.latent_features: f"unit units origin rows columns {ARRAYS}",
    kinds.score_rows: f"origin rows columns {ARRAYS}",
    kinds.constraints: f"rows columns {ARRAYS}",
    kinds.images: f"unit origin rows {ARRAYS}",
    kinds.edges: "rows reals memory nested",
    kinds.whole: f"rows naturals {ARRAYS}",
    kinds.positive: f"unit rows naturals {ARRAYS}",
    kinds.shares: "rows columns reals memory nested frames names sparse dask",
    kinds.unit_interval: "rows reals memory nested",
    kinds.directions: "rows columns reals memory nested frames names sparse",
    kinds.matrices: f"unit units rows {ARRAYS}",
    kinds.series: f"unit units origin rows columns {TABLES} lists",
    kinds.one_series: "unit units origin columns numbers frames whole",
    kinds.bags: f"unit units origin rows entries columns {TABLES}",
    kinds.table_with_holes: "unit units origin rows columns memory nested holes names",
    kinds.series_with_holes: "unit units origin rows columns memory nested holes names",
    kinds.rows_with_holes: "rows columns memory nested holes names",
    kinds.codes_with_holes: "rows columns memory nested holes names labels two",
    kinds.coded_bags: f"rows entries columns naturals {TABLES}",
    kinds.symbols: "rows symbols lists",
    kinds.letters: "rows letters naturals memory nested labels two",
    kinds.documents: "rows words lists",
    kinds.instances: "unit units origin rows numbers truths memory nested labels two",
    kinds.steps: "unit units rows numbers memory nested labels two",
    kinds.joint_features: f"unit rows {ARRAYS}",
    kinds.grids: "unit origin rows numbers truths memory nested labels two",
}


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    kind: Callable[..., kinds.Data]
    fit: Callable[..., Any]
    answers: Callable[[Any, Any], dict[str, Any]]
    tolerance: float
    groups: frozenset[str]
    covers: tuple[str, ...]


SUBJECTS: list[Subject] = []


def subject(name, kind, fit, answers, tolerance, more="", covers=()):
    groups = set(KINDS[kind].split() + more.split())
    groups |= {"weighing"} if "weights" in groups else set()
    covers = (name.split(",")[0].split()[0], *covers)
    SUBJECTS.append(
        Subject(name, kind, fit, answers, tolerance, frozenset(groups), covers)
    )


# -- estimators ------------------------------------------------------------------------
def answers_of(estimator, query):
    """Decision values, probabilities, labels or targets; densities of mixtures."""
    out = {}
    if hasattr(estimator, "classes_"):
        if hasattr(estimator, "decision_function"):
            f = estimator.decision_function(query)
            f = f if np.ndim(f) == 2 else np.stack([-f, f], axis=1)
            out["classes decision"] = f
        if hasattr(estimator, "predict_proba"):
            out["classes proba"] = estimator.predict_proba(query)
        out["labels"] = estimator.predict(query)
    elif hasattr(estimator, "decision_function"):
        out["scores"] = estimator.decision_function(query)
    elif hasattr(estimator, "score_samples"):
        out["log_density"] = estimator.score_samples(query)
    elif hasattr(estimator, "predict"):
        out["targets"] = estimator.predict(query)
    else:
        out["scores"] = estimator.transform(query)
    if hasattr(estimator, "inclusion_proba_"):
        out["columns"] = estimator.inclusion_proba_
    return out


def estimator(
    name, kind, machine, tolerance=CONVEX, more="", answers=answers_of, covers=()
):
    def fit(data, n_jobs=None):
        fresh = clone(machine)
        if n_jobs is not None:
            fresh.set_params(n_jobs=n_jobs)
        weight = {} if data.weight is None else {"sample_weight": data.weight}
        return fresh.fit(data.X, data.y, **weight)

    if "n_jobs" in machine.get_params(deep=False):
        more += " jobs"
    if "sample_weight" in inspect.signature(machine.fit).parameters:
        more += " weights"
    covers = (type(machine).__name__, *covers)
    subject(name, kind, fit, answers, tolerance, more, covers)


D = discrimination
TIGHT = {"tol": 1e-10}
estimator("MEDClassifier, rbf", kinds.labelled, D.MEDClassifier(**TIGHT))
estimator("MEDClassifier, poly", kinds.labelled, D.MEDClassifier("poly", **TIGHT))
estimator("MEDClassifier, linear", kinds.labelled, D.MEDClassifier("linear", **TIGHT))
estimator("MEDClassifier, three", kinds.three, D.MEDClassifier(**TIGHT))
estimator(
    "MEDClassifier, joint", kinds.three, D.MEDClassifier(multi_class="joint", **TIGHT)
)
estimator(
    "MEDClassifier, nystroem",
    kinds.labelled,
    D.MEDClassifier(approximation="nystroem", random_state=0, **TIGHT),
)
estimator("MEDRegressor, rbf", kinds.targets, D.MEDRegressor(**TIGHT))
estimator("MEDRegressor, linear", kinds.targets, D.MEDRegressor("linear", **TIGHT))
estimator("MEDFeatureSelector", kinds.labelled, D.MEDFeatureSelector(**TIGHT))
estimator("MEDGaussianClassifier", kinds.labelled, D.MEDGaussianClassifier(**TIGHT))
estimator(
    "MEDGaussianClassifier, three",
    kinds.three,
    D.MEDGaussianClassifier(**TIGHT),
    answers=lambda machine, query: {  # each score is a log-density
        "classes log_density": machine.decision_function(query),
        "labels": machine.predict(query),
    },
)
estimator(
    "MEDGaussianClassifier, weak",
    kinds.labelled,
    D.MEDGaussianClassifier(prior="weak", **TIGHT),
)
estimator("MEDBayesNetClassifier", kinds.codes, D.MEDBayesNetClassifier(**TIGHT))
estimator("MEDTreeClassifier", kinds.codes, D.MEDTreeClassifier(**TIGHT))
estimator(
    "MEDTreeClassifier, dirichlet",
    kinds.codes,
    D.MEDTreeClassifier("dirichlet", ess=20.0, **TIGHT),
)
estimator("ChowLiuClassifier", kinds.codes, D.ChowLiuClassifier(), FORMULA)
KNOWN_MISSING = {"missing": "category"}
for name, machine in {
    "ChowLiuClassifier": D.ChowLiuClassifier(**KNOWN_MISSING),
    "MEDTreeClassifier": D.MEDTreeClassifier(**KNOWN_MISSING, **TIGHT),
    "MEDBayesNetClassifier": D.MEDBayesNetClassifier(**KNOWN_MISSING, **TIGHT),
}.items():
    estimator(f"{name}, with holes", kinds.codes_with_holes, machine)
estimator(
    "MEDOutlierDetector, with holes",
    kinds.rows_with_holes,
    D.MEDOutlierDetector("multinomial", **KNOWN_MISSING),
)
estimator("MEDOutlierDetector, gaussian", kinds.table, D.MEDOutlierDetector())
estimator(
    "MEDOutlierDetector, kernel centre",
    kinds.table,
    D.MEDOutlierDetector(D.GaussianCentre()),
    covers=("GaussianCentre",),
)
estimator(
    "MEDOutlierDetector, kernel scores",
    kinds.table,
    D.MEDOutlierDetector(D.GaussianScores()),
    covers=("GaussianScores",),
)
for name in ("multinomial", "tree"):
    detector = D.MEDOutlierDetector(name, **TIGHT)
    estimator(f"MEDOutlierDetector, {name}", kinds.coded_signs, detector)
estimator(
    "MEDOutlierDetector, mixture",
    kinds.two_groups,
    D.MEDOutlierDetector(D.LatentMixture(random_state=0, tol=1e-7)),
    2e-3,  # the root of its tolerance
    covers=("LatentMixture", "MixturePosterior"),
)
estimator(
    "MEDSequenceOutlierDetector, categorical",
    kinds.symbols,
    D.MEDSequenceOutlierDetector(n_symbols=3, random_state=0, tol=1e-9),
    covers=("ChainPosterior",),
)
estimator(
    "MEDSequenceOutlierDetector, gaussian",
    kinds.series,
    D.MEDSequenceOutlierDetector(emission="gaussian", random_state=0, tol=1e-9),
)
estimator(
    "MEDPartialLabelClassifier",
    kinds.partly,
    D.MEDPartialLabelClassifier(D.MEDClassifier(**TIGHT), tol=1e-6),
)
estimator(
    "MEDPartialLabelClassifier, gaussian",
    kinds.partly,
    D.MEDPartialLabelClassifier(
        D.MEDGaussianClassifier(prior="weak", **TIGHT), tol=1e-3, max_rounds=1000
    ),
    2e-2,  # label means are 1e-3 from their best values
)
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
    prior = latent.MixturePrior(*_moments(X))
    return latent.LMEGaussianMixture(1, prior=prior, tol=1e-9).fit(X)


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def _moments(x):
    x = dense(x)
    return x.mean(axis=0), np.cov(x.T)


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
# A stationarity of 1e-7 leaves the weights free by its root, and scores by as much
# times the length of the features, about 30.
SOFT = {"C": 1.0, "alpha": 1.0, "n_init": 1, "tol": 1e-7, "qp_tol": 1e-9}
SOFT["random_state"] = 0
MARGIN = 1e-2
estimator("M3EClassifier", kinds.instances, minentropy.M3EClassifier(**SOFT), MARGIN)
estimator(
    "M3EGridClassifier",
    kinds.grids,
    minentropy.M3EGridClassifier((2, 2), **{**SOFT, "n_init": 4}),
    MARGIN,
)
estimator(
    "M3EMotifClassifier",
    kinds.letters,
    minentropy.M3EMotifClassifier(3, **SOFT),
    MARGIN,
)
estimator("M3EModel", kinds.joint_features, minentropy.M3EModel(**SOFT), MARGIN)
estimator(
    "M3EModel, chain",
    kinds.steps,
    minentropy.M3EModel(minentropy.ChainMap(2), **SOFT),
    MARGIN,
    covers=("ChainMap",),
)


# -- solvers ---------------------------------------------------------------------------
PRIOR = ExponentialMargin(5.0)


def dual(name, kind, solve, decide, more="weights"):
    """A solver of two classes: its decision values, and the objective."""

    def fit(data, **options):
        if data.weight is not None:
            options["sample_weight"] = data.weight
        return solve(data.X, data.y, **options), data

    def answers(fitted, query):
        result, data = fitted
        decisions = decide(result, data, query) + result.bias
        return {"scores decision": decisions, "scores objective": result.objective}

    subject(name, kind, fit, answers, CONVEX, more)


def by_matrix(result, data, query):
    return np.asarray(query, dtype=float) @ (result.lam * data.y)


dual(
    "solve_dual",
    kinds.gram,
    lambda K, y, **o: D.solve_dual(K, y, PRIOR, **TIGHT, **o),
    by_matrix,
)
dual(
    "dual_path",
    kinds.gram,
    lambda K, y, **o: D.dual_path(K, y, PRIOR, [0.5, 2.0], **TIGHT, **o)[-1],
    by_matrix,
)
dual(
    "solve_kernel_dual",
    kinds.signs,
    lambda X, y, **o: D.solve_kernel_dual(X, y, PRIOR, **TIGHT, **o),
    lambda result, data, query: 0.0,
    "weights jobs",
)
dual(
    "solve_linear_dual",
    kinds.signs,
    lambda X, y, **o: D.solve_linear_dual(X, y, PRIOR, **TIGHT, **o),
    lambda result, data, query: query @ result.coef,
)


def maps_of(y):
    return [np.diag(y), np.diag(-y)]


def by_blocks(data):
    prior = families.DirichletProduct(1.0, n_categories=[3, 3, 3])
    blocks = [prior.block(data.X, data.y == sign) for sign in (1, -1)]
    return D.solve_blocks(blocks, maps_of(data.y), PRIOR)


def by_trees(data):
    own = [data.y == sign for sign in (1, -1)]
    trees = [D.SpanningTrees.fit(data.X, sample_weight=w.astype(float)) for w in own]
    return D.max_margin([one.block(data.X) for one in trees], maps_of(data.y))


subject(
    "solve_blocks",
    kinds.coded_signs,
    by_blocks,
    lambda result, query: {
        "scores objective": result.objective,
        "rows lam": result.lam,
    },
    CONVEX,
    covers=("ConjugateBlock", "Block", "DirichletProduct"),
)
subject(
    "max_margin",
    kinds.coded_signs,
    by_trees,
    lambda result, query: {"scores": (result.lower + result.upper) / 2.0},
    1e-5,  # its bounds are 1e-6 apart, relative
)
subject(
    "chow_liu_tree",
    kinds.coded_signs,
    lambda data: D.chow_liu_tree(
        data.X, sample_weight=data.weight, return_information=True
    )[1],
    lambda information, query: {"pairs": information},
    FORMULA,
    "weights",
)


# -- families and conjugate priors -----------------------------------------------------
def family(name, kind, more="weights", **options):
    def fit(data):
        return getattr(families, name).fit(data.X, data.weight, **options)

    def answers(model, query):
        return {"log_density": model.log_prob(query)}

    subject(name, kind, fit, answers, FORMULA, more)


family("Gaussian", kinds.table)
family("DiagonalGaussian", kinds.table)
family("SphericalGaussian", kinds.table)
family("Exponential", kinds.positive)
family("Gamma", kinds.positive)
for name in ("Poisson", "Geometric"):
    family(name, kinds.whole)
family("NegativeBinomial", kinds.whole, r=3.0)
family("Categorical", kinds.whole)
family("Bernoulli", kinds.truths)
family("Multinomial", kinds.totals)
family("Beta", kinds.unit_interval)
family("Dirichlet", kinds.shares)
family("VonMisesFisher", kinds.directions)
family("Wishart", kinds.matrices)
family("InverseWishart", kinds.matrices)


def conjugate(name, kind, prior, tolerance=FORMULA):
    """A posterior, and what it predicts; the prior may look at the rows."""

    def fit(data):
        return prior(data.X, data.weight).posterior(data.X, data.weight)

    def answers(posterior, query):
        return {"log_density": posterior.predictive_log_prob(query)}

    subject(name, kind, fit, answers, tolerance, "weights")


F, THREES = families, [3, 3, 3]
conjugate("NormalInverseWishart", kinds.table, F.NormalInverseWishart.weak)
conjugate(
    "NormalGamma",
    kinds.regressors,
    lambda X, w: F.NormalGamma([0.0, 0.0], np.eye(2), 2.0, 2.0),
)
conjugate("DirichletCounts", kinds.counts, lambda X, w: F.DirichletCounts([1.0] * 3))
conjugate(
    "DirichletProduct", kinds.coded_signs, lambda X, w: F.DirichletProduct(1.0, THREES)
)
conjugate(
    "DirichletBayesNet",
    kinds.coded_signs,
    lambda X, w: F.DirichletBayesNet(1.0, [(), (0,), (0, 1)], THREES),
)
conjugate(
    "DirichletTrees", kinds.coded_signs, lambda X, w: D.DirichletTrees(4.0, THREES)
)
conjugate(
    "SpanningTrees",
    kinds.coded_signs,
    lambda X, w: D.SpanningTrees.fit(X, sample_weight=w),
)


# -- models ----------------------------------------------------------------------------
def model(name, kind, fit, answers=None, tolerance=EM):
    words = inspect.signature(getattr(models, name.split(",")[0]).fit).parameters
    if kind is kinds.one_series:
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


M = models
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
    "LinearDynamicalSystem": lambda X, **o: M.LinearDynamicalSystem.fit(X, 1, **o),
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
    "LinearDynamicalSystem",
    kinds.series,
    lambda X, **o: M.LinearDynamicalSystem.fit(X, 1, random_state=0, **o),
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
model(
    "GaussianHMM, one series",
    kinds.one_series,
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


# -- kernels between distributions -----------------------------------------------------
def kernel(name, kind, compare, more="", covers=(), tolerance=FORMULA):
    """A kernel between what X and the query hold: rows are those of X."""

    def fit(data, **options):
        return data.X, options

    def answers(fitted, query):
        X, options = fitted
        return {"rows": compare(X, query, **options)}

    subject(name, kind, fit, answers, tolerance, more, covers)


def gaussians(X):
    """One Gaussian of each bag."""
    fits = [F.Gaussian.fit(x) for x in X]
    return F.Gaussian([p.mean for p in fits], [p.cov for p in fits])


def chains(X):
    return [M.GaussianHMM.fit([x], 1, smoothing=0.0) for x in X]


def systems(X):
    """Systems that go half of the way to the mean of each series."""
    out = []
    for mean, cov in map(_moments, X):
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
    mean, cov = _moments(steps)
    eye, shape = np.eye(len(mean)), np.linalg.cholesky(cov)
    noise = [0.96 * eye, 0.36 * eye]
    system = [0.2 * eye, 0.8 * eye], noise, shape, 0.1 * cov, 0.0 * mean, eye
    start, turn = [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]
    return M.SwitchingLDS(start, turn, *system, observation_offset=mean)


def switching(X):
    out = []
    for mean, cov in map(_moments, X):
        eye = np.eye(len(mean))
        system = [0.2 * eye, 0.8 * eye], [cov, cov], eye, cov, mean, cov
        offset = [0.8 * mean, 0.2 * mean]
        start, turn = [0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]]
        out.append(M.SwitchingLDS(start, turn, *system, transition_offset=offset))
    return out


def factorial(X):
    out = []
    for mean, cov in map(_moments, X):
        size = np.sqrt(np.diag(cov))
        tables = [[mean, mean + size], [0.0 * mean, size]]
        turn = [[0.7, 0.3], [0.3, 0.7]]
        out.append(M.FactorialHMM([[0.5, 0.5]] * 2, [turn] * 2, tables, cov))
    return out


def networks(X):
    return [M.LinearGaussianNetwork.fit(x, ["c", "a", "d"], ABC) for x in X]


def nets(X):
    """Bayes nets of the first and of the second half of the rows."""
    return [M.BayesNet.fit(x, ABC) for x in X]


def many(name, kind, fit):
    """One model of each datum; all judge the query."""

    def answers(fitted, query):
        found = np.array([log_likelihoods(p, query) for p in fitted])
        return {"rows log_density": found}

    def log_likelihoods(p, query):
        found = [p.log_likelihood(x if kind is kinds.bags else [x]) for x in query]
        return [values.sum() for values in found]

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


def given(name, make, likelihood):
    """Models that are made of the moments of each series; all judge the query."""

    def answers(fitted, query):
        return {"rows log_density": np.array([likelihood(p)(query) for p in fitted])}

    subject(f"{name}, given", kinds.series, lambda d: make(d.X), answers, FORMULA)


given("LinearDynamicalSystem", systems, lambda system: system.log_likelihood)
given("SwitchingLDS", switching, lambda system: system.lower_bound)
given("FactorialHMM", factorial, lambda model: model.log_likelihood)
given("GaussianHMM", chains, lambda model: model.log_likelihood)

K = kernels
kernel(
    "product_kernel",
    kinds.bags,
    lambda X, Y, **o: K.product_kernel(gaussians(X), gaussians(Y), **o),
    "jobs",
)
kernel(
    "product_kernel, chains",
    kinds.series,
    lambda X, Y, **o: K.product_kernel(chains(X), chains(Y), horizon=3, **o),
    "jobs",
)
kernel(
    "product_kernel_tiles",
    kinds.bags,
    lambda X, Y, **o: K.product_kernel_tiles(gaussians(X), gaussians(Y), tile=2, **o),
    "jobs",
)
kernel(
    "hellinger_distance",
    kinds.bags,
    lambda X, Y, **o: K.hellinger_distance(gaussians(X), gaussians(Y), **o) ** 2,
    "jobs",
)
kernel(
    "kl_kernel",
    kinds.bags,
    lambda X, Y: K.kl_kernel(gaussians(X), gaussians(Y)),
)
kernel("js_kernel", kinds.shares, K.js_kernel)
kernel("heat_kernel", kinds.shares, K.heat_kernel, "jobs")
kernel(
    "lds_kernel",
    kinds.series,
    lambda X, Y, **o: K.lds_kernel(systems(X), systems(Y), horizon=3, **o),
    "jobs",
)
kernel(
    "lds_affinity_parts",
    kinds.series,
    lambda X, Y, **o: (
        K.lds_affinity_parts(systems(X), systems(Y), horizon=3, **o).distance
    ),
    "jobs",
    ("GaussianParts",),
)
kernel(
    "switching_lds_kernel",
    kinds.series,
    lambda X, Y, **o: K.switching_lds_kernel(
        switching(X), switching(Y), horizon=2, n_paths=None, **o
    ),
    "jobs",
    ("SwitchingPaths",),
)
kernel(
    "factorial_hmm_kernel",
    kinds.series,
    lambda X, Y: K.factorial_hmm_kernel(factorial(X), factorial(Y), horizon=2),
)
kernel(
    "linear_gaussian_kernel",
    kinds.bags,
    lambda X, Y: K.linear_gaussian_kernel(networks(X), networks(Y)),
)
kernel(
    "bayes_net_kernel",
    kinds.coded_bags,
    lambda X, Y: K.bayes_net_kernel(nets(X), nets(Y)),
)
kernel(
    "shared_sample_features",
    kinds.bags,
    lambda X, Y: shared(gaussians(X), gaussians(Y)),
    covers=("SharedSample",),
)


def shared(P, Q):
    """Products of features of two lists, by the draws of the second."""
    draws = K.SharedSample(Q, n_samples=200, random_state=0)
    f, g = (K.shared_sample_features(A, sample=draws) for A in (P, Q))
    return f @ g.T


def scores(X):
    return K.FisherScores("DiagonalGaussian").fit(X)


def fisher(X, Y, **options):
    of = scores(X)
    U = of.transform(X)
    return K.fisher_kernel(U, of.transform(Y), reference=U, **options)


def fisher_features(X, Y):
    of = scores(X)
    U = of.transform(X)
    features = K.FisherFeatures().fit(U)
    return features.transform(U) @ features.transform(of.transform(Y)).T


kernel("fisher_kernel", kinds.table, fisher, "jobs", ("FisherScores",))
kernel("FisherFeatures", kinds.table, fisher_features)
kernel(
    "spectrum_kernel",
    kinds.symbols,
    lambda X, Y, **o: K.spectrum_kernel(X, Y, k=2, **alphabet(X), **o),
    "jobs",
)
kernel(
    "spectrum_features",
    kinds.symbols,
    lambda X, Y: K.spectrum_features(X, k=2, **alphabet(X)).toarray(),
)


def alphabet(X):
    return {"alphabet": "abc"} if isinstance(X[0], str) else {"n_symbols": 3}


TWO_STATES = ([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])


def chain(X):
    return M.CategoricalHMM(*TWO_STATES, alphabet=alphabet(X).get("alphabet"))


kernel(
    "marginalized_kernel",
    kinds.symbols,
    lambda X, Y, **o: K.marginalized_kernel(X, Y, model=chain(X), **o),
    "jobs",
)
kernel(
    "marginalized_features",
    kinds.symbols,
    lambda X, Y, **o: K.marginalized_features(X, chain(X), **o),
    "jobs",
)


def to_rows(transformer, query):
    return {"rows": transformer.transform(query).T}


estimator("ProductKernel", kinds.counts, K.ProductKernel(), FORMULA, answers=to_rows)
estimator(
    "ProductKernel, Gaussian",
    kinds.bags,
    K.ProductKernel("Gaussian", estimate="ml"),
    FORMULA,
    answers=to_rows,
)


def repaired(matrix):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        return K.repair_kernel(matrix)


subject(
    "repair_kernel",
    kinds.gram,
    lambda data: repaired(data.X),
    lambda matrix, query: {"rows": matrix.sum(axis=1), "scores": np.trace(matrix)},
    FORMULA,
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
    lambda found, query: {"scores": [found.log_likelihood_, found.entropy_]},
    EM,
)


# -- scores of hidden variables --------------------------------------------------------
def function(name, kind, run):
    """A function of each row: of "level" if it moves with its argument."""
    subject(name, kind, lambda data: data.X, lambda X, query: run(X), FORMULA)


E = minentropy
SIMILAR = 0.5 * np.eye(3) + 0.5
function(
    "renyi_score", kinds.score_rows, lambda S: {"rows level": E.renyi_score(S, 2.0)}
)
function(
    "rao_score", kinds.score_rows, lambda S: {"rows level": E.rao_score(S, SIMILAR)}
)
function(
    "renyi_weights",
    kinds.score_rows,
    lambda S: {"rows columns": E.renyi_weights(S, 2.0)},
)
function(
    "rao_weights",
    kinds.score_rows,
    lambda S: {"rows columns": E.rao_weights(S, SIMILAR)},
)
function("renyi_entropy", kinds.shares, lambda Q: {"rows": E.renyi_entropy(Q, 2.0)})
function("tsallis_entropy", kinds.shares, lambda Q: {"rows": E.tsallis_entropy(Q, 2.0)})
function("gradient_cells", kinds.images, lambda X: {"rows": E.gradient_cells(X, 3)})
subject(
    "solve_margin_qp",
    kinds.constraints,
    lambda data: E.solve_margin_qp(data.X, np.ones(len(data.X)), 1.0, tol=1e-11),
    lambda result, query: {"columns": result.w, "scores": result.objective},
    CONVEX,
    covers=("MarginResult",),
)
subject(
    "alpha_path",
    kinds.instances,
    lambda data: E.alpha_path(
        E.M3EClassifier(**SOFT), data.X, data.y, [0.5, 1.0], sample_weight=data.weight
    )[-1],
    answers_of,
    MARGIN,
    "weights",
)


# -- spanning trees --------------------------------------------------------------------
function(
    "spanning_tree_log_partition",
    kinds.edges,
    lambda W: {"scores": D.spanning_tree_log_partition(W)},
)
function(
    "spanning_tree_covariance",
    kinds.edges,
    lambda W: {"scores": D.spanning_tree_covariance(W, flat(W), flat(W) ** 2)},
)
function(
    "max_spanning_tree",
    kinds.edges,
    lambda W: {"scores": sum(np.asarray(W)[i, j] for i, j in D.max_spanning_tree(W))},
)


def flat(W):
    W = np.array(W, dtype=float)
    np.fill_diagonal(W, 0.0)
    return W
