"""Shortcuts of validation: what passes, what is refused, and in which words."""

import decimal
import inspect
import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refused

import maxent
from maxent import kernels, latent, minentropy
from maxent._support import fitted
from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent.discrimination import ExponentialMargin
from maxent.kernels import fisher_kernel


@pytest.mark.parametrize(
    "value",
    [1, 1.0, 1e-300, 1e300, np.float32(2), np.int8(3), np.longdouble(0.5)],
)
def test_positive_numbers_pass_as_floats(value):
    assert v.check_positive("C", value) == float(value)
    assert type(v.check_positive("C", value)) is float
    assert v.check_nonnegative("epsilon", value) == float(value)


@pytest.mark.parametrize(
    "value",
    [0, 0.0, -1, -0.0, math.nan, math.inf, -math.inf, True, np.True_, "1", None]
    + [1j, [1], np.ones(1), decimal.Decimal(1)],
)
def test_others_are_refused_with_their_name_and_value(value):
    with pytest.raises(ValueError, match=r"C=.*> 0\."):
        v.check_positive("C", value)


def test_infinity_passes_where_it_is_allowed():
    assert v.check_positive("sigma", math.inf, allow_inf=True) == math.inf
    for value in (math.nan, 0.0, -math.inf):
        with pytest.raises(ValueError, match=r"sigma=.*> 0 \(inf is allowed\)\."):
            v.check_positive("sigma", value, allow_inf=True)


def test_zero_is_not_negative():
    assert v.check_nonnegative("epsilon", 0) == 0
    for value in (-1e-300, math.nan, math.inf, "0", None, 1j):
        with pytest.raises(ValueError, match=r"epsilon=.*>= 0\."):
            v.check_nonnegative("epsilon", value)


@pytest.mark.parametrize("value", [1, 10**12, np.int64(7), np.uint8(2)])
def test_counts_pass_as_ints(value):
    assert v.check_count("max_iter", value) == value
    assert type(v.check_count("max_iter", value)) is int


@pytest.mark.parametrize(
    "value", [0, -1, 1.0, 2.5, True, np.False_, math.nan, "3", None, np.array(3)]
)
def test_other_counts_are_refused(value):
    with pytest.raises(ValueError, match=r"max_iter=.*integer >= 1\."):
        v.check_count("max_iter", value)


def test_biases():
    assert v.check_bias("flat") == v.check_bias("kkt") == "flat"
    assert v.check_bias(None) is None
    assert v.check_bias(2) == 2.0
    for value in (0, -1.0, math.nan, math.inf, "free", "", 1j, [1.0], np.ones(2)):
        with pytest.raises(ValueError, match=r"bias=.*variance"):
            v.check_bias(value)


def test_weights_pass_as_an_array_of_doubles():
    assert v.check_weights(None, 3) is None
    assert v.check_weights(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert v.check_weights([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
    assert v.check_weights(np.ones(3, dtype=np.int8), 3).dtype == np.float64


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(2,\), expected \(3,\)"),
        (np.ones((3, 1)), "shape"),
        ([1, -2, 3], r"sample_weight\[1\]=-2 is negative"),
        ([1, math.nan, 3], "NaN"),
        ([1, math.inf, 3], "infinity"),
        ([0, 0, 0], "zero on every row"),
        (-1.0, "negative"),
    ],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        v.check_weights(weights, 3)


def test_multipliers():
    assert v.check_multipliers([0, 1], 2).tolist() == [0.0, 1.0]
    for bad in ([1], [[1, 2]], [-1e-9, 1], [math.nan, 1], [math.inf, 1]):
        with pytest.raises(ValueError, match="init"):
            v.check_multipliers(bad, 2)


def test_labels():
    for y in ([-1, 1, 1], [-1.0, 1.0, 1.0], np.array([-1, 1, 1], dtype=np.int8)):
        signs = v.check_signs(y)
        assert signs.dtype == np.float64
        assert signs.tolist() == [-1.0, 1.0, 1.0]
    object_labels = np.array([-1, 1], dtype=object)
    assert v.check_signs(object_labels).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1], "one class only"),
        ([-1], "one class only"),
        ([0, 1], r"-1 and \+1 only; found \[0, 1\]"),
        ([True, False], r"-1 and \+1"),
        (["-1", "1"], r"-1 and \+1"),
        ([1.0, -1.0, math.nan], r"-1 and \+1"),
        ([[1, -1]], "shape"),
        (1, "shape"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        v.check_signs(y)


def test_kernel_matrices_pass_without_a_copy_where_possible(rng):
    A = rng.normal(size=(600, 3))
    K = A @ A.T
    K = (K + K.T) / 2
    assert v.check_gram(K, 600) is K
    assert v.check_gram(K.astype(np.float32)).dtype == np.float64
    assert v.check_gram(np.asfortranarray(K)).flags.c_contiguous
    assert v.check_gram([[1]]).tolist() == [[1.0]]
    # rounding below 1e-8 of the largest entry is not called asymmetry
    K[3, 590] += 1e-9 * np.abs(K).max()
    v.check_gram(K)


@pytest.mark.parametrize(("i", "j"), [(0, 1), (590, 3), (511, 512), (599, 598)])
def test_asymmetry_is_found_anywhere(i, j, rng):
    A = rng.normal(size=(600, 3))
    K = A @ A.T
    K[i, j] += 1e-6 * np.abs(K).max()
    with pytest.raises(ValueError, match=r"not symmetric: K\[.*\(K \+ K.T\) / 2"):
        v.check_gram(K)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\); .* square"),
        (np.ones(3), "square"),
        (np.ones((1, 2, 2)), "square"),
        (np.eye(3), "3 rows but y has 2"),
        ([[1.0, math.nan], [math.nan, 1.0]], r"K\[0, 1\]=nan"),
        ([[1.0, 0.0], [0.0, math.inf]], r"K\[1, 1\]=inf"),
    ],
)
def test_bad_kernel_matrices_are_named(K, message):
    with pytest.raises(ValueError, match=message):
        v.check_gram(K, 2)


def test_sparse_kernel_matrices_are_named():
    with pytest.raises(ValueError, match=r"sparse|dense"):
        v.check_gram(sp.eye_array(3, format="csr"))


def test_complex_kernel_matrices_are_refused():
    with pytest.raises((ValueError, TypeError), match="complex"):
        v.check_gram(np.eye(2) + 0j)


def test_entries_of_a_large_fitted_array_are_looked_at_once():
    a = np.ones((2, 3))
    check_fitted("coef_", a, (2, 3), once=True)
    a[0, 0] = math.nan
    check_fitted("coef_", a, (2, 3), once=True)
    for other in (a.copy(), a[:]):
        with pytest.raises(ValueError, match=r"coef_ contains NaN.*Fit it again"):
            check_fitted("coef_", other, (2, 3), once=True)
    with pytest.raises(ValueError, match="coef_ contains NaN"):
        check_fitted("coef_", a, (2, 3))


def test_known_arrays_are_forgotten_with_the_array():
    before = len(fitted._known_finite)
    a = np.ones(3)
    check_fitted("coef_", a, (3,), once=True)
    assert len(fitted._known_finite) == before + 1
    del a
    assert len(fitted._known_finite) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (sp.eye_array(2), r"w is sparse.*toarray\(\)"),
        (np.ones(2) + 0j, "w is complex"),
        (["1", "2"], "w=.*cannot be converted"),
        (np.array([1, "a"], dtype=object), r"w=.*cannot be .* as w\[1\]='a' is"),
        (np.array([1j, 2], dtype=object), "w=.*cannot be converted"),
        (np.zeros(2, "M8[s]"), "w=.*cannot be converted"),
    ],
)
def test_what_is_not_real_numbers_is_named(value, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        v.as_doubles("w", value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    "value", [[[1, 2], [3]], [1, [2]], [[1.0], 2.0], ([1, 2], [3, 4, 5]), [[], [1]]]
)
def test_ragged_lists_are_named_in_one_sentence(value):
    message = r"^w=.* is ragged: its rows differ in length; give every row the same num"
    refused(lambda: v.as_doubles("w", value), message)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sample_weight", lambda x: v.check_weights(x, 2)),
        ("init", lambda x: v.check_multipliers(x, 2)),
        ("y", v.check_signs),
        ("K", v.check_gram),
        ("m", ExponentialMargin().loss),
        ("lam", ExponentialMargin().potential),
        ("scores", fisher_kernel),
        ("information", lambda x: fisher_kernel(np.eye(2), information=x)),
    ],
)
def test_ragged_arguments_are_named(name, call):
    refused(lambda: call([[1, 2], [3]]), rf"^{name}=\[\[1, 2\], \[3\]\] is ragged")


@pytest.mark.parametrize("value", [0, True, 1.5, 1.0, "2", 1j, [1], math.nan])
def test_bad_numbers_of_jobs_are_refused(value):
    with pytest.raises(ValueError, match=r"n_jobs=.*integer >= 1"):
        v.check_jobs(value)


def test_good_numbers_of_jobs_pass():
    assert v.check_jobs(None) is None
    assert v.check_jobs(np.int64(2)) == 2
    assert v.check_jobs(-1) == -1


@pytest.mark.parametrize("value", [1025, 2**31, 2**40, 10**30, np.uint64(2**63)])
def test_more_threads_than_machines_run_are_refused(value):
    with pytest.raises(ValueError, match=r"n_jobs=.* is more than 1024.*-1 for all"):
        v.check_jobs(value)
    assert v.check_jobs(1024) == 1024
    assert v.check_jobs(-(10**30)) == -(10**30)


def test_class_weights_that_pass():
    for value in (None, "balanced", {}, {1: 2.0}, {"a": 1, "b": np.float32(0.5)}):
        assert v.check_class_weight(value) is value


@pytest.mark.parametrize("value", ["a", "2", None, math.nan, math.inf, 0, -1.0, True])
@pytest.mark.parametrize("label", [1, "first"])
def test_the_weight_of_a_class_is_named(label, value):
    said = re.escape(f"class_weight[{label!r}]={value!r} must be a finite number > 0.")
    with pytest.raises(ValueError, match=said):
        v.check_class_weight({"other": 1.0, label: value})


@pytest.mark.parametrize("value", ["even", 3, [1.0, 2.0], np.ones(2), True])
def test_class_weights_of_the_wrong_kind_are_named(value):
    with pytest.raises(ValueError, match=r"class_weight=.*'balanced', or a dict"):
        v.check_class_weight(value)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_entries_beyond_a_limit_are_named(form, kind):
    for value in (-101, 101):
        X = form(np.array([[0, 3], [value, 0]], dtype=kind))
        v.check_range("X", X, 101.0)
        with pytest.raises(
            ValueError, match=r"X has .* as large as 101, .*below 100\."
        ):
            v.check_range("X", X, 100.0)
        with pytest.raises(
            ValueError, match=rf"as large as 101 \(X\[1, 0\]={value}\), "
        ):
            v.check_range("X", X, 100.0, at=True)
        with pytest.raises(ValueError, match=rf"\(X\[1, 0\]={value} of column 'a'\), "):
            v.check_range("X", X, 100.0, at=True, columns=["a", "b"])
    v.check_range("X", form(np.zeros((2, 2), dtype=kind)))


def test_squares_stay_in_range_below_the_default_limit():
    v.check_range("y", np.array([1e150, -1e150]))
    with pytest.raises(ValueError, match=r"y has .*scale y below 1e\+150"):
        v.check_range("y", np.array([1.0, -2e150]))


def test_kernel_values_that_leave_single_precision_are_named():
    v.check_gram(np.diag([1e37, 1.0]))
    for K in (np.diag([1e38, 1.0]), np.array([[0.0, -1e38], [-1e38, 0.0]])):
        with pytest.raises(ValueError, match=r"K has values as large as 1e\+38; scale"):
            v.check_gram(K)
    with pytest.raises(ValueError, match="as large as nan"):
        v.check_kernel_size("K", math.nan)


def test_long_values_are_cut_to_a_line():
    assert v.shown(np.ones((30, 30))).endswith("...")
    assert len(v.shown(np.ones((30, 30)))) == 80
    assert "\n" not in v.shown(np.ones((2, 2)))


def _switches():
    """Estimators of the package, unfitted, with a parameter that is a boolean."""
    homes = maxent, kernels, latent, minentropy
    found = {name: getattr(home, name) for home in homes for name in home.__all__}
    for name, cls in sorted(found.items()):
        if not hasattr(cls, "_get_param_names"):
            continue
        parameters = inspect.signature(cls).parameters.values()
        needed = {p.name: 2 for p in parameters if p.default is p.empty}
        for p in parameters:
            if isinstance(p.default, bool):
                yield pytest.param(cls, needed, p.name, id=f"{name}-{p.name}")


@pytest.mark.parametrize("cls, needed, name", [*_switches()])
@pytest.mark.parametrize("value", ["False", "no", None, 0.5, [True]])
def test_switches_of_estimators_are_booleans(cls, needed, name, value):
    estimator = cls(**needed).set_params(**{name: value})
    more = {"y": [0, 1]} if "y" in inspect.signature(cls.fit).parameters else {}
    with pytest.raises(ValueError, match=f"{name}=.* must be True or False"):
        estimator.fit([[0.0], [1.0]], **more)


@pytest.mark.parametrize("value", [False, 0, np.False_, np.int64(0)])
def test_switches_of_other_types_mean_the_same(value):
    X, y = [[0.0], [1.0], [1.5], [3.0]], [0, 1, 0, 1]
    found = maxent.MaxEntClassifier(fit_intercept=value).fit(X, y)
    assert found.intercept_ == [0.0]
    assert found.coef_ == maxent.MaxEntClassifier(fit_intercept=False).fit(X, y).coef_


@pytest.mark.parametrize("shape", [(3,), (65_536,), (65_537,), (300, 700)])
def test_the_largest_entry_is_found_wherever_it_is(shape, rng):
    entries = rng.normal(size=shape)
    assert v.largest_entry(entries) == np.abs(entries).max()
    for place in (0, entries.size // 2, entries.size - 1):
        for value in (50.0, -60.0):
            entries.flat[place] = value
            assert v.largest_entry(entries) == abs(value)
            assert v.largest_entry(entries.T) == abs(value)
        entries.flat[place] = 0.0
