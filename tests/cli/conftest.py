"""The command called in process, a stand-in for the classifier, and a CSV file."""

import pytest
from command_line import MEDClassifier, write_csv

from maxent._persistence import persistence
from maxent.cli import main
from maxent.datasets import load_crabs


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setitem(
        persistence.CLASSES, "MEDClassifier", "command_line:MEDClassifier"
    )

    def behave(behaviour):
        monkeypatch.setattr(MEDClassifier, "behaviour", staticmethod(behaviour))

    return behave


@pytest.fixture
def run(capsys):
    """Run a command; gives the exit code, standard output and standard error."""

    def run(*args):
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def crabs(tmp_path):
    """A CSV file with a header; the label comes first."""
    data = load_crabs()
    path = tmp_path / "crabs.csv"
    write_csv(path, data.data, data.target_names[data.target], data.feature_names)
    return path
