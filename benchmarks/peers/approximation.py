"""Kernel machines on many rows: Nyström features inside the estimator or before it.

Each contestant runs in a process of its own, which makes the data, fits, and prints
time, peak memory and test accuracy:

    nystroem     MEDClassifier(approximation="nystroem")
    pipeline64   make_pipeline(Nystroem, MEDClassifier("linear")), double precision
    pipeline32   the same in single precision
    exact        MEDClassifier on the first --exact-rows rows

Rows are 20 independent Gaussians; the boundary bends smoothly in nine of them, and a
tenth of the training labels is flipped. Labels of the test rows are clean.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from _race import Report, describe, pin
from memory import peak

CONTESTANTS = ("nystroem", "pipeline64", "pipeline32", "exact")


def main():
    """Run the contestants asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try out")
    parser.add_argument("--csv", help="append the rows of the table to this file")
    parser.add_argument("--rows", type=int, default=None, help="default 1000000")
    parser.add_argument("--exact-rows", type=int, default=None, help="default 20000")
    parser.add_argument("--components", type=int, nargs="*", default=[300])
    parser.add_argument("--gamma", type=float, default=0.02)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--who", nargs="*", default=CONTESTANTS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rows = options.rows or (20_000 if options.quick else 1_000_000)
    options.exact_rows = options.exact_rows or (2_000 if options.quick else 20_000)
    pin(options.threads)
    if options.child:
        print(json.dumps(fit(options.child, options.components[0], options)))
        return

    describe(
        "Kernel machines on many rows",
        [
            f"{options.rows} x 20, RBF kernel, gamma={options.gamma:g}, "
            f"C={options.C:g}, tol=1e-3; exact fit on {options.exact_rows} rows",
            "a tenth of the training labels flipped; 50000 test rows with clean labels",
        ],
    )
    report = Report(options.csv)
    for who in options.who:
        for m in [0] if who == "exact" else options.components:
            report.add(in_child(who, m))
    report.table()


def in_child(who, m):
    """Row of the table, from a process of its own."""
    more = ["--child", who, "--components", str(m)]
    done = subprocess.run([*sys.orig_argv, *more], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(n, seed, flipped):
    """Features and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    score = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5
    score += 0.3 * X[:, 4:9].sum(axis=1)
    return X, (score > 0) ^ (rng.random(n) < flipped)


def machine(who, m, options):
    """The estimator of a contestant."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    from maxent import MEDClassifier

    if who == "exact":
        return MEDClassifier(C=options.C, gamma=options.gamma)
    if who == "nystroem":
        return MEDClassifier(
            C=options.C,
            gamma=options.gamma,
            approximation="nystroem",
            n_components=m,
            random_state=0,
        )
    features = Nystroem(gamma=options.gamma, n_components=m, random_state=0)
    return make_pipeline(features, MEDClassifier("linear", C=options.C))


def fit(who, m, options):
    """Fit one contestant; what it took."""
    n = options.exact_rows if who == "exact" else options.rows
    X, y = rows_of(n, 0, 0.1)
    X_test, y_test = rows_of(50_000, 1, 0.0)
    if who == "pipeline32":
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    model = machine(who, m, options)
    few = slice(500)
    machine(who, min(m, 50), options).fit(X[few], y[few])  # libraries load untimed
    cpu, start = time.process_time(), time.perf_counter()
    model.fit(X, y)
    wall = time.perf_counter() - start
    cpu = time.process_time() - cpu
    start = time.perf_counter()
    accuracy = model.score(X_test, y_test)
    predict = time.perf_counter() - start
    last = model[-1] if who.startswith("pipeline") else model
    return {
        "contestant": who,
        "rows": n,
        "components": m or "",
        "fit s": f"{wall:.1f}",
        "cpu s": f"{cpu:.1f}",
        "peak MB": f"{peak():.0f}",
        "predict 50000 s": f"{predict:.2f}",
        "test accuracy": f"{accuracy:.4f}",
        "rel. gap": f"{last.duality_gap_ / (1 + last.objective_):.1e}",
        **excess_of(model, who),
    }


def excess_of(model, who):
    """Bound and estimate of the excess over the exact optimum, shares of the value."""
    if who != "nystroem":
        return {"excess at most": "", "estimate": ""}
    value = model.objective_ + model.duality_gap_
    estimate, error = model.approximation_gap_estimate_ / value
    return {
        "excess at most": f"{model.approximation_gap_ / value:.3f}",
        "estimate": f"{estimate:.3f} +- {error:.3f}",
    }


if __name__ == "__main__":
    main()
