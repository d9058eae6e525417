"""Tables: both formats read alike, and every malformed line named."""

import bz2
import gzip
import lzma
import os
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from _commands.tables.table_cases import dense
from hypothesis import given, settings
from hypothesis import strategies as st

from maxent._commands.tables.data_files import TableError, read_table
from maxent._support import files

# --------------------------------------------------------------------------- CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_delimiters_line_ends_and_marks_do_not_matter(write, delimiter, end, bom):
    rows = ["a,b,kind", "1,2.5,x", "-3e2,.5,y"]
    text = end.join(rows).replace(",", delimiter) + end * 3
    table = read_table(write(bom + text.encode()))
    assert table.X.tolist() == [[1, 2.5], [-300, 0.5]]
    assert table.X.dtype == np.float64 and table.X.flags.c_contiguous
    assert table.y.tolist() == ["x", "y"]
    assert table.feature_names == ["a", "b"] and table.label_name == "kind"
    assert (table.format, table.label_index, table.zero_based) == ("csv", 2, None)


def test_files_without_header_are_recognised(write):
    table = read_table(write("1,2,0\n3,4,1\n"))
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert table.feature_names is None and table.label_name is None
    table = read_table(write("1,2,yes\n3,4,no\n"))
    assert table.y.tolist() == ["yes", "no"]


def test_a_header_can_be_forced_either_way(write):
    path = write("1,2,3\n4,5,6\n")
    table = read_table(path, header=True)
    assert table.feature_names == ["1", "2"] and table.y.tolist() == [6]
    path = write("a,b,c\n4,5,6\n")
    with pytest.raises(TableError, match=r"line 1, column 0 .*'a' is not a number"):
        read_table(path, header=False)


@pytest.mark.parametrize("text", ["2019,2020,label\n1,2,0\n", "x,2,1\n3,4,0\n"])
def test_a_first_row_that_may_be_either_is_not_guessed(write, text):
    with pytest.raises(TableError, match=r"line 1: .*say whether the row is a header"):
        read_table(write(text))


@pytest.mark.parametrize(
    "label, X, y, name",
    [
        ("k", [[1, 2], [4, 5]], [3, 6], "k"),
        ("b", [[1, 3], [4, 6]], [2, 5], "b"),
        (0, [[2, 3], [5, 6]], [1, 4], "a"),
        (-3, [[2, 3], [5, 6]], [1, 4], "a"),
        ("-1", [[1, 2], [4, 5]], [3, 6], "k"),
        (None, [[1, 2], [4, 5]], [3, 6], "k"),
    ],
)
def test_the_label_column_is_chosen_by_name_or_number(write, label, X, y, name):
    table = read_table(write("a,b,k\n1,2,3\n4,5,6\n"), label=label)
    assert table.X.tolist() == X and table.y.tolist() == y
    assert table.label_name == name


def test_a_column_named_like_a_number_goes_before_the_number(write):
    table = read_table(write("a,0,c\n1,2,3\n"), label="0", header=True)
    assert table.y.tolist() == [2]


def test_labels_may_be_absent(write):
    table = read_table(write("a,b\n1,2\n"), labelled=False)
    assert table.X.tolist() == [[1, 2]]
    assert table.y is None and table.label_name is None


@pytest.mark.parametrize(
    "cells, kind, values",
    [
        (["1", "-1"], "i", [1, -1]),
        (["1.0", "2e0"], "i", [1, 2]),
        (["1.5", "2"], "f", [1.5, 2]),
        (["1e300", "2"], "f", [1e300, 2]),
        (["1", "x"], "U", ["1", "x"]),
        ([" a b ", '"c,d"'], "U", ["a b", "c,d"]),
        (["é", "nano"], "U", ["é", "nano"]),
    ],
)
def test_labels_are_integers_numbers_or_text(write, cells, kind, values):
    text = "f,k\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    y = read_table(write(text)).y
    assert y.dtype.kind == kind and y.tolist() == values


_LARGE = 2**53


@pytest.mark.parametrize("layout", ["{0},{1}", "{1},{0},{0}", "?,{0},{1}", "{1} 1:{0}"])
@pytest.mark.parametrize(
    "labels",
    [
        [_LARGE, _LARGE + 1, _LARGE],
        [-_LARGE - 1, -_LARGE, 3],
        [2**63 - 1, 2**63 - 2, -(2**63)],
    ],
)
def test_whole_labels_of_64_bits_are_exact(write, layout, labels):
    rows = "".join(layout.format(i, label) + "\n" for i, label in enumerate(labels))
    target = 0 if layout.startswith("{1}") else -1
    table = read_table(write(rows), header=False, label=target, columns="mixed")
    assert table.y.dtype == np.int64 and table.y.tolist() == labels


def test_larger_labels_of_digits_are_text(write):
    labels = [str(10**30), str(10**30 + 1), "2"]
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    assert read_table(write(rows)).y.tolist() == labels
    for cells in (["1e30", "2e30"], ["0.5", str(10**30)], ["1e17", "0.5"]):
        rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
        table = read_table(write(rows))
        assert table.y.dtype == np.float64 and table.y.tolist() == [*map(float, cells)]


def test_text_in_a_late_label_makes_all_labels_text(write):
    text = "f,k\n" + "0.5,1\n" * 50 + "0.5,x\n"
    y = read_table(write(text)).y
    assert y.dtype.kind == "U" and y[0] == "1" and y[-1] == "x"


def test_quoted_cells_and_spaces_are_numbers(write):
    assert read_table(write('"a","k"\n"1.5", 2 \n')).X.tolist() == [[1.5]]


@pytest.mark.parametrize(
    "text",
    [
        "a;b;k\n1,5;-,5;x\n2;1,5e2;1,2 l\n",
        "1,5\t-,5\tx\n2\t1,5e2\t1,2l\n",
        '"1,5" -,5 x\n2  1,5e2 1,2l\n',
        'a,b,k\n"1,5","-,5",x\n2,"1,5e2",y\n',
    ],
)
def test_decimal_commas_are_read_where_they_are_said(write, text):
    table = read_table(write(text), decimal=",")
    assert table.X.tolist() == [[1.5, -0.5], [2, 150]]
    assert table.y[1] in ("1,2 l", "1,2l", "y")


def test_blank_lines_are_left_out_but_counted(write):
    table = read_table(write("\na,k\n\n1,2\n   \n3,4\n\n\n"))
    assert table.X.tolist() == [[1], [3]]
    with pytest.raises(TableError, match="line 5, column 'a'"):
        read_table(write("\na,k\n\n1,2\nx,4\n"))


def test_known_features_are_found_by_name(write):
    path = write("id,b,a,k\nr1,2,1,x\nr2,4,3,y\n")
    table = read_table(path, feature_names=["a", "b"], n_features=2)
    assert table.X.tolist() == [[1, 2], [3, 4]] and table.X.flags.c_contiguous
    assert table.feature_names == ["a", "b"] and table.y.tolist() == ["x", "y"]
    with pytest.raises(
        TableError, match="no column 'c', 'd'; its columns are 'id', 'b'"
    ):
        read_table(path, feature_names=["c", "a", "d"])


def test_a_numeric_label_beside_left_out_columns(write):
    path = write("k,id,a\n1,r1,5\n0,r2,6\n")
    table = read_table(path, feature_names=["a"], label="k")
    assert table.X.tolist() == [[5], [6]] and table.y.tolist() == [1, 0]


@pytest.mark.parametrize(
    "text, expected",
    [("1,2,9\n", [9]), ("1,2\n", None), ("a,b,k\n1,2,9\n", [9]), ("b,a\n1,2\n", None)],
)
def test_labels_are_taken_if_they_are_there(write, text, expected):
    table = read_table(write(text), labelled="auto", n_features=2)
    assert table.X.shape == (1, 2)
    assert (table.y if expected is None else table.y.tolist()) == expected


@pytest.mark.parametrize(
    "text, expected", [("k,b,a\n1,2,3\n", [1]), ("a,b\n3,2\n", None)]
)
def test_labels_are_taken_by_the_name_they_had(write, text, expected):
    table = read_table(
        write(text), labelled="auto", label="k", feature_names=["a", "b"], n_features=2
    )
    assert table.X.tolist() == [[3, 2]]
    assert (table.y if expected is None else table.y.tolist()) == expected


def test_a_named_label_without_header_is_not_guessed(write):
    with pytest.raises(TableError, match="no header and one column more than the 2"):
        read_table(write("1,2,3\n"), labelled="auto", label="k", n_features=2)


MALFORMED_CSV = {
    "": "is empty",
    "\n \r\n": "is empty",
    '""\n': "is empty",
    "a,b,k\n": "has a header but no rows",
    "a,a,k\n1,2,3\n": r"line 1: columns 0 and 1 .* the same name 'a'",
    "a,k\n1,2\n1,2,3\n": "line 3: 3 cells, but the first row has 2",
    "a,b,k\n1,2,3\n1,2\n": "line 3: 2 cells, but the first row has 3",
    "a,k\n1,x\n2,y\n3,y,z\n": "line 4: 3 cells",
    "a,k\n1,2\n,3\n": "line 3, column 'a': the cell is empty",
    "a,k\n1,2\nx y,3\n": "line 3, column 'a': 'x y' is not a number",
    "a,k\n1,2\n1_0,3\n": "line 3, column 'a': '1_0' is not a number",
    "a,k\n1,2\n\u0661,3\n": "line 3, column 'a': .* is not a number",
    "a,k\n1,2\nnan,3\n": "line 3, column 'a': 'nan' stands for a missing value",
    "a,k\n1,2\n-inf,3\n": "line 3, column 'a': '-inf' is not a finite number",
    "a,k\n1,2\n1e999,3\n": "line 3, column 'a': '1e999' is not a finite number",
    "a,k\n1,2\n1,\n": "line 3, column 'k': the label is empty",
    "a,k\n1,x\n1,\n": "line 3, column 'k': the label is empty",
    "a,k\n1,2\n1,nan\n": "line 3, column 'k': the label 'nan' stands for none",
    "a,k\n1,2\n1,inf\n": "line 3, column 'k': the label 'inf' is not finite",
    "1,2,3\n4,5x,6\n": r"line 2, column 1 \(counted from 0\): '5x' is not a number",
    "1,5;2,5;a\n2,5;3,5;b\n": "line 2, .*'2,5' is not a number; decimals need a point",
    "a,k\n1," + "x" * 2000 + "\n": "the label is longer than 1000 characters",
    "a,k\n" + "9" * 200 + "z,1\n": r"'9{27}\.\.\.' is not a number",
    "x\n1\n2\n": "has one column only",
    "a,k\n\x00,1\n": "line 2: a zero byte, as no text has; the file is damaged",
    'a,k\n1,"2\n3,4\n' + "5,6\n" * 40000: "field larger than field limit",
}


@pytest.mark.parametrize("text", MALFORMED_CSV, ids=range(len(MALFORMED_CSV)))
def test_every_malformed_csv_is_named(write, text):
    path = write(text)
    with pytest.raises(TableError, match=MALFORMED_CSV[text]) as caught:
        read_table(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message and len(message) < len(str(path)) + 200


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
@pytest.mark.parametrize("label", ["u", "1"])
@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
@pytest.mark.parametrize("header", [True, False])
def test_the_line_of_a_quote_that_is_not_closed_is_named(
    write, delimiter, label, end, header
):
    first = 2 if delimiter == " " else 1  # blanks are found from a first row
    for n in (3, 40):  # within the rows that the delimiter is guessed from, and below
        for line in sorted({first, 2, n}):
            for cell in range(3):
                rows = [["3", str(i + 4), label] for i in range(n)]
                if header:
                    rows[0] = ["a", "b", "k"]
                rows[line - 1][cell] = f'"{rows[line - 1][cell]}'
                text = "\n".join(delimiter.join(row) for row in rows) + end
                with pytest.raises(TableError, match=rf"line {line}:.* quote .*closed"):
                    read_table(write(text), format="csv", header=header)


@pytest.mark.parametrize(
    "text, line",
    [
        ('a,k\n1,"u\n2,v\n3,"u"\n4,v\n', 2),  # closed by the quote of a later cell
        ('a,k\n1,u\n"2,v\n"3",u\n4,v\n', 3),
        ('a,k\n1,u\n2,"v\n3,"u,v",2\n4,v\n', 3),
        ('a,k\n1,u\n2,v\n3,"v\n4,u"\n"5",u\n6,"v', 6 + 1),
        ('a,b,k\n1,2,u\n"2,3,v\n3,4",u\n4,5,u\n', 3),
        ('a,k\n1,u\n2,"v\n' + "3,v\n" * 40000, 3),
    ],
)
def test_a_quote_that_a_later_one_closes_is_named(write, text, line):
    with pytest.raises(TableError, match=f"line {line}: .*quote.* not.* closed"):
        read_table(write(text))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_cells_in_quotes_may_hold_lines(write, delimiter):
    rows = [["a", '"b\nc"', "k"], ["1", "2", '"u ""x""\nv\n"'], ["3", '"4"', '"w"']]
    text = "\n".join(delimiter.join(row) for row in rows)
    table = read_table(write(text), header=True)
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert table.y.tolist() == ['u "x"\nv', "w"]
    assert table.feature_names == ["a", "b\nc"]


def test_a_very_long_cell_is_named(write):
    text = f"a,b,k\n1,2,u\n2,{'z' * 140_000},v\n3,1,u\n"
    with pytest.raises(TableError, match="line 3: a cell has more than 131072 char"):
        read_table(write(text), ignore=["b"])


def test_unknown_label_columns_list_the_known_ones(write):
    path = write("a,b,k\n1,2,3\n")
    with pytest.raises(
        TableError, match="no column 'z'; its columns are 'a', 'b', 'k'"
    ):
        read_table(path, label="z")
    with pytest.raises(TableError, match=r"has 3 columns, so no column 3; .*0 to 2"):
        read_table(path, label=3)
    with pytest.raises(TableError, match="so no column -4"):
        read_table(path, label="-4")
    with pytest.raises(TableError, match="no header, so no column 'k'"):
        read_table(write("1,2,3\n"), label="k")


def test_a_wrong_number_of_features_is_named(write):
    with pytest.raises(
        TableError, match="2 feature columns beside the label, but 5 are"
    ):
        read_table(write("1,2,3\n"), n_features=5)
    with pytest.raises(TableError, match="3 feature columns, but 5 are expected"):
        read_table(write("1,2,3\n"), n_features=5, labelled="auto")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"a,k\n1,2\n\xff,3\n", "line 3: the byte 0xff is not in UTF-8; .* latin-1"),
        (b"\xff\xfea\x00", "line 1: the byte 0xff is not in UTF-8; .* utf-16"),
        (b"a\x00\xff", "holds zero bytes"),
        (b"PK\x03\x04\xff", "is a zip archive"),
    ],
)
def test_other_encodings_are_named(write, content, words):
    with pytest.raises(TableError, match=words):
        read_table(write(content))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_encodings_that_are_given(write, encoding):
    path = write("caf\xe9,k\n1,\xfc\n2,b\n".encode(encoding))
    table = read_table(path, encoding=encoding)
    assert table.feature_names == ["caf\xe9"] and table.y.tolist() == ["\xfc", "b"]


def rows_of(first, n=30):
    rng = np.random.default_rng(0)
    rows = [first, *rng.normal(size=(n, len(first))).round(3).tolist()]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    "first, low, high, n, doubted",
    [
        ("2019,2020,2021", 0, 100, 30, True),
        ("2021,2020,2019", 0, 100, 30, True),
        ("2019,2020,2022", 0, 100, 30, False),  # no even steps
        ("2019,2020", 0, 100, 30, False),  # any two numbers are one step
        ("2019,2020,2021", 0, 100, 5, False),  # few rows to compare with
        ("2019,2020,2021", 1500, 2500, 30, False),
        ("101,102,103", 0, 100, 30, False),  # as near as a next number
        ("1,2,3", 4, 9, 30, False),
    ],
)
def test_three_numbers_far_from_those_below_are_doubted(
    write, rng, first, low, high, n, doubted
):
    width = first.count(",") + 1
    for label in (None, "uv"):
        cells = rng.integers(low, high + 1, (n, width))
        # one row below in even steps would speak for a first row of data
        even = np.ptp(np.diff(cells), axis=1) == 0
        cells[even, 1] = cells[even, 0]
        rows = cells.astype(str).tolist()
        rows[:2] = [[str(low), *[str(high)] * (width - 1)]] * 2
        rows[2:4] = [[str(high), *[str(low)] * (width - 1)]] * 2
        for i, row in enumerate(rows):
            row[-1] = row[-1] if label is None else label[i % 2]
        table = read_table(write("\n".join([first, *map(",".join, rows)])))
        assert len(table.X) == n + 1
        assert (table.doubt is not None) == doubted


@pytest.mark.parametrize(
    "first, doubted",
    [
        ([400, 401, 402, 403], True),
        ([0, 1, 2, 3, 4, 5], True),  # as pandas numbers columns without names
        ([2021, 2020, 2019, 2018], True),
        ([400.1, 400.9, 402, 403.1, 405, 406, 407.5, 409], True),
        ([400.1, 400.9, 402, 403.1], False),
        ([1, 2, 3], False),
        ([4, 2, 3, 1], False),
    ],
)
def test_a_first_row_that_rises_like_names_is_doubted(write, first, doubted):
    text = rows_of(first)
    assert (read_table(write(text)).doubt is not None) == doubted
    assert read_table(write(text), header=False).doubt is None
    assert read_table(write(text), header=True).doubt is None
    steady = "".join(f"{k},{k + 1},{k + 2},{k + 3}\n" for k in range(9))
    assert read_table(write(steady)).doubt is None


def written(columns, **options):
    """A table as pandas writes it: numbers as names of columns, unless they have some.

    X and Z are real numbers, N and M integers, B is 0 or 1, and T the same as text.
    """
    rng = np.random.default_rng(0)
    values = {kind: rng.normal(size=30).round(3) for kind in "XZ"}
    values |= {kind: rng.integers(20, 10**6, 30) for kind in "NM"}
    values["B"] = rng.integers(0, 2, 30)
    values["T"] = np.array(["no", "yes"])[values["B"]]
    frame = pd.DataFrame({i: values[kind] for i, kind in enumerate(columns)})
    return frame.rename(columns=options.pop("names", {})).to_csv(**options)


@pytest.mark.parametrize(
    "columns, options, doubted",
    [
        ("XZT", {"names": {2: "y"}, "index": False}, False),
        ("XZB", {"names": {2: "y"}, "index": False}, False),
        ("NMT", {"names": {2: "y"}, "index": False, "sep": ";"}, False),
        ("XZ", {}, False),
        ("NB", {}, False),
        ("XT", {"index_label": "id"}, False),
        ("XT", {"names": {1: "y"}, "index": False}, False),
        ("XZB", {"index": False}, True),
        ("NMB", {"index": False}, True),
        ("NT", {"index": False}, True),
        ("XB", {"index": False, "sep": "\t"}, True),
    ],
)
def test_numbers_of_columns_as_pandas_writes_them_are_names(
    write, columns, options, doubted
):
    text = written(columns, **options)
    table = read_table(write(text), columns="categories")
    assert len(table.y) == 30 and table.feature_names is not None
    assert (table.doubt is not None) == doubted
    if doubted:
        assert "numbers the columns, as pandas does: it is read as" in table.doubt
    assert read_table(write(text), columns="categories", header=True).doubt is None


@pytest.mark.parametrize(
    "text, doubted",
    [
        ("0,1,2,b\n.5,1.5,2.5,b\n.1,.2,.3,a\n", False),  # a class of other rows
        ("0,1\n1,1\n0,0\n1,0\n0,1\n", False),  # values of other rows
        ("0,1,2\n3,4,5\n6,7,8\n", False),  # as other rows go on
        ("0.0,1.0\n.5,.25\n.1,.2\n", False),
        ("0,1\n5,17\n8,3\n", True),
        ("0,1\n5,1\n17,0\n9,1\n", True),
        ("0,1,2\n1,0,2\n0,2,1\n2,1,0\n", True),
    ],
)
def test_rows_that_begin_to_count_are_data(write, text, doubted):
    table = read_table(write(text))
    assert table.feature_names is None and len(table.y) == text.count("\n")
    assert (table.doubt is not None) == doubted


def test_many_columns_have_different_names_at_once(write):
    """All are looked at; comparing every name with every other would take minutes."""
    n = 60_000
    names = [f"c{i}" for i in range(n)]
    text = ",".join([*names, "k"]) + "\n" + ",".join(["1"] * n + ["0"]) + "\n"
    path = write(text)
    table = read_table(path, feature_names=names[::-1], n_features=n, label="k")
    assert table.feature_names == names[::-1] and table.X.shape == (1, n)
    with pytest.raises(TableError, match=r"columns 7 and 60000 .* the same name 'c7'"):
        read_table(write(text.replace(",k\n", ",c7\n")))


@pytest.mark.parametrize(
    "first, doubted",
    [("1st,adult,yes", True), ("1st,adult,k", True), ("c,adult,k", False)],
)
def test_names_that_are_cells_below_are_doubted(write, first, doubted):
    rows = [first, "1st,adult,yes", "2nd,child,no", "1st,child,yes"]
    table = read_table(write("\n".join(rows) + "\n"), columns="text")
    assert len(table.y) == 3
    assert (table.doubt is not None) == doubted
    if doubted:
        assert "is read as names, but most of its cells stand" in table.doubt


def test_a_first_row_of_the_expected_names_is_a_header(write):
    table = read_table(
        write(rows_of([1, 2, 3])), n_features=2, feature_names=["3", "1"], labelled=0
    )
    assert table.X.shape == (30, 2) and table.feature_names == ["3", "1"]


@settings(max_examples=60)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 5),
    where=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    bad=st.sampled_from(["", "x", "1,2", "nan", "1 2", "0x1", "--1", "1_1"]),
    text_labels=st.booleans(),
)
def test_a_bad_cell_anywhere_is_found(write, rows, columns, where, bad, text_labels):
    row, column = where[0] % rows, where[1] % columns
    label = "c" if text_labels else "1"
    cells = [["0.5"] * columns + [label] for _ in range(rows)]
    cells[row][column] = f'"{bad}"'
    names = [f"f{i}" for i in range(columns)]
    text = ",".join([*names, "k"]) + "\n" + "\n".join(",".join(r) for r in cells)
    with pytest.raises(TableError, match=f"line {row + 2}, column 'f{column}'"):
        read_table(write(text))


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_files_that_memory_does_not_hold_are_refused(write, monkeypatch, module):
    text = b"a,k\n" + b"1,2\n" * 1_500_000
    monkeypatch.setattr(files, "machine_memory", lambda: 8 * 5e6)
    message = r"holds more than 0\.005 GB once .* has unpacked it, .*take a part of it"
    with pytest.raises(TableError, match=message):
        read_table(write(module.compress(text)))
    with pytest.raises(TableError, match=r"holds more than 0\.005 GB, .*take a part"):
        read_table(write(text))
    few = module.compress(b"a,k\n" + b"1,2\n" * 50)
    assert len(read_table(write(few)).y) == 50


def test_zero_bytes_are_named(write):
    with pytest.raises(
        TableError, match=r"line 2: a zero byte, .* damaged, or no text"
    ):
        read_table(write(b"a,k\n1,\x002\n"))
    with pytest.raises(TableError, match="if the file is in utf-16, convert it"):
        read_table(write("a,k\n1,2\n".encode("utf-16-le")))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a file of Unix")
@pytest.mark.parametrize("name", ["zero", "full", "null"])
def test_devices_are_no_files_of_data(name):
    with pytest.raises(TableError, match=f"/dev/{name} is a device, not a file"):
        read_table(f"/dev/{name}")


# ------------------------------------------------------------------- both formats


@pytest.mark.parametrize(
    "text, format",
    [
        ("1 1:2 2:3\n", "svmlight"),
        ("# c\n1\n1 3:0.5\n", "svmlight"),
        ("1,2,3\n", "csv"),
        ("a;b\n1;2\n", "csv"),
        ("when,k\n2020-01-01 12:30,5\n", "csv"),
    ],
)
@pytest.mark.parametrize("name", ["data.txt", "data"])
def test_the_format_is_found_from_the_contents(write, text, format, name):
    path = write(text, name)
    try:
        assert read_table(path).format == format
    except TableError as error:
        assert format == "csv" and "12:30" in str(error)


def test_the_format_can_be_said(write):
    path = write("1 1:2\n", "data.csv")
    assert read_table(path, format="svmlight").format == "svmlight"
    with pytest.raises(ValueError, match="format='arff' is not known"):
        read_table(path, format="arff")


@settings(max_examples=50)
@given(
    values=st.lists(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_both_formats_give_back_every_bit(write, values):
    X = np.array(values)
    y = np.arange(len(X))
    lines = [f"{k} 1:{a!r} 2:{b!r} 3:{c!r}" for k, (a, b, c) in zip(y, values)]
    svm = read_table(write("\n".join(lines), "x.svm"))
    lines = [f"{a!r},{b!r},{c!r},{k}" for k, (a, b, c) in zip(y, values)]
    table = read_table(write("\n".join(lines), "x.csv"))
    np.testing.assert_array_equal(dense(svm), X)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(svm.y, y)
    np.testing.assert_array_equal(table.y, y)


def test_the_slow_way_reads_what_the_fast_way_reads(write, monkeypatch):
    rng = np.random.default_rng(0)
    text = "a,b,k\n" + "\n".join(
        f"{a!r},{b!r},{k}"
        for a, b, k in zip(*rng.normal(size=(2, 30)).tolist(), [0, 1] * 15)
    )
    path = write(text)
    fast = read_table(path)
    monkeypatch.setattr(
        np, "loadtxt", lambda *a, **k: (_ for _ in ()).throw(ValueError)
    )
    slow = read_table(path)
    np.testing.assert_array_equal(fast.X, slow.X)
    np.testing.assert_array_equal(fast.y, slow.y)
    assert fast.y.dtype == slow.y.dtype


def test_missing_files_and_folders_are_system_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError):
        read_table(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are POSIX")
def test_a_pipe_can_be_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a,k\n1,2\n",))
    writer.start()
    table = read_table(pipe)
    writer.join()
    assert table.X.tolist() == [[1]]


@pytest.mark.parametrize(
    "text, labels",
    [
        ("10,20,0\n1,2,100\n", [0, 100]),
        ("0,0.01,1e-05\n0,1,0.05\n", [1e-5, 0.05]),
        ("1,01\n2,1\n", ["01", "1"]),
        ("1,1\n2,+01\n", ["1", "+01"]),
        ('1,"007"\n2,7\n', ["007", "7"]),
        ("1; -03\n2;3\n", ["-03", "3"]),
        ("1 00\n2 0\n", ["00", "0"]),
        ("01,1\n02,2\n", [1, 2]),
    ],
)
def test_leading_zeros_make_text_of_labels(write, text, labels):
    assert read_table(write(text), header=False).y.tolist() == labels


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_breaks_of_all_systems(write, ends):
    text = ends.join(["a,b,k", '1,"2",x', "", '3,4,"y', 'z"', ""])
    table = read_table(write(text))
    assert table.X.tolist() == [[1, 2], [3, 4]] and table.y.tolist() == ["x", "y\nz"]
