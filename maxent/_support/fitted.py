"""Fitted state: how it is set and removed, and checks of state from files."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._support.counterparts import ATTRIBUTES, Counterparts
from maxent._support.progress import CallbacksMixin
from maxent._support.registry import rebuilt
from maxent._support.validation import check_bool, shown

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


class FittedState(Counterparts):
    """Mixin of estimators: missing fitted attributes are errors that name them."""

    # hidden from type checkers, which would take every misspelled name for a good one
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raise NotFittedError, an AttributeError too, for a fitted attribute."""
            if not _is_fitted_name(name) or hasattr(type(self), name):
                return self._with_its_reason(name)
            from sklearn.exceptions import NotFittedError

            own = [key for key in vars(self) if _is_fitted_name(key)]
            reason = "it is not fitted, or the attribute was deleted. Call 'fit' first."
            if own:
                reason = "no fit has set it, or it was deleted. Call 'fit' first."
            if name in ATTRIBUTES and own:
                reason = f"{ATTRIBUTES[name]}."
            elif name == "feature_names_in_" and own:  # asked for in every prediction
                reason = "the columns of its training data had no names."
            else:
                import difflib

                near = difflib.get_close_matches(name, own, n=1)
                if near:
                    reason += f" Or did you mean {near[0]!r}?"
            nonlinear = vars(self).get("kernel", "linear") != "linear"
            if name == "coef_" and nonlinear and "dual_coef_" in vars(self):
                reason = (
                    f"weights exist for kernel='linear' only, not for kernel="
                    f"{shown(self.kernel)}. Use 'dual_coef_' and 'support_vectors_'."
                )
            of_rows = name in ("support_", "support_vectors_", "dual_coef_")
            if of_rows and getattr(self, "_is_compact", bool)():
                reason = (
                    "it was saved with compact=True, as `maxent fit` saves linear "
                    "machines, which keeps 'coef_' and 'intercept_'. Fit it again."
                )
            raise NotFittedError(
                f"this {type(self).__name__} instance has no attribute {name!r}: "
                f"{reason}"
            )

        def _with_its_reason(self, name):
            """Read the attribute again and raise the reason why it is missing.

            `sklearn.utils.metaestimators.available_if` has a sentence of its own and
            the reason behind it, as its cause.
            """
            try:
                return super().__getattribute__(name)
            except AttributeError as error:
                if isinstance(error.__cause__, AttributeError):
                    raise error.__cause__ from None
                raise


class CertifiedState(CallbacksMixin, FittedState):
    """Fitted attributes and callbacks that every estimator with a dual has."""

    duality_gap_: float
    objective_: float
    objective_history_: NDArray[np.float64]
    n_iter_: int
    converged_: bool
    n_features_in_: int
    feature_names_in_: NDArray[Any]


def fresh_state(fit: _Fit) -> _Fit:
    """Decorate `fit` so that an estimator holds the state of one finished fit, or none.

    What an earlier fit has learnt is removed at the start, and what this one has learnt
    if it fails or is interrupted: then ``predict`` raises NotFittedError instead of
    mixing two models. Parameters that switch something must be booleans: any text, also
    "False", would switch it on.
    """

    @functools.wraps(fit)
    def fit_afresh(self: Any, *args: Any, **kwargs: Any) -> Any:
        _remove_fitted(self)
        for name in _switches(cast(Hashable, type(self))):
            check_bool(name, getattr(self, name))
        try:
            with np.errstate(under="ignore"):  # parameters that the caller has set
                return fit(self, *args, **kwargs)
        except BaseException:  # KeyboardInterrupt too
            _remove_fitted(self)
            raise

    return cast(_Fit, fit_afresh)


@functools.cache
def _switches(cls: Hashable) -> tuple[str, ...]:
    """Names of the parameters whose default is a boolean."""
    parameters = inspect.signature(cast(Any, cls)).parameters.values()
    return tuple(p.name for p in parameters if isinstance(p.default, bool))


def _is_fitted_name(name):
    """True if this names a fitted attribute by scikit-learn's convention."""
    return name.endswith("_") and not name.startswith("_")


def _remove_fitted(estimator):
    for name in [name for name in vars(estimator) if _is_fitted_name(name)]:
        delattr(estimator, name)


def check_fitted(name, array, shape, *, kind="f", once=False, sparse=False):
    """Check the shape, the kind of numbers and the finite entries of a fitted array.

    Loaded models are untrusted. With `once` the entries of an array are looked at
    the first time it is met only, so that predicting few rows with a large model
    stays cheap; a change of its entries in place is then not noticed. With `sparse`
    a CSR array will do.
    """
    wrong = None
    if not (isinstance(array, np.ndarray) or (sparse and sp.issparse(array))):
        wrong = f"is {shown(array)}, not an array"
    elif array.dtype.kind not in kind:
        wrong = f"has dtype {array.dtype}"
    elif array.shape != shape:
        wrong = f"has shape {array.shape}, expected {shape}"
    elif not (once and _known_finite.get(id(array)) is array):
        if not _sound(array):
            wrong = "contains NaN, infinity or indices out of range"
        elif once:
            _known_finite[id(array)] = array
    if wrong is not None:
        raise ValueError(
            f"the fitted model is inconsistent: {name} {wrong}. Fit it again."
        )


def check_fitted_classes(classes):
    """Number of fitted classes, at least two."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            f"the fitted model is inconsistent: classes_={shown(classes)} must be an "
            "array of two or more labels. Fit it again."
        )
    return len(classes)


def check_value(name, value):
    """Check that a fitted value (a posterior, a model) is what its specification makes.

    Compiled and SciPy code trusts the arrays that a value derives from its parameters;
    one whose shapes or numbers were changed must not reach it. The comparison is made
    once for the arrays at hand: another array in place of one of them is noticed.
    """
    if not hasattr(value, "get_spec"):
        return
    arrays = dict(_arrays(value))
    key = id(value)
    met, before = _known_values.get(key, (None, None))
    if met is not None and met() is value and _same_arrays(before, arrays):
        return
    try:
        again = dict(_arrays(rebuilt(type(value), value.get_spec())))
    except Exception as error:
        # a constructor may raise any error on parameters from a damaged file
        raise ValueError(
            f"the fitted model is inconsistent: {name} has impossible parameters "
            f"({error}). Fit it again."
        ) from error
    lost = [where for where in again.keys() - arrays.keys() if _held(value, where)]
    for where in sorted(arrays.keys() | set(lost)):
        if where in again and not _alike(again[where], arrays.get(where)):
            raise ValueError(
                f"the fitted model is inconsistent: {where} of {name} does not belong "
                f"to its {type(value).__name__}. Fit it again."
            )
    forget = weakref.ref(value, lambda _: _known_values.pop(key, None))
    _known_values[key] = forget, arrays


def _held(value, where):
    """True if a value has the attributes on a path, up to the first in a list.

    Not so if one is None, or is computed when it is first asked for and was not yet.
    """
    for name in where.split("."):
        value = getattr(value, "__dict__", {}).get(name.partition("[")[0])
        if value is None or "[" in name:
            break
    return value is not None


def _arrays(thing, where="", depth=4):
    """(path, array) of every array of a value and of the package's objects in it."""
    if isinstance(thing, np.ndarray):
        yield where, thing
    elif sp.issparse(thing):
        for part in ("data", "indices", "indptr"):
            yield f"{where}.{part}", getattr(thing, part)
    elif isinstance(thing, (list, tuple)) and depth:
        for k, item in enumerate(thing):
            yield from _arrays(item, f"{where}[{k}]", depth - 1)
    elif type(thing).__module__.startswith("maxent.") and depth:
        for key, item in getattr(thing, "__dict__", {}).items():
            yield from _arrays(item, f"{where}.{key}" if where else key, depth - 1)


def check_scores(scores, X):
    """Return decision values, which must be finite."""
    if np.isfinite(scores).all():
        return scores
    size = ""
    if getattr(X, "dtype", None) is not None and X.dtype.kind == "f":
        size = f"X has entries as large as {np.abs(X).max():.3g}, and "
    raise ValueError(
        f"{size}decision values overflow; scale X as the training rows were scaled. "
        "If it was, the fitted model is inconsistent: fit it again."
    )


_known_values: dict[
    int, Any
] = {}  # id -> weak reference, arrays it had when it was checked


# Arrays found finite, by identity; an entry goes with its array.
_known_finite: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _same_arrays(before, now):
    return before.keys() == now.keys() and all(a is now[k] for k, a in before.items())


def _alike(rebuilt, found):
    """True if an array is the rebuilt one up to rounding."""
    if not isinstance(found, np.ndarray) or found.shape != rebuilt.shape:
        return False
    if rebuilt.dtype.kind != "f":
        return rebuilt.dtype == found.dtype and np.array_equal(rebuilt, found)
    return np.allclose(rebuilt, found, rtol=1e-6, atol=0.0, equal_nan=True)


def _sound(array):
    if not sp.issparse(array):
        return bool(np.isfinite(array).all())
    try:
        array.check_format(full_check=True)  # compiled products trust the indices
    except (AttributeError, ValueError):
        return False
    return bool(np.isfinite(array.data).all())
