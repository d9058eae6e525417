"""Support vector machines on kernel matrices: what the product-kernel scripts share.

A row of a table is a dict of kernel matrices (n, m), one for each setting. The training
rows are among the first m. Settings and the penalty C are chosen by
five-fold cross-validation inside the training rows; the least error over all of them
on the *test* rows, as some papers print it, is shown beside.
"""

import numpy as np
from _results import column, mean_and_error

FOLDS = 5


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


def compared(rows, name, base, **where):
    """Cells of a row: both errors, the paired difference, draws in which it is < 0."""
    best, own, other = (
        100 * column(rows, key, row=row, **where)
        for key, row in (("best", name), ("error", name), ("error", base))
    )
    cells, step = [f"{mean_and_error(e, 1)} %" for e in (best, own)], own - other
    if name == base:
        return [*cells, "", ""]
    return [
        *cells,
        f"{mean_and_error(step, 1)} %",
        f"{(step < 0).sum()} of {len(step)}",
    ]


def head_of(base):
    """Names of these cells."""
    return [
        *("least over all settings", "by validation", f"minus {base}", "draws below it")
    ]
