"""Messages of estimators for the shell: options for parameters, names of columns.

The library writes parameters as ``name=value``, or by name after a verb, and numbers of
columns; its remedies that are Python are constants.  Nothing else of a message changes.
"""

import contextlib
import re
import warnings

from maxent._commands.console import tell
from maxent._commands.options import FOR_SEQUENCES, OPTIONS
from maxent._commands.outcome import one_line, quoted
from maxent._commands.parameters import parameters, parts
from maxent._support import remedies

__all__ = ["column_words", "in_shell", "warnings_told"]

_VERBS = r"(?P<verbs>(?:(?:[Rr]aise|[Ll]ower|[Ss]et|or) )*)"
_VALUE = r"\w+\([^)]*\)|'[^']*'|[^\s,;:()]*[^\s,;:().]"
_PARAMETER = re.compile(
    rf"(?<![\w'.-]){_VERBS}(?P<name>[A-Za-z]\w*)(?:=(?P<value>{_VALUE})|(?![\w'(\[]))"
)
_MODEL = "CategoricalHMM"  # inside the kernel between sequences
_COLUMNS = re.compile(
    r"\bX\[(\d+), (\d+)\]|\b((?:column|feature)s? )(\d+(?:, \d+)*)(?!\w|\.\.)"
)
_REMEDIES = {
    remedies.MAKE_BINS: "by --bins 5",
    remedies.TAKE_REGRESSOR: "train --estimator regressor",
    remedies.ONE_AGAINST_REST: (
        "train classifier, gaussian, bayesnet, tree, chowliu or logistic"
    ),
}
_SCALES = {  # by --standardize
    True: {f", or {remedies.SCALE_FEATURES}": ""},
    False: {
        remedies.SCALE_FEATURES: "say --standardize",
        remedies.SCALE_COLUMNS: "scale the columns by --standardize",
    },
}


def column_words(table, encoded=None):
    """Columns by their numbers in messages: as the file has them, and for --ignore.

    Parameters
    ----------
    table : Table
    encoded : list of str, optional
        Names of the features that columns of text have become.

    Returns
    -------
    word : callable
        From the number of a feature to its word and to its name for --ignore, None
        where it has none. IndexError beyond the features.
    """
    names = encoded or table.feature_names
    if names is not None:
        known = {*table.feature_names}
        words = [(repr(name), name if name in known else None) for name in names]
    elif table.positions is not None:
        words = [(f"{i} (counted from 0)", str(i)) for i in table.positions]
    else:
        first = 0 if table.zero_based else 1
        return lambda j: (f"{j + first} (its index in the file)", None)
    return words.__getitem__


def in_shell(message, args):
    """A message of the library on one line, for a user of the shell.

    Parameters
    ----------
    message : str or Exception
    args : Namespace
        Of the command; `words` are those of `column_words` where columns have any.

    Returns
    -------
    text : str
    """
    text, fits = one_line(message), args.command == "fit"
    if _MODEL in text:
        text = _with_options(text, {"tol": OPTIONS["em_tol"].flag}, {"tol"})
        return text if fits else f"{text} Options are those of maxent fit."
    if fits:
        scales = {} if "sequences" in vars(args) else _SCALES[args.standardize]
        for said, option in (_REMEDIES | scales).items():
            text = text.replace(said, option)
        text = _with_options(text, *_options_of(args))
    words = vars(args).get("words")
    return text if words is None else _with_columns(text, words, fits)


@contextlib.contextmanager
def warnings_told(args, ignored=()):
    """Tell each warning of a block at once and once, as a sentence on standard error.

    Of fits that did not converge one sentence is enough, whatever its numbers.

    Parameters
    ----------
    args : Namespace
        Of the command.
    ignored : sequence of str
        Patterns of warnings that are not told.
    """
    known = set()

    def tell_once(message, category, *_, **__):
        text = in_shell(message, args)
        is_open = category.__name__ == "ConvergenceWarning"
        key = re.split(r"\d", text)[0] if is_open else text  # up to its numbers
        if key not in known:
            known.add(key)
            tell(f"maxent {args.command}: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for pattern in ignored:
            warnings.filterwarnings("ignore", pattern)
        warnings.showwarning = tell_once
        yield


def _with_options(text, flags, names):
    """Parameters of these names as the options that set them: a flag, or --set."""

    def option(match):
        verbs, name, value = match["verbs"], match["name"], match["value"]
        if name not in names or not (value or verbs or "_" in name):
            return match[0]
        value = value and value.strip("'")
        if name not in flags:
            return f"{verbs.removesuffix('set ')}--set {name}={value or 'VALUE'}"
        shown = "" if value in (None, "True") else f" {value}"
        return f"{verbs}{flags[name]}{shown}"

    return _PARAMETER.sub(option, text)


def _options_of(args):
    """Flags by parameter, and all parameters of the estimator."""
    sequences = "sequences" in vars(args)
    kind, machine = ("tables", "sequences")[sequences], vars(args).get("machine")
    spec, *inside = parts(args.estimator, kind, machine or "classifier")
    names = {param for one in (spec, *inside) for param in parameters(one)}
    flags = {
        param: option.flags[0]
        for dest, option in OPTIONS.items()
        if dest not in spec.foreign and (sequences or dest not in FOR_SEQUENCES)
        for param in option.params
    }
    return flags, names | {*flags}


def _with_columns(text, word, ignorable):
    """Columns by their names, and --ignore where a remedy is to drop them."""
    ignored = []

    def named(match):
        row, cell, noun, columns = match.groups()
        words, names = zip(*(word(int(j)) for j in (cell or columns).split(", ")))
        ignored.extend(names)
        start = noun or f"row {row} (counted from 0), column "
        return start + ", ".join(words)

    try:
        text = _COLUMNS.sub(named, text)
    except IndexError:  # no number of a feature
        return text
    if not (ignorable and ignored and "drop" in text) or None in ignored:
        return text
    names = quoted(",".join(dict.fromkeys(ignored)))
    them = "them" if "," in names else "it"
    return f"{text.rstrip('.')}; --ignore {names} leaves {them} out"
