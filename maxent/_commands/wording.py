"""Messages of estimators in the words of the shell: options and names of columns.

The library speaks to users of Python.  What it says of parameters, of columns by their
numbers, and of remedies that are Python is translated here, in one place.
"""

import contextlib
import re
import warnings

from maxent._commands.catalog import SEQUENCES, TABLES
from maxent._commands.console import tell
from maxent._commands.options import OPTIONS, is_for_sequences
from maxent._commands.outcome import listed, one_line, quoted
from maxent._persistence.persistence import resolve_class

__all__ = ["column_words", "in_shell", "probability_remedy", "warnings_told"]

_MORE_CLASSES = "train classifier, gaussian, bayesnet, tree, chowliu or logistic"
_VERBS = r"\b(?:[Rr]aise|[Ll]ower|[Uu]se)"
_AND = r"--?[\w-]+(?: \(now \S+\))?,? or"  # an option and a parameter
_PLAIN = "(tol|level|quantile|C|ess)"  # parameters that are words, after those

# Remedies and phrases that mean something in Python only.
_PHRASES = [
    (
        r"wrap the estimator in sklearn\.multiclass\.OneVsRestClassifier",
        _MORE_CLASSES,
    ),
    (
        r"wrap \w+ in sklearn\.multiclass\.OneVsRestClassifier where all labels are "
        r"known, or fit one machine for each class",
        f"where all labels are known, {_MORE_CLASSES}",
    ),
    (
        r"bin (them|it) to make categories, for instance by "
        r"sklearn\.preprocessing\.KBinsDiscretizer\([^)]*\)",
        r"bin \1 by --bins 5, or drop \1",
    ),
    (r"Unknown label type: \w+\. y=.* holds numbers", "the labels are numbers"),
    (
        r"use a regressor such as MEDRegressor, or make classes, for instance by "
        r"numpy\.digitize",
        "train --estimator regressor, or write classes in their place",
    ),
    (
        r"Found array with (\d+) sample\(s\).* minimum of (\d+) is required by (\w+)",
        r"the table has \1 row, and \3 needs \2",
    ),
    (r"(the fixed margin |margin=)?FixedMargin\([^)]*\)", "margin='fixed'"),
    (r",? or a (MarginPrior object|NumPy Generator or RandomState)", ""),
    (r",? or a (proper )?NormalInverseWishart( as the model)?", ""),
    (r"set max_features with threshold=-np\.inf", "--set max_features=COUNT"),
    (r"level or percentile", "--level or --set percentile=VALUE"),
    (r" \(n_samples\)", ""),
    (
        r"y holds (\d+) different (numbers|labels) in (\d+) rows, and each is taken "
        r"for a class; (.*?)use a regressor such as MEDRegressor",
        r"the label column holds \1 different \2 in \3 rows, and each is taken for a "
        r"class; \4train --estimator regressor",
    ),
    (r"must be None( or|,) ", "must be "),
    (r"(CategoricalHMM.*); raise max_iter or tol\..*", r"\1; raise --em-tol"),
    (r"\bdata\[(\d+)\]", r"sequence \1 (counted from 0)"),
    (r"leave it None and set quantile", "leave it out and set --quantile"),
    (r"classes_\[1\]", "the second class"),
    (r"\bLMERBM, which", "--estimator rbm, which"),
    (
        r"Requesting (\d+)-fold cross-validation but provided less than .* class",
        r"--probability calibrates on \1 folds, and a class has fewer rows",
    ),
]
_STANDARDIZE = [(r"standardise them", "say --standardize")]
_STANDARDIZE += [(r"scale the features", "say --standardize")]
# Remedies that --standardize has already tried.
_STANDARDIZED = [
    (r" Small features need larger weights: standardise them\.", ""),
    (r",? or scale the features\b", ""),
]
_ASSIGNED = re.compile(r"(?<!--set )\b([A-Za-z]\w*)=('[^']*'|[^\s,;:()]*[^\s,;:().])")
_CELL = re.compile(r"X\[(\d+), (\d+)\]=(\S+?)(?=[;,:]?(?:\s|$))")
_COLUMNS = re.compile(
    r"\b(?:feature|column)s? \[?(\d+(?:(?:, | and )\d+)*)(\.\.+)?\]?(?: of X)?(?!\w)"
)
_DROP = re.compile(r"\b([Dd])rop (it|them|the columns?|columns)\b")

# Options of ``maxent fit`` besides --margin logistic that probabilities need: level 0,
# and of trees, whose scores are log-odds already, a rate of one.
_LOGISTIC = {
    "MEDGaussianClassifier": " --level 0",
    "MEDBayesNetClassifier": " --level 0",
    "MEDTreeClassifier": " --level 0 -C 1",
}


def probability_remedy(machine):
    """Return the options of ``maxent fit`` that give a model probabilities.

    Parameters
    ----------
    machine : classifier
        Fitted.

    Returns
    -------
    remedy : str
        A clause that begins with a verb.
    """
    name = type(machine).__name__
    if name == "MEDPartialLabelClassifier":  # its logistic prior is too sure
        return (
            "fit the rows with labels alone by --estimator classifier "
            "--drop-unlabelled --probability"
        )
    if not hasattr(machine, "margin"):  # motifs
        if getattr(machine, "pos_label", None) is None:
            return "fit with --probability"
        return (
            "rename the labels so that the class with the motif is the last in sorted "
            "order, and fit with --probability in the place of --positive"
        )
    return f"fit with --probability or --margin logistic{_LOGISTIC.get(name, '')}"


def column_words(table, encoded=None):
    """Names of the features in messages, and those that --ignore takes.

    Parameters
    ----------
    table : Table
    encoded : list of str, optional
        Names of the features that columns of text have become.

    Returns
    -------
    noun : {"column", "feature"}
    word : callable
        From the number of a feature to its word and to its name for --ignore, None
        where it has none. IndexError beyond the features.
    """
    known = table.feature_names
    if encoded is not None:
        words = [(repr(name), name if name in known else None) for name in encoded]
    elif known is not None:
        words = [(repr(name), name) for name in known]
    elif table.positions is not None:
        words = [(f"{i} (counted from 0)", str(i)) for i in table.positions]
    else:
        first = 0 if table.zero_based else 1
        return "feature", lambda j: (f"{j + first} (its index in the file)", None)
    return "column", words.__getitem__


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
    text = one_line(message)
    scaling = []
    if args.command == "fit":
        scaling = _STANDARDIZED if args.standardize else _STANDARDIZE
    for pattern, words in _PHRASES + scaling:
        text = re.sub(pattern, words, text)
    if args.command == "fit":
        text = _with_options(text, args)
    else:
        text = text.replace("; raise --em-tol", "; fit again with a larger --em-tol")
    words = vars(args).get("words")
    return text if words is None else _with_columns(text, *words)


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
        key = re.sub(r"\d[\d.e+-]*", "#", text) if is_open else text
        if key not in known:
            known.add(key)
            tell(f"maxent {args.command}: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for pattern in ignored:
            warnings.filterwarnings("ignore", pattern)
        warnings.showwarning = tell_once
        yield


# ------------------------------------------------------------------------- parameters


def _with_options(text, args):
    """Parameters as the options that set them."""
    spec = {**SEQUENCES, **TABLES}[args.estimator]
    if args.estimator == "outliers":  # whose parameters in both tables are their own
        spec = (SEQUENCES if "sequences" in vars(args) else TABLES)[args.estimator]
    flags = {
        option.param: option.flags[0]
        for dest, option in OPTIONS.items()
        if dest not in spec.foreign
        and ("sequences" in vars(args) or not is_for_sequences(dest))
    }
    flags["pseudo_count"] = "--smoothing"
    flags.pop("", None)
    others = {*resolve_class(spec.class_name)._get_param_names()}
    if args.estimator == "partial":
        inner = TABLES[vars(args).get("machine", "classifier")]
        others |= {*resolve_class(inner.class_name)._get_param_names()}

    def assigned(match):
        name, value = match[1], match[2].strip("'")
        if name in flags:
            return flags[name] if value == "True" else f"{flags[name]} {value}"
        return f"--set {name}={value}" if name in others else match[0]

    text = _ASSIGNED.sub(assigned, text)
    bare = "|".join(name for name in flags if "_" in name)
    text = re.sub(rf"(?<!['\w-])({bare})\b(?![\[=])", lambda m: flags[m[1]], text)
    for before in (_VERBS, _AND):
        text = re.sub(
            rf"({before}) {_PLAIN}\b",
            lambda m: f"{m[1]} {flags.get(m[2], m[2])}",
            text,
        )
    return text


# ---------------------------------------------------------------------------- columns


def _with_columns(text, noun, word):
    """Columns by their names, and what --ignore leaves out."""
    named = []

    def cell(match):
        place = f"{noun} {word(int(match[2]))[0]}, row {match[1]} (counted from 0)"
        return f"{match[3]} in {place}"

    def columns(match):
        numbers = re.findall(r"\d+", match[1])
        if match[2]:  # a list cut short, perhaps within its last number
            numbers = numbers[:-1]
        words, names = zip(*(word(int(j)) for j in numbers))
        if not match[2]:
            named.extend(names)
        more = ", ..." if match[2] else ""
        return f"{noun}{'s' if len(words) > 1 else ''} {listed(words)}{more}"

    try:
        text = _COLUMNS.sub(columns, _CELL.sub(cell, text))
    except (IndexError, ValueError):  # no number of a feature
        return text
    if noun == "feature" or None in named:
        return text
    names = f" by --ignore {quoted(','.join(named))}" if named else " (--ignore NAME)"
    return _DROP.sub(lambda m: f"{m[0]}{names}", text)
