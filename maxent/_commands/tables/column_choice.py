"""Columns of delimited text: features, the label, and those beside them."""

import itertools
from dataclasses import dataclass

from maxent._commands.tables.cells import TableError, short

__all__ = ["Choice", "ColumnNames", "split_names"]


@dataclass(frozen=True)
class Choice:
    """Numbers of columns, counted from 0.

    Attributes
    ----------
    features : list of int
    target : int or None
        The label.
    beside : dict of str to list of int
        Columns that are neither, by what they are for.
    """

    features: list[int]
    target: int | None
    beside: dict[str, list[int]]


def split_names(names, known):
    """Names of columns, of which several may stand between commas.

    A name that is known with its commas is one.
    """
    parts = ([name] if name in known else str(name).split(",") for name in names)
    return [*itertools.chain.from_iterable(parts)]


class ColumnNames:
    """The columns of one file.

    Parameters
    ----------
    file : str
        How messages call it.
    names : list of str or None
        From its header.
    width : int
        How many there are.
    """

    def __init__(self, file, names, width):
        self.file, self.names, self.width = file, names, width
        self.places: dict[str, int] = {}
        for place, name in enumerate(names or ()):
            self.places.setdefault(name, place)

    def called(self, index):
        """Name of a column in messages, or its number."""
        if self.names is not None and self.names[index]:
            return f"column {short(self.names[index])}"
        return f"column {index} (counted from 0)"

    def choose(
        self, label, labelled, n_features, feature_names, ignore, beside, layout
    ):
        """Choose the columns; the arguments are those of `read_table`."""
        by_name = feature_names is not None and self.names is not None
        beside = {kind: self.indices(names, kind) for kind, names in beside.items()}
        left_out = {*self.indices(ignore, "ignore")}.union(*beside.values())
        if layout is not None:
            self._as_in_training(layout, beside, left_out)
        rest = [i for i in range(self.width) if i not in left_out]
        if labelled == "auto":
            labelled = self._is_labelled(label, n_features, by_name, len(rest))
        target = None
        if labelled and label is None and rest:
            target = rest[-1]
        elif labelled:
            target = self.index(label, "label")
            if target in left_out:
                raise TableError(
                    f"{self.file}: {self.called(target)} is the label, and cannot be "
                    "left out or used otherwise"
                )
        if by_name:
            if target is not None and self.names[target] in feature_names:
                raise TableError(
                    f"{self.file}: {self.called(target)} is the label, and the model "
                    "has learnt from it as a feature; fit it again with --label "
                    f"{self.names[target]}"
                )
            return Choice(self._by_name(feature_names), target, beside)
        return Choice([i for i in rest if i != target], target, beside)

    def as_text(self, features, names):
        """Marks of the features: True for those named as text, None for others."""
        chosen = {*self.indices(names, "text")}
        for index in sorted(chosen.difference(features)):
            raise TableError(
                f"{self.file}: {self.called(index)} is no feature, so it cannot be one "
                "of text"
            )
        return [True if i in chosen else None for i in features]

    def _as_in_training(self, layout, beside, left_out):
        """Leave out what training left out, where the file is of the same form."""
        known = layout["id"]
        if self.names is not None:
            there = [self.places[name] for name in known if name in self.places]
            beside.setdefault("id", there)
        elif self.width == layout["width"]:
            named = [short(one) for one in known if isinstance(one, str)]
            if named and "id" not in beside:
                raise TableError(
                    f"{self.file} has no header, and the model was fitted beside ids "
                    f"named {', '.join(named)}; say their numbers, counted from 0, by "
                    "--id"
                )
            left_out.update(layout["left_out"])
            beside.setdefault("id", known)

    def _is_labelled(self, label, n_features, by_name, n_rest):
        if isinstance(label, str) and self.names is not None:
            return label in self.places
        if by_name:
            return label is not None
        labelled = n_features is not None and n_rest == n_features + 1
        if labelled and isinstance(label, str):
            raise TableError(
                f"{self.file} has no header and one column more than the "
                f"{n_features} features; say which is the label, by its number "
                "counted from 0"
            )
        return labelled

    def _by_name(self, feature_names):
        missing = [short(n) for n in feature_names if n not in self.places]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise TableError(
                f"{self.file} has no column {', '.join(missing[:3])}{more}; "
                f"its columns are {self._listed()}{self.cause()}"
            )
        return [self.places[n] for n in feature_names]

    def indices(self, names, use):
        """Numbers of columns, of which several may be named between commas."""
        places = (self.index(one, use) for one in split_names(names, self.places))
        return [*dict.fromkeys(places)]

    def index(self, name, use):
        """Number of a column, by its name or its number."""
        if name in self.places:
            return self.places[name]
        to_ignore = " to ignore" if use == "ignore" else ""
        column = "column" if use in ("ignore", "text") else f"{use} column"
        try:
            index = int(name)
        except ValueError:
            if self.names is None:
                raise TableError(
                    f"{self.file} has no header, so no column {short(name)}{to_ignore};"
                    f" give the number of the {column}, counted from 0"
                ) from None
            raise TableError(
                f"{self.file} has no column {short(name)}{to_ignore}; its columns are "
                f"{self._listed()}{self.cause()}"
            ) from None
        if not -self.width <= index < self.width:
            raise TableError(
                f"{self.file} has {self.width} columns, so no column {index}; "
                f"numbers go from 0 to {self.width - 1}, or from -1 backwards"
            )
        return index % self.width

    def cause(self):
        """Why the columns are probably not those of the file, or nothing."""
        first = self.names[0] if self.names else ""
        if first.startswith("#"):
            return "; the first line begins with '#': remove it if it is a comment"
        if self.width == 1 and "|" in first:
            return (
                "; the cells seem to be separated by '|': replace it by commas, tabs "
                "or semicolons"
            )
        return ""

    def _listed(self):
        names = [short(name) for name in self.names[:20]]
        return ", ".join(names) + (", ..." if self.width > 20 else "")
