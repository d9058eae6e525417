"""Rows that arrive in batches: EM from statistics that forget, one step a batch.

    S <- (1 - step) S + step S(batch)

S are the expected sums of the M step for one row. Those of a model follow from its
parameters, and from how often its states are visited; so a model is all that is kept,
with the number of rows that it has seen.

Source: Cappé & Moulines (2009), On-line expectation-maximization algorithm for latent
data models, Journal of the Royal Statistical Society B 71.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import FloatArray

_DECAY = 0.6  # between 1/2 and 1, for convergence; near 1/2 it forgets sooner
_LONGEST = 1000  # steps over which visits of states are averaged


def share_of_batch(step: float | None, rows: float, new: float) -> float:
    """Share in (0, 1] of a batch of `new` rows in statistics, after `rows` others."""
    if step is None:
        return float((new / (rows + new)) ** _DECAY)
    if not (v.is_real(step) and 0 < step <= 1):
        raise ValueError(
            f"step={v.shown(step)} must be the share of the batch, in (0, 1], or None."
        )
    return float(step)


def mixed(share: float, own: Any, batch: Any) -> tuple[FloatArray, ...]:
    """Statistics of one row after a batch; both come as tuples of arrays."""
    return tuple((1.0 - share) * a + share * b for a, b in zip(own, batch, strict=True))


def refitted(members: Any, sums: tuple[FloatArray, ...]) -> Any:
    """M step of members; those without rows stay as they are."""
    used = sums[0] > 0
    new = members[np.flatnonzero(used)]._refitted(*(s[used] for s in sums))
    return members._replaced(used, new)


def refuse_without_sums(members: Any) -> None:
    """Refuse families whose fits are no functions of sums over rows."""
    fixed = members._fixed()
    if not type(members)._sums_suffice(**_of_classes(members, fixed)):
        raise ValueError(
            f"{type(members).__name__} has fits that are no functions of sums over "
            "rows, which updates are made of; fit all rows together."
        )


def _of_classes(members, fixed):
    """Those arguments that say of which families a batch is made."""
    return {k: x for k, x in fixed.items() if k in ("family", "layout")}


def visits(start: FloatArray, transition: FloatArray, length: float) -> Any:
    """Expected visits of states per step, before moves and at all, of a sequence."""
    now, total, moves = start, start.copy(), np.zeros(len(start))
    steps = max(1, min(round(length), _LONGEST))
    for _ in range(steps - 1):
        moves += now
        now = now @ transition
        total += now
    return moves / steps, total / steps


def check_seen(value: Any) -> dict[str, Any] | None:
    """What a model file says of the rows that a model has seen."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"seen={v.shown(value)} must be a dict.")
    out = {}
    for name, part in value.items():
        array = v.as_doubles(f"seen[{name!r}]", part)
        if not (np.isfinite(array).all() and (array >= 0).all()):
            raise ValueError(f"seen[{name!r}] must hold finite numbers >= 0.")
        out[str(name)] = float(array) if array.ndim == 0 else array
    return out
