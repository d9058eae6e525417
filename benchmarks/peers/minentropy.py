"""Min-entropy models: the margin problem against LinearSVC, motif passes and fits.

qp         the hinge problem of a motif: 20 000 rows of 48 letter indicators and word
           counts, weight C/n = 2 a row, no intercept. Rows are those of one window
           (15 of 48 columns are not zero), or those of all windows under the weights
           of order 1/4 at random parameters, as the learner has them (all columns).
           Ours to a relative gap of 1e-8; LinearSVC gets the fewest passes whose
           objective is within 1e-4 of the optimum, or the most that are tried.
pass       scores of all places, weights of the Renyi entropy, and their sums of
           features: 20 000 sequences of 36 letters, width 8, words of two.
fit        one fit to these sequences, one start, by order: seconds, and the peak
           memory of the process so far.
"""

import argparse
import resource
import time
import warnings

import numpy as np
from _race import Report, arguments, describe, pin, race

RATE = 2.0
PASSES = (100, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000, 10_000)


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = ["qp", "pass", "fit"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    pin(options.threads)
    warnings.filterwarnings("ignore")
    describe("Min-entropy models", [f"{options.pairs} alternated pairs"])
    for part in options.parts:
        report = Report(options.csv)
        {"qp": margin_problem, "pass": passes, "fit": fits}[part](options, report)
        report.table()


def indicators(n, seed=0):
    """Rows (n, 48) of a window of eight letters, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=(n, 8))
    letters = np.eye(4)[codes].reshape(n, 32)
    words = np.eye(16)[4 * codes[:, :-1] + codes[:, 1:]].sum(axis=1)
    X = np.hstack([letters, -words])
    score = X @ rng.standard_normal(48)
    y = np.where(score + score.std() * rng.standard_normal(n) > score.mean(), 1.0, -1.0)
    return X, y


def hinge_objective(w, X, y):
    """|w|^2 / 2 + RATE sum of the hinges."""
    return 0.5 * w @ w + RATE * np.maximum(1.0 - y * (X @ w), 0.0).sum()


def pooled(n, seed=0):
    """Rows (n, 48) of all windows under Renyi weights, and labels."""
    from maxent.datasets import make_motif_occupancy

    X, y, _ = make_motif_occupancy(n, random_state=seed)
    features = motif_features(X, 0.0)
    w = 0.3 * np.random.default_rng(seed).standard_normal(features.d)
    G = features.renyi(w, np.full(2, 0.25))[1][:, 0]
    return np.ascontiguousarray(G), 2.0 * y - 1.0


def margin_problem(options, report):
    """Races of the interior point with coordinate descent."""
    n = 2000 if options.quick else 20_000
    for name, data in (("one window", indicators), ("all windows", pooled)):
        X, y = data(n)
        report.add({"rows": name, **hinge_race(X, y, options)})


def hinge_race(X, y, options):
    """Cells of the race on these rows."""
    from sklearn.svm import LinearSVC

    from maxent.minentropy import solve_margin_qp

    D, ell = y[:, None] * X, np.ones(len(y))

    def ours():
        return solve_margin_qp(D, ell, RATE, tol=1e-8)

    def peer(passes):
        machine = LinearSVC(
            C=RATE, loss="hinge", fit_intercept=False, tol=1e-12, max_iter=passes
        )
        return machine.fit(X, y).coef_[0]

    result = ours()
    best = hinge_objective(result.w, X, y)
    for count in PASSES:
        excess = hinge_objective(peer(count), X, y) / best - 1.0
        print(f"    LinearSVC, {count} passes: excess {excess:.1e}", flush=True)
        if excess <= 1e-4:
            break
    outcome = race(ours, lambda: peer(count), options.pairs)
    used = [f"{np.median(c.cpu_seconds):.3g}" for c in (outcome.ours, outcome.peer)]
    return {
        "gap / excess": f"{result.gap / result.objective:.1e} / {excess:.1e}",
        "steps": f"{result.n_iter} / {count}",
        "cpu s": " / ".join(used),
        **outcome.columns,
    }


def sequences(options):
    """Sequences of 36 letters and labels."""
    from maxent.datasets import make_motif_occupancy

    return make_motif_occupancy(1000 if options.quick else 20_000, random_state=0)[:2]


def motif_features(X, intercept):
    """What the learners take: width 8, words of two letters."""
    from maxent._inputs.sequences import symbol_sequences
    from maxent.minentropy.motifs import MotifFeatures

    found = symbol_sequences(X, alphabet="ACGT", missing="N")
    return MotifFeatures(found, 8, 4, 2, None, intercept)


def passes(options, report):
    """Seconds of one pass over all places, the median of `pairs` and two more."""
    X, _ = sequences(options)
    features = motif_features(X, 1.0)
    w = 0.1 * np.random.default_rng(0).standard_normal(features.d)
    for alpha in (0.25, 8.0, np.inf):
        orders, wall, cpu = np.full(2, alpha), [], []
        for _ in range(options.pairs + 2):
            start, used = time.perf_counter(), time.process_time()
            features.renyi(w, orders)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
        row = {"pass over": f"{len(X)} sequences", "alpha": f"{alpha:g}"}
        row |= {"wall ms": f"{1e3 * np.median(wall):.1f}"}
        row |= {"least wall ms": f"{1e3 * min(wall):.1f}"}
        report.add({**row, "cpu ms": f"{1e3 * np.median(cpu):.1f}"})


def fits(options, report):
    """One fit by order, from one start."""
    from maxent.minentropy import M3EMotifClassifier

    X, y = sequences(options)
    for alpha in (0.25, 8.0, np.inf):
        model = M3EMotifClassifier(
            *(8,),
            **{"alpha": alpha, "C": 0.2 * len(X), "init": "random", "n_init": 1},
            random_state=0,
        )
        start, used = time.perf_counter(), time.process_time()
        model.fit(X, y)
        wall, cpu = time.perf_counter() - start, time.process_time() - used
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row = {"fit of": f"{len(X)} sequences", "alpha": f"{alpha:g}"}
        row |= {"wall s": f"{wall:.1f}", "cpu s": f"{cpu:.1f}"}
        row |= {"steps": model.n_iter_, "stationarity": f"{model.stationarity_:.1e}"}
        report.add({**row, "peak GiB": f"{memory:.2f}"})


if __name__ == "__main__":
    main()
