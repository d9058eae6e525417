"""Peak memory and time of an RBF fit whose kernel matrix does not fit into its cache.

60000 rows, 50 features, cache_size=500 MB: the float32 matrix would take 14400 MB. The
fit runs in a process of its own; its peak resident memory is what the operating system
recorded, before the fit (libraries and data) and after it.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from _race import Report, describe, pin


def main():
    """Run one fit a library in a child process and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try out")
    parser.add_argument("--csv", help="append the rows of the table to this file")
    parser.add_argument("--size", default=None, help="ROWSxCOLUMNS, default 60000x50")
    parser.add_argument("--cache-size", type=float, default=None, help="MB, for all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--peer", action="store_true", help="run scikit-learn's SVC too"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.size = options.size or ("2500x50" if options.quick else "60000x50")
    options.cache_size = options.cache_size or (5.0 if options.quick else 500.0)
    pin(options.threads)
    if options.child:
        child(options)
        return

    n, d = map(int, options.size.split("x"))
    describe(
        "Peak memory of one fit",
        [
            f"make_classification {n} x {d} as in kernel.py, C=10, tol=1e-3",
            f"cache_size={options.cache_size:g} MB; all of K in float32: "
            f"{4e-6 * n * n:.0f} MB; data in float64: {8e-6 * n * d:.0f} MB",
        ],
    )
    report = Report(options.csv)
    for who in ("maxent", "SVC") if options.peer else ("maxent",):
        done = subprocess.run(
            [*sys.orig_argv, "--child", who], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        report.add(json.loads(done.stdout.splitlines()[-1]))
    report.table()


def peak():
    """Peak resident memory of this process so far, MB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 2**20 if sys.platform == "darwin" else used * 1024 / 1e6


def child(options):
    """Fit and print what it took as JSON."""
    from _data import classification
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    n, d = map(int, options.size.split("x"))
    task = classification(n, d, test=min(n, 5000))
    few = task.head(300)
    if options.child == "SVC":
        model = SVC(C=10.0, tol=1e-3, cache_size=options.cache_size)
    else:
        model = MEDClassifier(C=10.0, tol=1e-3, cache_size=options.cache_size)
    model.fit(few.X, few.y)  # libraries load before the first reading
    before = peak()
    cpu, start = time.process_time(), time.perf_counter()
    model.fit(task.X, task.y)
    wall = time.perf_counter() - start
    cpu = time.process_time() - cpu
    after = peak()
    converged = getattr(model, "converged_", getattr(model, "fit_status_", None) == 0)
    print(
        json.dumps(
            {
                "library": options.child,
                "fit s": f"{wall:.2f}",
                "cpu/wall": f"{cpu / wall:.2f}",
                "peak before fit MB": f"{before:.0f}",
                "peak MB": f"{after:.0f}",
                "converged": bool(converged),
                "gap": f"{getattr(model, 'duality_gap_', float('nan')):.2e}",
                "support": len(model.support_),
                "test accuracy": f"{model.score(task.X_test, task.y_test):.4f}",
            }
        )
    )


if __name__ == "__main__":
    main()
