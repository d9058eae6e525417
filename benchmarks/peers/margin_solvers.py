"""The solvers of min-entropy models against one another: objective and time.

Fifty problems of 40 samples, in turn bags of two classes (one-sided), bags of three
(blocks) and planted motifs, with C/n of 0.1, 1 and 10. Every solver starts from the
same random weights; at each order the objective reached is compared with the least of
the solvers, and CPU seconds are added up; the tolerance is 1e-3. A second table
compares starts at infinite order: random ones, the path over the orders, and both.
"""

import argparse
import time
import warnings

import numpy as np
from _race import Report, arguments, describe, pin

ORDERS = {
    0.25: ("prox", "ball", "cccp"),
    1.0: ("prox", "ball", "cccp"),
    8.0: ("prox", "ball", "cccp"),
    64.0: ("prox", "ball", "cccp"),
    np.inf: ("cccp", "latent_svm"),
}
STARTS = {"one random": ("random", 1), "four random": ("random", 4)}
STARTS |= {"path": ("path", 1), "path and four random": ("auto", 4)}
RATES = (0.1, 1.0, 10.0)
TOL = 1e-3


def main():
    """Run both tables."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--problems", type=int, default=50)
    parts = ["solvers", "starts"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore")
    number = 3 if options.quick else options.problems
    describe("Solvers of min-entropy models", [f"{number} problems, one thread"])
    if "solvers" in options.parts:
        report = Report(options.csv)
        for alpha, names in ORDERS.items():
            solvers(alpha, names, number, report)
        report.table()
    if "starts" in options.parts:
        report = Report(options.csv)
        starts(number, report)
        report.table()


def problem(number):
    """Data and a maker of estimators of problem `number`."""
    from maxent.datasets import make_planted_motifs
    from maxent.minentropy import M3EClassifier, M3EMotifClassifier

    rng = np.random.default_rng(number)
    n = 40
    C = RATES[number // 3 % len(RATES)] * n
    if number % 3 == 2:
        X, y, *_ = make_planted_motifs(n, 14, 4, random_state=rng)
        return X, y, lambda **given: M3EMotifClassifier(4, 0, C=C, **given), 17
    K = 2 + number % 3
    y = np.arange(n) % K
    X = rng.standard_normal((n, 5, 3))
    X[np.arange(n), rng.integers(5, size=n), y] += 3.0
    d = 4 if K == 2 else 4 * K
    return X, y, lambda **given: M3EClassifier(C=C, **given), d


def solvers(alpha, names, number, report):
    """Line of every solver at one order: excess over the best one, steps, seconds."""
    reached, used, steps = (np.empty((number, len(names))) for _ in range(3))
    fine = np.zeros(len(names), dtype=int)
    for k in range(number):
        X, y, make, d = problem(k)
        start = np.random.default_rng(1000 + k).standard_normal(d)
        for j, solver in enumerate(names):
            model = make(alpha=alpha, solver=solver, init=start, tol=TOL)
            clock = time.process_time()
            model.fit(X, y)
            used[k, j] = time.process_time() - clock
            given = [f for name, f, _ in model.restarts_ if name == "given"]
            reached[k, j], steps[k, j] = given[0], model.n_iter_
            fine[j] += model.converged_
    excess = reached / reached.min(axis=1, keepdims=True) - 1.0
    for j, solver in enumerate(names):
        row = {"alpha": f"{alpha:g}", "solver": solver}
        row |= {"within 0.1 % of the best": f"{(excess[:, j] <= 1e-3).sum()}"}
        row |= {"mean excess %": f"{100 * excess[:, j].mean():.2f}"}
        row |= {"worst %": f"{100 * excess[:, j].max():.1f}"}
        row |= {"converged": fine[j], "steps": f"{np.median(steps[:, j]):.0f}"}
        report.add({**row, "cpu s in all": f"{used[:, j].sum():.1f}"})


def starts(number, report):
    """Line of every start at infinite order."""
    reached, used = (np.empty((number, len(STARTS))) for _ in range(2))
    for k in range(number):
        X, y, make, _ = problem(k)
        for j, (init, count) in enumerate(STARTS.values()):
            model = make(alpha=np.inf, init=init, n_init=count, random_state=k, tol=TOL)
            clock = time.process_time()
            model.fit(X, y)
            used[k, j] = time.process_time() - clock
            reached[k, j] = model.objective_
    excess = reached / reached.min(axis=1, keepdims=True) - 1.0
    for j, name in enumerate(STARTS):
        row = {"start": name, "best": f"{(excess[:, j] <= 1e-3).sum()}"}
        row |= {"mean excess %": f"{100 * excess[:, j].mean():.2f}"}
        row |= {"worst %": f"{100 * excess[:, j].max():.1f}"}
        report.add({**row, "cpu s in all": f"{used[:, j].sum():.1f}"})


if __name__ == "__main__":
    main()
