"""Missing values, continuous columns and strings in the models of categories."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from oracles.missing_values import KINDS, frames, with_missing
from oracles.tree_problems import categories
from refusals import refused

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDOutlierDetector,
    MEDTreeClassifier,
    load,
    save,
)

MODELS = {
    "net": MEDBayesNetClassifier(level=3.0),
    "trees": MEDTreeClassifier(level=3.0),
    "random tables": MEDTreeClassifier("dirichlet", level=3.0),
    "chow liu": ChowLiuClassifier(),
    "multinomial": MEDOutlierDetector("multinomial"),
    "tree detector": MEDOutlierDetector("tree"),
}
ALL = pytest.mark.parametrize("name", list(MODELS))


def make(name, **options):
    from sklearn.base import clone

    return clone(MODELS[name]).set_params(**options)


def answers(model, X):
    ask = "predict_log_proba" if isinstance(model, ChowLiuClassifier) else None
    return getattr(model, ask or "decision_function")(X)


def hide(rng, X, share=0.2):
    """Entries to hide, so that each column keeps its first rows and loses some."""
    at = rng.random(X.shape) < share
    at[:9], at[9] = False, True
    return at


# ------------------------------------------------------------------------- prediction


@ALL
def test_missing_values_of_every_kind_are_ignored_by_predict(name, rng):
    X, y = categories(rng, 120)
    model = make(name).fit(X, y)
    at = hide(rng, X)
    found = [answers(model, with_missing(X, at, value)) for value in KINDS.values()]
    floats = X.astype(float)
    floats[at] = np.nan
    found.append(answers(model, floats))
    found.append(answers(model, with_missing(X, at, None).tolist()))
    found += [answers(model, frames(X, at)[kind]) for kind in ("Int64", "float64")]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    codes = np.where(at, -1, X)
    if name in ("net", "trees", "random tables"):
        low, high = (p.expected_log_prob(codes) for p in model.posteriors_)
        want = high - low + model.intercept_[0]
    elif name == "chow liu":
        return
    else:  # no penalty, which categories never seen have
        want = model.posterior_.expected_log_prob(codes) - model.offset_
    np.testing.assert_allclose(found[0], want, rtol=1e-12, atol=1e-12)


@ALL
def test_text_with_missing_values_is_the_same_in_every_frame(name, rng):
    X, y = categories(rng, 120)
    at = hide(rng, X)
    plain = frames(X, np.zeros(X.shape, dtype=bool))
    model = make(name).fit(plain["object"], y)
    found = [answers(model, frames(X, at)[k]) for k in ("object", "string", "category")]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    lists = [
        [None if v is None or v is pd.NA else v for v in row]
        for row in with_missing(plain["object"].to_numpy(), at, None).tolist()
    ]
    np.testing.assert_array_equal(answers(model, pd.DataFrame(lists)), found[0])
    nested = with_missing(plain["object"].to_numpy(), at, np.nan).tolist()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        np.testing.assert_array_equal(answers(model, nested), found[0])


# --------------------------------------------------------------------------- training


@ALL
@pytest.mark.parametrize("kind", list(KINDS))
def test_fit_refuses_missing_values_with_the_remedy(name, kind, rng):
    X, y = categories(rng, 60)
    at = np.zeros(X.shape, dtype=bool)
    at[7, 2] = True
    shown = {"NA": "<NA>"}.get(kind, kind)
    remedy = rf"X\[7, 2\]{{}} is {shown}, a missing value; use missing='category'"
    named = pd.DataFrame(
        with_missing(X, at, KINDS[kind]), columns=[*"abcdefghij"][: X.shape[1]]
    )
    refused(lambda: make(name).fit(named, y), remedy.format(r" \(column 'c'\)"))
    remedy = remedy.format("")
    refused(lambda: make(name).fit(with_missing(X, at, KINDS[kind]), y), remedy)


@ALL
@pytest.mark.parametrize("kind", ["None", "NaN", "NA", "Int64", "string", "category"])
def test_missing_values_as_a_category_are_like_any_other(name, kind, rng, tmp_path):
    X, y = categories(rng, 120)
    at = hide(rng, X)
    filled = np.where(at, 7, X)  # the last category of numbers
    data = with_missing(X, at, KINDS[kind]) if kind in KINDS else frames(X, at)[kind]
    if kind in ("string", "category"):  # "<missing>" is before the letters
        filled = np.where(at, -1, X) + 1
    model = make(name, missing="category").fit(data, y)
    want = make(name).fit(filled, y)
    np.testing.assert_array_equal(answers(model, data), answers(want, filled))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(answers(again, data), answers(model, data))


def test_missing_values_that_training_lacked_are_unknown(rng):
    X, y = categories(rng, 60)
    new = X.astype(float)[:3]
    new[0, 1] = np.nan
    plain = MEDTreeClassifier(level=3.0).fit(X, y)
    model = MEDTreeClassifier(level=3.0, missing="category").fit(X, y)
    np.testing.assert_array_equal(answers(model, new), answers(plain, new))
    strict = ChowLiuClassifier(missing="category", handle_unknown="error").fit(X, y)
    refused(lambda: strict.predict(new), r"X\[0, 1\] = nan is a category unseen")


@ALL
@pytest.mark.parametrize("wrong", ["ignore", 3, np.nan, True])
def test_wrong_words_for_missing_are_named(name, wrong, rng):
    X, y = categories(rng, 60)
    refused(lambda: make(name, missing=wrong).fit(X, y), r"\bmissing=")


def test_missing_is_for_models_of_categories(rng):
    model = MEDOutlierDetector(missing="category")
    refused(lambda: model.fit(rng.normal(size=(30, 2))), "missing='category' is for")


@ALL
def test_infinite_numbers_are_refused(name, rng):
    X, y = categories(rng, 60)
    wrong = X.astype(float)
    wrong[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        make(name).fit(wrong, y)
    with pytest.raises(ValueError, match="infinity"):
        make(name, missing="category").fit(X, y).predict(wrong)


# ----------------------------------------------------- columns that are no categories


@ALL
def test_continuous_columns_are_named_once_with_the_remedy(name, rng):
    X, y = categories(rng, 60)
    data = X.astype(float)
    data[:, 1] = rng.normal(size=60)
    data[:, 3] = rng.permutation(60) // 2 + 0.5  # 30 values, half of the rows
    with pytest.warns(UserWarning, match="column 1 of X .*KBinsDiscretizer") as found:
        make(name).fit(data, y)
    (one,) = (w for w in found if "KBins" in str(w.message))
    assert one.filename == __file__
    with pytest.warns(UserWarning, match="column 1 of X .*KBinsDiscretizer"):
        make(name).fit(pd.DataFrame({**pd.DataFrame(data), 2: list("ab") * 30}), y)


@ALL
def test_codes_and_text_give_no_warning_of_numbers(name, rng):
    X, y = categories(rng, 60)
    X[:, 0] = np.arange(60) // 2  # integers may be codes of rare categories
    X[:9, 1] = np.arange(50, 59)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        make(name).fit(X, y)
        make(name).fit(X.astype(str), y)
        X[:, 0] = np.arange(60)
        make(name).fit(X.astype(str), y)
    assert not [w for w in said if "different numbers" in str(w.message)]


@ALL
def test_numbers_of_the_rows_are_no_categories(name, rng):
    X, y = categories(rng, 60)
    X[:, 3] = rng.permutation(60)
    words = "the column 3 of X holds 60 different numbers in 60 rows: bin it"
    with pytest.warns(UserWarning, match=words):
        make(name).fit(X, y)
    make(name).fit(X[:9], y[:9])  # few numbers may be categories


@ALL
def test_a_column_without_a_known_category_is_named_once(name, rng):
    X, y = categories(rng, 60)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make(name).fit(frame, y)
    other = frame.astype({"b": str, "d": str})
    text = r"feature 1 \(column 'b'\) of X.*nor in 1 other.*such as '\d'.*\[0, 1, 2\]"
    with pytest.warns(UserWarning, match=text) as caught:
        answers(model, other)
    assert len(caught) == 1 and caught[0].filename == __file__
    answers(model, other[:9])  # a few rows may be new by chance
    other["b"], other["d"] = None, [0, *other["d"][1:]]
    answers(model, other)  # missing, and known once


@ALL
def test_real_numbers_are_not_told_of_again(name, rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.warns(UserWarning, match="the columns .* hold up to 60 different"):
        model = make(name).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        answers(model, rng.normal(size=(60, 3)))
    assert not said


QUANTITIES = {  # columns, and the words of the warning
    "one of integers": (["days"], "the column 'days' of X holds 190 different numbers"),
    "all": (
        ["size", "days", "long"],
        "'size', 'days', 'long' of X hold up to 340 different numbers in 340 rows",
    ),
    "none": (["grade"], None),
    "rounded, of which nearly all repeat": (["age"], None),
}


@pytest.mark.parametrize("case", list(QUANTITIES))
@ALL
def test_columns_of_quantities_are_all_named_before_the_fit(name, case, rng):
    n, (columns, words) = 340, QUANTITIES[case]
    X = pd.DataFrame({"kind": rng.integers(4, size=n), "grade": rng.choice(9, n) / 2})
    X["size"] = rng.integers(80, size=n) / 10  # as the depth of penguins' bills
    X["days"] = rng.permutation(np.minimum(np.arange(n) + 1.0, 190))
    X["age"] = rng.normal(45, 12, size=n).round()
    assert X["age"].nunique() > 50
    X["long"] = rng.normal(size=n)
    model = make(name)
    if words is None:
        model.fit(X[["kind", *columns]].astype(float), np.arange(n) % 2)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=words):  # nothing is fitted yet
            model.fit(X[["kind", *columns]], np.arange(n) % 2)
    assert not hasattr(model, "converged_")


@ALL
def test_dates_are_refused_beside_text_and_beside_numbers(name):
    day = pd.date_range("2024-01-01", periods=40)
    y = np.arange(40) % 2
    for other in (list("ab") * 20, [1, 2] * 20):
        X = pd.DataFrame({"other": other, "when": day})
        refused(lambda X=X: make(name).fit(X, y), "'when'.* dates? or times?")


@ALL
def test_intervals_and_periods_are_text_and_can_be_saved(name, rng, tmp_path):
    size, y = rng.normal(size=40), np.arange(40) % 2
    cut = pd.cut(pd.Series(size), [-9.0, -1.0, 0.0, 9.0])
    month = pd.Series(pd.period_range("2024-01", periods=3, freq="M")[y + 1])
    X = pd.DataFrame({"size": cut, "kind": list("ab") * 20, "month": month})
    X.loc[3, "month"] = pd.NaT
    model = make(name, missing="category").fit(X, y)
    assert model.categories_[0].tolist() == sorted(map(str, cut.cat.categories))
    assert "2024-02" in model.categories_[2]
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(answers(again, X), answers(model, X))
    text = X.astype({"size": str})
    np.testing.assert_array_equal(answers(again, text), answers(model, X))


# -------------------------------------------------------------- sequences as strings


@ALL
@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, "objects", "column"])
def test_sequences_as_strings_say_how_to_split_them(name, wrap, rng):
    y = np.arange(40) % 2
    X = ["".join(rng.choice(list("ACGT"), size=12)) for _ in y]
    split = np.array([list(s) for s in X])
    model = make(name).fit(split, y)
    given = {
        "objects": lambda x: np.array(x, dtype=object),
        "column": lambda x: np.array(x)[:, None],
    }.get(wrap, wrap)
    remedy = re.escape("split them by np.array([list(s) for s in ")
    refused(lambda: make(name).fit(given(X), y), remedy)
    if wrap != "column":
        refused(lambda: model.predict(given(X)), remedy)
    X[3] = X[3][:-2]
    refused(lambda: make(name).fit(given(X), y), remedy + ".*one length.*10 to 12")


def test_a_single_column_of_few_words_is_one_feature(rng):
    X = rng.choice(["red", "green", "blue"], size=(40, 1))
    y = np.arange(40) % 2
    assert MEDBayesNetClassifier(level=1.0).fit(X, y).n_features_in_ == 1
