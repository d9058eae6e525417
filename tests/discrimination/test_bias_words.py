"""The older word "kkt" for a flat bias prior gives the same bits as "flat"."""

import numpy as np
import pytest

import maxent
from maxent import discrimination
from maxent.discrimination import SpanningTrees

# Estimators that cannot be fitted on numbers as they are: categories instead.
CATEGORICAL = ("MEDBayesNetClassifier", "MEDTreeClassifier")


def estimators():
    """Names of the public machines with a prior `bias`."""
    classes = {name: getattr(maxent, name) for name in maxent.__all__}
    return [
        name
        for name, cls in classes.items()
        if getattr(cls, "__module__", "").startswith("maxent.discrimination")
        and hasattr(cls, "get_params")
        and "bias" in cls._get_param_names()
    ]


OF_NUMBERS = ("MEDRegressor", "MEDRegressionSelector")


def data(name, rng, n_classes):
    y = np.repeat(np.arange(n_classes), 15)
    X = rng.normal(size=(len(y), 3)) + y[:, None]
    if name in CATEGORICAL:
        return (np.median(X, axis=0) < X).astype(int), y
    return (X, y + rng.normal(size=len(y))) if name in OF_NUMBERS else (X, y)


def assert_same_state(first, second):
    for name, value in vars(first).items():
        if name == "bias" or not name.endswith("_"):
            continue
        other = getattr(second, name)
        if name == "posteriors_":
            continue  # what they predict is compared
        np.testing.assert_array_equal(value, other, err_msg=name)


@pytest.mark.parametrize("name", estimators())
@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimators_take_both_words(name, n_classes, rng):
    cls = getattr(maxent, name)
    if name == "MEDFeatureSelector" and n_classes == 3:
        pytest.skip("two classes only")
    assert cls().bias == "flat"
    X, y = data(name, rng, n_classes)
    extra = {"parameters": "dirichlet"} if name == "MEDTreeClassifier" else {}
    for options in ({}, extra) if extra else ({},):
        flat, kkt = (cls(bias=b, **options).fit(X, y) for b in ("flat", "kkt"))
        assert kkt.bias == "kkt"  # as scikit-learn's clone wants it
        assert_same_state(flat, kkt)
        scores = "predict" if name in OF_NUMBERS else "decision_function"
        np.testing.assert_array_equal(getattr(flat, scores)(X), getattr(kkt, scores)(X))


def test_the_leave_one_out_bound_of_both_words(rng):
    X, y = data("MEDClassifier", rng, 2)
    for cls in (maxent.MEDClassifier, maxent.MEDGaussianClassifier):
        options = {"level": 1.0, "tempering": 0.0, "prior": "weak"}
        options = options if cls is maxent.MEDGaussianClassifier else {}
        flat, kkt = (cls(bias=b, **options).fit(X, y) for b in ("flat", "kkt"))
        np.testing.assert_array_equal(flat.loo_bound_, kkt.loo_bound_)


def same_result(flat, kkt):
    for name in ("lam", "bias", "objective", "gap", "n_iter"):
        np.testing.assert_array_equal(getattr(flat, name), getattr(kkt, name))


@pytest.mark.parametrize("function", ["solve_dual", "solve_kernel_dual", "dual_path"])
def test_functions_take_both_words(function, rng):
    X, y = data("MEDClassifier", rng, 2)
    signs, margin = np.where(y == 1, 1, -1), discrimination.ExponentialMargin(5.0)
    solve = getattr(discrimination, function)
    args = (X @ X.T,) if function != "solve_kernel_dual" else (X,)
    values = ([1.0, 3.0],) if function == "dual_path" else ()
    flat, kkt = (solve(*args, signs, margin, *values, bias=b) for b in ("flat", "kkt"))
    for pair in zip(flat, kkt, strict=True) if values else [(flat, kkt)]:
        same_result(*pair)


@pytest.mark.parametrize("solver", ["auto", "coordinate", "newton"])
def test_linear_solvers_take_both_words(solver, rng):
    X, y = data("MEDClassifier", rng, 2)
    signs, margin = np.where(y == 1, 1, -1), discrimination.ExponentialMargin(5.0)
    same_result(
        *(
            discrimination.solve_linear_dual(X, signs, margin, bias=b, solver=solver)
            for b in ("flat", "kkt")
        )
    )


def test_block_functions_take_both_words(rng):
    X, y = data("MEDTreeClassifier", rng, 2)
    signs = np.where(y == 1, 1.0, -1.0)
    blocks = [SpanningTrees.fit(X[y == k]).block(X) for k in (0, 1)]
    maps = [np.diag(-signs), np.diag(signs)]
    margin = discrimination.ExponentialMargin(2.0)
    same_result(
        *(
            discrimination.solve_blocks(blocks, maps, margin, bias=b, incidence=signs)
            for b in ("flat", "kkt")
        )
    )
    flat, kkt = (
        discrimination.max_margin(blocks, maps, bias=b, incidence=signs)
        for b in ("flat", "kkt")
    )
    assert (flat.lower, flat.upper) == (kkt.lower, kkt.upper)


def test_other_words_are_refused(rng):
    for name in estimators():
        with pytest.raises(ValueError, match="flat"):
            getattr(maxent, name)(bias="KKT").fit(*data(name, rng, 2))
    with pytest.raises(ValueError, match="use bias='flat'"):
        maxent.MEDGaussianClassifier(bias="train_error").fit(
            *data("MEDGaussianClassifier", rng, 3)
        )
