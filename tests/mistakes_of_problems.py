"""Mistakes in calls of generative models, trees, detectors and solvers for arrays.

Rows as in `mistakes_of_estimators`.
"""

import numpy as np
import scipy.sparse as sp
from mistakes_of_estimators import CODES, GRAM, LETTERS, SIGNS, E, X, Y

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDSequenceOutlierDetector,
    MEDTreeClassifier,
)
from maxent.discrimination import (
    CustomMargin,
    ExponentialMargin,
    GaussianScores,
    LatentMixture,
    chow_liu_tree,
    dual_path,
    sample_spanning_trees,
    solve_blocks,
    solve_dual,
    solve_kernel_dual,
    spanning_tree_log_partition,
)
from maxent.families import NormalInverseWishart

COMPLETE = np.where(np.eye(3) > 0, -np.inf, 0.0)  # log weights of a triangle


def niw_block():
    return NormalInverseWishart.weak(X).block(X)


MODELS = {
    "prior misspelled": (
        *(lambda: MEDGaussianClassifier(prior="week").fit(X, Y), E),
        *("prior", "'week'", "Did you mean 'weak'"),
    ),
    "prior of other features": (
        *(
            lambda: MEDGaussianClassifier(
                prior=NormalInverseWishart(np.zeros(2), 1.0, 5.0, np.eye(2))
            ).fit(X, Y),
            E,
        ),
        *("prior", "2 features", "X has 3"),
    ),
    "too few rows for a prior": (
        *(
            lambda: MEDGaussianClassifier(prior="improper").fit(
                X[[0, 1, 15, 16]], ["a", "a", "b", "b"]
            ),
            E,
        ),
        *("class 'a'", "with 2 rows of y", "prior='weak'"),
    ),
    "constant columns": (
        *(lambda: MEDOutlierDetector().fit(np.ones((30, 3))), E),
        *("every feature of X", "constant", "give features that vary"),
    ),
    "column that is constant in a class": (
        *(lambda: MEDGaussianClassifier(prior="improper").fit(np.c_[X, Y], Y), E),
        *("feature 3", "is constant", "drop it, or use prior='weak'"),
    ),
    "percentile beyond 100": (
        *(lambda: MEDGaussianClassifier(percentile=250).fit(X, Y), E),
        *("percentile", "250", "between 0 and 100"),
    ),
    "level as text": (
        *(lambda: MEDGaussianClassifier(level="1").fit(X, Y), E),
        *("level", "'1'", "without quotes"),
    ),
    "variance of the bias of a generative model": (
        *(lambda: MEDGaussianClassifier(bias=-1.0).fit(X, Y), E),
        *("bias", "-1.0", "'flat'"),
    ),
    "parents of two features": (
        *(lambda: MEDBayesNetClassifier(parents=[(), (0,)]).fit(CODES, Y), E),
        *("parents", "2 entries", "each of the 3 features"),
    ),
    "parents in a circle": (
        *(lambda: MEDBayesNetClassifier(parents=[(1,), (0,), ()]).fit(CODES, Y), E),
        *("parents", "[0, 1]", "take one of these parents out"),
    ),
    "parent by name": (
        *(lambda: MEDBayesNetClassifier(parents=[(), ("a",), ()]).fit(CODES, Y), E),
        *("parents=", "names 'a'", "no column of X; its names are none"),
    ),
    "missing category": (
        *(
            lambda: MEDBayesNetClassifier().fit(
                np.where(CODES == 1, None, LETTERS.astype(object)), Y
            ),
            E,
        ),
        *("X[0, 1]", "None", "fill"),
    ),
    "categories of two types": (
        *(
            lambda: MEDBayesNetClassifier().fit(
                np.where(CODES == 1, 1, LETTERS.astype(object)), Y
            ),
            E,
        ),
        *("feature 0 of X", "int, str", "X.astype(str)"),
    ),
    "sparse categories": (
        *(lambda: MEDBayesNetClassifier().fit(sp.csr_array(CODES), Y), TypeError),
        *("X", "Sparse data", "toarray()"),
    ),
    "unseen category": (
        *(
            lambda: (
                ChowLiuClassifier(handle_unknown="error")
                .fit(CODES, Y)
                .predict(CODES + 5)
            ),
            E,
        ),
        *("X[0, 0]", "5", "handle_unknown='ignore'"),
    ),
    "tree of one column": (
        *(lambda: MEDTreeClassifier().fit(CODES[:, :1], Y), E),
        *("X", "1 feature", "needs another column"),
    ),
    "level out of reach": (
        *(lambda: MEDTreeClassifier(margin="fixed", level=100).fit(CODES, Y), E),
        *("level=100", "meet, 0 nats", "margin='exponential'"),
    ),
    "level as an unknown word": (
        *(lambda: MEDTreeClassifier(margin="fixed", level="big").fit(CODES, Y), E),
        *("level", "'big'", "'0.8*max'"),
    ),
    "largest margin of a soft one": (
        *(lambda: MEDTreeClassifier(level="max").fit(CODES, Y), E),
        *("level", "'max'", "margin='fixed'"),
    ),
    "edges of other columns": (
        *(lambda: MEDTreeClassifier(edge_prior=np.ones((2, 2))).fit(CODES, Y), E),
        *("edge_prior", "(2, 2)", "(3, 3) is needed"),
    ),
    "edges that join nothing": (
        *(lambda: MEDTreeClassifier(edge_prior=np.eye(3)).fit(CODES, Y), E),
        *("edge_prior", "[0], [1], [2]", "give a positive weight"),
    ),
    "no pseudo-counts": (
        *(lambda: MEDTreeClassifier(ess=0).fit(CODES, Y), E),
        *("ess=0", "class 0", "Use ess > 0"),
    ),
    "probabilities of three classes": (
        *(lambda: ChowLiuClassifier(class_prior=[0.5, 0.2, 0.3]).fit(CODES, Y), E),
        *("class_prior", "[0.5, 0.2, 0.3]", "each of 2 classes"),
    ),
    "detector misspelled": (
        *(lambda: MEDOutlierDetector("gausian").fit(X), E),
        *("model", "'gausian'", "Did you mean 'gaussian'"),
    ),
    "detector as class": (
        *(lambda: MEDOutlierDetector(GaussianScores).fit(X), E),
        *("model", "GaussianScores", "object with a method block(X)"),
    ),
    "more components than rows": (
        *(lambda: MEDOutlierDetector(LatentMixture(n_components=99)).fit(X), E),
        *("n_components=99", "is more than the", "lower it or add rows"),
    ),
    "component misspelled": (
        *(lambda: LatentMixture("multinomal"), E),
        *("component", "'multinomal'", "Did you mean 'multinomial'"),
    ),
    "one sequence instead of a list": (
        *(lambda: MEDSequenceOutlierDetector(alphabet="ab").fit("abab"), E),
        *("X", "'abab'", "Write [X]"),
    ),
    "letters without an alphabet": (
        *(lambda: MEDSequenceOutlierDetector().fit(list("abab")), E),
        *("sequences[0]", "'a'", "alphabet="),
    ),
    "quantile in per cent": (
        *(lambda: MEDOutlierDetector(quantile=5).fit(X), E),
        *("quantile", "5", "between 0 and 1"),
    ),
    "level above log 1": (
        *(lambda: MEDOutlierDetector("multinomial", level=1.0).fit(CODES), E),
        *("level=1", "above 0", "set quantile"),
    ),
    "labels 0 and 1 for a solver": (
        *(lambda: solve_dual(GRAM, Y, ExponentialMargin()), E),
        *("y", "[0, 1]", "numpy.where(y == b, 1, -1)"),
    ),
    "features for a kernel matrix": (
        *(lambda: solve_dual(X, SIGNS, ExponentialMargin()), E),
        *("K", "(30, 3)", "must be square"),
    ),
    "name of a margin for a solver": (
        *(lambda: solve_dual(GRAM, SIGNS, "exponential"), TypeError),
        *("margin", "'exponential'", "ExponentialMargin(10.0)"),
    ),
    "kernel matrix and labels swapped": (
        *(lambda: solve_dual(SIGNS, GRAM, ExponentialMargin()), E),
        *("y", "(30, 30)", "one label per row"),
    ),
    "start of another problem": (
        *(lambda: solve_dual(GRAM, SIGNS, ExponentialMargin(), init=np.ones(3)), E),
        *("init", "(3,)", "one multiplier per row"),
    ),
    "callback as truth": (
        *(
            lambda: solve_dual(GRAM, SIGNS, ExponentialMargin(), callback=True),
            TypeError,
        ),
        *("callback", "True", "function of n_iter"),
    ),
    "path over one C": (
        *(lambda: dual_path(GRAM, SIGNS, ExponentialMargin(), 10.0), E),
        *("C", "10.0", "list of finite numbers > 0"),
    ),
    "kernel matrix for features": (
        *(
            lambda: solve_kernel_dual(
                GRAM, SIGNS, ExponentialMargin(), kernel="precomputed"
            ),
            E,
        ),
        *("kernel", "'precomputed'", "solve_dual"),
    ),
    "prior for a block": (
        *(
            lambda: solve_blocks(
                [NormalInverseWishart.weak(X)], [np.eye(30)], ExponentialMargin()
            ),
            TypeError,
        ),
        *("blocks[0]", "NormalInverseWishart", "prior.block(X)"),
    ),
    "map of other rows": (
        *(lambda: solve_blocks([niw_block()], [np.eye(3)], ExponentialMargin()), E),
        *("maps[0]", "(3, 3)", "(30, n)"),
    ),
    "bias without incidence": (
        *(
            lambda: solve_blocks(
                [niw_block()], [np.eye(30)], ExponentialMargin(), bias="flat"
            ),
            E,
        ),
        *("incidence", "bias", "labels +1 and -1"),
    ),
    "negative rate": (lambda: ExponentialMargin(rate=-1), E, "rate", "-1", "> 0"),
    "wrong derivative": (
        *(lambda: CustomMargin(lambda a: a, lambda a: 2.0, lambda a: 0.0), E),
        *("mean(", "returned 2", "check its formula"),
    ),
    "tree of measurements": (
        *(lambda: chow_liu_tree(X), E),
        *("X[0, 0]", "is no code", "OrdinalEncoder"),
    ),
    "weights of edges to themselves": (
        *(lambda: spanning_tree_log_partition(np.zeros((3, 3))), E),
        *("log_weights[0, 0]", "=0", "np.fill_diagonal"),
    ),
    "edges one way": (
        *(lambda: sample_spanning_trees(np.triu(np.ones((3, 3)))), E),
        *("log_weights[0, 1]", "=1", "/ 2 if that"),
    ),
    "seed as text": (
        *(lambda: sample_spanning_trees(COMPLETE, random_state="0"), E),
        *("random_state", "'0'", "without quotes"),
    ),
}
