"""Plausible mistakes of users: every error names the argument, its value and a remedy.

The tables are in `mistakes_of_estimators`, `mistakes_of_problems` (generative models,
trees, solvers), `mistakes_of_models` (distributions, sequences, kernels between models,
latent models) and `mistakes_of_tools` (displays, files, data sets, command line).
"""

import warnings

import pytest
from mistakes_of_estimators import DATA, PARAMETERS
from mistakes_of_models import FAMILIES, KERNELS_AND_LATENT, SEQUENCES
from mistakes_of_problems import MODELS
from mistakes_of_tools import DISPLAYS, FILES
from sklearn.exceptions import ConvergenceWarning

TABLES = (
    *(DATA, PARAMETERS, MODELS, FAMILIES, SEQUENCES),
    *(KERNELS_AND_LATENT, DISPLAYS, FILES),
)


@pytest.mark.parametrize(
    "call, error, argument, value, remedy",
    [pytest.param(*row, id=name) for table in TABLES for name, row in table.items()],
)
def test_error_names_argument_value_and_remedy(call, error, argument, value, remedy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an early stop is no fault
        with pytest.raises(error) as caught:
            call()
    text = str(caught.value)
    for part in (argument, value, remedy):
        assert part and part in text, f"{part!r} is not in: {text}"
    assert "\n" not in text and len(text) <= 500
    assert caught.value.__cause__ is None


def test_there_are_a_hundred_of_them():
    assert sum(map(len, TABLES)) >= 100
