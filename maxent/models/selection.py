"""Number of components or states, by an information criterion or held-out data."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.processes import spread
from maxent._support.random_state import as_generator, states_of_many
from maxent.models.base import Model, convergence_warning, is_open, without_warnings

# what fits to a part of the sequences share with the fit to all of them
_SYMBOLS = ("alphabet", "missing", "n_symbols")


@dataclass(frozen=True)
class Selection:
    """Result of :func:`select`.

    Attributes
    ----------
    n : int
        Best of the numbers.
    best : Model
        Fit of this number to all data.
    models : list of Model
        Fits of all numbers to all data, in their order.
    criterion : {"bic", "aic", "cv"}
    table : dict of str to list
        A row for each number, for instance as ``pandas.DataFrame(result.table)``: the
        numbers ``"n"``; the criterion under its name; ``"log_likelihood"`` of all data;
        ``"n_parameters"`` and ``"converged"``.
        With ``criterion="cv"`` also ``"standard_error"``, over the folds.

    See Also
    --------
    select : Makes it.

    Examples
    --------
    >>> from maxent.models import CategoricalHMM, select
    >>> X = ["ABABABAB", "BABABA"]
    >>> result = select(CategoricalHMM, X, [1, 2], random_state=0)
    >>> result.n, result.best.n_states, result.table["n_parameters"]
    (2, 2, [1, 5])
    """

    n: Any
    best: Any = field(repr=False)
    models: list[Any] = field(repr=False)
    criterion: str
    table: dict[str, list[Any]]


def select(
    model: type[Model],
    X: Any,
    numbers: Iterable[Any],
    *,
    criterion: Literal["bic", "aic", "cv"] = "bic",
    cv: int = 5,
    lengths: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Selection:
    """Fit a model for each number of components or states, and choose one of them.

    Parameters
    ----------
    model : class
        Model whose `fit` takes a number: `Mixture`, `CategoricalHMM`, `GaussianHMM`,
        `HiddenMarkovModel`, `LinearDynamicalSystem`; the order of a `MarkovChain`,
        tuples of states of a `FactorialHMM`.
    X : array-like, list of sequences or path
        Data as for `fit` of the model.
    numbers : iterable of int
        Numbers to try, such as ``range(1, 11)``.
    criterion : {"bic", "aic", "cv"}, default="bic"
        The least "bic" or "aic" on the data of the fit; or, "cv", the greatest mean
        log-likelihood of held-out rows or sequences, which costs `cv` times as much.
    cv : int, default=5
        Folds >= 2 of ``criterion="cv"``, in random order, the same for all numbers.
    lengths : array-like of int, optional
        Lengths of the sequences in one array.
    random_state : int, Generator, RandomState or None, default=None
        Source of starts and folds. Results do not depend on `n_jobs`.
    n_jobs : int, optional
        Processes, through joblib; None is one, -1 takes all CPUs.
    **options
        Further arguments of `fit`.

    Returns
    -------
    Selection

    Raises
    ------
    TypeError
        For a model without such a number, or `weights`.
    ValueError
        As for `fit`, and for fewer rows or sequences than folds.

    Warns
    -----
    ConvergenceWarning
        Once, with the numbers whose fits to all data did not converge.

    References
    ----------
    Schwarz (1978); Akaike (1974); Smyth (2000), Model selection for probabilistic
    clustering using cross-validated likelihood, Statistics and Computing 10.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.models import Mixture, select
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> X[30:60] += 9
    >>> X[60:] -= 9
    >>> result = select(Mixture, X, range(1, 5), criterion="bic", random_state=0)
    >>> result.n
    3
    >>> len(result.best.weights)
    3
    """
    v.check_choice("criterion", criterion, ("bic", "aic", "cv"))
    numbers = list(numbers)
    if not numbers:
        raise ValueError("numbers is empty; name one at least, such as range(1, 11).")
    _check_arguments(model, options)
    n_jobs, cv = v.check_jobs(n_jobs), v.check_count("cv", cv, 2)
    X = list(X) if isinstance(X, Iterator) else X
    rng = as_generator(random_state)
    each = [{**options, model._size: n} for n in numbers]
    if model._random:
        for own, seed in zip(each, states_of_many(random_state, len(numbers))):
            own["random_state"] = seed
    whole = {} if lengths is None else {"lengths": lengths}
    tasks = [(model, X, {**own, **whole}) for own in each]
    models = list(spread(_fitted, tasks, n_jobs))
    _warn_of_open(model.__name__, numbers, models)
    data = X if model._data == "rows" else models[0]._read_all(X, lengths)
    columns = {}
    if criterion == "cv":
        scores = _held_out(models[0], data, each, cv, rng, n_jobs)
        values = scores.mean(axis=1)
        with np.errstate(invalid="ignore"):  # of numbers with a fold of -inf
            error = scores.std(axis=1, ddof=1) / np.sqrt(cv)
        columns = {"cv": values.tolist(), "standard_error": error.tolist()}
    else:
        columns = {criterion: [getattr(one, criterion)(data) for one in models]}
        values = -np.array(columns[criterion])
    best = _place_of_best(criterion, values)
    table = {
        "n": numbers,
        **columns,
        "log_likelihood": [float(one.log_likelihood(data).sum()) for one in models],
        "n_parameters": [one.n_parameters for one in models],
        "converged": [not is_open(one.fit_result) for one in models],
    }
    return Selection(numbers[best], models[best], models, criterion, table)


def _warn_of_open(name: str, numbers: list[Any], models: list[Any]) -> None:
    failed = [n for n, one in zip(numbers, models) if is_open(one.fit_result)]
    if failed:
        convergence_warning(
            f"select: the fits of {name} with n={v.shown(failed)} did not converge; "
            "raise max_iter or tol. Each model's fit_result says how it ended."
        )


def _place_of_best(criterion: str, values: NDArray[np.float64]) -> int:
    if not (values > -np.inf).any():
        raise ValueError(
            f"{criterion} is infinite for all numbers: the models give some data the "
            "probability 0. Set smoothing > 0."
        )
    return int(np.argmax(values))


def _check_arguments(model: Any, options: dict[str, Any]) -> None:
    """Refuse what is no model with a number, and options that do not apply."""
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise TypeError(
            f"model={v.shown(model)} must be a class of models, such as Mixture: "
            "select(Mixture, X, range(1, 11))."
        )
    arguments = inspect.signature(model.fit).parameters
    if model._size not in arguments or not hasattr(model, "n_parameters"):
        raise TypeError(
            f"{model.__name__}.fit takes no number of components or states to choose."
        )
    for name in options:
        if name not in arguments or name in ("weights", "init", model._size):
            raise TypeError(
                f"select() takes no argument {name!r} for {model.__name__}; options "
                "are those of its fit, but for weights, init and the number."
            )


def _fitted(model, X, options):
    with without_warnings():
        return model.fit(X, **options)


def _chosen(data: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows, or some sequences."""
    if not isinstance(data, Sequences):
        from sklearn.utils import _safe_indexing

        return _safe_indexing(data, rows)
    values = np.concatenate([data[i] for i in rows])
    offsets = np.concatenate([[0], np.cumsum(data.lengths[rows])])
    return Sequences(values, offsets.astype(np.intp), data.columns)


def _held_out(
    fitted: Any,
    data: Any,
    options: Sequence[dict[str, Any]],
    cv: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Mean log-likelihoods (numbers, cv) of each fold under fits to the others."""
    model, n = type(fitted), len(data)
    if n < cv:
        unit = "rows" if model._data == "rows" else "sequences"
        raise ValueError(
            f"cv={cv} folds of {n} {unit} leave some empty; set cv <= {n}"
            + (", or criterion='bic' for one sequence." if n == 1 else ".")
        )
    arguments = inspect.signature(model.fit).parameters
    shared = {name: getattr(fitted, name) for name in _SYMBOLS if name in arguments}
    folds = np.array_split(rng.permutation(n), cv)
    parts = [
        (_chosen(data, np.setdiff1d(np.arange(n), fold)), _chosen(data, np.sort(fold)))
        for fold in folds
    ]
    tasks = [
        (model, train, test, {**own, **shared})
        for own in options
        for train, test in parts
    ]
    scores = list(spread(_score, tasks, n_jobs))
    return np.reshape(scores, (len(options), cv))


def _score(model, train, test, options):
    return float(_fitted(model, train, options).log_likelihood(test).mean())
