"""One model for each datum: what `ProductKernel` asks of the models.

sequences       fit_many of the sequence models
bags of rows    fit_many of mixtures, or a fit of a family to each bag
single rows     a fit of a family to each row, with its neighbours if asked for
"""

from __future__ import annotations

import inspect
import numbers
import os
from typing import Any

import numpy as np

from maxent._inputs.bags import read_bags
from maxent._inputs.sequence_layout import (
    Sequences,
    refuse_pair,
    refuse_text_frame,
)
from maxent._inputs.sequences import symbol_sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.registry import VALUES, resolve
from maxent.families import Categorical, ExponentialFamily
from maxent.families._batch import concatenated
from maxent.models._chain_input import alphabet_size
from maxent.models.base import FitsOfEach, Model

ESTIMATES = ("ml", "map", "predictive")
# arguments of fits that are not those of each single one
_OF_ALL_DATA = ("lengths", "random_state", "n_jobs")


def model_class(model: Any) -> type[Any]:
    """Class of a model or family from its name, or as given."""
    if isinstance(model, str):
        home = VALUES.get(model)
        cls = resolve(home) if home else None
    else:
        cls = model
    is_family = isinstance(cls, type) and issubclass(cls, ExponentialFamily)
    is_model = isinstance(cls, type) and issubclass(cls, Model) and cls._data
    if not is_family and not is_model:
        known = ", ".join(map(repr, _models()))
        raise ValueError(
            f"model={v.shown(model)} is not known; use 'multinomial', {known} or a "
            "family such as 'Gaussian', or None for data that are models."
        )
    assert isinstance(cls, type)
    return cls


def kind_of_data(cls: type[Any]) -> str:
    """Kind of data of one model: "symbols", "series" or "rows"."""
    return cls._data if issubclass(cls, Model) else "rows"


def _models() -> list[str]:
    """Names of the classes of models of which there can be one for each datum."""
    classes = (resolve(home) for home in VALUES.values() if "maxent.models." in home)
    return sorted(c.__name__ for c in classes if issubclass(c, Model) and c._data)


def fit_options(
    cls: type[Any], estimate: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Arguments of a fit, with the prior that an estimate asks for."""
    v.check_choice("estimate", estimate, ESTIMATES)
    name = cls.__name__
    fits = (
        cls._fits_of_each
        if issubclass(cls, Model)
        else FitsOfEach(is_predictive=cls._is_predictive)
    )
    params = {**fits.looser, **params}
    if estimate == "ml" and fits.needs_prior:
        raise ValueError(
            f"estimate='ml' of a {name} has no finite maximum, so its fits need a "
            "prior; use estimate='map'."
        )
    size = fits.sizes
    if size and params.get("init") is None and params.get(next(iter(size))) is None:
        raise ValueError(
            f"model={name!r} has no default size; give it, for instance by "
            f"model_params={size}."
        )
    if estimate == "ml":
        if fits.prior in params:
            raise ValueError(
                f"estimate='ml' has no prior, but model_params has {fits.prior}="
                f"{v.shown(params[fits.prior])}; leave it out, or use estimate='map'."
            )
        return {**params, fits.prior: 0.0}
    if estimate == "predictive":
        if not fits.is_predictive:
            raise ValueError(
                f"estimate='predictive' of {name} is not a {name} again; use 'map'. "
                f"It is for multinomial, Categorical, Multinomial, Bernoulli, "
                "MarkovChain."
            )
        return {"smoothing": 1.0, **params}
    return params


def check_params(cls: type[Any], params: dict[str, Any]) -> None:
    """Refuse what the fits of a class do not take."""
    fit = cls.fit_many if issubclass(cls, Model) else cls.fit
    found = inspect.signature(fit).parameters
    if any(p.kind is p.VAR_KEYWORD for p in found.values()):
        found = inspect.signature(cls.fit).parameters
    known = [name for name in list(found)[1:] if name not in _OF_ALL_DATA]
    unknown = [name for name in params if name not in known]
    if unknown:
        raise ValueError(
            f"model_params has {unknown[0]!r}, which the fits of {cls.__name__} do not "
            f"take; use {', '.join(known)}."
        )


def with_symbols(cls: type[Any], data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options, and the number of symbols or categories of all data."""
    if cls is Categorical and options.get("n_categories") is None:
        most = max(0.0, *(float(np.max(bag)) for bag in data))
        # the fit refuses more
        return {**options, "n_categories": int(most) + 1} if most < 1e7 else options
    if kind_of_data(cls) != "symbols" or options.get("alphabet") is not None:
        return options
    n_symbols = alphabet_size(data, None, options.get("n_symbols"))
    return {**options, "n_symbols": n_symbols}


# -- data ------------------------------------------------------------------------------
def read_data(
    cls: type[Any],
    X: Any,
    options: dict[str, Any],
    row_shape: tuple[int, ...] | None = None,
) -> Any:
    """Data of many models as the fits take them: the first axis is that of the models.

    Sequences of sequence models, an array (n, d) of single rows, or a list of bags.
    Rows have the shape `row_shape`, if it is known, and otherwise one shape.
    """
    kind = kind_of_data(cls)
    if kind == "symbols":
        words = ("alphabet", "n_symbols", "missing")
        given = {word: options[word] for word in words if word in options}
        if not isinstance(X, (str, os.PathLike, Sequences)):
            X = list(_entries(X))
        return symbol_sequences(X, name="X", **given)
    if kind == "series":
        width = None if row_shape is None else row_shape[0]
        if not isinstance(X, (os.PathLike, Sequences)):
            X = list(_entries(X))
        return vector_sequences(X, n_features=width, partly=True, name="X")
    X = _entries(X)
    if not len(X):
        raise ValueError("X is empty; pass the data of one model at least.")
    are_rows = isinstance(X, np.ndarray) and X.dtype != object and X.ndim == 2
    if are_rows and issubclass(cls, ExponentialFamily):
        return _rows(X, row_shape)
    return _bags(X, row_shape)


def shape_of_rows(data: Any) -> tuple[int, ...]:
    """Shape of one row of what `read_data` returns."""
    if isinstance(data, Sequences):
        return data.values.shape[1:]
    return tuple(data.shape[1:] if isinstance(data, np.ndarray) else data[0].shape[1:])


def _rows(X, row_shape):
    """An array (n, d) of single rows."""
    rows = v.as_doubles("X", X)
    if row_shape not in (None, rows.shape[1:]):
        raise ValueError(
            f"X has rows of shape {rows.shape[1:]}, but the training rows have "
            f"{row_shape}."
        )
    wrong = ~np.isfinite(rows)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"X[{i}, {j}]={rows[i, j]} must be a finite number.")
    return rows


def _bags(X, row_shape):
    bags = read_bags("X", X)
    own = bags[0].shape[1:] if row_shape is None else row_shape
    for i, bag in enumerate(bags):
        if bag.shape[1:] != own:
            source = "those of X[0]" if row_shape is None else "the training rows"
            raise ValueError(
                f"X[{i}] has rows of shape {bag.shape[1:]}, but {source} have {own}; "
                "all must have one."
            )
    return bags


def _entries(X: Any) -> Any:
    """The data of every model; a single number is none."""
    if isinstance(X, tuple):
        refuse_pair("X", X)
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        refuse_text_frame("X", X)
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    try:
        entries = list(X)
    except TypeError:
        raise TypeError(
            f"X={v.shown(X)} must be a list or an array with the data of one model in "
            "each entry."
        ) from None
    if entries and isinstance(entries[0], numbers.Number):
        raise ValueError(
            f"X[0]={v.shown(entries[0])} is a single number, but each entry of X is "
            "the data of one model; for a single sequence or bag pass [X]."
        )
    return X if isinstance(X, np.ndarray) else entries


def fit_models(
    cls: type[Any],
    X: Any,
    options: dict[str, Any],
    seed: int | None,
    n_jobs: int | None,
) -> Any:
    """A list of models, or a batch of a family, from what `read_data` returns."""
    if issubclass(cls, Model):
        random = {"random_state": seed} if cls._random else {}
        return cls.fit_many(X, n_jobs=n_jobs, **random, **options)
    if isinstance(X, np.ndarray):
        return fit_stacks(cls, X[:, None], options)
    out: list[Any] = [None] * len(X)
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for i, bag in enumerate(X):
        by_shape.setdefault(bag.shape, []).append(i)
    for places in by_shape.values():
        try:
            fitted = fit_stacks(cls, np.stack([X[i] for i in places]), options)
        except ValueError:
            if len(by_shape) > 1:  # the error counts the bags of this shape only
                _refuse_one(cls, X, places, options)
            raise
        for i, one in zip(places, fitted):
            out[i] = one
    return _rejoined(out)


def _refuse_one(cls, X, places, options):
    """Raise the error of the first bag that has no fit, by its own number."""
    for i in places:
        try:
            fit_stacks(cls, X[i][None], options)
        except ValueError as error:
            raise ValueError(f"X[{i}], as a stack of one bag: {error}") from None


def fit_stacks(cls: type[Any], X: Any, options: dict[str, Any]) -> Any:
    """A fit to each stack of rows; (n, rows, event) or (n, rows, d coordinates).

    Families of numbers take every column as an independent coordinate: batch (n, d).
    """
    core = len(cls._event_to_fit())
    if X.ndim == core + 3:
        X = np.moveaxis(X, 1, 2)
    return cls.fit(np.ascontiguousarray(X), **options)


def _rejoined(members):
    """One batch of members of one batch shape."""
    if not members[0].batch_shape:
        return concatenated([one._flat() for one in members])
    flat = concatenated([one._flat() for one in members])
    shape = (len(members), *members[0].batch_shape)
    return flat._take(np.arange(int(np.prod(shape))).reshape(shape))
