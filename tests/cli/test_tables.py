"""The command line on text, missing cells, blanks, gzip, standard input; estimators."""

import bz2
import gzip
import inspect
import io
import json
import lzma
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import assert_one_sentence, pairs, read_rows, values_beside, write_csv
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from maxent import MEDClassifier, MEDTreeClassifier, TrigramTopicModel
from maxent._commands import columns, reports, usage
from maxent._commands.catalog import SEQUENCES, TABLES
from maxent._commands.options import OPTIONS
from maxent._commands.parameters import parameters
from maxent._persistence.persistence import load, save

COLORS = ["<missing>", "blue", "green", "red"]
DOORS = ["2", "3", "5more", "<missing>"]


@pytest.fixture
def cars(tmp_path, rng):
    """A table of text, numbers and missing cells; 10 of its labels are wrong."""
    n = 90
    color = rng.choice(["red", "green", "blue"], n)
    doors = rng.choice(["2", "3", "5more"], n)
    weight = rng.normal(size=n).round(3)
    label = np.where((color == "red") ^ (doors == "5more"), "yes", "no")
    cells = np.column_stack([color, doors, weight.astype(str)])
    cells[[3, 40], [0, 1]] = "?"
    cells[7, 2] = ""
    path = tmp_path / "cars.csv"
    rows = [",".join([*row, k]) for row, k in zip(cells.tolist(), label)]
    path.write_text("\n".join(["color,doors,weight,class", *rows]) + "\n")
    return path


@pytest.fixture
def points(tmp_path, rng):
    """Numbers between blanks, without a header; the last is the class."""
    X = rng.normal(size=(60, 2)).round(4)
    y = (X[:, 0] > 0).astype(int)
    path = tmp_path / "points.txt"
    lines = [f"  {a:7.4f}   {b}  {k}" for (a, b), k in zip(X.tolist(), y)]
    path.write_text("\n".join(lines) + "\n")
    return path, X, y


def column(out, name="prediction"):
    rows = read_rows(out)
    assert rows[0] in ([name], ["prediction", name])
    return [row[-1] for row in rows[1:]]


# ------------------------------------------------------------- text and missing cells


def test_text_among_numbers_is_for_estimators_of_categories(run, cars, tmp_path):
    model = tmp_path / "m"
    code, _, err = run("fit", cars, model, "--label", "class")
    assert code == 2 and "line " in err and "estimators bayesnet, tree" in err
    assert_one_sentence(err, "fit")
    options = ["--estimator", "tree", "--ignore", "weight", "--level", "20"]
    code, out, err = run("fit", cars, model, *options)
    assert (code, err) == (0, "")
    said = pairs(out)
    assert said["columns of text"] == "color (3), doors (3)"
    assert said["missing cells"] == "2"
    rows = [line.split(",") for line in cars.read_text().splitlines()[1:]]
    table = np.array(rows, dtype=object)
    X = np.where(table[:, :2] == "?", None, table[:, :2])
    expected = MEDTreeClassifier(level=20.0, missing="category").fit(
        X, table[:, 3].astype(str)
    )
    _, out, err = run("predict", model, cars)
    assert column(out) == expected.predict(X).tolist() and err.startswith("error: ")


def test_columns_of_text_keep_their_kind_in_other_files(run, cars, tmp_path):
    run("fit", cars, tmp_path / "m", "--estimator", "bayesnet", "--ignore", "weight")
    other = tmp_path / "other.csv"
    other.write_text("doors,color\n2,red\n3,red\n2,blue\n9,\n")  # no text in doors
    code, out, _ = run("predict", tmp_path / "m", other)
    assert code == 0
    model = load(tmp_path / "m")
    X = pd.DataFrame({"color": ["red", "red", "blue", None], "doors": [*"2329"]})
    assert column(out) == model.predict(X).tolist()


def test_text_becomes_columns_of_numbers(run, cars, tmp_path):
    model = tmp_path / "m"
    options = ["--ignore", "doors", "--impute", "--standardize", "--tol", "1e-8"]
    code, out, _ = run("fit", cars, model, *options)
    assert code == 0 and pairs(out)["features"] == "2"
    rows = [line.split(",") for line in cars.read_text().splitlines()[1:]]
    weight = np.array([float(row[2] or "nan") for row in rows])
    weight[np.isnan(weight)] = np.nanmedian(weight)
    color = np.array([[row[0]] for row in rows])
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(color)
    X = StandardScaler().fit_transform(np.column_stack([weight, one_hot]))
    expected = MEDClassifier(tol=1e-8).fit(X, [row[3] for row in rows])
    _, out, _ = run("predict", model, cars, "--decision")
    np.testing.assert_allclose(
        np.array(column(out, "decision"), float),
        expected.decision_function(X),
        atol=1e-6,
    )
    other = tmp_path / "other.csv"  # colours that training has not met
    other.write_text("color,weight\nviolet,0.5\n?,NA\n")
    code, out, err = run("predict", model, other)
    assert code == 0 and len(column(out)) == 2
    assert_one_sentence(err, "predict")
    assert "column 'color': in 1 of 2 rows" in err and "'violet'" in err


@pytest.mark.parametrize(
    "estimator, ignored, counts",
    [
        ("classifier", "weight,doors", {"color": 11}),
        ("tree", "weight", {"color": 11, "doors": 1}),
    ],
)
def test_categories_that_training_has_not_met_are_counted(
    run, cars, tmp_path, estimator, ignored, counts
):
    options = ["--estimator", estimator, "--ignore", ignored]
    assert run("fit", cars, tmp_path / "m", *options)[0] == 0
    other = tmp_path / "other.csv"
    other.write_text("color,doors\n" + 11 * "violet,2\n" + "red,9\n")
    out_path = tmp_path / "p.csv"
    code, out, err = run("predict", tmp_path / "m", other, "--json", "-o", out_path)
    assert code == 0 and err.count("\n") == len(counts)
    assert "column 'color': in 11 of 12 rows" in err
    assert json.loads(out)["unseen_categories"] == counts


@pytest.mark.parametrize(
    "options", [["--kernel", "linear"], [], ["--estimator", "regressor"]]
)
def test_many_categories_are_sparse_rows(run, tmp_path, rng, monkeypatch, options):
    lines = [f"c{k},{x:.3f},{k % 2}" for k, x in enumerate(rng.normal(size=40))] * 2
    data, model = tmp_path / "d.csv", tmp_path / "m"
    data.write_text("\n".join(["city,x,class", *lines]) + "\n")
    found = []
    for most in (2**25, 0):
        monkeypatch.setattr(columns, "_DENSE_BYTES", most)
        line = ["fit", data, model, *options, "--tol", "1e-9", "-v", 2, "--json"]
        code, out, _ = run(*line)
        assert code == 0
        error = json.loads(out)["cross_validation_error"]
        state = vars(load(model, return_extra=True)[0])
        _, out, _ = run("predict", model, data)
        found.append((error, column(out)))
    if "linear" in options:  # whose file holds no rows
        assert "coef_" in state and "support_vectors_" not in state
    else:
        assert sp.issparse(state["support_vectors_"])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    values = [np.array(part, float) for _, part in found]
    np.testing.assert_allclose(*values, atol=1e-6)


def test_missing_numbers_need_to_be_asked_for(run, cars, tmp_path):
    code, _, err = run("fit", cars, tmp_path / "m", "--ignore", "doors")
    assert code == 2 and "column 'weight': the cell is empty" in err
    assert "--impute fills" in err
    run("fit", cars, tmp_path / "m", "--ignore", "doors,color", "--impute")
    fill = load(tmp_path / "m", return_extra=True)[1]["columns"]["fill"]
    values = [line.split(",")[2] for line in cars.read_text().splitlines()[1:]]
    assert fill.tolist() == [np.median([float(x) for x in values if x])]


def test_densities_need_no_column_that_others_determine(run, cars, tmp_path):
    options = ["--estimator", "gaussian", "--impute", "--ignore", "doors"]
    code, _, err = run("fit", cars, tmp_path / "m", *options, "--set", "prior=weak")
    assert code == 0 and "singular" not in err
    model, _ = load(tmp_path / "m", return_extra=True)
    assert model.n_features_in_ == 1 + 3  # 4 categories with "?"


@pytest.mark.parametrize(
    "columns",
    [
        3,
        {"text": []},
        {"text": [True] * 3},
        {"text": [0, 1], "categories": [], "fill": None},
        {"text": [True, False], "categories": [np.array(["a"])], "fill": np.ones(2)},
        {"text": [False] * 5, "categories": [], "fill": np.full(5, np.nan)},
        {"text": [False] * 5, "bins": [None] * 4},
        {"text": [False] * 5, "bins": [None] * 4 + [np.array([2.0, 1.0])]},
    ],
)
def test_contradictory_columns_are_one_sentence(run, crabs, tmp_path, columns):
    from maxent._persistence.persistence import save
    from maxent.datasets import load_crabs

    X, y = load_crabs(return_X_y=True)
    save(MEDClassifier().fit(X, y), tmp_path / "m", extra={"columns": columns})
    code, _, err = run("predict", tmp_path / "m", crabs)
    assert code == 2 and "does not agree" in err
    assert_one_sentence(err, "predict")


# ----------------------------------------------------------------------- where data are


@pytest.mark.parametrize("categories", [5, [1, 2], [np.array([]), np.array(["a"])]])
def test_contradictory_categories_are_one_sentence(run, cars, tmp_path, categories):
    options = ["--estimator", "tree", "--ignore", "weight"]
    assert run("fit", cars, tmp_path / "m", *options)[0] == 0
    model, extra = load(tmp_path / "m", return_extra=True)
    model.categories_ = categories
    save(model, tmp_path / "m", extra=extra)
    code, _, err = run("predict", tmp_path / "m", cars)
    assert code == 2
    assert_one_sentence(err, "predict")


def test_blanks_gzip_and_standard_input(run, points, tmp_path, monkeypatch):
    path, X, y = points
    packed = []
    for kind, module in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        packed.append(tmp_path / f"points.txt.{kind}")
        packed[-1].write_bytes(module.compress(path.read_bytes()))
    expected = MEDClassifier().fit(X, y).predict(X).tolist()
    for data in (path, *packed, "-"):
        for args in (("fit", data, tmp_path / "m"), ("predict", tmp_path / "m", data)):
            stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
            monkeypatch.setattr(sys, "stdin", stream)
            code, out, _ = run(*args)
            assert code == 0
        assert [int(k) for k in column(out)] == expected


def test_svmlight_and_sequences_from_standard_input(run, tmp_path, monkeypatch):
    def feed(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    feed("1 1:1 2:3\n-1 1:-1\n1 2:2\n-1 1:-2\n")
    assert run("fit", "-", tmp_path / "m", "--kernel", "linear")[0] == 0
    lines = "".join(f"{'AC' * k} a\n{'AA' * k}C b\n" for k in range(4, 9))
    feed(lines)
    options = ["--format", "sequences", "--sequence-model", "markov", "--horizon", 3]
    code, out, _ = run("fit", "-", tmp_path / "m", *options)
    assert code == 0 and pairs(out)["sequences"] == "10"


def test_models_do_not_go_to_standard_output(run, points):
    code, _, err = run("fit", points[0], "-")
    assert code == 2 and "name a file to write" in err


def test_a_header_of_numbers_is_asked_about(run, tmp_path, rng):
    path = tmp_path / "spectra.csv"
    X = rng.normal(size=(30, 4)).tolist()
    rows = [",".join(map(str, [*x, "ab"[x[0] > 0]])) for x in X]
    path.write_text("\n".join(["400,401,402,403,kind", *rows]) + "\n")
    code, out, err = run("fit", path, tmp_path / "m")
    assert code == 0 and pairs(out)["rows"] == "31"
    assert "warning: " in err and "say --header if it holds names" in err
    code, out, err = run("fit", path, tmp_path / "m", "--header")
    assert (code, err) == (0, "") and pairs(out)["rows"] == "30"
    code, out, err = run("predict", tmp_path / "m", path)  # the names are known
    assert code == 0 and len(column(out)) == 30 and err.startswith("error: ")


# ------------------------------------------------- columns beside features and label


@pytest.fixture
def weighted(tmp_path, rng):
    """Rows with names and weights 0, 1 and 2, and the same rows as often as that."""
    X, w = rng.normal(size=(60, 2)).round(3), rng.integers(0, 3, 60)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    paths = tmp_path / "w.csv", tmp_path / "copies.csv"
    rows = [f"r{i},{a},{b},{w[i]},{y[i]}" for i, (a, b) in enumerate(X.tolist())]
    paths[0].write_text("\n".join(["name,a,b,w,k", *rows]) + "\n")
    rows = np.repeat([f"{a},{b},{k}" for (a, b), k in zip(X.tolist(), y)], w).tolist()
    paths[1].write_text("\n".join(["a,b,k", *rows]) + "\n")
    return *paths, X, y, w


def test_weights_count_rows_as_often(run, weighted, tmp_path):
    path, copies, *_ = weighted
    common = "--tol", "1e-9", "--standardize"
    beside = "--weights", "w", "--id", "name"
    code, out, _ = run("fit", path, tmp_path / "m", *beside, *common)
    assert code == 0 and pairs(out)["features"] == "2"
    assert run("fit", copies, tmp_path / "c", *common)[0] == 0
    found = [run("predict", tmp_path / m, copies, "--decision")[1] for m in "mc"]
    first, second = (np.array(column(out, "decision"), float) for out in found)
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_weights_reach_folds_and_probabilities(run, weighted, tmp_path):
    path, _, *known = weighted
    beside = "--weights", "w", "--ignore", "name"
    Z, (X, y, w) = known[0], (part[known[2] > 0] for part in known)
    _, out, _ = run("fit", path, "-v", 4, *beside)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    predicted = cross_val_predict(
        MEDClassifier(), X, y, cv=folds, params={"sample_weight": w.astype(float)}
    )
    said = pairs(out)
    assert said["cross-validation error"].startswith(
        f"{np.sum(predicted != y)} of {len(y)}"
    )
    for label in ("yes", "no"):
        right, n = np.sum((predicted == y) & (y == label)), np.sum(y == label)
        assert said[f"recall of {label}"] == f"{right} of {n} ({100 * right / n:.2f} %)"
    model = tmp_path / "m"
    assert run("fit", path, model, *beside, "--probability", "-q") == (0, "", "")
    expected = CalibratedClassifierCV(
        *(MEDClassifier(),),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        ensemble=False,
    ).fit(X, y, sample_weight=w.astype(float))
    _, out, _ = run("predict", model, path, "--proba")
    np.testing.assert_allclose(values_beside(out), expected.predict_proba(Z), atol=1e-9)


def test_identifiers_stand_before_predictions(run, weighted, tmp_path):
    path, copies, *_ = weighted
    options = "--id", "name", "--weights", "w", "-q"
    assert run("fit", path, tmp_path / "m", *options)[0] == 0
    code, out, _ = run("predict", tmp_path / "m", path)
    rows = read_rows(out)
    assert code == 0 and rows[0] == ["name", "prediction"]
    assert [row[0] for row in rows[1:]] == [f"r{i}" for i in range(60)]
    assert read_rows(run("predict", tmp_path / "m", copies)[1])[0] == ["prediction"]
    out = run("predict", tmp_path / "m", path, "--decision", "--id", "w")[1]
    assert read_rows(out)[0] == ["w", "prediction", "decision"]
    bare = tmp_path / "bare.csv"  # the same columns without a header
    bare.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    options = "--id", 0, "--weights", 3, "-q"
    assert run("fit", bare, tmp_path / "b", *options)[0] == 0
    code, out, err = run("predict", tmp_path / "b", bare)
    assert code == 0 and read_rows(out)[1][0] == "r0" and "error: " in err
    few = tmp_path / "few.csv"  # features only
    few.write_text("0.5,1\n-0.5,2\n")
    code, out, _ = run("predict", tmp_path / "b", few)
    assert code == 0 and len(column(out)) == 2


@pytest.mark.parametrize(
    "options, words",
    [
        (["--weights", "a"], "line 2, column 'a': the weight '-1' is not a finite"),
        (["--weights", "z"], "has no column 'z'"),
        (["--weights", "zero"], "--weights zero: all weights are 0"),
        (["--id", "k"], "column 'k' is the label"),
        (["--id", "b", "--ignore", "a,zero"], "no columns but those"),
    ],
)
def test_wrong_columns_are_one_sentence(run, tmp_path, options, words):
    path = tmp_path / "t.csv"
    path.write_text("a,b,zero,k\n-1,2,0,x\n1,3,0,y\n")
    code, _, err = run("fit", path, tmp_path / "m", "--label", "k", *options)
    assert code == 2 and words in err
    assert_one_sentence(err, "fit")
    svm = tmp_path / "t.svm"
    svm.write_text("1 1:1\n-1 1:2\n")
    for option, words in (
        ("--ignore", "'1' cannot be left out"),
        ("--id", "'1' cannot be taken for names of rows"),
        ("--weights", "'1' cannot be taken for weights of rows"),
    ):
        assert words in run("fit", svm, tmp_path / "m", option, "1")[2]


# -------------------------------------------------------------- folds and probabilities


def test_cross_validation_equals_scikit_learn(run, points, tmp_path):
    path, X, y = points
    code, out, _ = run("fit", path, "-v", 4, "--standardize", "--seed", 3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    machine = make_pipeline(StandardScaler(), MEDClassifier())
    wrong = int(np.sum(cross_val_predict(machine, X, y, cv=folds) != y))
    assert code == 0
    assert pairs(out)["cross-validation error"].startswith(f"{wrong} of 60 (")
    assert pairs(out)["cross-validation error"].endswith("4 folds")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["points.txt"]
    code, out, _ = run("fit", path, tmp_path / "m", "--cv", 4)
    assert code == 0 and "cross-validation error" in out and (tmp_path / "m").exists()


def test_folds_learn_their_own_columns(run, cars):
    code, out, err = run("fit", cars, "-v", 3, "--impute", "--ignore", "doors")
    assert (code, err) == (0, "")
    assert "of 90" in pairs(out)["cross-validation error"]


@pytest.mark.parametrize(
    "options, words",
    [
        (["-v", 1], "two or more folds"),
        (["-v", 61], "60 rows only"),
        (["-v", 3, "--estimator", "outliers"], "needs labels, and outliers takes none"),
        (["--probability", "-v", 3, "--estimator", "regressor"], "is for classifiers"),
        ([], "name the MODEL file"),
    ],
)
def test_wrong_folds_are_one_sentence(run, points, options, words):
    code, _, err = run("fit", points[0], *options)
    assert code == 2 and words in err
    assert_one_sentence(err, "fit")


def test_machines_on_rows_without_labels_are_not_calibrated(run, points, tmp_path):
    model = tmp_path / "m"
    options = [points[0], model, "--estimator", "partial"]
    code, _, err = run("fit", *options, "--probability")
    assert code == 2 and "train another estimator" in err and not model.exists()
    assert_one_sentence(err, "fit")
    assert run("fit", *options, "--margin", "logistic")[0] == 0
    code, out, _ = run("predict", model, points[0], "--probability")
    assert code == 0 and out.startswith("prediction,proba_0,proba_1")


def test_calibrated_probabilities_equal_scikit_learn(run, points, tmp_path):
    path, X, y = points
    model = tmp_path / "m"
    code, out, _ = run("fit", path, model, "--probability", "--kernel", "linear")
    assert code == 0 and "support" in pairs(out)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = CalibratedClassifierCV(MEDClassifier("linear"), cv=folds, ensemble=False)
    expected.fit(X, y)
    code, out, _ = run("predict", model, path, "--probability")
    assert code == 0
    found = values_beside(out, "proba_0", "proba_1")
    np.testing.assert_array_equal(found, expected.predict_proba(X))
    _, out, _ = run("predict", model, path, "--decision")
    machine = MEDClassifier("linear").fit(X, y)
    np.testing.assert_array_equal(
        np.array(column(out, "decision"), float), machine.decision_function(X)
    )
    code, out, _ = run("info", model)
    assert code == 0 and pairs(out)["machine"] == "MEDClassifier"
    assert pairs(out)["kernel"] == "'linear'"


# -------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("text", ["balanced", "0:5,1:1"])
def test_probabilities_follow_class_weights(run, tmp_path, rng, text):
    y = (rng.random(300) < 0.85).astype(int)
    X = rng.normal(size=(300, 2)).round(4) + y[:, None]
    path = write_csv(tmp_path / "d.csv", np.column_stack([X, y]), names=["a", "b", "y"])
    model = tmp_path / "m"
    options = "--class-weight", text, "--probability", "--kernel", "linear"
    code, _, err = run("fit", path, model, *options, "-v", 3)
    assert (code, err) == (0, "")
    weights = {0: 5.0, 1: 1.0} if text != "balanced" else text
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = CalibratedClassifierCV(MEDClassifier("linear"), cv=folds, ensemble=False)
    expected.fit(X, y, sample_weight=compute_sample_weight(weights, y))
    _, out, _ = run("predict", model, path, "--probability")
    found = values_beside(out)
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=1e-6)
    assert (found[:, 0] > 0.5).sum() > 1.5 * (y == 0).sum()  # the rare class is sought
    assert "class weights" in pairs(run("info", model)[1])


def test_class_weights(run, points, tmp_path):
    path, X, y = points
    for text, weights in (("0:3", {0: 3.0}), ("balanced", "balanced")):
        run("fit", path, tmp_path / "m", "--class-weight", text)
        model = load(tmp_path / "m")
        expected = MEDClassifier(class_weight=weights).fit(X, y)
        assert model.class_weight == weights
        np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
    for text in ("2:3", "0:x", "0"):
        code, _, err = run("fit", path, tmp_path / "m", "--class-weight", text)
        assert code == 2 and "labels 0, 1" in err
        assert_one_sentence(err, "fit")


def test_any_parameter_can_be_set(run, points, tmp_path):
    path = points[0]
    options = ["--set", "threshold=0.3", "--set", "max_features=1"]
    run("fit", path, tmp_path / "m", "--estimator", "selector", *options)
    params = load(tmp_path / "m").get_params()
    assert params["threshold"] == 0.3 and params["max_features"] == 1
    code, _, err = run("fit", path, tmp_path / "m", "--set", "speed=9")
    assert code == 2 and "--set speed does not apply to the classifier" in err
    code, _, err = run("fit", path, tmp_path / "m", "--set", "speed")
    assert code == 2 and "not of the form NAME=VALUE" in err


OWN = ("seed", "alphabet")  # defaults of the command, not of an estimator


def defaults_of(option, catalog):
    """Defaults of an option's parameter, by name of the estimator."""
    found = {}
    for name, spec in catalog.items():
        known = parameters(spec)
        for param in known.keys() & {*option.params}:
            found[name] = known[param]
    return found


def test_the_defaults_of_the_help_are_those_of_the_estimators():
    told = 0
    for dest, option in OPTIONS.items():
        if not option.params or not option.default or dest in OWN:
            continue
        for catalog in (TABLES, SEQUENCES):
            for name, default in defaults_of(option, catalog).items():
                if dest in catalog[name].foreign or default is inspect.Parameter.empty:
                    continue
                both = name in TABLES and name in SEQUENCES and catalog is SEQUENCES
                if both or (name not in option.default and "" not in option.default):
                    continue
                expected = option.default.get(name, option.default.get(""))
                assert default == expected, (dest, name)
                told += 1
    assert told > 50


@pytest.mark.parametrize("name", [*TABLES, "motif"])
def test_every_estimator_is_listed_in_the_help(run, name):
    assert name in run("fit", "--help")[1]


# --------------------------------------------------------- estimators without classes


def test_a_detector_prints_shares(run, points, tmp_path):
    X = points[1]
    bare = tmp_path / "bare.txt"
    np.savetxt(bare, X)
    options = ["--estimator", "outliers", "--contamination", "0.1"]
    code, out, _ = run("fit", bare, tmp_path / "m", *options)
    assert code == 0 and "outliers 6 of 60 (10.00 %)" in pairs(out)["predicted"]
    code, out, err = run("predict", tmp_path / "m", bare)
    assert code == 0 and column(out).count("-1") == 6
    assert err == (
        "predicted: inliers 54 of 60 (90.00 %), outliers 6 of 60 (10.00 %)\n"
    )
    truth = tmp_path / "truth.csv"
    write_csv(truth, X, np.ones(60, int), ["a", "b"], label="k")
    run("fit", truth, tmp_path / "m", *options, "--label", "k")
    _, _, err = run("predict", tmp_path / "m", truth)
    assert "error: 6 of 60" in err
    _, out, err = run("predict", tmp_path / "m", truth, "--score", "-q")
    assert len(column(out, "score")) == 60 and err == ""


def test_a_mixture_counts_its_components(run, tmp_path, rng):
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(10, 2)) + 9])
    np.savetxt(tmp_path / "x.txt", X)
    options = ["--estimator", "mixture", "--components", "2", "--starts", "20"]
    options += ["--selection", "likelihood"]
    code, out, _ = run("fit", tmp_path / "x.txt", tmp_path / "m", *options)
    assert code == 0 and "10 of 40" in out and "30 of 40" in out
    _, out, _ = run("predict", tmp_path / "m", tmp_path / "x.txt", "--proba")
    assert read_rows(out)[0] == ["prediction", "proba_0", "proba_1"]


def test_a_density_of_binary_columns_writes_scores(run, tmp_path, rng):
    X = (rng.random((60, 3)) < 0.4).astype(int)
    np.savetxt(tmp_path / "x.txt", X, fmt="%d")
    options = ["--estimator", "boltzmann", "--hidden", "1", "--starts", "2"]
    code, out, _ = run("fit", tmp_path / "x.txt", tmp_path / "m", *options)
    assert code in (0, 1) and "mean log-likelihood" in out
    _, out, _ = run("predict", tmp_path / "m", tmp_path / "x.txt")
    scores = np.array(column(out, "score"), dtype=float)
    np.testing.assert_allclose(scores, load(tmp_path / "m").score_samples(X))


def test_rows_without_labels_are_in_the_folds(run, tmp_path, rng):
    X = rng.normal(size=(60, 2)).round(3)
    y = np.where(X[:, 0] > 0, "yes", "no")
    y[::2] = "?"
    path = tmp_path / "x.csv"
    rows = [f"{a},{b},{k}" for (a, b), k in zip(X.tolist(), y)]
    path.write_text("\n".join(["a,b,k", *rows]) + "\n")
    code, out, _ = run("fit", path, "-v", 3, "--estimator", "partial", "-C", 5)
    said = pairs(out)
    assert code == 0 and " of 30 (" in said["cross-validation error"]
    assert int(said["cross-validation error"].split()[0]) < 10
    assert {"recall of yes", "recall of no"} <= {*said}


@pytest.mark.parametrize("labels", [("yes", "no"), (1, 0), (1, -1)])
def test_labels_may_be_missing(run, tmp_path, rng, labels):
    x = rng.normal(size=50).round(3)
    known = rng.random(50) < 0.4
    y = np.where(x > 0, *map(str, labels))
    path = tmp_path / "x.csv"
    rows = [f"{a},{a**2},{k if here else '?'}" for a, k, here in zip(x, y, known)]
    path.write_text("\n".join(["a,b,k", *rows]) + "\n")
    options = ["--estimator", "partial", "-C", "5"]
    code, out, _ = run("fit", path, tmp_path / "m", *options)
    assert code == 0
    assert pairs(out)["without a label"] == f"{50 - known.sum()} rows"
    code, out, err = run("predict", tmp_path / "m", path)
    wrong = int(np.sum(np.array(column(out))[known] != y[known]))
    assert code == 0 and err.startswith(f"error: {wrong} of {known.sum()} ")
    assert np.mean(np.array(column(out)) == y) > 0.7


@pytest.mark.parametrize(
    "options, names",
    [
        (["--ignore", "doors,color"], ["weight"]),
        (["--ignore", "doors"], ["weight", *map("color_{}".format, COLORS)]),
        (
            ["--ignore", "doors", "--probability"],
            ["weight", *map("color_{}".format, COLORS)],
        ),
        (["--estimator", "tree", "--ignore", "weight"], ["color", "doors"]),
        (
            ["--ignore", "weight", "--estimator", "partial", "--text", "doors"],
            [*map("color_{}".format, COLORS), *map("doors_{}".format, DOORS)],
        ),
    ],
)
def test_models_keep_the_names_of_their_features(run, cars, tmp_path, options, names):
    code, *_ = run("fit", cars, tmp_path / "m", "--impute", *options)
    assert code == 0
    model, _ = load(tmp_path / "m", return_extra=True)
    assert model.feature_names_in_.tolist() == names
    if "tree" not in options:
        rows = pd.DataFrame(np.zeros((3, len(names))), columns=names)
        assert len(model.predict(rows)) == 3
        if len(names) > 1:
            with pytest.raises(ValueError, match="same order"):
                model.predict(rows[names[::-1]])
    code, _, err = run("predict", tmp_path / "m", cars)
    assert code == 0 and err.startswith("error: ") and err.count("\n") == 1


# ------------------------------------------------------------------------------ reports


def test_info_shows_what_was_learnt(run, points, tmp_path):
    path = points[0]
    model = tmp_path / "m"
    run("fit", path, model, "--estimator", "selector")
    code, out, _ = run("info", model)
    proba = load(model).inclusion_proba_
    first = f"{proba.argmax()} ({proba.max():.2f}), "
    assert code == 0 and pairs(out)["likely columns"].startswith(first)
    options = "--estimator", "selector", "--set", "threshold=0.999", "--standardize"
    _, _, err = run("fit", path, model, *options, "-C", "0.01")
    assert "no feature passes" in err and "standardise" not in err
    assert "none; the likeliest is" in pairs(run("info", model)[1])["likely columns"]
    texts = [list("abcabcab"), list("xyzxyzxy")] * 3
    save(TrigramTopicModel(2, 1, random_state=0).fit(texts), model)
    code, out, _ = run("info", model)
    found = [{*pairs(out)[f"topic {t}"].split()[:3]} for t in range(2)]
    assert {*"abc"} in found and {*"xyz"} in found and "features" not in pairs(out)
    # arrays that do not agree are for `load` to refuse
    broken = load(model)
    broken.candidate_weights_ = {}
    save(broken, model)
    code, out, _ = run("info", model)
    assert code == 0 and "topic 0" not in out


def test_info_as_json(run, points, tmp_path):
    run("fit", points[0], tmp_path / "m", "--margin", "logistic")
    code, out, err = run("info", "--json", tmp_path / "m")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["class"] == "MEDClassifier"
    assert told["params"]["margin"] == "logistic"
    assert told["fitted"]["classes_"] == [0, 1]
    assert told["fitted"]["support_"]["dtype"] == "int64"


def test_reports_as_json(run, cars, tmp_path):
    model, out_path = tmp_path / "m", tmp_path / "p.csv"
    options = "--label", "class", "--ignore", "doors", "--impute", "-v", 3, "--json"
    code, out, err = run("fit", cars, model, *options)
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["rows"] == 90 and told["converged"] is True
    assert sum(told["classes"].values()) == 90 and told["written"] == str(model)
    assert told["columns_of_text"]["color"] == 3 and told["duality_gap"] >= 0
    assert 0 <= told["cross_validation_error"] <= 1
    assert 0 <= told["leave_one_out_bound"] <= 1
    assert {*told["recall"]} == {"yes", "no"}
    code, out, err = run("predict", model, cars, "--json", "-o", out_path)
    assert (code, err) == (0, "")
    expected = {"rows": 90, "error": told["training_error"], "written": str(out_path)}
    expected["unseen_categories"] = {}
    assert json.loads(out) == expected
    code, _, err = run("predict", model, cars, "--json")
    assert code == 2 and "write them to a file by -o" in err
    assert_one_sentence(err, "predict")


def test_numbers_in_json_are_numbers():
    told = json.loads(reports.as_json({"a": np.nan, "b": -np.inf, "c": 0.5}))
    assert told == {"a": None, "b": "-inf", "c": 0.5}


def test_quiet_commands_print_nothing(run, points, tmp_path):
    model = tmp_path / "m"
    assert run("fit", points[0], model, "-q") == (0, "", "")
    assert run("info", model, "-q") == (0, "", "")
    assert run("predict", model, points[0], "-q", "-o", tmp_path / "o") == (0, "", "")
    code, _, err = run("fit", tmp_path / "none", model, "-q")
    assert code == 2 and err  # failures are told


@pytest.mark.parametrize("command", [[], ["demo"], ["fit"], ["predict"], ["info"]])
def test_help_ends_with_examples(run, command):
    out = run(*command, "--help")[1]
    lines = out[out.index("\nexamples:\n") :].split("\n")[2:]
    assert lines and all("maxent" in line for line in lines if line)


@pytest.fixture
def files_of_examples(tmp_path, monkeypatch, rng):
    """The files that the examples of --help name, in the current folder."""
    monkeypatch.chdir(tmp_path)
    X, sign = rng.normal(size=(40, 2)), np.tile([-1, 1], 20)
    X[:, 0] += sign
    said, sex = np.where(sign > 0, "yes", "no"), np.where(sign > 0, "F", "M")
    train = np.column_stack([sex, X.round(3), said])
    for name in ("train.csv", "test.csv"):
        write_text(name, ["sex,a,b,kind", *map(",".join, train)])
    rows = [
        f"p{k},{1 + k % 2},{a:.3f},{y}" for k, (a, y) in enumerate(zip(X[:, 0], said))
    ]
    write_text("patients.csv", ["patient,w,a,ill", *rows])
    write_text("cars.csv", ["door,color,class", *[f"{y},c{y},{y}" for y in said]])
    write_text("points.csv", ["a,b", *[f"{a:.3f},{b:.3f}" for a, b in X]])
    partly = [
        f"{a:.3f},{y if k < 20 else ''}" for k, (a, y) in enumerate(zip(X[:, 0], said))
    ]
    write_text("some-labels.csv", ["a,y", *partly])
    svm = "".join(f"{y} 1:{a:.3f}\n" for y, a in zip(sign, X[:, 0]))
    with gzip.open("huge.svm.gz", "wt") as stream:
        stream.write(svm)
    words = ["ACGTTGCA" * 3 if y == "yes" else "AACCAACC" * 3 for y in said]
    for name in ("genes.fasta", "sites.fasta", "bound.fa", "background.fa"):
        write_text(
            name, [f">s{k} {y}\n{w}" for k, (y, w) in enumerate(zip(said, words))]
        )
    return tmp_path


def write_text(name, lines):
    with open(name, "w") as stream:
        stream.write("\n".join(lines) + "\n")


def test_the_examples_of_fit_run(run, files_of_examples, monkeypatch):
    for line in usage._EXAMPLES["fit"].splitlines():
        before, _, line = line.split("(")[0].rpartition("| maxent ")
        words = line.removeprefix("maxent ").split()
        if before:
            with gzip.open(before.split()[1]) as stream:
                text = io.TextIOWrapper(io.BytesIO(stream.read()))
            monkeypatch.setattr("sys.stdin", text)
        code, _, err = run(*words)
        assert code == 0, f"{line}: {err}"


@pytest.mark.parametrize(
    "command", ["", "demo", "predict", "evaluate", "compare", "info"]
)
def test_the_examples_of_help_can_be_read(command):
    for line in usage._EXAMPLES[command].splitlines():
        if "--print-completion" not in line:
            words = line.rpartition("maxent ")[2].split()
            assert usage.make_parser().parse_args(words).command == words[0]


def test_the_label_is_hinted_at(run, crabs, tmp_path):
    code, _, err = run("fit", crabs, tmp_path / "m")  # the last column are real numbers
    assert code == 2 and "such as --label sex" in err
    assert_one_sentence(err, "fit")
    path = tmp_path / "x.csv"
    path.write_text("kind,a,k\nx,1,0\n3,2,1\n")
    code, _, err = run("fit", path, tmp_path / "m")
    assert code == 2 and "if it holds the labels, say --label kind" in err
    assert_one_sentence(err, "fit")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(run, shell):
    pytest.importorskip("shtab")
    code, out, err = run("--print-completion", shell)
    assert (code, err) == (0, "") and "predict" in out


def test_completion_needs_a_library(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, out, err = run("--print-completion", "bash")
    assert (code, out) == (2, "") and 'pip install "maxent[completion]"' in err


def free_text(tmp_path, rng, cell):
    lines = ["a;note;label"]
    for i, x in enumerate(rng.normal(size=40).tolist()):
        lines.append(f"{x};{cell.format(x).replace('.', ',')};{'yn'[i % 2]}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def test_a_linear_machine_on_missing_labels_keeps_no_rows(run, tmp_path, rng):
    X = rng.normal(size=(60, 2)).round(3)
    y = np.where(rng.random(60) < 0.5, "", np.where(X[:, 0] > 0, "a", "b"))
    lines = [f"{a},{b},{k}" for (a, b), k in zip(X.tolist(), y)]
    path, model = tmp_path / "d.csv", tmp_path / "m"
    path.write_text("\n".join(["u,v,class", *lines]) + "\n")
    options = ["--estimator", "partial", "--kernel", "linear"]
    assert run("fit", path, model, *options)[0] == 0
    assert run("predict", model, path)[0] == run("info", model)[0] == 0
    assert "support_vectors_" not in vars(load(model, return_extra=True)[0].estimator_)


def test_a_column_of_free_text_is_refused_unless_it_is_meant(run, tmp_path, rng):
    path = free_text(tmp_path, rng, "word {}")
    code, _, err = run("fit", path, tmp_path / "m", "-q")
    assert code == 2 and not (tmp_path / "m").exists()
    assert_one_sentence(err, "fit")
    assert "column 'note' holds 40 different texts in 40 cells, such as 'word" in err
    for remedy in ("--ignore", "--id"):
        assert f"{remedy} note" in err
        assert run("fit", path, tmp_path / "m", "-q", remedy, "note") == (0, "", "")
    assert "--text note takes each text for a category" in err
    code, _, err = run("fit", path, tmp_path / "m", "-q", "--text", "note")
    assert code == 0 and "note' holds 40 different texts in 40 cells, each" in err


@pytest.mark.parametrize("cell, code", [("{:.3f}", 2), ("{:.0f}.5", 0)])
def test_decimal_commas_are_told_and_read(run, tmp_path, rng, cell, code):
    path, model = free_text(tmp_path, rng, cell), tmp_path / "m"
    found, _, err = run("fit", path, model)
    assert found == code and "column 'note' holds numbers with decimal commas" in err
    assert "--decimal , reads them; --text note takes" in err
    assert_one_sentence(err, "fit")
    found, out, err = run("fit", path, model, "--text", "note")
    assert found == 0 and "decimal" not in err and "columns of text" in out
    found, out, err = run("fit", path, model, "--decimal", ",")
    assert (found, err) == (0, "") and "columns of text" not in out
    code, _, err = run("predict", model, path)
    assert code == 2 and "; --decimal , reads decimal commas" in err
    assert run("predict", model, path, "--decimal", ",")[0] == 0


def test_commas_between_thousands_are_told(run, tmp_path):
    lines = [f'{i},"{i % 5 + 1},750",{"yn"[i % 2]}' for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,k", *lines]) + "\n")
    code, _, err = run("fit", tmp_path / "t.csv", tmp_path / "m")
    assert code == 0 and "column 'b' holds numbers with commas between groups" in err


def test_labels_with_leading_zeros_are_told_apart(run, tmp_path, rng):
    rows = [f"{x},{i},{k}" for i, k in enumerate(["001", "01", "2"]) for x in range(9)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    _, out, _ = run("fit", tmp_path / "t.csv", tmp_path / "m", "--kernel", "linear")
    assert pairs(out)["classes"] == "001 (9), 01 (9), 2 (9)"
    _, out, err = run("predict", tmp_path / "m", tmp_path / "t.csv")
    assert set(column(out)) == {"001", "01", "2"} and "error: 0 of 27" in err
    code, out, _ = run(
        *("fit", tmp_path / "t.csv", tmp_path / "r", "--estimator", "regressor")
    )
    assert code == 0


def test_a_regressor_no_better_than_the_mean_says_in_which_units(run, tmp_path, rng):
    X = rng.normal(size=(60, 2))
    y = 1e5 * X[:, 0] + 1e3 * rng.normal(size=60)
    path = write_csv(tmp_path / "t.csv", np.c_[X, y])
    common = "fit", path, tmp_path / "m", "--estimator", "regressor", "-q"
    _, _, err = run(*common)
    assert "no better than the mean" in err
    _, _, err = run(*common, *err.split("try ")[1].split())
    assert err == ""


@pytest.mark.parametrize(
    "values, options, said, told",
    [
        ([0, 1, 2], "regressor", "numbers from 0 to 2, 3 different", ""),
        ([4], "regressor", "numbers from 4 to 4, 1 different", "labels are all 4, and"),
        ([0, 1, 2], "classifier", "classes", ""),
        (range(25), "classifier", "classes", "quantities, train --estimator regressor"),
        (range(1, 54), "logistic", "classes", ""),  # the numbers of classes
        (range(2, 110, 2), "logistic", "classes", "54 different numbers from 2 to 108"),
    ],
)
def test_numbers_that_are_labels(run, tmp_path, rng, values, options, said, told):
    n = 110 if len(values) > 50 else 40
    y = np.resize(list(values), n)
    path = write_csv(tmp_path / "t.csv", np.c_[rng.normal(size=n) + y, y])
    code, out, err = run("fit", path, tmp_path / "m", "--estimator", options)
    assert code == 0 and said in out and (told in err if told else not err)


def test_labels_that_all_differ_are_no_classes(run, tmp_path):
    (tmp_path / "t.csv").write_text("".join(f"{i % 7},{i}\n" for i in range(60)))
    code, _, err = run("fit", tmp_path / "t.csv", tmp_path / "m")
    assert code == 2 and "all 60 labels differ" in err and "regressor" in err


def test_calibration_shuffles_the_rows_of_a_sorted_file(run, tmp_path, rng):
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    order = np.argsort(X[:, 0])
    path = tmp_path / "t.csv"
    path.write_text("\n".join(f"{a},{b},{k}" for (a, b), k in zip(X[order], y[order])))
    errors = []
    for more in ((), ("--probability",)):
        _, out, _ = run("fit", path, tmp_path / "m", "--kernel", "linear", *more)
        errors.append(int(pairs(out)["training error"].split()[0]))
    assert errors[1] <= errors[0] + 6


def test_columns_of_few_categories_are_not_warned_about(run, cars, tmp_path):
    options = "--label", "class", "--ignore", "doors", "--impute", "-q"
    assert run("fit", cars, tmp_path / "m", *options) == (0, "", "")


def test_labels_that_the_model_does_not_know_are_counted(run, points, tmp_path):
    path, X, _ = points
    run("fit", path, tmp_path / "m")
    rows = [f"{a} {b} {k % 3}" for k, (a, b) in enumerate(X.tolist())]
    (tmp_path / "other.txt").write_text("\n".join(rows) + "\n")
    _, _, err = run("predict", tmp_path / "m", tmp_path / "other.txt")
    assert "; 20 with labels that the model does not know" in err


@pytest.mark.parametrize(
    "assigned, param, value",
    [
        *((f"fit_intercept={word}", "fit_intercept", False) for word in ("False", "0")),
        *((f"fit_intercept={w}", "fit_intercept", True) for w in ("True", "true")),
        ("C=inf", "C", float("inf")),
        ("C=Infinity", "C", float("inf")),
        ("class_weight=None", "class_weight", None),
    ],
)
def test_words_of_python_are_values_of_set(run, tmp_path, assigned, param, value):
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("a,y\n1,u\n2,v\n3,u\n4,v\n")
    options = "--estimator", "logistic", "-q", "--set", assigned
    assert run("fit", path, model, *options) == (0, "", "")
    assert getattr(load(model), param) == value


@pytest.mark.parametrize("word", ["maybe", "FALSE", "no", "null", "0.5", "[true]"])
def test_switches_are_true_or_false(run, tmp_path, word):
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("a,y\n1,u\n2,v\n3,u\n4,v\n")
    options = "--estimator", "logistic", "--set", f"fit_intercept={word}"
    code, out, err = run("fit", path, model, *options)
    assert (code, out, model.exists()) == (2, "", False)
    assert_one_sentence(err, "fit")
    assert "--set fit_intercept" in err and "must be True or False" in err


def test_large_whole_numbers_are_classes(run, tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m"
    for first in (2**53, 2**63 - 2, 10**30):
        labels = [str(first + i % 2) for i in range(6)]
        path.write_text(
            "\n".join(["a,y", *(f"{i % 2},{y}" for i, y in enumerate(labels))])
        )
        assert run("fit", path, model, "-q") == (0, "", "")
        assert column(run("predict", model, path)[1], "prediction") == labels
    path.write_text("a,y\n1,1e30\n2,2e30\n3,1e30\n")
    code, _, err = run("fit", path, model)
    assert code == 2 and "'y' are numbers too large to be told apart" in err


@pytest.mark.parametrize(
    "text, options, remedy",
    [
        ("a b,k\nx,u\n2,v\n3,u\n", [], "--text 'a b' takes the column for text"),
        ("a b,k\nx,u\n2,v\n3,u\n", [], "--ignore 'a b' leaves it out"),
        ("a b,k\nx,u\n2,v\n3,u\n", [], "say --label 'a b'"),
        ("a b,k\nx,1.5\ny,2.5\nx,3.5\n", ["--impute"], "such as --label 'a b'"),
        ("it's,k\nx,u\n2,v\n3,u\n", [], """--ignore 'it'"'"'s' leaves"""),
    ],
)
def test_names_in_remedies_are_quoted_for_the_shell(
    run, tmp_path, text, options, remedy
):
    path = tmp_path / "t.csv"
    path.write_text(text)
    code, _, err = run("fit", path, tmp_path / "m", *options)
    assert code == 2 and remedy in err


def test_classes_with_line_breaks_stay_on_one_line(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,k\n1,"u\nx"\n2,v\n3,"u\nx"\n4,v\n5,"u\nx"\n6,v\n')
    code, out, _ = run("fit", path, tmp_path / "m", "-v", 2)
    said = pairs(out)
    assert code == 0 and said["classes"] == "u\\nx (3), v (3)"
    assert "recall of u\\nx" in said
    _, out, _ = run("info", tmp_path / "m")
    assert pairs(out)["classes"] == "u\\nx, v"
    _, out, _ = run("fit", path, tmp_path / "m", "--json")
    assert json.loads(out)["classes"] == {"u\nx": 3, "v": 3}


def test_a_class_has_one_weight(run, crabs, tmp_path):
    weights = "male:2,female:1,male:3"
    options = "--label", "sex", "--class-weight", weights
    code, _, err = run("fit", crabs, tmp_path / "m", *options)
    assert code == 2 and f"--class-weight {weights}: male has two weights" in err


def test_an_interrupt_behind_the_model_file_says_that_it_is_there(
    run, crabs, tmp_path, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    model = tmp_path / "m"
    with monkeypatch.context() as patch:
        patch.setattr("maxent._commands.training.fit_lines", interrupted)
        code, out, err = run("fit", crabs, model, "--label", "sex")
    said = f"interrupted; {model} is written all the same\n"
    assert (code, out, err) == (130, "", f"maxent fit: {said}")
    assert run("info", model, "-q")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr("maxent._commands.training._write_model", interrupted)
        _, _, err = run("fit", crabs, tmp_path / "other", "--label", "sex")
    assert err == "maxent fit: interrupted\n"
    out = tmp_path / "p.csv"
    with monkeypatch.context() as patch:
        patch.setattr("maxent._commands.predictions.report", interrupted)
        patch.setattr("maxent._commands.predictions.verdict", interrupted)
        _, _, err = run("predict", model, crabs, "-o", out)
    assert err == f"maxent predict: interrupted; {out} is written all the same\n"
