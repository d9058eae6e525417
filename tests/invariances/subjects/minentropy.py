"""Scores by the least entropy of hidden values."""

import numpy as np
from invariances import data as kinds
from invariances.subjects.table import CONVEX, answers_of, estimator, function, subject

from maxent import minentropy
from maxent import minentropy as E

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
