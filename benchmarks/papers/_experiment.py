"""Many random splits of a small data set: machines, errors, a table and a figure.

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

import argparse
import csv
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
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


@dataclass
class Entry:
    """Results of one machine with one kernel.

    Attributes
    ----------
    machine, kernel : str
    train, test : list of int
        Errors, one a split.
    chosen : list of dict
        Hyper-parameters, one a split.
    unconverged : int
        Final fits that did not meet their tolerance.
    """

    machine: str
    kernel: str
    train: list = field(default_factory=list)
    test: list = field(default_factory=list)
    chosen: list = field(default_factory=list)
    unconverged: int = 0


@dataclass
class Experiment:
    """Data, splits and what was printed.

    Attributes
    ----------
    title : str
    X : ndarray (n, d)
        May hold NaN: replaced by the median of the training part.
    y : ndarray (n,)
    split : callable rng -> boolean mask of the training rows
    fixed_split : ndarray or None
        Mask of a split to show besides the random ones.
    printed : dict
        kernel -> (training errors, test errors) of the SVM row in the paper.
    notes : list of str
        Lines below the table.
    gaussian : dict
        "ML" and "MED" -> (training errors, test errors) of the Gaussian rows.
    """

    title: str
    X: np.ndarray
    y: np.ndarray
    split: object
    printed: dict
    notes: list
    fixed_split: np.ndarray | None = None
    gaussian: dict = field(default_factory=dict)


def arguments(description, splits):
    """Parsed options of a paper script."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", help="folder with the CSV (default: bundled data)")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--splits", type=int, default=splits, help="random splits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--rows", nargs="*", default=["svm", "gaussian"], choices=["svm", "gaussian"]
    )
    return parser.parse_args()


def read_csv(folder, name):
    """Rows of a CSV with a header, as dicts."""
    path = Path(folder) / name
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


# -- machines ----------------------------------------------------------------------
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


def prepared(X, train, unit_range=False):
    """Features with gaps filled, and scaled; learned from the training part alone."""
    X = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
    if unit_range:
        return (X - X[train].min(axis=0)) / np.ptp(X[train], axis=0)
    return (X - X[train].mean(axis=0)) / X[train].std(axis=0)


def fit_and_count(experiment, machine, kernel, train, seed):
    """(training errors, test errors, chosen, converged) of one machine on one split."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    X, y = prepared(experiment.X, train, "unit range" in kernel), experiment.y
    estimator, candidates = estimator_and_grid(machine, kernel)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(estimator, candidates, cv=folds, error_score="raise")
    with warnings.catch_warnings():
        # candidates may fail; whether the machine chosen did is counted below
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X[train], y[train])
    model = search.best_estimator_
    wrong = model.predict(X) != y
    fine = getattr(model, "converged_", getattr(model, "fit_status_", 1) == 0)
    return (
        int(wrong[train].sum()),
        int(wrong[~train].sum()),
        search.best_params_,
        bool(fine),
    )


def run(experiment, splits, seed):
    """Errors of every machine on every split: (entries, entries of the fixed split)."""
    entries = [Entry(m, k) for k in KERNELS for m in MACHINES]
    fixed = [Entry(m, k) for k in KERNELS for m in MACHINES]
    masks = [
        experiment.split(np.random.default_rng([seed, number]))
        for number in range(splits)
    ]
    jobs = [(entries, mask, number) for number, mask in enumerate(masks)]
    if experiment.fixed_split is not None:
        jobs.append((fixed, experiment.fixed_split, seed))
    for done, (group, mask, fold_seed) in enumerate(jobs, 1):
        for entry in group:
            train, test, chosen, fine = fit_and_count(
                experiment, entry.machine, entry.kernel, mask, fold_seed
            )
            entry.train.append(train)
            entry.test.append(test)
            entry.chosen.append(chosen)
            entry.unconverged += not fine
        print(f"\r{done} of {len(jobs)} splits", end="", flush=True)
    print()
    return entries, fixed if experiment.fixed_split is not None else []


# -- what is written ---------------------------------------------------------------
def mean_and_error(values):
    """ "mean +- standard error of the mean"."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.2f} ± {error:.2f}"


def named(chosen):
    """Hyper-parameters of one split as text, under the names of the docstring."""
    rate = "sharpness" in chosen
    return ", ".join(
        f"{'c' if rate and key == 'C' else key}={value:g}"
        for key, value in chosen.items()
        if key != "sharpness"
    )


def usual(chosen):
    """Most frequent hyper-parameters, as text."""
    texts = [named(one) for one in chosen]
    return max(sorted(set(texts)), key=texts.count)


def table(experiment, entries, fixed):
    """Markdown table, with the printed cells beside ours."""
    sizes = experiment.split(np.random.default_rng(0))
    head = [
        "machine",
        "kernel",
        f"training errors of {int(sizes.sum())}",
        f"test errors of {int((~sizes).sum())}",
        "sd of one split",
        "printed",
        "splits with test <= printed",
        "chosen most often",
    ]
    if fixed:
        head.insert(5, f"first {int(sizes.sum())} rows train")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for k, entry in enumerate(entries):
        cells = [
            entry.machine,
            entry.kernel,
            mean_and_error(entry.train),
            mean_and_error(entry.test),
            f"{np.std(entry.test, ddof=1):.1f}",
        ]
        if fixed:
            cells.append(f"{fixed[k].train[0]} / {fixed[k].test[0]}")
        printed = experiment.printed.get(entry.kernel)
        if entry.machine == "SVM" and printed is not None:
            share = 100.0 * np.mean(np.asarray(entry.test) <= printed[1])
            cells += [f"{printed[0]} / {printed[1]}", f"{share:.0f} %"]
        else:
            cells += ["", ""]
        lines.append("| " + " | ".join([*cells, usual(entry.chosen)]) + " |")
    return lines


def paired(entries):
    """Lines with the paired differences MED - SVM in test errors."""
    lines = []
    for kernel in KERNELS:
        errors = {e.machine: np.array(e.test) for e in entries if e.kernel == kernel}
        for machine in MACHINES[1:]:
            difference = errors[machine] - errors["SVM"]
            lines.append(
                f"- {kernel}: {machine} minus SVM {mean_and_error(difference)} test "
                f"errors; fewer on {100 * np.mean(difference < 0):.0f} %, more on "
                f"{100 * np.mean(difference > 0):.0f} % of the splits"
            )
    return lines


def write_splits(entries, path):
    """Errors and hyper-parameters of every split as a CSV."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["split", "machine", "kernel", "train", "test", "chosen"])
        for e in entries:
            for number, row in enumerate(zip(e.train, e.test, map(named, e.chosen))):
                writer.writerow([number, e.machine, e.kernel, *row])


def write(experiment, entries, fixed, options, name):
    """NAME.md, NAME.csv and NAME.png in the output folder; prints the table."""
    import sklearn

    import maxent

    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    unconverged = sum(e.unconverged for e in entries + fixed)
    text = "\n".join(
        [
            f"# {experiment.title}",
            "",
            f"{options.splits} random splits, seed {options.seed}; mean ± standard "
            f"error of the mean. maxent {maxent.__version__}, scikit-learn "
            f"{sklearn.__version__}.",
            "",
            *table(experiment, entries, fixed),
            "",
            "Paired on the same splits:",
            "",
            *paired(entries),
            "",
            *experiment.notes,
            "",
            f"Final fits that did not meet their tolerance: {unconverged}.",
            "",
        ]
    )
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    write_splits(entries, out / f"{name}.csv")
    draw(experiment, entries, out / f"{name}.png")
    print(f"written: {out / name}.md, .csv and .png")


def run_and_write(experiment, options, name):
    """The rows of the table that were asked for."""
    if "svm" in options.rows:
        entries, fixed = run(experiment, options.splits, options.seed)
        write(experiment, entries, fixed, options, name)
    if "gaussian" in options.rows:
        from _gaussians import run_gaussians, write_gaussians

        results = run_gaussians(experiment, options.splits, options.seed)
        write_gaussians(experiment, results, options, name)


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
