"""Text that is read in one pass gives the table that its rows give one by one."""

import pytest

from maxent._commands.tables.data_files import TableError
from maxent._commands.tables.delimited import CSVReader

NUMBERS = ["0", "1", "-2.5", "+3e2", " 4 ", ".5", "6.", "0.1234567890123456", "1e-320"]
ODD = ["", "nan", "inf", "1e999", "-", "1_0", "1e", "\u00e9", '"a,b"', '"a""b"', 'a"b']
ODD += [
    ' "1"',
    '"1"',
    '"1" ',
    '"a\nb"',
    '"',
    "?",
    "NA",
    "0x10",
    "\u00a01",
    "1\x0b",
    "\u0661",
]
LABELS = [
    ["0", "1"],
    ["x", " y "],
    ["\u00e9", '"b"'],
    ["01", "1"],
    ["9007199254740993"],
]
LABELS += [["0.5", "2"], ["1", "", "NA"], ['"a""b"', "c"], ["7", "seven"]]


def random_text(rng, width):
    odd = rng.choice([0.0, 0.0, 0.03, 0.2])
    delimiter, end = rng.choice([*",,;\t "]), str(rng.choice(["\n", "\r\n", "\r"]))
    labels = LABELS[rng.integers(len(LABELS))]
    lines = [[f"c{i}" for i in range(width)]] if rng.random() < 0.6 else []
    for _ in range(rng.integers(1, 30)):
        row = [
            str(rng.choice(ODD if rng.random() < odd else NUMBERS))
            for _ in range(width)
        ]
        row[-1] = str(rng.choice(labels))
        lines.append(row[: -1 if rng.random() < odd / 5 else None])
        if rng.random() < odd:
            lines.append([str(rng.choice(["", "  ", "\t", "\u00a0"]))])
    return end.join(map(delimiter.join, lines)) + end * rng.integers(0, 3)


def outcome(text, options):
    try:
        reader = CSVReader("f", text, options["header"])
        table = reader.read(
            *(options["label"], options["labelled"], None, None, options["columns"]),
            *(None, (), {}, None),
        )
    except TableError as error:
        return str(error), error.column, error.fault
    X, y = table.X, table.y
    return X.dtype, repr(X.tolist()), None if y is None else (y.dtype.kind, y.tolist())


def test_rows_one_by_one_give_the_same_table(rng, monkeypatch):
    taken = []
    regular = CSVReader._read_regular

    def counted(*args):
        found = regular(*args)
        taken.append(found is not None)
        return found

    for _ in range(1500):
        text = random_text(rng, rng.integers(2, 5))
        options = {
            "header": [*("auto",) * 2, True, False][rng.integers(4)],
            "label": [None, None, 0, "c0"][rng.integers(4)],
            "labelled": [True, True, False, "partly"][rng.integers(4)],
            "columns": str(rng.choice(["numbers", "mixed", "text", "categories"])),
        }
        if not text.strip():
            continue
        monkeypatch.setattr(CSVReader, "_read_regular", counted)
        found = outcome(text, options)
        monkeypatch.setattr(CSVReader, "_read_regular", lambda *args: None)
        assert found == outcome(text, options), (text, options)
    assert 300 < sum(taken) < len(taken) - 100


@pytest.mark.parametrize("names", [["a", "c", "a"], ["c", "a"], ["c", "b"]])
def test_columns_in_any_order(names, monkeypatch):
    text = "a,b,c,k\n1,2,3,4\n5,6,7,8\n"
    for regular in (CSVReader._read_regular, lambda *args: None):
        monkeypatch.setattr(CSVReader, "_read_regular", regular)
        table = CSVReader("f", text, True, names).read(
            *("k", True, None, names, "numbers", None, (), {}, None)
        )
        place = [list("abck").index(name) for name in names]
        assert table.X.tolist() == [
            [[1, 2, 3, 4][i] for i in place],
            [[5, 6, 7, 8][i] for i in place],
        ]
        assert table.X.flags.c_contiguous and table.y.tolist() == [4, 8]


def test_lone_surrogates_are_read_row_by_row():
    table = CSVReader("f", "1,\ud800\n2,b\n", False).read(
        *(None, True, None, None, "numbers", None, (), {}, None)
    )
    assert table.y.tolist() == ["\ud800", "b"]


def test_a_header_with_fewer_cells_than_the_rows_is_refused():
    with pytest.raises(TableError, match="line 2: 3 cells, but the first row has 2"):
        CSVReader("f", "a,k\n0,1,2\n1,3,4\n", True).read(
            *(None, True, None, None, "numbers", None, (), {}, None)
        )
