"""Random generators and seeds from `random_state`."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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


def one_seed(random_state: RandomState) -> int:
    """The integer itself, or one that is drawn."""
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    return draw_seed(as_generator(random_state))


def states_of_many(random_state: RandomState, n: int) -> Sequence[RandomState]:
    """Random states of n independent tasks.

    An integer is the seed of every task, so that none depends on its place or on the
    others; anything else gives each task a stream of its own.
    """
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return [int(random_state)] * n
    return as_generator(random_state).spawn(n)


def stream_of(seed: int, value: Any) -> np.random.Generator:
    """Stream that belongs to the contents of a value, under a seed.

    Equal values have the same stream wherever they stand; others have independent ones.

    Parameters
    ----------
    seed : int
        At least 0.
    value : object
        With `get_spec`: numbers, strings, arrays, and lists, tuples and dicts of them.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _contents(value):
        digest.update(part)
    words = np.frombuffer(digest.digest(), dtype="<u4")
    return np.random.default_rng([int(seed), *map(int, words)])


def _contents(value: Any) -> Iterator[bytes]:
    """Bytes that tell values apart, each preceded by its kind and size."""
    if hasattr(value, "get_spec"):
        yield f"{type(value).__qualname__}:".encode()
        # equal models draw alike, for any names of the columns of their data
        yield from _contents(getattr(value, "_arguments", value.get_spec)())
    elif isinstance(value, Mapping):
        yield f"dict {len(value)}:".encode()
        for key, one in value.items():
            yield from _contents(str(key))
            yield from _contents(one)
    elif isinstance(value, (list, tuple)):
        yield f"list {len(value)}:".encode()
        for one in value:
            yield from _contents(one)
    elif isinstance(value, (np.ndarray, np.number, numbers.Real)):
        array = np.ascontiguousarray(value, dtype="<f8") + 0.0  # -0.0 equals 0.0
        yield f"array {array.shape}:".encode()
        yield array.tobytes()
    else:
        text = repr(value).encode()
        yield f"text {len(text)}:".encode()
        yield text


def _refusal(random_state: object) -> ValueError:
    return v.not_this(
        "random_state",
        random_state,
        "None, an integer >= 0, or a NumPy Generator or RandomState",
    )
