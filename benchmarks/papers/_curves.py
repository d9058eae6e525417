"""ROC curves of the paper's Gaussians beside linear and Gaussian kernel machines.

The section on the Gaussians shows ROC curves without numbers. Here: areas under the
curves of the test rows, on the same splits as the tables, and a picture of the first
one. The bias of a model does not matter to its curve. Penalties and the width are
chosen as in `_kernels`.
"""

import numpy as np
from _experiment import chosen_by_folds, prepared
from _gaussians import log_ratio, med
from _kernels import estimator_and_grid
from _results import mean_and_error, run, table

LIKELIHOOD, MED = "ML Gaussians", "MED Gaussians"
KEYS = ("training", "test", "error")
MACHINES = {"SVM, linear": "linear", "SVM, Gaussian, chosen": "Gaussian, chosen"}


def scores_of(experiment, train, seed):
    """{model: scores (n,) of every row}, larger for class 1."""
    X, y = prepared(experiment.X, train), experiment.y
    scores = {
        LIKELIHOOD: log_ratio(X, y, train),
        MED: med().fit(X[train], y[train]).decision_function(X),
    }
    for name, kernel in MACHINES.items():
        model, _ = chosen_by_folds(
            *estimator_and_grid("SVM", kernel), X[train], y[train], seed
        )
        scores[name] = model.decision_function(X)
    return scores


def curves(experiment, options, name):
    """Areas of every split; table of them, and a picture of the first split."""
    from maxent.displays import ROCComparisonDisplay
    from maxent.displays.roc import compare_scores

    def work(split):
        _, y, train = experiment.rows_of(split, options.seed)
        scores = scores_of(experiment, train, split)
        test, own = (
            ROCComparisonDisplay(
                *compare_scores(y[part], {n: s[part] for n, s in scores.items()}),
                list(scores),
            )
            for part in (~train, train)
        )
        if split == 0:
            draw(experiment, test, f"{options.out}/{name}_curves.png")
        return [
            {
                "model": model,
                "training": own.auc[k],
                "test": test.auc[k],
                "error": test.difference(model, LIKELIHOOD)[1],
            }
            for k, model in enumerate(scores)
        ]

    units = [{"split": k} for k in range(options.draws)]
    rows = run(f"{name}_curves", options, units, work)
    columns = {
        model: {k: np.array([r[k] for r in rows if r["model"] == model]) for k in KEYS}
        for model in dict.fromkeys(r["model"] for r in rows)
    }
    lines = []
    for model, own in columns.items():
        step = own["test"] - columns[LIKELIHOOD]["test"]
        compared = (
            mean_and_error(step, 4),
            f"{100 * np.mean(step > 0):.0f} %",
            f"{own['error'].mean():.4f}",
        )
        areas = mean_and_error(own["training"], 4), mean_and_error(own["test"], 4)
        lines.append([model, *areas, *(compared if model != LIKELIHOOD else ())])
    head = ["model", "area, training", "area, test", "minus maximum likelihood"]
    head += ["splits above it", "standard error on one test set"]
    table(f"{name}_curves", options, head, lines)


def draw(experiment, display, path):
    """ROC curves of the first split, the whole and the corner of few false alarms."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    display.plot(axes[0])
    display.plot(axes[1], max_false_positive=0.2)
    figure.suptitle(f"{experiment.title}: test rows of the first split", fontsize=11)
    figure.savefig(path, dpi=150)
