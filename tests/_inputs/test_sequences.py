"""Sequences: the same inside whatever form they come in; what is wrong is named."""

import gzip
import pathlib

import numpy as np
import pandas as pd
import pytest
from refusals import refusals, refused

from maxent._inputs import sequences
from maxent._inputs.sequence_files import read_records, read_sequences
from maxent._inputs.sequences import (
    decoded,
    each_entry,
    symbol_sequences,
    vector_sequences,
)
from maxent.datasets import read_fasta

CODES = [[0, 1, 2], [2], [1, -1]]


@pytest.mark.parametrize(
    "form",
    [
        CODES,
        tuple(np.array(x) for x in CODES),
        [np.array(x, dtype=np.int8) for x in CODES],
        [np.array(x, dtype=float)[:, None] for x in CODES],
        iter(CODES),
        np.array([np.array(x) for x in CODES], dtype=object),
    ],
)
def test_lists_of_codes(form):
    found = symbol_sequences(form)
    assert len(found) == 3
    assert [x.tolist() for x in found] == CODES
    assert found.lengths.tolist() == [3, 1, 2]
    assert found.place(4) == (2, 0)
    assert [one[0].tolist() for one in found.singles()] == CODES


def test_rows_of_integers_are_sequences():
    X = np.array([[0, 1, 2], [2, -1, 0]], dtype=np.int16)
    found = symbol_sequences(X)
    assert found.values.tolist() == [0, 1, 2, 2, -1, 0]
    assert found.offsets.tolist() == [0, 3, 6]
    assert symbol_sequences(X[:1]).lengths.tolist() == [3]
    assert symbol_sequences(X[:1].T).lengths.tolist() == [3]  # one column, one sequence
    refused(lambda: symbol_sequences(X + 0.5), r"shape \(2, 3\)")
    refused(lambda: symbol_sequences([X, X]), r"sequences\[0\] has shape \(2, 3\)")
    refused(lambda: symbol_sequences(X, n_symbols=2), r"sequences\[0\]\[2\]=2")


def test_headers_without_a_sequence_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "some.fasta"
    path.write_text(">a\nAC\n>b\n\n>c\n>d\nG\n")
    told = (
        r"some.fasta: 2 reads without letters, line 3 with header 'b' first, were left"
    )
    with pytest.warns(UserWarning, match=told):
        assert read_sequences(path) == (["a", "d"], ["AC", "G"])
    with pytest.warns(UserWarning, match=told):
        found = read_fasta(path)
    assert found.ids.tolist() == ["a", "d"] and found.data == ["AC", "G"]
    path.write_text(">a\n>b\n")
    refused(lambda: read_sequences(path), "has no sequence")


def test_one_array_with_lengths():
    flat = np.concatenate(CODES)
    for X in (flat, flat[:, None], flat.tolist()):
        assert [x.tolist() for x in symbol_sequences(X, [3, 1, 2])] == CODES
        assert [x.tolist() for x in symbol_sequences(X)] == [flat.tolist()]
    V = np.arange(12.0).reshape(6, 2)
    assert [len(x) for x in vector_sequences(V, [4, 2])] == [4, 2]


def test_strings():
    found = symbol_sequences(["ABC", "C", "B?"], alphabet="ABC", missing="?")
    assert [x.tolist() for x in found] == CODES
    assert [decoded(x, "ABC") for x in found] == ["ABC", "C", "B?"]
    assert len(symbol_sequences("ABBA", alphabet="AB")) == 1
    greek = symbol_sequences(["βα"], alphabet="αβ")
    assert greek[0].tolist() == [1, 0]
    frame = np.array(["AB", "B"], dtype=object)
    assert symbol_sequences(frame, alphabet="AB").lengths.tolist() == [2, 1]


def test_letters_beyond_ascii_and_blocks_of_them(monkeypatch):
    monkeypatch.setattr(sequences, "_BLOCK", 3)
    letters = "aéλ\U0001d538"
    text = "λ\U0001d538aé?aλ"
    found = symbol_sequences([text], alphabet=letters, missing="?")
    assert found.values.tolist() == [2, 3, 0, 1, -1, 0, 2]
    for wrong in ("b", "\U0010ffff", "\0"):
        with pytest.raises(ValueError, match=r"\[1\]\[4\]"):
            symbol_sequences(["a", "aaaa" + wrong], alphabet=letters)


def test_files(tmp_path):
    fasta = tmp_path / "a.fasta"
    fasta.write_text(">x 1\nAC\nGT\n\n>y\nA\n")
    assert read_sequences(fasta) == (["x 1", "y"], ["ACGT", "A"])
    lines = tmp_path / "a.txt"
    lines.write_text("ACGT\n\nA\n")
    assert read_sequences(lines) == (["1", "3"], ["ACGT", "A"])
    packed = tmp_path / "a.fa.gz"
    with gzip.open(packed, "wt") as stream:
        stream.write(fasta.read_text())
    assert read_sequences(packed) == read_sequences(fasta)
    assert len(symbol_sequences(pathlib.Path(fasta), alphabet="ACGT")) == 2
    fasta.write_bytes(b"\xef\xbb\xbf; a comment\n>x 1\nAC\n;another\nGT\n>y\nA\n")
    assert read_sequences(fasta) == (["x 1", "y"], ["ACGT", "A"])
    lines.write_bytes(b"\xef\xbb\xbfACGT\n")
    assert read_sequences(lines) == (["1"], ["ACGT"])
    lines.write_text("\n")
    refused(lambda: read_sequences(lines), "no sequence")
    fastq = tmp_path / "a.fastq"
    fastq.write_text("@x 1\nACGT\n+\n@!!I\n@y\nA\n+y\n>\n\n")
    assert read_sequences(fastq) == (["x 1", "y"], ["ACGT", "A"])
    fastq.write_text("@x 1\nACGT\n+\n!!I\n")
    refused(lambda: read_sequences(fastq), "line 1: .* FASTQ.* 4 letters and 3 qual")
    # wrapped, with qualities like headers, and a read that was cut to nothing
    fastq.write_text("@x 1\nAC\nGT\n+\n@!\n+I\n@cut\n\n+\n\n@cut\n+\n@y\nA\n+\n@\n")
    assert read_sequences(fastq) == (["x 1", "y"], ["ACGT", "A"])
    assert read_records(fastq).empty == 2 and read_records(fastq).lines == [1, 13]
    for text, words in (
        ("@HD\tVN:1.0\n", "begins with @ is read as FASTQ"),
        ("@x\nA\n+\n!\nACGT\n", "line 5"),
        ("@x\n+\n", "has no sequence"),
    ):
        fastq.write_text(text)
        refused(lambda: read_sequences(fastq), words)


@pytest.mark.parametrize(
    "text, fault",
    [
        (">a\nAC\0GT\n", "line 2: a zero byte"),
        (">a\nACGT\n>b\nA\x1aGT\n", r"line 3: .* the character '\\x1a' at place 2"),
        ("ACGT\nAC\x7f\n", r"line 2: .* the character '\\x7f' at place 3"),
        ("@a\nA\x01\n+\n!!\n", r"line 1: .* the character '\\x01' at place 2"),
    ],
)
def test_characters_that_are_not_shown_are_no_letters(tmp_path, text, fault):
    path = tmp_path / "s.fasta"
    path.write_text(text)
    with pytest.raises(ValueError, match=fault):
        read_sequences(path)


def test_missing_vectors():
    X = [[[0.0, 1.0], [np.nan, np.nan]], [[2.0, 3.0]]]
    assert np.isnan(vector_sequences(X).values[1]).all()
    assert vector_sequences([[1.0, 2.0], [3.0]]).values.shape == (3, 1)


test_bad_input_is_named = refusals(
    [
        (lambda: symbol_sequences(3), "sequences=3"),
        (lambda: symbol_sequences([]), "no sequence"),
        (lambda: symbol_sequences([[0], []]), r"sequences\[1\] is empty"),
        (lambda: symbol_sequences(["A", 3], alphabet="A"), r"sequences\[1\]=3"),
        (lambda: symbol_sequences(["A"], alphabet="AA"), "twice"),
        (lambda: symbol_sequences(["A"], alphabet="AB", missing="B"), "twice"),
        (lambda: symbol_sequences(["A"], alphabet=3), "alphabet=3"),
        (lambda: symbol_sequences([["A", "B"]]), r"sequences\[0\]=\['A', 'B'\]"),
        (lambda: symbol_sequences([[0, 5]], n_symbols=3), r"sequences\[0\]\[1\]=5"),
        (lambda: symbol_sequences([[0, -2]]), r"sequences\[0\]\[1\]=-2"),
        (lambda: symbol_sequences([[0, np.nan]]), r"sequences\[0\]\[1\]=nan"),
        (lambda: symbol_sequences([0, 1], [1]), "lengths add up to 1"),
        (lambda: symbol_sequences([0, 1], [2, 0]), "lengths="),
        (lambda: symbol_sequences(["A"], [1], alphabet="A"), "lengths belongs"),
        (lambda: symbol_sequences(([0, 1, 0], [1, 2])), "pass lengths="),
        (lambda: vector_sequences((np.zeros((3, 1)), [1, 2])), "pass lengths="),
        (lambda: symbol_sequences("a.fasta", alphabet="AC"), r"pathlib.Path\('a.fa"),
        (lambda: symbol_sequences([b"AC"], alphabet="AC"), r"decode them, as by \[x\."),
        (lambda: symbol_sequences(np.array([b"AC"])), "has bytes"),
        (lambda: symbol_sequences(pd.DataFrame({"s": ["A"]})), r"as by df\['s'\]"),
        (lambda: symbol_sequences("a.fasta"), r"pathlib.Path\('a.fasta'\)"),
        (lambda: symbol_sequences(["AB"], alphabet="A", name="X"), r"^X\[0\]\[1\]='B'"),
        (lambda: vector_sequences(pathlib.Path("a")), "is a path, and files are"),
        (lambda: vector_sequences([np.zeros((2, 2)), np.zeros((2, 3))]), "3 columns"),
        (lambda: vector_sequences([np.zeros((2, 2, 2))]), "has shape"),
        (lambda: vector_sequences([[[np.inf]]]), r"sequences\[0\]\[0\]"),
        (lambda: vector_sequences([[[1.0, np.nan]]]), r"\[0\]\[0\]=.* NaN in part"),
        (
            lambda: vector_sequences([[[np.nan, np.inf]]], partly=True),
            r"\[0\]\[0\]=.* infinite",
        ),
    ]
)


# ---------------------------------------------------------------------- data frames
def test_a_data_frame_is_one_array(rng):
    X = rng.normal(size=(12, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    for lengths in (None, [5, 7]):
        found, want = (vector_sequences(data, lengths) for data in (frame, X))
        np.testing.assert_array_equal(found.values, want.values)
        np.testing.assert_array_equal(found.offsets, want.offsets)
    codes = symbol_sequences(pd.DataFrame({"s": [0, 1, 1]}))
    assert codes.values.tolist() == [0, 1, 1] and len(codes) == 1


def test_missing_values_of_pandas_are_missing_observations(rng):
    frame = pd.DataFrame(rng.normal(size=(4, 2))).astype("Float64")
    frame.iloc[2] = pd.NA
    for data in (frame, [frame]):
        assert np.isnan(vector_sequences(data).values[2]).all()


def test_masks_and_lengths_of_their_own_are_refused(rng):
    X = rng.normal(size=(6, 2))
    hidden = np.ma.masked_array(X, mask=X > 0)
    refused(lambda: vector_sequences([hidden]), "masked array.*filled")
    assert len(vector_sequences([np.ma.masked_array(X)])) == 1
    refused(lambda: vector_sequences([X, X[:4]], [6, 4]), "their own lengths")
    assert len(vector_sequences(X.tolist(), [2, 4])) == 2


@pytest.mark.parametrize("read", [symbol_sequences, vector_sequences])
def test_groups_of_a_frame_are_refused_with_a_remedy(read):
    frame = pd.DataFrame({"id": [0, 0, 1, 1], "x": [0, 1, 1, 0]})
    groups = frame.groupby("id")
    match = r"sequences is a DataFrameGroupBy, .*\[g\[columns\].to_numpy\(\) for _, g"
    refused(lambda: read(groups), match)
    refused(lambda: read(groups["x"]), r"a SeriesGroupBy, .*\[g.to_numpy\(\) for _, g")
    refused(lambda: each_entry(groups), "data is a DataFrameGroupBy")
    for way in ([g[["x"]].to_numpy() for _, g in groups], [g for _, g in groups["x"]]):
        assert read(way).values.ravel().tolist() == [0, 1, 1, 0]


def test_letters_of_one_sequence_in_a_list_are_refused_with_a_remedy():
    match = r"has 3 strings of one letter each.*join them: .*, as alphabet='ab'"
    for letters in (list("aba"), pd.Series(list("aba")), np.array(list("aba"))):
        refused(lambda letters=letters: symbol_sequences(letters), match)
    refused(lambda: symbol_sequences(["ab", "a"]), "for instance alphabet='ACGT'")
