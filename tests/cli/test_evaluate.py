"""``maxent evaluate`` against scikit-learn, and its pictures and refusals."""

import json
import re

import numpy as np
import pytest
from command_line import assert_one_sentence, loaded, pairs, write_csv
from sklearn import metrics

MATPLOTLIB = pytest.importorskip("matplotlib") is not None


@pytest.fixture
def classes(tmp_path, rng):
    """A file of three classes that overlap, and its rows."""
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 2)).round(3) + 2.0 * np.eye(3)[y][:, :2]
    names = np.array(["a", "b, c", "ö"])[y]
    return write_csv(tmp_path / "x.csv", X, names, ["u", "v"], "k"), X, names


@pytest.fixture
def normal(tmp_path, rng):
    """A file of rows of which some are marked as anomalies."""
    odd = rng.random(200) < 0.1
    X = rng.normal(size=(200, 3)) + 3.0 * odd[:, None]
    names = ["a", "b", "c"]
    return write_csv(tmp_path / "n.csv", X, odd.astype(int), names, "odd"), X, odd


def test_classes_are_judged_as_by_scikit_learn(run, classes, tmp_path):
    path, X, y = classes
    model = tmp_path / "m"
    assert run("fit", path, model, "--label", "k", "--estimator", "logistic")[0] == 0
    code, out, err = run("evaluate", model, path, "--json")
    assert (code, err) == (0, "")
    found, machine = json.loads(out), loaded(model)
    predicted, proba = machine.predict(X), machine.predict_proba(X)
    assert found["accuracy"]["count"] == int(np.sum(predicted == y))
    assert found["log_loss"]["value"] == pytest.approx(metrics.log_loss(y, proba))
    counts = [list(row.values()) for row in found["confusion"].values()]
    assert counts == metrics.confusion_matrix(y, predicted).tolist()
    area = metrics.roc_auc_score(y, proba, multi_class="ovr")
    scores = machine.decision_function(X)
    each = [
        metrics.roc_auc_score(y == c, scores[:, k])
        for k, c in enumerate(machine.classes_)
    ]
    assert found["ROC_AUC,_mean_of_classes"]["value"] == pytest.approx(np.mean(each))
    assert abs(area - np.mean(each)) < 0.05
    assert sum(b["rows"] for b in found["calibration"]) == 150
    code, out, _ = run("evaluate", model, path)
    assert "true \\ predicted" in out and "DeLong" in out


@pytest.mark.parametrize("positive", [None, "no", "yes"])
def test_the_positive_class_may_be_chosen(run, tmp_path, rng, positive):
    y = rng.random(120) < 0.5
    X = rng.normal(size=(120, 2)) + y[:, None]
    names = np.where(y, "yes", "no")
    path = write_csv(tmp_path / "x.csv", X, names, ["u", "v"], "k")
    run("fit", path, tmp_path / "m", "--label", "k", "--margin", "logistic", "-q")
    options = () if positive is None else ("--positive", positive)
    found = json.loads(run("evaluate", tmp_path / "m", path, "--json", *options)[1])
    score = loaded(tmp_path / "m").decision_function(X)
    area = metrics.roc_auc_score(y, score)  # of both classes alike
    assert found["ROC_AUC"]["value"] == pytest.approx(area)
    observed = sum(b["observed"]["count"] for b in found["calibration"])
    assert observed == np.sum(names == (positive or "yes"))
    proba = loaded(tmp_path / "m").predict_proba(X)[:, 1]
    brier = metrics.brier_score_loss(y, proba)
    assert found["Brier_score"]["value"] == pytest.approx(brier)


def test_labels_that_are_strange_or_missing_are_left_out(run, classes, tmp_path):
    path, X, y = classes
    run("fit", path, tmp_path / "m", "--label", "k", "-q")
    y = y.astype(object)
    y[:4], y[4:6] = "new", ""
    other = write_csv(tmp_path / "o.csv", X, y, ["u", "v"], "k")
    code, out, _ = run("evaluate", tmp_path / "m", other)
    said = pairs(out)
    assert code == 0 and said["rows"] == "144"
    assert said["unknown labels"].startswith("4 rows")
    assert said["without a label"] == "2 rows"


def test_numbers_are_judged(run, tmp_path, rng):
    X = rng.normal(size=(80, 2))
    y = (X @ [1.0, -2.0] + 0.1 * rng.normal(size=80)).round(4)
    path = write_csv(tmp_path / "x.csv", X, y, ["u", "v"], "k")
    run("fit", path, tmp_path / "m", "--label", "k", "--estimator", "regressor", "-q")
    found = json.loads(run("evaluate", tmp_path / "m", path, "--json")[1])
    predicted = loaded(tmp_path / "m").predict(X)
    assert found["R2"]["value"] == pytest.approx(metrics.r2_score(y, predicted))
    names = np.where(y > 0, "a", "b")
    text = write_csv(tmp_path / "t.csv", X, names, ["u", "v"], "k")
    code, _, err = run("evaluate", tmp_path / "m", text)
    assert code == 2 and "the labels are text, such as" in err


def test_detectors_are_judged_by_known_anomalies(run, normal, tmp_path):
    path, X, odd = normal
    model = tmp_path / "m"
    options = "--estimator", "outliers", "--label", "odd", "--contamination", "0.1"
    assert run("fit", path, model, *options)[0] == 0
    found = json.loads(run("evaluate", model, path, "--json")[1])
    machine = loaded(model)
    flagged, score = machine.predict(X) == -1, machine.score_samples(X)
    assert found["recall"]["value"] == metrics.recall_score(odd, flagged)
    assert found["precision"]["value"] == metrics.precision_score(odd, flagged)
    area = metrics.roc_auc_score(odd, -score)
    assert found["ROC_AUC"]["value"] == pytest.approx(area)
    value = metrics.average_precision_score(odd, -score)
    assert found["average_precision"]["value"] == pytest.approx(value)
    best = json.loads(run("evaluate", model, path, "--json", "--top", 5)[1])
    assert best["called_so"] == 5
    hits = int(odd[np.argsort(score)[:5]].sum())
    assert best["precision"]["count"] == hits
    err = run("predict", model, path, "-o", tmp_path / "p.csv")[2]
    told = float(re.search(r"ROC AUC: ([\d.]+)", err)[1])
    assert told == pytest.approx(area, abs=0.006) and "recall: " in err


@pytest.mark.parametrize(
    "words, positive, odd",
    [
        (("1", "-1"), None, "-1"),
        (("ok", "anomaly"), None, "anomaly"),
        (("ok", "Outlier"), None, "Outlier"),
        (("p", "q"), "q", "q"),
        (("p", "q"), None, None),
    ],
)
def test_words_for_anomalies(run, normal, tmp_path, words, positive, odd):
    path, X, truth = normal
    names = np.array(words)[truth.astype(int)]
    path = write_csv(path, X, names, ["a", "b", "c"], "odd")
    options = "--estimator", "outliers", "--label", "odd", "--contamination", "0.1"
    assert run("fit", path, tmp_path / "m", *options, "-q")[0] == 0
    more = () if positive is None else ("--positive", positive)
    code, out, err = run("evaluate", tmp_path / "m", path, *more)
    if odd is None:
        assert code == 2 and "say by --positive LABEL which" in err
        err = run("predict", tmp_path / "m", path, "-o", tmp_path / "p")[2]
        assert "--positive p takes that one" in err
    else:
        assert pairs(out)["anomalies"] == str(int(truth.sum()))
    code, _, err = run("evaluate", tmp_path / "m", path, "--positive", "z")
    assert code == 2 and "--positive z is none of the labels" in err


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("estimator", ["logistic", "outliers"])
def test_pictures_are_drawn(run, normal, tmp_path, estimator, ending):
    path, *_ = normal
    options = "--label", "odd", "--estimator", estimator
    run("fit", path, tmp_path / "m", *options, "-q")
    picture = tmp_path / f"p.{ending}"
    code, out, _ = run("evaluate", tmp_path / "m", path, "--plot", picture)
    assert code == 0 and picture.stat().st_size > 5000 and str(picture) in out
    code, _, err = run("evaluate", tmp_path / "m", path, "--plot", tmp_path / "p.txt")
    assert code == 2 and "name a .png, .pdf or .svg file" in err


def test_refusals(run, normal, classes, tmp_path):
    path, X, _ = normal
    bare = write_csv(tmp_path / "bare.csv", X, names=["a", "b", "c"])
    run("fit", path, tmp_path / "m", "--label", "odd", "-q")
    for args, words in (
        ([tmp_path / "m", bare], "no row has a label"),
        ([tmp_path / "m", classes[0]], "has no column 'a'"),
        ([tmp_path / "m", path, "--negative", bare], "--negative is for sequences"),
        ([tmp_path / "m", path, "--positive", "z"], "--positive z is no class"),
        ([tmp_path / "m", path, "--top", 3], "--top 3 is for detectors, and"),
    ):
        code, out, err = run("evaluate", *args)
        assert (code, out) == (2, "") and words in err
        assert_one_sentence(err, "evaluate")
    code, _, err = run("predict", tmp_path / "m", path, "--positive", 1)
    assert code == 2 and "--positive 1 is for detectors" in err
    options = "--estimator", "mixture", "--label", "odd", "-q"
    assert run("fit", path, tmp_path / "d", *options)[0] == 0
    code, _, err = run("evaluate", tmp_path / "d", path)
    assert code == 2 and "no labels can judge it" in err
