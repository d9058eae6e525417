"""Checks of state-space parameters, and the arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.families import _checks

# Eigenvalues below minus this share of the largest are not rounding.
_NEGATIVE = 1e-10

Arrays = tuple[NDArray[Any], ...]


def square_arrays(name: str, value: Any, n: int | None = None) -> NDArray[np.float64]:
    """Finite matrices (..., n, n)."""
    array = _checks.real_array(name, value, 2)
    if array.shape[-1] != array.shape[-2] or n not in (None, array.shape[-1]):
        size = "n" if n is None else n
        raise ValueError(
            f"{name} has shape {array.shape}, expected (..., {size}, {size})."
        )
    return array


def shaped(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Finite array whose last axes have this shape; scalars and rows broadcast."""
    array = np.array(v.as_doubles(name, value))
    wrong = ~np.isfinite(array)
    if wrong.any():
        at = _checks.first(wrong)
        raise ValueError(
            f"{_checks.label(name, at)}={array[at]} must be a finite number."
        )
    v.check_range(name, array)
    lead = array.shape[: array.ndim - len(shape)]
    try:
        return np.array(np.broadcast_to(array, lead + shape))
    except ValueError:
        expected = ", ".join(map(str, shape))
        raise ValueError(
            f"{name} has shape {array.shape}, expected (..., {expected})."
        ) from None


def shaped_like(name: str, value: Any, n: int) -> NDArray[np.float64]:
    """Finite matrices (..., d, n)."""
    array = _checks.real_array(name, value, 2)
    if array.shape[-1] != n:
        raise ValueError(
            f"{name} has shape {array.shape}, expected (..., n_features, {n})."
        )
    return array


def covariances(
    name: str, value: Any, n: int, *, definite: bool = False
) -> NDArray[np.float64]:
    """Symmetric positive semidefinite matrices (..., n, n); definite if asked."""
    array = square_arrays(name, value, n)
    wrong = ~_checks.is_symmetric(array)
    if wrong.any():
        at = _checks.first(wrong) if array.ndim > 2 else ()
        raise ValueError(
            f"{_checks.label(name, at)} is not symmetric. Use the mean of it and its "
            "transpose if that is what you mean."
        )
    array = 0.5 * (array + array.swapaxes(-2, -1))
    if definite:
        _checks.cholesky(name, array, "Add a ridge to its diagonal.")
        return array
    values = np.linalg.eigvalsh(array)
    wrong = values[..., 0] < -_NEGATIVE * np.abs(values).max(axis=-1)
    if wrong.any():
        at = _checks.first(wrong) if array.ndim > 2 else ()
        raise ValueError(
            f"{_checks.label(name, at)} is not positive semidefinite: its smallest "
            f"eigenvalue is {values[*at, 0]:.3g}. Add a ridge to its diagonal."
        )
    return array


def record_count(lengths: Sequence[tuple[str, int]]) -> int | None:
    """Common length of the arrays that have a step axis; None where none has."""
    if len({length for _, length in lengths}) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths)
        raise ValueError(
            f"the parameters vary over different numbers of steps: {found}."
        )
    return lengths[0][1] if lengths else None


def compiled(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    A: NDArray[np.float64],
    b: NDArray[np.float64],
    Q: NDArray[np.float64],
    C: NDArray[np.float64],
    c: NDArray[np.float64],
    R: NDArray[np.float64],
    which: NDArray[np.intp] | None = None,
) -> Arrays:
    """Arrays as `_core.systems.statespace` takes them; one record per leading entry."""
    each = ((A, 2), (b, 1), (Q, 2), (C, 2), (c, 1), (R, 2))
    records = max(len(X) if X.ndim > k else 1 for X, k in each)
    wide = []
    for X, k in each:
        if X.ndim == k:
            X = X[None]
        if len(X) < records:
            X = np.broadcast_to(X, (records, *X.shape[1:]))
        wide.append(np.ascontiguousarray(X))
    if which is None:
        which = np.arange(records if records > 1 else 0)
    return (
        np.ascontiguousarray(mean),
        np.ascontiguousarray(cov),
        *wide,
        np.ascontiguousarray(which, dtype=np.intp),
    )


def root(cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Square roots X X' = cov of semidefinite matrices, for draws."""
    values, vectors = np.linalg.eigh(cov)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def spectral_radius(A: NDArray[np.float64]) -> float:
    """Largest modulus of an eigenvalue, over all matrices."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def refuse_overflow(*by_step: NDArray[np.float64]) -> None:
    """Refuse steps (T, ...) of a system that have left double precision."""
    for values in by_step:
        lost = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if np.any(lost):
            raise ValueError(
                f"step {int(np.argmax(lost))} of {len(values)} is beyond the range of "
                "doubles: the transition grows without limit (spectral_radius() > 1). "
                "Take fewer steps, or a stable transition."
            )


def check_horizon(horizon: Any, model: Any, name: str = "horizon") -> int:
    """T >= 0 that the model's time-varying parameters reach."""
    if isinstance(horizon, bool) or int(horizon) != horizon or horizon < 0:
        raise ValueError(f"{name}={v.shown(horizon)} must be an integer >= 0.")
    if model.n_steps is not None and horizon >= model.n_steps:
        raise ValueError(
            f"{name}={horizon} needs {horizon + 1} steps; the time-varying parameters "
            f"end after n_steps={model.n_steps}."
        )
    return int(horizon)
