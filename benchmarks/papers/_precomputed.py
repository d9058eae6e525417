"""Support vector machines on kernel matrices: what the product-kernel scripts share.

A row of a table is a dict of kernel matrices (n, m), one for each setting. The training
rows are among the first m. Settings and the penalty C are chosen by
five-fold cross-validation inside the training rows; the least error over all of them
on the *test* rows, as some papers print it, is shown beside.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from _experiment import markdown, mean_and_error

FOLDS = 5


def options_of(description, draws, data=None):
    """Parsed options of a script; `data` says what the folder holds, None without."""
    parser = argparse.ArgumentParser(description=description)
    if data is not None:
        parser.add_argument("--data", required=True, help=f"folder with {data}")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def grid_errors(kernels, y, train, test, penalties):
    """Shares of errors (settings, penalties) on test rows."""
    from sklearn.svm import SVC

    out = np.empty((len(kernels), len(penalties)))
    for i, K in enumerate(kernels.values()):
        own, new = K[np.ix_(train, train)], K[np.ix_(test, train)]
        for j, C in enumerate(penalties):
            machine = SVC(C=C, kernel="precomputed").fit(own, y[train])
            out[i, j] = np.mean(machine.predict(new) != y[test])
    return out


def validated_errors(kernels, y, train, penalties, seed):
    """Shares of errors (settings, penalties) in cross-validation on these rows."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return np.mean(
        [
            grid_errors(kernels, y, train[a], train[b], penalties)
            for a, b in folds.split(train, y[train])
        ],
        axis=0,
    )


def chosen_error(kernels, y, train, test, penalties, seed):
    """(error of what validation chooses, its setting, its C, all errors).

    Ties go to the setting that comes first, then to the smaller C.
    """
    errors = grid_errors(kernels, y, train, test, penalties)
    inside = validated_errors(kernels, y, train, penalties, seed)
    i, j = np.unravel_index(np.argmin(inside), inside.shape)
    return errors[i, j], list(kernels)[i], penalties[j], errors


# -- what is written ---------------------------------------------------------------
def rows_of(records, name):
    """Records of one row of the table, over the draws."""
    return [r for r in records if r["row"] == name]


def percent(records, name, key="error"):
    """Mean and standard error over the draws, in per cent."""
    return mean_and_error([100 * r[key] for r in rows_of(records, name)], 1) + " %"


def minus(records, name, base, key="error"):
    """Paired difference of two rows over the draws, and how often it is below zero."""
    own, other = (
        np.array([100 * r[key] for r in rows_of(records, n)]) for n in (name, base)
    )
    if name == base:
        return "", ""
    step = own - other
    return mean_and_error(step, 1) + " %", f"{np.sum(step < 0)} of {len(step)}"


def set_up(options):
    """One line on draws, seed and versions."""
    import sklearn

    import maxent

    return (
        f"{options.draws} draws, seed {options.seed}; mean ± standard error over the "
        f"draws. maxent {maxent.__version__}, scikit-learn {sklearn.__version__}."
    )


def write_all(lines, head, table, records, options, name):
    """NAME.md and NAME.csv; prints the text."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*lines, "", set_up(options), "", *markdown(head, table), ""])
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    print(f"written: {out / name}.md, .csv and .png")
    return out / f"{name}.png"
