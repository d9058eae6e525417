"""Delimited text: delimiter and header found, columns chosen, faults named by cell."""

import contextlib
import csv
import itertools
import math
import re

import numpy as np

from maxent._commands.tables.cells import (
    Beside,
    Table,
    TableError,
    all_exact,
    parse_number,
    short,
    whole,
)
from maxent._commands.tables.column_choice import ColumnNames
from maxent._commands.tables.mixed_columns import mixed_columns
from maxent._core.text_tables import count_byte, read_cells
from maxent._support.files import is_missing

__all__ = ["CSVReader"]

_DELIMITERS = ("\t", ";", ",")  # on a tie the comma is more likely a decimal one
_WHITESPACE = None  # any run of blanks; only where no other delimiter splits the rows
_SAMPLE_ROWS = 20
_NUMBERED_ROWS = 1000  # that are looked at below numbers which may be names
_PADDED = re.compile("[+-]?0[0-9]")  # leading zeros, which tell 01 from 1
_SCALE_COLUMNS = 4  # numbers in a row by which it can be told from data
_SCALE_ROWS = 10  # below one number fewer
_MAX_LABEL = 1000  # characters; the array of labels is as wide as the longest


class CSVReader:
    """One CSV file: its delimiter and header, then its columns."""

    def __init__(self, name, text, header, expected=None, decimal="."):
        # Line breaks of one kind, once; those inside of quotes, too.
        text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.name, self.text = name, text
        self.delimiter = self._find_delimiter(decimal)
        if decimal == ",":
            self.text = _with_points(text, self.delimiter)
        rows = self.rows()
        sample = list(itertools.islice(rows, _SAMPLE_ROWS))
        if not sample:
            raise TableError(f"{name} is empty")
        line, first = sample[0]
        self.width = len(first)
        self.doubt = None
        if header == "auto":
            header = self._is_header(
                line, first, [row for _, row in sample[1:]], expected
            )
        self.names = [cell.strip() for cell in first] if header else None
        self.skip = line if header else 0
        self.sample = [row for _, row in sample[1 if header else 0 :]]
        if not self.sample:
            raise TableError(f"{name} has a header but no rows")
        self.columns = ColumnNames(name, self.names, self.width)
        for column, called in enumerate(self.names or ()):
            twin = self.columns.places[called]
            if twin < column:
                raise TableError(
                    f"{name}, line {line}: columns {twin} and {column} (counted from "
                    f"0) have the same name {short(called)}; rename one, or "
                    "say that the first row holds no names"
                )

    def _is_header(self, line, first, others, expected):
        """True if the first row holds names: no number in it, or those expected."""
        text = [parse_number(cell) is None for cell in first]
        if expected and {*expected} <= {cell.strip() for cell in first}:
            return True
        if all(text):
            if not expected and _recurs(first, others):
                self.doubt = (
                    f"{self.name}, line {line}: the first row, "
                    f"{short(', '.join(first))}, is read as names, but most of its "
                    "cells stand in the rows below, too"
                )
            return True
        if _counts_columns(first):
            return self._names_by_number(line, first)
        for index, cell in enumerate(first):
            below = [row[index] for row in others if len(row) == self.width]
            if (
                text[index]
                and cell.strip()
                and below
                and None not in map(parse_number, below)
            ):
                raise TableError(
                    f"{self.name}, line {line}: {short(cell)} stands above numbers, "
                    "but other cells of the row are numbers; say whether the row is "
                    "a header"
                )
        if _like_a_scale(first, others):
            self.doubt = (
                f"{self.name}, line {line}: the first row, {short(', '.join(first))}, "
                "is read as data, but rises like names of columns that are numbers"
            )
        return False

    def _names_by_number(self, line, first):
        """True if a first row with the numbers 0, 1, ... in it holds names of columns.

        Pandas writes them so. They are names where a cell is unlike those below it.
        """
        rows = itertools.islice(self.rows(), 1, _NUMBERED_ROWS)
        rows = [row for _, row in rows if len(row) == self.width]
        columns = [[cell.strip() for cell in column] for column in zip(*rows)]
        cells = [(cell.strip(), below) for cell, below in zip(first, columns)]
        texts = [pair for pair in cells if parse_number(pair[0]) is None]
        if any(cell and cell in below for cell, below in texts):
            return False  # such as a class that other rows have
        if any(_is_name(*pair) for pair in texts):
            return True
        said = f"{self.name}, line {line}: the first row, {short(', '.join(first))}, "
        if any(_is_number_above(*pair) for pair in cells if pair not in texts):
            self.doubt = (
                f"{said}numbers the columns, as pandas does: it is read as names"
            )
            return True
        usual = len(cells) < 3 and all(cell in below for cell, below in cells)
        if not usual and not any(map(_counts_up, rows)):
            self.doubt = f"{said}is read as data, but may number the columns"
        return False

    def _find_delimiter(self, decimal):
        """The delimiter that splits the first rows evenly into most columns.

        Where decimals are separated by commas, cells are if nothing else splits.
        """
        best, most = None, 1
        known = [d for d in _DELIMITERS if d != decimal]
        for delimiter in known:
            width = self._even_width(delimiter)
            if width > most:
                best, most = delimiter, width
        if best is None and self._even_width(_WHITESPACE) > 1:
            return _WHITESPACE
        if best is None and self._even_width(decimal) > 1:
            return decimal
        if best is None:
            first = next((t for t in self.text.splitlines() if t.strip()), "")
            best = max(_DELIMITERS[::-1], key=first.count)
        return best

    def _even_width(self, delimiter):
        """Cells of each of the first rows, 0 if they differ."""
        self.delimiter, widths = delimiter, set()
        with contextlib.suppress(TableError):  # of a later row
            for _, row in itertools.islice(self.rows(), _SAMPLE_ROWS):
                widths.add(len(row))
        return widths.pop() if len(widths) == 1 else 0

    def rows(self):
        """Pairs of line number and cells; blank lines are left out.

        Cells in quotes may hold line breaks; the number is that of a row's last line.
        """
        at_end, taken = False, []

        def lines():
            nonlocal at_end
            for line in _lines(self.text):
                if self.delimiter is _WHITESPACE:
                    line = line.replace("\t", " ").strip() + "\n"
                taken.append(line)
                yield line
            at_end = True

        options = {"delimiter": self.delimiter}
        if self.delimiter is _WHITESPACE:
            options = {"delimiter": " ", "skipinitialspace": True}
        reader = csv.reader(lines(), **options)
        try:
            for row in reader:
                if at_end:  # the reader has looked for more lines of this row
                    inside = row[-1].removesuffix("\n").count("\n")
                    raise TableError(
                        f"{self.name}, line {reader.line_num - inside}: a quote opens "
                        f"a cell, {short(row[-1])}, and is not closed; close it, or "
                        "write two quotes for one that belongs to a text in quotes"
                    )
                if len(taken) > 1:  # text behind a quote that closes is an error here
                    next(csv.reader(taken, strict=True, **options))
                taken.clear()
                if row and (len(row) > 1 or row[0].strip()):
                    yield reader.line_num, row
        except csv.Error as error:
            line = reader.line_num - len(taken) + 1
            if len(taken) > 1:
                fault = f"a quote seems not to be closed ({error})"
            elif "field limit" in str(error):
                fault = (
                    f"a cell has more than {csv.field_size_limit()} characters; "
                    "shorten it, or leave its column out of the file"
                )
            else:
                fault = str(error)
            raise TableError(f"{self.name}, line {line}: {fault}") from None

    def read(
        self,
        label,
        labelled,
        n_features,
        feature_names,
        columns,
        text,
        ignore,
        beside,
        layout,
    ):
        """Read the table; the arguments are those of `read_table`."""
        chosen = self.columns.choose(
            *(label, labelled, n_features, feature_names),
            *(ignore, beside or {}, layout),
        )
        features, target = chosen.features, chosen.target
        self._check_features(features, target, n_features)
        if text and isinstance(text[0], str):
            text = self.columns.as_text(features, text)
        X, y = self._read_columns(features, target, columns, text, labelled)
        return Table(
            X,
            y if y is None or y.dtype.kind != "f" else whole(y),
            None if self.names is None else [self.names[i] for i in features],
            None if self.names is None or target is None else self.names[target],
            target,
            "csv",
            positions=features,
            width=self.width,
            beside={
                kind: [self._beside(kind, place) for place in places]
                for kind, places in chosen.beside.items()
            },
            doubt=self.doubt,
        )

    def _check_features(self, features, target, n_features):
        """Refuse a file without features, or with another number than expected."""
        if n_features is not None and len(features) != n_features:
            raise TableError(
                f"{self.name} has {len(features)} feature columns"
                f"{' beside the label' if target is not None else ''}, but "
                f"{n_features} are expected"
            )
        if features:
            return
        if self.width > 1:
            raise TableError(
                f"{self.name} has no columns but those that are left out, named by "
                "other options, or the label"
            )
        raise TableError(
            f"{self.name} has one column only, so no features beside the label; "
            "columns are separated by commas, tabs, semicolons or blanks"
            f"{self.columns.cause()}"
        )

    def _beside(self, kind, index):
        """Cells of a column that is neither feature nor label; weights as numbers."""
        cells = [(line, row[index].strip()) for line, row in self._even_rows()]
        place = index if self.names is None else self.names[index]
        if kind != "weights":
            return Beside(place, [cell for _, cell in cells])
        weights = [parse_number(cell) for _, cell in cells]
        for weight, (line, cell) in zip(weights, cells):
            if weight is None or not 0 <= weight < math.inf:
                fault = f"the weight {short(cell)} is not a finite number >= 0"
                raise self._cell_error(line, index, fault)
        return Beside(place, weights)

    def _read_columns(self, features, target, columns, text, labelled):
        found = None
        if text is None or not any(text):
            with contextlib.suppress(UnicodeEncodeError):  # of a lone surrogate
                found = self._read_regular(features, target)
        if found is not None:
            X, y = found
            absent = y is not None and _any_missing(y)
            if np.isfinite(X).all() and _finite(y) and not absent:
                return X, y
        if columns == "numbers":
            text = [False] * len(features)
        cells, labels, lines = [], [], []
        for line, row in self._even_rows():
            cells.append([row[i].strip() for i in features])
            lines.append(line)
            labels.append(None if target is None else row[target])
        X = mixed_columns(
            cells,
            lambda i, j, *fault: self._cell_error(lines[i], features[j], *fault),
            missing=columns not in ("numbers", "text"),
            any_text=columns == "categories",
            text=text,
        )
        return X, self._labels(labels, lines, target, labelled)

    def _cell_error(self, line, index, fault, kind=None):
        name = None if self.names is None else self.names[index]
        return TableError(
            f"{self._place(line, index)}: {fault}", name or str(index), kind
        )

    def _place(self, line, index):
        return f"{self.name}, line {line}, {self.columns.called(index)}"

    def _read_regular(self, features, target):
        """Features and labels of regular text, whose cells are numbers, or None."""
        numeric = target is not None and all(
            len(row) == self.width and parse_number(row[target]) is not None
            for row in self.sample
        )
        columns = [*dict.fromkeys(features)]
        place = np.full(self.width, -1)
        place[columns] = np.arange(len(columns))
        lines = count_byte(self.text, ord("\n")) + 1
        rows = min(lines, len(self.text) // self.width + 1)
        X, y = np.empty((rows, len(columns))), np.empty(rows)
        ends = np.empty((rows, 2), np.intp)
        for numbers in [True, False][not numeric :]:
            found, column = read_cells(
                *(self.text, self.skip, ord(self.delimiter or " "), place),
                *(-1 if target is None else target, numbers),
                *(csv.field_size_limit(), X, y, ends),
            )
            exact = found >= 0 and (not numbers or all_exact(y[:found]))
            if exact or (found < 0 and column != target):
                break
        if found < 0:
            return None
        X = X[:found] if columns == features else np.take(X[:found], place[features], 1)
        if target is None or numbers:
            return X, None if target is None else y[:found]
        ascii = self.text.isascii()
        text = self.text if ascii else self.text.encode()
        cells = [text[a:b] for a, b in ends[:found].tolist()]
        labels = [(cell if ascii else cell.decode()).strip() for cell in cells]
        if "" in labels or max(map(len, labels)) > _MAX_LABEL:
            return None
        return X, _numbers_or_text(labels)

    def _even_rows(self):
        """Pairs of line number and cells below the header, all of one width."""
        rows = self.rows()
        if self.names is not None:
            next(rows)
        for line, row in rows:
            if len(row) != self.width:
                first = line - sum(cell.count("\n") for cell in row)
                cause = self.columns.cause()
                if first < line:
                    cause = f"; is a quote in line {first} not closed?"
                raise TableError(
                    f"{self.name}, line {first}: {len(row)} cells, but the first row "
                    f"has {self.width}{cause}"
                )
            yield line, row

    def _labels(self, labels, lines, target, labelled):
        """Labels as numbers if all are, else as text; None where one may lack."""
        if target is None:
            return None
        labels = [label.strip() for label in labels]
        absent = [is_missing(label) for label in labels]
        for line, label in zip(lines, labels):
            if len(label) > _MAX_LABEL:
                fault = f"the label is longer than {_MAX_LABEL} characters"
                raise self._cell_error(line, target, fault)
        if any(absent) and labelled not in ("auto", "partly"):
            first, n = absent.index(True), sum(absent)
            word = labels[first]
            fault = (
                f"the label {f'{short(word)} stands for none' if word else 'is empty'}"
            )
            fault += f" ({n} rows have none)" if n > 1 else ""
            raise self._cell_error(lines[first], target, fault, "label")
        found = _numbers_or_text(["0" if a else x for a, x in zip(absent, labels)])
        if found.dtype.kind == "f":
            for line, number, label in zip(lines, found.tolist(), labels):
                if not math.isfinite(number):
                    raise TableError(
                        f"{self._place(line, target)}: the label {short(label)} is not "
                        "finite"
                    )
        if all(absent):
            return None
        if any(absent):
            found = (whole(found) if found.dtype.kind == "f" else found).astype(object)
            found[np.array(absent)] = None
        return found


def _lines(text):
    """Lines with their ends, made one by one: a few of a long text are soon read."""
    start, n = 0, len(text)
    while start < n:
        end = text.find("\n", start) + 1 or n
        yield text[start:end]
        start = end


def _with_points(text, delimiter):
    """The text with decimal points for decimal commas in cells that are numbers.

    Cells between commas need quotes.
    """
    edge = {_WHITESPACE: r"\s", ",": ""}.get(delimiter, delimiter)
    start = "" if delimiter == "," else "^|"
    end = "" if delimiter == "," else "|$"
    return re.sub(
        rf'({start}[{edge}"])([ ]*[+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?[ ]*)'
        rf'(?=[{edge}"]{end})',
        r"\1\2.\3",
        text,
        flags=re.MULTILINE,
    )


def _counts_columns(first):
    """True if the numbers of a row are 0, 1, ... in this order."""
    numbers = [cell.strip() for cell in first if parse_number(cell) is not None]
    return len(first) > 1 and numbers == [str(i) for i in range(len(numbers))]


def _counts_up(row):
    """True if the numbers of a row go on by one."""
    numbers = [x for x in map(parse_number, row) if x is not None]
    return all(b - a == 1 for a, b in itertools.pairwise(numbers))


def _is_name(cell, below):
    """True if a cell of text is one above numbers, or above a few texts that recur.

    An empty cell is that of an index, whose numbers are whole and different.
    """
    numbers = [parse_number(other) for other in below]
    if None in numbers:
        return bool(cell) and 2 * len({*below}) <= len(below)
    index = len({*numbers}) == len(below) and all(x % 1 == 0 for x in numbers)
    return bool(below) and (bool(cell) or index)


def _is_number_above(cell, below):
    """True if a few cells recur below, not this one, or no number there is whole."""
    few = 2 * len({*below}) <= len(below) and cell not in below
    if few or len(below) < 2 or None in map(parse_number, below):
        return few
    return not any(other.lstrip("+-").isdigit() for other in below)


def _like_a_scale(first, others):
    """True if numbers of the first row are like years or wavelengths above a table.

    They rise or fall all along, in even steps or in eight columns and more, as those
    of no other row do. Three numbers in even steps must be far from those below, too.
    """
    columns = [i for i, cell in enumerate(first) if parse_number(cell) is not None]
    kind = _steps_of([first[i] for i in columns])
    known = {"even"} if len(columns) < 2 * _SCALE_COLUMNS else {"even", "monotone"}
    if kind not in known or not others:
        return False
    if len(columns) < _SCALE_COLUMNS and not _is_far(columns, first, others):
        return False
    alike = {"even", kind}
    return not any(
        len(row) == len(first) and _steps_of([row[i] for i in columns]) in alike
        for row in others
    )


def _is_far(columns, first, others):
    """True if three numbers and more of a row are each far from many rows below.

    Far is beyond the range of the column by its width, or above text.
    """
    if len(columns) < _SCALE_COLUMNS - 1 or len(others) < _SCALE_ROWS:
        return False
    for i in columns:
        below = [parse_number(row[i]) for row in others if len(row) == len(first)]
        if below and None not in below:
            low, high, x = min(below), max(below), parse_number(first[i])
            if 2 * low - high <= x <= 2 * high - low:
                return False
    return True


def _recurs(first, others):
    """True if more than half of the cells of a row stand below it, too."""
    columns = [{cell.strip() for cell in column} for column in zip(*others)]
    again = [cell.strip() in column for cell, column in zip(first, columns)]
    return 2 * sum(again) > len(first)


def _steps_of(cells):
    """Kind of steps between numbers: "even", "monotone" or None."""
    numbers = [parse_number(cell) for cell in cells]
    if None in numbers or len(numbers) < 2 or not np.isfinite(numbers).all():
        return None
    steps = np.diff(numbers)
    if not (np.all(steps > 0) or np.all(steps < 0)):
        return None
    return "even" if np.ptp(steps) <= 1e-6 * abs(steps[0]) else "monotone"


def _numbers_or_text(labels):
    """Numbers, if all labels are; text where leading zeros tell them apart."""
    numbers = [parse_number(label) for label in labels]
    if None in numbers or any(map(_PADDED.match, labels)):
        return np.array(labels)
    return whole(np.array(numbers), lambda: labels)


def _any_missing(y):
    return y.dtype.kind == "U" and any(map(is_missing, np.unique(y).tolist()))


def _finite(y):
    return y is None or y.dtype.kind != "f" or bool(np.isfinite(y).all())
