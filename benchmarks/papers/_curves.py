"""ROC curves of the paper's Gaussians beside linear and Gaussian kernel machines.

The section on the Gaussians shows ROC curves without numbers. Here: areas under the
curves of the test rows, on the same splits as the tables, and a picture of the first
one. The bias of a model does not matter to its curve. Penalties and the width are
chosen as in `_kernels`.
"""

import warnings

import numpy as np
from _experiment import chosen_by_folds, markdown, mean_and_error, prepared
from _gaussians import log_ratio, med
from _kernels import estimator_and_grid

LIKELIHOOD, MED = "ML Gaussians", "MED Gaussians"
MACHINES = {"SVM, linear": "linear", "SVM, Gaussian, chosen": "Gaussian, chosen"}


def scores_of(experiment, train, seed):
    """{model: scores (n,) of every row}, larger for class 1."""
    X, y = prepared(experiment.X, train), experiment.y
    scores = {LIKELIHOOD: log_ratio(X, y, train)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*every margin is above the level")
        scores[MED] = med().fit(X[train], y[train]).decision_function(X)
    for name, kernel in MACHINES.items():
        model, _ = chosen_by_folds(
            *estimator_and_grid("SVM", kernel), X[train], y[train], seed
        )
        scores[name] = model.decision_function(X)
    return scores


def run(experiment, splits, seed):
    """({model: areas on the test rows}, {model: same, training}, standard errors,
    curves of the first split)."""
    from maxent.displays import ROCComparisonDisplay
    from maxent.displays.roc import compare_scores

    areas, training, errors, first = {}, {}, [], None
    for number, train in enumerate(experiment.masks(splits, seed)):
        scores, y = scores_of(experiment, train, number), experiment.y
        display, own = (
            ROCComparisonDisplay(
                *compare_scores(y[part], {n: s[part] for n, s in scores.items()}),
                list(scores),
            )
            for part in (~train, train)
        )
        for k, name in enumerate(scores):
            areas.setdefault(name, []).append(display.auc[k])
            training.setdefault(name, []).append(own.auc[k])
        errors.append([display.difference(name, LIKELIHOOD)[1] for name in scores])
        first = first or display
        print(f"\r{number + 1} of {splits} splits", end="", flush=True)
    print()
    return areas, training, np.mean(errors, axis=0), first


def table(areas, training, errors):
    """Markdown table: areas, and paired differences to maximum likelihood."""
    head = [
        "model",
        "area, training",
        "area, test",
        "minus ML",
        "splits above ML",
        "standard error of the difference on one test set",
    ]
    rows = []
    for (name, values), error in zip(areas.items(), errors, strict=True):
        step = np.subtract(values, areas[LIKELIHOOD])
        compared = (
            ["", "", ""]
            if name == LIKELIHOOD
            else [
                mean_and_error(step, 4),
                f"{100 * np.mean(step > 0):.0f} %",
                f"{error:.4f}",
            ]
        )
        cells = [mean_and_error(training[name], 4), mean_and_error(values, 4)]
        rows.append([name, *cells, *compared])
    return markdown(head, rows)


def draw(experiment, display, path):
    """ROC curves of the first split, the whole and the corner of few false alarms."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    display.plot(axes[0])
    display.plot(axes[1], max_false_positive=0.2)
    figure.suptitle(f"{experiment.title}: test rows of the first split", fontsize=11)
    figure.savefig(path, dpi=150)
