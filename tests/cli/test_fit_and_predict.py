"""The command line, called in process: usage, and what fit and predict give."""

import gzip
import tracemalloc

import numpy as np
import pytest
from command_line import assert_one_sentence, pairs, read_rows, values_beside, write_csv
from processes import run as run_python
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import StandardScaler

from maxent._persistence.persistence import load, save
from maxent.datasets import load_crabs

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
        (["fit"], "required: DATA"),
        (["fit", "a", "b", "--kernel", "magic"], "invalid choice: 'magic'"),
        (["fit", "a", "b", "-C", "x"], "argument -C"),
        (["fit", "a", "b", "--gamma", "wide"], "use scale, auto or a number"),
        (["fit", "a", "b", "--bias", "no"], "use flat, none or a number"),
        (["predict", "a", "b", "--top", "0"], "'0' is no whole number >= 1"),
        (["fit", "a", "b", "--stand"], "unrecognized arguments: --stand"),
        (["predict", "a", "b", "--em-tol", "1"], "(see maxent predict --help)"),
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
    assert estimator.feature_names_in_.tolist() == ["FL", "RW", "CL", "CW", "BD"]
    X, y = load_crabs(return_X_y=True, as_frame=True)
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
    for word in ("flat", "kkt"):
        run("fit", crabs, model, "--label", "0", "--bias", word)
        assert load(model).bias == "flat"


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
        values_beside(dense, "decision"),
        values_beside(sparse, "decision"),
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
    with pytest.warns(UserWarning, match="had standardized.*return_extra=True"):
        load(model)
    _, extra = load(model, return_extra=True)
    np.testing.assert_allclose(extra["standardize"]["mean"], scaler.mean_, rtol=1e-14)
    np.testing.assert_allclose(extra["standardize"]["scale"], scaler.scale_, rtol=1e-14)
    expected = Real(tol=1e-8).fit(scaler.transform(X), y)
    _, out, _ = run("predict", model, crabs, "--decision")
    got = values_beside(out)[:, 0]
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
    estimator, extra = load(tmp_path / "m.npz", return_extra=True)
    assert extra["standardize"]["mean"] is None
    _, out, _ = run("predict", tmp_path / "m.npz", path)
    expected = estimator.predict(X / X.std(axis=0))
    assert [int(row[0]) for row in read_rows(out)[1:]] == expected.tolist()


@pytest.mark.parametrize("options", [[], ["--kernel", "linear"], ["--standardize"]])
def test_wide_sparse_data_stay_sparse(run, tmp_path, rng, options):
    n, d = 400, 1_300_000
    where = np.sort(rng.integers(11, d + 1, size=(n, 6)), axis=1)
    first = rng.integers(1, 11, size=n)  # tells the classes apart
    lines = [
        f"{1 if k > 5 else -1} {k}:3 " + " ".join(f"{i}:1" for i in np.unique(row))
        for k, row in zip(first.tolist(), where)
    ]
    (tmp_path / "wide.svm").write_text("\n".join(lines) + f"\n1 10:3 {d}:1\n")
    tracemalloc.start()
    code, out, _ = run("fit", tmp_path / "wide.svm", tmp_path / "m", *options)
    assert code == 0 and pairs(out)["features"] == str(d)
    assert run("predict", tmp_path / "m", tmp_path / "wide.svm")[0] == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a few numbers for each column at most: dense rows would be 400
    assert peak < 10 * 8 * d


def test_values_too_large_to_standardize_are_named(run, tmp_path, stub):
    stub(lambda self: None)
    path = write_csv(tmp_path / "x.csv", [[1, 1e300], [2, -1e300]], [0, 1])
    code, _, err = run("fit", path, tmp_path / "m", "--label", "0", "--standardize")
    assert code == 2 and "feature 1 (counted from 0) are too large" in err


def test_probabilities_need_a_margin_that_defines_them(run, crabs, tmp_path):
    model = tmp_path / "m.npz"
    run("fit", crabs, model, "--label", "sex", "--margin", "logistic")
    code, out, _ = run("predict", model, crabs, "--proba")
    proba = values_beside(out, "proba_female", "proba_male")
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    run("fit", crabs, model, "--label", "sex")
    code, out, err = run("predict", model, crabs, "--proba")
    assert (code, out) == (
        2,
        "",
    ) and "fit with --probability or --margin logistic" in err
    assert_one_sentence(err, "predict")


def test_three_classes_have_a_decision_value_each(run, tmp_path):
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b", "c, d"], 20)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [4, 0], [0, 4]], 20, axis=0)
    path = write_csv(tmp_path / "x.csv", X, y, ["u", "v"])
    code, out, _ = run("fit", path, tmp_path / "m.npz", "--label", "sex")
    assert code == 0 and "a (20), b (20), c, d (20)" in out
    _, out, _ = run("predict", tmp_path / "m.npz", path, "--decision")
    decisions = values_beside(out, "decision_a", "decision_b", "decision_c, d")
    best = decisions.argmax(axis=1)
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


def test_predictions_are_compressed_where_their_name_says_so(run, crabs, tmp_path):
    model, plain, packed = tmp_path / "m", tmp_path / "p.csv", tmp_path / "p.csv.gz"
    assert run("fit", crabs, model, "--label", "sex")[0] == 0
    for out in (plain, packed):
        assert run("predict", model, crabs, "-o", out)[0] == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    first = packed.read_bytes()
    assert run("predict", model, crabs, "-o", packed)[0] == 0
    assert packed.read_bytes() == first
