"""Wrong changes that the campaign of `tests/mutants` makes."""

import ast
import importlib
import itertools
import pathlib

import pytest
from mutants.changes import KINDS, changes_of, compiles, sample

SOURCE = b'''"""Text 1 + 1."""
import numpy as np
from a import b  # 2 + 2


@b(1 + 1)
def f(x: "3 + 3", y=7, *, z=None) -> "4 + 4":
    """5 + 5"""
    if y < 0 or not x:
        raise ValueError(f"y={y + 1} must not be below {2 - 1}, such as %d" % (1 + 1))
    if z is not None:
        np.warn("one %d" % (1 + 1), stacklevel=1 + 1)
    total = -x[1:y] + 2.0 * y
    total += g(x, y, stacklevel=3 + 3)
    while total > 1e9:
        total /= 2
    return total if z else x[0]


class A(ABC):
    @abstractmethod
    def h(self, depth=6 + 6):
        """Of depth 6."""
'''


@pytest.fixture
def campaign(monkeypatch):
    pytest.importorskip("resource")  # which Windows has not
    folder = pathlib.Path(__file__).resolve().parent / "mutants"
    monkeypatch.syspath_prepend(str(folder))  # a script finds the files beside it
    return importlib.import_module("campaign")


@pytest.fixture
def changes():
    return changes_of("maxent/f.py", SOURCE)


def test_every_kind_of_change_is_made(changes):
    assert {change.kind for change in changes} == {kind.__name__ for kind in KINDS}


def test_a_change_replaces_its_text_and_nothing_else(changes):
    assert len(changes) >= 40
    for change in changes:
        assert compiles(change.applied(SOURCE)), change
        new = ast.unparse(ast.parse(change.applied(SOURCE)))
        assert new != ast.unparse(ast.parse(SOURCE)), change
        assert SOURCE[change.start : change.end].decode() == change.before
        assert (
            SOURCE.splitlines()[change.first - 1].decode().strip() == change.statement
        )


def test_what_people_read_stays(changes):
    read = [
        b"Text 1 + 1",
        b"2 + 2",
        b"@b(1 + 1)",
        b"3 + 3",
        b"4 + 4",
        b"5 + 5",
        b"y + 1",
    ]
    read += [b"2 - 1", b"% (1 + 1)", b'"one %d"', b"stacklevel=1 + 1", b"6 + 6"]
    for change in changes:
        missing = [text for text in read if text not in change.applied(SOURCE)]
        assert missing == [], change


@pytest.mark.parametrize(
    "before, after",
    [
        ("-x[1:y] + 2.0 * y", "(-x[1:y] - 2.0 * y)"),
        ("-x[1:y] + 2.0 * y", "(2.0 * y)"),
        ("total += g(x, y, stacklevel=3 + 3)", "pass"),
        ("2.0", "(4.0)"),
        ("7", "(8)"),
        ("1:y", "1:y - 1"),
        ("y < 0", "(y <= 0)"),
        ("z is not None", "(z is None)"),
        ("y < 0 or not x", "(y < 0 and (not x))"),
        ("not x", "(x)"),
        ("-x[1:y]", "(x[1:y])"),
        ("z", "(False)"),
        ("g(x, y, stacklevel=3 + 3)", "(g(y, x, stacklevel=3 + 3))"),
    ],
)
def test_a_change_of_each_kind(changes, before, after):
    assert (before, after) in {(change.before, change.after) for change in changes}


def test_a_sample_depends_on_the_seed_alone():
    sources = {"maxent/f.py": SOURCE, "maxent/g.py": SOURCE}
    again = dict(reversed(sources.items()))
    assert sample(sources, 20, seed=1) == sample(again, 20, seed=1)
    assert sample(sources, 20, seed=1)[:5] == sample(sources, 5, seed=1)
    assert sample(sources, 20, seed=1) != sample(sources, 20, seed=2)


class Trees:
    """What tests would find: by texts of changes, the tests that fail."""

    def __init__(self, fails):
        self.fails, self.runs = fails, []

    def run(self, changes, tests, limit, *options):
        texts = [change.after for change in changes]
        self.runs.append(texts)
        found = [test for text in texts for test in self.fails.get(text, [])]
        ends = [test for test in found if test in ("timeout", "crash: -11")]
        return ends[:1] or [test for test in found if {test, "a.py"} & set(tests)]


class Record:
    """Three tests, which all pass without a change."""

    def __init__(self):
        seconds = {"a.py::f": 1.0, "a.py::g": 2.0, "a.py::h": 1.0}
        self.tests = {"a.py": {"seconds": seconds}}

    def seconds(self, test):
        return self.tests["a.py"]["seconds"][test]

    def is_reliable(self, test):
        return True


def test_survivors_meet_all_tests_together_and_then_those_that_fail(campaign):
    source = b"a = 1.0\nb = 2.0\nc = 3.0\nd = 4.0\ne = 5.0\n"
    changes = changes_of("maxent/f.py", source)
    trees = Trees({"(4.0)": ["a.py::g"], "(6.0)": ["timeout"], "(10.0)": ["a.py::f"]})
    found = campaign.killed_by_the_rest(changes, Record(), trees)
    assert {change.after: by for change, by in found.items()} == {
        "(4.0)": "a.py::g",
        "(6.0)": "timeout",
        "(10.0)": "a.py::f",
    }
    quiet = Trees({})
    assert campaign.killed_by_the_rest(changes, Record(), quiet) == {}
    assert len(quiet.runs) == 1


def test_changes_of_one_text_are_not_made_together(campaign, changes):
    group = campaign.apart(changes)
    spans = sorted((change.start, change.end) for change in group)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert group[0] is changes[0] and len(group) < len(changes)
