"""Files to write and to read, and the registry of classes that they may hold."""

import pytest
from _support.model_files import STUB

from maxent._support import persistence


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a new file; its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def path(tmp_path):
    """Where a model file may be written."""
    return tmp_path / "model.npz"


@pytest.fixture
def registry(monkeypatch):
    """Model files may hold the stub of `model_files`."""
    monkeypatch.setitem(persistence.CLASSES, "Stub", STUB)
