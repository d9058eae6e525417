"""Estimators from options, their fits, and what is said of them."""

import contextlib

import numpy as np

from maxent._commands.outcome import (
    CommandError,
    Outcome,
    aligned,
    listed,
    one_line,
    warnings_told,
)
from maxent._commands.reports import certificate, error_text, is_regressor, verdict
from maxent._support.calibrated import CALIBRATED
from maxent._support.console import Messages, tell
from maxent._support.persistence import resolve_class, save

__all__ = [
    "calibrated",
    "cross_validate",
    "fit_lines",
    "fit_outcome",
    "folds_of",
    "machine_of",
    "make_estimator",
    "run_fit",
    "write_model",
]

_FOLDS_OF_CALIBRATION = 5
# warning that `fit_lines` gives in terms of options
_CONSTANT = ".*all predictions are nearly the same"


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
        Parameters beside those.
    """
    cls = resolve_class(spec.class_name)
    known = cls._get_param_names()
    for dest, (flag, param, value) in given.items():
        if param not in known or dest in spec.foreign:
            raise CommandError(f"{flag} does not apply to the {name}")
        params[param] = value
    if "random_state" in known:
        params.setdefault("random_state", 0)
    try:
        return cls(**params)
    except TypeError as error:  # a parameter without a default
        raise CommandError(f"{name}: {_needed(error)}") from error


def _needed(error):
    text = one_line(error)
    return "give its --width, in letters" if "'width'" in text else text


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


def calibrated(args, estimator):
    """The estimator, with calibrated probabilities if they are asked for."""
    if not args.probability:
        return estimator
    from sklearn.base import is_classifier

    weights = estimator.get_params(deep=False).get("class_weight")
    if isinstance(weights, dict):  # calibration numbers the classes by their order
        raise CommandError(
            "--probability does not combine with --class-weight of single labels; use "
            "--class-weight balanced, or --margin logistic, which needs no calibration"
        )
    if not is_classifier(estimator):
        raise CommandError(
            "--probability is for classifiers, and a "
            f"{type(estimator).__name__} predicts no classes"
        )
    if type(machine_of(estimator)).__name__ == "MEDPartialLabelClassifier":
        raise CommandError(
            "--probability cannot calibrate a machine on rows without labels; use "
            "--margin logistic, which needs no calibration"
        )
    folds = _shuffled(args, _FOLDS_OF_CALIBRATION)
    return resolve_class(CALIBRATED)(estimator, cv=folds, ensemble=False)


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
    with warnings_told("fit", [_CONSTANT]):
        try:
            with contextlib.redirect_stdout(messages):
                run()
        except (ValueError, TypeError) as error:
            raise CommandError(error) from error
    if loud:
        for one in (machine, machine_of(estimator)):
            one.set_params(verbose=verbose)


def folds_of(args, y):
    """The folds of --cv: stratified for classes, shuffled by --seed."""
    if args.cv < 2:
        raise CommandError(f"--cv {args.cv}: two or more folds are needed")
    if args.cv > len(y):
        raise CommandError(f"--cv {args.cv}: there are {len(y)} rows only")
    return _shuffled(
        args, args.cv, "KFold" if y.dtype.kind == "f" else "StratifiedKFold"
    )


def cross_validate(args, estimator, X, y):
    """Line about the error in rows that were left out of the fits."""
    from sklearn.model_selection import cross_val_predict

    folds, found = folds_of(args, y), {}

    def run():
        found["predicted"] = cross_val_predict(estimator, X, y, cv=folds)

    run_fit(args, estimator, run)
    state = {} if y.dtype.kind == "f" else {"classes_": np.unique(y)}
    text = error_text(found["predicted"], y, state)
    return ("cross-validation error", f"{text}, {args.cv} folds")


def fit_lines(estimator, predicted, y):
    """Lines about a fit: classes, training error, certificate."""
    machine = machine_of(estimator)
    state, lines = vars(machine), []
    if "classes_" in state and y is not None:
        counts = [f"{c} ({int((y == c).sum())})" for c in state["classes_"].tolist()]
        lines.append(("classes", listed(counts)))
        if "label_mean_" in state:
            kept = np.array([label != -1 for label in y.tolist()])
            lines.append(("without a label", f"{int((~kept).sum())} rows"))
            predicted, y = predicted[kept], y[kept]
    found = verdict(machine, predicted, y)
    if is_regressor(machine):
        _warn_of_units(machine, predicted, y)
    if found is not None:
        name, text = found
        lines.append((f"training {name}" if name == "error" else name, text))
    return lines + certificate(state)


def _warn_of_units(machine, predicted, y):
    """Warn of a regressor that is no better than the mean of the labels."""
    from maxent.discrimination._constant_fits import constant_remedy

    spread = float(np.std(y))
    if not np.sqrt(np.mean((predicted - y) ** 2)) > 0.95 * spread > 0:
        return
    flags = {"C": "-C"}
    remedy = constant_remedy(
        machine, spread, lambda name, x: f"{flags.get(name, '--' + name)} {x:.2g}", " "
    )
    tell(
        "maxent fit: warning: the predictions are no better than the mean of the "
        f"labels: {remedy}"
    )


def write_model(args, estimator, extra):
    """Write the model file, or say why the estimator cannot be saved."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if type(last).__name__ == CALIBRATED:  # a model file holds no object of folds
        last.set_params(cv=_FOLDS_OF_CALIBRATION)
    try:
        save(estimator, args.model, extra=extra)
    except (TypeError, ValueError) as error:
        raise CommandError(error) from error


def fit_outcome(args, estimator, lines, seconds):
    """The report of a fit whose model is written."""
    converged = vars(machine_of(estimator)).get("converged_", True)
    lines = [*lines, ("time", f"{seconds:.3g} s"), ("written", args.model)]
    if not converged:
        tell(
            "maxent fit: the tolerance was not reached; the model is written all the "
            "same"
        )
    report = "" if args.quiet else aligned(lines)
    return Outcome(report, 0 if converged else 1, args.model)
