"""``maxent compare``: the same folds for all, as scikit-learn's cross-validation."""

import json

import numpy as np
import pytest
from command_line import assert_one_sentence, write_csv
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier


@pytest.fixture
def table(tmp_path, rng):
    y = rng.random(90) < 0.4
    X = rng.normal(size=(90, 2)).round(3) + 1.5 * y[:, None]
    names = np.where(y, "yes", "no")
    return write_csv(tmp_path / "x.csv", X, names, ["u", "v"], "k"), X, names


def compared(run, *args):
    code, out, err = run("compare", *args, "--json")
    assert code == 0, err
    found = json.loads(out)
    return {row["estimator"]: row for row in found["estimators"]}, found


def test_scores_are_those_of_scikit_learn(run, table):
    path, X, y = table
    names = "--estimators", "classifier,constant"
    rows, found = compared(run, path, "--label", "k", "--cv", 3, "--seed", 4, *names)
    folds = StratifiedKFold(3, shuffle=True, random_state=4)
    for name, machine in (
        ("classifier", MEDClassifier()),
        ("constant", DummyClassifier()),
    ):
        expected = cross_val_score(machine, X, y, cv=folds)
        assert rows[name]["folds"] == pytest.approx(expected.tolist())
        error = rows[name]["score"]["standard_error"]
        assert error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(3))
    best, other = rows["classifier"], rows["constant"]
    gaps = np.subtract(best["folds"], other["folds"])
    behind = other["behind_the_best"]
    assert behind["value"] == pytest.approx(gaps.mean())
    assert behind["standard_error"] == pytest.approx(np.std(gaps, ddof=1) / np.sqrt(3))
    assert found["rows"] == 90 and [*rows] == ["classifier", "constant"]


def test_estimators_that_suit_are_compared(run, table, tmp_path, rng):
    path, X, _ = table
    rows, found = compared(run, path, "--label", "k", "--cv", 2)
    ours = {"classifier", "gaussian", "logistic", "selector"}
    sklearn = {"constant", "linear", "svm", "forest"}
    assert {*rows} == ours | sklearn and found["failed"] == {}
    cells = rng.choice(["a", "b", "c"], size=(60, 2))
    names = np.where(cells[:, 0] == "a", "x", "y")
    lines = [",".join([*row, k]) for row, k in zip(cells.tolist(), names.tolist())]
    text = tmp_path / "t.csv"
    text.write_text("\n".join(["p,q,k", *lines]) + "\n")
    rows, _ = compared(run, text, "--cv", 2)
    assert {*rows} >= {"bayesnet", "tree", "chowliu", "classifier", "forest"}
    price = write_csv(tmp_path / "p.csv", X, X[:, 0] / 2, ["u", "v"], "price")
    rows, found = compared(run, price, "--label", "price", "--cv", 2)
    assert found["scoring"] == "rmse" and [*rows][-1] == "constant"
    assert {"regressor", "regression_selector", "linear"} < {*rows}


@pytest.mark.parametrize("scoring", ["roc_auc", "log_loss", "balanced_accuracy"])
def test_scores_that_an_estimator_lacks_are_said(run, table, scoring):
    names = "--estimators", "classifier,logistic,constant"
    code, out, err = run(
        *("compare", table[0], "--label", "k", "--scoring", scoring, *names)
    )
    assert code == 0 and out.split()[1] == scoring
    lacks = scoring == "log_loss"
    assert ("classifier: no log_loss: it defines no probabilities" in err) == lacks
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert ["classifier", "-"] in rows if lacks else rows[-1][0] == "constant"


def test_weights_and_standardize_are_those_of_fits(run, table, tmp_path):
    _, X, y = table
    w = 1 + np.arange(90) % 3
    lines = [f"{a},{b},{c},{k}" for (a, b), c, k in zip(X.tolist(), w, y)]
    heavy = tmp_path / "w.csv"
    heavy.write_text("\n".join(["u,v,w,k", *lines]) + "\n")
    options = "--label", "k", "--weights", "w", "--cv", 3
    rows, found = compared(run, heavy, *options, "--standardize")
    assert found["failed"] == {} and len(rows) == 8
    scoring = "--estimators", "linear", "--scoring", "log_loss"
    rows, _ = compared(run, heavy, *options, *scoring)
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    expected = []
    for train, test in folds:
        machine = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        weights = {"logisticregression__sample_weight": w[train].astype(float)}
        proba = machine.fit(X[train], y[train], **weights).predict_proba(X[test])
        expected.append(log_loss(y[test], proba))
    assert rows["linear"]["folds"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "options, words",
    [
        (["--estimators", "magic"], "'magic' is not known; use classifier"),
        (["--estimators", "outliers"], "outliers takes no labels"),
        (["--estimators", "classifier,regressor"], "some are for classes and some"),
        (["--scoring", "rmse"], "the labels are text, but a regressor needs numbers"),
        (
            ["--scoring", "rmse", "--estimators", "tree"],
            "--scoring rmse does not apply",
        ),
        (["--cv", "1"], "'1' is no whole number >= 2"),
        (["--cv", "91"], "--cv 91: there are 90 rows only"),
        (["--label", "z"], "has no column 'z'"),
        (["--negative", "f"], "--negative is for sequences"),
        (["--format", "sequences"], "compare is for tables"),
    ],
)
def test_refusals_are_one_sentence(run, table, options, words):
    code, out, err = run("compare", table[0], "--label", "k", *options)
    assert (code, out) == (2, "") and words in err
    assert_one_sentence(err, "compare")
