"""Steps of generalised, improved and sequential scaling, for one or many weights.

All are monotone in the dual log Phi - lam . eta + sum lam^2 / (2 s2). Steps that would
leave |lam| <= bound are cut there: the lower bound of the gain that GIS and IIS climb
is concave and separable, so a shorter step climbs too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent._support.compiling import compiled
from maxent.latent._space import FeatureSpace

Array = NDArray[np.float64]

SCALING = ("gis", "iis", "scgis")


def steps_of(
    a: Array, values: Array, target: Array, lam: Array, weight: Array
) -> Array:
    """Roots gamma of sum_k a_ik e^{gamma k} + weight (lam + gamma) = target.

    a (..., N, K), target and lam (..., N), weight (N,).
    """
    out = np.empty(lam.shape)
    n_values = a.shape[-1]
    compiled("iterative_scaling").scaling_steps(
        np.ascontiguousarray(a.reshape(-1, n_values)),
        values,
        np.ascontiguousarray(target).reshape(-1),
        np.ascontiguousarray(lam).reshape(-1),
        np.ascontiguousarray(np.broadcast_to(weight, lam.shape)).reshape(-1),
        out.reshape(-1),
    )
    return out


def bounded(lam: Array, step: Array, bound: float | Array) -> Array:
    """lam + step, cut to [-bound, bound]."""
    with np.errstate(invalid="ignore"):
        return np.clip(lam + step, -bound, bound)


def histogram(space: FeatureSpace, p: Array) -> Array:
    """a[..., i, k] = sum of p f_i over the states whose feature sum is value k."""
    values, bucket = space.sum_values
    F = space.shifted
    flat = np.ascontiguousarray(p.reshape(-1, space.n_states))
    out = np.zeros((len(flat), space.n_features, len(values)))
    add = compiled("iterative_scaling").moments_by_sum
    for row, room in zip(flat, out):
        add(row, F.indptr, F.indices, F.data, bucket, room)
    return out.reshape(p.shape[:-1] + out.shape[1:])


def scaled(
    space: FeatureSpace,
    lam: Array,
    target: Array,
    weight: Array,
    method: str,
    bound: float | Array = np.inf,
) -> Array:
    """Weights after one step; lam, target (..., N); target in the caller's features."""
    target = space.shifted_target(target)
    if method == "scgis":
        return swept(space, lam, target, weight, bound)
    _, p = space.probabilities(lam)
    if method == "gis":
        a = space.shifted_target(space.mean(p))[..., None]
        values = np.array([space.sums.max()])
    else:
        a, values = histogram(space, p), space.sum_values[0]
    return bounded(lam, steps_of(a, values, target, lam, weight), bound)


def swept(space, lam, target, weight, bound=np.inf):
    """One sweep of sequential scaling over all weights, for every row of lam."""
    C = space.by_feature
    u = space.probabilities(lam)[1]
    flat = np.array(lam, dtype=np.float64).reshape(-1, space.n_features)
    goals = np.broadcast_to(target, lam.shape).reshape(flat.shape)
    bounds = np.ascontiguousarray(np.broadcast_to(bound, lam.shape[-1:]), dtype=float)
    sweep = compiled("iterative_scaling").coordinate_sweep
    for row, own, goal in zip(flat, u.reshape(len(flat), -1), goals):
        sweep(
            np.ascontiguousarray(own),
            C.indptr,
            C.indices,
            C.data,
            np.ascontiguousarray(goal),
            weight,
            bounds,
            row,
        )
    return flat.reshape(lam.shape)
