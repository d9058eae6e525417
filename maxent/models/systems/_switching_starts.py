"""Starts of the fits of switching systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.models._holding import as_given, maximum_of_free
from maxent.models._units import Units
from maxent.models.systems import _lds_em as lds_em
from maxent.models.systems import _switching_em as em
from maxent.models.systems._free_parameters import Held
from maxent.models.systems._state_fits import Start


class SwitchingStart(Start, Protocol):
    """A switching system that a fit starts from."""

    @property
    def n_regimes(self) -> int: ...


def regimes_of(init: SwitchingStart | None, n_regimes: int | None) -> int:
    """Return the number of regimes, from `init` or as given; refuse disagreement."""
    if init is None:
        if n_regimes is None:
            raise ValueError("n_regimes=None: give n_regimes, or init.")
        return v.check_count("n_regimes", n_regimes)
    if n_regimes not in (None, init.n_regimes):
        raise ValueError(f"n_regimes={n_regimes} but init has {init.n_regimes}.")
    return init.n_regimes


def switching_start(
    problem: em.Problem,
    K: int,
    n: int,
    units: Units,
    init: SwitchingStart | None,
    rng: np.random.Generator,
    law: lds_em.CovariancePrior,
) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
    """Parameters and regime probabilities to start from."""
    if init is not None:
        return tuple(units.inward(init._parameters)), np.full(
            (len(problem.into), K), 1.0 / K
        )
    p = _alike(_one_system(problem.data, n, law), K)
    regimes = em.random_segments(problem, K, rng)
    if K > 1 and len(problem.into):
        p = _told_apart(problem, p, regimes, law)
    return tuple(p), regimes


def holding(p: em.Parameters, start: em.Parameters, held: Any) -> em.Parameters:
    """Further parameters to start from, with what is held of a start."""
    new = p._asdict()
    for name, mask in held.items():
        old = getattr(start, name)
        if name in ("start", "switching"):
            new[name] = maximum_of_free(new[name], 0.0, old, mask)
        else:
            new[name] = as_given(new[name], old, mask)
    return em.Parameters(**new)


def _one_system(data, n, law):
    """One linear system after a few EM steps: states that fit the data."""
    one = lds_em.start(data, n)
    held = Held.of({}, one)
    for _ in range(10):
        _, products = lds_em.expected_products(one, data)
        one = lds_em.maximised(one, products, law, held, True)
    return one


def _alike(one, K):
    """K regimes, all of them one system, that seldom change."""
    switching = np.full((K, K), 0.1 / K) + 0.9 * np.eye(K)
    return em.Parameters(
        np.full(K, 1.0 / K),
        switching,
        np.stack([one.transition] * K),
        np.stack([one.transition_cov] * K),
        one.observation,
        one.observation_cov,
        one.initial_mean,
        one.initial_cov,
        np.stack([one.transition_offset] * K),
        one.observation_offset,
    )


def _told_apart(problem, p, regimes, law):
    """Regimes that differ by regressions on the segments of each."""
    segments = replace(problem.believe(p, regimes), regimes=regimes)
    new = em.maximised(problem, p, segments, em.Rules.of(law, 1.0, True, {}, p))
    return p._replace(
        transition=new.transition,
        transition_cov=new.transition_cov,
        transition_offset=new.transition_offset,
    )
