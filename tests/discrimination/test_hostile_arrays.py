"""Hostile arrays, sparse matrices, kernel matrices and kernel functions."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import outcome, refused

from maxent import (
    MaxEntClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDPartialLabelClassifier,
    MEDRegressor,
)
from maxent.discrimination import (
    ExponentialMargin,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)

PRIOR = ExponentialMargin(5.0)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(24, 3))
    y = np.where(np.arange(24) % 2, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


# ------------------------------------------------------------- arrays


def bad_features():
    X = np.random.default_rng(0).normal(size=(24, 3))
    hole = X.copy()
    hole[7, 1] = math.nan
    full = X.copy()
    full[7, 1] = math.inf
    return {
        "no rows": (X[:0], "0 sample"),
        "no columns": (X[:, :0], "0 feature"),
        "one dimension": (X[:, 0], "2D"),
        "three dimensions": (X[:, :, None], "dim 3"),
        "NaN": (hole, "NaN"),
        "infinity": (full, "infinity"),
        "complex": (X.astype(complex), "Complex"),
        "text": (np.full((24, 3), "a"), "could not convert"),
        "sparse NaN": (sp.csr_array(hole), "NaN"),
        "too few rows": (X[:5], "5"),
    }


@pytest.mark.parametrize("name", bad_features())
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: solve_kernel_dual(X, y, PRIOR),
        lambda X, y: solve_linear_dual(X, y, PRIOR),
        lambda X, y: MEDClassifier().fit(X, y),
        lambda X, y: MEDRegressor().fit(X, y),
        lambda X, y: MEDFeatureSelector().fit(X, y),
    ],
    ids=["kernel", "linear", "classifier", "regressor", "selector"],
)
def test_bad_features_are_refused(name, fit, data):
    X, message = bad_features()[name]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(X, data[1])


BAD_MATRICES = {
    "empty": np.empty((0, 0)),
    "one dimension": np.ones(24),
    "three dimensions": np.ones((1, 24, 24)),
    "not square": np.ones((24, 23)),
    "NaN": np.full((24, 24), np.nan),
    "infinity": np.full((24, 24), np.inf),
    "asymmetric": np.eye(24) + np.triu(np.ones((24, 24)), 1),
    "too small": np.eye(7),
}


@pytest.mark.parametrize("name", BAD_MATRICES)
def test_bad_kernel_matrices_are_refused(name, data):
    K = BAD_MATRICES[name]
    refused(lambda: solve_dual(K, data[1], PRIOR), r"\bK\b")
    with pytest.raises(ValueError, match=r"K|sample|NaN|infinity|2D|dim|square|incons"):
        MEDClassifier("precomputed").fit(K, data[1])


def test_complex_matrices_labels_and_kernels_are_refused(data):
    X, y = data
    K = X @ X.T
    refused(lambda: solve_dual(K + 1j, y, PRIOR), "complex")
    refused(lambda: solve_dual(K, y + 0j, PRIOR), "complex")
    refused(lambda: MEDClassifier(lambda A, B: (A @ B.T) * 1j).fit(X, y), "complex")


def test_sparse_kernel_matrices_are_named_as_such(data):
    X, y = data
    refused(lambda: solve_dual(sp.csr_array(X @ X.T), y, PRIOR), "sparse|dense")


def test_missing_targets_among_objects_are_refused(data):
    X, y = data
    targets = y.astype(object)
    targets[3] = None
    refused(lambda: MEDRegressor().fit(X, targets), "y|NaN")


BOOLEANS = {  # as labels: what is refused, or the classes
    "objects": (
        lambda y: y.astype(object),
        r"objects of type bool, .*y\.astype\(bool\)",
    ),
    "with numbers": (
        lambda y: np.array([1, *y[1:]], dtype=object),
        r"bool and int, .*y\.astype\(int\)",
    ),
    "one missing": (
        lambda y: np.array([None, *y[1:]], dtype=object),
        r"y\[0\]=None; drop",
    ),
    "pandas, one missing": (
        lambda y: pd.Series([None, *y[1:]], dtype="boolean"),
        r"y\[0\]=<NA>; drop",
    ),
    "pandas' text with one missing": (
        lambda y: pd.Series([None, *map(str, y[1:])], dtype="string"),
        r"y\[0\]=<NA>; drop",
    ),
    "pandas": (lambda y: pd.Series(y, dtype="boolean"), [0.0, 1.0]),  # as SVC's
    "booleans": (lambda y: y, [False, True]),
}


@pytest.mark.parametrize("case", list(BOOLEANS))
def test_booleans_as_labels_are_classes_or_refused(case, data):
    X, y = data
    make, found = BOOLEANS[case]
    model = MEDClassifier()
    if isinstance(found, str):
        refused(lambda: model.fit(X, make(y > 0)), found)
    else:
        classes = model.fit(X, make(y > 0)).classes_
        assert classes.tolist() == found and classes.dtype == np.array(found).dtype


def memory_mapped(X, path):
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def locked(X):
    X = X.copy()
    X.setflags(write=False)
    return X


LAYOUTS = {
    "read-only": lambda X, path: locked(X),
    "Fortran": lambda X, path: np.asfortranarray(X),
    "strided": lambda X, path: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X, path: X[::-1][::-1],
    "memory-mapped": lambda X, path: memory_mapped(X, path / "X.npy"),
    "big-endian": lambda X, path: X.astype(">f8"),
    "objects": lambda X, path: X.astype(object),
    "lists": lambda X, path: X.tolist(),
    "long doubles": lambda X, path: X.astype(np.longdouble),
}
SOLVERS = {
    "rbf-interior": lambda X, y: MEDClassifier(solver="interior").fit(X, y),
    "rbf-smo": lambda X, y: MEDClassifier(solver="smo").fit(X, y),
    "linear-coordinate": lambda X, y: MEDClassifier("linear", solver="coordinate").fit(
        X, y
    ),
    "linear-newton": lambda X, y: MEDClassifier("linear", solver="newton").fit(X, y),
    "regressor": lambda X, y: MEDRegressor(solver="smo").fit(X, y),
    "selector": lambda X, y: MEDFeatureSelector().fit(X, y),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_layout_and_storage_do_not_matter(layout, solver, data, tmp_path):
    X, y = data
    X = np.round(X, 3)
    plain = SOLVERS[solver](X, y)
    given = LAYOUTS[layout](X, tmp_path)
    other = outcome(lambda: SOLVERS[solver](given, locked(y)))
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    np.testing.assert_allclose(
        outcome(lambda: other.predict(given)), plain.predict(X), rtol=1e-9
    )


@pytest.mark.parametrize("layout", ["read-only", "Fortran", "strided", "memory-mapped"])
def test_layout_of_a_kernel_matrix_does_not_matter(layout, data, tmp_path):
    X, y = data
    K = X @ X.T + np.eye(24)
    K = (K + K.T) / 2
    before = K.copy()
    for solver in ("interior", "smo"):
        plain = solve_dual(K, y, PRIOR, solver=solver)
        other = solve_dual(LAYOUTS[layout](K, tmp_path), y, PRIOR, solver=solver)
        assert other.objective == pytest.approx(plain.objective, rel=1e-12)
    assert (before == K).all()


@pytest.mark.parametrize("real", [np.float32, np.float16, np.int64, np.int8, bool])
def test_smaller_numbers_are_taken_at_their_value(real, data):
    X, y = data
    X = np.round(2 * X).astype(real)
    for solver, fit in SOLVERS.items():
        plain, other = fit(X.astype(float), y), outcome(lambda f=fit: f(X, y))
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-6), solver


FORMS = [
    "explicit zeros",
    "unsorted",
    "duplicates",
    "long",
    "csc",
    "coo",
    "matrix",
    "single",
]


def sparse_forms(X):
    """The same matrix: explicit zeros, unsorted, duplicated entries, long indices."""
    plain = sp.csr_array(X)
    full = sp.csr_array(np.where(X == 0, 7.0, X))
    full.data[full.data == 7.0] = 0.0
    rows, columns = np.nonzero(X)
    order = np.lexsort((-columns, rows))
    unsorted = (X[rows, columns][order], columns[order], plain.indptr)
    unsorted = sp.csr_array(unsorted, shape=X.shape)
    assert not unsorted.has_sorted_indices
    halves = np.repeat(0.5 * X[rows, columns], 2)
    double = (halves, np.repeat(columns, 2), 2 * plain.indptr)
    double = sp.csr_array(double, shape=X.shape)
    long = sp.csr_array(X)
    long.indices, long.indptr = (
        a.astype(np.int64) for a in (long.indices, long.indptr)
    )
    return {
        "explicit zeros": full,
        "unsorted": unsorted,
        "duplicates": double,
        "long": long,
        "csc": sp.csc_array(X),
        "coo": sp.coo_array(X),
        "matrix": sp.csr_matrix(X),
        "single": plain.astype(np.float32),
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: MEDClassifier(gamma=0.3, solver="smo").fit(X, y).objective_,
        lambda X, y: MEDClassifier(gamma=0.3, solver="interior").fit(X, y).objective_,
        lambda X, y: solve_linear_dual(X, y, PRIOR, solver="coordinate").objective,
        lambda X, y: solve_linear_dual(X, y, PRIOR, solver="interior").objective,
        lambda X, y: MEDFeatureSelector().fit(X, y).objective_,
    ],
    ids=["smo", "interior", "coordinate", "linear-interior", "selector"],
)
def test_form_of_a_sparse_matrix_does_not_matter(form, fit, data):
    X, y = data
    X = np.where(np.abs(X) < 0.4, 0.0, np.round(X * 64) / 64)  # exact in single
    given = sparse_forms(X)[form]
    assert (given.toarray() == X).all()
    assert fit(given, y) == pytest.approx(fit(sp.csr_array(X), y), rel=1e-9)
    assert (given.toarray() == X).all()


@pytest.mark.parametrize("form", ["unsorted", "duplicates"])
def test_sparse_input_is_left_as_it_is(form, data):
    X, y = data
    given = sparse_forms(np.where(np.abs(X) < 0.4, 0.0, X))[form]
    before = [a.copy() for a in (given.data, given.indices, given.indptr)]
    solve_linear_dual(given, y, PRIOR)
    for a, b in zip(before, (given.data, given.indices, given.indptr)):
        assert a.shape == b.shape
        assert (a == b).all()


@pytest.mark.parametrize("form", ["unsorted", "duplicates"])
def test_read_only_sparse_input_is_taken(form, data):
    X, y = data
    given = sparse_forms(np.where(np.abs(X) < 0.4, 0.0, X))[form]
    for a in (given.data, given.indices, given.indptr):
        a.setflags(write=False)
    assert solve_linear_dual(given, y, PRIOR).converged


def test_newton_on_sparse_rows_is_refused_or_solved(data):
    X, y = data
    try:
        r = solve_linear_dual(sp.csr_array(X), y, PRIOR, solver="newton")
    except ValueError as error:
        assert re.search("newton|dense|sparse", str(error))
    else:
        assert r.converged


# ------------------------------------------------------------- one wild entry


def wild(X, value):
    """A data frame with one entry that is another."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    if isinstance(value, int):
        frame = frame.astype(object)
    frame.iloc[5, 1] = value
    return frame


@pytest.mark.parametrize("value", [1e100, -1e140, 1e155, 1e300, 10**400, math.inf])
@pytest.mark.parametrize(
    "machine",
    [
        MEDClassifier("linear"),
        MEDClassifier("poly"),
        MEDClassifier("linear", multi_class="joint"),
        MEDRegressor("linear"),
        MEDFeatureSelector(),
        MEDGaussianClassifier(),
        MEDGaussianClassifier(prior="weak"),
        MEDPartialLabelClassifier(MEDGaussianClassifier()),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_wild_entry_is_named_before_the_work(machine, value, n_classes, data):
    X, y = data[0], (data[1] > 0).astype(int)
    if n_classes == 3:
        if isinstance(machine, (MEDFeatureSelector, MEDPartialLabelClassifier)):
            pytest.skip("of two classes")
        y = np.arange(len(y)) % 3
    refused(lambda: machine.fit(wild(X, value), y), "(column|feature) 'b'|\\[5, 1\\]=")


@pytest.mark.parametrize("machine", [MEDClassifier(), MaxEntClassifier()])
@pytest.mark.parametrize("value", [1e155, -1e300, 10**400])
def test_an_entry_whose_square_is_beyond_doubles_is_named(machine, value, data):
    message = r"X\[5, 1\]=.* of column 'b'"
    refused(lambda: machine.fit(wild(data[0], value), data[1]), message)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [1e7, -1e30, 1e140])
def test_an_entry_that_gamma_follows_alone_is_told(form, value, data):
    X, y = data
    X[5, 1] = value
    if sp.issparse(form(X)) and abs(value) > 1e15:
        pytest.skip("refused")
    message = r"the entry .* of column 1 of X is so far from all others that gamma='sc"
    with pytest.warns(UserWarning, match=message):
        MEDClassifier().fit(form(X), y)
    outcome(lambda: MEDClassifier(gamma=0.5).fit(X, y))
    X[5, 1] = 100.0
    outcome(lambda: MEDClassifier().fit(form(X), y))


def test_values_far_from_a_class_are_learnt_from_as_long_as_doubles_hold_them(data):
    """And in any unit: only distances in standard deviations count."""
    X, y = data
    X[5, 1] = 1e40
    expected = MEDGaussianClassifier().fit(X, y).predict(X)
    for unit in (1e-60, 1e60):
        found = outcome(lambda unit=unit: MEDGaussianClassifier().fit(unit * X, y))
        assert found.predict(unit * X).tolist() == expected.tolist()


# ------------------------------------------------------------- kernel callables


@pytest.mark.parametrize("solver", ["interior", "smo"])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "finite"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "finite"),
        (lambda A, B: np.ones(len(A)), "shape"),
        (lambda A, B: np.ones((len(A), len(B) + 1)), "shape"),
        (lambda A, B: np.ones((len(A), len(B), 1)), "shape"),
        (lambda A, B: None, "shape|finite|float"),
        (lambda A, B: np.full((len(A), len(B)), "x"), "convert"),
    ],
)
def test_kernel_callables_that_return_nonsense_are_named(kernel, message, solver, data):
    X, y = data
    with pytest.raises((ValueError, TypeError), match=message):
        outcome(lambda: MEDClassifier(kernel, solver=solver).fit(X, y))


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: (A @ B.T).astype(np.float32),
        lambda A, B: (A @ B.T).tolist(),
        lambda A, B: np.asfortranarray(A @ B.T),
        lambda A, B: locked(A @ B.T),
    ],
)
def test_kernel_callables_may_return_any_array(kernel, data):
    X, y = data
    plain = MEDClassifier("linear", solver="smo", tol=1e-5).fit(X, y)
    model = outcome(lambda: MEDClassifier(kernel, solver="smo", tol=1e-5).fit(X, y))
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X), atol=1e-2
    )


def test_errors_inside_a_kernel_callable_come_through(data):
    X, y = data

    def kernel(A, B):
        raise KeyError("mine")

    for solver in ("interior", "smo"):
        with pytest.raises(KeyError, match="mine"):
            MEDClassifier(kernel, solver=solver).fit(X, y)
