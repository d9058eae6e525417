"""Gaussian rows of the paper's tables: maximum likelihood against MED, many splits.

Models, two-class, one Gaussian a class:

    ML            maximum-likelihood means and covariances; the bias is the log of the
                  classes' shares, or makes the fewest training errors
    MED           MEDGaussianClassifier with its defaults, C = 3 and level at the 25th
                  percentile; the bias is the dual's, or makes the fewest errors
    MED, chosen   C and percentile by five-fold cross-validation on the training part
                  of each split, with the bias of fewest training errors; ties go to
                  the smaller C, then percentile

The paper states neither C nor the percentile. The defaults of the estimator were set
when results on these data were known, so only the last row is free of that; the
table of the whole grid shows how little there is to choose. Picking its best cell
would be choosing on test data.

Boundaries of Gaussians do not depend on the scale of the features.
"""

import warnings

import numpy as np
from _experiment import (
    Entry,
    chosen_by_folds,
    difference,
    markdown,
    mean_and_error,
    prepared,
)

RATES = (1.0, 3.0, 10.0)
PERCENTILES = (5, 25, 50)
SHARES, DUAL, FEWEST = "class shares", "dual", "fewest errors"
BIAS = {DUAL: "flat", FEWEST: "train_error"}
ROWS = (
    ("ML", SHARES),
    ("ML", FEWEST),
    ("MED", DUAL),
    ("MED", FEWEST),
    ("MED, chosen", FEWEST),
)


def log_ratio(X, y, train):
    """Log-likelihood ratio of every row under maximum-likelihood Gaussians."""
    from maxent.families import Gaussian

    classes = [Gaussian.fit(X[train & (y == k)]) for k in (0, 1)]
    return classes[1].log_prob(X) - classes[0].log_prob(X)


def fewest_errors(ratio, y):
    """Bias b for which the signs of ratio + b make the fewest errors.

    Of several intervals of biases the widest one is taken, and its middle.
    """
    order = np.argsort(ratio)
    ordered, positive = ratio[order], y[order] == 1
    # errors if the first k rows are taken for class 0
    errors = np.concatenate([[0], np.cumsum(positive)]) + np.concatenate(
        [np.cumsum(~positive[::-1])[::-1], [0]]
    )
    gaps = np.concatenate([[0.0], np.diff(ordered), [0.0]])
    gaps[1:-1][np.diff(ordered) == 0] = -1.0  # equal ratios stay together
    best = np.flatnonzero((errors == errors[gaps >= 0].min()) & (gaps >= 0))
    k = best[np.argmax(gaps[best])]
    if k in (0, len(ordered)):
        return -ordered[0] + 1.0 if k == 0 else -ordered[-1] - 1.0
    return -0.5 * (ordered[k - 1] + ordered[k])


def likelihood_errors(X, y, train, bias):
    """Wrong rows (n,) of maximum-likelihood Gaussians."""
    ratio = log_ratio(X, y, train)
    if bias == FEWEST:
        b = fewest_errors(ratio[train], y[train])
    else:
        b = np.log(np.mean(y[train]) / (1 - np.mean(y[train])))
    return (ratio + b > 0) != (y == 1)


def med(C=3.0, percentile=25, bias=BIAS[FEWEST]):
    """The classifier."""
    from maxent import MEDGaussianClassifier

    return MEDGaussianClassifier(C, percentile=percentile, bias=bias)


def chosen_model(X, y, seed):
    """(fitted model, its parameters) by cross-validation on these rows."""
    # in the order of the ties
    candidates = [{"C": [C], "percentile": [p]} for C in RATES for p in PERCENTILES]
    return chosen_by_folds(med(), candidates, X, y, seed)


def one_split(X, y, train, seed):
    """Errors of every row of the table and of the grid on one split.

    Returns
    -------
    rows : list of tuple (train, test, chosen, converged)
    grid : ndarray (len(RATES), len(PERCENTILES), 2)
        Training and test errors with the bias of fewest errors.
    """
    X = prepared(X, train)
    rows = []
    for machine, bias in ROWS:
        chosen, fine = {}, True
        if machine == "ML":
            wrong = likelihood_errors(X, y, train, bias)
        else:
            if machine == "MED":
                model = med(bias=BIAS[bias]).fit(X[train], y[train])
            else:
                model, chosen = chosen_model(X[train], y[train], seed)
            wrong, fine = model.predict(X) != y, model.converged_
        rows.append((int(wrong[train].sum()), int(wrong[~train].sum()), chosen, fine))
    grid = np.empty((len(RATES), len(PERCENTILES), 2), dtype=int)
    for i, C in enumerate(RATES):
        for j, percentile in enumerate(PERCENTILES):
            wrong = med(C, percentile).fit(X[train], y[train]).predict(X) != y
            grid[i, j] = wrong[train].sum(), wrong[~train].sum()
    return rows, grid


def entries_of(experiment):
    """Rows of the table, empty."""
    return [Entry(*n, printed=experiment.gaussian[n[0][:3].rstrip(",")]) for n in ROWS]


def run(experiment, splits, seed):
    """(entries, grids (splits, rates, percentiles, 2), {title: entries} of fixed)."""
    entries, grids, fixed = entries_of(experiment), [], {}
    with warnings.catch_warnings():
        # classes that are apart before training: said by the model, counted nowhere
        warnings.filterwarnings("ignore", message=".*every margin is above the level")
        # a score that is constant in a class within a fold of the cross-validation
        warnings.filterwarnings("ignore", message=".*Here prior='weak' was used")
        for number, train in enumerate(experiment.masks(splits, seed)):
            rows, grid = one_split(experiment.X, experiment.y, train, number)
            grids.append(grid)
            _record(entries, rows)
            print(f"\r{number + 1} of {splits} splits", end="", flush=True)
        print()
        for title, (X, y, train) in fixed_splits(experiment).items():
            fixed[title] = entries_of(experiment)
            _record(fixed[title], one_split(X, y, train, seed)[0])
    return entries, np.array(grids), fixed


def _record(entries, rows):
    for entry, row in zip(entries, rows, strict=True):
        entry.record(*row)


def fixed_splits(experiment):
    """Splits that need no luck: {title: (X, y, training mask)}."""
    train = experiment.fixed_split
    if train is None:
        return {}
    X, y = experiment.X, experiment.y
    out = {f"first {int(train.sum())} rows": (X, y, train)}
    whole = ~np.isnan(X).any(axis=1)
    if not whole.all():
        first = np.arange(int(whole.sum())) < train.sum()
        title = f"first {int(train.sum())} complete rows, the others dropped"
        out[title] = (X[whole], y[whole], first)
    return out


# -- what is written ---------------------------------------------------------------
def table(experiment, entries):
    """Markdown table of the random splits, with the printed cells beside ours."""
    n_train, n_test = experiment.sizes()
    head = [
        "Gaussians",
        "bias",
        f"training errors of {n_train}",
        f"test errors of {n_test}",
        "sd of one split",
        "printed",
        "splits with test <= printed",
    ]
    rows = [
        [
            entry.machine,
            entry.kernel,
            mean_and_error(entry.train),
            mean_and_error(entry.test),
            f"{np.std(entry.test, ddof=1):.1f}",
            *entry.printed_cells(),
        ]
        for entry in entries
    ]
    return markdown(head, rows)


def paired(entries):
    """Lines with differences to both rows of maximum likelihood, split by split."""
    lines = []
    for base in entries[:2]:
        for entry in entries[2:]:
            train = mean_and_error(np.subtract(entry.train, base.train))
            lines.append(
                f"- {entry.machine} ({entry.kernel}) minus ML ({base.kernel}): {train} "
                f"training errors, {difference(entry.test, base.test)}"
            )
    return lines


def grid_table(grids):
    """Markdown table: mean training / test errors over the grid."""
    head = ["C", *(f"{p}th percentile" for p in PERCENTILES)]
    rows = [
        [f"{C:g}", *(f"{a:.2f} / {b:.2f}" for a, b in row)]
        for C, row in zip(RATES, grids.mean(axis=0), strict=True)
    ]
    return markdown(head, rows)


def fixed_lines(fixed):
    """Lines with training / test errors of the fixed splits."""
    lines = []
    for title, entries in fixed.items():
        cells = ", ".join(
            f"{e.machine} ({e.kernel}) {e.train[0]} / {e.test[0]}" for e in entries
        )
        lines.append(f"- {title}: {cells}")
    return lines


def draw(experiment, entries, path):
    """Histograms of the differences to maximum likelihood, train and test."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    base, others = entries[1], entries[2:]
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, which in zip(panels, ("train", "test")):
        zero = np.asarray(getattr(base, which))
        steps = [np.asarray(getattr(e, which)) - zero for e in others]
        values = np.arange(min(map(np.min, steps)), max(map(np.max, steps)) + 1)
        for k, (entry, step) in enumerate(zip(others, steps)):
            counts = [(step == v).sum() for v in values]
            label = f"{entry.machine} ({entry.kernel}), mean {step.mean():+.2f}"
            panel.bar(values + 0.27 * (k - 1), counts, 0.25, label=label)
        panel.axvline(0, color="k", lw=0.8)
        title = "training" if which == "train" else "test"
        panel.set(xlabel=f"{title} errors minus those of ML", ylabel="splits")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
        panel.legend(fontsize=8, frameon=False, **place)
    figure.suptitle(experiment.title, fontsize=11)
    figure.savefig(path, dpi=150)
