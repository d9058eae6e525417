"""Estimators from options, their fits, and what is said of them."""

import contextlib
import time
import warnings

import numpy as np

from maxent._commands.catalog import SEQUENCES, TABLES
from maxent._commands.console import Messages, tell
from maxent._commands.hints import hint_at_contamination, hint_at_reversal
from maxent._commands.outcome import CommandError, Outcome, listed, quoted
from maxent._commands.parameters import class_of, parameters
from maxent._commands.reports import (
    Shown,
    certificate,
    error_text,
    is_regressor,
    recalls,
    report,
    verdict,
)
from maxent._commands.wording import in_shell, warnings_told
from maxent._persistence.calibrated import CALIBRATED
from maxent._persistence.persistence import resolve_class, save
from maxent._support.validation import check_memory

__all__ = [
    "as_taken",
    "calibrated",
    "complete",
    "cross_validate",
    "folds_of",
    "machine_of",
    "make_estimator",
    "takes_sparse",
    "without_names",
]

_FOLDS = 5
# warning that `fit_lines` gives in terms of options
_CONSTANT = ".*all predictions are nearly the same"
# and one that `class_labels` has given, if `args.told_of_classes`
_MANY_CLASSES = r"y holds \d+ different (numbers|labels) in \d+ rows"


def make_estimator(name, spec, given, **params):
    """An estimator with the options that were given.

    Parameters
    ----------
    name : str
        What the user calls it.
    spec : Spec
    given : dict
        Of `given_options`.
    **params
        Parameters beside those, which no option changes.
    """
    known, fixed = parameters(spec), {*params}
    for dest, (flag, names, value) in given.items():
        param = next((one for one in names if one in known), None)
        if param is None or param in fixed or dest in spec.foreign:
            raise CommandError(
                f"{flag} does not apply to the {name}{_help_of(name, spec)}"
            )
        default = known[param]
        params[param] = _meant(value, default) if dest.startswith("set ") else value
    if "random_state" in known:
        params.setdefault("random_state", 0)
    try:
        return class_of(spec)(**{**spec.defaults, **params})
    except TypeError:  # a parameter without a default, which motifs alone have
        raise CommandError(f"{name}: give its --width, in letters") from None


def _help_of(name, spec):
    """Clause that names the help of an estimator, where there is one."""
    if spec not in (TABLES.get(name), SEQUENCES.get(name)):
        return ""
    return f" (see maxent fit --estimator {name} --help)"


def _meant(value, default):
    """The value of --set where it is a word that Python writes unlike JSON.

    The default of the parameter tells whether it can be meant: a label may be any text.
    """
    words = {"None": None} if default is None else {}
    if isinstance(default, bool):
        words = {"True": True, "False": False}
    elif not isinstance(default, str):
        for sign in ("", "-"):
            words |= dict.fromkeys((f"{sign}inf", f"{sign}np.inf"), float(f"{sign}inf"))
    return words.get(value, value) if isinstance(value, str) else value


def machine_of(estimator):
    """The machine inside a pipeline or a calibrated classifier."""
    while True:
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif type(estimator).__name__ == CALIBRATED:
            parts = getattr(estimator, "calibrated_classifiers_", None)
            estimator = parts[0].estimator if parts else estimator.estimator
        else:
            return estimator


def calibrated(args, estimator, y, weights=None):
    """The estimator with calibrated probabilities, if they are asked for, and weights.

    A calibration knows no class weights: its sigmoid would undo them. They are taken
    from the estimator, multiply those of the rows, and are kept as `args.class_weight`
    for the model file.
    """
    args.class_weight = None
    if not args.probability:
        return estimator, weights
    _check_calibration(args, estimator)
    _check_classes(args, y)
    args.class_weight = estimator.get_params(deep=False).get("class_weight")
    if args.class_weight is not None:
        weights = _times_class_weights(args, y, weights)
        estimator.set_params(class_weight=None)
    folds = _shuffled(args, _FOLDS)
    return resolve_class(CALIBRATED)(estimator, cv=folds, ensemble=False), weights


def _check_calibration(args, estimator):
    """Refuse estimators that cannot be calibrated."""
    from sklearn.base import is_classifier

    label = estimator.get_params(deep=False).get("pos_label")
    if label is not None:  # calibration numbers the classes by their order
        raise CommandError(
            f"--probability does not combine with --positive {quoted(label)}; rename "
            "the labels so that the class with the motif is the last in sorted order"
        )
    if not is_classifier(estimator):
        raise CommandError(
            "--probability is for classifiers, and a "
            f"{type(estimator).__name__} predicts no classes"
        )
    if args.estimator == "partial":
        raise CommandError(
            "--probability cannot calibrate a machine on rows without labels; leave "
            "these out by --drop-unlabelled and train another estimator, such as "
            "classifier"
        )


def _check_classes(args, y):
    """Refuse classes with fewer rows than the calibration has folds."""
    classes, counts = np.unique(y, return_counts=True)
    beside = ""
    if args.cv is not None:  # the rows of a fold are left out of its fit
        counts = counts - np.ceil(counts / max(args.cv, 2)).astype(int)
        beside = " beside a fold of --cv"
    if counts.min() < _FOLDS:
        raise CommandError(
            f"--probability calibrates on {_FOLDS} folds, and the class "
            f"{classes.tolist()[counts.argmin()]!r} has fewer rows{beside}: "
            f"{counts.min()}"
        )


def _times_class_weights(args, y, weights):
    from maxent.discrimination._class_rows import class_rows

    try:
        _, keep, *_, product = class_rows(args.estimator, y, weights, args.class_weight)
    except ValueError as error:
        raise CommandError(in_shell(error, args)) from error
    weights = np.zeros(len(y))
    weights[keep] = product
    return weights


def takes_sparse(estimator):
    """True if the estimator takes sparse rows."""
    from sklearn.utils import get_tags

    return get_tags(estimator).input_tags.sparse


def as_taken(estimator, X):
    """The rows, dense where the estimator takes no sparse ones."""
    if isinstance(X, np.ndarray) or takes_sparse(estimator):
        return X
    check_memory("features", X.shape[1], 8.0 * X.shape[0] * X.shape[1])
    return X.toarray()


def _shuffled(args, n_folds, kind="StratifiedKFold"):
    """Folds of scikit-learn; files may be sorted, so --seed shuffles their rows."""
    from sklearn import model_selection

    seed = vars(args).get("seed", 0)
    return getattr(model_selection, kind)(n_folds, shuffle=True, random_state=seed)


def run_fit(args, estimator, run):
    """Call `run`, an estimator's fit; progress and warnings go to standard error."""
    messages = Messages()
    progress = messages.isatty() if args.progress is None else args.progress
    machine = machine_of(estimator)
    verbose = machine.get_params(deep=False).get("verbose")
    loud = progress and not args.quiet and verbose is not None
    if loud:
        machine.set_params(verbose=1)
    told = [_MANY_CLASSES] if vars(args).get("told_of_classes") else []
    with warnings_told(args, [_CONSTANT, *told]):
        try:
            with contextlib.redirect_stdout(messages):
                run()
        except (ValueError, TypeError, ImportError) as error:  # without Numba
            raise CommandError(in_shell(error, args)) from error
    if loud:
        for one in (machine, machine_of(estimator)):
            one.set_params(verbose=verbose)


def folds_of(args, y):
    """Pairs of row numbers for --cv: stratified for classes, shuffled by --seed."""
    if args.cv < 2:
        raise CommandError(f"--cv {args.cv}: two or more folds are needed")
    if args.cv > len(y):
        raise CommandError(f"--cv {args.cv}: there are {len(y)} rows only")
    if y.dtype.kind == "f":
        return [*_shuffled(args, args.cv, "KFold").split(y)]
    strata = np.array([str(label) for label in y.tolist()])
    labels, counts = np.unique(strata, return_counts=True)
    if args.cv > counts.max():
        raise CommandError(
            f"--cv {args.cv}: no class has so many rows, {counts.max()} at most; "
            "take fewer folds"
        )
    if args.cv > counts.min():
        label = labels[counts.argmin()]
        tell(
            f"maxent fit: warning: --cv {args.cv}: the class {label!r} has only "
            f"{counts.min()} rows, so that folds lack it"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, which says the same
        return [*_shuffled(args, args.cv).split(strata, strata)]


def cross_validate(args, estimator, X, y, **params):
    """Lines about the error in rows that were left out of the fits.

    Rows without a label, where -1 says so, are in the fits only.
    """
    from sklearn.model_selection import cross_val_predict

    folds, found = folds_of(args, y), {}

    def run():
        found["predicted"] = cross_val_predict(
            estimator, X, y, cv=folds, params=params or None
        )

    run_fit(args, estimator, run)
    predicted = found["predicted"]
    if args.estimator == "partial":
        predicted, y = _labelled(predicted, y)
    name, regression = "cross-validation error", y.dtype.kind == "f"
    text = error_text(predicted, y, {} if regression else {"classes_": np.unique(y)})
    lines = [(name, Shown(f"{text}, {args.cv} folds", text.value))]
    return lines if regression else [*lines, ("recall", recalls(predicted, y))]


def _labelled(predicted, y):
    """Predictions and labels of the rows that have one."""
    kept = np.array([label != -1 for label in y.tolist()])
    return np.asarray(predicted)[kept], np.array(y[kept].tolist())


def complete(args, estimator, y, *, fit, predict, lines, extra, names=None):
    """Fit, write the model file, and report; without a file report only.

    Parameters
    ----------
    args : Namespace
    estimator : estimator
    y : ndarray or None
        Labels.
    fit, predict : callable()
        Fit the estimator, and return its predictions of the same rows.
    lines : callable()
        Return lines about the data.
    extra : callable()
        Return what the model file keeps beside the estimator.
    names : list of str, optional
        Of the features that the estimator is fitted to.

    Returns
    -------
    outcome : Outcome
    """
    if args.model is None:
        return Outcome(report(args, lines()))
    start = time.perf_counter()
    run_fit(args, estimator, fit)
    seconds = time.perf_counter() - start
    _write_model(args, estimator, extra(), names)
    shown = [*lines(), *fit_lines(args, estimator, predict(), y, names)]
    shown += [("time", Shown(f"{seconds:.3g} s", seconds)), ("written", args.model)]
    converged = vars(machine_of(estimator)).get("converged_", True)
    if not converged:
        tell(
            "maxent fit: the tolerance was not reached; the model is written all the "
            "same"
        )
    return Outcome(report(args, shown), 0 if converged else 1, args.model)


def fit_lines(args, estimator, predicted, y, names):
    """Lines about a fit: what it has chosen, classes, training error, certificate."""
    machine = machine_of(estimator)
    state, lines = vars(machine), []
    if hasattr(machine, "get_support"):
        lines.append(("selected", _selected(machine, names)))
    if hasattr(machine, "pos_label_"):
        lines.append(("motif sought in", machine.pos_label_))
    if "classes_" in state and y is not None:
        counts = {c: int((y == c).sum()) for c in state["classes_"].tolist()}
        text = listed(f"{c} ({n})" for c, n in counts.items())
        lines.append(("classes", Shown(text, counts)))
        if "label_mean_" in state:
            n_rows = len(y)
            predicted, y = _labelled(predicted, y)
            absent = n_rows - len(y)
            lines.append(("without a label", Shown(f"{absent} rows", absent)))
    found = verdict(machine, predicted, y)
    if is_regressor(machine):
        lines.append(("labels", _shown_numbers(y)))
        _warn_of_units(args, machine, predicted, y)
    if found is not None:
        name, text = found
        lines.append((f"training {name}" if name == "error" else name, text))
    hint_at_contamination(machine, predicted)
    hint_at_reversal(estimator)
    return lines + certificate(state)


def _selected(machine, names):
    chosen = machine.get_support(indices=True).tolist()
    called = [names[i] if names else i for i in chosen]
    text = f"{len(chosen)}: {listed(called)}" if chosen else "none"
    return Shown(text, called)


def _shown_numbers(y):
    """Range and number of different labels of a regressor."""
    low, high, n = float(y.min()), float(y.max()), len(np.unique(y))
    values = {"from": low, "to": high, "different": n}
    return Shown(f"numbers from {low:.6g} to {high:.6g}, {n} different", values)


def _warn_of_units(args, machine, predicted, y):
    """Warn of labels that are all alike, or no better predicted than by their mean."""
    from maxent.discrimination._constant_fits import constant_remedy

    spread = float(np.std(y))
    if not np.ptp(y):
        tell(
            f"maxent fit: warning: the labels are all {y[0]:.6g}, and so is every "
            "prediction; choose their column with --label"
        )
    if not np.sqrt(np.mean((predicted - y) ** 2)) > 0.95 * spread > 0:
        return
    remedy = in_shell(constant_remedy(machine, spread, " "), args)
    tell(
        "maxent fit: warning: the predictions are no better than the mean of the "
        f"labels: {remedy}"
    )


def without_names(estimator):
    """Take the names of its features from an estimator that a file has given."""
    for machine in (estimator, machine_of(estimator)):
        vars(machine).pop("feature_names_in_", None)


def _write_model(args, estimator, extra, names=None):
    """Write the model file, or say why the estimator cannot be saved.

    Of linear machines it holds no training rows. `names` are those of the features that
    the estimator was fitted to.
    """
    machine = machine_of(estimator)
    machine = vars(machine).get("estimator_", machine)  # of partial
    compact = vars(machine).get("kernel") == "linear"
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if type(last).__name__ == CALIBRATED:  # a model file holds no object of folds
        last.set_params(cv=_FOLDS)
    if names is not None:  # which the fit, to an array, has not had
        for one in (estimator, machine_of(estimator)):
            one.feature_names_in_ = np.array(names, dtype=object)
    try:
        save(estimator, args.model, extra=extra, compact=compact)
    except (TypeError, ValueError) as error:
        raise CommandError(error) from error
    args.written = args.model
    without_names(estimator)
