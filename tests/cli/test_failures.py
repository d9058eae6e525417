"""The command line when things go wrong: one sentence, exit codes, whole files."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import MEDClassifier, assert_one_sentence, pairs, write_csv
from processes import HUNG, start
from sklearn.exceptions import ConvergenceWarning

from maxent._commands.wording import in_shell, warnings_told
from maxent._persistence import persistence
from maxent._persistence.persistence import load, read_model, save
from maxent.cli import main
from maxent.datasets import load_crabs


def test_options_of_another_estimator_are_refused(run, crabs, tmp_path, stub):
    code, _, err = run("fit", crabs, tmp_path / "m", "--label", "sex", "--jobs", "2")
    assert code == 2 and "--jobs does not apply to the classifier" in err
    code, _, err = run("fit", crabs, tmp_path / "m", "--epsilon", "1")
    assert code == 2 and "--epsilon does not apply to the classifier" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "option, words",
    [
        (["-C", "-1"], "-C -1.0 must be"),
        (["--margin", "magic"], "--margin magic is not known"),
        (["--sharpness", "0.5"], "sharpness"),
        (["--tol", "nan"], "tol"),
    ],
)
def test_wrong_parameters_are_one_sentence(run, crabs, tmp_path, option, words):
    code, out, err = run("fit", crabs, tmp_path / "m", "--label", "sex", *option)
    assert (code, out) == (2, "") and words in err
    assert_one_sentence(err, "fit")
    assert not (tmp_path / "m").exists()


def test_one_class_is_one_sentence(run, tmp_path):
    path = write_csv(tmp_path / "x.csv", [[1], [2]], ["a", "a"])
    code, _, err = run("fit", path, tmp_path / "m", "--label", "0")
    assert code == 2 and "one class" in err
    assert_one_sentence(err, "fit")


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "is empty"),
        ("a,b,k\n1,2,x\n1,,y\n", "line 3, column 'b': the cell is empty"),
        ("a,b,k\n1,2\n", "line 2: 2 cells"),
        ("1 1:2\n1 2:x\n", "line 2: the value 'x'"),
        ("1 1:1\n-1 2147483647:1\n", "line 2: the feature index 2147483647 asks for"),
        (b"\xff\xfe\x00", "not in UTF-8"),
    ],
)
def test_malformed_data_are_one_sentence(run, tmp_path, stub, content, words):
    path = tmp_path / "data"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run("fit", path, tmp_path / "m")
    assert (code, out) == (2, "") and words in err and str(path) in err
    assert_one_sentence(err, "fit")
    assert not (tmp_path / "m").exists()


def test_missing_files_and_folders_are_one_sentence(run, crabs, tmp_path, stub):
    code, _, err = run("fit", tmp_path / "absent", tmp_path / "m")
    assert code == 2 and "absent: No such file" in err
    assert_one_sentence(err, "fit")
    code, _, err = run("fit", crabs, tmp_path / "no" / "m")
    assert code == 2 and "does not exist" in err
    code, _, err = run("fit", crabs, tmp_path)
    assert code == 2 and "it is a folder" in err
    code, _, err = run("info", tmp_path / "absent")
    assert code == 2 and "absent: No such file" in err
    code, _, err = run("predict", tmp_path / "absent", crabs)
    assert code == 2 and "absent: No such file" in err


def test_an_unwritable_place_is_found_before_the_fit(run, crabs, tmp_path, stub):
    stub(lambda self: pytest.fail("the fit was started"))
    assert run("fit", crabs, tmp_path / "no" / "m", "--label", "sex")[0] == 2


def test_inputs_are_never_replaced(run, crabs, tmp_path, stub):
    before = crabs.read_bytes()
    code, _, err = run("fit", crabs, crabs, "--label", "sex")
    assert code == 2 and "would replace the input" in err
    run("fit", crabs, tmp_path / "m", "--label", "sex")
    for output in (crabs, tmp_path / "m"):
        code, _, err = run("predict", tmp_path / "m", crabs, "-o", output)
        assert code == 2 and "would replace the input" in err
    assert crabs.read_bytes() == before


def test_damaged_models_are_one_sentence(run, crabs, tmp_path, stub):
    model = tmp_path / "m.npz"
    run("fit", crabs, model, "--label", "sex")
    raw = model.read_bytes()
    for damaged in (raw[:-40], raw.replace(b"rbf", b"poly"[:3]), b"hello"):
        model.write_bytes(damaged)
        for args in (("info", model), ("predict", model, crabs)):
            code, out, err = run(*args)
            assert (code, out) == (2, "") and str(model) in err
            assert_one_sentence(err, args[0])


@pytest.mark.parametrize(
    "extra",
    [
        {"standardize": 3},
        {"standardize": {"mean": None, "scale": np.ones(4)}},
        {"standardize": {"mean": np.ones(5), "scale": np.zeros(5)}},
        {"standardize": {"mean": np.full(5, np.nan), "scale": np.ones(5)}},
        {"feature_names": ["a"]},
        {"feature_names": "abcde"},
        {"label": [1]},
    ],
)
def test_contradictory_models_are_one_sentence(run, crabs, tmp_path, stub, extra):
    X, y = load_crabs(return_X_y=True)
    save(MEDClassifier().fit(X, y), tmp_path / "m", extra=extra)
    code, _, err = run("predict", tmp_path / "m", crabs)
    assert code == 2 and "does not agree" in err
    assert_one_sentence(err, "predict")


def test_data_of_another_width_are_one_sentence(run, crabs, tmp_path, stub):
    run("fit", crabs, tmp_path / "m", "--label", "sex")
    other = write_csv(tmp_path / "x.csv", [[1, 2, 3]])
    code, _, err = run("predict", tmp_path / "m", other)
    assert code == 2 and "3 feature columns, but 5 are expected" in err
    other = write_csv(tmp_path / "x.csv", [[1, 2, 3]], None, ["FL", "RW", "z"])
    code, _, err = run("predict", tmp_path / "m", other)
    assert code == 2 and "no column 'CL', 'CW', 'BD'" in err


def test_info_makes_nothing_of_the_file(run, crabs, tmp_path, stub, monkeypatch):
    run("fit", crabs, tmp_path / "m", "--label", "sex")
    monkeypatch.setattr(
        persistence, "resolve_class", lambda name: pytest.fail("class was looked up")
    )
    code, out, _ = run("info", tmp_path / "m")
    assert code == 0 and "MEDClassifier" in out


def test_a_fit_short_of_its_tolerance_is_written_and_told(run, crabs, tmp_path, stub):
    def short(self):
        self.converged_ = False
        warnings.warn("gap 0.5\n  tol 0.001", ConvergenceWarning, stacklevel=2)

    stub(short)
    code, out, err = run("fit", crabs, tmp_path / "m", "--label", "sex")
    assert code == 1
    assert pairs(out)["converged"] == "NO"
    assert "warning: gap 0.5 tol 0.001\n" in err and "the model is written" in err
    assert read_model(tmp_path / "m").fitted["converged_"] is False


def test_a_real_fit_short_of_its_tolerance(run, crabs, tmp_path):
    code, _, err = run(
        *("fit", crabs, tmp_path / "m", "--label", "sex", "-C", "1e4"),
        *("--max-iter", "1", "--tol", "1e-12", "--margin", "hinge"),
    )
    assert code == 1 and "the model is written" in err
    assert not load(tmp_path / "m").converged_


def test_an_interrupted_fit_leaves_nothing(run, crabs, tmp_path, stub):
    def interrupt(self):
        raise KeyboardInterrupt

    stub(interrupt)
    before = sorted(os.listdir(tmp_path))
    code, out, err = run("fit", crabs, tmp_path / "m", "--label", "sex")
    assert (code, out, err) == (130, "", "maxent fit: interrupted\n")
    assert sorted(os.listdir(tmp_path)) == before


def test_lack_of_memory_is_one_sentence(run, crabs, tmp_path, stub):
    def greedy(self):
        raise MemoryError("cannot allocate 9 GB")

    stub(greedy)
    code, _, err = run("fit", crabs, tmp_path / "m", "--label", "sex")
    assert code == 2 and "not enough memory (cannot allocate 9 GB)" in err


def test_programming_errors_are_not_hidden(crabs, tmp_path, stub):
    def broken(self):
        raise ZeroDivisionError

    stub(broken)
    with pytest.raises(ZeroDivisionError):
        main(["fit", str(crabs), str(tmp_path / "m"), "--label", "sex"])


@pytest.mark.parametrize(
    "flag, shown", [("--progress", True), ("--no-progress", False)]
)
def test_progress_goes_to_standard_error(run, crabs, tmp_path, stub, flag, shown):
    stub(lambda self: print("step 1") if self.verbose else None)
    code, out, err = run("fit", crabs, tmp_path / "m", "--label", "sex", flag)
    assert code == 0 and "step" not in out
    assert ("step 1" in err) is shown
    assert load(tmp_path / "m").verbose is False


def test_output_files_appear_whole_or_not_at_all(
    run, crabs, tmp_path, stub, monkeypatch
):
    run("fit", crabs, tmp_path / "m", "--label", "sex")
    out_file = tmp_path / "out.csv"
    code, out, _ = run("predict", tmp_path / "m", crabs, "-o", out_file)
    assert (code, out) == (0, "")
    before = out_file.read_bytes()
    assert before.startswith(b"prediction\nfemale\n")

    def full(handle):
        raise OSError(28, "No space left on device", str(out_file))

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run("predict", tmp_path / "m", crabs, "-o", out_file)
    assert code == 2 and "out.csv: No space left on device" in err
    assert out_file.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["crabs.csv", "m", "out.csv"]


def shell(*args, **kwargs):
    """The command in a process of its own."""
    return start("-m", "maxent.cli", *args, stderr=subprocess.PIPE, **kwargs)


def test_a_reader_that_leaves_early_is_no_failure(run, crabs, tmp_path):
    run("fit", crabs, tmp_path / "m", "--label", "sex")
    big = tmp_path / "big.csv"
    X = np.tile(load_crabs().data, (100, 1))
    write_csv(big, X, None, load_crabs().feature_names)
    process = shell("predict", tmp_path / "m", big, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=HUNG) == 141
    assert "Traceback" not in err and "Exception" not in err


def open_for_reader(fifo, process):
    """The writing end of a pipe, once the process reads it."""
    while process.poll() is None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO
            time.sleep(0.01)
    pytest.fail(process.stderr.read())


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_interrupting_the_process_ends_it_with_130(tmp_path):
    os.mkfifo(tmp_path / "data.csv")
    process = shell("fit", tmp_path / "data.csv", tmp_path / "m")
    pipe = open_for_reader(tmp_path / "data.csv", process)
    process.send_signal(signal.SIGINT)
    os.close(pipe)  # wakes a read that the signal found about to begin
    _, err = process.communicate(timeout=HUNG)
    assert process.returncode == 130
    assert err == "maxent fit: interrupted\n"


def of_kind(tmp_path, name):
    """A table with one fault, that only some estimators mind."""
    X = np.random.default_rng(0).normal(size=(30, 3)).round(3)
    y = np.where(X[:, 0] > 0, "yes", "no").tolist()
    if name == "constant":
        X[:, 1] = 7
    if name == "three classes":
        y[::3] = ["maybe"] * 10
    if name == "real labels":
        y = X[:, 0].tolist()
    if name == "few rows":
        X, y = X[:14], ["yes", "no"] * 7
    if name == "scales":
        X[:, 1] *= 1e6
    if name == "many columns":
        X = np.hstack([X] * 14)
    if name == "one row":
        X, y = X[:1], y[:1]
    if name == "sparse":
        rows = [
            f"{1 if k == 'yes' else -1} 1:{a} 3:{b}" for k, (a, b) in zip(y, X[:, ::2])
        ]
        (tmp_path / "x.svm").write_text("\n".join(rows) + "\n")
        return tmp_path / "x.svm"
    names = ["a", "b", "c"] if X.shape[1] == 3 else [f"x{j}" for j in range(len(X.T))]
    return write_csv(tmp_path / "x.csv", X, y, names)


# Table, options of fit, and words of what it says.
WORDS = [
    ("constant", "gaussian", "constant in feature 'b', left out of the model"),
    ("constant", "outliers", "constant in feature 'b', left out of the model"),
    ("constant", "mixture", "column 'b' of X is constant.*; --ignore b leaves it out"),
    ("sparse", "gaussian", "constant in feature 2 .its index in the file.,"),
    ("three classes", "selector", "; train classifier, gaussian"),
    ("one row", "mixture", "1 sample.* minimum of 2 is required by LMEGaussianMix"),
    ("plain", "dirichlet", "row [0-9]+ .counted from 0., column '[abc]'=-[0-9.]+; "),
    ("plain", "boltzmann", "row 0 .counted from 0., column 'a'=[0-9.]+ is not binary"),
    ("plain", "tree", "columns 'a', 'b', 'c' of X .* --bins 5, or .* --ignore a,b,c"),
    ("many columns", "chowliu", "columns 'x0', 'x1', .* hold .*--ignore x0,x1,.*,x41"),
    ("plain", "selector --margin fixed", "--margin fixed is not available .*--marg"),
    ("plain", "mixture --components 99", "--components 99 is more than the 30 rows"),
    ("plain", "mixture --starts 0", "--starts 0 must be an integer"),
    ("plain", "classifier --max-iter 1", "raise --max-iter .now 1., raise --tol, or"),
    ("plain", "logistic --max-iter 1", "raise --max-iter .now 1. or --tol"),
    ("plain", "outliers --contamination 2", "--contamination 2.0 must be None or a sh"),
    ("plain", "classifier --set multi_class=x", "--set multi_class=x is not known"),
    ("plain", "gaussian -C 1e-9", "raise -C or --level"),
    ("plain", "gaussian --level=-1e9", "--level or --set percentile=VALUE"),
    ("constant", "gaussian --header --ignore b,c,a", "no columns but those"),
    ("one row", "classifier --probability", "class '(yes|no)' has fewer rows: 1"),
    ("few rows", "classifier --probability -v 2", "and .* has fewer rows beside a"),
    ("real labels", "partial", "; train --estimator regressor, or make classes"),
    ("scales", "classifier --max-iter 1", "scale the columns by --standardize: their"),
    ("plain", "classifier -v 20", "no class has so many rows"),
]


@pytest.mark.parametrize("table, options, words", WORDS)
def test_messages_speak_of_options_and_columns(run, tmp_path, table, options, words):
    path = of_kind(tmp_path, table)
    label = [] if table == "sparse" else ["--label", "sex"]
    args = *options.split(), "-q", *label
    code, out, err = run("fit", path, tmp_path / "m", "--estimator", *args)
    assert out == "" and re.search(words, err), err
    assert (
        not re.search(r"sklearn|np\.|toarray|[a-z]_[a-z]+=|\bX\[", err)
        or "--set" in err
    )
    if code == 2:
        assert_one_sentence(err, "fit")
        assert not (tmp_path / "m").exists()


def test_sparse_files_are_for_every_estimator(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)).round(3)
    rows = [f"{'+-'[a < 0]}1 1:{a} 2:{b} 3:{c}" for a, b, c in X.tolist()]
    path = tmp_path / "x.svm"
    path.write_text("\n".join(rows) + "\n")
    for more in ([], ["--standardize"]):
        options = ["--estimator", "gaussian", "-q", *more]
        assert run("fit", path, tmp_path / "m", *options) == (0, "", "")
        code, out, err = run("predict", tmp_path / "m", path)
        assert code == 0 and len(out.split()) == 31 and err.startswith("error: ")


def test_tolerances_of_models_inside_a_kernel_have_their_own_option():
    args = SimpleNamespace(
        command="fit", standardize=False, estimator="classifier", sequences=True
    )
    text = "CategoricalHMM.fit_many: no fit converged; raise max_iter or tol. See"
    assert "; raise max_iter or --em-tol. See" in in_shell(text, args)


def of_fit(**more):
    return SimpleNamespace(
        **{"command": "fit", "standardize": False, "estimator": "classifier"} | more
    )


@pytest.mark.parametrize(
    "text, said, more",
    [
        ("tol=-1 must be > 0.", "--tol -1 must be > 0.", {}),
        ("Raise C or tol, or lower gamma", "Raise -C or --tol, or lower --gamma", {}),
        ("the kernel of C and a bias", "the kernel of C and a bias", {}),
        ("solver='smo' or max_rounds=3", "--set solver=smo or max_rounds=3", {}),
        ("class_weight['a']=-1", "class_weight['a']=-1", {}),
        ("the letter 'C' or 'tol'", "the letter 'C' or 'tol'", {}),
        ("n_init=2 is few", "--starts 2 is few", {"estimator": "mixture"}),
        ("bias=3", "--set bias=3", {"estimator": "boltzmann"}),
        ("raise tol, or scale the features.", "raise --tol.", {"standardize": True}),
        ("missing='N'", "--unknown N", {"estimator": "motif", "sequences": True}),
    ],
)
def test_parameters_are_the_options_that_set_them(text, said, more):
    assert in_shell(text, of_fit(**more)) == said


def test_warnings_are_told_when_they_come_and_once(capsys):
    args = SimpleNamespace(command="predict")
    with pytest.raises(KeyboardInterrupt), warnings_told(args):
        for text in ("one", "two", "one"):
            warnings.warn(text, UserWarning, stacklevel=1)
        said = capsys.readouterr().err
        raise KeyboardInterrupt
    assert said == "".join(f"maxent predict: warning: {x}\n" for x in ("one", "two"))
    assert capsys.readouterr().err == ""
