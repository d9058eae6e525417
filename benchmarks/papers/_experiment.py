"""Many random splits of a small data set: what its models and tables share.

The rows of a table come from the modules beside this one, on the same splits:

    _kernels      support vector machines and MED with kernels
    _gaussians    one Gaussian a class, by maximum likelihood and by MED
    _others       linear discriminant, logistic regression, nearest neighbour
    _curves       areas under ROC curves of some of them

`_tables` runs what was asked for and compares all rows.
"""

import argparse
import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
ROWS = ("kernels", "gaussians", "others", "curves")


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
    printed : tuple of int or None, or None
        Training and test errors in the paper.
    """

    machine: str
    kernel: str
    train: list = field(default_factory=list)
    test: list = field(default_factory=list)
    chosen: list = field(default_factory=list)
    unconverged: int = 0
    printed: tuple | None = None

    def record(self, train, test, chosen, fine):
        """Add the results of one split."""
        self.train.append(int(train))
        self.test.append(int(test))
        self.chosen.append(chosen)
        self.unconverged += not fine

    def printed_cells(self):
        """The paper's cell, and how many splits test as low."""
        if self.printed is None:
            return ["", ""]
        share = 100.0 * np.mean(np.asarray(self.test) <= self.printed[1])
        train, test = ("-" if e is None else e for e in self.printed)
        return [f"{train} / {test}", f"{share:.0f} %"]


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
    others : dict
        model -> test errors of the other rows.
    """

    title: str
    X: np.ndarray
    y: np.ndarray
    split: object
    printed: dict
    notes: list
    fixed_split: np.ndarray | None = None
    gaussian: dict = field(default_factory=dict)
    others: dict = field(default_factory=dict)

    def masks(self, splits, seed):
        """Training rows of the random splits."""
        return [self.split(np.random.default_rng([seed, k])) for k in range(splits)]

    def sizes(self):
        """Rows that train and rows that test."""
        train = self.split(np.random.default_rng(0))
        return int(train.sum()), int((~train).sum())


def arguments(description, splits):
    """Parsed options of a paper script."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", help="folder with the CSV (default: bundled data)")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--splits", type=int, default=splits, help="random splits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS)
    return parser.parse_args()


def read_csv(folder, name):
    """Rows of a CSV with a header, as dicts."""
    path = Path(folder) / name
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def prepared(X, train, unit_range=False):
    """Features with gaps filled, and scaled; learned from the training part alone."""
    X = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
    if unit_range:
        return (X - X[train].min(axis=0)) / np.ptp(X[train], axis=0)
    return (X - X[train].mean(axis=0)) / X[train].std(axis=0)


def chosen_by_folds(estimator, candidates, X, y, seed):
    """(fitted model, its parameters) by five-fold cross-validation on these rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(estimator, candidates, cv=folds, error_score="raise")
    search.fit(X, y)
    return search.best_estimator_, search.best_params_


# -- what is written ---------------------------------------------------------------
def mean_and_error(values, digits=2):
    """ "mean ± standard error of the mean"."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def named(chosen):
    """Hyper-parameters of one split as text, under the names of the docstring."""
    rate = "sharpness" in chosen
    return ", ".join(
        f"{'c' if rate and key == 'C' else key}={value:g}"
        for key, value in chosen.items()
        if key != "sharpness"
    )


def difference(values, base, what="test errors"):
    """Paired difference as text: its mean, and the splits with less and with more."""
    step = np.subtract(values, base)
    return (
        f"{mean_and_error(step)} {what}; fewer on {100 * np.mean(step < 0):.0f} %, "
        f"more on {100 * np.mean(step > 0):.0f} % of the splits"
    )


def markdown(head, rows):
    """Lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def write_splits(entries, path):
    """Errors and hyper-parameters of every split as a CSV."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["split", "machine", "kernel", "train", "test", "chosen"])
        for e in entries:
            for number, row in enumerate(zip(e.train, e.test, map(named, e.chosen))):
                writer.writerow([number, e.machine, e.kernel, *row])


def set_up(options):
    """One line on splits, seed and versions."""
    import sklearn

    import maxent

    return (
        f"{options.splits} random splits, seed {options.seed}; mean ± standard error "
        "of the mean over splits, which share rows. maxent "
        f"{maxent.__version__}, scikit-learn {sklearn.__version__}."
    )


def write_text(lines, path):
    """Write lines to a file, and print them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*lines, ""])
    path.write_text(text, encoding="utf-8")
    print(text)
