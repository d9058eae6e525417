"""One model for each datum: what `ProductKernel` asks of the models.

sequences       fit_many of the sequence models
bags of rows    fit_many of mixtures, or a fit of a family to each bag
single rows     a fit of a family to each row, with its neighbours if asked for
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.registry import VALUES, resolve
from maxent._support.sequences import (
    Sequences,
    symbol_sequences,
    vector_sequences,
)
from maxent.families import ExponentialFamily
from maxent.kernels._hmm import stacked
from maxent.models._chain_input import alphabet_size
from maxent.models.base import Model

# names of the parameters that are a prior; estimate="ml" sets them to zero
PRIORS = {
    "SwitchingLDS": ("prior", "smoothing"),
    "LinearDynamicalSystem": ("prior",),
    "FactorialHMM": ("smoothing", "shrinkage", "ridge"),
}
SYMBOLS = ("CategoricalHMM", "MarkovChain")
SERIES = ("GaussianHMM", "LinearDynamicalSystem", "SwitchingLDS", "FactorialHMM")
ESTIMATES = ("ml", "map", "predictive")
# whose posterior predictive of one draw is in the family: pseudo-counts, by default
# those of the uniform prior
PREDICTIVE = ("multinomial", "Categorical", "Multinomial", "Bernoulli", "MarkovChain")


def model_class(model: Any) -> type[Any]:
    """Class of a model or family from its name, or as given."""
    if isinstance(model, str):
        home = VALUES.get(model)
        cls = resolve(home) if home else None
    else:
        cls = model
    is_family = isinstance(cls, type) and issubclass(cls, ExponentialFamily)
    known = isinstance(cls, type) and cls.__name__ in (*SYMBOLS, *SERIES, "Mixture")
    if not is_family and not known:
        raise ValueError(
            f"model={v.shown(model)} is not known; use 'multinomial', "
            f"{', '.join(map(repr, (*SYMBOLS, *SERIES, 'Mixture')))} or a family such "
            "as 'Gaussian', or None for data that are models."
        )
    assert isinstance(cls, type)
    return cls


def fit_options(name: str, estimate: str, params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a fit, with the prior that an estimate asks for."""
    v.check_choice("estimate", estimate, ESTIMATES)
    priors = PRIORS.get(name, ("smoothing",))
    if estimate == "ml":
        given = [p for p in priors if p in params]
        if given:
            raise ValueError(
                f"estimate='ml' has no prior, but model_params has {given[0]}="
                f"{v.shown(params[given[0]])}; leave it out, or use estimate='map'."
            )
        return {**params, **dict.fromkeys(priors, 0.0)}
    if estimate == "predictive":
        if name not in PREDICTIVE:
            raise ValueError(
                f"estimate='predictive' of {name} is not a {name} again; use 'map'. "
                f"It is for {', '.join(PREDICTIVE)}."
            )
        return {"smoothing": 1.0, **params}
    return params


def symbols_of(cls: type[Any], X: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options, and the size of the alphabet of all data."""
    if cls.__name__ not in SYMBOLS or options.get("alphabet") is not None:
        return options
    n_symbols = options.get("n_symbols")
    found = symbol_sequences(X, n_symbols=n_symbols)
    return {**options, "n_symbols": alphabet_size(found, None, n_symbols)}


def mean_steps(cls: type[Any], X: Any, options: dict[str, Any]) -> float:
    """Mean length of sequences."""
    return float(read_sequences(cls, X, options).lengths.mean())


def read_sequences(cls: type[Any], X: Any, options: dict[str, Any]) -> Sequences:
    """Sequences as a class of models reads them."""
    if cls.__name__ in SYMBOLS:
        words = ("alphabet", "n_symbols", "missing")
        return symbol_sequences(X, **{w: options[w] for w in words if w in options})
    return vector_sequences(X, partly=True)


def fit_models(
    cls: type[Any],
    X: Any,
    options: dict[str, Any],
    seed: int | None,
    n_jobs: int | None,
) -> Any:
    """A list of models, or a batch of a family."""
    if issubclass(cls, Model):
        X = list(X) if isinstance(X, np.ndarray) else X
        random = {} if cls.__name__ == "MarkovChain" else {"random_state": seed}
        return cls.fit_many(X, n_jobs=n_jobs, **random, **options)
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim == 2:
        return fit_stacks(cls, X[:, None], options)
    bags = [v.as_doubles(f"X[{i}]", bag) for i, bag in enumerate(X)]
    out: list[Any] = [None] * len(bags)
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for i, bag in enumerate(bags):
        if bag.ndim < 1 or not len(bag):
            raise ValueError(f"X[{i}] has shape {bag.shape}; a bag has rows.")
        by_shape.setdefault(bag.shape, []).append(i)
    for places in by_shape.values():
        fitted = fit_stacks(cls, np.stack([bags[i] for i in places]), options)
        for i, one in zip(places, fitted):
            out[i] = one
    shapes = {one.batch_shape for one in out}
    if len(shapes) > 1:
        raise ValueError("the bags of X have rows of several widths; one is needed.")
    return _rejoined(out)


def fit_stacks(cls: type[Any], X: Any, options: dict[str, Any]) -> Any:
    """A fit to each stack of rows; (n, rows, event) or (n, rows, d coordinates).

    Families of numbers take every column as an independent coordinate: batch (n, d).
    """
    core = len(cls._event_to_fit()) if cls.__name__ != "Multinomial" else 1
    if X.ndim == core + 3:
        X = np.moveaxis(X, 1, 2)
    return cls.fit(np.ascontiguousarray(X), **options)


def _rejoined(members):
    """One batch of members of one batch shape."""
    if not members[0].batch_shape:
        return stacked([one._flat() for one in members])
    flat = stacked([one._flat() for one in members])
    shape = (len(members), *members[0].batch_shape)
    return flat._take(np.arange(int(np.prod(shape))).reshape(shape))
