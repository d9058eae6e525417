"""Files are written whole or not at all."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from _persistence.model_files import Stub, fitted

from maxent._persistence.persistence import (
    load,
    save,
)
from maxent._support import files

pytestmark = pytest.mark.usefixtures("registry")


unix = pytest.mark.skipif(os.name == "nt", reason="has no /dev")


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


@unix
def test_a_pipe_and_an_open_file_are_written_directly(tmp_path):
    reading, writing = os.pipe()
    log = tmp_path / "log"
    with open(reading, "rb") as pipe, log.open("ab") as stream:
        stream.write(b"before\n")
        stream.flush()
        for handle in (writing, stream.fileno()):
            with files.whole_file(f"/dev/fd/{handle}", "w") as out:
                out.write("rows\n")
        os.close(writing)
        assert pipe.read() == b"rows\n"
    assert log.read_text() == "before\nrows\n"
    assert leftovers(tmp_path) == ["log"]


@unix
def test_standard_output_may_be_a_pipe(tmp_path):
    code = (
        "from maxent._support.files import whole_file\n"
        "with whole_file('/dev/stdout', 'w') as out: out.write('rows')\n"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, stdout=subprocess.PIPE).stdout == b"rows"
