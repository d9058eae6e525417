"""Other rows of the paper's tables that scikit-learn has, on the same splits.

    linear discriminant    LinearDiscriminantAnalysis, nothing to set
    logistic regression    ridge penalty by five-fold cross-validation, as for the SVM
    nearest neighbour      one neighbour, Euclidean, nothing to set

All on features standardised by the training part. Neural networks, MARS, projection
pursuit and Gaussian processes, which the paper quotes, are not attempted.
"""

from functools import partial

from _experiment import PENALTIES, chosen_by_folds, prepared

DISCRIMINANT, LOGISTIC, NEIGHBOUR = (
    "linear discriminant",
    "logistic regression",
    "nearest neighbour",
)


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


def wrong_rows(name, X, y, train, seed):
    """A model, as in `_experiment`."""
    X = prepared(X, train)
    model, chosen = fitted(name, X[train], y[train], seed)
    return model.predict(X) != y, chosen, True


MODELS = {n: partial(wrong_rows, n) for n in (DISCRIMINANT, LOGISTIC, NEIGHBOUR)}
