"""Wisconsin breast cancer: table 2 of the MED paper.

Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, table 2: 9 cytology
scores of the first 369 cases, 200 to train, 169 to test, one split, which is not
published. Printed training / test errors: SVM linear 8/10, SVM Gaussian (0.3) 0/11, SVM
cubic 1/13, maximum-likelihood Gaussians 10/16, MED Gaussians 3/8.

Protocol here: many random splits with 200 training rows, and, as one split that needs
no luck, the first 200 rows. The file as distributed today holds 367 of the 369 cases,
so the bundled data test on 167; a folder with `wbc_369.csv`, which has the two removed
cases restored, tests on 169. The missing scores (14 rows) are replaced by the median of
the training part; the Gaussian rows also show the first 200 complete rows, with the
incomplete ones dropped. Models and how their hyper-parameters are chosen: `_kernels`,
`_gaussians`, `_others`.
"""

import numpy as np
from _experiment import Experiment, arguments
from _gaussians import MODELS as GAUSSIANS
from _results import read_rows
from _tables import run_and_write
from fetch import found

PRINTED = {
    "SVM, linear": (8, 10),
    "SVM, cubic": (1, 13),
    "SVM, Gaussian 0.3": (0, 11),
    "SVM, Gaussian 0.3, unit range": (0, 11),
    "nearest neighbour": (None, 11),
    **dict.fromkeys((m for m in GAUSSIANS if m.startswith("ML")), (10, 16)),
    **dict.fromkeys((m for m in GAUSSIANS if m.startswith("MED")), (3, 8)),
}
TRAIN = 200
NOT_SCORES = ("row", "group", "id", "class", "removed_later")


def load(folder):
    """Scores (367 or 369, 9) with NaN where missing, and class 0/1."""
    if folder is None:
        from maxent.datasets import load_breast_cancer_wisconsin

        data = load_breast_cancer_wisconsin(missing="nan")
        first = data.groups == 1
        return data.data[first], data.target[first]
    rows = read_rows(found(folder, "wbc_369.csv"))
    names = [name for name in rows[0] if name not in NOT_SCORES]
    X = np.array([[float(r[name] or "nan") for name in names] for r in rows])
    return X, np.array([int(r["class"] == "malignant") for r in rows])


def main():
    """Run the experiment and write its table and figure."""
    options = arguments(__doc__, splits=30)
    X, y = load(options.data)

    def split(rng):
        train = np.zeros(len(y), dtype=bool)
        train[rng.permutation(len(y))[:TRAIN]] = True
        return train

    fixed = {f"first {TRAIN} rows": (X, y, np.arange(len(y)) < TRAIN)}
    whole = ~np.isnan(X).any(axis=1)
    first = np.arange(whole.sum()) < TRAIN
    fixed[f"first {TRAIN} complete rows"] = X[whole], y[whole], first
    title = f"Wisconsin breast cancer, the first {len(y)} cases"
    experiment = Experiment(title, X, y, split, PRINTED, fixed)
    run_and_write(experiment, options, "breast_cancer")


if __name__ == "__main__":
    main()
