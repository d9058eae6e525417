"""How hostile input may end: with a result, or with one sentence that names it."""

import re
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

# right for data without signal, as random ones are
NO_SIGNAL = (
    ".*(no feature passes|every margin is above|nothing was learnt"
    "|training data score below the threshold)"
)


def outcome(run):
    """Result of a call that may not converge or learn, and warns of nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", NO_SIGNAL, UserWarning)
        return run()


def refused(run, match):
    """The call raises one sentence that matches, and not from another error."""
    with pytest.raises((ValueError, TypeError), match=match) as error:
        outcome(run)
    assert error.value.__cause__ is None
    assert "\n" not in str(error.value)


def refusals(rows, *, literal=False):
    """A test that each of some calls is refused: rows of (call, match)."""

    @pytest.mark.parametrize("call, match", rows)
    def test_refused(call, match):
        refused(call, re.escape(match) if literal else match)

    return test_refused


def cases(table):
    """Parameters (name, value) from a table {name: values}."""
    return [
        pytest.param(name, value, id=f"{name}-{k}")
        for name, values in table.items()
        for k, value in enumerate(values)
    ]
