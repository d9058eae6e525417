"""Prediction: 20000 rows, 2500 support vectors, 20 features, one thread.

Both machines are fitted to 2500 rows with random, balanced labels and a small C: then
every row is a support vector of either, so both do the same work by construction. What
is timed is the whole call, input checks included. Our decision values and the peer's
are compared with a plain double-precision computation from their own coefficients.
"""

import argparse

from _race import Report, arguments, describe, pin, race

GAMMA = 0.05


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--rows", type=int, default=None, help="default 20000")
    parser.add_argument("--support", type=int, default=None, help="default 2500")
    parser.add_argument("--features", type=int, default=20)
    options = parser.parse_args()
    pin(1)

    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    rows = options.rows or (2000 if options.quick else 20_000)
    support = options.support or (400 if options.quick else 2500)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(support, options.features))
    y = np.where(rng.permutation(support) % 2 == 0, 1, -1)
    new = rng.normal(size=(rows, options.features))
    ours = MEDClassifier(C=0.01, gamma=GAMMA, n_jobs=1).fit(X, y)
    theirs = SVC(C=0.01, gamma=GAMMA).fit(X, y)
    describe(
        "Prediction with RBF machines",
        [
            f"{rows} rows, {options.features} features; support vectors: "
            f"ours {len(ours.support_)}, SVC {len(theirs.support_)}"
        ],
    )
    if not len(ours.support_) == len(theirs.support_) == support:
        raise SystemExit("the machines differ in size: the race would not be fair")

    def error(model):
        some = new[:500]
        kernel = rbf_kernel(some, X[model.support_], gamma=GAMMA)
        exact = kernel @ model.dual_coef_[0] + model.intercept_[0]
        return np.abs(model.decision_function(some) - exact).max() / np.abs(exact).max()

    report = Report(options.csv)
    for method in ("decision_function", "predict"):
        outcome = race(
            lambda method=method: getattr(ours, method)(new),
            lambda method=method: getattr(theirs, method)(new),
            options.pairs,
        )
        report.add(
            {
                "call": method,
                "peer": "SVC",
                **outcome.columns,
                "relative error": f"{error(ours):.1e} {error(theirs):.1e}",
            }
        )
    report.table()


if __name__ == "__main__":
    main()
