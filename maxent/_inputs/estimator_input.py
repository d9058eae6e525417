"""Input of estimators: scikit-learn's validation, with errors that name the entry.

scikit-learn decides what is valid. What it refuses is looked at once more, so that the
error names the argument, the place and value of the first fault, and a remedy.
"""

from __future__ import annotations

import datetime
import numbers
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._inputs.frames import refuse_twins
from maxent._support import validation as v
from maxent._support.remedies import TAKE_REGRESSOR
from maxent._support.typing import NDArray
from maxent._support.validation import user_stacklevel

# Numbers that are classes have rows enough: 1600 letters, say, of 20 each
_MOST_NUMBERS, _FEWEST_ROWS = 100, 10

TIMES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data`` with plainer errors.

    Parameters
    ----------
    estimator : estimator
    X : array-like
    *y : array-like
        The target, if there is one.
    **options
        As ``validate_data`` takes them.

    Returns
    -------
    X, or (X, y)
    """
    if not y and _is_as_wanted(estimator, X, **options):
        return X
    from sklearn.utils.validation import validate_data

    if isinstance(X, (list, tuple)) and X and isinstance(X[0], str):
        refuse_texts(X)  # NumPy would make an array of the width of the longest text
    for name, data in zip("Xy", (X, *y)):
        v.refuse_masked(name, data)
    X, y = v.in_memory("X", X), tuple(v.in_memory("y", one) for one in y)
    _refuse_dates(X)
    refuse_twins("X", X)
    try:
        return validate_data(estimator, X, *y, **options)
    except (TypeError, ValueError, OverflowError) as error:
        _explain(str(error), options.get("y_numeric", False), X, *y)
        raise


def _is_as_wanted(
    estimator: Any,
    X: Any,
    reset: bool = True,
    dtype: Any = np.float64,
    accept_sparse: Any = False,
    **others: Any,
) -> bool:
    """True of finite doubles like those of a fit without names of columns.

    Of one row scikit-learn's checks take longer than most predictions.
    """
    if reset or others or type(X) is not np.ndarray or X.dtype != np.float64:
        return False
    state = vars(estimator)
    if "feature_names_in_" in state or X.ndim != 2 or not len(X):
        return False
    kinds = dtype if isinstance(dtype, (list, tuple)) else [dtype]
    width = state.get("n_features_in_")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(X.sum())
    return bool(np.float64 in kinds and X.shape[1] == width and finite)


def _refuse_dates(X: Any) -> None:
    """Refuse tables of dates that NumPy would take for numbers.

    Pandas makes counts of ns of frames of dates alone; polars and Arrow make counts of
    days also of dates beside numbers.
    """
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    dtypes = list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else []
    if kind == "M" or (dtypes and {getattr(d, "kind", "") for d in dtypes} == {"M"}):
        raise _dates("X holds dates or times only")
    times = {
        name
        for name, dtype in zip(getattr(X, "columns", ()), dtypes)
        if hasattr(dtype, "is_temporal") and dtype.is_temporal()  # polars
    } | {
        field.name
        for field in ([] if dtypes else getattr(X, "schema", []))  # Arrow
        if str(getattr(field, "type", "")).startswith(("date", "time", "duration"))
    }
    if times:
        raise _dates(f"column {v.shown(min(times))} of X holds dates or times")


def _dates(fault: str) -> ValueError:
    return ValueError(
        f"{fault}, which are no numbers; make features of them, such as the days since "
        "a first date."
    )


def check_labels(y: NDArray[Any]) -> None:
    """Refuse labels that are missing, of several types, or continuous numbers.

    Warns of labels with few rows each, as quantities and identifiers have.
    """
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    y = v.as_array("y", y)
    if y.dtype == object:
        _refuse_missing(y)
        kinds: dict[str, int] = {}
        for i, label in enumerate(y.tolist()):
            kinds.setdefault(type(label).__name__, i)
        if len(kinds) > 1 and not _have_order(y):
            places = ", ".join(
                f"y[{i}]={v.shown(y[i])} is {k}" for k, i in kinds.items()
            )
            raise ValueError(
                f"y mixes labels of several types ({places}), which have no common "
                "order; make them all text or all numbers, for instance by "
                "y.astype(str)."
            )
    try:
        if type_of_target(y, input_name="y") == "multiclass":
            _warn_of_many_classes(y)
        else:
            check_classification_targets(y)
    except ValueError as error:
        if "continuous" not in str(error):
            raise
        _refuse_objects(y)
        raise ValueError(
            f"Unknown label type: continuous. y={v.shown(y.tolist())} holds numbers "
            f"that are not integers, and a classifier needs classes; {TAKE_REGRESSOR}, "
            "or make classes, for instance by numpy.digitize."
        ) from None


def _warn_of_many_classes(y: NDArray[Any]) -> None:
    """Warn, before the work, if most classes have one or two rows."""
    n, m = len(y), len(np.unique(y))
    numeric = y.dtype.kind in "iuf"
    many = n > 20 and m > round(0.5 * n)  # scikit-learn's rule
    if not (many or (numeric and m > _MOST_NUMBERS and _FEWEST_ROWS * m > n)):
        return
    remedy = (
        f"if they are quantities, {TAKE_REGRESSOR}"
        if numeric
        else "if they are identifiers of the rows, choose another column"
    )
    warnings.warn(
        f"y holds {m} different {'numbers' if numeric else 'labels'} in {n} rows, and "
        f"each is taken for a class; {remedy}.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def _refuse_objects(y: NDArray[Any]) -> None:
    """Refuse booleans and integers in an array of objects, which no metric takes."""
    kind = np.array(y.tolist()).dtype.kind if y.dtype == object else ""
    if kind in ("b", "i", "u"):
        types = " and ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise ValueError(
            f"Unknown label type: unknown. y={v.shown(y.tolist())} is an array of "
            f"objects of type {types}, and metrics of scikit-learn refuse those; pass "
            f"y.astype({'bool' if kind == 'b' else 'int'})."
        ) from None


def check_targets(y: Any) -> NDArray[np.float64]:
    """Float array of targets; text, dates and missing ones are refused by place."""
    y = v.as_array("y", y)
    for i, target in enumerate(y.tolist() if y.dtype.kind not in "biuf" else ()):
        if isinstance(target, (str, bytes)):
            raise ValueError(
                f"could not convert y[{i}]={v.shown(target)} to a number: a regressor "
                "needs numeric targets; convert them by y.astype(float), or use a "
                "classifier for labels."
            )
        if _is_missing(target):
            _refuse_missing(y)
        if not isinstance(target, numbers.Real):
            raise ValueError(
                f"could not convert y[{i}]={v.shown(target)} to a number: give "
                "targets as numbers, dates for instance as days since a first one."
            )
    out = np.array(y, dtype=np.float64)
    if not np.isfinite(out).all():
        _refuse_missing(y)
    return out


# -- what scikit-learn has refused ---------------------------------------------------
def _explain(error: str, y_numeric: bool, X: Any, y: Any = None) -> None:
    """Raise a plainer error for the faults known here; otherwise do nothing."""
    if error.startswith("Feature names"):
        return
    if "got 1D array" in error or "got scalar array" in error:
        _explain_shape(v.shape_of("X", X), y)
    if "could not convert" in error and len(v.shape_of("X", X)) == 1:
        refuse_texts(X)
    if "inhomogeneous" in error or "setting an array element" in error:
        refuse_texts(X)
        v.as_array("X", X)
    if "inconsistent numbers of samples" in error and y is not None:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{v.shape_of('X', X)[0]} rows, but y has {v.shape_of('y', y)[0]} entries; "
            "give one entry of y per row."
        ) from None
    if error.startswith("y should be a 1d array"):
        raise ValueError(
            f"y should be a 1d array, but it has shape {v.shape_of('y', y)}; pass one "
            "column of it, such as y[:, 0]."
        ) from None
    if error.startswith("Complex data"):
        raise ValueError(
            f"Complex data not supported: X has dtype {np.asarray(X).dtype}; pass "
            "real numbers, for instance the real and imaginary parts as columns."
        ) from None
    if y is not None and len(v.shape_of("y", y)) == 1:
        if "contains" in error or "value of NA" in error:  # pandas' text says NA
            _refuse_missing(np.asarray(y))
        if y_numeric and "convert" in error:
            check_targets(y)
    if "convert" in error or "promoted" in error or "Input X contains" in error:
        _explain_entry(X)


def _refuse_missing(y: NDArray[Any]) -> None:
    """Raise the error of the first label or target that is missing or infinite."""
    for i, label in enumerate(y.tolist()):
        if _is_missing(label) or label in (np.inf, -np.inf):
            kind = "NaN" if _is_missing(label) else "infinity"
            raise ValueError(
                f"Input y contains {kind}: y[{i}]={v.shown(label)}; drop such rows, or "
                "fill them in."
            ) from None


def _explain_shape(shape: tuple[int, ...], y: Any) -> None:
    remedy = (
        "Reshape your data: X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) "
        "if it is one row."
    )
    if y is not None and len(v.shape_of("y", y)) == 2:
        remedy = "y has two axes: swap X and y."
    raise ValueError(f"Expected 2D array, but X has shape {shape}. {remedy}") from None


def refuse_texts(X: Any, otherwise: str = "") -> None:
    """Raise the error of a list of documents, if X is one, texts or lists of words.

    `otherwise` is the remedy for texts that are no documents.
    """
    first = next(iter(X), None)
    words = isinstance(first, (list, tuple)) and first and isinstance(first[0], str)
    if isinstance(first, str) or words:
        analyzer = "(analyzer=list)" if words else ""
        raise ValueError(
            f"could not convert X[0]={v.shown(first)} to features; for documents put "
            f"sklearn.feature_extraction.text.CountVectorizer{analyzer} before the "
            f"estimator{otherwise}."
        ) from None


def _explain_entry(X: Any) -> None:
    """Raise the error of the first entry that is no finite number."""
    if sp.issparse(X):
        return
    names = getattr(X, "columns", None)
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind == "c":
        return
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array)
    else:
        wrong = np.array([[not _is_number(x) for x in r] for r in array.tolist()])
    if not wrong.any():
        return
    i, j = (int(k) for k in np.argwhere(wrong)[0])
    value = array[i, j]
    place = f"X[{i}, {j}]={v.shown(value)}"
    if names is not None:
        place += f" of column {v.shown(names[j])}"
    if _is_missing(value):
        raise ValueError(
            f"Input X contains NaN: {place} is missing. Fill such entries, for "
            "instance by sklearn.impute.SimpleImputer, or drop their rows."
        ) from None
    if isinstance(value, (str, bytes)):
        raise ValueError(
            f"could not convert string to float: {place} is text. Encode it as "
            "numbers, for instance by sklearn.preprocessing.OneHotEncoder, or drop "
            "the column."
        ) from None
    if isinstance(value, (float, np.floating)):
        raise ValueError(
            f"Input X contains infinity: {place}. Replace such entries by finite "
            "numbers, or drop their rows."
        ) from None
    if isinstance(value, numbers.Integral):
        raise ValueError(
            f"could not convert {place} to a number of double precision, which ends at "
            "1.8e308; scale the column, or drop such rows."
        ) from None
    if isinstance(value, TIMES):
        raise ValueError(
            f"could not convert {place} to a number: it is a date or time. Turn it "
            "into a number, such as days since a first date, or drop the column."
        ) from None


def _is_number(value: Any) -> bool:
    """True if an entry is a finite number, or text that scikit-learn reads as one."""
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA, which is the one value that has no truth."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
    except ValueError:  # of an array
        return False


def _have_order(y: NDArray[Any]) -> bool:
    try:
        np.unique(y)
    except TypeError:
        return False
    return True
