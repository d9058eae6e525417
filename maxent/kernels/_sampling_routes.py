"""Routes by sampling: any model with `sample` and `log_likelihood` or `log_prob`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxent._support.random_state import stream_of
from maxent.kernels.pairs._routes import Array, Call, Route
from maxent.kernels.sampling import SharedSample, drawn, log_pair_kernel


class _SamplingRoute(Route):
    """Models are checked by their own route where they have one."""

    methods: ClassVar[tuple[str, ...]] = ("shared_sample", "pair_sample")

    def _horizons(self, call: Call) -> list[int | None]:
        if call.horizons is None:
            return [None]
        return [int(T) for T in call.horizons]


class SharedSampleRoute(_SamplingRoute):
    """One importance sample for all pairs, from the models of the second list."""

    def _sample(self, models: Any, side: int, horizon: int | None, call: Call) -> Any:
        if call.sample is not None:
            return call.sample
        return SharedSample(
            models,
            horizon=horizon,
            n_samples=call.n_samples,
            random_state=call.stream(side),
        )

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        source, side = (P, 0) if Q is None else (Q, 1)
        for h, T in enumerate(self._horizons(call)):
            sample = self._sample(source, side, T, call)
            for k, rho in enumerate(call.rho):
                out[:, :, h, k] = sample.log_kernel(P, Q, rho=float(rho))
        return out

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        return self._own(P, P, side, call)

    def log_new(self, P: Any, Q: Any, call: Call) -> Array:
        return self._own(P, Q, 1, call)

    def _own(self, models: Any, source: Any, side: int, call: Call) -> Array:
        """Kernels of models with themselves, by the sample from a list."""
        out = np.empty((len(models), *call.shape))
        for h, T in enumerate(self._horizons(call)):
            sample = self._sample(source, side, T, call)
            for k, rho in enumerate(call.rho):
                F = 2.0 * sample.log_features(models, float(rho))
                out[:, h, k] = np.logaddexp.reduce(F, axis=1)
        return out


class PairSampleRoute(_SamplingRoute):
    """The mean of two importance samples, one from each model of a pair."""

    def _draws(self, models: Any, side: int, horizon: int | None, call: Call) -> Any:
        rngs = self._streams(models, side, call)
        return [drawn(m, call.n_samples, horizon, r) for m, r in zip(models, rngs)]

    def _streams(self, models: Any, side: int, call: Call) -> list[Any]:
        """Streams by the contents of models, by their places if these are not known."""
        if all(hasattr(model, "get_spec") for model in models):
            return [stream_of(call.seed, model) for model in models]
        return call.stream(side).spawn(len(models))

    def log_kernel(self, P: Any, Q: Any, call: Call) -> Array:
        out = np.empty((len(P), len(P if Q is None else Q), *call.shape))
        for h, T in enumerate(self._horizons(call)):
            left = self._draws(P, 0, T, call)
            right = left if Q is None else self._draws(Q, 1, T, call)
            for k, rho in enumerate(call.rho):
                out[:, :, h, k] = log_pair_kernel(
                    P, P if Q is None else Q, float(rho), left, right
                )
        return out

    def log_self(self, P: Any, side: int, call: Call) -> Array:
        out = np.empty((len(P), *call.shape))
        for h, T in enumerate(self._horizons(call)):
            draws = self._draws(P, side, T, call)
            for k, rho in enumerate(call.rho):
                for i, own in enumerate(draws):
                    one = P[i : i + 1]
                    L = log_pair_kernel(one, one, float(rho), [own], [own])
                    out[i, h, k] = L[0, 0]
        return out
