"""Importing the package is light, lazy and leaves the process as it was."""

import importlib
import sys

import pytest
from processes import run

import maxent
import maxent.discrimination

HEAVY = ("sklearn", "numba", "scipy", "joblib", "pandas", "matplotlib", "cvxopt")


def loaded(*statements):
    """What is loaded after each statement, one after the other in one process."""
    code = "".join(f"{one}\nprint(*sorted(sys.modules))\n" for one in statements)
    return [set(line.split()) for line in run("-c", f"import sys\n{code}").splitlines()]


def test_import_loads_nothing_heavy():
    (modules,) = loaded(
        "import maxent, maxent.discrimination, maxent.families, maxent.kernels\n"
        "assert {'kernels', 'displays'} <= set(maxent.__all__) & set(dir(maxent))\n"
        "assert 'fisher_kernel' in dir(maxent.kernels)"
    )
    assert "maxent" in modules
    assert not modules.intersection(("numpy", *HEAVY))
    assert not any(name.startswith("maxent._core") for name in modules)


# what is done in turn, and what that must not load
USES = [
    (
        "from maxent.families import Gaussian, VonMisesFisher, Wishart\n"
        "Gaussian.fit([[0.0], [1.0]]).sample(1)",
        {"sklearn", "numba", "matplotlib", "maxent.discrimination"},
    ),
    (
        "from maxent.kernels import fisher_kernel",
        {"maxent.discrimination", "numba", "matplotlib"},
    ),
    (
        "import numpy as np\n"
        "from maxent.discrimination import ExponentialMargin, solve_dual\n"
        "solve_dual(np.eye(2), [-1, 1], ExponentialMargin(5.0))",
        {"maxent.discrimination.classifier", "numba", "matplotlib"},
    ),
    (
        "from maxent import MEDClassifier, MEDFeatureSelector\n"
        "MEDClassifier().fit([[0.0], [1.0]], [0, 1])\n"
        "MEDFeatureSelector().fit([[0.0], [1.0]], [0, 1])",
        {"numba", "matplotlib", "cvxopt"},
    ),
]


def test_what_is_not_needed_is_not_loaded():
    steps = loaded(*(statement for statement, _ in USES))
    for (statement, unneeded), modules in zip(USES, steps, strict=True):
        assert "numpy" in modules and not modules & unneeded, statement


def test_import_loads_three_modules_beyond_numpy():
    before, after = loaded("import numpy", "import maxent")
    beyond = after - before
    ours = {"maxent", "maxent._support", "maxent._support.lazy"}
    assert {name.partition(".")[0] for name in beyond - ours} <= sys.stdlib_module_names


def test_import_starts_no_threads_and_changes_no_settings():
    code = """
import os, threading, warnings
import numpy as np, sklearn  # which sets two variables of OpenMP
before = (dict(os.environ), np.geterr(), list(warnings.filters), os.getcwd())
import maxent, maxent.discrimination
maxent.MEDClassifier
after = (dict(os.environ), np.geterr(), list(warnings.filters), os.getcwd())
assert before[0] == after[0], set(after[0].items()) ^ set(before[0].items())
assert before[1] == after[1]
assert before[3] == after[3]
assert threading.active_count() == 1
# scikit-learn and joblib add filters of their own; we add none
ours = [f for f in after[2] if f not in before[2] and "maxent" in str(f)]
assert ours == []
"""
    run("-c", code)


@pytest.mark.parametrize("package", ["maxent", "maxent.discrimination"])
def test_every_promised_name_is_there(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    namespace = {}
    exec(f"from {package} import *", namespace)
    assert set(module.__all__) <= set(namespace)


@pytest.mark.parametrize("package", [maxent, maxent.discrimination])
def test_unknown_names_are_attribute_errors(package):
    with pytest.raises(AttributeError, match="no attribute 'MEDClassifer'"):
        getattr(package, "MEDClassifer")  # noqa: B009
    assert not hasattr(package, "__wrapped__")


def test_public_objects_tell_what_they_are():
    for name in maxent.discrimination.__all__:
        thing = getattr(maxent.discrimination, name)
        assert thing.__doc__, name
        home = thing.__module__.split(".")[1]
        assert home in ("discrimination", "models", "_support"), name


def test_a_failing_import_names_the_missing_package():
    code = (
        "import sys; sys.modules['sklearn'] = None; import maxent; maxent.MEDClassifier"
    )
    with pytest.raises(AssertionError, match="sklearn"):
        run("-c", code)


def test_running_as_a_module_of_another_directory(tmp_path):
    # the working directory is not on the path and may hold files of our names
    (tmp_path / "maxent.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "numpy.py").write_text("raise SystemExit('shadowed')")
    found = run("-c", "import maxent; print(maxent.__version__)", cwd=tmp_path)
    assert found.strip() == maxent.__version__
