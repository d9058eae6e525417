"""Random linear, switching and factorial systems for tests."""

import numpy as np

from maxent.models import FactorialHMM, LinearDynamicalSystem, SwitchingLDS


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


def random_factorial(rng, sizes=(2, 3), d=2):
    return FactorialHMM(
        [rng.dirichlet(np.ones(S)) for S in sizes],
        [rng.dirichlet(np.ones(S), size=S) for S in sizes],
        [rng.normal(size=(S, d)) for S in sizes],
        covariance(rng, d),
    )


def random_switching(rng, K=2, n=2, d=2):
    each = [random_lds(rng, n, d, radius=rng.uniform(0.3, 0.95)) for _ in range(K)]
    return SwitchingLDS(
        rng.dirichlet(np.ones(K)),
        rng.dirichlet(np.ones(K), size=K),
        [p.transition for p in each],
        [p.transition_cov for p in each],
        each[0].observation,
        each[0].observation_cov,
        each[0].initial_mean,
        covariance(rng, n),
        [p.transition_offset for p in each],
        each[0].observation_offset,
    )
