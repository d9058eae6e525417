"""Tables with columns of several kinds: accuracy and log-loss on rows held out.

Five classifiers of the same splits: MEDGenerativeClassifier (with its default C, and by
Bayes' rule: likelihood="predictive"), naive Bayes of the same families at maximum
likelihood in closed form, LogisticRegression on standardised numbers and one-hot texts,
and HistGradientBoostingClassifier, both at scikit-learn's defaults. Nothing is tuned.

Protocol: stratified splits of half of the rows, at most 1000 and at most 2000 divided
by the number of classes, to train; means over the splits and standard errors of these
means, which share rows. `against` is the paired difference of the log-loss to the first
classifier.
"""

import argparse
import warnings

from _race import Report, describe, pin


def main():
    """Run all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits of two tables")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--csv", help="append the rows of the table to this file")
    parser.add_argument("--sets", nargs="*", help="some of the tables, by name")
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore")
    splits = 2 if options.quick else options.splits
    describe("Tables of several kinds", [f"{splits} stratified splits, nothing tuned"])
    report = Report(options.csv)
    for k, (name, (X, y, kinds)) in enumerate(tables().items()):
        if (options.sets and name not in options.sets) or (options.quick and k > 1):
            continue
        for row in compare(name, X, y, kinds, splits):
            report.add(row)
    report.table()


def tables():
    """Names -> frame, labels, families of the columns."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import load_digits, load_iris, load_wine

    from maxent.datasets import load_breast_cancer_wisconsin, load_crabs
    from maxent.families import (
        Beta,
        Categorical,
        Gamma,
        Gaussian,
        Poisson,
        VonMisesFisher,
    )

    out = {}
    for name, load in {
        "crabs": load_crabs,
        "breast cancer": load_breast_cancer_wisconsin,
        "iris": load_iris,
        "wine": load_wine,
    }.items():
        X, y = load(return_X_y=True)
        out[f"{name}, numbers together"] = frame(X), y, {tuple(names(X)): Gaussian}
    X, y = load_breast_cancer_wisconsin(return_X_y=True)
    out["breast cancer, scores 1 to 10"] = (
        frame(X).astype(str),
        y,
        dict.fromkeys(names(X), Categorical),
    )
    X, y = load_digits(return_X_y=True)
    keep = X.std(axis=0) > 0
    out["digits, counts"] = (
        frame(X[:, keep]),
        y,
        dict.fromkeys(names(X[:, keep]), Poisson),
    )
    for rows, lost in ((400, 0.0), (2000, 0.0), (2000, 0.2)):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, rows)
        ward = np.where(rng.random(rows) < 0.3 + 0.3 * y, "east", "west")
        X = pd.DataFrame(
            {
                "visits": rng.poisson(2 + 2 * y).astype(float),
                "height": rng.normal(170, 7, rows),
                "weight": rng.normal(70 + 6 * y, 9),
                "share": rng.beta(2 + y, 3),
                "wait": rng.gamma(2 + y, 3.0),
                "hour": rng.vonmises(1.0 * y, 2.0),
                "ward": ward,
            }
        )
        X = X.mask(rng.random(X.shape) < lost)
        kinds = {
            "visits": Poisson,
            ("height", "weight"): Gaussian,
            "share": Beta,
            "wait": Gamma,
            "hour": VonMisesFisher,
            "ward": Categorical,
        }
        text = f", {lost:.0%} missing" if lost else ""
        out[f"made, {rows} rows{text}"] = X, y, kinds
    return out


def names(X):
    """Names of columns."""
    return [f"x{j}" for j in range(X.shape[1])]


def frame(X):
    """A data frame of numbers."""
    import pandas as pd

    return pd.DataFrame(X, columns=names(X))


def compare(name, X, y, kinds, splits):
    """Rows of one table."""
    import numpy as np
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedShuffleSplit

    train = min(1000, len(y) // 2, 2000 // len(np.unique(y)))
    cut = StratifiedShuffleSplit(splits, train_size=train, random_state=0)
    found = {}
    for own, other in cut.split(X, y):
        for title, model in classifiers(X, kinds).items():
            model.fit(X.iloc[own], y[own])
            P = np.clip(model.predict_proba(X.iloc[other]), 1e-15, 1.0)
            right = model.classes_[P.argmax(axis=1)] == y[other]
            loss = log_loss(y[other], P / P.sum(axis=1, keepdims=True))
            found.setdefault(title, []).append((right.mean(), loss))
    first = np.array(next(iter(found.values())))
    for title, values in found.items():
        values = np.array(values)
        error = values.std(axis=0, ddof=1) / len(values) ** 0.5
        apart = values[:, 1] - first[:, 1]
        yield {
            "table": name,
            "classifier": title,
            "accuracy, %": f"{100 * values[:, 0].mean():.1f} ± {100 * error[0]:.1f}",
            "log-loss": f"{values[:, 1].mean():.3f} ± {error[1]:.3f}",
            "against": f"{apart.mean():+.3f}",
        }


def classifiers(X, kinds):
    """Names -> new classifiers with predict_proba."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    from maxent import MEDGenerativeClassifier

    texts = [name for name in X if X[name].dtype.kind in "OUT"]
    rest = [name for name in X if name not in texts]
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    boosting = HistGradientBoostingClassifier(random_state=0)
    return {
        "MED, Bayes' rule": MEDGenerativeClassifier(kinds, likelihood="predictive"),
        "MED, logistic margin": MEDGenerativeClassifier(
            kinds, margin="logistic", level=0, C=1.0
        ),
        "naive Bayes": NaiveBayes(kinds),
        "logistic regression": make_pipeline(
            make_column_transformer((numbers, rest), (one_hot, texts)),
            LogisticRegression(max_iter=1000),
        ),
        "gradient boosting": make_pipeline(
            make_column_transformer((codes, texts), remainder="passthrough"), boosting
        ),
    }


class NaiveBayes:
    """Maximum likelihood of the same families, class by class, and Bayes' rule.

    Categories have one pseudo-count each, and Gaussians a ridge of a thousandth of the
    variances, without which some classes have no fit.
    """

    def __init__(self, kinds):
        self.kinds = kinds

    def fit(self, X, y):
        """Fit every class."""
        import numpy as np

        from maxent.families import Categorical, Gaussian

        self.classes_, code = np.unique(y, return_inverse=True)
        self.log_share = np.log(np.bincount(code) / len(y))
        self.members = []
        for own, family in self.kinds.items():
            own = list(own) if isinstance(own, tuple) else [own]
            known = None
            if family is Categorical:
                known = sorted(X[own[0]].dropna().unique())
            x = rows_of(X[own], family, known)
            seen = ~np.isnan(x).any(axis=1)
            options = {}
            if family is Gaussian:
                options = {"smoothing": 1e-3 * x[seen].var(axis=0).mean()}
            elif family is Categorical:
                options = {"n_categories": len(known), "smoothing": 1.0}
            each = [
                family.fit(events(x[seen & (code == k)], family), **options)
                for k in range(len(self.classes_))
            ]
            self.members.append((own, family, known, each))
        return self

    def predict_proba(self, X):
        """Bayes' rule; a missing column says nothing."""
        import numpy as np
        from scipy.special import softmax

        joint = np.tile(self.log_share, (len(X), 1))
        for own, family, known, each in self.members:
            x = rows_of(X[own], family, known)
            seen = ~np.isnan(x).any(axis=1)
            for k, one in enumerate(each):
                log_prob = one.log_prob(events(x[seen], family))
                joint[seen, k] += np.maximum(log_prob, -1e3)
        return softmax(joint, axis=1)


def rows_of(X, family, known):
    """Columns as numbers: unit vectors of angles, codes of texts."""
    import numpy as np

    from maxent.families import VonMisesFisher

    if known is not None:
        place = {text: i for i, text in enumerate(known)}
        return X.iloc[:, 0].map(place).to_numpy(dtype=float)[:, None]
    x = X.to_numpy(dtype=float)
    return np.hstack([np.cos(x), np.sin(x)]) if family is VonMisesFisher else x


def events(x, family):
    """Rows as the family has them: vectors, or numbers."""
    return x if family._event_to_fit() else x[:, 0]


if __name__ == "__main__":
    main()
