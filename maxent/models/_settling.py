"""Sweeps of mean field until the beliefs stand still.

A bound tells little about them: it is flat at its maximum, so that beliefs may be 1e-3
away where a sweep gains 1e-10. Sweeps converge at a linear rate, which two of them
show; what is left after a change d at the rate r is about d r / (1 - r).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from maxent._support.validation import user_stacklevel

SETTLED = 1e-8  # what may be left of the change of a probability
FOR_BOUNDS = 1e-5  # the same where bounds are wanted, whose error is its square
SWEEPS = 10_000
_ROUNDING = 1e-13  # a change that is none


def settle(sweep: Callable[[], float], name: str, left: float = SETTLED) -> None:
    """Sweep until no belief is farther than `left` from its limit, as far as one sees.

    Parameters
    ----------
    sweep : callable
        One sweep; returns the largest change of a probability.
    name : str
        Of the model, for the warning.
    left : float, default=1e-8

    Warns
    -----
    ConvergenceWarning
        If 10000 sweeps were not enough.
    """
    change, rate = sweep(), 1.0
    for _ in range(SWEEPS):
        before, change, last = change, sweep(), rate
        rate = change / before if before > 0.0 else 0.0
        slower = max(rate, last)  # of two sweeps, as changes need not fall in step
        if change <= _ROUNDING or change * slower <= left * (1.0 - slower):
            return
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"mean field of {name} did not settle: after {SWEEPS} sweeps probabilities "
        f"still change by {change:.1e} in each. They are as good as that; a bound is "
        "valid all the same. Shorter sequences settle sooner.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
