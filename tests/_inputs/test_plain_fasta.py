"""Files of FASTA that are split at once are those that are read line by line."""

import io

from maxent._inputs import sequence_files

PIECES = [
    "A",
    "C",
    "\n",
    "\n>",
    ">",
    "ab",
    "\u00e9",
    "N\n",
    " ",
    ";",
    "\t",
    "\r\n",
    "\x01",
]


def answer(read, *args):
    try:
        return read(*args)
    except ValueError as error:
        return str(error)


def test_plain_files_are_read_alike(rng):
    plain = 0
    for _ in range(4000):
        known = PIECES[: rng.choice([6, 8, 13])]
        text = ">" + "".join(rng.choice(known, rng.integers(1, 14)))
        found = answer(sequence_files._plain_fasta, "f", text)
        if found is not None:
            plain += 1
            lines = io.StringIO(text, newline=None)
            assert found == answer(sequence_files._fasta_or_lines, "f", lines), text
    assert plain > 500
