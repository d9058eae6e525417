"""Which code computes the product kernels of which class of models.

`ROUTES` is the one table: the full name of a class -> "module:name" of its `Route`. A
model takes the entry of its class or of the nearest base class. A route works on
checked lists of models (or batches of a family) and returns logarithms for all powers
and horizons,

    log_kernel  (n, m, horizons, powers),      log_self  (n, horizons, powers);

the axis of horizons has length one where there are none.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.registry import resolve
from maxent.families import ExponentialFamily
from maxent.kernels._lists import check_models, listed

Array = NDArray[np.float64]

_HERE = "maxent.kernels.pairs."
ROUTES = {
    "maxent.families.base.ExponentialFamily": _HERE + "_family_routes:FamilyRoute",
    "maxent.models.mixture.Mixture": _HERE + "_family_routes:MixtureRoute",
    "maxent.models.chains.markov.MarkovChain": _HERE + "_markov:MarkovRoute",
    "maxent.models.chains._hidden_chain.HiddenMarkovModel": _HERE
    + "_model_routes:HMMRoute",
    "maxent.models.networks.linear_gaussian.LinearGaussianNetwork": _HERE
    + "_model_routes:NetworkRoute",
    "maxent.models.systems.lds.LinearDynamicalSystem": _HERE
    + "_model_routes:SystemRoute",
    "maxent.models.systems.switching.SwitchingLDS": _HERE
    + "_model_routes:SwitchingRoute",
    "maxent.models.chains.factorial.FactorialHMM": _HERE
    + "_model_routes:FactorialRoute",
    "maxent.models.networks._factor_model.FactorModel": _HERE
    + "_model_routes:FactorRoute",
}
SAMPLERS = {
    "shared_sample": "maxent.kernels._sampling_routes:SharedSampleRoute",
    "pair_sample": "maxent.kernels._sampling_routes:PairSampleRoute",
}


@dataclass(frozen=True)
class Call:
    """What is asked for: powers, horizons and options.

    `seed` is what all draws come from; `sides` say which stream belongs to the first
    and to the second list, so that a list keeps its draws in every call.
    """

    rho: Array
    horizons: NDArray[np.intp] | None
    method: str = "auto"
    n_jobs: int | None = None
    n_paths: int | None = 8
    n_init: int = 4
    n_samples: int = 1000
    seed: int = 0
    sides: tuple[int, int] = (0, 1)
    sample: Any = None
    named: dict[str, str] = field(default_factory=lambda: {"P": "P", "Q": "Q"})

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of horizons and of powers."""
        return 1 if self.horizons is None else len(self.horizons), len(self.rho)

    def stream(self, side: int) -> np.random.Generator:
        """Source of draws for one of the lists."""
        return np.random.default_rng([self.seed, self.sides[side]])


class Route(ABC):
    """Product kernels of one class of models."""

    #: names of `method`, beside those of sampling; the first one is "auto"
    methods: ClassVar[tuple[str, ...]] = ("auto", "exact")
    #: whether models are of sequences, so that a horizon is needed
    sequences: ClassVar[bool] = True
    #: attribute that all models must share
    space: ClassVar[str] = "n_features"

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        """The models, of one class and over one space."""
        cls = type((like or models)[0])
        return check_models(name, models, cls, space=self.space, like=like)

    def check_call(self, P: Any, Q: Any, call: Call) -> None:  # noqa: B027
        """Refuse powers and options for which there is no kernel, before any."""

    @abstractmethod
    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        """Logarithms of the kernels; Q None is P, and then exactly symmetric."""

    @abstractmethod
    def log_self(self, P: Any, side: int, call: Call) -> Array:
        """Logarithms of the kernel of every model with itself."""

    def log_new(self, P: Any, Q: Any, call: Call) -> Array:
        """`log_self` of P in a kernel with Q."""
        return self.log_self(P, 0, call)


class ModelRoute(Route):
    """Routes whose kernel of a model with itself is on the diagonal of a small matrix.

    Its size is `together`: more than one where a call costs more than its kernels.
    """

    together: ClassVar[int] = 1

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        parts = []
        for lo in range(0, len(P), self.together):
            L = self.log_kernel(P[lo : lo + self.together], None, call)
            i = np.arange(len(L))
            parts.append(L[i, i])
        return np.concatenate(parts)


@functools.cache
def _route(home: str) -> Route:
    made: Route = resolve(home)()
    return made


def _own_route(model: Any) -> Route | None:
    """Route of a model's class or of its nearest base class."""
    for cls in type(model).__mro__:
        home = ROUTES.get(f"{cls.__module__}.{cls.__qualname__}")
        if home is not None:
            return _route(home)
    return None


def routes_of(name: str, model: Any, method: str) -> tuple[Route | None, Route]:
    """The route that checks a model, if there is one, and the one that computes.

    Raises
    ------
    TypeError
        If the class is not in the table and cannot be sampled.
    ValueError
        If its route has no such method.
    """
    own = _own_route(model)
    if own is None and not _can_be_sampled(model):
        known = sorted(key.rpartition(".")[2] for key in ROUTES)
        raise TypeError(
            f"{name}={v.shown(model)} is of a class that has no product kernel: it is "
            f"no {', '.join(known)}, and has no methods sample and log_likelihood."
        )
    if method in SAMPLERS:
        return own, _route(SAMPLERS[method])
    if own is None:
        raise ValueError(
            f"method={v.shown(method)} is not known for {type(model).__name__}; use "
            "'shared_sample', which needs its sample and log_likelihood only."
        )
    known = [*own.methods, *SAMPLERS]
    if method == "exact" and method not in known:
        raise ValueError(
            f"method='exact' has no closed form for {type(model).__name__}, whose "
            "hidden variables 'auto' raises to the power too (the same at rho=1); "
            "'shared_sample' estimates it."
        )
    v.check_choice(f"method for {type(model).__name__}", method, known)
    return own, own


def _can_be_sampled(model):
    densities = ("log_likelihood", "log_prob")
    return hasattr(model, "sample") and any(hasattr(model, a) for a in densities)


def check_like(name: str, models: Any, like: Any, method: str) -> None:
    """Refuse models that have no kernel with others, which are known to be valid."""
    models = listed(name, models)
    first = models if isinstance(models, ExponentialFamily) else models[0]
    own, _ = routes_of(f"{name}[0]", first, method)
    if own is not None:
        own.checked(name, models, like=like)


def is_sequence_model(model: Any) -> bool:
    """True if a model is of sequences: as its route says, or as `sample` does."""
    own = _own_route(model)
    if own is not None:
        return own.sequences
    return "length" in inspect.signature(model.sample).parameters


def refuse_infinite(name: str, batch: Any, rho: Array, members: Sequence[str]) -> None:
    """Refuse powers at which a member's kernel with itself is infinite."""
    low, high = (np.ravel(a) for a in batch.affinity_range())
    for r in rho:
        wrong = np.flatnonzero((r <= low) | (r >= high))
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"rho={r:g} makes the kernel of {members[i]} with itself infinite; "
                f"between rho={low[i]:.6g} and rho={high[i]:.6g} it is finite."
            )
