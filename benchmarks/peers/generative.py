"""Generative machines: seconds, memory against rows, and what a gradient costs.

fit      whole fits of MEDGaussianClassifier and of MEDOutlierDetector (product of
         multinomials) at their default tolerance 1e-8, with the relative gap reached,
         and predictions. Beside them, for orientation and not as a race, what the
         plain models take: QuadraticDiscriminantAnalysis and CategoricalNB solve an
         easier problem in closed form.
memory   peak resident memory of a process that fits n rows, for n doubling; linear
         growth shows as a constant number of bytes a row.
passes   one evaluation of value and gradient of a Gaussian block against the matrix
         products that it contains, on the same arrays: above them there is little.
         And the functions in which a large fit spends its time.

Data: `suite.data`.
"""

import argparse
import cProfile
import json
import pstats
import resource
import subprocess
import sys
import warnings

from _race import Clock, Report, arguments, describe, pin


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = ["fit", "memory", "passes"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin(1)
    if options.child:
        child(options.child)
        return
    warnings.filterwarnings("ignore", category=UserWarning)
    for part in options.parts:
        {"fit": fits, "memory": memory, "passes": passes}[part](options)


def timed(call, repeats):
    """Clock after this many runs."""
    clock = Clock()
    for _ in range(repeats):
        clock.run(call)
    return clock


# -- fits ----------------------------------------------------------------------------
def fits(options):
    """Fits and predictions, with the plain models."""
    import _data  # noqa: F401  (finds the suite)
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import CategoricalNB
    from suite.data import category_tables, gaussian_classes, letters

    from maxent import (
        MEDBayesNetClassifier,
        MEDGaussianClassifier,
        MEDOutlierDetector,
    )

    describe(
        "Generative machines, whole fits and predictions",
        [
            "medians of wall times, one thread, tol 1e-8 relative",
            "plain: the same model fitted in closed form, an easier problem",
        ],
    )
    sizes = [(80, 5), (300, 10)] if options.quick else [(80, 5), (1000, 10)]
    sizes += [] if options.quick else [(20000, 10)]
    report = Report(options.csv)
    for n, d in sizes:
        X, y, X_test, y_test = gaussian_classes(n, d)
        report.add(
            row(
                f"Gaussians, {n} x {d}",
                lambda: MEDGaussianClassifier(),
                lambda: QuadraticDiscriminantAnalysis(),
                (X, y, X_test, y_test),
                options.pairs if n < 10000 else 1,
            )
        )
    n = 110 if options.quick else 990
    report.add(
        row(
            f"Gaussians, {n} x 10, 11 classes",
            lambda: MEDGaussianClassifier(),
            lambda: QuadraticDiscriminantAnalysis(reg_param=0.01),
            gaussian_classes(n, 10, classes=11),
            options.pairs,
        )
    )
    n = 100 if options.quick else 683
    report.add(
        row(
            f"Bayes nets, {n} x 35, 19 classes",
            lambda: MEDBayesNetClassifier(),
            lambda: CategoricalNB(min_categories=3),
            category_tables(n, 35, classes=19),
            options.pairs,
        )
    )
    n = 700 if options.quick else 7000
    X, y, X_test, y_test = letters(2 * n, 25)
    own = X[y == 1][:n]
    report.add(
        row(
            f"outliers, {n} x 25 letters",
            lambda: MEDOutlierDetector("multinomial", quantile=0.2),
            lambda: CategoricalNB(min_categories=4),
            (own, None, X_test, None),
            options.pairs,
        )
    )
    report.table()


def row(what, ours, plain, data, repeats):
    """One row of the table."""
    import numpy as np

    X, y, X_test, y_test = data
    clock = timed(lambda: ours().fit(X, y), repeats)
    model = clock.result
    labels = np.zeros(len(X)) if y is None else y
    simple = timed(lambda: plain().fit(X, labels), repeats)
    predict = timed(lambda: model.predict(X_test), repeats)
    accuracy = "" if y_test is None else f"{model.score(X_test, y_test):.4f} "
    if y_test is not None:
        accuracy += f"{simple.result.score(X_test, y_test):.4f}"
    return {
        "what": what,
        "fit s": f"{clock.median:.4g}",
        "plain s": f"{simple.median:.4g}",
        f"predict {len(X_test)} rows, s": f"{predict.median:.3g}",
        "steps": model.n_iter_,
        "relative gap": f"{model.duality_gap_ / (1 + model.objective_):.1e}",
        "with multipliers": len(model.support_),
        "test accuracy": accuracy,
        "cpu/wall": f"{min(clock.cpu_share):.2f}",
    }


# -- memory --------------------------------------------------------------------------
def memory(options):
    """Peak memory of fits of growing size, each in a process of its own."""
    describe(
        "Memory of MEDGaussianClassifier against rows",
        ["10 columns; peak resident memory of a process, before the fit and after it"],
    )
    sizes = [1000, 2000, 4000] if options.quick else [5000, 10000, 20000, 40000]
    report = Report(options.csv)
    for n in sizes:
        command = [*sys.orig_argv, "--child", str(n)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        report.add(json.loads(done.stdout.splitlines()[-1]))
    report.table()


def child(n):
    """Fit n rows and print what it took."""
    import _data  # noqa: F401  (finds the suite)
    from suite.data import gaussian_classes

    from maxent import MEDGaussianClassifier

    MEDGaussianClassifier().fit(*gaussian_classes(200, 10)[:2])  # libraries loaded
    X, y, *_ = gaussian_classes(n, 10)
    before = peak()
    clock = timed(lambda: MEDGaussianClassifier().fit(X, y), 1)
    used = peak() - before
    print(
        json.dumps(
            {
                "rows": n,
                "fit s": f"{clock.median:.4g}",
                "MB before": f"{before:.0f}",
                "MB more": f"{used:.0f}",
                "kB a row": f"{1e3 * used / n:.2f}",
                "steps": clock.result.n_iter_,
                "converged": clock.result.converged_,
            }
        )
    )


def peak():
    """Peak resident memory of this process so far, MB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1e6 if sys.platform == "darwin" else 1e3)


# -- passes --------------------------------------------------------------------------
def passes(options):
    """A gradient against its matrix products, and the profile of a fit."""
    import _data  # noqa: F401  (finds the suite)
    import numpy as np
    from scipy.linalg.lapack import dpotrf, dtrtrs
    from suite.data import gaussian_classes

    from maxent import MEDGaussianClassifier
    from maxent.families import NormalInverseWishart

    describe(
        "One value and gradient of a Gaussian block",
        [
            "products: R' diag(a) R by one product of matrices, and the triangular "
            "solve for all rows, on the same arrays",
        ],
    )
    report = Report(options.csv)
    for d in (10, 50):
        n = 2000 if options.quick else 20000
        X, *_ = gaussian_classes(n, d, test=10)
        block = NormalInverseWishart.weak(X).block(X)
        weights = np.random.default_rng(0).random((50, n))
        R = X - X.mean(axis=0)
        lower = dpotrf(R.T @ R, lower=1)[0]

        def gradients(block=block, weights=weights):
            for a in weights:
                block.log_partition(a)
                block.mean(a)

        def products(R=R, lower=lower, weights=weights):
            for a in weights:
                (R.T * a) @ R
                dtrtrs(lower, R.T, lower=1)

        whole, part = (timed(call, options.pairs) for call in (gradients, products))
        report.add(
            {
                "rows x columns": f"{n} x {d}",
                "gradient ms": f"{1e3 * whole.median / 50:.3g}",
                "products ms": f"{1e3 * part.median / 50:.3g}",
                "share": f"{part.median / whole.median:.2f}",
            }
        )
    report.table()
    X, y, *_ = gaussian_classes(500 if options.quick else 20000, 10, test=10)
    profile = cProfile.Profile()
    profile.runcall(MEDGaussianClassifier().fit, X, y)
    print("functions of one fit by their own time")
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
