"""Every subject under every transformation; the default run takes a part of the cells.

.ci/check invariances runs all of them, on several draws of the data.
"""

import pytest
from invariances.cells import check, every, few

DRAWS = [(0, 40), (1, 40), (2, 64)]  # seeds and sizes


def pytest_generate_tests(metafunc):
    whole = metafunc.config.getoption("--every-cell")
    cells = every() if whole else few()
    metafunc.parametrize(
        ("subject", "transformation", "seed", "n"),
        [
            pytest.param(
                *cell, *draw, id="-".join([*(p.name for p in cell), str(draw)])
            )
            for draw in (DRAWS if whole else DRAWS[:1])
            for cell in cells
        ],
    )


def test_cell(subject, transformation, seed, n):
    check(subject, transformation, seed, n)
