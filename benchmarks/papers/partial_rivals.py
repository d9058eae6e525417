"""Rows without a label, beside scikit-learn's semi-supervised methods: a table.

No table of the MED paper: its section 5 asks what rows without a label are worth, and
this asks it against other methods on two data sets that come with the package. A draw
labels 20 rows, 10 of each class, of the 200 crabs (linear kernel, C = 10) or of the 683
rows of the Wisconsin breast cancer data without missing values (RBF kernel, C = 1);
features are standardised over all rows, and errors are those on the rows without a
label. All machines have the same kernel, and C; the width of the RBF kernel is
scikit-learn's "scale" over all rows. `SelfTrainingClassifier` is around `SVC` with
probabilities by Platt's method, `CalibratedClassifierCV(SVC(), ensemble=False)`;
`LabelSpreading` has, of three kernels, the one that is best on these very rows.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from _experiment import markdown, mean_and_error, write_text

LABELLED = 10  # of each class
MACHINES = {
    "crabs": {"kernel": "linear", "C": 10.0},
    "breast cancer": {"kernel": "rbf", "C": 1.0},
}
SPREADING = (
    {"kernel": "rbf", "gamma": 1.0},
    {"kernel": "rbf", "gamma": 20.0},
    {"kernel": "knn", "n_neighbors": 7},
)


def load():
    """{name: (standardised rows, labels 0 and 1)}."""
    from maxent.datasets import load_breast_cancer_wisconsin, load_crabs

    out = {}
    for name, (X, y) in (
        ("crabs", load_crabs(return_X_y=True)),
        ("breast cancer", load_breast_cancer_wisconsin(return_X_y=True)),
    ):
        full = ~np.isnan(X).any(axis=1)
        X, codes = X[full], np.unique(y[full], return_inverse=True)[1]
        out[name] = (X - X.mean(axis=0)) / X.std(axis=0), codes
    return out


def models(X, kernel, C):
    """{name: functions of (rows, partial labels) to labels of all rows}."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
    from sklearn.svm import SVC

    from maxent import (
        MEDClassifier,
        MEDGaussianClassifier,
        MEDPartialLabelClassifier,
    )

    gamma = 1.0 / (X.shape[1] * X.var())
    machine = MEDClassifier(kernel, C=C, gamma=gamma)
    gaussian = MEDGaussianClassifier()
    svm = CalibratedClassifierCV(SVC(C=C, kernel=kernel, gamma=gamma), ensemble=False)
    few = {
        "MEDClassifier, labelled rows alone": machine,
        "MEDGaussianClassifier, labelled rows alone": gaussian,
    }
    every = {
        "MEDPartialLabelClassifier": MEDPartialLabelClassifier(machine),
        "MEDPartialLabelClassifier, step 0.1, 30 rounds": MEDPartialLabelClassifier(
            machine, step=0.1, max_rounds=30
        ),
        "MEDPartialLabelClassifier, direct": MEDPartialLabelClassifier(
            machine, method="direct"
        ),
        "SelfTrainingClassifier": SelfTrainingClassifier(svm),
        **{
            f"LabelSpreading {k}": LabelSpreading(**options)
            for k, options in enumerate(SPREADING)
        },
        "MEDGaussianClassifier in MEDPartialLabelClassifier": (
            MEDPartialLabelClassifier(gaussian)
        ),
    }
    return few, every


def one_draw(X, y, options, rng):
    """{model: error in per cent on the rows without a label} of one draw."""
    from sklearn.base import clone

    known = np.concatenate(
        [rng.permutation(np.flatnonzero(y == k))[:LABELLED] for k in (0, 1)]
    )
    part = np.full(len(y), -1)
    part[known] = y[known]
    open_ = part == -1
    few, every = models(X, **options)
    errors = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty rounds do not converge
        for name, model in few.items():
            found = clone(model).fit(X[known], y[known]).predict(X)
            errors[name] = 100.0 * np.mean(found[open_] != y[open_])
        for name, model in every.items():
            fitted = clone(model).fit(X, part)
            found = getattr(fitted, "transduction_", None)
            found = fitted.predict(X) if found is None else found
            errors[name] = 100.0 * np.mean(found[open_] != y[open_])
    return errors


def best_spreading(errors):
    """Draws with one row for LabelSpreading: of its kernels the best on average."""
    names = [name for name in errors[0] if name.startswith("LabelSpreading")]
    best = min(names, key=lambda name: np.mean([e[name] for e in errors]))
    return [
        {name: value for name, value in draw.items() if name not in names}
        | {"LabelSpreading": draw[best]}
        for draw in errors
    ]


def main():
    """Run the draws; write the table and its numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = {}
    for data, (X, y) in load().items():
        draws = [
            one_draw(X, y, MACHINES[data], np.random.default_rng([options.seed, k]))
            for k in range(options.draws)
        ]
        found[data] = best_spreading(draws)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    write(found, options, out)


def write(found, options, out):
    """partial_rivals.md and .csv."""
    import sklearn

    import maxent

    names = list(next(iter(found.values()))[0])
    rows = [
        [name, *(mean_and_error([e[name] for e in found[d]], 1) for d in found)]
        for name in names
    ]
    lines = [
        "# Errors in per cent on rows without a label",
        "",
        f"{options.draws} draws of {2 * LABELLED} labelled rows, seed {options.seed}. "
        f"Mean ± standard error over draws. maxent {maxent.__version__}, "
        f"scikit-learn {sklearn.__version__}.",
        "",
        *markdown(["method", *found], rows),
    ]
    write_text(lines, out / "partial_rivals.md")
    with open(out / "partial_rivals.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["data", "draw", "method", "error"])
        for data, draws in found.items():
            for k, draw in enumerate(draws):
                writer.writerows([data, k, name, draw[name]] for name in names)


if __name__ == "__main__":
    main()
