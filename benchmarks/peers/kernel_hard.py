"""RBF machines on hard problems: MEDClassifier against SVC, one thread.

Small and large C, many flipped labels, few positives, checkerboards with and without
noise, rows given four times. Both solve a soft-margin dual to an optimality violation
of 1e-3 with the same kernel, C and cache: ours with the exponential margin prior at
sharpness 10, or with the hinge where it is named, SVC with the hinge. Whole `fit`
against whole `fit`; ours must converge.
"""

import argparse
from dataclasses import dataclass

from _race import Report, arguments, describe, pin, race

SHARPNESS, TOL, CACHE = 10.0, 1e-3, 500.0


@dataclass
class Problem:
    """One row of the table."""

    name: str
    X: object
    y: object
    C: float
    gamma: object = "scale"
    margin: str = "exponential"


def problems(quick=False):
    """All rows of the table, one after the other; small ones where quick."""
    import numpy as np
    from _data import classification

    n = 600 if quick else 5000
    for d in (20, 200):
        task = classification(n, d, test=10)
        for C in (0.1, 1.0, 10.0, 1000.0):
            yield Problem("make_classification", task.X, task.y, C)
    task = classification(n, 20, test=10)
    rng = np.random.default_rng(0)
    flipped = np.where(rng.random(n) < 0.3, -task.y, task.y)
    yield Problem("30 % of labels flipped", task.X, flipped, 10.0)
    copies = np.tile(np.arange(n // 2), 4)
    yield Problem("rows given four times", task.X[copies], task.y[copies], 10.0)
    X, y = few_positives(4 * n, rng)
    yield Problem("3 % positives", X, y, 10.0)
    X, y = checkerboard(2 * n, np.random.default_rng(0))
    yield Problem("checkerboard", X, y, 100.0)
    for margin in ("hinge", "exponential"):
        for gamma in (1.0, 5.0):
            for C in (30.0, 100.0, 300.0, 1000.0):
                yield Problem("checkerboard", X, y, C, gamma, margin)
    X, y = checkerboard(8001 * n // 5000, np.random.default_rng(0), noise=0.1)
    yield Problem("checkerboard, 10 % flipped", X, y, 100.0)


def few_positives(n, rng):
    """Twenty normal features; 3 % of the rows are positive, about a curved boundary."""
    import numpy as np

    X = rng.normal(size=(n, 20))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 0.97), 1, -1)


def checkerboard(n, rng, noise=0.0):
    """Labels by the sign of sin(3 x0) cos(3 x1), some of them flipped."""
    import numpy as np

    X = rng.normal(size=(n, 2))
    positive = np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) > 0
    if noise:
        positive ^= rng.random(n) < noise
    return X, np.where(positive, 1, -1)


def one_race(problem, options):
    """Row of the table: times, ratio, what ours reached."""
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    shared = {
        "C": problem.C,
        "gamma": problem.gamma,
        "tol": TOL,
        "cache_size": CACHE,
    }
    ours = MEDClassifier(margin=problem.margin, sharpness=SHARPNESS, n_jobs=1, **shared)
    theirs = SVC(**shared)
    for model in (ours, theirs):  # libraries load and set themselves up untimed
        model.fit(problem.X[:300], problem.y[:300])
    outcome = race(
        lambda: ours.fit(problem.X, problem.y),
        lambda: theirs.fit(problem.X, problem.y),
        options.pairs,
    )
    n, d = problem.X.shape
    return {
        "data": problem.name,
        "rows x columns": f"{n} x {d}",
        "margin": problem.margin,
        "C": f"{problem.C:g}",
        "gamma": str(problem.gamma),
        **outcome.columns,
        "converged": str(ours.converged_),
        "rel. gap": f"{ours.duality_gap_ / (1 + ours.objective_):.1e}",
        "support": f"{len(ours.support_)} {len(theirs.support_)}",
    }


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--only", help="rows whose name holds this text")
    options = parser.parse_args()
    pin(1)
    describe(
        "RBF machines on hard problems, whole fit",
        [
            f"tol={TOL:g}, cache {CACHE:g} MB; ours: exponential margin, sharpness "
            f"{SHARPNESS:g}, or hinge; SVC: hinge",
            f"{options.pairs} alternated pairs, medians",
        ],
    )
    report = Report(options.csv)
    for problem in problems(options.quick):
        if options.only is None or options.only in problem.name:
            report.add(one_race(problem, options))
    report.table()


if __name__ == "__main__":
    main()
