"""The command line, called in process: results, exit codes, and whole files."""

import csv
import errno
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from processes import run as run_python
from processes import start
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from maxent._support import persistence
from maxent._support.persistence import load, load_with_extra, read_model, save
from maxent.cli import main
from maxent.datasets import load_crabs


class MEDClassifier(ClassifierMixin, BaseEstimator):
    """Stand-in for the classifier, with a behaviour that a test can set."""

    behaviour = staticmethod(lambda self: None)

    def __init__(self, kernel="rbf", C=1.0, *, verbose=False):
        self.kernel = kernel
        self.C = C
        self.verbose = verbose

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.converged_ = True
        self.n_iter_ = 3
        type(self).behaviour(self)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], X.shape[0])


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setitem(
        persistence.CLASSES, "MEDClassifier", f"{__name__}:MEDClassifier"
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


def write_csv(path, X, y=None, names=None, label="sex"):
    rows = [[repr(float(v)) for v in row] for row in np.asarray(X)]
    if y is not None:
        rows = [[label_value, *row] for label_value, row in zip(y, rows)]
    if names is not None:
        rows.insert(0, ([] if y is None else [label]) + list(names))
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def read_rows(text):
    return list(csv.reader(text.splitlines()))


def assert_one_sentence(err, start):
    assert err.startswith(f"maxent {start}: ") and err.count("\n") == 1
    assert "Traceback" not in err


def pairs(out):
    """The printed lines as a dict."""
    found = (line.strip().partition("  ") for line in out.splitlines())
    return {name: value.strip() for name, _, value in found}


# ---------------------------------------------------------------------------- usage


@pytest.mark.parametrize("command", [[], ["demo"], ["fit"], ["predict"], ["info"]])
def test_help_is_printed(run, command):
    code, out, err = run(*command, "--help")
    assert (code, err) == (0, "") and out.startswith("usage: maxent")


def test_the_version_is_printed(run):
    code, out, _ = run("--version")
    assert code == 0 and out.split()[0] == "maxent" and out.split()[1][0].isdigit()


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom maxent.cli import main\nassert main(['fit', '--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    run_python("-c", code)


@pytest.mark.parametrize(
    "args, words",
    [
        ([], "required: COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["fit"], "required: DATA, MODEL"),
        (["fit", "a", "b", "--kernel", "magic"], "invalid choice: 'magic'"),
        (["fit", "a", "b", "-C", "x"], "argument -C"),
        (["fit", "a", "b", "--gamma", "wide"], "use scale, auto or a number"),
        (["fit", "a", "b", "--bias", "no"], "use flat, none or a number"),
        (["predict", "a", "b", "--proba", "--decision"], "not allowed with"),
        (["fit", "a", "b", "--stand"], "unrecognized arguments: --stand"),
    ],
)
def test_wrong_usage_is_one_sentence(run, args, words):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1 and "--help" in err


# ------------------------------------------------------------------ fit and predict


def test_fit_predict_and_info_agree(run, crabs, tmp_path):
    model = tmp_path / "m.npz"
    code, out, err = run("fit", crabs, model, "--label", "sex", "-C", "10")
    assert (code, err) == (0, "")
    said = pairs(out)
    assert said["rows"] == "200" and said["features"] == "5"
    assert said["classes"] == "female (100), male (100)"
    estimator = load(model)
    X, y = load_crabs(return_X_y=True)
    predicted = estimator.predict(X)
    wrong = int(np.sum(predicted != np.array(["female", "male"])[y]))
    assert said["training error"].split()[0] == str(wrong)
    assert said["support"].split()[0] == str(len(estimator.support_))
    assert float(said["duality gap"].split()[0]) == pytest.approx(
        estimator.duality_gap_, rel=0.06
    )
    assert said["converged"] == "yes"

    code, out, err = run("predict", model, crabs)
    assert code == 0
    assert read_rows(out) == [["prediction"], *([p] for p in predicted)]
    assert err == f"error: {wrong} of 200 ({wrong / 2:.2f} %)\n"

    code, out, err = run("info", model)
    assert (code, err) == (0, "")
    told = pairs(out)
    assert told["class"] == "MEDClassifier" and float(told["C"]) == 10
    assert told["checksum"].startswith("ok")
    assert told["support"] == said["support"]
    assert told["duality gap"] == said["duality gap"]
    assert told["names"] == "FL, RW, CL, CW, BD"


def test_options_become_parameters(run, crabs, tmp_path):
    model = tmp_path / "m.npz"
    options = (
        "--kernel poly --degree 2 --coef0 1 --gamma 0.1 --margin logistic --bias none "
        "--tol 1e-5 --cache-size 20 --jobs 1 --max-iter 100000 --sharpness 5"
    )
    code, _, _ = run("fit", crabs, model, "--label", "0", *options.split())
    assert code == 0
    params = load(model).get_params()
    expected = {
        "kernel": "poly",
        "degree": 2,
        "coef0": 1.0,
        "gamma": 0.1,
        "margin": "logistic",
        "bias": None,
        "tol": 1e-5,
        "cache_size": 20.0,
        "n_jobs": 1,
        "max_iter": 100000,
        "sharpness": 5.0,
        "C": 1.0,
    }
    assert {name: params[name] for name in expected} == expected


def test_svmlight_and_csv_give_the_same_predictions(run, crabs, tmp_path):
    data = load_crabs()
    svm = tmp_path / "crabs.svm"
    dump_svmlight_file(data.data, data.target, str(svm), zero_based=False)
    options = ["--kernel", "linear", "--tol", "1e-9"]
    run("fit", crabs, tmp_path / "a.npz", "--label", "sex", *options)
    run("fit", svm, tmp_path / "b.npz", *options)
    _, dense, _ = run("predict", tmp_path / "a.npz", crabs, "--decision")
    _, sparse, err = run("predict", tmp_path / "b.npz", svm, "--decision")
    np.testing.assert_allclose(
        np.array(read_rows(dense)[1:], dtype=float),
        np.array(read_rows(sparse)[1:], dtype=float),
        atol=1e-3,  # a gap of 1e-7 leaves |w| free by its square root, 3e-4 here
    )
    assert err.startswith("error: ")
    # The CSV model reads the svmlight file too, whose labels it does not know.
    code, _, err = run("predict", tmp_path / "a.npz", svm)
    assert code == 0 and "no label of the file is a class of the model" in err


def test_svmlight_indices_keep_their_start(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = (X[:, 0] > 0).astype(int)
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    dump_svmlight_file(X, y, str(train), zero_based=True)
    X[:, 0] = 0  # in this file no row has the first feature
    dump_svmlight_file(X, y, str(test), zero_based=True)
    run("fit", train, tmp_path / "m.npz")
    _, out, _ = run("predict", tmp_path / "m.npz", test)
    expected = load(tmp_path / "m.npz").predict(X)
    assert [int(row[0]) for row in read_rows(out)[1:]] == expected.tolist()


def test_standardize_equals_scaling_before_the_fit(run, crabs, tmp_path):
    from maxent.discrimination import MEDClassifier as Real

    model = tmp_path / "m.npz"
    run("fit", crabs, model, "--label", "sex", "--standardize", "--tol", "1e-8")
    X, y = load_crabs(return_X_y=True)
    scaler = StandardScaler().fit(X)
    _, extra = load_with_extra(model)
    np.testing.assert_allclose(extra["standardize"]["mean"], scaler.mean_, rtol=1e-14)
    np.testing.assert_allclose(extra["standardize"]["scale"], scaler.scale_, rtol=1e-14)
    expected = Real(tol=1e-8).fit(scaler.transform(X), y)
    _, out, _ = run("predict", model, crabs, "--decision")
    got = np.array(read_rows(out)[1:], dtype=float)[:, 0]
    np.testing.assert_allclose(
        got, expected.decision_function(scaler.transform(X)), atol=1e-5
    )


def test_standardize_keeps_sparse_features_sparse(run, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) * [1, 1e3, 1e-3] * (rng.random((60, 3)) < 0.7)
    y = (X[:, 0] + X[:, 1] / 1e3 > 0).astype(int)
    path = tmp_path / "x.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    code, _, _ = run("fit", path, tmp_path / "m.npz", "--standardize")
    assert code == 0
    estimator, extra = load_with_extra(tmp_path / "m.npz")
    assert extra["standardize"]["mean"] is None
    _, out, _ = run("predict", tmp_path / "m.npz", path)
    expected = estimator.predict(X / X.std(axis=0))
    assert [int(row[0]) for row in read_rows(out)[1:]] == expected.tolist()


def test_values_too_large_to_standardize_are_named(run, tmp_path, stub):
    stub(lambda self: None)
    path = write_csv(tmp_path / "x.csv", [[1, 1e300], [2, -1e300]], [0, 1])
    code, _, err = run("fit", path, tmp_path / "m", "--label", "0", "--standardize")
    assert code == 2 and "feature 1 (counted from 0) are too large" in err


def test_probabilities_need_a_margin_that_defines_them(run, crabs, tmp_path):
    model = tmp_path / "m.npz"
    run("fit", crabs, model, "--label", "sex", "--margin", "logistic")
    code, out, _ = run("predict", model, crabs, "--proba")
    rows = read_rows(out)
    assert code == 0 and rows[0] == ["proba_female", "proba_male"]
    np.testing.assert_allclose(np.array(rows[1:], dtype=float).sum(axis=1), 1)
    run("fit", crabs, model, "--label", "sex")
    code, out, err = run("predict", model, crabs, "--proba")
    assert (code, out) == (2, "") and "fit with --margin logistic" in err
    assert_one_sentence(err, "predict")


def test_three_classes_have_a_decision_value_each(run, tmp_path):
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b", "c, d"], 20)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [4, 0], [0, 4]], 20, axis=0)
    path = write_csv(tmp_path / "x.csv", X, y, ["u", "v"])
    code, out, _ = run("fit", path, tmp_path / "m.npz", "--label", "sex")
    assert code == 0 and "a (20), b (20), c, d (20)" in out
    _, out, _ = run("predict", tmp_path / "m.npz", path, "--decision")
    rows = read_rows(out)
    assert rows[0] == ["decision_a", "decision_b", "decision_c, d"]
    best = np.array(rows[1:], dtype=float).argmax(axis=1)
    _, out, _ = run("predict", tmp_path / "m.npz", path)
    labels = np.array([row[0] for row in read_rows(out)[1:]])
    np.testing.assert_array_equal(np.array(["a", "b", "c, d"])[best], labels)


def test_columns_are_found_by_name_whatever_their_order(run, crabs, tmp_path):
    model, data = tmp_path / "m.npz", load_crabs()
    run("fit", crabs, model, "--label", "sex")
    _, expected, _ = run("predict", model, crabs)
    path = tmp_path / "other.csv"
    X = np.column_stack([np.arange(200), data.data[:, ::-1]])
    write_csv(path, X, None, ["id", *data.feature_names[::-1]])
    code, out, err = run("predict", model, path)
    assert (code, out, err) == (0, expected, "")
    write_csv(path, data.data, None, None)
    code, out, err = run("predict", model, path)
    assert (code, out, err) == (0, expected, "")


def test_no_label_and_another_label_column(run, crabs, tmp_path):
    model, data = tmp_path / "m.npz", load_crabs()
    run("fit", crabs, model, "--label", "sex")
    code, _, err = run("predict", model, crabs, "--no-label")
    assert (code, err) == (0, "")
    path = tmp_path / "other.csv"
    truth = data.target_names[1 - data.target]
    write_csv(path, data.data, truth, data.feature_names, label="truth")
    code, _, err = run("predict", model, path)
    assert (code, err) == (0, "")  # no column of the name that the label had
    code, _, err = run("predict", model, path, "--label", "truth")
    assert code == 0 and int(err.split()[1]) > 150


def test_labels_are_compared_as_text_if_their_kinds_differ(run, tmp_path):
    X = np.array([[0.0], [0.1], [3.0], [3.1], [6.0], [6.1]])
    train = write_csv(tmp_path / "a.csv", X, ["1", "1", "2", "2", "x", "x"])
    test = write_csv(tmp_path / "b.csv", X[:4], ["1", "1", "2", "1"])
    code, _, _ = run(
        "fit", train, tmp_path / "m", "--label", 0, "-C", 100, "--gamma", 1
    )
    assert code == 0
    _, out, err = run("predict", tmp_path / "m", test, "--label", 0)
    assert [row[0] for row in read_rows(out)[1:]] == ["1", "1", "2", "2"]
    assert err == "error: 1 of 4 (25.00 %)\n"


def test_models_saved_from_python_can_be_used(run, crabs, tmp_path):
    from maxent.discrimination import MEDClassifier as Real

    X, y = load_crabs(return_X_y=True, as_frame=True)
    save(Real().fit(X, y), tmp_path / "m.npz")
    code, out, err = run("predict", tmp_path / "m.npz", crabs)
    assert (code, err) == (0, "") and len(read_rows(out)) == 201


def test_the_regressor_predicts_numbers(run, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(80, 1))
    path = write_csv(tmp_path / "x.csv", X, np.sin(X[:, 0]), ["x"], label="y")
    model = tmp_path / "m.npz"
    code, out, _ = run(
        *("fit", path, model, "--estimator", "regressor", "--label", "y"),
        *("--epsilon", "0.01", "-C", "10"),
    )
    assert code == 0 and "root mean square" in out
    _, out, err = run("predict", model, path)
    # nothing is charged for residuals up to epsilon + 1 / sharpness = 0.11
    assert err.startswith("error: ") and float(err.split()[1]) < 0.11
    assert len(read_rows(out)) == 81
    code, _, err = run("predict", model, path, "--decision")
    assert code == 2 and "defines no decision values" in err


def test_the_regressor_refuses_text(run, crabs, tmp_path):
    code, _, err = run(
        "fit", crabs, tmp_path / "m", "--estimator", "regressor", "--label", "sex"
    )
    assert code == 2 and "the labels are text" in err
    assert_one_sentence(err, "fit")


def test_the_selector_names_its_features(run, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 6))
    y = np.where(X[:, 2] > 0, "up", "down")
    path = write_csv(tmp_path / "x.csv", X, y, list("abcdef"), label="y")
    model = tmp_path / "m.npz"
    code, out, _ = run(
        *("fit", path, model, "--estimator", "selector", "--label", "y"),
        *("--prior-inclusion", "0.1"),
    )
    assert code == 0
    assert "c" in pairs(out)["selected"]
    assert load(model).get_params()["prior_inclusion"] == 0.1


# ------------------------------------------------------------------- what goes wrong


def test_options_of_another_estimator_are_refused(run, crabs, tmp_path, stub):
    code, _, err = run("fit", crabs, tmp_path / "m", "--label", "sex", "--jobs", "2")
    assert code == 2 and "--jobs does not apply to the classifier" in err
    code, _, err = run("fit", crabs, tmp_path / "m", "--epsilon", "1")
    assert code == 2 and "--epsilon does not apply to the classifier" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "option, words",
    [
        (["-C", "-1"], "C=-1.0"),
        (["--margin", "magic"], "margin='magic' is not known"),
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
    assert process.wait(timeout=60) == 141
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
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "maxent fit: interrupted\n"


# ----------------------------------------------------------------------------- demo


def table(out):
    """The table of the demonstration: columns are two or more spaces apart."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("machine"))
    return lines[start : start + 5]


def test_the_demo_prints_an_aligned_table(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--no-picture", "--seed", "3")
    assert (code, err) == (0, "")
    rows = table(out)
    assert len({len(row) for row in rows}) == 1
    assert [row.split("  ")[0].strip() for row in rows] == [
        "machine",
        "MED linear",
        "MED rbf",
        "SVM linear",
        "SVM rbf",
    ]
    for row in rows[1:]:
        wrong, total = row.split(" of 120")[0].split()[-1], 120
        assert int(wrong) / total < 0.15
        assert " of 80 " in row
        # a gap is a number, or a bound where rounding hides it
        gap = row.split("  ")[-2].strip()
        assert gap == "< 1e-12" or 1e-13 < float(gap) < 1.0
    assert "80 crabs to train, 120 to test" in out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "gap, objective, text",
    [
        (1.5e-26, 76.2, "< 1e-12"),
        (0.0, 0.0, "< 1e-14"),
        (1.6e-13, 76.2, "< 1e-12"),
        (2.0e-13, 76.2, "2.0e-13"),
        (2.0e-13, 760.2, "< 1e-11"),
        (3.14e-4, 76.2, "3.1e-04"),
    ],
)
def test_the_demo_prints_no_gap_finer_than_rounding(gap, objective, text):
    from maxent._support.results import gap_text

    assert gap_text(gap, objective) == text


def test_the_picture_of_the_demo_shows_its_machines(tmp_path, run, monkeypatch):
    from matplotlib.figure import Figure

    figures = []
    keep = Figure.savefig

    def savefig(self, *args, **kwargs):
        figures.append(self)
        return keep(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", savefig)
    code, out, _ = run("demo", "-o", tmp_path / "a.png", "--seed", "1")
    (figure,) = figures
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert code == 0 and len(labels) == 6
    assert labels[:2] == ["principal coordinate 2", "error (%)"]
    bars = [round(120 * bar.get_height() / 100) for bar in figure.axes[1].patches[4:]]
    told = [int(row.split(" of 120")[0].split()[-1]) for row in table(out)[1:]]
    assert bars == told
    # the path at C = 10 is the second machine of the table
    path = figure.axes[-1].lines[0]
    at = np.argmin(np.abs(np.log(path.get_xdata() / 10)))
    assert path.get_xdata()[at] == pytest.approx(10.0)
    assert round(1.2 * path.get_ydata()[at]) == told[1]


def test_the_demo_gives_the_same_errors_for_the_same_seed(run):
    def errors(seed):
        out = run("demo", "--no-picture", "--seed", seed)[1]
        return [row.rsplit("  ", 1)[0].rstrip() for row in table(out)[1:]]

    assert errors(1) == errors(1)
    assert errors(1) != errors(2)


@pytest.mark.parametrize("name, magic", [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF")])
def test_the_demo_draws(run, tmp_path, name, magic):
    code, out, err = run("demo", "-o", tmp_path / name)
    assert (code, err) == (0, "") and f"Picture written to {tmp_path / name}" in out
    content = (tmp_path / name).read_bytes()
    assert content.startswith(magic) and len(content) > 10_000
    assert os.listdir(tmp_path) == [name]


def test_the_demo_goes_on_without_matplotlib(run, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run("demo", "-o", tmp_path / "a.png")
    assert (code, err) == (0, "")
    assert "matplotlib is not installed, so no picture is drawn" in out
    assert os.listdir(tmp_path) == [] and len(table(out)) == 5


@pytest.mark.parametrize(
    "args, words",
    [
        (["-o", "a.gif"], "name a .png, .pdf or .svg file"),
        (["-o", "no/where/a.png"], "does not exist"),
        (["--seed", "-1"], "negative"),
        (["--seed", "x"], "invalid int value"),
    ],
)
def test_wrong_use_of_the_demo_is_one_sentence(run, args, words):
    code, out, err = run("demo", *args)
    assert (code, out) == (2, "") and words in err
    assert_one_sentence(err, "demo")
