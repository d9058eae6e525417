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

import warnings

import numpy as np
from _results import column, mean_and_error, parser, run, table

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


def best_spreading(rows, data):
    """Of the kernels of LabelSpreading the one that is best on average."""
    names = (f"LabelSpreading {k}" for k in range(len(SPREADING)))
    return min(names, key=lambda name: column(rows, name, data=data).mean())


def main():
    """Run the draws; write the table and its numbers."""
    options = parser(__doc__, 10).parse_args()
    sets = load()

    def work(data, draw):
        rng = np.random.default_rng([options.seed, draw])
        return one_draw(*sets[data], MACHINES[data], rng)

    units = [{"data": name, "draw": k} for name in sets for k in range(options.draws)]
    rows = run("partial_rivals", options, units, work)
    best = {data: best_spreading(rows, data) for data in sets}
    names = [n for n in rows[0] if n not in units[0]]
    names = [n for n in names if not n.startswith("LabelSpreading")]
    lines = [[n, *(column(rows, n, data=d) for d in sets)] for n in names]
    lines.append(["LabelSpreading", *(column(rows, best[d], data=d) for d in sets)])
    lines = [[name, *(mean_and_error(e, 1) for e in own)] for name, *own in lines]
    table("partial_rivals", options, ["method", *sets], lines)


if __name__ == "__main__":
    main()
