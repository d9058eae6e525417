"""Files of FASTA that are read in one pass are those that are read line by line."""

import io
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxent._inputs import sequence_files
from maxent._inputs.letters import counted

PIECES = [
    *("A", "c", "\n", "\n>", ">", "ab", "\u00e9", "N\n", " ", ";", "\t"),
    *("\r\n", "\n\n", "\n;", "\r", "\v", "\x1c", "\u00a0", "\u2028", "\x01", "\x7f"),
]


def answer(read, *args):
    try:
        return read(*args)
    except ValueError as error:
        return str(error)


def test_plain_files_are_read_alike(rng):
    plain = 0
    for _ in range(4000):
        known = PIECES[: rng.choice([6, 8, 13, len(PIECES)])]
        text = ["", ">", ">", "\n ;>\n>"][rng.integers(4)]
        text += "".join(rng.choice(known, rng.integers(1, 14)))
        found = answer(sequence_files._plain_fasta, "f", text)
        if found is not None:
            plain += 1
            lines = io.StringIO(text, newline=None)
            assert found == answer(sequence_files._fasta_or_lines, "f", lines), text
    assert plain > 1500


def test_records_of_all_lengths(rng):
    sequences = [
        "".join(rng.choice([*"ACGTacgtn*-"], n)) for n in [*range(1, 70), 5000, 100_000]
    ]
    for end, width in (("\n", 60), ("\r\n", 1), ("\r", 70), ("\n", 10**6)):
        text = "".join(
            f">n{i} \u00e9>{end}"
            + "".join(s[j : j + width] + end for j in range(0, len(s), width))
            for i, s in enumerate(sequences)
        )
        found = sequence_files._plain_fasta("f", text)
        assert found.sequences == sequences
        assert found.names == [f"n{i} \u00e9>" for i in range(len(sequences))]
        heights = [1 + -(-len(s) // width) for s in sequences]
        assert found.lines == [1, *(1 + np.cumsum(heights)[:-1]).tolist()]


@given(st.lists(st.text(max_size=40) | st.text("ACGTn", max_size=300)))
def test_letters_are_counted(strings):
    assert counted(strings) == Counter("".join(strings))
