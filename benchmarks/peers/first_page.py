"""The figures of the first page: a task, what people use today, and ours beside it.

probabilities  MEDClassifierCV with the logistic margin against GridSearchCV of
               SVC(probability=True): four values of C, four of gamma, five folds, by
               log-loss; breast cancer, digits, 1000 x 20 made rows; three splits
outliers       MEDOutlierDetector against IsolationForest, defaults, trained on 60 % of
               the largest class: ROC AUC against all other classes; ten splits
motifs         M3EMotifClassifier on 2000 sequences of 60 letters, a motif planted in
               half of them: held-out accuracy, sites found; no peer
Times are of fits and predictions together, one thread, and ratios those of all splits.
"""

import argparse
import time
import warnings

from _race import Report, arguments, describe, pin

GROUPS = ("probabilities", "outliers", "motifs")
COLUMNS = (
    *("work", "peer", "ours s", "peer s", "ratio", "what", "ours", "theirs"),
    "accuracy",
)


def main():
    """Run the groups asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--groups", nargs="*", default=GROUPS, choices=GROUPS)
    options = parser.parse_args()
    pin(1)
    warnings.simplefilter("ignore")
    describe("Figures of the first page", ["one thread, defaults"])
    report = Report(options.csv)
    for name in options.groups:
        for row in globals()[name](options.quick):
            report.add({"group": name, **row})
    report.table()


def probabilities(quick):
    """Log-losses of probabilities on held-out rows."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification
    from sklearn.metrics import log_loss
    from sklearn.model_selection import GridSearchCV, train_test_split
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from maxent import MEDClassifier, MEDClassifierCV

    tables = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "1000 x 20": make_classification(1000, 20, flip_y=0.05, random_state=1),
        "digits": load_digits(return_X_y=True),
    }
    Cs = np.array([0.1, 1.0, 10.0, 100.0])
    by = "neg_log_loss"
    for table, (X, y) in tables.items():
        if quick and table == "digits":
            continue
        gammas = np.array([0.1, 0.3, 1.0, 3.0]) / X.shape[1]
        grid = {"C": Cs, "gamma": gammas}
        machine = MEDClassifier(margin="logistic")
        models = (
            MEDClassifierCV(machine, Cs=Cs, gammas=gammas, scoring=by),
            GridSearchCV(SVC(probability=True), grid, scoring=by),
        )
        results = []
        for seed in range(1 if quick else 3):
            split = train_test_split(X, y, stratify=y, random_state=seed)
            X_train, X_test, y_train, y_test = split
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
            machine.fit(X_train[:100], y_train[:100])  # compiles and loads
            pair = []
            for model in models:
                began = time.perf_counter()
                shares = model.fit(X_train, y_train).predict_proba(X_test)
                seconds = time.perf_counter() - began
                right = np.mean(model.classes_[shares.argmax(axis=1)] == y_test)
                pair.append((seconds, log_loss(y_test, shares), right))
            results.append(pair)
        peer = "GridSearchCV(SVC(probability=True))"
        yield row_of(table, peer, np.array(results), "log-loss")


def outliers(quick):
    """Ranks of the rows of other classes."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import roc_auc_score

    from maxent import MEDOutlierDetector
    from maxent.datasets import load_breast_cancer_wisconsin

    loaders = {
        "breast cancer": load_breast_cancer,
        "tumour cells": load_breast_cancer_wisconsin,
        "wine": load_wine,
        "digits": load_digits,
    }
    for table, load in loaders.items():
        X, y = load(return_X_y=True)
        X = np.asarray(X, dtype=float)
        classes, counts = np.unique(y, return_counts=True)
        normal = y == classes[counts.argmax()]
        results = []
        for seed in range(2 if quick else 10):
            rng = np.random.default_rng(seed)
            order = rng.permutation(np.flatnonzero(normal))
            train, rest = np.split(order, [int(0.6 * len(order))])
            test = np.concatenate([rest, np.flatnonzero(~normal)])
            pair = []
            for model in (MEDOutlierDetector(), IsolationForest(random_state=seed)):
                began = time.perf_counter()
                scores = model.fit(X[train]).score_samples(X[test])
                seconds = time.perf_counter() - began
                area = roc_auc_score(normal[test], scores)
                pair.append((seconds, area, area))
            results.append(pair)
        yield row_of(table, "IsolationForest()", np.array(results), "ROC AUC")


def motifs(quick):
    """Places of a planted motif."""
    import numpy as np

    from maxent import M3EMotifClassifier
    from maxent.datasets import make_planted_motifs

    n = 400 if quick else 2000
    X, y, _, places = make_planted_motifs(2 * n, 60, 8, information=1.6, random_state=0)
    finder = M3EMotifClassifier(8, random_state=0)
    finder.fit(X[:100], y[:100])  # compiles and loads
    began = time.perf_counter()
    finder.fit(X[:n], y[:n])
    seconds = time.perf_counter() - began
    right = finder.score(X[n:], y[n:])
    at = finder.predict_hidden(X[n:], y[n:])
    bound = y[n:] == 1
    found = np.mean(at[bound] == places[n:][bound])
    blank = dict.fromkeys(COLUMNS, "")
    yield blank | {
        "work": f"{n} x 60 letters",
        "ours s": f"{seconds:.3g}",
        "what": "accuracy; sites found",
        "ours": f"{right:.3f}; {found:.3f}",
    }


def row_of(work, peer, results, what):
    """One line: seconds of all splits, their ratio, and means of the measures."""
    seconds, measure, right = results.sum(axis=0).T[:3]
    n = len(results)
    ours, theirs = measure / n
    pair = f"{right[0] / n:.3f}, {right[1] / n:.3f}" if what == "log-loss" else ""
    cells = (
        *(work, peer, f"{seconds[0] / n:.3g}", f"{seconds[1] / n:.3g}"),
        *(f"{seconds[0] / seconds[1]:.2f}", what, f"{ours:.3f}", f"{theirs:.3f}", pair),
    )
    return dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    main()
