"""What every model shares: immutable parameters, fits, one model for each datum.

A model is a value made by its constructor or by its classmethod `fit`. To add one:

1. list the constructor's arguments in `_names`, check them in ``__init__`` and store
   them by ``self._set(...)``; override `_arguments` and `_from_arguments` where a
   model file cannot hold them as they are;
2. define `log_likelihood` and `sample`;
3. define ``fit(cls, data, *, ...)``, which returns the model with its `fit_result`, by
   ``model._warned(tol, max_iter)``; `fit_many` then works, and warns once for all.

`maximize_by_em` is the one EM loop.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np

from maxent._inputs.frames import check_names
from maxent._inputs.text_columns import Categories
from maxent._support import validation as v
from maxent._support.processes import spread
from maxent._support.random_state import states_of_many
from maxent._support.results import Status
from maxent._support.tables import HtmlTable, short
from maxent._support.validation import user_stacklevel
from maxent.models._online import check_seen
from maxent.models.em import (
    EMResult,
    maximize_by_em,
    relative_change,
    size_of_gains,
)

__all__ = [
    "EMResult",
    "Model",
    "maximize_by_em",
    "relative_change",
    "starts_of_many",
    "warn_of_many",
]


@dataclass(frozen=True)
class FitsOfEach:
    """Options of fits of one model to each datum, as kernels between models want them.

    Attributes
    ----------
    prior : str
        Argument that is zero for maximum likelihood.
    needs_prior : bool
        True if the likelihood has no finite maximum.
    looser : dict
        Arguments with which the fits are as good as with the defaults, and faster.
    sizes : dict
        Arguments about the size that have no default, with examples.
    is_predictive : bool
        True if the posterior predictive, by pseudo-counts, is such a model again.
    """

    prior: str = "smoothing"
    needs_prior: bool = False
    looser: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    is_predictive: bool = False


# True where the caller warns of fits that do not converge, once for all
_collects: contextvars.ContextVar[bool] = contextvars.ContextVar("fits", default=False)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Context in which fits of models do not warn of how they ended."""
    token = _collects.set(True)
    try:
        yield
    finally:
        _collects.reset(token)


def one_of_many() -> bool:
    """True in a fit that is one of many, whose warnings are collected."""
    return _collects.get()


class Model(HtmlTable, ABC):
    """Immutable probabilistic model; base class.

    Attributes
    ----------
    fit_result : EMResult or None
        How the fit ended; None of a model that was not made by an iterative fit.
    feature_names : list of str or None
        Columns of the data frame that it was fitted to.

    Examples
    --------
    >>> from maxent.models import MarkovChain, Model
    >>> chain = MarkovChain.fit([0, 1, 1, 0, 1])
    >>> isinstance(chain, Model)
    True
    >>> sorted(chain.parameters())
    ['alphabet', 'missing', 'order', 'start', 'transition']
    """

    _names: ClassVar[tuple[str, ...]] = ()  # the constructor's arguments
    _random: ClassVar[bool] = True  # True if `fit` takes random_state
    _size: ClassVar[str] = "n_states"  # argument of `fit` that `select` chooses
    # data of one model in a kernel between models: "symbols", "series", "rows"; or none
    _data: ClassVar[str] = ""
    _fits_of_each: ClassVar[FitsOfEach] = FitsOfEach()

    def _set(self, **parameters: Any) -> None:
        """Store checked parameters; arrays are kept as they are, read-only."""
        for value in parameters.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(parameters)

    def _with_result(self, result: EMResult | None) -> Self:
        """This model, new and not seen by anyone, with how its fit ended."""
        self.__dict__["_fit_result"] = result
        return self

    @property
    def fit_result(self) -> EMResult | None:
        """Record of the fit; None of a model that no iterative fit has made."""
        return self.__dict__.get("_fit_result")

    def _with_names(self, names: tuple[str, ...] | None) -> Self:
        """This model, new and not seen by anyone, with the columns of its data."""
        self.__dict__["_columns_of_fit"] = names
        return self

    @property
    def _columns(self) -> tuple[str, ...] | None:
        return self.__dict__.get("_columns_of_fit")

    def _with_categories(self, categories: Categories) -> Self:
        """This model, new and not seen by anyone, with the texts of its columns."""
        self.__dict__["_categories_of_fit"] = categories
        return self

    @property
    def categories(self) -> Categories:
        """Texts of columns of data frames of the fit, by the names of these columns.

        Their places are the codes of a Categorical. Empty where there was no text.
        """
        return self.__dict__.get("_categories_of_fit", {})

    @property
    def feature_names(self) -> list[str] | None:
        """Columns of the data frames of the fit of a model of rows or vectors.

        Later data frames must have them in the same order. None where the fit had no
        data frame, and of a model from its constructor. In networks the nodes are the
        names.
        """
        return None if self._columns is None else list(self._columns)

    @property
    def _count(self) -> int | None:
        """Number of parameters that the fit has chosen, where some were held."""
        return self.__dict__.get("_count_of_fit")

    def _with_count(self, count: int | None) -> Self:
        """This model, new and not seen by anyone, with such a number."""
        if count is not None:
            self.__dict__["_count_of_fit"] = count
        return self

    def _with_seen(self, **seen: Any) -> Self:
        """This model, new and not seen by anyone, with the rows it was made from."""
        self.__dict__["_seen_of_fit"] = seen or None
        return self

    @property
    def _rows_seen(self) -> dict[str, Any] | None:
        return self.__dict__.get("_seen_of_fit")

    def parameters(self) -> dict[str, Any]:
        """Constructor arguments as a dict.

        Returns
        -------
        dict
            Names and values.
        """
        return {name: getattr(self, name) for name in self._names}

    def get_spec(self) -> dict[str, Any]:
        """Constructor arguments, as model files keep them, and more of the fit.

        Returns
        -------
        dict
            Of arrays, numbers, strings and lists of them; `feature_names` is there if
            a data frame of the fit has named the columns, `categories` if some of
            them were texts, `n_parameters` if the fit has held some, and `seen`, of
            models with an `update`, the number of rows that they have seen.
        """
        spec = self._arguments()
        if self._columns is not None:
            spec["feature_names"] = list(self._columns)
        if self.categories:
            texts = self.categories.items()
            spec["categories"] = [[name, list(own)] for name, own in texts]
        if self._count is not None:
            spec["n_parameters"] = self._count
        if self._rows_seen is not None:
            spec["seen"] = dict(self._rows_seen)
        return spec

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Model from what :meth:`get_spec` returned; it is checked again.

        Parameters
        ----------
        spec : dict
            As `get_spec` returns it.

        Returns
        -------
        model
            Of this class.
        """
        arguments = dict(spec)
        names = check_names("feature_names", arguments.pop("feature_names", None))
        texts = {name: tuple(own) for name, own in arguments.pop("categories", [])}
        count = arguments.pop("n_parameters", None)
        if count is not None:
            count = v.check_count("n_parameters", count, 0)
        seen = check_seen(arguments.pop("seen", None))
        model = cls._from_arguments(arguments)._with_count(count)
        model._with_seen(**(seen or {}))
        return model._with_names(names)._with_categories(texts)

    # -- what a model defines ------------------------------------------------------
    def _arguments(self) -> dict[str, Any]:
        """Constructor arguments as a file can hold them; equal models have the same."""
        return self.parameters()

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        """Model from what `_arguments` returned; it is checked again."""
        return cls(**arguments)

    @classmethod
    @abstractmethod
    def fit(cls, *data: Any, **options: Any) -> Any:
        """Model fitted to data; the model says what they are.

        Parameters
        ----------
        *data : array-like
            Observations of one model.
        **options
            Options of the fit.

        Returns
        -------
        Model
        """

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        """The data of `fit_many`, each as `fit` takes it.

        They are read and checked here, before any fit. Options that belong to all data
        together are taken out of `options`, or get the value that all fits share.
        """
        return data if isinstance(data, (list, tuple)) else list(data)

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit_many(
        cls,
        data: Any,
        *sizes: Any,
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        **options: Any,
    ) -> list[Self]:
        """Fit one model to each datum, in parallel.

        Parameters
        ----------
        data : list or array
            One entry per model; an array (n, n_steps) or (n, n_steps, d) has n
            sequences, also where `fit` takes the former for one sequence of vectors.
        *sizes
            Arguments that `fit` takes by their place behind the data, such as the
            number of states.
        init : model or list of models, optional
            Start of every fit, or one for each datum, of models whose `fit` has it.
        n_jobs : int, optional
            Processes, through joblib; None is one, or what
            ``joblib.parallel_config`` says; -1 takes all CPUs.
        random_state : int, Generator, RandomState or None, default=None
            An integer is the seed of every fit, as of ``fit(datum, random_state=...)``:
            a model then does not depend on the other data. Anything else gives each
            fit a random stream of its own. Results do not depend on `n_jobs`.
        **options
            Further arguments of `fit`; `lengths` belong to all sequences together.

        Returns
        -------
        list of models
            In the order of the data.

        Raises
        ------
        TypeError
            For an argument that `fit` of this model does not have.
        ValueError, FloatingPointError
            As for `fit`; the datum is named.

        Warns
        -----
        ConvergenceWarning
            Once, with the number of fits that did not converge.
        """
        n_jobs = v.check_jobs(n_jobs)
        known = inspect.signature(cls.fit).parameters
        options = _by_name(cls, sizes, options)
        given = options if init is None else {**options, "init": init}
        unknown = given.keys() - known
        if unknown and all(p.kind is not p.VAR_KEYWORD for p in known.values()):
            raise TypeError(
                f"{cls.__name__}.fit_many() has no argument {min(unknown)!r}."
            )
        data = cls._each(data, options)
        each = [dict(options) for _ in data]
        if init is not None:
            for own, start in zip(each, starts_of_many(init, len(data))):
                own["init"] = start
        if cls._random:
            for own, seed in zip(each, states_of_many(random_state, len(data))):
                own["random_state"] = seed
        tasks = [(cls, i, *one) for i, one in enumerate(zip(data, each))]
        models = list(spread(_fit_one, tasks, n_jobs))
        warn_of_many(cls.__name__, models)
        return models

    def _warned(self, tol: float, max_iter: int) -> Self:
        """This model, after a warning if its fit did not converge."""
        result = self.fit_result
        if is_open(result) and not one_of_many():
            _warn(type(self).__name__, result, tol, max_iter)
        return self

    # -- immutable -----------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable; make a new one with another {name}."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable.")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.parameters(), other.parameters()
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, self.parameters().values())))

    def __reduce__(self):
        more = self.fit_result, self._columns, self.categories, self._count
        return _restore, (type(self), self.parameters(), *more)

    def _shown_in_table(self):
        result = self.fit_result
        if result is None:
            return self.parameters()
        return self.parameters() | {
            "fit_result": f"{result.status.value} after {result.n_iter} iterations, "
            f"objective {result.objective:.6g}"
        }

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={short(x)}" for k, x in self.parameters().items())
        return f"{type(self).__name__}({inside})"


def _by_name(cls, sizes, options):
    """Options with those that `fit` takes by their place behind the data."""
    parameters = inspect.signature(cls.fit).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    twice = [name for name in names[: len(sizes)] if name in options]
    if len(sizes) > len(names) or twice:
        more = f"got several values of {twice[0]!r}" if twice else "takes fewer"
        raise TypeError(
            f"{cls.__name__}.fit_many() {more}: behind the data, arguments without a "
            f"name are {', '.join(names) or 'none'}."
        )
    return {**options, **dict(zip(names, sizes))}


def _fit_one(cls, i, datum, options):
    """Fit of datum i, which an error names."""
    try:
        with without_warnings():
            return cls.fit(datum, **options)
    except (ValueError, FloatingPointError) as error:
        error.args = (f"data[{i}]: {error}",)
        raise


def starts_of_many(init: Any, n: int) -> list[Any]:
    """`init` of `fit_many` for every datum: one for all, or a list of one each."""
    if not isinstance(init, (list, tuple)):
        return [init] * n
    if len(init) != n:
        raise ValueError(
            f"init has {len(init)} starts for {n} data; give one for each, or a single "
            "one for all."
        )
    return list(init)


def _restore(cls, parameters, result, names=None, categories=(), count=None):
    model = cls(**parameters)._with_result(result)._with_names(names)
    return model._with_categories(dict(categories))._with_count(count)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, (value + 0.0).tobytes()  # -0.0 equals 0.0
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def is_open(result: EMResult | None) -> TypeGuard[EMResult]:
    """True if a fit ended without converging, and no callback has stopped it."""
    return not (result is None or result.converged or result.status is Status.STOPPED)


def _warn(name: str, result: EMResult, tol: float, max_iter: int) -> None:
    """One ConvergenceWarning that says how far EM came and what to change."""
    if result.status is Status.STALLED:
        reached = f"the objective fell by {-result.gain:.1e}"
        remedy = "scale the data or use a stronger prior"
    else:
        gain = result.gain / size_of_gains(result.objective, result.size)
        unit = "of the objective" if result.size is None else "per observed value"
        reached = f"the last gain was {gain:.1e} {unit}, tol={tol:g} asked"
        remedy = f"raise max_iter (now {max_iter}) or tol"
    convergence_warning(
        f"{name}.fit stopped with status {result.status.value!r} after "
        f"{result.n_iter} iterations: {reached}; {remedy}."
    )


def warn_of_many(name: str, models: Sequence[Model]) -> None:
    """One ConvergenceWarning for all fits that did not converge."""
    found = [(i, m.fit_result) for i, m in enumerate(models)]
    open_ = [(i, result) for i, result in found if is_open(result)]
    if open_:
        most = max(result.n_iter for _, result in open_)
        convergence_warning(
            f"{name}.fit_many: {len(open_)} of {len(models)} fits did not converge, "
            f"that of data[{open_[0][0]}] first (after up to {most} iterations); raise "
            "max_iter or tol. Each model's fit_result says how it ended."
        )


def convergence_warning(text: str) -> None:
    """Warn that fits did not converge, at the line of the caller of the package."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(text, ConvergenceWarning, stacklevel=user_stacklevel())
