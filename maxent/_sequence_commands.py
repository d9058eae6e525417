"""Sequences on the command line: a kernel between models of them, and a classifier."""

import re
import time

import numpy as np

from maxent._commands import (
    CommandError,
    check_output,
    fit_lines,
    fit_outcome,
    prediction_method,
    run_fit,
    write_predictions,
)
from maxent._support.persistence import resolve_class, save
from maxent._support.sequences import read_records

MODELS = {"hmm": "CategoricalHMM", "markov": "MarkovChain"}
_OWN = {"n_states": "hmm", "order": "markov"}  # options of one model only
_NOT_HERE = {"--standardize": "standardize", "--label": "label", "--header": "header"}


def fit(args):
    """``maxent fit`` on a file of sequences."""
    from sklearn.pipeline import Pipeline

    _refuse_table_options(args)
    check_output(args.model, args.data)
    X, y = _read(args.data, labelled=True)
    kernel, machine = _make_kernel(args, X), _make_machine(args)
    found = {}

    def run():
        found["K"] = kernel.fit_transform(X)
        machine.fit(found["K"], y)

    start = time.perf_counter()
    run_fit(args, machine, run)
    seconds = time.perf_counter() - start
    pipeline = Pipeline([("kernel", kernel), ("machine", machine)])
    try:
        save(pipeline, args.model, extra={"sequences": kernel.model})
    except (TypeError, ValueError) as error:
        raise CommandError(error) from error
    state = vars(machine)
    letters = kernel.model_params["alphabet"]
    lines = [
        ("sequences", len(X)),
        ("alphabet", f"{letters} ({len(letters)} letters)"),
        ("model", f"{kernel.model}, horizon {kernel.horizon_}, rho {kernel.rho:g}"),
    ]
    lines += fit_lines(state, machine.predict(found["K"]), y)
    return fit_outcome(args, state, lines, seconds)


def predict(args, pipeline, model):
    """``maxent predict`` with a model of sequences."""
    if args.format not in ("sequences", "auto"):
        raise CommandError(
            f"{args.model} is a model of sequences; use --format sequences"
        )
    if model not in MODELS.values() or not hasattr(pipeline, "named_steps"):
        raise CommandError(f"{args.model}: what is said about its data does not agree")
    _refuse_table_options(args)
    method = prediction_method(args, pipeline)
    classes = {str(c) for c in np.asarray(pipeline.classes_).tolist()}
    X, y = _read(args.data, labelled=False if args.no_label else "auto")
    if y is not None and not args.no_label and not set(y.tolist()) & classes:
        y = None  # last words of headers that are no labels
    return write_predictions(args, pipeline, method, X, y)


def _refuse_table_options(args):
    for flag, name in _NOT_HERE.items():
        if getattr(args, name, None) not in (None, False):
            raise CommandError(f"{flag} does not apply to sequences")
    if getattr(args, "estimator", "classifier") != "classifier":
        raise CommandError(
            f"--estimator {args.estimator} does not apply to sequences, which have a "
            "classifier only"
        )


# ------------------------------------------------------------------------- machines


def _make_kernel(args, X):
    """The kernel between models of the sequences, from the options."""
    given = vars(args)
    kind = given.get("sequence_model", "hmm")
    params = {"alphabet": given.get("alphabet"), "missing": given.get("unknown", "")}
    if params["alphabet"] is None:
        letters = {letter for text in X for letter in text} - {*params["missing"]}
        params["alphabet"] = "".join(sorted(letters))
    for name, owner in _OWN.items():
        if name in given:
            if kind != owner:
                flag = {"n_states": "--states"}.get(name, f"--{name}")
                raise CommandError(f"{flag} does not apply to --sequence-model {kind}")
            params[name] = given[name]
    if "smoothing" in given:
        params["smoothing"] = given["smoothing"]
    return resolve_class("ProductKernel")(
        MODELS[kind],
        rho=given.get("rho", 0.5),
        horizon=given.get("horizon", "mean"),
        model_params=params,
        random_state=given.get("seed", 0),
        n_jobs=given.get("n_jobs"),
    )


def _make_machine(args):
    cls = resolve_class("MEDClassifier")
    known = set(cls._get_param_names()) - {"kernel", "gamma", "degree", "coef0"}
    params = {}
    for name, (flag, value) in args.given.items():
        if name == "n_jobs":
            continue  # of the kernel
        if name not in known:
            raise CommandError(f"{flag} does not apply to sequences")
        params[name] = value
    return cls(kernel="precomputed", **params)


# ---------------------------------------------------------------------------- files


def _read(path, labelled):
    """Strings and labels; None without labels.

    The label is the last word of a FASTA header, or of a line. With "auto" labels are
    taken if every sequence has one.
    """
    try:
        found = read_records(path)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    if found.fasta:
        labels = [name.split()[-1] if name else None for name in found.names]
        return found.sequences, _labels(path, found, labels, labelled)
    strings, labels = [], []
    for text, line in zip(found.sequences, found.lines):
        words = [word for word in re.split(r"[\s,;]+", text) if word]
        if not 1 <= len(words) <= 2:
            raise CommandError(
                f"{path}, line {line}: a sequence and its label are expected, and "
                f"{len(words)} words were found"
            )
        strings.append(words[0])
        labels.append(words[1] if len(words) == 2 else None)
    return strings, _labels(path, found, labels, labelled)


def _labels(path, found, labels, labelled):
    if labelled is False:
        return None
    if None in labels:
        if labelled == "auto":
            return None
        line = found.lines[labels.index(None)]
        where = "header" if found.fasta else "line"
        raise CommandError(
            f"{path}, line {line}: the sequence has no label; write it as the last "
            f"word of its {where}"
        )
    return np.array(labels)
