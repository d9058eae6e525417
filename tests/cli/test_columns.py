"""The command line on columns: text or numbers, bins, indices, rows without labels."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import assert_one_sentence, pairs, read_rows
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from maxent._commands import columns
from maxent._commands.bins import Bins, quantiles
from maxent._persistence.persistence import load


def predictions(out):
    return [row[0] for row in read_rows(out)[1:]]


@pytest.mark.parametrize(
    "cells, options, text, words",
    [
        (["a", "90", "b", "?"], [], True, ""),  # most cells are no numbers
        (["1", "2", "a", "?"], [], None, "--text c takes the column for text"),
        (["1", "2", "a", "?"], ["--text", "c"], True, ""),
        (["1", "2", "3", "?"], ["--text", "1"], True, ""),
        (["1", "2", "3", "?"], [], False, ""),
        (["1", "2", "3", "?"], ["--text", "k"], None, "'k' is no feature, so"),
        (["1", "2", "3", "?"], ["--text", "z"], None, "has no column 'z'; its"),
    ],
)
def test_most_cells_say_whether_a_column_is_text(
    run, tmp_path, cells, options, text, words
):
    rows = [f"{i % 7},{cell},{'xy'[i % 3 > 0]}" for i, cell in enumerate(cells * 5)]
    (tmp_path / "t.csv").write_text("\n".join(["a,c,k", *rows]) + "\n")
    model = tmp_path / "m"
    common = "--label", "k", "--impute", *options
    code, out, err = run("fit", tmp_path / "t.csv", model, *common)
    assert (code, words in err) == (2 if text is None else 0, True)
    if text is None:
        return assert_one_sentence(err, "fit")
    assert (err, "columns of text" in pairs(out)) == ("", text)
    code, out, err = run("predict", model, tmp_path / "t.csv")
    assert code == 0 and len(predictions(out)) == 20


def test_numbers_in_bins_are_categories(run, tmp_path, rng):
    X = rng.normal(size=(80, 2))
    kind, y = rng.choice(["a", "b"], 80), np.where(X[:, 0] * X[:, 1] > 0, "x", "y")
    rows = [
        f"{a},{b},{i % 3},{t},{k}" for i, ((a, b), t, k) in enumerate(zip(X, kind, y))
    ]
    rows[5] = f"?{rows[5][rows[5].index(',') :]}"
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("\n".join(["a,b,c,kind,k", *rows]) + "\n")
    common = "fit", path, model, "--estimator", "chowliu"
    _, _, err = run(*common)
    assert "by --bins 5, or drop them; --ignore a,b leaves them out" in err
    code, out, err = run(*common, "--bins", 4, "-v", 3)
    assert (code, err, pairs(out)["columns in bins"]) == (0, "", "a (4), b (4)")
    found, _ = load(model, return_extra=True)
    here = np.delete(np.arange(80), 5)
    a = np.full(80, np.nan)
    a[here] = np.searchsorted([19, 39, 59], rankdata(X[here, 0]) - 1, side="right")
    table = pd.DataFrame({"a": a, "b": (rankdata(X[:, 1]) - 1) // 20})
    table["c"], table["kind"] = np.arange(80) % 3.0, kind
    _, out, err = run("predict", model, path)
    assert predictions(out) == found.predict(table).tolist() and err.count("\n") == 1
    with pytest.warns(UserWarning, match="features that `maxent fit` had binned"):
        load(model)
    code, _, err = run("fit", path, model, "--bins", 4, "--impute")
    assert code == 2 and "--bins does not apply to the classifier" in err


@pytest.mark.parametrize(
    "values, codes",
    [
        ([0] * 6 + [1, 2, 3, 4], [0] * 6 + [1] * 4),
        ([9] * 8 + [1, 2], [1] * 8 + [0, 0]),
        ([0] * 9 + [1, 2, 3], [0] * 9 + [1] * 3),
        ([1, 2, 2, 1], [1, 2, 2, 1]),
    ],
)
def test_values_of_many_rows_have_a_bin(values, codes):
    X = np.array(values, float)[:, None]
    assert Bins(2).fit_transform(X)[:, 0].tolist() == codes


@pytest.mark.parametrize(
    "options, labels", [(["--impute"], "yn"), (["--estimator", "regressor"], "12")]
)
def test_rows_without_labels_can_be_left_out(run, tmp_path, options, labels):
    labels = ["", *labels, "NA", *labels * 9, ""]
    rows = [f"{i % 5},{i % 3},{k}" for i, k in enumerate(labels)]
    (tmp_path / "t.csv").write_text("\n".join(["a,w,k", *rows]) + "\n")
    common = "fit", tmp_path / "t.csv", tmp_path / "m", *options, "--weights", "w"
    code, _, err = run(*common)
    assert code == 2 and "line 2, column 'k': the label is empty (3 rows have " in err
    assert "--drop-unlabelled leaves such rows out" in err
    assert_one_sentence(err, "fit")
    code, out, err = run(*common, "--drop-unlabelled")
    said = pairs(out)
    assert (code, said["rows"], said["sum of weights"]) == (0, "14", "21")
    assert said["of weight 0"] == "6 rows, left out"
    assert said["without a label"] == "3 rows, left out"
    partial = "--estimator", "partial", "--drop-unlabelled"
    assert "not apply to the partial" in run("fit", *common[1:3], *partial)[2]


@pytest.mark.parametrize("labels", ["yn", "01", ["1.5", "2.5"]])
@pytest.mark.parametrize("word", ["NA", "nan", "?", "null", "N/A", ""])
def test_labels_are_missing_alike_in_fit_and_in_predict(run, tmp_path, word, labels):
    kind = "classifier" if labels in ("yn", "01") else "regressor"
    rows = [f"{i % 5},{i % 3},{k}" for i, k in enumerate([*labels] * 10)]
    (tmp_path / "whole.csv").write_text("\n".join(["a,b,k", *rows]) + "\n")
    rows[4:4] = [f"9,9,{word}"] * 3
    (tmp_path / "t.csv").write_text("\n".join(["a,b,k", *rows]) + "\n")
    common = "fit", tmp_path / "t.csv", tmp_path / "m", "--estimator", kind
    code, _, err = run(*common)
    fault = f"the label {word!r} stands for none" if word else "the label is empty"
    assert code == 2 and f"line 6, column 'k': {fault} (3 rows have none)" in err
    assert "--drop-unlabelled leaves" in err
    code, out, _ = run(*common, "--drop-unlabelled")
    assert code == 0 and pairs(out)["without a label"] == "3 rows, left out"
    said = {}
    for name in ("whole", "t"):
        data = tmp_path / f"{name}.csv"
        for chosen in ((), ("--label", "k")):
            code, _, err = run("predict", tmp_path / "m", data, *chosen)
            said[name] = err.strip()
            assert code == 0 and (name == "whole" or err.strip() == said["t"])
    assert said["t"] == f"{said['whole']}; 3 without a label left out"
    assert said["whole"].startswith("error: ")
    code, out, _ = run("predict", tmp_path / "m", data, "--json", "-o", tmp_path / "p")
    assert code == 0 and json.loads(out)["without_a_label"] == 3


def test_words_for_missing_labels_in_a_column_that_is_no_label(run, tmp_path):
    rows = [f"{i % 7},{i % 5},{k}" for i, k in enumerate(["NA", "b"] * 15)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,k", *rows]) + "\n")
    common = tmp_path / "t.csv", tmp_path / "m", "--estimator", "outliers"
    assert run("fit", *common, "--label", "k", "--contamination", "0.1")[0] == 0
    code, _, err = run("predict", tmp_path / "m", tmp_path / "t.csv")
    assert code == 0 and "inliers" in err


def test_partial_labels_are_left_out_of_the_error(run, tmp_path):
    rows = [f"{i % 2 + (i % 7) / 9},{i % 3},{i % 2}" for i in range(20)]
    rows += [f"{i / 9},1,-1" for i in range(5)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,k", *rows]) + "\n")
    assert run("fit", tmp_path / "t.csv", tmp_path / "m", "--estimator", "partial")
    err = run("predict", tmp_path / "m", tmp_path / "t.csv")[2]
    assert err == "error: 0 of 20 (0.00 %); 5 without a label left out\n"


@pytest.mark.parametrize(
    "name, start, step, left_out",
    [("", 0, 1, True), ("Unnamed: 0", 1, 1, True), ("", 5, 3, True)]
    + [("a", 0, 1, False), ("", 0.5, 1, False), ("", 7, 0, False)],
)
def test_an_index_of_the_rows_is_no_feature(
    run, tmp_path, rng, name, start, step, left_out
):
    rows = [
        f"{start + step * i},{x},{'yn'[i % 2]}" for i, x in enumerate(rng.random(30))
    ]
    (tmp_path / "t.csv").write_text("\n".join([f"{name},b,k", *rows]) + "\n")
    code, out, err = run("fit", tmp_path / "t.csv", tmp_path / "m")
    assert code == 0 and pairs(out)["features"] == str(2 - left_out)
    assert ("column 0 (counted from 0) has no name and numbers the" in err) == left_out
    code, out, err = run("predict", tmp_path / "m", tmp_path / "t.csv")
    assert code == 0 and len(predictions(out)) == 30 and err.startswith("error: ")


@pytest.mark.parametrize("n", [2, 3, 5, 100])
def test_quantiles_of_weights_are_those_of_repeated_rows(rng, n):
    for size in range(1, 25):
        values = rng.integers(-3, 4, size) * 1.0
        weights = rng.integers(0, 4, size)
        weights[0] += 1
        rows = np.sort(np.repeat(values, weights))
        at = [k * len(rows) for k in range(1, n)]  # n times the share of the rows
        low = rows[[-(-a // n) - 1 for a in at]]
        expected = (low + rows[[min(a // n, len(rows) - 1) for a in at]]) / 2
        for scale in (1.0, 0.1, 1e-9):
            found = quantiles(values, n, scale * weights)
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(quantiles(rows, n), expected)


def test_the_median_is_that_of_numpy(rng):
    for size in range(1, 12):
        values = rng.normal(size=size)
        assert quantiles(values, 2) == np.median(values)


@pytest.mark.parametrize("drop", [None, "first"])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_text_are_those_of_scikit_learn(rng, monkeypatch, drop, sparse):
    monkeypatch.setattr(columns, "_DENSE_BYTES", 0)
    monkeypatch.setattr(columns, "_SPARSE_SHARE", 1.1)
    names = ["a", "b", "c", "d"]
    for text in itertools.product([False, True], repeat=4):
        X = np.empty((12, 4), dtype=object)
        for j, is_text in enumerate(text):
            values = [*"xyz", None] if is_text else [-1.0, 0.0, 2.5, np.nan]
            X[:, j] = rng.choice(np.array(values, dtype=object), 12)
        one_hot = OneHotEncoder(drop=drop, handle_unknown="ignore")
        oracle = ColumnTransformer(
            [
                (
                    "n",
                    SimpleImputer(strategy="median"),
                    np.flatnonzero(~np.array(text)),
                ),
                ("t", one_hot, np.flatnonzero(text)),
            ],
            sparse_threshold=0.0,
            verbose_feature_names_out=False,
        ).fit(columns.named_missing(X))
        step = columns.Columns(list(text), drop, sparse).fit(X)
        assert columns.names_of(step.state_, names) == list(
            oracle.get_feature_names_out(names)
        )
        X[3, np.array(text)] = "new"
        found = step.transform(X)
        assert sp.issparse(found) == sparse
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found unknown categories")
            expected = oracle.transform(columns.named_missing(X))
        found = found.toarray() if sparse else found
        np.testing.assert_array_equal(found, expected.astype(float))


_NUMBERS = ("classifier", "regressor", "selector", "gaussian", "logistic", "partial")
_CATEGORIES = ("bayesnet", "tree", "chowliu")


@pytest.mark.parametrize(
    "options",
    [
        *([name, "--impute"] for name in (*_NUMBERS, "outliers", "mixture")),
        *([name, "--impute", "--standardize"] for name in _NUMBERS),
        *([name, "--bins", 3] for name in _CATEGORIES),
        *(["partial", "--bins", 3, "--machine", name] for name in _CATEGORIES[:2]),
        ["outliers", "--bins", 3, "--outlier-model", "tree"],
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_rows_count_by_their_weights_in_what_columns_become(
    run, tmp_path, rng, options
):
    """Medians, edges, categories and scales are those of repeated rows."""
    rows = _random_rows(rng)
    weights = rng.integers(0, 3, len(rows))
    weights[:4], weights[4:6] = 2, 0
    beside = [f"{row},{w}" for row, w in zip(rows, weights)]
    repeated = [row for row, w in zip(rows, weights) for _ in range(w)]
    (tmp_path / "w.csv").write_text("\n".join(["a,b,c,k,w", *beside]))
    (tmp_path / "r.csv").write_text("\n".join(["a,b,c,k", *repeated]))
    unlabelled = options[0] in ("outliers", "mixture")
    options = [*options, "--ignore" if unlabelled else "--label", "k", "-q"]
    learnt = []
    for data, more in (("w.csv", ["--weights", "w"]), ("r.csv", [])):
        paths = tmp_path / data, tmp_path / "m"
        code, _, err = run("fit", *paths, "--estimator", *options, *more)
        assert code in (0, 1), err
        learnt.append(_learnt(tmp_path / "m"))
    assert learnt[0][0] == learnt[1][0]
    for one, other in zip(learnt[0][1], learnt[1][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def _random_rows(rng):
    """Rows of two numbers, a text and a label, that may be missing but the label.

    Texts and numbers of the fifth and sixth row, whose weights are 0, are in no other.
    """
    a = rng.integers(0, 9, 40) / 8
    b = rng.random(40).round(3)
    text, label = rng.choice(["s", "t", "?"], 40), np.where(a + b > 1, 2, 1)
    rows = [[str(x), str(y), t, str(k)] for x, y, t, k in zip(a, b, text, label)]
    for row, lost in zip(rows, rng.random((40, 2)) < 0.2):
        row[:2] = ["" if gone else cell for gone, cell in zip(lost, row)]
    rows[0][:3], rows[1][:3] = ["0.5", "0.25", "s"], ["0.25", "", "t"]
    rows[4] = ["1e9", "-1e9", "strange", "1"]
    rows[5] = ["", "1e200", "strange", "2"]
    return [",".join(row) for row in rows]


def _learnt(model):
    """What a model file keeps of columns: names, and lists of numbers."""
    _, extra = load(model, return_extra=True)
    columns, scales = extra["columns"], extra["standardize"] or {}
    words = [columns["text"], [c.tolist() for c in columns.get("categories") or []]]
    numbers = [columns.get("fill"), *(columns.get("bins") or []), *scales.values()]
    return words, [part for part in numbers if part is not None]
