"""Joint machines of several classes, fitted to rows in blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.block_cases import agree

from maxent import MEDClassifier, RowBlocks
from maxent.discrimination import HingeMargin
from maxent.discrimination.duals._partitioned_classes import PartClassRows, _moved

NYSTROEM = {"approximation": "nystroem", "n_components": 40, "random_state": 0}
BIASES = ["flat", None, 2.0]


@pytest.fixture
def data(rng):
    """Rows of four classes that overlap; the last block has no row of the first."""
    X = rng.normal(size=(700, 5)) + 0.3
    scores = X @ rng.normal(size=(5, 4)) + rng.normal(size=(700, 4))
    y = scores.argmax(axis=1)
    y[500:] = np.where(y[500:] == 0, 1, y[500:])
    return X, np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("margin", ["exponential", "gaussian", "logistic", "hinge"])
def test_the_machine_is_that_of_one_array(margin, bias, data, rng):
    X, y = data
    weight = rng.integers(0, 3, size=len(X)).astype(float)
    options = {"sample_weight": weight}
    model = MEDClassifier(
        "linear", margin=margin, bias=bias, tol=1e-5, class_weight={"b": 2.0}
    )
    apart = model.fit(RowBlocks(X, 130), y, **options)
    gap, objective = apart.duality_gap_, apart.objective_
    answers = apart.decision_function(X)
    exact = model.set_params(multi_class="joint", tol=1e-9).fit(X, y, **options)
    assert gap <= 1e-5 * (1 + objective)
    # the certificate encloses the optimum
    assert objective <= exact.objective_ * (1 + 1e-8)
    assert exact.objective_ <= objective + gap + 1e-8 * exact.objective_
    agree(answers, exact.decision_function(X), 2e-2)


@pytest.mark.parametrize("bias", BIASES)
def test_sparse_rows_take_products_with_the_hessian(bias, data):
    X, y = data
    wide = sp.random_array((700, 600), density=0.01, random_state=1, format="csr")
    X = sp.hstack([sp.csr_array(X), wide]).tocsr()  # 4 x 606 weights and biases
    model = MEDClassifier("linear", bias=bias, tol=1e-6)
    apart = model.fit(RowBlocks(X, 200), y)
    assert apart.converged_ and apart.duality_gap_ <= 1e-6 * (1 + apart.objective_)
    objective = apart.objective_
    exact = model.set_params(multi_class="joint", tol=1e-8).fit(X, y)
    agree(objective, exact.objective_, 1e-5)


@pytest.mark.parametrize("margin", ["exponential", "logistic", "hinge"])
def test_approximate_kernels_are_those_of_one_array(margin, data):
    X, y = data
    # features and Hessians are in single precision, which ends narrow corners early
    tol = 1e-4 if margin == "hinge" else 1e-7
    model = MEDClassifier(gamma=0.3, margin=margin, tol=tol, **NYSTROEM)
    apart = model.fit(RowBlocks(X, 130), y)
    objective, answers = apart.objective_, apart.decision_function(X)
    assert np.isnan(apart.approximation_gap_)
    exact = model.set_params(multi_class="joint").fit(X, y)
    agree(objective, exact.objective_, 10 * tol)
    agree(answers, exact.decision_function(X), 2.0 * np.sqrt(tol * (1 + objective)))


def test_bits_do_not_depend_on_the_scheduler(data):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    X, y = data
    blocks = RowBlocks(X, 130)
    model = MEDClassifier("linear")
    expected = model.fit(blocks, y).coef_
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            fit = model.fit(da.from_array(X, chunks=(130, 5)), y)
            np.testing.assert_array_equal(fit.coef_, expected)
            answers = fit.predict(da.from_array(X, chunks=(200, 5))).compute()
        np.testing.assert_array_equal(answers, fit.predict(X))


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
def test_moved_multipliers_stay_in_their_domain(size, data, rng):
    X, y = data
    rows = PartClassRows(HingeMargin(), "flat", np.ones(4), np.array([*"abcd"]))
    loss = rows.problem(X, y, None)
    lam = np.full(len(loss.rows.q), 0.5) if size < 1 else rng.random(len(loss.rows.q))
    shares = loss.c.weight  # balanced but for noise: every pair alike, both ways
    counts = np.bincount(loss.c.codes, minlength=4)
    lam /= counts[loss.c.right] / counts.min() / shares[0]
    lam *= 1 + size * rng.uniform(-1, 1, size=len(lam))
    moved = _moved(loss, lam, rows.correction(rows._balance(loss, lam)))
    assert (moved >= 0).all() and (moved <= loss.rows.upper).all()
    assert np.abs(loss.E.T @ moved).max() <= 1e-9 * max(moved.sum(), 1)
    assert moved.any() == (size < 1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"multi_class": "ovo"}, "use multi_class='joint'"),
        ({"solver": "coordinate"}, "use solver='newton'"),
    ],
)
def test_what_blocks_of_several_classes_cannot_do_is_said(options, message, data):
    X, y = data
    with pytest.raises(ValueError, match=message):
        MEDClassifier("linear", **options).fit(RowBlocks(X, 130), y)
