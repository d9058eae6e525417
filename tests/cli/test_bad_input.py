"""Every command with every bad file and stream: one sentence, code 2, nothing left."""

import io
import os
import subprocess
import sys

import pytest
from command_line import assert_one_sentence
from processes import HUNG, start

from maxent._persistence.persistence import save
from maxent.cli import main
from maxent.kernels import ProductKernel
from maxent.models import MarkovChain

needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="there is no /dev/full"
)


@pytest.fixture
def folder(run, crabs, tmp_path, stub):
    """A folder with a table, a model of it, and files that are of no use."""
    assert run("fit", crabs, tmp_path / "model", "--label", "sex")[0] == 0
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "blank").write_bytes(b" \n\n")
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    (tmp_path / "cut.xz").write_bytes(b"\xfd7zXZ\x00\x00")
    (tmp_path / "latin.csv").write_bytes(b"a,k\n1,\xe9\n2,b\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub.png").mkdir()
    chain = MarkovChain([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], alphabet="AC")
    save(chain, tmp_path / "chain")
    kernel = ProductKernel("MarkovChain", model_params={"alphabet": "AC"})
    save(kernel.fit(["ACCA", "AACA"]), tmp_path / "kernel")
    return tmp_path


# Arguments with {} for the folder, and words of the sentence.
ROWS = {
    "fit, missing file": ("fit {}/none {}/new", "none: No such file"),
    "fit, folder": ("fit {}/sub {}/new", "sub: Is a directory"),
    "fit, empty file": ("fit {}/empty {}/new", "is empty"),
    "fit, blank file": ("fit {}/blank {}/new", "is empty"),
    "fit, damaged gzip": ("fit {}/cut.gz {}/new", "gzip"),
    "fit, damaged xz": ("fit {}/cut.xz {}/new", "damaged or cut short xz data"),
    "fit, Latin-1": ("fit {}/latin.csv {}/new", "say --encoding latin-1"),
    "fit, sequences, Latin-1": (
        *("fit {}/latin.csv {}/new --format sequences", "say --encoding latin-1"),
    ),
    "fit, unknown encoding": (
        *("fit {}/latin.csv {}/new --encoding latin-99", "use a name such as utf-8"),
    ),
    "fit, a model for data": ("fit {}/model {}/new", "is a zip archive"),
    "fit, sequences, missing": (
        *("fit {}/none {}/new --format sequences", "none: No such file"),
    ),
    "fit, sequences, empty": ("fit {}/empty {}/new --format sequences", "no sequence"),
    "fit, sequences, a model": ("fit {}/model {}/new --format sequences", "a zip"),
    "fit, sequences, folder": ("fit {}/sub {}/new --format sequences", "directory"),
    "predict, no file of the model": ("predict - -", "not read from standard input"),
    "fit, model in no folder": ("fit {}/crabs.csv {}/no/new", "does not exist"),
    "fit, model is a folder": ("fit {}/crabs.csv {}/sub", "it is a folder"),
    "fit, estimator of sequences": (
        *("fit {}/crabs.csv {}/new --estimator motif", "is for sequences"),
    ),
    "predict, missing model": ("predict {}/none {}/crabs.csv", "No such file"),
    "predict, folder for model": ("predict {}/sub {}/crabs.csv", "not a model file"),
    "predict, empty model": ("predict {}/empty {}/crabs.csv", "not a model file"),
    "predict, data for model": ("predict {}/crabs.csv {}/crabs.csv", "not a model"),
    "predict, model of no estimator": (
        *("predict {}/chain {}/crabs.csv", "does not predict"),
    ),
    "predict, transformer": ("predict {}/kernel {}/crabs.csv", "does not predict"),
    "predict, missing data": ("predict {}/model {}/none -o {}/new", "No such file"),
    "predict, folder for data": ("predict {}/model {}/sub -o {}/new", "directory"),
    "predict, empty data": ("predict {}/model {}/empty -o {}/new", "is empty"),
    "predict, model for data": ("predict {}/model {}/model -o {}/new", "a zip"),
    "predict, output in no folder": (
        *("predict {}/model {}/crabs.csv -o {}/no/new", "does not exist"),
    ),
    "predict, output is a folder": (
        *("predict {}/model {}/crabs.csv -o {}/sub", "it is a folder"),
    ),
    "predict, no probabilities": (
        *("predict {}/model {}/crabs.csv --probability", "defines no probabilities"),
    ),
    "predict, no log-likelihoods": (
        *("predict {}/model {}/crabs.csv --score", "defines no log-likelihoods"),
    ),
    "info, missing": ("info {}/none", "No such file"),
    "info, folder": ("info {}/sub", "not a model file"),
    "info, empty": ("info {}/empty", "not a model file"),
    "info, data": ("info {}/crabs.csv", "not a model file"),
    "demo, output in no folder": ("demo -o {}/no/a.png", "does not exist"),
    "demo, output is a folder": ("demo motif -o {}/sub.png", "it is a folder"),
    "demo, kind of picture": ("demo latent -o {}/a.txt", "name a .png, .pdf or .svg"),
}
FULL = {
    "fit": ("fit {}/crabs.csv /dev/full --label sex", "No space left"),
    "predict": ("predict {}/model {}/crabs.csv -o /dev/full", "No space left"),
}


def refused(run, folder, line, words):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    args = [arg.replace("{}", str(folder)) for arg in line.split()]
    code, out, err = run(*args)
    assert (code, out) == (2, ""), err
    assert words in err
    assert_one_sentence(err, args[0])
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("line, words", ROWS.values(), ids=ROWS)
def test_bad_input_is_one_sentence(run, folder, line, words):
    refused(run, folder, line, words)


@needs_full
@pytest.mark.parametrize("line, words", FULL.values(), ids=FULL)
def test_a_full_disk_is_one_sentence(run, folder, line, words):
    refused(run, folder, line, words)


def test_standard_input_that_is_closed_or_empty(run, folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    refused(run, folder, "fit - {}/new", "standard input is closed")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refused(run, folder, "predict {}/model -", "standard input is empty")


PRINTING = {
    "fit": ("fit {}/crabs.csv --label sex -v 2", 2),
    "predict": ("predict {}/model {}/crabs.csv", 2),
    "info": ("info --json {}/model", 2),
    "demo": ("demo --list", 2),
    "completion": ("--print-completion bash", 2),
    "help": ("fit --help", 2),
}


@pytest.mark.parametrize("line, code", PRINTING.values(), ids=PRINTING)
def test_output_that_is_closed(folder, monkeypatch, capsys, line, code):
    if "completion" in line:
        pytest.importorskip("shtab")
    args = [arg.replace("{}", str(folder)) for arg in line.split()]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main(args) == code
    err = capsys.readouterr().err
    assert "standard output cannot be written (it is closed)" in err
    assert err.count("\n") == 1


def test_the_package_runs_as_a_module(tmp_path):
    process = start(
        *("-m", "maxent", "info", tmp_path / "none"), stderr=subprocess.PIPE
    )
    err = process.communicate(timeout=HUNG)[1]
    assert process.returncode == 2
    assert_one_sentence(err, "info")
