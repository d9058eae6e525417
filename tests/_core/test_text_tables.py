"""Decimals are read as Python's float reads them, to the last bit."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maxent._core.text_tables import read_cells


def read(text, width, *, delimiter=",", lines=0, target=-1, numeric=False):
    """The table of all columns but a target of text, and the ends of its texts."""
    place = np.arange(width)
    place[target:][: target >= 0] = -1
    n = text.count("\n") + 1
    X, y = np.zeros((n, width)), np.zeros(n)
    ends = np.zeros((n, 2), np.intp)
    found, column = read_cells(
        *(text, lines, ord(delimiter), place, target, numeric, 3000, X, y, ends)
    )
    return (X[:found], y[:found], ends[:found]) if found >= 0 else column


def assert_as_floats(cells):
    found = read("\n".join(f"{cell},0" for cell in cells), 2)
    assert not isinstance(found, int), f"column {found} is not regular"
    want = np.array([float(cell) for cell in cells])
    wrong = np.flatnonzero(found[0][:, 0].view(np.uint64) != want.view(np.uint64))
    assert [cells[i] for i in wrong] == []


def halfway(x):
    """The decimal in the middle of a double and the next one, in all its digits."""
    with localcontext() as context:
        context.prec = 1200
        return f"{(Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2:f}"


def any_doubles(rng, n):
    x = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    return x[np.isfinite(x)].tolist()


@pytest.mark.parametrize("form", ["{!r}", "{:.16e}", "{:.18e}", "{:.30e}", "{:.12g}"])
def test_written_doubles_are_read_again(rng, form):
    assert_as_floats([form.format(x) for x in any_doubles(rng, 5000)])


def test_numbers_between_doubles_are_rounded_rightly(rng):
    middles = [halfway(abs(x)) for x in 10.0 ** rng.uniform(-25, 25, 300)]
    middles += [str(2**53 + i) for i in range(9)] + [
        str(2**63 + 1024 + i) for i in (0, 1)
    ]
    above = [f"{one}{'' if '.' in one else '.'}{'0' * 20}1" for one in middles]
    below = [str(Decimal(one[:40])) for one in middles]
    assert_as_floats(middles + above + below)


def test_numbers_at_the_ends_of_the_range(rng):
    tiny = [5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.5e-323]
    cells = [repr(x) for x in tiny] + [halfway(x) for x in (0.0, *tiny)]
    cells += ["1e-400", "1.7976931348623157e308", "1.7976931348623159e308", "1e309"]
    cells += [f"{d}e{q}" for d in (1, 9, 2**64 - 1) for q in range(-370, 320)]
    cells += ["0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", "0e99999999999"]
    cells += ["-0", "-0.0e5", "+.0", "00012.50", "000" + "9" * 30, "0" * 30]
    assert_as_floats(cells)


@given(
    st.lists(
        st.from_regex(
            r"[ \t]{0,2}[+-]?([0-9]{1,45}(\.[0-9]{0,45})?|\.[0-9]{1,45})"
            r"([eE][+-]?[0-9]{1,3})?[ \t]{0,2}",
            fullmatch=True,
        ).filter(str.isascii),
        min_size=1,
    )
)
def test_all_decimals_are_known(cells):
    assert_as_floats(cells)


@given(st.text('0123456789.eE+-_ \t"naif,\n', max_size=12))
def test_nothing_else_is_a_number(cell):
    found = read(f"{cell},0", 2)
    if isinstance(found, int) or not len(found[0]):
        return
    lines = [line.split(",")[0].strip(' "\t') for line in f"{cell},0".split("\n")]
    want = [float(line) for line in lines if line]
    assert found[0][:, 0].tolist() == want and "_" not in cell
    assert np.isfinite(want).all() or "e" in cell.lower()


@pytest.mark.parametrize(
    "text, column",
    [
        ("1,2\n3\n", 2),
        ("1,2\n3,4,5\n", 2),
        ("1,\n", 1),
        (",1\n", 0),
        ("1,nan\n", 1),
        ("0x1,1\n", 0),
        ('1,"2\n', 1),
        ('1,"2"3\n', 1),
        ('1, "2"\n', 1),
        ('1,2"\n', 1),
        ("1,\u0662\n", 1),
        (f"1,{'2' * 3001}\n", 1),
    ],
)
def test_odd_text_is_left_to_others(text, column):
    assert read(text, 2) == column


def test_ends_of_texts_are_in_bytes():
    text = 'name,k\n1,\u00e9t\u00e9\n\n2," a,\nb "\n  \n3,\n4,a"b'
    X, _, ends = read(text, 2, lines=1, target=1)
    raw = text.encode()
    cells = [raw[a:b].decode() for a, b in ends.tolist()]
    assert X[:, 0].tolist() == [1, 2, 3, 4]
    assert cells == ["\u00e9t\u00e9", " a,\nb ", "", 'a"b']
    assert read('1,"a""b"\n', 2, target=1) == 1


def test_labels_with_leading_zeros_are_no_numbers():
    assert read("1,2\n3,-04\n", 2, target=1, numeric=True) == 1
    X, y, _ = read("1 2\n 03\t-0.5  \n", 2, delimiter=" ", target=1, numeric=True)
    assert X[:, 0].tolist() == [1, 3] and y.tolist() == [2, -0.5]
