"""Predict without probabilities names options of fit, which work when followed."""

import re
import shlex

import numpy as np
import pytest
from command_line import assert_one_sentence, values_beside, write_csv

TABLES = ["classifier", "selector", "gaussian", "bayesnet", "tree", "partial"]


@pytest.fixture
def table(tmp_path):
    """Path of 60 rows of three binary columns, which categories and numbers may be."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = (rng.random((60, 3)) < 0.3 + 0.4 * y[:, None]).astype(int)
    labels = np.array(["a", "b"])[y].astype(object)

    def write(unlabelled):
        labels[::4] = "" if unlabelled else labels[1::4]
        return write_csv(tmp_path / "x.csv", X, labels, ["u", "v", "w"], label="y")

    return write


def remedies(err):
    """Lists of options that a message recommends to fit with."""
    clause = re.search(r"; fit (.*?) to have them", err)[1]
    return [
        [word for word in shlex.split(part) if word not in ("with",)]
        for part in re.sub(r".*?(?=--)", "", clause, count=1).split(" or ")
    ]


@pytest.mark.parametrize("estimator", TABLES)
def test_remedies_for_missing_probabilities_work(run, tmp_path, table, estimator):
    model, path = tmp_path / "m.npz", table(estimator == "partial")
    fit = ("fit", path, model, "--label", "y", "--estimator", estimator)
    assert run(*fit)[0] == 0
    code, out, err = run("predict", model, path, "--no-label", "--proba")
    assert (code, out) == (2, "")
    assert_one_sentence(err, "predict")
    found = remedies(err)
    assert len(found) == 1 + (estimator != "partial")
    for options in found:
        assert run(*fit, *options)[0] == 0
        code, out, _ = run("predict", model, path, "--no-label", "--proba")
        assert code == 0
        proba = values_beside(out, "proba_a", "proba_b")
        np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("positive", [False, True])
def test_remedies_for_motifs_work(run, tmp_path, positive):
    rng = np.random.default_rng(0)
    path, model = tmp_path / "x.fa", tmp_path / "m.npz"
    texts = ["".join(rng.choice(list("ACGT"), 9)) for _ in range(20)]
    texts[1::2] = [text[:3] + "TATA" + text[7:] for text in texts[1::2]]
    lines = [f">s{i} {'yn'[i % 2]}\n{text}\n" for i, text in enumerate(texts)]
    path.write_text("".join(lines))
    fit = ("fit", path, model, "--estimator", "motif", "--width", "4")
    assert run(*fit, *(("--positive", "n") if positive else ()))[0] == 0
    code, _, err = run("predict", model, path, "--proba")
    assert code == 2 and "margin" not in err and "--probability" in err
    assert ("rename the labels" in err) == positive
    path.write_text(path.read_text().replace(" n\n", " z\n"))
    if positive:  # the remedy of labels that were not renamed is the same
        return
    assert run(*fit, "--probability")[0] == 0
    assert run("predict", model, path, "--proba")[0] == 0


def test_probabilities_that_reverse_the_decisions_are_told(run, tmp_path):
    """Noise, and the same columns with a signal."""
    data, model = tmp_path / "x.csv", tmp_path / "m.npz"
    told = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 3)).round(3), np.arange(40) % 2
        for signal in (0.0, 4.0):
            shifted = X + signal * y[:, None]
            write_csv(data, shifted, np.array(["a", "b"])[y], ["u", "v", "w"], "y")
            options = ("--label", "y", "--kernel", "sigmoid", "--probability")
            err = run("fit", data, model, *options)[2]
            warned = "the probabilities reverse their order" in err
            found = [
                values_beside(run("predict", model, data, *asked)[1])
                for asked in (["--probability"], ["--decision"])
            ]
            rises = np.corrcoef(found[0][:, 1], found[1][:, 0])[0, 1] > 0
            assert warned != rises
            told.add((signal > 0, warned))
    assert told >= {(False, True), (True, False)} and (True, True) not in told


def test_the_warning_of_reversed_probabilities_names_options_that_apply(run, tmp_path):
    data, told = tmp_path / "x.csv", 0
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(40, 3)).round(3)
        write_csv(data, X, np.array(["a", "b"] * 20), ["u", "v", "w"], "y")
        options = "--label", "y", "--estimator", "logistic", "--probability"
        err = run("fit", data, tmp_path / "m", *options)[2]
        told += "the probabilities reverse their order" in err
        assert "--kernel" not in err
    assert told
