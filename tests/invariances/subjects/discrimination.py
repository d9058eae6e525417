"""Discrimination: estimators, solvers of duals, spanning trees."""

import numpy as np
from invariances import data as kinds
from invariances.subjects.table import CONVEX, FORMULA, estimator, function, subject

from maxent import discrimination as D
from maxent import families
from maxent.discrimination import ExponentialMargin

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
estimator("MEDRegressionSelector", kinds.targets, D.MEDRegressionSelector(**TIGHT))
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
estimator("MEDGenerativeClassifier", kinds.labelled, D.MEDGenerativeClassifier(**TIGHT))
estimator(
    "MEDGenerativeClassifier, alone",
    kinds.labelled,
    D.MEDGenerativeClassifier({(0, 1): families.DiagonalGaussian}, **TIGHT),
)
estimator("MEDBayesNetClassifier", kinds.codes, D.MEDBayesNetClassifier(**TIGHT))
estimator("MEDTreeClassifier", kinds.codes, D.MEDTreeClassifier(**TIGHT))
estimator(
    "MEDTreeClassifier, dirichlet",
    kinds.codes,
    D.MEDTreeClassifier("dirichlet", ess=20.0, **TIGHT),
)
estimator(
    "MEDTreeClassifier, uniform",
    kinds.codes,
    D.MEDTreeClassifier("dirichlet", structures="uniform", ess=20.0, **TIGHT),
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
    D.MEDSequenceOutlierDetector(n_symbols=3, n_init=1, random_state=0, tol=1e-9),
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
    "MEDPartialLabelClassifier, three",
    kinds.partly_three,
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
    sides = [data.y == sign for sign in (1, -1)]
    trees = [D.SpanningTrees.fit(data.X, sample_weight=w.astype(float)) for w in sides]
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


def by_columns(data):
    prior = families.ProductPrior(
        {
            j: families.FamilyPrior(families.Poisson(1.0), [1.0], 2.0)
            for j in range(data.X.shape[1])
        }
    )
    blocks = [prior.block(data.X, data.y == sign) for sign in (1, -1)]
    return D.solve_blocks(blocks, maps_of(data.y), PRIOR)


subject(
    "FamilyPrior and ProductPrior",
    kinds.coded_signs,
    by_columns,
    lambda result, query: {
        "scores objective": result.objective,
        "rows lam": result.lam,
    },
    CONVEX,
    covers=("FamilyPrior", "ProductPrior"),
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
