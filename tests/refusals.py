"""How hostile input may end: with a result, or with one sentence that names it."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning


def outcome(run):
    """Result of a call, in which only ConvergenceWarning is tolerated."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run()


def refused(run, match):
    """The call raises one sentence that matches, and not from another error."""
    with pytest.raises((ValueError, TypeError), match=match) as error:
        outcome(run)
    assert error.value.__cause__ is None
    assert "\n" not in str(error.value)


def cases(table):
    """Parameters (name, value) from a table {name: values}."""
    return [
        pytest.param(name, value, id=f"{name}-{k}")
        for name, values in table.items()
        for k, value in enumerate(values)
    ]
