"""Damaged and hostile model files: every one is refused before it can matter."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from _persistence.model_files import Stub, fitted, resign, rewrite, same
from scipy import sparse

from maxent._persistence.persistence import (
    ModelFileError,
    load,
    save,
)

pytestmark = pytest.mark.usefixtures("registry")


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
