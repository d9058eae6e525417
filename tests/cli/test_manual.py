"""The help of one estimator, and the manual page."""

import re
from pathlib import Path

import pytest

from maxent._commands.catalog import SEQUENCES, TABLES
from maxent._commands.manual import manual
from maxent._commands.options import OPTIONS
from maxent._commands.parameters import applicable, parameters
from maxent._commands.usage import commands_of, make_parser

MAN = Path(__file__).parents[2] / "man" / "maxent.1"


def test_the_manual_page_is_current():
    text = MAN.read_text(encoding="utf-8")
    assert text == manual(), "python -m maxent._commands.manual man/maxent.1"


def test_the_manual_page_has_every_option():
    text = manual().replace("\\-", "-")
    for command in commands_of(make_parser()).values():
        for action in command._actions:
            for flag in action.option_strings:
                assert f"\\fB{flag}\\fR" in text
    for line in text.splitlines():
        assert not line.startswith(".") or line[1:3] in {
            *("TH", "SH", "SS", "TP", "PP", "B ", "I ", "nf", "fi")
        }


@pytest.mark.parametrize("name", dict.fromkeys([*TABLES, *SEQUENCES]))
def test_the_help_of_an_estimator_has_what_applies(run, name):
    code, out, err = run("fit", "--estimator", name, "--help")
    assert (code, err) == (0, "")
    body = out.split("\npositional arguments")[1]
    known = applicable(name)
    for dest, option in OPTIONS.items():
        shown = re.search(rf"^  (-C C, )?{option.flags[-1]}\b", body, re.MULTILINE)
        assert (shown is not None) == (dest in known), dest
    assert ("--standardize" in body) == (name in TABLES and not TABLES[name].categories)
    assert ("--negative" in body) == (name in SEQUENCES)
    assert run("fit", "--help", f"--estimator={name}")[1] == out


def test_defaults_are_those_of_the_estimator(run):
    out = " ".join(run("fit", "--estimator", "motif", "--help")[1].split())
    for dest in ("C", "alpha", "tol", "background", "n_init"):
        option = OPTIONS[dest]
        value = parameters(SEQUENCES["motif"])[dest]
        assert f"{option.text} (default: {value:g})" in out
    assert 'init="path"' in out and "gaussian 3" not in out
    out = " ".join(run("fit", "--estimator", "outliers", "--help")[1].split())
    assert "(default: tables 200; sequences 2000)" in out
    code, _, err = run("fit", "--estimator", "magic", "--help")
    assert code == 2 and "invalid choice: 'magic'" in err
