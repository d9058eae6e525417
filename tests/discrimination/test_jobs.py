"""n_jobs of the estimators with trees and kernel blocks: the number, and the bits."""

import numpy as np
import pytest
from maxent._core.threads import has_openmp
from oracles.tree_problems import categories
from refusals import refused

from maxent import ChowLiuClassifier, MEDOutlierDetector, MEDTreeClassifier
from maxent.discrimination import GaussianCentre, GaussianScores, kernel_blocks
from maxent.models.trees import _pair_counts, chow_liu, partition

CASES = {
    "trees": MEDTreeClassifier(level=3.0, tol=1e-3),
    "random tables": MEDTreeClassifier("dirichlet", level=3.0, tol=1e-3),
    "predictive": MEDTreeClassifier(level=3.0, tol=1e-3, likelihood="predictive"),
    "chow liu": ChowLiuClassifier(),
    "outliers": MEDOutlierDetector("tree", tol=1e-3),
    "scores": MEDOutlierDetector(GaussianScores(gamma=0.1), quantile=0.2),
    "centre": MEDOutlierDetector(GaussianCentre(gamma=0.1)),
}
BY_JOBS = pytest.mark.parametrize("name", list(CASES))


def answers(name, k, rng_seed):
    rng = np.random.default_rng(rng_seed)
    X, y = categories(rng, 120)
    model = CASES[name].set_params(n_jobs=k).fit(X, y)
    if isinstance(model, ChowLiuClassifier):
        return model, model.predict_log_proba(X)
    return model, model.decision_function(X)


@BY_JOBS
def test_bits_do_not_depend_on_the_number(name, seed):
    _, one = answers(name, 1, seed or 0)
    for k in (2, None):
        np.testing.assert_array_equal(answers(name, k, seed or 0)[1], one)


@pytest.mark.skipif(not has_openmp(), reason="built without OpenMP")
@BY_JOBS
def test_every_loop_gets_the_number(name, seed, monkeypatch):
    seen = []
    for module in (_pair_counts, chow_liu, partition, kernel_blocks):
        inner = module.effective_threads

        def spy(*given, inner=inner):
            seen.append(inner(*given))
            return seen[-1]

        monkeypatch.setattr(module, "effective_threads", spy)
    model, _ = answers(name, 3, seed or 0)
    if name == "trees":
        model.sample_trees(2, random_state=0)
    assert seen and set(seen) == {3}


@BY_JOBS
@pytest.mark.parametrize("wrong", [0, 1.5, "all", 10**6])
def test_wrong_numbers_are_refused(name, wrong):
    refused(lambda: answers(name, wrong, 0), r"\bn_jobs=")
