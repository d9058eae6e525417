"""Tables in svmlight format: rows, indices, and every malformed line."""

import numpy as np
import pytest
from _commands.tables.table_cases import dense
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxent._commands.tables import data_files as tables
from maxent._commands.tables.data_files import TableError, read_table

# ----------------------------------------------------------------------- svmlight


def test_svmlight_rows_comments_and_queries(write):
    text = "# head\n\n1 1:2 3:-0.5 # note\r\n-1 qid:7 2:1e1\n0\n  \n"
    table = read_table(write(text, "data.svm"))
    assert sparse.issparse(table.X) and table.X.format == "csr"
    assert dense(table).tolist() == [[2, 0, -0.5], [0, 10, 0], [0, 0, 0]]
    assert table.y.tolist() == [1, -1, 0] and table.y.dtype == np.int64
    assert (table.format, table.zero_based) == ("svmlight", False)
    assert table.feature_names is None


def test_svmlight_indices_from_zero(write):
    text = "1 0:2 1:3\n2 2:4\n"
    table = read_table(write(text, "data.svm"))
    assert dense(table).tolist() == [[2, 3, 0], [0, 0, 4]] and table.zero_based
    text = "1 1:3\n2 2:4\n"
    table = read_table(write(text, "data.svm"), zero_based=True)
    assert dense(table).tolist() == [[0, 3, 0], [0, 0, 4]]


def test_svmlight_gets_the_expected_width(write):
    table = read_table(write("1 1:2\n2\n", "x.svm"), n_features=4)
    assert dense(table).tolist() == [[2, 0, 0, 0], [0] * 4]
    assert read_table(write("1\n2\n", "x.svm"), n_features=3).X.shape == (2, 3)
    with pytest.warns(UserWarning, match="has 4 features; 1 entries of others"):
        table = read_table(write("1 2:3 5:2\n", "x.svm"), n_features=4)
    assert dense(table).tolist() == [[0, 3, 0, 0]]
    with pytest.raises(
        TableError, match="index is 0, but the indices are to start at 1"
    ):
        read_table(write("1 0:2\n", "x.svm"), zero_based=False)


def test_svmlight_labels_can_be_dropped_but_not_moved(write):
    path = write("1 1:2\n", "x.svm")
    assert read_table(path, labelled=False).y is None
    assert read_table(path, label=0).y.tolist() == [1]
    with pytest.raises(TableError, match="rows start with the label"):
        read_table(path, label="kind")


def test_a_wide_file_keeps_its_width(write, rng):
    where = np.sort(rng.choice(1_300_000, size=(2000, 3), replace=False), axis=1) + 1
    where[7, 2] = 1_300_000
    lines = ["1 " + " ".join(f"{i}:1" for i in row) for row in where.tolist()]
    table = read_table(write("\n".join(lines), "x.svm"))
    assert table.X.shape == (2000, 1_300_000) and table.X.nnz == 6000
    table = read_table(write("1 16777216:1\n", "x.svm"))  # hashed to 2^24
    assert table.X.shape == (1, 2**24)


def test_an_index_out_of_proportion_is_refused(write):
    text = "# head\n1 1:2\n\n-1 2:1 {}:1\n1 3:1\n"
    for index, width in ((2**31 - 1, 2**31 - 1), (2**24 + 1, 2**24 + 1)):
        with pytest.raises(TableError, match=r"x\.svm, line 4: ") as caught:
            read_table(write(text.format(index), "x.svm"))
        message = str(caught.value)
        assert f"feature index {index} asks for {width} columns" in message
        assert "this one has 4" in message and "hash them" in message
    with pytest.raises(TableError, match=f"asks for {2**31} columns"):
        read_table(write(f"1 0:1\n1 {2**31 - 1}:1\n", "x.svm"))
    # a model says how many there are
    table = read_table(write(text.format(2**24 + 1), "x.svm"), n_features=2**25)
    assert table.X.shape == (3, 2**25)


def test_entries_justify_columns(write, monkeypatch):
    monkeypatch.setattr(tables, "_FREE_COLUMNS", 5)
    rows = "1 1:1 2:1 3:1 4:1\n" * 2
    assert read_table(write(rows + "1 9:1\n", "x.svm")).X.shape == (3, 9)
    with pytest.raises(TableError, match=r"line 3: .* index 10 asks for 10 columns"):
        read_table(write(rows + "1 10:1\n", "x.svm"))


MALFORMED_SVMLIGHT = {
    "# only\n# comments\n": "is empty but for comments",
    "1\n2\n": "no row has a feature",
    "1 1:2\nx 1:2\n": "line 2: the label 'x' is not a number",
    "1 1:2\n1:2 2:3\n": "line 2: the label '1:2' .* write 0 if there is none",
    "1 1:2\n1,2 2:3\n": "line 2: the label '1,2' .* several labels a row",
    "1 1:2\nnan 1:2\n": "line 2: the label 'nan' is not finite",
    "1 1:2\n1 1\n": "line 2: '1' is not of the form index:value",
    "1 1:2\n1 a:1\n": "line 2: 'a:1' is not of the form",
    "1 1:2\n1 -1:1\n": "line 2: '-1:1' is not of the form",
    "1 1:2\n1 1: 2\n": "line 2: the value '' of feature 1 is not a number",
    "1 1:2\n1 1:x\n": "line 2: the value 'x' of feature 1 is not a number",
    "1 1:2\n1 1:1_0\n": "line 2: the value '1_0' of feature 1 is not a number",
    "1 1:2\n1 1:nan\n": "line 2: the value 'nan' of feature 1 is not finite",
    "1 1:2\n1 1:1e999\n": "line 2: the value '1e999' of feature 1 is not finite",
    "1 1:2\n1 2:1 2:3\n": "line 2: the feature index 2 follows 2; indices must incr",
    "1 1:2\n1 3:1 2:3\n": "line 2: the feature index 2 follows 3",
    "1 1:2\n1 99999999999:1\n": "line 2: the feature index '99999999999' is larger",
    "1 1:2\n# x\n\n1 1:\xff\n": "line 4: the value",
}


@pytest.mark.parametrize("text", MALFORMED_SVMLIGHT, ids=range(len(MALFORMED_SVMLIGHT)))
@pytest.mark.parametrize("format", ["auto", "svmlight"])
def test_every_malformed_svmlight_line_is_named(write, text, format):
    path = write(text.encode("latin-1"), "data.svm")
    with pytest.raises(TableError, match=MALFORMED_SVMLIGHT[text]) as caught:
        read_table(path, format=format)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@settings(max_examples=40)
@given(rows=st.integers(1, 30), where=st.integers(0, 10**6), data=st.data())
def test_a_bad_svmlight_line_anywhere_is_found(write, rows, where, data):
    bad = data.draw(st.sampled_from(["1 1", "x 1:1", "1 2:1 1:1", "1 1:z", "1 1:inf"]))
    lines = ["1 1:0.5 4:2"] * rows
    lines[where % rows] = bad
    with pytest.raises(TableError, match=f"line {where % rows + 1}: "):
        read_table(write("\n".join(lines), "x.svm"))
