"""Checks of state-space parameters, and the arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent.families import _checks

# Eigenvalues below minus this share of the largest are not rounding.
_NEGATIVE = 1e-10

Arrays = tuple[NDArray[Any], ...]


class Parameters(NamedTuple):
    """Arguments of the constructor of a linear system, in its order."""

    transition: Any
    transition_cov: Any
    observation: Any
    observation_cov: Any
    initial_mean: Any
    initial_cov: Any
    transition_offset: Any
    observation_offset: Any
    transition_input: Any
    observation_input: Any

    @property
    def diffuse(self) -> NDArray[np.bool_]:
        """Mask of the states that begin without a prior: of infinite variance."""
        return np.asarray(np.isinf(np.diagonal(self.initial_cov)))

    def inward(self, units: Any) -> Parameters:
        """These parameters for standardised data."""
        new: Parameters = units.inward(self)
        return new._replace(
            observation_input=self.observation_input / units.scale[:, None]
        )

    def outward(self, units: Any) -> Parameters:
        """Parameters for standardised data as those for the data as given."""
        new: Parameters = units.outward(self)
        return new._replace(
            observation_input=self.observation_input * units.scale[:, None]
        )

    def compiled(self, inputs: NDArray[np.float64] | None = None) -> Arrays:
        """Arrays for the compiled functions, of one series of inputs if there is one.

        States without a prior have the variance one here: of a flat number and a normal
        one the sum is as flat.
        """
        b, c = self.transition_offset, self.observation_offset
        parts = [self.transition, self.transition_cov, self.observation]
        parts.append(self.observation_cov)
        if inputs is not None:
            T = len(inputs)
            parts = [X[:T] if X.ndim > 2 else X for X in parts]
            b, c = (X[:T] if X.ndim > 1 else X for X in (b, c))
            b = b + inputs @ self.transition_input.T
            c = c + inputs @ self.observation_input.T
        A, Q, C, R = parts
        P = np.where(np.isinf(self.initial_cov), 1.0, self.initial_cov)
        return compiled(self.initial_mean, P, A, b, Q, C, c, R)


def checked(given: Parameters) -> tuple[Parameters, int | None]:
    """Checked parameters, and the length of those that vary with time."""
    A = square_arrays("transition", given.transition)
    n = A.shape[-1]
    C = shaped_like("observation", given.observation, n)
    d = C.shape[-2]
    p = Parameters(
        A,
        covariances("transition_cov", given.transition_cov, n),
        C,
        covariances("observation_cov", given.observation_cov, d),
        shaped("initial_mean", given.initial_mean, (n,)),
        _first_covariance(given.initial_cov, n),
        shaped("transition_offset", given.transition_offset, (n,)),
        shaped("observation_offset", given.observation_offset, (d,)),
        *_input_matrices(given, n, d),
    )
    lengths = []
    for name, array in p._asdict().items():
        core = 1 if name.endswith(("mean", "offset")) else 2
        constant = name.startswith("initial") or name.endswith("input")
        if array.ndim > core + (not constant):
            axes = "no axis of steps" if constant else "one axis of steps at most"
            raise ValueError(f"{name} has shape {array.shape}; it has {axes}.")
        if array.ndim > core:
            lengths.append((name, len(array)))
    return p, record_count(lengths)


def _first_covariance(value: Any, n: int) -> NDArray[np.float64]:
    """P, whose diagonal may hold inf: of states that begin without a prior."""
    array = np.array(v.as_doubles("initial_cov", value))
    if array.shape != (n, n) or not np.isposinf(np.diagonal(array)).any():
        return covariances("initial_cov", value, n)
    free = np.isposinf(np.diagonal(array))
    beside = np.where(np.eye(n, dtype=bool), 0.0, array)
    if beside[free].any() or beside[:, free].any():
        i = int(np.argmax(free))
        raise ValueError(
            f"initial_cov[{i}, {i}]=inf is a state without a prior, which has no "
            "covariances with others; set the rest of its row and column to 0."
        )
    rest = covariances("initial_cov", np.where(np.isposinf(array), 0.0, array), n)
    return np.where(np.diag(free), np.inf, rest)


def _input_matrices(given: Parameters, n: int, d: int) -> list[NDArray[np.float64]]:
    """B (n, k) and D (d, k); None is a matrix of zeros."""
    found = []
    for name, rows in (("transition_input", n), ("observation_input", d)):
        value = getattr(given, name)
        array = None
        if value is not None:
            array = np.array(v.as_doubles(name, value))
            if array.ndim != 2 or len(array) != rows:
                raise ValueError(
                    f"{name} has shape {array.shape}, expected ({rows}, n_inputs)."
                )
            v.check_entries(name, array, "Give finite numbers.")
        found.append(array)
    widths = [array.shape[1] for array in found if array is not None]
    if len(set(widths)) > 1:
        raise ValueError(
            f"transition_input has {widths[0]} columns and observation_input "
            f"{widths[1]}: both are of the same inputs; fill in columns of zeros."
        )
    k = widths[0] if widths else 0
    return [
        np.zeros((rows, k)) if array is None else array
        for array, rows in zip(found, (n, d))
    ]


def read_inputs(
    inputs: Any,
    data: Sequences,
    lengths: ArrayLike | None,
    n_inputs: int | None,
    name: str = "inputs",
) -> list[NDArray[np.float64]] | None:
    """Inputs of every sequence (n_steps, n_inputs), or None of a system without."""
    if inputs is None and not n_inputs:
        return None
    if inputs is None:
        raise ValueError(
            f"{name}=None, but the system has n_inputs={n_inputs}: give the inputs of "
            "the steps, in the form of the sequences."
        )
    if n_inputs == 0:
        raise ValueError(
            f"{name} is given, but the system has no transition_input and no "
            "observation_input; leave it out."
        )
    found = vector_sequences(inputs, lengths, n_features=n_inputs, name=name)
    if np.isnan(found.values).any():
        i, t = found.place(int(np.argmax(np.isnan(found.values).any(axis=1))))
        raise ValueError(
            f"{name}[{i}][{t}] is NaN; inputs are known: fill in what is missing."
        )
    if not np.array_equal(found.lengths, data.lengths):
        raise ValueError(
            f"{name} has sequences of lengths {v.shown(found.lengths.tolist())}, but "
            f"the sequences have {v.shown(data.lengths.tolist())}: give one row for "
            "each step."
        )
    return list(found)


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
