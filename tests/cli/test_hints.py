"""The command line on data that are seldom meant as they are taken."""

import json

import numpy as np
import pytest
from command_line import assert_one_sentence, pairs, write_csv
from sklearn.datasets import dump_svmlight_file, load_diabetes

SPREADS = "hint: the columns' spreads differ by a factor of {}: --standardize"
DATES = [f"2024-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(60)]


@pytest.fixture
def fit(run, tmp_path):
    """Fit to rows of cells under a header; gives code, standard output and error."""

    def fit(header, rows, *options):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return run("fit", tmp_path / "t.csv", tmp_path / "m", *options)

    return fit


# ---------------------------------------------------------------------------- labels


def test_the_report_names_a_label_that_was_not_chosen(fit):
    rows = [(i % 5, i % 3, "yn"[i % 2]) for i in range(30)]
    code, out, err = fit("a,b,k", rows)
    assert (code, err) == (0, "")
    assert pairs(out)["label"] == "k (last column; --label chooses another)"
    _, out, _ = fit("a,b,k", rows, "--json", "-v", 3)
    assert json.loads(out)["label"] == "k"
    _, out, _ = fit("a,b,k", rows, "--label", "k")
    assert "label" not in pairs(out)
    _, out, _ = fit("1,2,y", rows)  # without names
    assert "label" not in pairs(out)


@pytest.mark.parametrize("options", [(), ("--label", "city")])
def test_an_empty_label_of_the_last_column_may_be_no_label(fit, options):
    rows = [(i, "yn"[i % 2], ["", "Rome"][i % 2]) for i in range(8)]
    code, _, err = fit("a,k,city", rows, *options)
    assert code == 2 and "(4 rows have none)" in err and "--drop-unlabelled" in err
    taken = "the last column is taken: choose another with --label, or --drop"
    assert (taken in err) == (not options)
    assert_one_sentence(err, "fit")


@pytest.mark.parametrize(
    "n_classes, options, remedy",
    [
        (60, (), "the last column is taken: choose another with --label"),
        (60, ("--label", "pct"), "choose the labels' column with --label"),
        (120, (), "the last column is taken"),  # most have one row or two
        (40, (), None),
    ],
)
def test_many_texts_that_are_labels_are_told_once(fit, n_classes, options, remedy):
    rows = [(i % 5, i % 7, f"{i % n_classes}%") for i in range(200)]
    common = "--estimator", "logistic", "--max-iter", 1
    _, _, err = fit("y,x,pct", rows, *common, *options)
    told = [line for line in err.splitlines() if " different " in line]
    if remedy is None:
        assert told == []
    else:
        said = f"{n_classes} different texts in 200 rows, such as '0%', each a class of"
        assert len(told) == 1 and said in told[0] and remedy in told[0]


@pytest.mark.parametrize("n_different", [214, 300])
def test_many_numbers_that_are_labels_are_told_once(run, tmp_path, n_different):
    X, y = load_diabetes(return_X_y=True)
    y = y if n_different == 214 else np.arange(len(y)) % n_different * 2
    path = write_csv(tmp_path / "t.csv", np.c_[X[:, :2], y])
    common = "fit", path, "--estimator", "logistic", "--max-iter", 1
    _, _, err = run(*common, "-v", 2)
    assert err.count("--estimator regressor") == err.count(" different numbers") == 1
    assert f"the labels are {n_different} different numbers from" in err


LABELS = {
    "case": (["Yes", "YES", "yes", "no"], "'YES' and 'Yes' and 'yes' differ only in"),
    "blanks": (["New York", "New  York", "no"], "'New  York' and 'New York' differ"),
    "two": (["b", "B", "a", "A"], "the labels 'A' and 'a', 'B' and 'b' differ only"),
    "none": (["yes", "no"], None),
    "numbers": ([1, 2], None),
}


@pytest.mark.parametrize("case", list(LABELS))
def test_labels_that_differ_only_in_case_or_blanks_are_told(fit, case):
    labels, said = LABELS[case]
    rows = [(i % 5, i % 7, k) for i, k in enumerate(labels * 6)]
    code, _, err = fit("a,b,k", rows, "--estimator", "logistic")
    assert code == 0 and (said in err if said else err == "")
    assert err.count("\n") == (said is not None)


def test_labels_of_some_rows_that_differ_only_in_case_are_told(fit):
    rows = [(i % 5, i % 7, ["Yes", "", "yes"][i % 3]) for i in range(30)]
    code, _, err = fit("a,b,k", rows, "--estimator", "partial")
    assert code == 0 and "'Yes' and 'yes' differ only in case or blanks" in err


def test_labels_of_sequences_that_differ_only_in_case_are_told(run, tmp_path):
    lines = [f"ACGTTGCA{'ACGT'[i % 4 :]} {['on', 'On'][i % 2]}" for i in range(12)]
    (tmp_path / "t.seq").write_text("\n".join(lines) + "\n")
    options = "--estimator", "motif", "--width", 3, "--starts", 1
    _, _, err = run("fit", tmp_path / "t.seq", tmp_path / "m", *options)
    assert "the labels 'On' and 'on' differ only in case or blanks" in err


# --------------------------------------------------------------------------- columns


COLUMNS = {  # texts, and what they look like
    "words": ([f"w{i}" for i in range(60)], ";"),
    "percent": ([f"{i / 2} %" for i in range(60)], "a percent sign, such as 0.0 %: "),
    "dollars": ([f"${i}.50" for i in range(60)], "currency, such as $0.50: strip the"),
    "euros": ([f"-{i} €" for i in range(60)], "a sign of currency, such as -0 €: "),
    "iso": (DATES, "dates, such as 2024-01-01: give parts of the date as numbers, or"),
    "time": ([f"{d}T12:30:00Z" for d in DATES], "look like dates, such as 2024-01-0"),
    "points": ([f"{1 + i % 28}.{1 + i // 28}.2024" for i in range(60)], "like dates"),
    "slashes": ([f"1/{1 + i % 28}/{60 + i}" for i in range(60)], "like dates, such as"),
    "nearly": ([*DATES[:56], "a", "b", "c", "d"], "look like dates, such as 2024-01"),
    "mixed": ([*DATES[:50], *"abcdefghij"], ";"),
    "few": ([f"{i}%" for i in range(50)], None),
}


@pytest.mark.parametrize("case", list(COLUMNS))
def test_columns_of_many_texts_are_told(fit, case):
    texts, like = COLUMNS[case]
    rows = [(i % 7, texts[i % len(texts)], "yn"[i % 2]) for i in range(240)]
    code, _, err = fit("a,when,k", rows, "--max-iter", 100)
    assert code in (0, 1)
    if like is None:
        assert "different texts" not in err
        return
    start = "maxent fit: warning: column 'when' holds 60 different texts in 240 cells, "
    assert err.startswith(start + "each a category of its own;") and like in err
    assert "--ignore when leaves the column out\n" in err
    assert ("look like" in err) == (like != ";")
    _, _, err = fit("a,when,k", rows * 2, "--max-iter", 100)  # an eighth of the rows
    assert "different texts" not in err


def test_a_column_that_text_names_is_not_explained(fit):
    rows = [(i % 7, DATES[i % 60], "yn"[i % 2]) for i in range(240)]
    _, _, err = fit("a,when,k", rows, "--text", "when", "--max-iter", 100)
    assert "60 different texts" in err and "look like" not in err


@pytest.mark.parametrize(
    "factor, options, told",
    [
        (1000, (), True),
        (1000, ("--kernel", "poly", "--gamma", 1e-6), True),
        (1000, ("--estimator", "regressor"), True),
        (1000, ("--estimator", "partial"), True),
        (1000, ("--standardize",), False),
        (1000, ("--kernel", "linear"), False),
        (1000, ("--estimator", "logistic"), False),
        (50, (), False),
    ],
)
def test_columns_of_far_spreads_are_hinted_at(fit, factor, options, told):
    rows = [(i % 2, i // 2 % 2 * factor, 0.1, i % 3 // 2) for i in range(24)]
    _, _, err = fit("a,b,c,k", rows, *options)
    assert (SPREADS.format("1e+03") in err) == told
    assert err.count("spreads") == told


def test_rare_categories_flags_and_words_have_no_small_spread(run, fit, tmp_path):
    rows = [(i % 2 * 50, ["x", "y"][i == 5], i % 3 // 2) for i in range(999)]
    _, _, err = fit("a,b,k", rows)
    assert "spreads" not in err
    rows = [(a, int(b == "y"), k) for a, b, k in rows]
    _, _, err = fit("a,b,k", rows)
    assert "spreads" not in err
    X = np.c_[np.arange(300) % 7, np.arange(300) == 5].astype(float)
    for factor in (1, 1000):
        dump_svmlight_file(X * [factor, 1], np.arange(300) % 2, str(tmp_path / "t.svm"))
        _, _, err = run("fit", tmp_path / "t.svm", tmp_path / "m")
        assert (SPREADS.format("6e+03") in err) == (factor == 1000)


@pytest.mark.parametrize(
    "text, options, said",
    [
        ("a|b|k\n1|2|x\n3|4|y\n", ("--label", "k"), "no column 'k'; its columns are"),
        ("a|b|k\n1|2|x\n3|4|y\n", (), "has one column only"),
        ("# of May\na,b,k\n1,2,x\n3,4,y\n", ("--label", "k"), "no column 'k'; its"),
        ("# of May\na,b,k\n1,2,x\n3,4,y\n", (), "has one column only"),
        (
            "# of May, new\na,b,k\n1,2,x\n3,4,y\n",
            (),
            "3 cells, but the first row has 2",
        ),
        ("a,b\n1,x\n2,y\n", ("--label", "k"), None),
    ],
)
def test_separators_and_comments_are_named(run, tmp_path, text, options, said):
    (tmp_path / "t.csv").write_text(text)
    code, _, err = run("fit", tmp_path / "t.csv", tmp_path / "m", *options)
    cause = "begins with '#': remove it" if text[0] == "#" else "separated by '|': "
    assert code == 2 and (cause in err) == (said is not None) and (said or "") in err
    assert_one_sentence(err, "fit")


# -------------------------------------------------------------------------- outliers


@pytest.mark.parametrize("options", [(), ("--contamination", 0.1)])
def test_many_outliers_are_hinted_at(fit, rng, options):
    common = "--estimator", "outliers", *options
    _, out, err = fit("a,b", rng.normal(size=(100, 2)).tolist(), *common)
    said = "training rows are outliers; --contamination SHARE sets the share of"
    n = int(pairs(out)["predicted"].split("outliers ")[1].split()[0])
    assert (n > 20) == (f"hint: {n} of 100 {said}" in err) == (not options)
    assert err.count("\n") == (not options)
