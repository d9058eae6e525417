"""Where model files go, and the registry of classes that they may hold."""

import pytest
from _persistence.model_files import STUB

from maxent._persistence import persistence


@pytest.fixture
def path(tmp_path):
    """Where a model file may be written."""
    return tmp_path / "model.npz"


@pytest.fixture
def registry(monkeypatch):
    """Model files may hold the stub of `model_files`."""
    monkeypatch.setitem(persistence.CLASSES, "Stub", STUB)
