"""Random linear dynamical systems for tests."""

import numpy as np

from maxent.models import LinearDynamicalSystem


def covariance(rng, n, steps=None, floor=0.3):
    lead = () if steps is None else (steps,)
    X = rng.normal(size=(*lead, n, n))
    return X @ X.swapaxes(-2, -1) / n + floor * np.eye(n)


def random_lds(rng, n=2, d=2, *, radius=0.9, offsets=True, steps=None, singular=False):
    """A system with full parameters; `singular` makes Q and P of rank n - 1."""
    lead = () if steps is None else (steps,)
    A = rng.normal(size=(*lead, n, n))
    A = A * radius / np.abs(np.linalg.eigvals(A)).max(axis=-1)[..., None, None]
    Q, P = covariance(rng, n, steps), covariance(rng, n)
    if singular:
        drop = np.eye(n)
        drop[0, 0] = 0.0
        Q, P = drop @ Q @ drop, drop @ P @ drop
    scale = float(offsets)
    return LinearDynamicalSystem(
        A,
        Q,
        rng.normal(size=(*lead, d, n)),
        covariance(rng, d, steps),
        scale * rng.normal(size=n),
        P,
        scale * rng.normal(size=(*lead, n)),
        scale * rng.normal(size=(*lead, d)),
    )
