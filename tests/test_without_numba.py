"""Few things need Numba, and say so; all else works where it has no wheels."""

import pathlib

import pytest
from processes import run

from maxent._support import compiling

CHECK = pathlib.Path(__file__).with_name("checks") / "without_numba.py"


@pytest.mark.parametrize(
    "kept_out, works",
    [((), "functions and estimators"), (("sklearn",), "functions")],
)
def test_what_needs_no_numba_works_without_it(kept_out, works):
    assert run(CHECK, *kept_out).startswith(f"{works} work without Numba")


def test_every_compiled_module_says_who_needs_it():
    folder = pathlib.Path(compiling.__file__).parents[1] / "_core/compiled_by_numba"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert compiling._NEEDS.keys() == modules


def test_the_command_line_answers_in_one_sentence(tmp_path):
    lines = (f"{i % 2} 1:{i % 5} 3:{i % 2}\n" for i in range(60))
    (tmp_path / "rows.svm").write_text("".join(lines))
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from maxent.cli import main\n"
        "sys.stderr = sys.stdout\n"
        "print(main('fit rows.svm model.npz --estimator logistic'.split()))"
    )
    *message, answer = run("-c", code, cwd=tmp_path).splitlines()
    assert answer == "2"
    assert (
        len(message) == 1
        and "MaxEntClassifier on sparse rows needs Numba" in (message[0])
    )
