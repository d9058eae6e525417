"""Input of the functions on spanning trees: what is refused, and in which words."""

from __future__ import annotations

import numpy as np

from maxent._core.trees.triangles import first_suspect
from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent._support.validation import check_memory

_DISCONNECTED, _NO_MEMORY = 1, 2  # as in triangles.pxd
_LARGEST = 1e100  # entries up to here need no closer look


def check_square(
    name: str,
    value: ArrayLike,
    *,
    copies: int,
    one: bool = False,
    none: str = "-inf for no edge",
) -> FloatArray:
    """Contiguous (..., n, n): symmetric, n >= 2, neither NaN nor +inf at any pair.

    `none` says in errors how a missing edge is written.
    """
    shape = v.shape_of(name, value)
    if len(shape) < 2 or shape[-1] != shape[-2] or (one and len(shape) != 2):
        wanted = "(n, n)" if one else "(..., n, n)"
        raise ValueError(f"{name} has shape {shape}; {wanted} is needed.")
    n = shape[-1]
    if n < 2:
        raise ValueError(
            f"{name} has n={n} variables; a spanning tree needs two or more."
        )
    size = int(np.prod(shape, dtype=object))
    check_memory(f"{name} with n", n, 8 * (size + copies * n * n))
    array = np.ascontiguousarray(v.as_doubles(name, value))
    # few matrices at a time: Ctrl-C is heard between them, and scratch stays small
    matrices, batch = array.reshape(size // n**2, n, n), shape[:-2]
    step = max(1, 2**20 // n**2)
    for lo in range(0, len(matrices), step):
        some = matrices[lo : lo + step]
        if first_suspect(some, _LARGEST) >= 0:
            _check_entries(name, some, lo, batch, none)
            _check_symmetry(name, some, lo, batch)
    return array


def _check_entries(name, matrices, lo, batch, none):
    """No NaN and no +inf off the diagonals; nothing too large."""
    if not matrices.max() < np.inf:  # NaN if there is one
        wrong = np.isnan(matrices) | (matrices == np.inf)
        wrong &= ~np.eye(matrices.shape[-1], dtype=bool)
        if wrong.any():
            at = np.argwhere(wrong)[0]
            raise ValueError(
                f"{name}[{_place(at, lo, batch)}]={matrices[tuple(at)]} is not "
                f"allowed; entries are finite, or {none}."
            )
    v.check_range(name, np.where(np.isfinite(matrices), matrices, 0.0))


def _check_symmetry(name, matrices, lo=0, batch=()):
    mirrored = matrices.swapaxes(-1, -2)
    differs = matrices != mirrored
    if differs.any():
        with np.errstate(invalid="ignore"):
            close = np.abs(matrices - mirrored) <= 1e-8 * (1.0 + np.abs(matrices))
        differs &= ~close & ~np.eye(matrices.shape[-1], dtype=bool)
    if differs.any():
        at = tuple(np.argwhere(differs)[0])
        raise ValueError(
            f"{name} is not symmetric: {name}[{_place(at, lo, batch)}]="
            f"{matrices[at]:g} but the mirrored entry is {mirrored[at]:g}. Use "
            f"({name} + {name}.T) / 2 if that is what you mean."
        )


def _place(at, lo, batch):
    """Indices of an entry of matrix number lo + at[0] of a batch, as an error shows."""
    lead = np.unravel_index(lo + int(at[0]), batch) if batch else ()
    return _shown_place(int(i) for i in (*lead, *at[1:]))


def check_log_weights(
    log_weights: ArrayLike, *, copies: int = 2, one: bool = False
) -> FloatArray:
    weights = check_square("log_weights", log_weights, copies=copies, one=one)
    diagonal = np.diagonal(weights, axis1=-2, axis2=-1)
    if (diagonal != -np.inf).any():
        at = tuple(int(i) for i in np.argwhere(diagonal != -np.inf)[0])
        raise ValueError(
            f"log_weights[{_shown_place((*at, at[-1]))}]={diagonal[at]:g} joins a "
            "variable to itself; set the diagonal to -inf: "
            "np.fill_diagonal(log_weights, -np.inf)."
        )
    return weights


def check_edge_values(name: str, value: ArrayLike, n: int) -> FloatArray:
    shape = v.shape_of(name, value)
    if shape[-2:] != (n, n):
        raise ValueError(f"{name} has shape {shape}; (..., {n}, {n}) is needed.")
    array = v.as_doubles(name, value)
    wrong = ~np.isfinite(array) & ~np.eye(n, dtype=bool)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name}[{_shown_place(at)}]={array[at]} is not finite; pairs without an "
            "edge may have any finite value."
        )
    array = np.where(np.eye(n, dtype=bool), 0.0, array)
    v.check_range(name, array)
    _check_symmetry(name, array.reshape(-1, n, n), 0, shape[:-2])
    return array


def _shown_place(at):
    return ", ".join(map(str, at))


def refuse(status, weights, place, name="log_weights"):
    """Raise what a status of the compiled functions means."""
    if status == _NO_MEMORY:
        raise MemoryError(
            f"{name} with n={len(weights)} needs {8e-9 * weights.size:.3g} GB more "
            "than there is; use fewer variables."
        )
    where = f"{name}[{_shown_place(place)}]" if place else name
    if status == _DISCONNECTED:
        from scipy.sparse.csgraph import connected_components

        count, part = connected_components(weights > -np.inf, directed=False)
        parts = [v.shown(np.flatnonzero(part == k).tolist()) for k in range(count)]
        more = f" and {count - 3} more" if count > 3 else ""
        raise ValueError(
            f"{where} has no spanning tree: its finite entries leave the separate "
            f"parts {', '.join(parts[:3])}{more}. Give a finite weight to an edge "
            "between them, or treat each part by itself."
        )
    raise ValueError(
        f"{where}: method='cholesky' would lose too many digits, the weights differ "
        "too much; use method='star-mesh'."
    )
