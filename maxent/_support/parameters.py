"""Checks of parameters, one by one, with errors that name the remedy."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from maxent._support.counterparts import counterpart
from maxent._support.typing import Bias, FloatArray, NDArray

_MOST_THREADS = 1024  # more would end the process on systems that refuse them


def shown(value: object) -> str:
    """The value as an error quotes it: one line, at most 80 characters."""
    if isinstance(value, np.generic):
        value = value.item()
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def is_real(value: object) -> bool:
    """True if a value is one real number; booleans and arrays are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def closest(word: str, words: Iterable[str]) -> str:
    """Clause that suggests the word which a misspelled one resembles, or none."""
    import difflib

    words = list(words)
    matches = difflib.get_close_matches(word, words, n=1)
    matches = (
        matches or [one for one in words if word and word.lower() in one.lower()][:1]
    )
    return f" Did you mean {matches[0]!r}?" if matches else ""


def unknown(
    name: str, value: object, words: Iterable[str], more: str = ""
) -> ValueError:
    """Error for a value that is none of the allowed words."""
    words = list(words)
    menu = ", ".join(repr(word) for word in words)
    said = counterpart(name, value)
    if said:
        hint = f" {said[0].upper()}{said[1:]}."
    else:
        hint = closest(value, words) if isinstance(value, str) else ""
    return ValueError(
        f"{name}={shown(value)} is not known; use one of {menu}{more}.{hint}"
    )


def not_this(name: str, value: Any, rule: str) -> ValueError:
    """Error for a parameter that breaks a rule about one number."""
    hint = ""
    if isinstance(value, str):
        number = value.strip()
        if number.lstrip("+-").replace(".", "", 1).isdigit():
            hint = f" It is text: pass {number} without quotes."
    elif isinstance(value, np.ndarray) and value.size == 1:
        hint = f" It is an array: pass its entry, {shown(value.ravel()[0])}."
    elif isinstance(value, (np.ndarray, list, tuple)):
        hint = (
            " Pass one number. To choose among several compare fits on held-out data: "
            "estimators by scikit-learn's GridSearchCV, models by log_likelihood."
        )
    elif isinstance(value, float) and value.is_integer() and "integer" in rule:
        hint = f" It is a float: pass {int(value)}."
    elif counterpart(name, value):
        hint = f" {counterpart(name, value)}"
    return ValueError(f"{name}={shown(value)} must be {rule}.{hint}")


def check_number(name: str, value: Any) -> float:
    """Float of a parameter that must be a finite number."""
    if not is_real(value) or not np.isfinite(value):
        raise not_this(name, value, "a finite number")
    return float(value)


def check_positive(name: str, value: Any, *, allow_inf: bool = False) -> float:
    """Float of a parameter that must be a finite number > 0."""
    if (
        not is_real(value)
        or not value > 0
        or (not allow_inf and not np.isfinite(value))
    ):
        kind = "a number > 0 (inf is allowed)" if allow_inf else "a finite number > 0"
        raise not_this(name, value, kind)
    return float(value)


def check_nonnegative(name: str, value: Any) -> float:
    """Float of a parameter that must be a finite number >= 0."""
    if not is_real(value) or not (0 <= value < np.inf):
        raise not_this(name, value, "a finite number >= 0")
    return float(value)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Int of a parameter that must be an integer >= `least`."""
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, numbers.Integral)
        or int(value) < least
    ):
        raise not_this(name, value, f"an integer >= {least}")
    return int(value)


def check_stop(tol: Any, max_iter: Any) -> tuple[float, int]:
    """(tol, max_iter): where solvers stop, a number > 0 and an integer >= 1."""
    return check_positive("tol", tol), check_count("max_iter", max_iter)


def check_choice(name: str, value: Any, choices: Iterable[str], more: str = "") -> str:
    """A parameter that must be one of a few words; `more` as in `unknown`."""
    if not isinstance(value, str) or value not in choices:
        raise unknown(name, value, choices, more)
    return value


def check_bool(name: str, value: Any) -> bool:
    """Bool of a parameter that must be a boolean, or an integer such as 0 or 1."""
    if not isinstance(value, (bool, np.bool_, numbers.Integral)):
        raise ValueError(f"{name}={shown(value)} must be True or False.")
    return bool(value)


def check_jobs(n_jobs: Any) -> int | None:
    """None, or a number of threads as an int: not 0, negative counts from all CPUs."""
    if n_jobs is None:
        return None
    if not is_real(n_jobs) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs={shown(n_jobs)} must be None, an integer >= 1, or -1 for all CPUs."
        )
    if int(n_jobs) > _MOST_THREADS:
        raise ValueError(
            f"n_jobs={shown(n_jobs)} is more than {_MOST_THREADS} threads; use None, "
            "or -1 for all CPUs."
        )
    return int(n_jobs)


def check_class_weight(class_weight: Any) -> Any:
    """None, "balanced", or a dict from classes to finite weights > 0."""
    if isinstance(class_weight, dict):
        for label, weight in class_weight.items():
            check_positive(f"class_weight[{shown(label)}]", weight)
    elif class_weight is not None and not (
        isinstance(class_weight, str) and class_weight == "balanced"
    ):
        raise ValueError(
            f"class_weight={shown(class_weight)} must be None, 'balanced', or a dict "
            "from classes to weights > 0."
        )
    return class_weight


def check_class_keys(class_weight: Any, classes: NDArray[Any]) -> None:
    """Refuse keys of `class_weight` that are no labels, as "0" for 0."""
    if not isinstance(class_weight, dict):
        return
    known = classes.tolist()
    wrong = [label for label in class_weight if label not in known]
    if wrong and len(class_weight) - len(wrong) < len(known):
        raise ValueError(
            f"class_weight={shown(class_weight)} has the key {shown(wrong[0])}, "
            f"which is no class of y; use the classes {shown(known)} as keys."
        )


def class_factors(
    class_weight: Any, classes: NDArray[Any], total: FloatArray
) -> FloatArray:
    """Factor of each class (m,) by which `class_weight` changes weights of its rows.

    That of "balanced" makes the weights of all classes equal, from their sums `total`
    (m,) over rows, and leaves the sum of all as it is.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        check_class_keys(class_weight, classes)
        return np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    return total.sum() / (len(classes) * total)


def check_callback(callback: Any, third: str = "gap") -> Any:
    """None, or something that can be called."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback={shown(callback)} must be None or a function of n_iter, "
            f"objective and {third}."
        )
    return callback


def bias_word(bias: Any) -> Any:
    """The bias parameter, with its older word "kkt" read as "flat"."""
    return "flat" if isinstance(bias, str) and bias == "kkt" else bias


def check_bias(bias: Any) -> Bias:
    """ "flat" (or "kkt"), None, or the variance of a Gaussian prior as a float."""
    bias = bias_word(bias)
    if bias is None:
        return None
    if isinstance(bias, str) and bias == "flat":
        return "flat"
    if is_real(bias) and 0 < bias < np.inf:
        return float(bias)
    raise ValueError(
        f"bias={shown(bias)} must be 'flat', None, or a variance > 0 of a Gaussian "
        "prior."
    )
