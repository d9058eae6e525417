"""Model files: exact round trips, and what cannot be saved."""

import enum
import json
import math

import numpy as np
import pandas as pd
import pytest
from _persistence.model_files import Derived, Stub, fitted, same
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from maxent._persistence import model_file, persistence
from maxent._persistence.calibrated import calibrated_state, restore_calibrated
from maxent._persistence.persistence import (
    load,
    read_model,
    save,
)
from maxent.discrimination import LogisticMargin, MEDClassifier, MEDRegressor

pytestmark = pytest.mark.usefixtures("registry")


# ------------------------------------------------------------------ round trips


class Status(enum.StrEnum):
    OK = "converged"


def test_parameters_and_fitted_state_come_back(path):
    model = fitted(
        status_=Status.OK,
        gap_=math.nan,
        support_=np.array([4, 1], dtype=np.int32),
        path_=[1.0, -math.inf, (2, None)],
        weights_={0: 1.5, "a": None, np.int64(3): [True]},
        empty_=np.empty((0, 4)),
        scalar_=np.float32(0.1),
        text_=np.array([["a", "é\U0001f980"]]),
        zero_=np.array(7),
    )
    save(model, path)
    back = load(path)
    assert type(back) is Stub
    assert back.get_params() == model.get_params()
    model.status_ = "converged"  # enumeration members become their values
    assert set(vars(back)) == set(vars(model))
    for name, value in vars(model).items():
        assert same(getattr(back, name), value), name


def test_only_public_fitted_attributes_are_saved(path):
    model = fitted(note="x", _cache_=np.ones(3), __odd_=1)
    save(model, path)
    assert set(vars(load(path))) == {
        *("kernel", "C", "margin", "n_features_in_", "coef_", "classes_"),
        "converged_",
    }


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_keeps_type_and_index_width(path, make, index):
    X = make(np.array([[0, 1.5, 0], [2.5, 0, -0.0]]))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    save(fitted(support_vectors_=X), path)
    back = load(path).support_vectors_
    assert type(back) is make
    np.testing.assert_array_equal(back.toarray(), X.toarray())


def test_layout_and_byte_order_do_not_change_values(path):
    base = np.arange(12.0).reshape(3, 4)
    arrays = {
        "c_": base,
        "f_": np.asfortranarray(base),
        "strided_": base[::2, ::-1],
        "swapped_": base.astype(">f8"),
    }
    save(fitted(**arrays), path)
    back = load(path)
    for name, array in arrays.items():
        got = getattr(back, name)
        np.testing.assert_array_equal(got, array)
        assert got.dtype.isnative and got.flags.writeable
    assert back.f_.flags.f_contiguous


def test_read_only_memory_maps_can_be_saved(path, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5.0))
    save(fitted(x_=np.load(tmp_path / "x.npy", mmap_mode="r")), path)
    np.testing.assert_array_equal(load(path).x_, np.arange(5.0))


def test_the_same_model_gives_the_same_bytes(tmp_path):
    save(fitted(), tmp_path / "a")
    save(fitted(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_extra_entries_come_back_beside_the_estimator(path):
    extra = {"mean": np.array([1.0, 2.0]), "names": ["a", "b"], "deep": {"x": None}}
    save(fitted(), path, extra=extra)
    estimator, back = load(path, return_extra=True)
    assert isinstance(estimator, Stub)
    assert same(dict(sorted(extra.items())), back)
    assert same(back["mean"], read_model(path).extra["mean"])


def test_numpy_opens_a_model_file_without_pickle(path):
    save(fitted(), path)
    with np.load(path, allow_pickle=False) as archive:
        assert json.loads(archive["metadata"].tobytes())["class"] == "Stub"
        assert any(np.array_equal(archive[n], fitted().coef_) for n in archive.files)


def test_contents_can_be_read_without_making_the_class(path, monkeypatch):
    coef = fitted().coef_
    save(fitted(), path)
    monkeypatch.setattr(Stub, "__init__", None)
    model = read_model(path)
    assert model.class_name == "Stub" and model.format_version == 1
    assert model.params["C"] == math.inf and len(model.checksum) == 64
    np.testing.assert_array_equal(model.fitted["coef_"], coef)


numbers = st.one_of(
    st.floats(width=64),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.none(),
    st.text(st.characters(codec=None), max_size=8),
    st.sampled_from([np.float32, np.float64, np.float16]).flatmap(
        lambda t: st.floats(width=np.finfo(t).bits).map(t)
    ),
    st.integers(-100, 100).map(np.int8),
    st.booleans().map(np.bool_),
)
arrays = hnp.arrays(
    st.one_of(
        hnp.floating_dtypes(sizes=(16, 32, 64), endianness="="),
        hnp.integer_dtypes(endianness="="),
        hnp.unsigned_integer_dtypes(endianness="="),
        hnp.boolean_dtypes(),
        hnp.unicode_string_dtypes(endianness="=", min_len=1, max_len=4),
    ),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
words = st.lists(st.text(max_size=4).filter(lambda s: not s.endswith("\0")), max_size=5)
values = st.recursive(
    st.one_of(numbers, arrays, words.map(lambda w: np.array(w, dtype=object))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.integers(), st.booleans()),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(value=values, param=values)
def test_any_plain_value_survives_a_round_trip(path, value, param):
    save(Stub(C=param).fit(value_=value), path)
    back = load(path)
    assert same(back.value_, value)
    assert same(back.C, param)


# -------------------------------------------------------------------- margin priors


class Margin:
    """Stand-in for a margin prior object."""

    def __init__(self, rate):
        self.rate = rate

    def get_spec(self):
        return {"name": "test", "rate": self.rate}

    @classmethod
    def from_spec(cls, spec):
        return cls(spec["rate"])


def test_a_margin_prior_is_kept_as_its_specification(path, monkeypatch):
    monkeypatch.setitem(persistence.VALUES, "Margin", f"{__name__}:Margin")
    save(Stub(margin=Margin(math.inf)).fit(), path)
    back = load(path)
    assert type(back.margin) is Margin and back.margin.rate == math.inf
    assert read_model(path).params["margin"] == {"name": "test", "rate": math.inf}


def test_objects_of_other_modules_are_no_margin_priors(path):
    with pytest.raises(
        TypeError, match=r"parameter margin of Stub is of type .*Margin"
    ):
        save(Stub(margin=Margin(1.0)).fit(), path)


# ------------------------------------------------------------- what cannot be saved


def test_unfitted_estimators_are_refused(path):
    with pytest.raises(NotFittedError):
        save(Stub(), path)
    assert not path.exists()


def test_classes_outside_the_registry_are_refused(path):
    with pytest.raises(TypeError, match=r"model files hold .*MEDClassifier"):
        save(Derived().fit(), path)


@pytest.mark.parametrize("several", [list, tuple, dict])
def test_several_objects_are_refused_with_the_remedy(path, several):
    parts = {"a": Stub().fit()} if several is dict else several([Stub().fit()])
    with pytest.raises(TypeError, match=f"{several.__name__}: .* one in each file"):
        save(parts, path)
    assert not path.exists()


def test_a_class_that_only_shares_the_name_is_refused(path):
    other = type("Stub", (Stub,), {})
    with pytest.raises(TypeError, match="cannot save"):
        save(other().fit(), path)


def test_a_kernel_function_is_refused_with_the_remedy(path):
    def similarity(X, Y):
        return X @ Y.T

    with pytest.raises(
        TypeError, match=r"parameter kernel of Stub.*similarity.*precom"
    ):
        save(Stub(kernel=similarity).fit(), path)
    with pytest.raises(TypeError, match="functions cannot be saved without pickle"):
        save(Stub(kernel=lambda X, Y: 0).fit(), path)


@pytest.mark.parametrize(
    "value, words",
    [
        (np.array([1, "a", None], dtype=object), r"Python objects \(NoneType, int\)"),
        (np.array(["a\0"], dtype=object), "end in a NUL"),
        (np.array([1j]), "dtype complex128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
        (np.array([b"x"]), "dtype |S1"),
        (np.zeros(2, dtype=[("a", float)]), "which a model file cannot hold"),
        (np.zeros((1,) * 9), "9 axes"),
        (np.ma.masked_array([1.0], [True]), "masked array"),
        (np.longdouble(1), "dtype"),
        (sparse.csc_matrix(np.eye(2)), r"csc format; convert it with .tocsr"),
        (np.random.RandomState(0), "RandomState"),
        ({1, 2}, "builtins.set"),
        ({frozenset({1}): 3}, "keys must be numbers, strings or tuples"),
        (Stub, "of type builtins.type"),
        (b"bytes", "builtins.bytes"),
    ],
)
def test_values_that_need_pickle_are_refused_by_name(path, value, words):
    if isinstance(value, np.longdouble) and np.dtype(np.longdouble).itemsize == 8:
        return  # the same as a double here
    with pytest.raises(TypeError, match=words) as caught:
        save(fitted(odd_=[value]), path)
    assert "attribute odd_ of Stub" in str(caught.value)
    assert not path.exists()


def test_extra_names_must_be_strings(path):
    with pytest.raises(TypeError, match="extra entry 3"):
        save(fitted(), path, extra={"a": 1, 3: 2})


def test_metadata_beyond_the_limit_are_refused_when_saving(path, monkeypatch):
    monkeypatch.setattr(model_file, "MAX_METADATA_BYTES", 1000)
    with pytest.raises(ValueError, match="store long lists as arrays"):
        save(fitted(long_=list(range(1000))), path)


# ------------------------------------------------------------------- real estimators


def problem(n_classes=2, sparse_input=False):
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), 15)
    X = rng.normal(size=(len(y), 3)) + 2 * np.eye(n_classes, 3)[y]
    return sparse.csr_matrix(X * (abs(X) > 0.5)) if sparse_input else X, y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse_input", [False, True])
def test_a_loaded_classifier_decides_to_the_bit(path, kernel, n_classes, sparse_input):
    X, y = problem(n_classes, sparse_input)
    names = np.array(["ant", "bee", "cat"], dtype=object)[y]
    model = MEDClassifier(kernel=kernel).fit(X, names)
    save(model, path)
    back = load(path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert back.duality_gap_ == model.duality_gap_ and back.converged_ is True
    assert clone(back).fit(X, names).n_iter_ == model.n_iter_


@pytest.mark.parametrize(
    "machine, n_classes",
    [
        (MEDClassifier(), 2),
        (MEDClassifier(multi_class="joint"), 3),
        (MEDClassifier(multi_class="ovo"), 3),
        (MEDRegressor(), 2),
        (CalibratedClassifierCV(MEDClassifier(kernel="linear"), cv=2), 2),
    ],
)
def test_a_compact_file_of_a_linear_machine_holds_no_rows(path, machine, n_classes):
    X, y = problem(n_classes)
    if "kernel" in machine.get_params():
        machine.set_params(kernel="linear")
    model = machine.fit(X, y)
    save(model, path)
    whole = path.stat().st_size
    save(model, path, compact=True)
    assert path.stat().st_size < whole
    assert "support_vectors_" not in json.dumps(str(read_model(path)))
    back = load(path)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    if "kernel" not in machine.get_params():
        return
    if n_classes > 2:
        decided = back.decision_function(X)
        np.testing.assert_array_equal(decided, model.decision_function(X))
    with pytest.raises(NotFittedError, match=r"dual_coef_.*saved with compact=True"):
        _ = back.dual_coef_
    save(back, path)  # of what is left
    assert load(path).fit(X, y).dual_coef_.shape == model.dual_coef_.shape


def test_a_compact_file_needs_a_machine_that_predicts_without_rows(path):
    X, y = problem()
    with pytest.raises(ValueError, match="kernel='rbf' predicts by them"):
        save(MEDClassifier().fit(X, y), path, compact=True)
    model = MEDClassifier(kernel="precomputed").fit(X @ X.T, y)
    save(model, path, compact=True)
    assert load(path).support_.tolist() == model.support_.tolist()


def test_a_loaded_classifier_keeps_its_margin_prior(path):
    X, y = problem()
    model = MEDClassifier(margin=LogisticMargin(rate=1.0, level=0.0)).fit(X, y)
    save(model, path)
    back = load(path)
    assert back.margin == model.margin
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_a_loaded_classifier_keeps_the_names_of_its_features(path):
    X, y = problem()
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    save(MEDClassifier().fit(X, y), path)
    back = load(path)
    assert back.feature_names_in_.dtype == object
    back.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        back.predict(X[["c", "b", "a"]])


def test_a_classifier_with_a_kernel_function_is_refused(path):
    X, y = problem()
    model = MEDClassifier(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(TypeError, match="parameter kernel of MEDClassifier"):
        save(model, path)


# ---------------------------------------------------------------------- calibration


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrated_classifiers_keep_every_bit(path, rng, ensemble, n_classes):
    X = rng.normal(size=(60, 2))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    machine = MEDClassifier("linear")
    model = CalibratedClassifierCV(machine, cv=3, ensemble=ensemble).fit(X, y)
    save(model, path)
    back = load(path)
    assert type(back) is CalibratedClassifierCV
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.get_params()["estimator__kernel"] == "linear"


def test_other_calibrations_and_machines_are_refused(path, rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    curve = CalibratedClassifierCV(MEDClassifier(), method="isotonic", cv=2).fit(X, y)
    with pytest.raises(TypeError, match='use method="sigmoid"'):
        save(curve, path)
    with pytest.raises(TypeError, match="which a model file cannot hold"):
        save(CalibratedClassifierCV(SVC(), cv=2).fit(X, y), path)
    with pytest.raises(NotFittedError):
        save(CalibratedClassifierCV(MEDClassifier()), path)
    assert not path.exists()


def test_calibration_that_does_not_agree_is_refused(rng):
    X = rng.normal(size=(40, 2))
    model = CalibratedClassifierCV(MEDClassifier(), cv=2).fit(X, X[:, 0] > 0)
    state = calibrated_state(model)
    for part in (
        {"sigmoids_": state["sigmoids_"][:1]},
        {"sigmoids_": np.full_like(state["sigmoids_"], np.nan)},
        {"estimators_": [None, None]},
    ):
        with pytest.raises(ValueError, match="does not agree"):
            restore_calibrated(CalibratedClassifierCV(MEDClassifier()), state | part)
