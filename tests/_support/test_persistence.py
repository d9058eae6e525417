"""Model files: exact round trips, and every damage found before it can matter."""

import enum
import io
import json
import math
import os
import pathlib
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from maxent._support import files, persistence
from maxent._support.persistence import (
    ModelFileError,
    load,
    load_with_extra,
    read_model,
    save,
)
from maxent.discrimination import LogisticMargin, MEDClassifier


class Stub(BaseEstimator):
    """An estimator that stores whatever it is given."""

    def __init__(self, kernel="rbf", C=1.0, margin="exponential"):
        self.kernel = kernel
        self.C = C
        self.margin = margin

    def fit(self, **state):
        self.n_features_in_ = 3
        for name, value in state.items():
            setattr(self, name, value)
        return self


class Derived(Stub):
    pass


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setitem(persistence.CLASSES, "Stub", f"{__name__}:Stub")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def same(a, b):
    """Equal to the bit, in type, dtype and shape too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return a.tolist() == b.tolist()
        return a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if sparse.issparse(a):
        return a.shape == b.shape and all(
            same(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr")
        )
    if isinstance(a, (float, np.floating)):
        return (a != a and b != b) or repr(a) == repr(b)
    return a == b


def rewrite(path, change):
    """Rewrite the archive with members changed: its own sums of bytes agree again."""
    with zipfile.ZipFile(path) as archive:
        members = {i.filename: archive.read(i) for i in archive.infolist()}
    members = change(members) or members
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def resign(path, change):
    """Change the decoded members and recompute the checksum, as an attacker would."""
    with np.load(path, allow_pickle=False) as archive:
        members = {name: archive[name] for name in archive.files}
    del members["checksum"]
    metadata = json.loads(members["metadata"].tobytes())
    change(metadata, members)
    text = json.dumps(metadata).encode()
    members["metadata"] = np.frombuffer(text, dtype=np.uint8)
    digest = persistence._checksum(members)
    np.savez(path, **members, checksum=np.frombuffer(digest, dtype=np.uint8))


def fitted(**state):
    defaults = {
        "coef_": np.arange(6.0).reshape(2, 3),
        "classes_": np.array(["no", "yes"], dtype=object),
        "converged_": True,
    }
    return Stub(kernel="linear", C=math.inf).fit(**(defaults | state))


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
    estimator, back = load_with_extra(path)
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


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
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
        ({(1, 2): 3}, "keys must be numbers or strings"),
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
    monkeypatch.setattr(persistence, "MAX_METADATA_BYTES", 1000)
    with pytest.raises(ValueError, match="store long lists as arrays"):
        save(fitted(long_=list(range(1000))), path)


# ---------------------------------------------------------------------- whole files


def leftovers(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_leaves_the_old_file(path, monkeypatch, step, error):
    save(fitted(), path)
    before = path.read_bytes()
    calls = []

    def fail(*args, **kwargs):
        calls.append(step)
        if step == "write_array" and len(calls) < 2:
            return original(*args, **kwargs)
        raise error

    owner = np.lib.format if step == "write_array" else os
    original = getattr(owner, step)
    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(type(error)):
        save(fitted(coef_=np.zeros((5, 5))), path)
    assert calls
    assert path.read_bytes() == before
    assert leftovers(path.parent) == ["model.npz"]


def test_a_failure_leaves_nothing_where_nothing_was(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError()))
    with pytest.raises(OSError):
        save(fitted(), path)
    assert leftovers(path.parent) == []


def test_contents_are_on_disk_before_the_name_points_to_them(path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda h: (steps.append("sync"), fsync(h))[1])
    monkeypatch.setattr(
        os, "replace", lambda a, b: (steps.append("rename"), replace(a, b))[1]
    )
    save(fitted(), path)
    assert steps[:2] == ["sync", "rename"]


def test_saving_keeps_rights_and_follows_links(path, tmp_path):
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    save(fitted(), link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert isinstance(load(path), Stub)


def test_new_files_follow_the_umask(path):
    old = os.umask(0o027)
    try:
        save(fitted(), path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_missing_folder_and_a_folder_as_name_are_explained(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        save(fitted(), tmp_path / "nowhere" / "m.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(fitted(), tmp_path)


def test_text_files_appear_whole(tmp_path):
    target = tmp_path / "out.csv"
    with files.whole_file(target, "w", encoding="utf-8", newline="") as stream:
        stream.write("é\n")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "é\n"


def test_a_device_is_written_directly():
    with files.whole_file(os.devnull, "w") as stream:
        stream.write("x")
    assert not pathlib.Path(os.devnull).is_file()


# --------------------------------------------------------------------- damaged files


def state(model):
    return {"class": type(model).__name__, **vars(model)}


def test_no_flipped_byte_passes_with_other_contents(path):
    save(fitted(support_vectors_=sparse.csr_array(np.eye(2))), path)
    raw = path.read_bytes()
    original = state(load(path))
    unnoticed = 0
    for where in range(len(raw)):
        damaged = bytearray(raw)
        damaged[where] ^= 1 << where % 8
        path.write_bytes(damaged)
        try:
            back = load(path)
        except ModelFileError as error:
            assert str(path) in str(error)
        else:
            unnoticed += 1
            assert same(state(back), original)
    # Only stamps of the zip container (dates, attributes) may change unseen.
    assert unnoticed < 0.25 * len(raw)


def test_every_byte_of_the_arrays_is_under_the_checksum(path):
    save(fitted(), path)
    with zipfile.ZipFile(path) as archive:
        sizes = {i.filename: i.file_size for i in archive.infolist()}
    raw = path.read_bytes()
    for name, size in sizes.items():
        for where in range(size):

            def flip(members, name=name, where=where):
                content = bytearray(members[name])
                content[where] ^= 0x10
                members[name] = bytes(content)

            path.write_bytes(raw)
            rewrite(path, flip)
            with pytest.raises(ModelFileError):
                load(path)


def test_no_truncated_file_is_read(path):
    save(fitted(), path)
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(ModelFileError, match=r"model file|damaged"):
            load(path)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18]
)
def test_other_files_are_refused_by_name(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.npz: .*not a model file"):
        load(path)


def test_a_pickle_is_refused_and_not_executed(path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(path) + ".boom",))

    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        load(path)
    np.savez(path, metadata=np.array([Bomb()], dtype=object), checksum=[1])
    with pytest.raises(ModelFileError, match="Python objects, which are never read"):
        load(path)
    assert not os.path.exists(str(path) + ".boom")


def test_other_archives_are_refused(path):
    np.savez(path, x=np.arange(3))
    with pytest.raises(ModelFileError, match="not a model file of maxent"):
        load(path)


def test_a_folder_or_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="a folder, pipe or device"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="a folder, pipe or device"):
        load(tmp_path / "pipe")


def test_compressed_archives_are_refused_before_unpacking(path):
    save(fitted(), path)
    with np.load(path) as archive:
        members = {name: archive[name] for name in archive.files}
    np.savez_compressed(path, **members)
    with pytest.raises(ModelFileError, match="compressed parts"):
        load(path)


def test_a_newer_format_says_which_version_wrote_it(path):
    save(fitted(), path)

    def newer(metadata, members):
        metadata.update(format_version=2, maxent_version="9.1")

    resign(path, newer)
    with pytest.raises(
        ModelFileError, match=r"written in format 2 by maxent 9\.1.*upgr"
    ):
        load(path)


def test_an_unknown_class_is_refused(path):
    save(fitted(), path)
    resign(path, lambda metadata, members: metadata.update({"class": "os.system"}))
    with pytest.raises(ModelFileError, match=r"class 'os\.system'.*known are .*MED"):
        load(path)


@pytest.mark.parametrize(
    "name", ["__class__", "fit", "__dict__", "coef", "_x_", "a b_"]
)
def test_only_fitted_attributes_can_be_set(path, name):
    save(fitted(), path)
    resign(path, lambda metadata, members: metadata["fitted"].update({name: 1}))
    with pytest.raises(ModelFileError, match="not the name of a fitted attribute"):
        load(path)


def test_a_parameter_of_another_version_is_named(path):
    save(fitted(), path)
    resign(path, lambda metadata, members: metadata["params"].update(depth=3))
    with pytest.raises(ModelFileError, match="no parameter 'depth'"):
        load(path)


def test_an_attribute_that_became_a_property_is_named(path, monkeypatch):
    save(fitted(), path)
    monkeypatch.setattr(Stub, "coef_", property(lambda self: 0), raising=False)
    with pytest.raises(ModelFileError, match="attribute 'coef_' of Stub cannot"):
        load(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"__import__": "os"},
        {"__array__": "a99"},
        {"__array__": "metadata", "object": True},
        {"__float__": "1e5"},
        {"__scalar__": ["O", 1]},
        {"__scalar__": ["|u1", 300]},
        {"__tuple__": 3},
        {"__dict__": [[[1], 2]]},
        {"__csr__": {"kind": "array"}},
        {"plain": 1},
        {"__tuple__": [], "__float__": "nan"},
    ],
)
def test_entries_of_unknown_shape_are_refused(path, entry):
    save(fitted(), path)
    resign(path, lambda metadata, members: metadata["params"].update(C=entry))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_csr_indices_out_of_range_are_refused(path):
    save(fitted(support_vectors_=sparse.csr_array(np.eye(2))), path)

    def wild(metadata, members):
        name = metadata["fitted"]["support_vectors_"]["__csr__"]["indices"]["__array__"]
        members[name] = np.array([0, 9], dtype=members[name].dtype)

    resign(path, wild)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_impossible_characters_and_booleans_are_not_passed_on(path):
    save(fitted(text_=np.array(["ab"]), flag_=np.array([True, False])), path)

    def flag(metadata, members):
        name = metadata["fitted"]["flag_"]["__array__"]
        members[name] = np.array([7, 0], dtype=np.uint8).view(bool)

    resign(path, flag)
    assert load(path).flag_.view(np.uint8).tolist() == [1, 0]

    def text(metadata, members):
        name = metadata["fitted"]["text_"]["__array__"]
        members[name] = np.array([2**31, 1], dtype=np.uint32).view("<U2")

    resign(path, text)
    with pytest.raises(ModelFileError, match="impossible characters"):
        load(path)


def header_only(shape, descr="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "fortran_order": False, "descr": descr}
    )
    return stream.getvalue()


@pytest.mark.parametrize(
    "content, words",
    [
        (header_only((10**12,)), "does not have the size"),
        (header_only((2**40, 2**40)), "does not have the size"),
        (header_only((-1, 8)), "impossible shape"),
        (header_only((1,) * 12), "impossible shape"),
        (header_only((0, 3), descr=">f8"), "unexpected dtype"),
        (header_only((0, 3), descr="<c16"), "unexpected dtype"),
        (header_only((0, 3), descr="|O"), "Python objects"),
        (b"\x93NUMPY\x03\x00", "unknown header version"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "damaged"),
        (b"", "damaged"),
    ],
)
def test_array_headers_are_checked_before_memory_is_taken(path, content, words):
    save(fitted(), path)
    rewrite(path, lambda members: members | {"a0.npy": content})
    with pytest.raises(ModelFileError, match=words):
        load(path)


def test_additional_and_missing_members_are_refused(path):
    save(fitted(), path)
    raw = path.read_bytes()
    rewrite(path, lambda members: members | {"a7.npy": members["a0.npy"]})
    with pytest.raises(ModelFileError, match="too many"):
        load(path)
    path.write_bytes(raw)
    rewrite(path, lambda members: {n: c for n, c in members.items() if n != "a0.npy"})
    with pytest.raises(ModelFileError, match="missing"):
        load(path)
    path.write_bytes(raw)
    rewrite(path, lambda members: members | {"readme.txt": b"hello"})
    with pytest.raises(ModelFileError, match=r"unexpected part 'readme\.txt'"):
        load(path)


def test_deep_nesting_is_refused(path):
    save(fitted(), path)

    def deep(members):
        text = b'{"format":"maxent-model","x":' + b"[" * 10**5 + b"]" * 10**5 + b"}"
        stream = io.BytesIO()
        np.save(stream, np.frombuffer(text, dtype=np.uint8))
        return members | {"metadata.npy": stream.getvalue()}

    rewrite(path, deep)
    with pytest.raises(ModelFileError):
        load(path)


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
