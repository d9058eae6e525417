"""What ``maxent fit`` says of data that are seldom meant as they are taken."""

import itertools
import re

import numpy as np
import scipy.sparse as sp

from maxent._commands.console import tell
from maxent._commands.outcome import CommandError, listed, quoted
from maxent._commands.tables.cells import short
from maxent._commands.tables.mixed_columns import commas_in
from maxent._persistence.calibrated import CALIBRATED, calibrated_state

__all__ = [
    "MANY",
    "check_text",
    "has_many",
    "hint_at_contamination",
    "hint_at_counters",
    "hint_at_reversal",
    "hint_at_spreads",
    "tell_similar_labels",
]

MANY = 50  # categories or classes that a column seldom means
_FAR = 100.0  # factor between spreads of columns
_MANY_OUTLIERS = 0.2  # of the training rows
_MOST_ALIKE = 0.9  # of the texts of a column; more different ones are names

_COMMAS = {
    "decimal": ("decimal commas", "--decimal , reads them"),
    "thousands": (
        "commas between groups of three digits",
        "write them without commas, or say --decimal , if decimals follow",
    ),
}
_NUMBER = r"[+-]?\s*[0-9][0-9.,' ]*"
_CURRENCY = "[$€£¥]"
_TIME = r"([T ][0-9]{1,2}:[0-9:.]+\S*)?"
_ALIKE = [  # texts, what they look like, and the remedy
    (rf"{_NUMBER}\s*%", "numbers with a percent sign", "strip the sign"),
    (
        rf"[+-]?\s*{_CURRENCY}\s*{_NUMBER}|{_NUMBER}\s*{_CURRENCY}",
        "numbers with a sign of currency",
        "strip the sign",
    ),
    (
        r"([0-9]{4}([-/])[0-9]{1,2}\2[0-9]{1,2}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{2,4}"
        rf"|[0-9]{{1,2}}/[0-9]{{1,2}}/[0-9]{{2,4}}){_TIME}",
        "dates",
        "give parts of the date as numbers",
    ),
]


def has_many(n_different, n_rows):
    """True if texts of a column are too many to be meant as categories or classes."""
    return n_different > MANY and 5 * n_different > n_rows


# ---------------------------------------------------------------------------- labels


def tell_similar_labels(labels):
    """Warn of classes whose names differ only in case or blanks."""
    names = sorted({label for label in labels if isinstance(label, str)})
    alike = {}
    for name in names:
        alike.setdefault("".join(name.casefold().split()), []).append(name)
    found = [group for group in alike.values() if len(group) > 1]
    if found:
        groups = [" and ".join(map(repr, group)) for group in found]
        tell(
            f"maxent fit: warning: the labels {listed(groups, 4)} differ only in case "
            "or blanks, and each is a class of its own; write them alike if they mean "
            "the same"
        )


# --------------------------------------------------------------------------- columns


def check_text(name, cells, n_rows, meant):
    """Refuse numbers with commas, and texts that are nearly all different.

    Of other columns with very many texts a warning is told.

    Parameters
    ----------
    name : str or int
        Name or number of the column.
    cells : list of str
        Those that are not missing.
    n_rows : int
    meant : bool
        Whether --text names the column.
    """
    found, kind = len(set(cells)), None if meant else commas_in(cells)
    most = found > max(20, 0.5 * len(cells))
    if kind is not None:
        example = next(cell for cell in cells if "," in cell)
        what, remedy = _COMMAS[kind]
        text = (
            f"column {name!r} holds numbers with {what}, such as {example}: {remedy}; "
            f"--text {quoted(name)} takes them for categories"
        )
        if most:
            raise CommandError(text)
        tell(f"maxent fit: warning: {text}, as they are now")
        return
    text = f"column {name!r} holds {found} different texts in {len(cells)} cells"
    looks = "" if meant else _looks(cells)
    if found > max(20, _MOST_ALIKE * len(cells)) and not meant:
        column = quoted(name)
        why = f", such as {short(cells[0])}: names or documents, but no categories;"
        raise CommandError(
            f"{text}{';' + looks if looks else why} --ignore {column} leaves the "
            f"column out, --id {column} names the rows by it, and --text {column} "
            "takes each text for a category"
        )
    if most or has_many(found, n_rows):
        tell(
            f"maxent fit: warning: {text}, each a category of its own;{looks} --ignore "
            f"{quoted(name)} leaves the column out"
        )


def hint_at_counters(args, table):
    """Hint at --id where a column with a name counts the rows."""
    if table.feature_names is None or not isinstance(table.X, np.ndarray):
        return
    for name, column in zip(table.feature_names, table.X.T):
        if len(column) > 20 and _counts(column[:20]) and _counts(column):
            tell(
                f"maxent {args.command}: hint: column {name!r} counts the rows: --id "
                f"{quoted(name)} names the rows by it, and --ignore {quoted(name)} "
                "leaves it out"
            )


def _counts(column):
    """True if the numbers of a column rise by one from each row to the next."""
    numbers = column.tolist()
    if not all(isinstance(x, float) for x in numbers):
        return False
    return all(b - a == 1 for a, b in itertools.pairwise(numbers))


def _looks(cells):
    """Clause on what nearly all texts look like, with a remedy; empty for none."""
    texts = sorted(set(cells))
    for pattern, what, remedy in _ALIKE:
        like = [text for text in texts if re.fullmatch(pattern, text)]
        if len(like) >= _MOST_ALIKE * len(texts):
            return f" they look like {what}, such as {like[0]}: {remedy}, or"
    return ""


def hint_at_spreads(estimator, X):
    """Hint at --standardize where the largest columns alone would make the kernel.

    Parameters
    ----------
    estimator : estimator
        Or one with the machine as its `estimator`.
    X : ndarray or CSR (n, n_features)
        What it is fitted to.
    """
    machine = getattr(estimator, "estimator", estimator)
    if getattr(machine, "kernel", None) not in ("rbf", "poly"):
        return
    spread = _spreads(X)
    spread = spread[spread > 0]
    if not spread.size or not spread.max() > _FAR * spread.min():
        return
    factor = float(spread.max() / spread.min())
    tell(
        f"maxent fit: hint: the columns' spreads differ by a factor of {factor:.2g}: "
        "--standardize scales them"
    )


def _spreads(X):
    """Standard deviations, 0 of constant columns.

    Flags and zeros vary little where they are rare, which is no matter of units: of two
    values it is half their difference, of sparse columns the largest value.
    """
    if sp.issparse(X):
        return abs(X).max(axis=0).toarray().ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = X.min(axis=0), X.max(axis=0)
        flags = (np.equal(X, low) | np.equal(X, high)).all(axis=0)
        return np.where(flags, (high - low) / 2, np.std(X, axis=0))


# -------------------------------------------------------------------------- outliers


def hint_at_reversal(estimator):
    """Warn where calibrated probabilities fall as decision values rise.

    The sigmoid is fitted to rows left out of the fits, whose decision values then have
    the wrong sign: nothing that was learnt holds for other rows.
    """
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if type(last).__name__ != CALIBRATED:
        return
    slopes = calibrated_state(last)["sigmoids_"][0][:, 0]
    if len(slopes) == 1:
        wrong = bool(slopes[0] > 0)
    else:
        wrong = [c for c, slope in zip(last.classes_.tolist(), slopes) if slope > 0]
    if not wrong:
        return
    of = "" if wrong is True else f" of {listed(wrong)}"
    tell(
        "maxent fit: warning: in rows left out of the fits, larger decision values"
        f"{of} go with the other label, so that the probabilities reverse their order: "
        "what was learnt does not hold for other rows; -v 5 shows the error of such "
        "rows, by which options can be chosen"
    )


def hint_at_contamination(machine, predicted):
    """Hint at --contamination where many training rows are judged outliers."""
    from sklearn.base import is_outlier_detector

    if not is_outlier_detector(machine) or machine.contamination is not None:
        return
    n = int(np.sum(np.asarray(predicted) == -1))
    if n > _MANY_OUTLIERS * len(predicted):
        tell(
            f"maxent fit: hint: {n} of {len(predicted)} training rows are outliers; "
            "--contamination SHARE sets the share of training rows beyond the threshold"
        )
