"""Masked arrays: no estimator or solver uses the values behind a mask."""

import numpy as np
import pytest
from refusals import refused

from maxent import (
    ChowLiuClassifier,
    LMEDirichletMixture,
    LMEGaussianMixture,
    M3EClassifier,
    M3EGridClassifier,
    M3EMotifClassifier,
    MaxEntClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDPartialLabelClassifier,
    MEDRegressionSelector,
    MEDRegressor,
    MEDSequenceOutlierDetector,
    MEDTreeClassifier,
)
from maxent.discrimination import (
    ExponentialMargin,
    GaussianScores,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.kernels import FisherScores, fisher_kernel, js_kernel
from maxent.latent import fit_maxent
from maxent.minentropy import renyi_score, solve_margin_qp

N = 12
X = np.random.default_rng(0).normal(size=(N, 2))
Y = np.arange(N) % 2
ONES = np.ones(N)
SIGNS = 2 * Y - 1
GRAM = X @ X.T
CODES = np.random.default_rng(1).integers(0, 3, size=(N, 3))
SHARES = np.random.default_rng(2).dirichlet(np.ones(3), N)
GRIDS = np.random.default_rng(3).normal(size=(N, 4, 4))
PRIOR = ExponentialMargin(5.0)


def masked(values):
    """A copy, the second entry of which is masked."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[1] = True
    return np.ma.array(values, mask=mask)


def listed(values):
    return [masked(row) for row in values]


ROWS = {
    MEDClassifier(): X,
    MEDRegressor(): X,
    MEDFeatureSelector(): X,
    MEDRegressionSelector(): X,
    MEDGaussianClassifier(): X,
    MEDBayesNetClassifier(): CODES,
    MEDTreeClassifier(): CODES,
    ChowLiuClassifier(): CODES,
    MEDPartialLabelClassifier(): X,
    MaxEntClassifier(): X,
    M3EClassifier(): X[:, None],
    M3EGridClassifier(): GRIDS,
    M3EMotifClassifier(2): CODES,
    MEDOutlierDetector(): X,
    MEDOutlierDetector("tree"): CODES,
    MEDOutlierDetector("mixture"): X,
    MEDOutlierDetector(GaussianScores()): X,
    LMEGaussianMixture(2): X,
    LMEDirichletMixture(2): SHARES,
}


@pytest.mark.parametrize("form", [masked, listed, lambda X: masked(X.astype(object))])
@pytest.mark.parametrize("estimator", ROWS, ids=lambda e: type(e).__name__)
def test_rows(estimator, form):
    refused(lambda: estimator.fit(form(ROWS[estimator]), Y), r"X(\[\d+\])? is a masked")


@pytest.mark.parametrize("estimator", list(ROWS)[:12], ids=lambda e: type(e).__name__)
def test_labels_and_weights(estimator):
    refused(lambda: estimator.fit(ROWS[estimator], masked(Y)), "y is a masked")
    refused(
        lambda: estimator.fit(ROWS[estimator], Y, sample_weight=masked(ONES)),
        "sample_weight is a masked",
    )


@pytest.mark.parametrize(
    "machine", [MEDClassifier("precomputed"), MEDRegressor("precomputed")]
)
def test_kernel_matrices(machine):
    refused(lambda: machine.fit(masked(GRAM), Y), "X is a masked")
    machine.fit(GRAM, Y)
    refused(lambda: machine.predict(masked(GRAM)), "X is a masked")


@pytest.mark.parametrize(
    "call",
    [
        lambda: solve_dual(masked(GRAM), SIGNS, PRIOR),
        lambda: solve_dual(GRAM, masked(SIGNS), PRIOR),
        lambda: solve_kernel_dual(masked(X), SIGNS, PRIOR),
        lambda: solve_linear_dual(masked(X), SIGNS, PRIOR),
        lambda: solve_linear_dual(X, SIGNS, PRIOR, sample_weight=masked(ONES)),
        lambda: solve_margin_qp(masked(X), ONES, 1.0),
        lambda: fit_maxent(masked(X), [0.0, 0.0]),
        lambda: fit_maxent(X, masked([0.0, 0.0])),
        lambda: renyi_score(masked(X), 2.0),
        lambda: fisher_kernel(masked(X)),
        lambda: js_kernel(masked(SHARES)),
        lambda: FisherScores("Gaussian").fit(masked(X)),
        lambda: MEDPartialLabelClassifier().fit(X, Y, label_prior=masked(0.5 * ONES)),
        lambda: MEDSequenceOutlierDetector(2).fit(listed(CODES)),
    ],
)
def test_arguments_of_functions(call):
    refused(call, "is a masked array.*write NaN there")


def test_a_mask_without_an_entry_hides_nothing():
    plain = MEDClassifier().fit(X, Y).decision_function(X)
    free = MEDClassifier().fit(np.ma.array(X), np.ma.array(Y)).decision_function(X)
    assert free.tolist() == plain.tolist()
