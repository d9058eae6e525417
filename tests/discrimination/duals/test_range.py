"""Features, targets and kernel values at the edge of the range of doubles.

Either a machine of finite numbers or one sentence that says what to scale, and no
warning of an overflow before it.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import outcome, refused

from maxent import MEDClassifier, MEDRegressor
from maxent.discrimination import ExponentialMargin, solve_dual, solve_kernel_dual

PRIOR = ExponentialMargin(5.0)
SIZES = [1e153, 1e160, 1e300, 1.7e308]
FORMS = {"dense": np.asarray, "sparse": sp.csr_array}
ASK = "scale|Scale"


def problem(rng, n=24, size=1.0):
    """Rows whose largest entry has this size."""
    X = rng.normal(size=(n, 3))
    return size * (X / np.abs(X).max()), np.where(np.arange(n) % 2, 1, -1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.5])
def test_huge_features_are_refused_in_a_sentence(kernel, gamma, form, size, rng):
    X, y = problem(rng, size=size)
    X = FORMS[form](X)
    kind = {"kernel": kernel, "gamma": gamma}
    for fit in (
        lambda: MEDClassifier(**kind).fit(X, y),
        lambda: MEDClassifier(**kind).fit(X, np.arange(24) % 3),
        lambda: MEDRegressor(**kind).fit(X, y),
        lambda: solve_kernel_dual(X, y, PRIOR, **kind),
    ):
        refused(fit, ASK)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [24, 500])
def test_powers_beyond_the_range_are_refused(form, n, rng):
    """Entries that are harmless, but not their polynomial kernel."""
    X, y = problem(rng, n, size=1e14)
    X = FORMS[form](X)
    kind = {"kernel": "poly", "gamma": 0.5}
    refused(lambda: MEDClassifier(**kind).fit(X, y), "kernel='poly'.*scale")
    refused(lambda: MEDRegressor(degree=64, **kind).fit(X, y), "kernel='poly'.*scale")
    refused(lambda: solve_kernel_dual(X, y, PRIOR, **kind), "kernel='poly'.*scale")
    assert outcome(lambda: MEDClassifier("poly").fit(X, y)).converged_  # gamma="scale"


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_single_precision_may_be_filled(kernel, rng):
    """Sums of float32 entries near the largest one overflow, and are no fault."""
    X, y = problem(rng, size=3e38)
    X = X.astype(np.float32)
    if kernel == "linear":
        refused(lambda: MEDClassifier(kernel).fit(X, y), ASK)
    else:
        assert outcome(lambda: MEDClassifier(kernel).fit(X, y)).converged_


@pytest.mark.parametrize("size", [1e38, 1e140, 1e300])
def test_huge_kernel_values_are_refused(size, rng):
    X, y = problem(rng, n=70)
    K = size * (X @ X.T / np.abs(X @ X.T).max())
    for fit in (
        lambda: solve_dual(K, y, PRIOR),
        lambda: MEDClassifier("precomputed").fit(K, y),
        lambda: MEDRegressor("precomputed").fit(K, y),
    ):
        refused(fit, "K has values.*scale")
    refused(lambda: MEDClassifier(lambda A, B: size * A @ B.T).fit(X, y), ASK)
    for fit in (
        lambda: solve_dual(K / size * 1e36, y, PRIOR, max_iter=100),
        lambda: MEDClassifier("precomputed", max_iter=100).fit(K / size * 1e36, y),
    ):
        outcome(fit)


@pytest.mark.parametrize("size", [1e16, 1e160, 1.7e308])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("bias", ["flat", 1.0])
def test_huge_targets_are_refused(size, kernel, bias, rng):
    X, y = problem(rng)
    y = size * np.linspace(-1, 1, 24)
    refused(lambda: MEDRegressor(kernel, bias=bias).fit(X, y), r"\by\b.*scale y")


def test_targets_far_from_zero_are_counted_from_their_middle(rng):
    X, _ = problem(rng)
    y = 2.0**60 + 2.0**10 * np.arange(24)
    model = outcome(lambda: MEDRegressor("linear", margin="hinge").fit(X, y))
    assert model.intercept_[0] == pytest.approx(2.0**60)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("size", SIZES)
def test_huge_rows_at_prediction_get_a_finite_answer_or_a_sentence(
    kernel, form, size, rng
):
    X, y = problem(rng)
    # "sigmoid" may be indefinite on the rows
    model = outcome(lambda: MEDClassifier(kernel, gamma=0.5).fit(FORMS[form](X), y))
    far = FORMS[form](problem(rng, n=4, size=size)[0])
    try:
        found = outcome(lambda: model.decision_function(far))
    except ValueError:
        refused(lambda: model.decision_function(far), "X has entries.*scale X")
    else:
        assert np.isfinite(found).all()


def test_overflowing_predictions_of_regressors_are_refused(rng):
    X, y = problem(rng)
    model = MEDRegressor("poly", gamma=1.0).fit(X, y)
    refused(lambda: model.predict(1e200 * X), "X has entries.*scale X")


# ------------------------------------------------------------- symmetric callables


def lopsided(A, B):
    return A @ B.T + 0.1 * A[:, :1] - 0.1 * B[:, :1].T


@pytest.mark.parametrize("solver", ["auto", "interior", "smo"])
@pytest.mark.parametrize("n", [24, 200])
def test_kernel_callables_that_are_not_symmetric_are_named(solver, n, rng):
    X, y = problem(rng, n)
    message = "kernel callable is not symmetric.*in one order"
    for fit in (
        lambda: MEDClassifier(lopsided, solver=solver).fit(X, y),
        lambda: MEDRegressor(lopsided, solver=solver).fit(X, y),
        lambda: solve_kernel_dual(X, y, PRIOR, kernel=lopsided, solver=solver),
    ):
        refused(fit, message)
    refused(lambda: MEDClassifier(lopsided).fit(X, np.arange(n) % 3), message)


def test_few_rows_are_asked_for_symmetry_and_rounding_is_allowed(rng):
    X, y = problem(rng, 200)
    sizes = []

    def kernel(A, B):
        sizes.append((len(A), len(B)))
        return (A.astype(np.float32) @ B.astype(np.float32).T) + 1e-7 * A[:, :1]

    MEDClassifier(kernel).fit(X, y)
    assert sizes[0] == (8, 8)
    one = np.vstack([X[:1], X[:1] + 1.0])
    assert MEDClassifier(kernel).fit(one, [0, 1]).converged_
