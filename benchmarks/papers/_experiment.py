"""Many random splits of a small data set: what its models share.

The models come from the modules beside this one, on the same splits; `_tables` runs
them and compares all:

    _kernels      support vector machines and MED with kernels
    _gaussians    one Gaussian a class, by maximum likelihood and by MED
    _others       linear discriminant, logistic regression, nearest neighbour
    _curves       areas under ROC curves of some of them

A model is a function of all rows X (n, d), which may hold NaN, the classes y, the mask
of the training rows and a seed; it gives the wrong rows (n,), the parameters that it
chose and whether its last fit converged. It may look at y of training rows only.
"""

from dataclasses import dataclass

import numpy as np

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
ROWS = ("kernels", "gaussians", "others", "curves")


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
    printed : dict
        model -> (training errors or None, test errors) in the paper.
    fixed : dict
        title -> (X, y, mask) of splits to show besides the random ones.
    """

    title: str
    X: np.ndarray
    y: np.ndarray
    split: object
    printed: dict
    fixed: dict

    def rows_of(self, split, seed):
        """Rows, classes and training mask of a random split, or of a fixed one."""
        if split in self.fixed:
            return self.fixed[split]
        return self.X, self.y, self.split(np.random.default_rng([seed, split]))


def arguments(doc, splits):
    """Parsed options of a script."""
    from _results import parser

    out = parser(doc, splits)
    out.add_argument("--data", help="folder with the CSV (default: bundled data)")
    out.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS)
    return out.parse_args()


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
