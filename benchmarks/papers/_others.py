"""Other rows of the paper's tables that scikit-learn has, on the same splits.

    linear discriminant    LinearDiscriminantAnalysis, nothing to set
    logistic regression    ridge penalty by five-fold cross-validation, as for the SVM
    nearest neighbour      one neighbour, Euclidean, nothing to set

All on features standardised by the training part. Neural networks, MARS, projection
pursuit and Gaussian processes, which the paper quotes, are not attempted.
"""

import numpy as np
from _experiment import (
    PENALTIES,
    Entry,
    chosen_by_folds,
    markdown,
    mean_and_error,
    prepared,
)

DISCRIMINANT, LOGISTIC, NEIGHBOUR = (
    "linear discriminant",
    "logistic regression",
    "nearest neighbour",
)
MODELS = (DISCRIMINANT, LOGISTIC, NEIGHBOUR)


def fitted(name, X, y, seed):
    """(model, chosen) on training rows."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    if name == LOGISTIC:
        model = LogisticRegression(solver="newton-cholesky", max_iter=1000)
        return chosen_by_folds(model, [{"C": [C]} for C in PENALTIES], X, y, seed)
    if name == DISCRIMINANT:
        return LinearDiscriminantAnalysis().fit(X, y), {}
    return KNeighborsClassifier(1).fit(X, y), {}


def run(experiment, splits, seed):
    """Errors of every model on every split."""
    entries = []
    for name in MODELS:
        test = experiment.others.get(name)
        entries.append(Entry(name, "", printed=None if test is None else (None, test)))
    for number, train in enumerate(experiment.masks(splits, seed)):
        X, y = prepared(experiment.X, train), experiment.y
        for entry in entries:
            model, chosen = fitted(entry.machine, X[train], y[train], number)
            wrong = model.predict(X) != y
            entry.record(wrong[train].sum(), wrong[~train].sum(), chosen, True)
    return entries


def table(experiment, entries):
    """Markdown table with the printed cells beside ours."""
    n_train, n_test = experiment.sizes()
    head = [
        "model",
        f"training errors of {n_train}",
        f"test errors of {n_test}",
        "sd of one split",
        "printed",
        "splits with test <= printed",
    ]
    rows = [
        [
            entry.machine,
            mean_and_error(entry.train),
            mean_and_error(entry.test),
            f"{np.std(entry.test, ddof=1):.1f}",
            *entry.printed_cells(),
        ]
        for entry in entries
    ]
    return markdown(head, rows)
