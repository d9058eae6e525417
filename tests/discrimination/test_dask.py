"""Linear machines of Dask arrays, against those of one array."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.block_cases import agree
from sklearn.exceptions import NotFittedError

from maxent import MEDClassifier, MEDRegressor, RowBlocks
from maxent._partitions.partitions import Partitions
from maxent.discrimination import HingeMargin, solve_linear_dual
from maxent.discrimination.duals._partitioned_linear import (
    PartRows,
    RoundedHinge,
    balanced,
    balancing,
    solve_partitioned,
)

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


@pytest.fixture
def data(rng):
    X = rng.normal(size=(600, 5)) + 0.3
    y = X @ rng.normal(size=5) + rng.normal(size=600) > 0.2
    return X, np.where(y, "yes", "no")


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def cut(X, size=130):
    return da.from_array(X, chunks=(size, *X.shape[1:]))


def csr(blocks):
    return blocks.map_blocks(sp.csr_matrix)


def truth(model, X, y, **options):
    """The same machine of one array, to 1e-9."""
    return type(model)(**{**model.get_params(), "tol": 1e-9, "solver": "auto"}).fit(
        X, y, **options
    )


@pytest.mark.parametrize(
    "margin, sparse, bias",
    [
        (margin, sparse, ["flat", None, 2.0][(i + j) % 3])
        for i, margin in enumerate(
            ["exponential", "gaussian", "logistic", "laplace", "hinge"]
        )
        for j, sparse in enumerate([False, True])
    ],
)
def test_the_certificate_encloses_the_optimum(margin, sparse, bias, data):
    X, y = data
    model = MEDClassifier("linear", C=0.5, margin=margin, bias=bias, tol=1e-4)
    found = model.fit(csr(cut(X)) if sparse else cut(X), y)
    best = truth(model, X, y).objective_
    low, high = found.objective_, found.objective_ + found.duality_gap_
    assert found.converged_ and found.duality_gap_ <= 1e-4 * (1 + low)
    assert low <= best * (1 + 1e-8) + 1e-8 and best <= high * (1 + 1e-8) + 1e-8
    assert found.classes_.tolist() == ["no", "yes"]
    assert (found.predict(X) == truth(model, X, y).predict(X)).mean() > 0.99


@pytest.mark.parametrize(
    "margin, bias, sparse, C, n",
    [
        (margin, bias, *[(False, 0.01, 600), (True, 1.0, 80)][(i + j) % 2])
        for i, margin in enumerate(["exponential", "hinge"])
        for j, bias in enumerate(["flat", None, 2.0])
    ],
)
def test_adding_updates_reach_the_same_optimum(margin, sparse, bias, C, n, data):
    X, y = data[0][:n], data[1][:n]
    model = MEDClassifier(
        "linear", C=C, margin=margin, bias=bias, solver="coordinate", tol=1e-2
    )
    blocks = cut(X, n // 2)
    found = model.fit(csr(blocks) if sparse else blocks, y)
    best = truth(model, X, y).objective_
    assert found.converged_ and found.duality_gap_ <= 1e-2 * (1 + found.objective_)
    assert found.objective_ <= best * (1 + 1e-8)
    assert best <= found.objective_ + found.duality_gap_ + 1e-8


@pytest.mark.parametrize(
    "margin, sparse, bias, C",
    [
        (margin, bool((i + j) % 2), bias, C)
        for i, margin in enumerate(["exponential", "hinge"])
        for j, (bias, C) in enumerate([("flat", 0.01), (None, 1.0), (2.0, 1.0)])
    ],
)
def test_adding_updates_of_targets_reach_the_same_optimum(margin, sparse, bias, C, rng):
    X = rng.normal(size=(120, 3))
    y = X @ rng.normal(size=3) + 0.3 * rng.normal(size=120) + 1.0
    model = MEDRegressor(
        "linear", C=C, margin=margin, bias=bias, solver="coordinate", tol=1e-2
    )
    blocks = cut(X, 60)
    found, one = model.fit(csr(blocks) if sparse else blocks, y), truth(model, X, y)
    slack = 1e-8 * (1 + one.objective_)
    assert found.converged_
    assert found.objective_ <= one.objective_ + slack
    assert one.objective_ <= found.objective_ + found.duality_gap_ + slack


@pytest.mark.filterwarnings("ignore:MEDRegressor. all predictions are nearly the same")
@pytest.mark.parametrize("margin", ["exponential", "hinge", "gaussian"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_regression_of_targets_of_any_size(margin, scale, rng):
    X = rng.normal(size=(500, 4))
    y = scale * (X @ rng.normal(size=4) + 0.1 * rng.normal(size=500) + 3.0)
    model = MEDRegressor("linear", margin=margin, epsilon=0.1 * scale)
    found, one = model.fit(cut(X), y), truth(model, X, y)
    assert found.converged_
    # tolerances are relative to the spread of the targets, squared
    slack = 1e-8 * (y.var() + one.objective_)
    assert found.objective_ <= one.objective_ + slack
    assert one.objective_ <= found.objective_ + found.duality_gap_ + slack
    assert np.abs(found.predict(X) - one.predict(X)).max() < 0.1 * scale
    agree(found.predict(cut(X)).compute(), found.predict(X), 1e-14)


def test_weights_of_rows_and_classes_are_those_of_one_array(data, rng):
    X, y = data
    weight = rng.integers(0, 3, size=len(y)).astype(float)
    model = MEDClassifier(
        "linear", margin="logistic", class_weight="balanced", tol=1e-8
    )
    one = truth(model, X, y, sample_weight=weight)
    found = model.fit(cut(X), cut(y, 77), sample_weight=weight)
    assert found.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_allclose(found.coef_, one.coef_, atol=1e-3)
    proba = found.predict_proba(cut(X))
    assert proba.shape == (600, 2)
    agree(proba.compute(), found.predict_proba(X), 1e-14)
    logs = found.predict_log_proba(cut(X)).compute()
    np.testing.assert_allclose(np.exp(logs), proba.compute(), atol=1e-12)


def test_bits_do_not_depend_on_who_computes(data):
    X, y = data
    states = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            for margin in ("exponential", "hinge"):
                model = MEDClassifier("linear", margin=margin).fit(cut(X), cut(y, 50))
                states.append((model.coef_.tobytes(), model.duality_gap_))
    assert states[:2] == states[2:]


def test_answers_are_lazy_and_those_of_blocks(data):
    X, y = data
    model = MEDClassifier("linear").fit(cut(X), y)
    value, label = model.decision_function(cut(X)), model.predict(cut(X))
    assert value.chunks == label.chunks == ((130, 130, 130, 130, 80),)
    # where a row stands in its block decides in which order BLAS adds, not the label
    agree(value.compute(), model.decision_function(X), 1e-14)
    np.testing.assert_array_equal(label.compute(), model.predict(X))
    with pytest.raises(NotFittedError):
        MEDClassifier("linear").predict(cut(X))


REFUSED = [
    ({"kernel": "rbf"}, None, ValueError, "kernel='rbf' needs all rows"),
    (
        {"kernel": "rbf", "approximation": "nystroem", "solver": "coordinate"},
        None,
        ValueError,
        "solver='coordinate' needs all rows at once; use 'auto' or 'newton'",
    ),
    ({"solver": "interior"}, None, ValueError, "solver='interior' needs all rows"),
    ({"margin": "fixed"}, None, ValueError, "finite loss"),
    ({"multi_class": "ovo"}, "three", ValueError, "use multi_class='joint'"),
    ({}, "one", ValueError, "one class only"),
    ({}, "none", ValueError, "y is None"),
    ({"class_weight": {"maybe": 2.0}}, None, ValueError, "'maybe'"),
    ({"class_weight": "even"}, None, ValueError, "class_weight='even'"),
]
BEFORE = {"kernel", "solver", "margin"}  # refused without a look at the rows


@pytest.mark.parametrize("options, labels, kind, message", REFUSED)
def test_what_partitions_cannot_do_is_said(options, labels, kind, message, data):
    X, y = data
    y = {"three": np.arange(600) % 3, "one": np.ones(600), "none": None}.get(labels, y)
    seen = []

    def watched(block):
        seen.append(len(block))
        return block

    blocks = cut(X).map_blocks(watched, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(kind, match=message):
        MEDClassifier(**{"kernel": "linear", **options}).fit(blocks, y)
    before = BEFORE & set(options) or options.get("class_weight") == "even"
    assert len(seen) == (0 if before or y is None else 5)


def test_a_block_with_fewer_columns_than_fitted_is_refused_at_once(data):
    X, y = data
    model = MEDClassifier("linear", margin="logistic").fit(cut(X), y)
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        with pytest.raises(ValueError, match=r"X has 4 features .* to 5"):
            getattr(model, name)(cut(X[:, :4]))
    with pytest.raises(ValueError, match="X has 4 features"):
        MEDRegressor("linear").fit(cut(X), X[:, 0]).predict(cut(X[:, :4]))


def test_sparse_blocks_of_any_format_are_rows(data):
    X, y = data
    want = MEDClassifier("linear", C=0.5).fit(csr(cut(X)), y).coef_
    for kind in (sp.csc_matrix, sp.coo_array):
        found = MEDClassifier("linear", C=0.5).fit(cut(X).map_blocks(kind), y).coef_
        np.testing.assert_array_equal(found, want)


def test_rows_and_targets_are_of_one_kind(data):
    X, y = data
    with pytest.raises(TypeError, match="y is a Dask array and X is not"):
        MEDClassifier("linear").fit(X, cut(y))


def test_a_fit_that_runs_out_of_steps_says_so(data):
    from sklearn.exceptions import ConvergenceWarning

    X, y = data
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = MEDClassifier("linear", margin="hinge", tol=1e-9, max_iter=1)
        model = model.fit(cut(X), y)
    assert not model.converged_


def test_balanced_multipliers_stay_in_their_domain(rng):
    class Linear:
        sign = np.where(rng.random(50) < 0.3, 1.0, -1.0)
        upper = np.where(rng.random(50) < 0.5, 2.0, np.inf)

    for size in (1e-9, 1e-2, 1.0):
        half = 0.5 * np.where(Linear.sign > 0, 1 / 15, 1 / 35)
        lam = half * (1 + size * rng.normal(size=50)).clip(0.0, 3.0)
        room = np.minimum(lam, np.where(np.isfinite(Linear.upper), 2.0 - lam, lam))
        side = Linear.sign * lam
        balance = side[side > 0].sum(), -side[side < 0].sum(), room @ room
        new = balanced(Linear, lam, balancing(balance))
        assert abs(Linear.sign @ new) <= 1e-14 * new.sum()
        assert (new >= 0).all() and (new <= Linear.upper).all()
    assert balancing((1.0, 0.0, 1e-9)) == (0.0, 0.0, 0.0)


def test_rounded_hinges_are_losses_with_their_derivatives(rng):
    loss, x = RoundedHinge(0.5), rng.uniform(-2, 2, size=200)
    value, slope, curvature = loss.loss_derivatives(x)
    assert (value >= np.maximum(x, 0) - 1e-15).all()
    assert (value <= np.maximum(x, 0) + 0.5 / 8 + 1e-15).all()
    h = 1e-6
    up, down = (loss.loss_derivatives(x + s)[0] for s in (h, -h))
    np.testing.assert_allclose((up - down) / (2 * h), slope, atol=1e-5)
    assert ((slope >= 0) & (slope <= 1) & (curvature >= 0)).all()


def test_the_hinge_is_certified_itself_to_any_accuracy(data):
    """Not the rounded one: the objective is that of a support vector machine."""
    X, y = data
    sign = np.where(y == "yes", 1.0, -1.0)
    parts = Partitions([(X[:200], sign[:200], None), (X[200:], sign[200:], None)])
    rows = PartRows(HingeMargin(), "flat", np.ones(2), np.array([-1.0, 1.0]))
    sample = X[::3], sign[::3], np.full(200, 3.0)
    best = solve_linear_dual(X, sign, HingeMargin(), tol=1e-11, solver="interior")
    for tol in (1e-2, 1e-4, 1e-6):
        found = solve_partitioned(
            parts, rows, sample, sparse=False, tol=tol, max_iter=300
        )
        assert found.converged
        assert found.objective <= best.objective * (1 + 1e-9)
        assert best.objective <= found.objective + found.gap + 1e-9


NYSTROEM = {"approximation": "nystroem", "n_components": 40, "random_state": 0}


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("margin", ["exponential", "logistic", "hinge"])
def test_approximate_kernels_are_those_of_one_array(gamma, margin, data, rng):
    X, y = data
    X = X + 1e3  # of "scale" the spread counts, not the place
    weight = rng.integers(0, 3, size=600).astype(float)
    # features and Hessians are in single precision, which ends narrow corners early
    tol = 1e-4 if margin == "hinge" else 1e-9
    model = MEDClassifier(gamma=gamma, margin=margin, tol=tol, **NYSTROEM)
    model.fit(cut(X), cut(y), sample_weight=cut(weight))
    kept = weight > 0
    # the sample has all rows of weight, in their order: so the same landmarks
    exact = MEDClassifier(gamma=model.gamma_, margin=margin, tol=1e-9, **NYSTROEM)
    exact.fit(X[kept], y[kept], sample_weight=weight[kept])
    agree(model.objective_, exact.objective_, max(1e-7, 10 * tol))
    near = 2.0 * np.sqrt(model.duality_gap_ + 1e-6)
    agree(model.decision_function(X), exact.decision_function(X), near)
    assert model.converged_
    spread = np.repeat(X[kept], weight[kept].astype(int), axis=0).var()
    expected = {"scale": 1 / (5 * spread), "auto": 1 / 5}.get(gamma, gamma)
    assert model.gamma_ == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, X[kept][exact.support_])
    assert (model.support_ == -1).all()  # places that a partition does not know
    assert np.isnan(model.approximation_gap_)
    answer = model.decision_function(cut(X)).compute()
    agree(answer, model.decision_function(X), 1e-12)


def test_approximate_regression_is_that_of_one_array(data):
    X, _ = data
    y = 50 + 10 * np.sin(X[:, 0]) + X[:, 1]
    model = MEDRegressor(epsilon=0.5, C=10.0, gamma=0.3, tol=1e-9, **NYSTROEM)
    apart, whole = model.fit(cut(X), cut(y)).predict(X), model.fit(X, y).predict(X)
    agree(apart, whole, 2e-3)


@pytest.mark.parametrize("kind", ["sparse", "blocks"])
def test_approximate_kernels_of_other_rows(kind, data):
    X, y = data
    model = MEDClassifier(gamma=0.3, **NYSTROEM)
    dense = model.fit(cut(X), cut(y)).decision_function(X)
    rows = csr(cut(X)) if kind == "sparse" else RowBlocks(X, 130)
    other = model.fit(rows, cut(y) if kind == "sparse" else y).decision_function(X)
    agree(other, dense, 1e-5)


def test_approximate_kernels_have_the_same_bits_on_any_number_of_threads(data):
    X, y = data
    model, found = MEDClassifier(**NYSTROEM), []
    for options in ({"scheduler": "synchronous"}, {"num_workers": 3}):
        with dask.config.set(**{"scheduler": "threads"} | options):
            found.append(model.fit(cut(X), cut(y)).dual_coef_.tobytes())
    assert found[0] == found[1]
