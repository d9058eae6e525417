"""Class probabilities: log-loss, Brier score and reliability on rows held out.

Two groups of classifiers. `machines`: MEDClassifier with the logistic margin prior,
SVC with Platt scaling (CalibratedClassifierCV, method="sigmoid", one machine and the
decision values of five folds) and LogisticRegression. `generative`: the Gaussian,
Bayes-net and tree classifiers with likelihood="predictive" and with the logistic
prior of level 0, their untrained kin, and calibration by folds.

Protocol: repeated stratified splits, the same for all classifiers, of 60 % of the rows
or `--rows`, whichever is less; up to 2000 test rows. C is chosen in every split by the
log-loss of five folds of its training rows, for every classifier from a grid with a
factor of ten between neighbours. Features are standardised in the pipeline. Printed are
means over splits and their standard errors; splits share rows, so that these are too
small as errors of a mean over new data. `against` is the mean paired difference to the
first classifier of the group.
"""

import argparse
import warnings

from _race import Report, describe, pin

GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
GENERATIVE_GRID = (0.1, 1.0, 10.0)
GROUPS = ("machines", "generative")


def main():
    """Run the groups asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits of 120 rows")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=int, default=400, help="training rows, at most")
    parser.add_argument("--csv", help="append the rows of the table to this file")
    parser.add_argument("--data", help="folder with solver_a9a, splice_uci, ...")
    parser.add_argument("--sets", nargs="*", help="some of the sets, by name")
    parser.add_argument("--groups", nargs="*", default=GROUPS, choices=GROUPS)
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore")  # of classes without a proper prior, and the like
    splits = 2 if options.quick else options.splits
    rows = 120 if options.quick else options.rows
    describe(
        "Probabilities on rows held out",
        [
            f"{splits} stratified splits of up to {rows} training rows",
            "C by the log-loss of five folds",
        ],
    )
    report = Report(options.csv)
    for group in options.groups:
        for name, X, y, kind in data_sets(options.data, group):
            if options.sets and name not in options.sets:
                continue
            for row in compare(name, X, y, classifiers(group, kind), splits, rows):
                report.add(row)
    report.table()


def data_sets(folder, group):
    """Tuples (name, X, y, "numbers" or "categories"), one after the other."""
    import numpy as np
    from _data import _arrays, adult, digits, letters
    from sklearn.datasets import load_breast_cancer, load_iris, load_wine

    from maxent.datasets import load_breast_cancer_wisconsin, load_crabs

    yield "crabs", *load_crabs(return_X_y=True), "numbers"
    yield "tumours, 9 scores", *load_breast_cancer_wisconsin(return_X_y=True), "numbers"
    yield "tumours, 30 columns", *load_breast_cancer(return_X_y=True), "numbers"
    yield "wine", *load_wine(return_X_y=True), "numbers"
    yield "iris", *load_iris(return_X_y=True), "numbers"
    if group == "generative":
        X, y = load_breast_cancer_wisconsin(return_X_y=True)
        yield "tumours as categories", np.asarray(X).astype(int), y, "categories"
    if folder is None:
        return
    dna = _arrays(folder, "splice_uci", "statlog_dna.npz")
    bits, kind = dna["X"].astype(float), dna["y"]
    if group == "generative":
        codes = (bits.reshape(-1, 60, 3) @ [1, 2, 3]).astype(int)
        yield "splice sites", codes[:, 18:43], kind, "categories"
        two = kind != "ie"
        yield "splice sites, EI or N", codes[two, 18:43], kind[two], "categories"
        return
    yield "splice sites", bits, kind, "numbers"
    for task in (adult(folder, dense=True), letters(folder), digits(folder)):
        yield task.name, task.X, task.y, "numbers"


def classifiers(group, kind):
    """{name: (classifier, {parameter: values to choose from})} of a group."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.svm import SVC

    from maxent import (
        ChowLiuClassifier,
        MEDBayesNetClassifier,
        MEDClassifier,
        MEDGaussianClassifier,
        MEDTreeClassifier,
    )

    if group == "machines":
        platt = CalibratedClassifierCV(SVC(), method="sigmoid", cv=5, ensemble=False)
        med, kernels = MEDClassifier(margin="logistic"), ["linear", "rbf"]
        return {
            "MED logistic, RBF": (med, {"C": GRID}),
            "SVC + Platt, RBF": (platt, {"estimator__C": GRID}),
            "LogisticRegression": (LogisticRegression(max_iter=2000), {"C": GRID}),
            "MED logistic, kernel chosen": (med, {"C": GRID, "kernel": kernels}),
            "SVC + Platt, kernel chosen": (
                platt,
                {"estimator__C": GRID, "estimator__kernel": kernels},
            ),
        }
    plain = {
        "QDA": (QuadraticDiscriminantAnalysis(reg_param=1e-3), {}),
        "GaussianNB": (GaussianNB(), {}),
    }
    families = {"Gaussian": MEDGaussianClassifier}
    if kind == "categories":
        plain = {
            "naive Bayes": (CategoricalNB(min_categories=11), {}),
            "Chow-Liu": (ChowLiuClassifier(), {}),
        }
        families = {"naive Bayes": MEDBayesNetClassifier, "trees": MEDTreeClassifier}
    found = {}
    for name, cls in families.items():
        folds = CalibratedClassifierCV(cls(), method="sigmoid", cv=5, ensemble=False)
        found |= {
            f"MED {name}, predictive": (
                cls(likelihood="predictive"),
                {"C": GENERATIVE_GRID},
            ),
            f"MED {name}, logistic": (
                cls(margin="logistic", level=0),
                {"C": GENERATIVE_GRID},
            ),
            f"MED {name}, calibrated": (folds, {"estimator__C": GENERATIVE_GRID}),
        }
    return found | plain


def compare(name, X, y, contestants, splits, rows):
    """Rows of the table of one data set."""
    import numpy as np
    from sklearn.model_selection import StratifiedShuffleSplit

    X, (classes, y) = np.asarray(X), np.unique(y, return_inverse=True)
    train = min(rows, int(0.6 * len(y)))
    test = min(2000, len(y) - train)
    cut = StratifiedShuffleSplit(
        splits, train_size=train, test_size=test, random_state=0
    )
    parts = list(cut.split(X, y))
    first = None
    for label, (model, grid) in contestants.items():
        scores = []
        for fit_on, judged in parts:
            machine = fitted(model, grid, X[fit_on], y[fit_on])
            scores.append(measures(machine.predict_proba(X[judged]), y[judged]))
        scores = np.array(scores)
        first = scores if first is None else first
        yield {
            "data": name,
            "rows x columns": f"{train}x{X.shape[1]}, {len(classes)} classes",
            "classifier": label,
            "log-loss": with_error(scores[:, 0]),
            "against": with_error(scores[:, 0] - first[:, 0]),
            "Brier": with_error(scores[:, 1]),
            "calibration error": with_error(scores[:, 2]),
            "errors": with_error(scores[:, 3]),
        }


def fitted(model, grid, X, y):
    """The classifier with its best parameters, fitted to all rows."""
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = clone(model)
    if X.dtype.kind == "f":
        model = make_pipeline(StandardScaler(), model)
        last = model.steps[-1][0]
        grid = {f"{last}__{name}": values for name, values in grid.items()}
    if not grid:
        return model.fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(
        model, grid, scoring="neg_log_loss", cv=folds, error_score="raise"
    )
    return search.fit(X, y)


def measures(p, y):
    """(log-loss, Brier score, calibration error, share of errors) of probabilities.

    The calibration error is the mean distance between the confidence in the most
    probable class and the share of rows where it is right, over ten bins of equal
    width. Probabilities below 1e-15 count as that, for every classifier.
    """
    import numpy as np

    own = np.maximum(p[np.arange(len(y)), y], 1e-15)
    brier = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((10 * confidence).astype(int), 9)
    distance = np.bincount(bins, confidence) - np.bincount(bins, right)
    return (
        -np.log(own).mean(),
        brier,
        np.abs(distance).sum() / len(y),
        1.0 - right.mean(),
    )


def with_error(values):
    """Mean and standard error over splits."""
    import numpy as np

    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


if __name__ == "__main__":
    main()
