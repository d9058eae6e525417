"""Random generators and seeds from `random_state`."""

from __future__ import annotations

import numbers

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import RandomState


def draw_seed(random_state: RandomState) -> int:
    """64 bits from any kind of random state."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    from sklearn.utils import check_random_state

    try:
        source = check_random_state(random_state)
    except (TypeError, ValueError):
        raise _refusal(random_state) from None
    return int(source.randint(0, 2**63, dtype=np.int64))


def as_generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(
            random_state.randint(2**32, size=4, dtype=np.uint32)
        )
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise _refusal(random_state)


def _refusal(random_state: object) -> ValueError:
    return v.not_this(
        "random_state",
        random_state,
        "None, an integer >= 0, or a NumPy Generator or RandomState",
    )
