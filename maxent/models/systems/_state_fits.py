"""What the fits of models with vectors as observations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models._holding import as_given
from maxent.models._state_space import Parameters
from maxent.models._units import Units
from maxent.models.systems import _lds_em as em
from maxent.models.systems._free_parameters import COVARIANCES, Coordinates, Held

Array = NDArray[np.float64]
_UNIDENTIFIED = 1e-9  # eigenvalue of scaled information that is noise of differences


class Start(Protocol):
    """A model that a fit starts from."""

    @property
    def n_states(self) -> int: ...
    @property
    def _parameters(self) -> Any: ...


class LinearStart(Start, Protocol):
    """The same, of linear systems."""

    n_steps: int | None


def n_states_of(init: Start | None, n_states: int | None) -> int:
    """Return the number of states, from `init` or as given; refuse disagreement."""
    if init is None:
        if n_states is None:
            raise ValueError("n_states=None: give n_states, or init.")
        return v.check_count("n_states", n_states)
    if n_states not in (None, init.n_states):
        raise ValueError(f"n_states={n_states} but init has {init.n_states} states.")
    return init.n_states


def lds_starts(
    data: Sequences,
    n: int,
    units: Units,
    init: LinearStart | None,
    n_init: int,
    fixed: dict[str, Any],
    diagonal: list[str],
    random_state: Any,
    n_inputs: int,
) -> Iterator[Parameters]:
    """Parameters to start from: the given ones, then those of windows of the data.

    All are of standardised data, as `data` are.
    """
    if init is not None:
        if init.n_steps is not None:
            raise ValueError(
                f"init varies over n_steps={init.n_steps}; only systems that are "
                "constant in time are fitted."
            )
        kept = init._parameters.inward(units)
        if kept.transition_input.shape[1] != n_inputs:
            raise ValueError(
                f"init has n_inputs={kept.transition_input.shape[1]}, but inputs= has "
                f"{n_inputs} columns."
            )
        yield kept
    rng = as_generator(random_state)
    for k in range(init is not None, n_init):
        p = em.start(data, n, rng if k else None, n_inputs)
        if init is not None:  # further starts keep what is fixed
            masks = Held.of(fixed, kept, diagonal).masks._asdict()
            p = Parameters(
                **{
                    name: np.where(masks[name], getattr(kept, name), own)
                    for name, own in p._asdict().items()
                }
            )
        yield p


def diagonal_covariances(transition: str, observation: str) -> list[str]:
    """Covariances that a fit takes diagonal."""
    kinds = {"transition_cov": transition, "observation_cov": observation}
    for name, kind in kinds.items():
        v.check_choice(f"{name}_type", kind, ("full", "diagonal"))
    return [name for name, kind in kinds.items() if kind == "diagonal"]


def width_of(inputs: list[Array] | None) -> int:
    """Number of inputs."""
    return 0 if inputs is None else inputs[0].shape[1]


def started(
    p: Parameters, diagonal: list[str], fixed: dict[str, Any], diffuse: bool
) -> Parameters:
    """A start with covariances of the kinds that a fit has."""
    for name in diagonal:
        cov = getattr(p, name)
        flat = np.diag(np.diagonal(cov))
        p = p._replace(**{name: as_given(flat, cov, fixed.get(name))})
    if diffuse:
        n = len(p.initial_mean)
        p = p._replace(
            initial_mean=np.zeros(n), initial_cov=np.diag(np.full(n, np.inf))
        )
    return p


def _refuse_limits(space: Coordinates, slope: Array, curvature: Array) -> None:
    """Refuse variances whose maximum is at zero.

    By the logarithm of such a variance the likelihood has a slope and a curvature of
    one size, both of which vanish; at a maximum inside the slope is the smaller.
    """
    for k, (name, entry) in enumerate(space.names()):
        inside = abs(slope[k]) <= 0.1 * curvature[k]
        if name in COVARIANCES and entry[0] == entry[1] and not inside:
            raise ValueError(
                f"{name}[{entry[0]}, {entry[1]}] is at no maximum of the likelihood "
                "inside its range: if it went to zero, set it to zero and hold it by "
                "fixed=; else fit to a smaller tol, with prior=0."
            )


# -- standard errors -------------------------------------------------------------------
_MOVE = 1e-3  # of a coordinate between two scores, in standard errors


def standard_errors(
    p: Parameters, held: Held, score: Callable[[Parameters], Array]
) -> dict[str, Array]:
    """Standard errors of the entries that are not held, by the observed information.

    The information is the derivative of the exact score by the coordinates, by central
    differences; errors of entries follow by the delta method.
    """
    space = Coordinates.of(p, held)
    at = space.pack(p)
    if not len(at):
        raise ValueError("fixed= holds all parameters; there are no errors.")

    def information(moves: Array) -> Array:
        rows = []
        for i, h in enumerate(moves):
            away = h * np.eye(len(at))[i]
            change = score(space.unpack(at + away)) - score(space.unpack(at - away))
            rows.append(-change / (2.0 * h))
        found = np.array(rows)
        return 0.5 * (found + found.T)

    first = np.diagonal(information(1e-5 * (1.0 + np.abs(at))))
    width = np.where(first > 0.0, 1.0 / np.sqrt(np.maximum(first, 1e-300)), 1e3)
    # coordinates of covariances are about logarithms: one is a long way
    logs = np.array([name in COVARIANCES for name, _ in space.names()])
    whole = information(_MOVE * np.where(logs, np.minimum(width, 10.0), width))
    scale = np.sqrt(np.maximum(np.diagonal(whole), 1e-300))
    values, vectors = np.linalg.eigh(whole / scale / scale[:, None])
    if values[0] <= _UNIDENTIFIED:
        k = int(np.argmax(np.abs(vectors[:, 0])))
        name, entry = space.names()[k]
        raise ValueError(
            f"the observed information is singular, most of all along {name}"
            f"[{', '.join(map(str, entry))}]: the data do not determine all that is "
            "free, or the parameters are no maximum. Hold more by fixed=, or fit to a "
            "smaller tol."
        )
    _refuse_limits(space, score(p), np.diagonal(whole))
    root = vectors / np.sqrt(values) / scale[:, None]
    errors = np.sqrt(np.square(space.jacobian(p) @ root).sum(axis=1))
    out = {name: np.zeros(np.shape(X)) for name, X in p._asdict().items()}
    for (name, entry), error in zip(space.names(), errors):
        out[name][entry] = error
        if name in COVARIANCES:
            out[name][entry[::-1]] = error
    return out
