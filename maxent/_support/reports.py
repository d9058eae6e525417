"""What iterative methods report while they run, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._support.typing import Callback


@dataclass(frozen=True)
class Report:
    """What an iterative method says of itself when it has certified a point.

    Attributes
    ----------
    n_iter : int
        Iterations done.
    objective, gap : float
        At this point; NaN where it has not been certified. Arrays from a batch of
        starts.
    solver : str
    reached, tol : float
        What is compared with the tolerance, by default the relative gap, and that
        tolerance.
    measure : str
        What `reached` is.
    note : str
        Anything else that people may want to know.
    last : bool
        Whether the method ends here of itself.
    solution : callable or None
        Returns the result of a method that ends at this point; for use during the
        call only.
    """

    n_iter: int
    objective: Any
    gap: Any
    solver: str = ""
    reached: float = np.nan
    tol: float = np.nan
    measure: str = "relative gap"
    note: str = ""
    last: bool = False
    solution: Callable[[], Any] | None = None

    def translated(self, translate: Callable[[Any], Any]) -> Report:
        """Return the report with its solution passed through `translate`."""
        found = self.solution
        if found is None:
            return self
        return replace(self, solution=lambda: translate(found()))


class Listener:
    """Callback that takes whole reports; public ones take (n_iter, objective, gap)."""

    def __init__(self, hear: Callable[[Report], object]):
        self.hear = hear

    def __call__(self, n_iter: int, objective: float, gap: float) -> object:
        return self.hear(Report(n_iter, objective, gap))


def tell(callback: Callable[[int, Any, Any], object] | None, report: Report) -> bool:
    """Give a report to a callback of either kind; whether it asks to stop."""
    if callback is None:
        return False
    if isinstance(callback, Listener):
        answer = callback.hear(report)
    else:
        answer = callback(report.n_iter, report.objective, report.gap)
    return asks_to_stop(answer)


def asks_to_stop(answer: object) -> bool:
    """True if what a callback returned ends the method.

    True alone does, so that a function that returns something else, as
    ``list.append`` in a lambda may, stops nothing by accident.
    """
    return isinstance(answer, (bool, np.bool_)) and bool(answer)


def relayed(
    callback: Callback | None, change: Callable[[Report], Report]
) -> Listener | None:
    """Callback for an inner solver, whose reports go on as `change` makes them."""
    if callback is None:
        return None
    return Listener(lambda report: tell(callback, change(report)))
