"""``maxent compare``: several estimators on a table, by the same folds."""

import argparse
import math
import time
import warnings

import numpy as np

from maxent._commands import fit, reading
from maxent._commands.catalog import BASELINES, SCORINGS, TABLES
from maxent._commands.console import tell, told_once
from maxent._commands.measures import Estimate, mean_of, mean_roc_auc, roc_auc
from maxent._commands.outcome import CommandError, Outcome, listed, one_line
from maxent._commands.reports import as_json, estimated, table
from maxent._commands.training import folds_of

__all__ = ["compare"]

# Compared where nobody says what: of numbers, and where columns are categories.
_OF_NUMBERS = ("classifier", "gaussian", "logistic", "selector")
_OF_CATEGORIES = ("bayesnet", "tree", "chowliu")
_REGRESSORS = ("regressor", "regression_selector")
_BEST = ("r2", "accuracy", "balanced_accuracy", "roc_auc")  # where more is better
_OF_REGRESSION = ("rmse", "mae", "r2")
_FEW_CLASSES = 20  # with more, generative models of every class are left out by default


def compare(args):
    """Cross-validate several estimators by the same folds."""
    if reading.holds_sequences(args):
        raise CommandError(
            f"{args.data} holds sequences, and compare is for tables; maxent fit "
            f"{args.data} --cv {args.cv} estimates the error of one estimator"
        )
    reading.refuse_sequence_options(args)
    args.given = {}
    _check_names(args)
    with told_once("compare"):
        numbers = _is_regression(args)
        names, folds, rows = _names(args, numbers), None, []
        scoring = args.scoring or ("rmse" if numbers else "accuracy")
        if (scoring in _OF_REGRESSION) != numbers:
            kind = "numbers" if numbers else "classes"
            fits = [s for s in SCORINGS if (s in _OF_REGRESSION) == numbers]
            raise CommandError(
                f"--scoring {scoring} does not apply: {args.data} has labels "
                f"that are {kind}; use {listed(fits)}"
            )
        for name in names:
            candidate = _Candidate(args, name, numbers)
            if folds is None:
                args.estimator = "compared"
                folds = folds_of(args, candidate.y)
            rows.append(candidate.scored(folds, scoring))
    return Outcome(_report(args, rows, scoring, len(candidate.y)))


def _check_names(args):
    known = [*TABLES, *BASELINES]
    for name in args.estimators or ():
        if name not in known:
            raise CommandError(
                f"--estimators: {name!r} is not known; use {', '.join(known)}"
            )
        if name in TABLES and TABLES[name].labels not in ("classes", "numbers"):
            raise CommandError(
                f"--estimators: {name} takes no labels, or lacks some, so no score "
                "compares it; fit it, and use maxent evaluate"
            )
    kinds = {TABLES[name].labels for name in args.estimators or () if name in TABLES}
    if len(kinds) > 1:
        raise CommandError(
            "--estimators: some are for classes and some for numbers, which no score "
            "compares; name those of one kind"
        )


def _is_regression(args):
    """True if labels are numbers: by the estimators, the score, or the labels."""
    for name in args.estimators or ():
        if name in TABLES:
            return TABLES[name].labels == "numbers"
    if args.scoring is not None:
        return args.scoring in _OF_REGRESSION
    own = _arguments(args, "regressor")
    try:
        _, y, _ = fit.read(own, TABLES["regressor"])
    except CommandError:
        return False  # text, or a fault that the first candidate tells
    return bool(np.any(y != np.trunc(y)))


def _names(args, numbers):
    """Names of what is compared."""
    if args.estimators:
        return [*dict.fromkeys(args.estimators)]
    if numbers:
        return [*_REGRESSORS, *BASELINES]
    table, y, _ = fit.read(_arguments(args, "tree"), TABLES["tree"])
    text = table.X.dtype == object and any(
        any(isinstance(cell, str) for cell in column.tolist()) for column in table.X.T
    )
    few = not text and not args.bins and _has_few_values(table.X)
    categories = _OF_CATEGORIES if text or few or args.bins else ()
    if table.X.shape[1] < 2:
        categories = [name for name in categories if name == "bayesnet"]
    n_classes = len(np.unique(y))
    most = {"gaussian": _FEW_CLASSES, "selector": 2}
    ours = [name for name in _OF_NUMBERS if n_classes <= most.get(name, n_classes)]
    return [*ours, *categories, *BASELINES]


def _has_few_values(X):
    """True if columns of numbers have ten different whole ones at most."""
    if not isinstance(X, np.ndarray) or X.dtype == object:
        return False
    return all(len(np.unique(c)) <= 10 and np.all(c == np.trunc(c)) for c in X.T)


def _arguments(args, name):
    """The arguments as ``maxent fit --estimator NAME`` has them."""
    own = argparse.Namespace(**vars(args))
    own.command, own.estimator = "fit", name
    spec = TABLES[name]
    if spec.categories:
        own.standardize = own.impute = False
    else:
        own.bins = None
    return own


class _Candidate:
    """An estimator with what is learnt of its columns, and the rows."""

    def __init__(self, args, name, numbers):
        from sklearn.pipeline import Pipeline

        self.args, self.name = args, name
        stand_in = name
        if name in BASELINES:
            stand_in = "regressor" if numbers else "classifier"
        own = _arguments(args, stand_in)
        spec = TABLES[stand_in]
        estimator = fit.made(own, spec)
        table, self.y, _ = fit.read(own, spec)
        weights = None
        if "weights" in table.beside:
            weights = np.array(table.beside["weights"][0].cells)
        prepared = fit.Prepared(own, spec, estimator, table, weights)
        self.X = prepared.raw
        if name in BASELINES:
            estimator = _baseline(name, numbers, args.seed, self.X)
        steps = [*prepared.steps, ("machine", estimator)]
        self.pipeline, self.params = Pipeline(steps), {}
        if weights is not None:
            of_steps = [*(prepared.weights for _ in prepared.steps), weights]
            machine = "machine"
            if hasattr(estimator, "steps"):  # a baseline behind its own scaler
                machine = f"machine__{estimator.steps[-1][0]}"
            keys = [*(key for key, _ in prepared.steps), machine]
            self.params = {f"{k}__sample_weight": w for k, w in zip(keys, of_steps)}

    def scored(self, folds, scoring):
        """Scores and times of all folds, or why there are none."""
        from sklearn.base import clone

        name = SCORINGS[scoring]
        sign = -1.0 if name.startswith("neg_") else 1.0
        scores, seconds, fault = [], [], ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for train, test in folds:
                machine = clone(self.pipeline)
                params = {k: w[train] for k, w in self.params.items()}
                start = time.perf_counter()
                try:
                    machine.fit(self.X[train], self.y[train], **params)
                    seconds.append(time.perf_counter() - start)
                    score = _score(name, machine, self.X[test], self.y[test])
                except (ValueError, AttributeError, TypeError, MemoryError) as error:
                    fault = _fault(error)
                    break
                scores.append(sign * float(score))
        if not fault and not all(map(math.isfinite, scores)):
            fault = "the score of a fold is not finite"
        if fault:
            tell(f"maxent compare: {self.name}: no {scoring}: {fault}")
            return {"name": self.name, "scores": None, "seconds": None, "fault": fault}
        return {"name": self.name, "scores": scores, "seconds": seconds}


def _score(name, machine, X, y):
    """Score of a fitted pipeline; ROC AUC by decision values where there are any."""
    if name != "roc_auc":
        from sklearn.metrics import get_scorer

        return get_scorer(name)(machine, X, y)
    decides = hasattr(machine, "decision_function")
    method = "decision_function" if decides else "predict_proba"
    found = getattr(machine, method)(X)
    codes = np.searchsorted(machine.classes_, y)
    if len(machine.classes_) > 2:
        return mean_roc_auc(codes, found).value
    return roc_auc(codes == 1, found if found.ndim == 1 else found[:, 1]).value


def _fault(error):
    text = one_line(error)
    if "predict_proba" in text:
        return "it defines no probabilities"
    return text[:200]


def _baseline(name, numbers, seed, X):
    """An estimator of scikit-learn, behind a scaler where it needs one."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from maxent._support.registry import resolve

    *kinds, scaled = BASELINES[name]
    path, params = kinds[numbers]
    cls = resolve(path)
    if "random_state" in cls().get_params():
        params = {**params, "random_state": seed}
    machine = cls(**params)
    if not scaled:
        return machine
    dense = isinstance(X, np.ndarray)
    return make_pipeline(StandardScaler(with_mean=dense), machine)


def _report(args, rows, scoring, n_rows):
    sign = 1.0 if scoring in _BEST else -1.0
    done = [row for row in rows if row["scores"] is not None]
    done.sort(key=lambda row: -sign * np.mean(row["scores"]))
    for row in done:
        row["score"] = mean_of(row["scores"])
        gaps = sign * (np.array(done[0]["scores"]) - row["scores"])
        row["behind"] = mean_of(gaps) if row is not done[0] else Estimate(0.0)
        row["time"] = float(np.mean(row["seconds"]))
    if args.json:
        found = [
            {
                "estimator": row["name"],
                "score": estimated(row["score"]),
                "behind_the_best": estimated(row["behind"]),
                "seconds": row["time"],
                "folds": row["scores"],
            }
            for row in done
        ]
        failed = {row["name"]: row["fault"] for row in rows if row["scores"] is None}
        contents = {"scoring": scoring, "cv": args.cv, "rows": n_rows}
        return as_json({**contents, "estimators": found, "failed": failed})
    if args.quiet:
        return ""
    lines = [
        {
            "estimator": _called(row["name"]),
            scoring: str(row["score"]),
            "behind the best": "" if row is done[0] else str(row["behind"]),
            "seconds": f"{row['time']:.3g}",
        }
        for row in done
    ]
    lines += [
        {"estimator": _called(row["name"]), scoring: "-"}
        | {"behind the best": "", "seconds": ""}
        for row in rows
        if row["scores"] is None
    ]
    better = "more is better" if sign > 0 else "less is better"
    return (
        f"{table(lines)}\n{n_rows} rows, {args.cv} folds, the same for all ({better}); "
        "± is one standard error over folds,\nof differences fold by fold. Seconds are "
        "those of a fit.\n"
    )


def _called(name):
    return f"{name} (scikit-learn)" if name in BASELINES else name
