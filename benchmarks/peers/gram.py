"""RBF Gram matrices at one and two threads, against scikit-learn's rbf_kernel.

The symmetric matrix in single precision, as the working-set solver holds it, and in
double precision; from the rows to the filled matrix, first touch of its memory
included. The speed-up of two threads over one is believed only if the CPU time over the
wall time of the two-thread runs is near two: on a busy machine it is not, and the row
says so.
"""

import argparse
import statistics

from _race import Report, arguments, describe, pin, race


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--sizes", nargs="*", default=None, help="ROWSxCOLUMNS ...")
    options = parser.parse_args()
    pin(2)

    import numpy as np
    from _data import matrices
    from sklearn.metrics.pairwise import rbf_kernel
    from threadpoolctl import threadpool_limits

    describe(
        "RBF Gram matrices",
        ["one and two threads; error: largest difference from rbf_kernel in float64"],
    )
    sizes = options.sizes
    if sizes is None:
        sizes = ["1500x20"] if options.quick else ["5000x20", "5000x200", "5000x768"]
    report = Report(options.csv)
    for size in sizes:
        n, d = map(int, size.split("x"))
        X = np.random.default_rng(0).normal(size=(n, d))
        gamma = 1.0 / d
        exact = rbf_kernel(X, gamma=gamma)

        def ours(threads, dtype, X=X, gamma=gamma):
            return matrices.rbf_gram(X, gamma, dtype, threads)

        def peer(threads, dtype, X=X, gamma=gamma):
            with threadpool_limits(threads):
                return rbf_kernel(X.astype(dtype, copy=False), gamma=gamma)

        for dtype in ("float32", "float64"):
            common = {"data": size, "type": dtype}
            for threads in (1, 2):
                outcome = race(
                    lambda threads=threads, dtype=dtype: ours(threads, dtype),
                    lambda threads=threads, dtype=dtype: peer(threads, dtype),
                    options.pairs,
                )
                error = np.abs(outcome.ours.result - exact).max()
                report.add(
                    {
                        **common,
                        "race": f"{threads} thread(s), peer rbf_kernel",
                        **outcome.columns,
                        "error": f"{error:.1e}",
                    }
                )
            outcome = race(
                lambda dtype=dtype: ours(2, dtype),
                lambda dtype=dtype: ours(1, dtype),
                options.pairs,
            )
            share = statistics.median(outcome.ours.cpu_share)
            name = "2 threads, peer 1 thread (ours)"
            if share < 1.7:
                name += f": BUSY, cpu/wall {share:.2f}"
            report.add({**common, "race": name, **outcome.columns, "error": ""})
    report.table()


if __name__ == "__main__":
    main()
