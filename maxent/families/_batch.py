"""Immutable batches of parameters: broadcast, indexed, compared, printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, Self

import numpy as np

from maxent._support.tables import HtmlTable, short
from maxent._support.typing import NDArray


class Batch(HtmlTable):
    """Parameters of many distributions; the leading axes of the arrays are the batch.

    A class lists its parameters and stores them, checked, with `_set`.
    """

    # pairs (parameter, how many trailing axes belong to one distribution)
    _core: tuple[tuple[str, int], ...] = ()
    # constructor arguments that the whole batch shares
    _common: tuple[str, ...] = ()

    batch_shape: tuple[int, ...]

    def _set(self, parameters, **common):
        """Store checked parameters, broadcast to one batch and read-only."""
        batch = _common_shape(
            {
                name: parameters[name].shape[: parameters[name].ndim - core]
                for name, core in self._core
            }
        )
        for name, core in self._core:
            array = parameters[name]
            event = array.shape[array.ndim - core :]
            array.setflags(write=False)
            whole = array.shape == batch + event
            # a view, which cannot be made writable again
            self.__dict__[name] = (
                array.view() if whole else np.broadcast_to(array, batch + event)
            )
        self.__dict__["batch_shape"] = batch
        self.__dict__.update(common)

    @classmethod
    def _from_valid(cls, parameters: dict[str, Any], common: dict[str, Any]) -> Self:
        value = cls.__new__(cls)
        value._set(parameters, **common)
        return value

    def _fixed(self):
        """Parameters of the support and the statistics, as keywords."""
        return {name: getattr(self, name) for name in self._common}

    def _common_arguments(self) -> dict[str, Any]:
        """Constructor arguments that the whole batch shares."""
        return {name: getattr(self, name) for name in self._common}

    def _arrays(self) -> list[NDArray[Any]]:
        """Parameters that a fit changes."""
        return [getattr(self, name) for name, _ in self._core]

    def _replaced(self, used: NDArray[np.bool_], new: Self) -> Self:
        """This batch (K,) with new members in the place of those that are `used`."""
        if used.all():
            return new
        place = np.where(used, np.cumsum(used) - 1, 0)
        parts = {}
        for name, _ in self._core:
            value, old = getattr(new, name)[place], getattr(self, name)
            axes = (slice(None),) + (None,) * (value.ndim - 1)
            parts[name] = np.where(used[axes], value, old)
        return self._from_valid(parts, new._common_arguments())

    def parameters(self) -> dict[str, Any]:
        """Constructor arguments as a dict.

        Returns
        -------
        dict
            Names and values.
        """
        names = [name for name, _ in self._core]
        return {n: getattr(self, n) for n in names} | self._common_arguments()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is immutable; make a new one with another {name}."
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable.")

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError(
                "a single distribution has no len(); its batch shape is ()."
            )
        return self.batch_shape[0]

    def __getitem__(self, index: Any) -> Self:
        number = np.arange(int(np.prod(self.batch_shape))).reshape(self.batch_shape)
        return self._take(np.asarray(number[index]))

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def _take(self, number: NDArray[Any]) -> Self:
        """The members with these numbers; the shape of `number` is the new batch."""
        taken = {}
        for name, core in self._core:
            array = getattr(self, name)
            event = array.shape[array.ndim - core :]
            if number.size and not any(array.strides[: array.ndim - core]):
                one = array[(0,) * (array.ndim - core)]  # shared by the whole batch
                taken[name] = np.broadcast_to(one, number.shape + event)
            else:
                taken[name] = array.reshape((-1, *event))[number]
        return self._from_valid(taken, self._common_arguments())

    @classmethod
    def _concatenated(cls, batches: list[Any]) -> Any:
        """One batch of the members of batches of one axis, which share the rest."""
        parts = {
            name: np.concatenate([getattr(one, name) for one in batches])
            for name, _ in cls._core
        }
        return cls._from_valid(parts, batches[0]._common_arguments())

    def _flat(self) -> Self:
        """Batch of these members along one axis."""
        if len(self.batch_shape) == 1:
            return self
        return self._take(np.arange(int(np.prod(self.batch_shape))))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.parameters(), other.parameters()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # adding zero: -0.0 equals 0.0 but has other bits
        inside = [np.asarray(a) + 0.0 for a in self.parameters().values()]
        return hash((type(self), *((a.shape, a.tobytes()) for a in inside)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.parameters())

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{name}={short(value)}" for name, value in self.parameters().items()
        )
        return f"{type(self).__name__}({inside})"


def _restore(cls, parameters):
    return cls(**parameters)


def _common_shape(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape that those of all parameters broadcast to."""
    if len(set(shapes.values())) == 1:
        return next(iter(shapes.values()))
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"the batch axes of the parameters do not broadcast: {found}."
        ) from None


def concatenated(batches: list[Any]) -> Any:
    """One batch of all the members of batches of one family."""
    return type(batches[0])._concatenated(batches)
