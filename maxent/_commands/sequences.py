"""``maxent fit`` and ``predict`` on sequences: kernels, motifs and outliers."""

import os
import re

import numpy as np

from maxent._commands.catalog import KERNEL, SEQUENCES
from maxent._commands.console import tell
from maxent._commands.hints import tell_similar_labels
from maxent._commands.outcome import (
    CommandError,
    check_model_output,
    listed,
    quoted,
)
from maxent._commands.predictions import Applied, columns_asked, write_predictions
from maxent._commands.reading import class_weights, encoding_remedy
from maxent._commands.training import (
    calibrated,
    complete,
    cross_validate,
    machine_of,
    make_estimator,
)
from maxent._inputs.letters import (
    counted,
    in_both_cases,
    in_case_of,
    is_nucleic,
    unknown_letters,
)
from maxent._inputs.sequence_files import (
    checked_labels,
    identifiers,
    last_words,
    read_records,
)

NEGATIVE, POSITIVE = "negative", "positive"  # labels of sequences in two files
MODELS = {"hmm": "CategoricalHMM", "markov": "MarkovChain"}
_IN_FIT = "add it to --alphabet, or name it in --unknown if it is an unknown letter"
_IN_PREDICT = "drop the sequence, or fit again with it in --alphabet or --unknown"
_ONE_CASE = "such as by awk '!/^>/{$0=toupper($0)}1'"  # headers have the labels
_NAMES = {"seq", "sequence", "sequences", "label", "labels", "class"}  # of columns
_OTHERS = ("M3EMotifClassifier", "MEDSequenceOutlierDetector")
_OF_MODEL = {  # options of one model only: its parameter
    "n_states": ("hmm", "n_states"),
    "n_init": ("hmm", "n_init"),
    "em_tol": ("hmm", "tol"),
    "order": ("markov", "order"),
}
_OF_TABLES = (
    *("standardize", "label", "header", "impute", "ignore", "id", "weights", "text"),
    *("bins", "drop_unlabelled"),
)


def fit(args):
    """Train on a file of sequences, write a model file."""
    _refuse_table_options(args)
    if args.estimator not in SEQUENCES:
        raise CommandError(
            f"--estimator {args.estimator} does not apply to sequences, which have "
            f"{', '.join(SEQUENCES)}"
        )
    if args.model is not None:
        check_model_output(args.model, args.data)
    spec, args.sequences = SEQUENCES[args.estimator], True
    given = dict(args.given)
    _check_negative(args, spec, given)
    X, y, places, _ = _read(args, labelled=spec.labels is not None)
    X = _in_one_case(args, X, given)
    weight = given.pop("class_weight", None)
    if weight is not None and y is None:
        raise CommandError(f"{weight[0]} does not apply to the {args.estimator}")
    _check_one_label(args, spec, y)
    y = _two_labels(args, given, y)
    params = {}
    if weight is not None:
        params["class_weight"] = class_weights(weight[2], y)
    estimator, weights = _estimator(args, spec, given, params, X, y)
    _check_letters(X, places, *_letters_of(estimator), _IN_FIT)
    _check_lengths(X, places, estimator, ", or a smaller --width")
    checked = [] if args.cv is None else _cross_validate(args, estimator, X, y, weights)
    kernel, rows = _kernel_of(estimator), [X]
    machine = estimator if kernel is None else estimator[-1]
    weighted = {} if weights is None else {"sample_weight": weights}

    def fit_once():  # a kernel between the training rows is computed once
        if kernel is not None:
            rows[0] = kernel.fit_transform(X)
        machine.fit(rows[0], y, **weighted)

    return complete(
        *(args, estimator, y),
        fit=fit_once,
        predict=lambda: machine.predict(rows[0]),
        lines=lambda: [("sequences", len(X)), *_model_lines(estimator), *checked],
        extra=lambda: {
            "sequences": spec.class_name if kernel is None else kernel.model,
            "class_weight": args.class_weight,
        },
    )


def _check_negative(args, spec, given):
    """Refuse a file of negatives where labels have no use, or are named otherwise."""
    if args.negative is None:
        return
    if spec.labels is None:
        raise CommandError(f"--negative does not apply to the {args.estimator}")
    if "pos_label" in given:
        flag, _, label = given["pos_label"]
        raise CommandError(
            f"{flag} {quoted(label)} names a label of {args.data}, and --negative says "
            "that all its sequences are positive; leave one of them out"
        )


def _check_one_label(args, spec, y):
    """Refuse sequences of one label; those of others may be in another file."""
    if spec.labels == "classes" and len({*y.tolist()}) == 1:
        raise CommandError(
            f"{args.data}: all {len(y)} sequences have the label {y.tolist()[0]!r}, "
            "the last word of their headers or lines, and two classes are needed; if "
            "those of the other class are in another file, name it by --negative FILE"
        )


def _in_one_case(args, X, given):
    """The sequences, those of nucleic acids in one case but for --keep-case."""
    if args.keep_case:
        return X
    alphabet, unknown = (
        given.get(dest, (None, None, None))[2] for dest in ("alphabet", "unknown")
    )
    folded = in_case_of(X, alphabet, unknown or "")
    n = sum(a != b for a, b in zip(X, folded))
    if n:
        cases = ("lower", "upper")
        read, other = cases if any(map(str.islower, folded)) else cases[::-1]
        tell(
            f"maxent {args.command}: {n} of {len(X)} sequences have {other}-case "
            f"bases, read as {read} case; --keep-case tells them apart"
        )
    return folded


def _two_labels(args, given, y):
    """The labels; of more than two for a motif, one of them against all others."""
    flag, _, label = given.get("pos_label", (None, None, None))
    known = [] if y is None else np.unique(y).tolist()
    tell_similar_labels(known)
    if y is not None and flag is not None and label not in known:
        raise CommandError(
            f"{flag} {label} is none of the labels of the file, {listed(known)}"
        )
    if args.estimator != "motif" or len(known) <= 2:
        return y
    if flag is None:
        raise CommandError(
            f"{args.data} has the labels {listed(known)}, and a motif tells two apart; "
            f"say --positive LABEL, such as --positive {quoted(known[-1])}, for the "
            "motif of one of them against all others"
        )
    return _against_others(y, label)


def _against_others(y, label):
    """The label, or that of all others; None stays."""
    named = [one if one in (label, None) else _others(label) for one in y.tolist()]
    return np.array(named, dtype=y.dtype if None in named else None)


def _others(label):
    return f"not {label}"


def _estimator(args, spec, given, params, X, y):
    """The estimator of the sequences, and weights of them or None."""
    letters = dict(zip(("alphabet", "missing"), _alphabet_of(args, X, *_named(given))))
    if args.estimator != "classifier":
        machine = make_estimator(args.estimator, spec, given, **params, **letters)
        return calibrated(args, machine, y)
    from sklearn.pipeline import Pipeline

    kernel = _kernel(given, letters)
    name, params["kernel"] = "classifier of sequences", "precomputed"
    machine, weights = calibrated(args, make_estimator(name, spec, given, **params), y)
    return Pipeline([("kernel", kernel), ("machine", machine)]), weights


def _named(given):
    """Letters that --alphabet and --unknown name, taken from the options."""
    return tuple(given.pop(d, (None, None, None))[2] for d in ("alphabet", "unknown"))


def _kernel(given, params):
    """The kernel between models of the sequences; takes its options from those given.

    `params` are those of the models.
    """
    kind = given.pop("sequence_model", (None, None, "hmm"))[2]
    for dest in [dest for dest in _OF_MODEL if dest in given]:
        flag, _, value = given.pop(dest)
        owner, param = _OF_MODEL[dest]
        if kind != owner:
            raise CommandError(f"{flag} does not apply to --sequence-model {kind}")
        params[param] = value
    if "smoothing" in given:
        params["smoothing"] = given.pop("smoothing")[2]
    dests = [d for d in ("rho", "horizon", "seed", "n_jobs") if d in given]
    options = {dest: given.pop(dest) for dest in dests}
    return make_estimator(
        *("kernel", KERNEL, options), model=MODELS[kind], model_params=params
    )


def _cross_validate(args, estimator, X, y, weights):
    """Lines about the error in sequences that were left out of the fits."""
    if y is None:
        raise CommandError("--cv needs a label for every sequence")
    prefix = "" if _kernel_of(estimator) is None else "machine__"
    weighted = {} if weights is None else {f"{prefix}sample_weight": weights}
    return cross_validate(args, estimator, np.array(X, dtype=object), y, **weighted)


def _kernel_of(estimator):
    """The kernel in front of a machine, or None."""
    return estimator[0] if hasattr(estimator, "steps") else None


def _model_lines(estimator):
    kernel, (letters, _) = _kernel_of(estimator), _letters_of(estimator)
    lines = [("alphabet", f"{letters} ({len(letters)} letters)")]
    if kernel is not None:
        horizon = getattr(kernel, "horizon_", kernel.horizon)
        model = f"{kernel.model}, horizon {horizon}, rho {kernel.rho:g}"
        lines.append(("model", model))
    return lines


def predict(args, estimator, model):
    """Apply a model of sequences to a file of them."""
    methods = columns_asked(args, estimator)
    found = applied_to(args, estimator, model)
    beside = _places(args, estimator, found.X) if args.places else []
    return write_predictions(args, found, methods, beside)


def applied_to(args, estimator, model):
    """The sequences of a file as a model takes them."""
    if args.format not in ("sequences", "auto"):
        raise CommandError(
            f"{args.model} is a model of sequences; use --format sequences"
        )
    of_kernel = model in MODELS.values() and _kernel_of(estimator) is not None
    if not of_kernel and model not in _OTHERS:
        raise CommandError(f"{args.model}: what is said about its data does not agree")
    _refuse_table_options(args)
    classes = getattr(estimator, "classes_", None)
    labelled = False if args.no_label else "auto"
    X, y, places, ids = _read(args, labelled, _file_labels(args, estimator))
    alphabet, missing = _letters_of(estimator)
    if not args.keep_case:
        X = in_case_of(X, alphabet, missing)
    _check_letters(X, places, alphabet, missing, _IN_PREDICT)
    _check_lengths(X, places, estimator, "")
    if y is not None and model == "M3EMotifClassifier":
        label = machine_of(estimator).pos_label_
        if _others(label) in classes and label in y:
            y = _against_others(y, label)
    if y is not None and classes is not None:
        known = {str(c) for c in np.asarray(classes).tolist()}
        if not set(y.tolist()) & known:
            if 2 * len(set(y.tolist())) <= len(y):  # like labels, not like names
                tell(
                    f"maxent {args.command}: no last word of a header or line is a "
                    f"class of the model ({', '.join(sorted(known))}), so no error is "
                    "computed"
                )
            y = None
    return Applied(estimator, X, y, ids)


def _file_labels(args, estimator):
    """Labels of the file of --negative and of the data file, as the model has them."""
    classes = np.asarray(getattr(estimator, "classes_", [NEGATIVE, POSITIVE])).tolist()
    if args.negative is not None and len(classes) != 2:
        raise CommandError(
            f"--negative is for two classes, and {args.model} has {listed(classes)}"
        )
    positive = getattr(machine_of(estimator), "pos_label_", classes[-1])
    return sorted(classes, key=lambda label: label == positive)


def _places(args, estimator, X):
    """Columns of the likeliest place of the motif, and of its strand."""
    motif = machine_of(estimator)
    if not hasattr(motif, "pos_label_"):
        raise CommandError(
            f"--places is for models of motifs, and {args.model} is none"
        )
    at = motif.predict_hidden(X, [motif.pos_label_] * len(X))
    if not motif.both_strands:
        return [("place", at + 1)]
    last = np.array([len(text) for text in X]) - motif.width_
    forward = at <= last  # on the other strand places count from its own beginning
    first = np.where(forward, at, 2 * last + 1 - at)
    return [("place", first + 1), ("strand", np.where(forward, "+", "-"))]


def _refuse_table_options(args):
    for name in _OF_TABLES:
        if getattr(args, name, None) not in (None, False, []):
            flag = name.replace("_", "-")
            raise CommandError(f"--{flag} does not apply to sequences")


def _letters_of(estimator):
    """Alphabet and missing letters of a model of sequences."""
    kernel = _kernel_of(estimator)
    if kernel is not None:
        return kernel.model_params.get("alphabet"), kernel.model_params.get(
            "missing", ""
        )
    machine = getattr(estimator, "estimator", estimator)  # of a calibrated classifier
    return machine.alphabet, machine.missing


# ---------------------------------------------------------------------------- files


def _read(args, labelled, classes=(NEGATIVE, POSITIVE)):
    """Sequences of the data file, and of that of --negative, as `_read_file` has them.

    With the latter the labels are those of the files: the second of `classes` in the
    data file, the first in the other one.
    """
    if args.negative is None:
        return _read_file(args, args.data, labelled)
    if os.path.exists(args.negative) and os.path.samefile(args.negative, args.data):
        raise CommandError(
            f"--negative {args.negative} is the data file itself; name the file of the "
            "sequences without the motif, or of the other class"
        )
    X, _, places, ids = _read_file(args, args.data, False)
    others, _, more, other_ids = _read_file(args, args.negative, False)
    _tell_other_letters(args, X, others)
    y = np.repeat([*classes][::-1], [len(X), len(others)])
    if ids and other_ids:
        ids = [("id", [*ids[0][1], *other_ids[0][1]])]
    else:
        ids = []
    return [*X, *others], y, [*places, *more], ids


def _tell_other_letters(args, X, others):
    """Say so where one file is of DNA or RNA and the other of proteins, say."""
    letters = counted(X), counted(others)
    first, second = map(is_nucleic, letters)
    if first == second or not all(map(str.isalpha, letters[first])):
        return
    files = (args.data, args.negative)
    tell(
        f"maxent {args.command}: {files[second]} has bases of DNA or RNA, and "
        f"{files[first]} other letters, which alone tell the classes apart"
    )


def _read_file(args, path, labelled):
    """Strings, labels or None, words for the place of each string, and identifiers.

    The label is the last word of a FASTA header, or of a line, and the identifier the
    first word of the header. With "auto" labels are taken if every sequence has one.
    """
    try:
        found = read_records(path, args.encoding)
    except ValueError as error:
        raise CommandError(f"{error}{encoding_remedy(error)}") from None
    if found.empty:
        tell(f"maxent {args.command}: {found.left_out}")
    if found.fasta:
        places = [
            f"{path}, line {line}: the sequence {name!r}"
            for name, line in zip(found.names, found.lines)
        ]
        labels = _labels(args, path, found, last_words(found), labelled)
        return found.sequences, labels, places, [("id", identifiers(found))]
    strings, labels = [], []
    for text, line in zip(found.sequences, found.lines):
        words = [word for word in re.split(r"[\s,;]+", text) if word]
        if not strings and {word.strip("\"'").lower() for word in words} <= _NAMES:
            raise CommandError(
                f"{path}, line {line}: {text!r} looks like names of columns, and only "
                "sequences, each with its label, are expected; drop the line"
            )
        if not 1 <= len(words) <= 2:
            raise CommandError(
                f"{path}, line {line}: a sequence and its label are expected, and "
                f"{len(words)} words were found"
            )
        strings.append(words[0])
        labels.append(words[1] if len(words) == 2 else None)
    places = [f"{path}, line {line}: the sequence" for line in found.lines]
    return strings, _labels(args, path, found, labels, labelled), places, []


def _check_lengths(X, places, estimator, remedy):
    """Refuse sequences that are shorter than the motif, if there is one."""
    width = getattr(machine_of(estimator), "width", 0)
    if isinstance(width, (tuple, list)):  # a range
        width = max(width, default=0)
    if not isinstance(width, int):
        return  # the fit refuses it
    short = [i for i, text in enumerate(X) if len(text) < width]
    if short:
        raise CommandError(
            f"{places[short[0]]} has {len(X[short[0]])} letters and the motif "
            f"{width} ({len(short)} of {len(X)} sequences are so short); leave such "
            f"sequences out{remedy}"
        )


def _labels(args, path, found, labels, labelled):
    if labelled is False:
        return None
    try:
        return checked_labels(path, found, labels, optional=labelled == "auto")
    except ValueError as error:
        more = "; sequences of two classes may be in two files: --negative FILE"
        raise CommandError(f"{error}{more if labelled is True else ''}") from None


def _alphabet_of(args, X, alphabet, unknown):
    """Letters of the sequences, and those that stand for unknown ones.

    Without `unknown` these are the default ones, and what of them occurs is told.
    Without `alphabet` it is the rest.

    Parameters
    ----------
    args : Namespace
    X : list of str
    alphabet, unknown : str or None
        As the user gives them.

    Returns
    -------
    alphabet, unknown : str
    """
    counts = counted(X)
    if unknown is None:
        unknown = unknown_letters(None, alphabet, X)
        found = [f"{a} ({counts[a]})" for a in unknown if counts[a]]
        if found:
            tell(
                f"maxent {args.command}: {listed(found)} stand for unknown letters; "
                "name them in --alphabet if they are letters of their own"
            )
    if alphabet is None:
        alphabet = "".join(sorted({*counts} - {*unknown}))
        _warn_of_cases(alphabet)
    return alphabet, unknown


def _warn_of_cases(letters):
    """Lower-case letters in files of genomes mark repeats, not other symbols."""
    twice = in_both_cases(letters)
    if twice:
        tell(
            f"maxent fit: warning: {', '.join(twice)} occur in lower case too, which "
            f"counts as another letter; write the letters in one case, {_ONE_CASE}, or "
            "name both by --alphabet"
        )


def _check_letters(X, places, alphabet, missing, remedy):
    """Refuse letters that a model does not know; their place is named."""
    known = {*(alphabet or ""), *missing}
    for text, place in zip(X, places):
        unknown = {*text} - known
        if alphabet is not None and unknown:
            letter = min(unknown, key=text.index)
            if letter.swapcase() in known:
                remedy = f"write the letters in one case, {_ONE_CASE}"
            raise CommandError(
                f"{place} has the letter {letter!r} at place "
                f"{text.index(letter) + 1}, which is not in the alphabet {alphabet!r}; "
                f"{remedy}"
            )
