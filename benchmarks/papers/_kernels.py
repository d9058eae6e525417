"""Kernel machines: SVM and MED rows of the paper's tables.

Machines compared, all two-class, all with a free bias:

    SVM              scikit-learn's SVC, penalty C
    MED, c           exponential margin prior at level 1 and rate c, every multiplier
                     below c: the machine of Jaakkola, Meila & Jebara (1999), Theorem 2
    MED, sharp 10    the default of MEDClassifier: multipliers below C, sharpness 10

and kernels: linear; cubic (1 + <x, x'>)^3; Gaussian exp(-|x - x'|^2 / (2 sigma^2)) with
sigma = 0.3 as in the tables of the paper; and Gaussian with a width that is chosen.

The paper states neither C nor c, nor how its features were scaled, on which the meaning
of sigma = 0.3 depends. Here features are standardised by the training part; the kernel
with sigma = 0.3 is run on features of range [0, 1] in the training part as well. C, c
and the chosen width come from five-fold cross-validation on the training part of each
split; ties go to the smoother machine.
"""

import warnings

import numpy as np
from _experiment import (
    PENALTIES,
    Entry,
    chosen_by_folds,
    difference,
    markdown,
    mean_and_error,
    named,
    prepared,
)

RATES = (1.5, 3.0, 10.0, 100.0, 1000.0)
WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0)  # gamma = 1 / (2 sigma^2)
SIGMA = 0.3
MACHINES = ("SVM", "MED, c", "MED, sharp 10")
_NARROW = {"kernel": "rbf", "gamma": 1.0 / (2.0 * SIGMA**2)}
KERNELS = {
    "linear": {"kernel": "linear"},
    "cubic": {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0},
    "Gaussian 0.3": _NARROW,
    "Gaussian 0.3, unit range": _NARROW,
    "Gaussian, chosen": {"kernel": "rbf"},
}


def estimator_and_grid(machine, kernel):
    """Estimator with its kernel, and its candidates, smoothest first."""
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    fixed = KERNELS[kernel]
    if machine == "SVM":
        estimator = SVC(**fixed, tol=1e-4)
        candidates = [{"C": [C]} for C in PENALTIES]
    elif machine == "MED, c":
        estimator = MEDClassifier(**fixed, solver="smo", tol=1e-4)
        candidates = [{"C": [c], "sharpness": [c]} for c in RATES]
    else:
        estimator = MEDClassifier(**fixed, sharpness=10.0, solver="smo", tol=1e-4)
        candidates = [{"C": [C]} for C in PENALTIES]
    if fixed["kernel"] == "rbf" and "gamma" not in fixed:
        candidates = [{**one, "gamma": [g]} for one in candidates for g in WIDTHS]
    return estimator, candidates


def fit_and_count(experiment, machine, kernel, train, seed):
    """(training errors, test errors, chosen, converged) of one machine on one split."""
    from sklearn.exceptions import ConvergenceWarning

    X, y = prepared(experiment.X, train, "unit range" in kernel), experiment.y
    with warnings.catch_warnings():
        # candidates may fail; whether the machine chosen did is counted
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, chosen = chosen_by_folds(
            *estimator_and_grid(machine, kernel), X[train], y[train], seed
        )
    wrong = model.predict(X) != y
    fine = getattr(model, "converged_", getattr(model, "fit_status_", 1) == 0)
    return wrong[train].sum(), wrong[~train].sum(), chosen, bool(fine)


def run(experiment, splits, seed):
    """Errors of every machine on every split: (entries, entries of the fixed split)."""
    entries, fixed = (
        [
            Entry(m, k, printed=experiment.printed.get(k) if m == "SVM" else None)
            for k in KERNELS
            for m in MACHINES
        ]
        for _ in range(2)
    )
    masks = experiment.masks(splits, seed)
    jobs = [(entries, mask, number) for number, mask in enumerate(masks)]
    if experiment.fixed_split is not None:
        jobs.append((fixed, experiment.fixed_split, seed))
    for done, (group, mask, fold_seed) in enumerate(jobs, 1):
        for entry in group:
            entry.record(
                *fit_and_count(experiment, entry.machine, entry.kernel, mask, fold_seed)
            )
        print(f"\r{done} of {len(jobs)} splits", end="", flush=True)
    print()
    return entries, fixed if experiment.fixed_split is not None else []


# -- what is written ---------------------------------------------------------------
def usual(chosen):
    """Most frequent hyper-parameters, as text."""
    texts = [named(one) for one in chosen]
    return max(sorted(set(texts)), key=texts.count)


def table(experiment, entries, fixed):
    """Markdown table, with the printed cells beside ours."""
    n_train, n_test = experiment.sizes()
    head = [
        "machine",
        "kernel",
        f"training errors of {n_train}",
        f"test errors of {n_test}",
        "sd of one split",
        *([f"first {n_train} rows train"] if fixed else []),
        "printed",
        "splits with test <= printed",
        "chosen most often",
    ]
    rows = []
    for k, entry in enumerate(entries):
        once = [f"{fixed[k].train[0]} / {fixed[k].test[0]}"] if fixed else []
        rows.append(
            [
                entry.machine,
                entry.kernel,
                mean_and_error(entry.train),
                mean_and_error(entry.test),
                f"{np.std(entry.test, ddof=1):.1f}",
                *once,
                *entry.printed_cells(),
                usual(entry.chosen),
            ]
        )
    return markdown(head, rows)


def paired(entries):
    """Lines with the paired differences MED - SVM in test errors."""
    lines = []
    for kernel in KERNELS:
        errors = {e.machine: e.test for e in entries if e.kernel == kernel}
        for machine in MACHINES[1:]:
            text = difference(errors[machine], errors["SVM"])
            lines.append(f"- {kernel}: {machine} minus SVM {text}")
    return lines


def draw(experiment, entries, path):
    """Box plots of the errors over the splits, with the printed cells."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    colours = ("tab:blue", "tab:orange", "tab:green")
    panels = figure.subplots(1, 2)
    for column, (panel, which) in enumerate(zip(panels, ("train", "test"))):
        for m, machine in enumerate(MACHINES):
            boxes = panel.boxplot(
                [getattr(e, which) for e in entries if e.machine == machine],
                positions=np.arange(len(KERNELS)) + 0.26 * (m - 1),
                widths=0.22,
                patch_artist=True,
                showmeans=True,
                meanprops={"marker": "_", "markeredgecolor": "k", "markersize": 9},
                medianprops={"color": "0.5"},
                flierprops={"markersize": 3},
                manage_ticks=False,
            )
            for box in boxes["boxes"]:
                box.set(facecolor=colours[m], alpha=0.6)
        for k, kernel in enumerate(KERNELS):
            if kernel in experiment.printed:
                panel.plot(k - 0.26, experiment.printed[kernel][column], "kD", ms=6)
        names = [name.replace(" ", "\n", 1) for name in KERNELS]
        panel.set_xticks(range(len(KERNELS)), names, fontsize=9)
        panel.set(title=f"{'training' if column == 0 else 'test'} errors")
        panel.set(ylabel="errors", ylim=(-0.5, None))
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(axis="y", alpha=0.3)
    handles = [Patch(facecolor=c, alpha=0.6) for c in colours]
    handles.append(Line2D([], [], color="k", marker="D", linestyle=""))
    handles.append(Line2D([], [], color="k", linewidth=1.5))
    labels = [*MACHINES, "printed (SVM, one split)", "mean (grey: median)"]
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    figure.suptitle(experiment.title, fontsize=11)
    figure.savefig(path, dpi=150)
