"""Product kernels of models of sequences and of networks, by their own functions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

import numpy as np

from maxent.kernels._lists import check_columns, check_models
from maxent.kernels.pairs._gaussian_parts import GaussianParts
from maxent.kernels.pairs._hmm import log_hmm_kernel
from maxent.kernels.pairs._markov import check_letters
from maxent.kernels.pairs._routes import (
    Array,
    Call,
    ModelRoute,
    Route,
    refuse_infinite,
)
from maxent.kernels.pairs.bayes_net import bayes_net_kernel
from maxent.kernels.pairs.factorial import factorial_hmm_kernel, refuse_too_many_states
from maxent.kernels.pairs.lds import lds_affinity_parts
from maxent.kernels.pairs.linear_gaussian import linear_gaussian_parts
from maxent.kernels.pairs.switching import SwitchingPaths, log_kernels
from maxent.models.networks._factor_model import FactorModel


class HMMRoute(ModelRoute):
    """Hidden Markov models: power of the joint law of states and observations.

    Components of mixtures that states show are states.
    """

    methods = ("auto",)
    together = 16

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        models = [model.with_component_states() for model in models]
        first = like[0].with_component_states() if like else models[0]
        for i, model in enumerate(models):
            if type(model) is not type(first):
                raise TypeError(
                    f"{name}[{i}] is a {type(model).__name__}, the first model a "
                    f"{type(first).__name__}: all must be of one class."
                )
            if type(model.emission) is not type(first.emission):
                raise TypeError(
                    f"{name}[{i}] has {type(model.emission).__name__} emissions, the "
                    f"first model {type(first.emission).__name__}: all must be of one "
                    "family."
                )
            mine, theirs = model.emission._space(), first.emission._space()
            if mine != theirs:
                raise ValueError(
                    f"{name}[{i}] has emissions over {mine}, the first model over "
                    f"{theirs}: the models are over different spaces."
                )
        if hasattr(first, "alphabet"):
            check_letters(name, models, first.alphabet)
        check_columns(name, models, like)
        return models

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        for side, models in (("P", P), ("Q", Q)):
            for i, model in enumerate(models or ()):
                name = f"emission {{}} of {call.named[side]}[{i}]"
                members = [name.format(h) for h in range(model.n_states)]
                refuse_infinite(name, model.emission, call.rho, members)

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        assert call.horizons is not None
        top = int(call.horizons[-1])
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        for k, rho in enumerate(call.rho):
            L = log_hmm_kernel(
                P,
                Q,
                rho=float(rho),
                horizon=top,
                every=len(call.horizons) > 1,
                n_jobs=call.n_jobs,
            )
            if len(call.horizons) == 1:
                L = L[None]
            else:
                L = L[call.horizons]
            out[..., k] = np.moveaxis(L, 0, -1)
        return out


class NetworkRoute(Route):
    """Linear Gaussian networks: exact."""

    sequences = False

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        return linear_gaussian_parts(P, Q).log_kernel(call.rho)[:, :, None]

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        return linear_gaussian_parts(P[:1], P).log_self(call.rho)[1][:, None]


class SystemRoute(Route):
    """Linear dynamical systems: exact."""

    methods = ("auto", "exact", "joint", "per_step")

    def _parts(self, P: Any, Q: Any, call: Call) -> GaussianParts:
        method: Literal["joint", "per_step"]
        method = "per_step" if call.method == "per_step" else "joint"
        assert call.horizons is not None
        return lds_affinity_parts(
            P, Q, horizon=call.horizons, method=method, n_jobs=call.n_jobs
        )

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        return self._parts(P, Q, call).log_kernel(call.rho)

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        return self._parts(P[:1], P, call).log_self(call.rho)[1]


class SwitchingRoute(Route):
    """Switching systems: paths of regimes drawn once for each model, or all of them."""

    methods = ("auto", "exact")

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        if call.method == "exact" and call.horizons is not None:
            most = max([*P, *(Q or ())], key=lambda model: model.n_regimes)
            most.all_paths(int(call.horizons[-1]))  # refuses too many

    def _paths(self, models: Any, call: Call, horizon: int) -> Any:
        n_paths = None if call.method == "exact" else call.n_paths
        return SwitchingPaths(
            models, horizon=horizon, n_paths=n_paths, random_state=call.seed
        )

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        assert call.horizons is not None
        for h, T in enumerate(call.horizons):
            left = self._paths(P, call, int(T))
            right = None if Q is None else self._paths(Q, call, int(T))
            out[:, :, h] = log_kernels(
                left, right, call.rho, "observations", call.n_jobs
            )
        return out

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        out = np.empty((len(P), *call.shape))
        assert call.horizons is not None
        for h, T in enumerate(call.horizons):
            paths = self._paths(P, call, int(T))
            out[:, h] = paths.log_self(call.rho, "observations", call.n_jobs)
        return out


class FactorialRoute(ModelRoute):
    """Factorial hidden Markov models: exact where small, mean field beyond."""

    methods: ClassVar[tuple[str, ...]] = ("auto", "exact", "collapsed")

    def check_call(self, P: Any, Q: Any, call: Call) -> None:
        refuse_too_many_states(call.method, P, Q or P)

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        assert call.horizons is not None
        method = cast(Literal["auto", "exact", "collapsed"], call.method)
        for k, rho in enumerate(call.rho):
            out[..., k] = factorial_hmm_kernel(
                P,
                Q,
                rho=float(rho),
                horizon=call.horizons,
                method=method,
                n_init=call.n_init,
                log=True,
                random_state=call.seed,
            )
        return out


class FactorRoute(ModelRoute):
    """Bayes nets and Markov random fields: elimination, or mean field beyond it."""

    methods = ("auto", "exact", "meanfield")
    sequences = False
    space = "observed_sizes"

    def checked(self, name: str, models: Any, like: Any = None) -> Any:
        kind: Any = FactorModel  # nets and fields have kernels with each other
        return check_models(name, models, kind, space=self.space, like=like)

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        for k, rho in enumerate(call.rho):
            out[:, :, 0, k] = bayes_net_kernel(
                P,
                Q,
                rho=float(rho),
                method=call.method,  # type: ignore[arg-type]
                n_init=call.n_init,
                log=True,
                random_state=call.seed,
            )
        return out
