"""Names of columns in messages."""

from __future__ import annotations

from collections.abc import Iterable

from maxent._support import validation as v


def names_of_columns(estimator: object) -> list[str] | None:
    """Names of the columns that an estimator was fitted to, for messages."""
    names = vars(estimator).get("feature_names_in_")
    return None if names is None else list(names)


def called(noun: str, columns: Iterable[int], names: list[str] | None = None) -> str:
    """How messages call columns: "feature 3", "features 'size', 'age'".

    Parameters
    ----------
    noun : {"feature", "column"}
    columns : iterable of int
        All of them are listed.
    names : list of str, optional
        Names of all columns.
    """
    words = [v.shown(names[k] if names else int(k)) for k in columns]
    return f"{noun}{'s' if len(words) > 1 else ''} {', '.join(words)}"
