"""Frames of columns of several types: categories are what their values are."""

import numpy as np
import pytest
from refusals import refused

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDOutlierDetector,
    MEDPartialLabelClassifier,
    MEDTreeClassifier,
)
from maxent.discrimination import LatentMixture

N = 24
Y = np.arange(N) % 2
TEXT = np.array(["red", "green", "blue"])[(7 * np.arange(N) // 3) % 3].tolist()
NUMBERS = [(5 * i // 2) % 3 for i in range(N)]
TRUTHS = [bool(i % 5 < 2) for i in range(N)]
HOLES = [None if i % 7 == 3 else x for i, x in enumerate(NUMBERS)]

READERS = {
    "tree": lambda **rules: MEDTreeClassifier(**rules),
    "net": lambda **rules: MEDBayesNetClassifier(**rules),
    "Chow-Liu": lambda **rules: ChowLiuClassifier(**rules),
    "tree detector": lambda **rules: MEDOutlierDetector("tree", **rules),
    "multinomial detector": lambda **rules: MEDOutlierDetector("multinomial", **rules),
    "mixture detector": lambda **rules: MEDOutlierDetector(
        LatentMixture("multinomial", random_state=0), **rules
    ),
    "partial labels": lambda **rules: MEDPartialLabelClassifier(
        MEDTreeClassifier(**rules)
    ),
}

PANDAS = {
    "numbers": ["int64", "Int64", "Int8", "float64", "Float64", "category", "object"],
    "truths": ["bool", "boolean", "category", "object"],
    "text": ["category", "object", "string"],
    "holes": ["Int64", "Float64", "float64", "object"],
}
ARROW = {"numbers": "int64", "truths": "bool_", "text": "string", "holes": "float64"}
MESSAGE = "column 'day' of X holds dates or times"
VALUES = {"numbers": NUMBERS, "truths": TRUTHS, "text": TEXT, "holes": HOLES}


def scores(make, X, missing=None):
    machine = make(missing=missing).fit(X, Y)
    method = getattr(machine, "decision_function", None) or machine.predict_proba
    return method(X)


def plain(*kinds):
    """The columns as objects."""
    return np.array([VALUES[kind] for kind in kinds], dtype=object).T


def columns_of(pd, kind):
    for dtype in PANDAS[kind]:
        yield pd.Series(VALUES[kind], dtype=dtype)


def alike(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_pandas_frames_of_several_types(reader):
    pd = pytest.importorskip("pandas")
    kinds = {"text": "category", "truths": "boolean", "numbers": "Int64"}
    frame = pd.DataFrame(
        {kind: pd.Series(VALUES[kind], dtype=dtype) for kind, dtype in kinds.items()}
    )
    alike(scores(READERS[reader], frame), scores(READERS[reader], plain(*kinds)))


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_polars_and_arrow_tables(reader):
    pl = pytest.importorskip("polars")
    kinds = ["text", "truths", "numbers"]
    frame = pl.DataFrame({kind: VALUES[kind] for kind in kinds})
    frame = frame.with_columns(pl.col("text").cast(pl.Categorical))
    expected = scores(READERS[reader], plain(*kinds))
    alike(scores(READERS[reader], frame), expected)
    pytest.importorskip("pyarrow")
    alike(scores(READERS[reader], frame.to_arrow()), expected)


@pytest.mark.parametrize("kind", ["numbers", "truths", "holes"])
def test_pandas_columns_of_any_type_beside_text_of_any_type(kind):
    pd = pytest.importorskip("pandas")
    missing = "category" if kind == "holes" else None
    expected = scores(ChowLiuClassifier, plain("text", kind), missing)
    for text in columns_of(pd, "text"):
        for column in columns_of(pd, kind):
            for order in ("ab", "ba"):
                frame = pd.DataFrame({"a": text, "b": column})[list(order)]
                alike(scores(ChowLiuClassifier, frame, missing), expected)


@pytest.mark.parametrize("kind", ARROW)
def test_arrow_columns_of_pandas(kind):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    missing = "category" if kind == "holes" else None
    dtype = pd.ArrowDtype(getattr(pa, ARROW[kind])())
    column = pd.Series(VALUES[kind], dtype=dtype)
    expected = scores(ChowLiuClassifier, plain("text", kind), missing)
    for other in columns_of(pd, "text"):
        frame = pd.DataFrame({"a": other, "b": column})
        alike(scores(ChowLiuClassifier, frame, missing), expected)


@pytest.mark.parametrize("kind", VALUES)
def test_polars_columns_beside_text(kind):
    pl = pytest.importorskip("polars")
    missing = "category" if kind == "holes" else None
    expected = scores(ChowLiuClassifier, plain("text", kind), missing)
    for dtype in (pl.String, pl.Categorical):
        columns = {"a": pl.Series(TEXT, dtype=dtype), "b": pl.Series(VALUES[kind])}
        alike(scores(ChowLiuClassifier, pl.DataFrame(columns), missing), expected)


@pytest.mark.parametrize("reader", READERS)
def test_rows_to_predict_may_be_of_other_types_than_those_of_training(reader):
    pd = pytest.importorskip("pandas")
    text = pd.Series(TEXT, dtype="category")
    machine = READERS[reader]().fit(
        pd.DataFrame({"a": text, "b": pd.Series(NUMBERS, dtype="Int64")}), Y
    )
    expected = machine.predict(pd.DataFrame({"a": TEXT, "b": NUMBERS}))
    for a in columns_of(pd, "text"):
        for b in columns_of(pd, "numbers"):
            found = machine.predict(pd.DataFrame({"a": a, "b": b}))
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("machine", [MEDTreeClassifier(), MEDClassifier()])
@pytest.mark.parametrize("kind", ["numbers", "truths", "text"])
def test_dates_of_polars_and_arrow_are_no_numbers(machine, kind):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    dates = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, N), eager=True)
    frame = pl.DataFrame({"day": dates, "b": VALUES[kind]})
    refused(lambda: machine.fit(frame, Y), MESSAGE)
    refused(lambda: machine.fit(frame.to_arrow(), Y), MESSAGE)
