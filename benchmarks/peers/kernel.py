"""RBF machines: MEDClassifier against SVC and scikit-learn-intelex, one thread.

All solve a soft-margin dual with the same kernel, C and cache to an optimality
violation of 1e-3: ours with the exponential margin prior at sharpness 10 and with the
hinge, the others with the hinge. Whole `fit` against whole `fit`; ours must converge.
The violation and the relative gap reached by either are recomputed in double precision
by one code.

sizes    make_classification, half of the columns informative, four clusters a class,
         5 % of labels flipped: 5000 x 20, 5000 x 200 and 20000 x 20, C of .1 to 1000
hard     30 % of labels flipped, 3 % of 20,000 rows positive, every row four times, 50
         different rows among 20,000, and a checkerboard (C = 100 too)
boards   checkerboards of 10,000 x 2 by gamma and C, and one with 10 % of labels flipped
real     a9a, MNIST digits even/odd, letter halves (from --data)

scikit-learn-intelex gets float32 features, its faster road, and then so do we; its SVC
is imported explicitly, so that scikit-learn itself stays unpatched. SVC gets float64
(it converts whatever it is given).
"""

import argparse
from dataclasses import dataclass

from _race import Report, arguments, describe, pin, race

SHARPNESS, TOL = 10.0, 1e-3
MARGINS = ("exponential", "hinge")
SIZES = ("5000x20", "5000x200", "20000x20")
GROUPS = ("sizes", "hard", "boards", "real")


@dataclass
class Problem:
    """Data and the hyperparameters of one race."""

    task: object
    C: float = 10.0
    margin: str = "exponential"
    gamma: object = "scale"


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--groups", nargs="*", default=GROUPS, choices=GROUPS)
    parser.add_argument("--sizes", nargs="*", default=None, help="ROWSxCOLUMNS ...")
    parser.add_argument("--data", help="folder with solver_a9a, solver_mnist10k, ...")
    parser.add_argument("--only", help="problems whose name holds this text")
    parser.add_argument("--peers", nargs="*", default=["sklearn", "intelex"])
    parser.add_argument("--margins", nargs="*", default=MARGINS, choices=MARGINS)
    parser.add_argument("--C", nargs="*", type=float, default=None)
    parser.add_argument("--cache-size", type=float, default=500.0, help="MB, for both")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="after which two pairs are enough"
    )
    options = parser.parse_args()
    pin(1)

    describe(
        "RBF machines, whole fit",
        [
            f"tol={TOL:g}, cache {options.cache_size:g} MB; ours: exponential margin "
            f"(sharpness {SHARPNESS:g}) and hinge; peers: hinge",
            f"{options.pairs} alternated pairs, fewer (two at least) where they take "
            f"over {options.seconds:g} s; medians; quality recomputed in float64",
        ],
        ["scikit-learn-intelex"],
    )
    report = Report(options.csv)
    for problem in problems(options):
        if options.only is not None and options.only not in problem.task.name:
            continue
        if problem.margin not in options.margins:
            continue
        if options.C is not None and problem.C not in options.C:
            continue
        for peer in options.peers:
            report.add(one_race(problem, peer, options))
    report.table()
    summary(report.rows, options.csv)


def problems(options):
    """The problems of the groups asked for, one after the other."""
    if options.data is None:
        groups = [group for group in options.groups if group != "real"]
    else:
        groups = options.groups
    for group in groups:
        yield from {"sizes": sizes, "hard": hard, "boards": boards, "real": real}[
            group
        ](options)


def sizes(options):
    """Rows and columns by C by margin."""
    from _data import classification

    names = options.sizes
    if names is None:
        names = ["800x20"] if options.quick else SIZES
    for name in names:
        n, d = map(int, name.split("x"))
        task = classification(n, d, test=500 if options.quick else 5000)
        for C in (0.1, 1.0, 10.0, 1000.0):
            for margin in MARGINS:
                yield Problem(task, C, margin)


def hard(options):
    """Labels that are wrong, rare or repeated, and a boundary that bends."""
    import numpy as np
    from _data import Task, classification

    n = 600 if options.quick else 5000
    whole = classification(n, 20, test=n)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(n) < 0.3, -whole.y, whole.y)
    copies = np.tile(np.arange(n // 2), 4)
    tasks = [
        Task("30 % of labels flipped", whole.X, wrong, whole.X_test, whole.y_test),
        Task(
            "rows given four times",
            whole.X[copies],
            whole.y[copies],
            whole.X_test,
            whole.y_test,
        ),
        few_kinds(4 * n),
        few_positives(4 * n),
        checkerboard(2 * n),
    ]
    for task in tasks:
        for C in (10.0,) if task is not tasks[-1] else (10.0, 100.0):
            for margin in MARGINS:
                yield Problem(task, C, margin)


def boards(options):
    """Checkerboards by gamma and C."""
    n = 1200 if options.quick else 10_000
    task = checkerboard(n)
    for gamma in (1.0, 5.0):
        for C in (30.0, 100.0, 300.0, 1000.0):
            for margin in MARGINS:
                yield Problem(task, C, margin, gamma)
    noisy = checkerboard(8001 * n // 10_000, noise=0.1)
    for margin in MARGINS:
        yield Problem(noisy, 100.0, margin)


def real(options):
    """Sets of the folder --data."""
    from _data import REAL

    for name in REAL:
        task = REAL[name](options.data)
        task = task.head(800) if options.quick else task
        for margin in MARGINS:
            yield Problem(task, 10.0, margin)


def few_kinds(n):
    """Fifty different rows of five columns; a tenth of the labels flipped."""
    import numpy as np
    from _data import Task

    rng = np.random.default_rng(0)
    kind = rng.integers(50, size=n + n // 4)
    X = rng.normal(size=(50, 5))[kind]
    y = np.where((X[:, 0] > 0) ^ (rng.random(len(X)) < 0.1), 1.0, -1.0)
    return Task("50 different rows", X[:n], y[:n], X[n:], y[n:])


def few_positives(n):
    """Twenty normal features; 3 % of the rows are positive, about a curved boundary."""
    import numpy as np
    from _data import Task

    X = np.random.default_rng(0).normal(size=(n + n // 4, 20))
    noise = np.random.default_rng(1).normal(size=len(X))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * noise
    y = np.where(score > np.quantile(score, 0.97), 1.0, -1.0)
    return Task("3 % positives", X[:n], y[:n], X[n:], y[n:])


def checkerboard(n, noise=0.0):
    """Labels by the sign of sin(3 x0) cos(3 x1); some training labels flipped."""
    import numpy as np
    from _data import Task

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n // 4, 2))
    y = np.where(np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) > 0, 1.0, -1.0)
    labels = np.where(rng.random(n) < noise, -y[:n], y[:n])
    name = f"checkerboard, {noise:.0%} flipped" if noise else "checkerboard"
    return Task(name, X[:n], labels, X[n:], y[n:])


def one_race(problem, peer, options):
    """Row of the table: times, ratio, and what both solutions are worth."""
    import numpy as np
    from _data import gamma_scale
    from _measures import rbf_machine_quality

    from maxent import MEDClassifier

    task, C = problem.task, problem.C
    if peer == "intelex":
        from sklearnex.svm import SVC

        task = task.as_type(np.float32)
    else:
        from sklearn.svm import SVC

    shared = {
        "C": C,
        "gamma": problem.gamma,
        "tol": TOL,
        "cache_size": options.cache_size,
    }
    ours = MEDClassifier(margin=problem.margin, sharpness=SHARPNESS, n_jobs=1, **shared)
    theirs = SVC(**shared)
    few = task.head(300)  # libraries load and set themselves up untimed
    ours.fit(few.X, few.y)
    theirs.fit(few.X, few.y)
    outcome = race(
        lambda: ours.fit(task.X, task.y),
        lambda: theirs.fit(task.X, task.y),
        options.pairs,
        options.seconds,
    )
    gamma = gamma_scale(task.X) if problem.gamma == "scale" else problem.gamma
    sharpness = None if problem.margin == "hinge" else SHARPNESS
    quality = [
        rbf_machine_quality(ours, task.X, task.y, C, gamma, sharpness).columns,
        rbf_machine_quality(theirs, task.X, task.y, C, gamma).columns,
    ]
    score = [model.score(task.X_test, task.y_test) for model in (ours, theirs)]
    return {
        "data": task.name,
        "rows x columns": task.shape,
        "margin": problem.margin,
        "C": f"{C:g}",
        "gamma": str(problem.gamma),
        "peer": {"sklearn": "SVC", "intelex": "intelex SVC"}[peer],
        **outcome.columns,
        "converged": str(ours.converged_),
        "violation": f"{quality[0][0]} {quality[1][0]}",
        "rel. gap": f"{quality[0][1]} {quality[1][1]}",
        "test accuracy": f"{score[0]:.4f} {score[1]:.4f}",
        "support": f"{len(ours.support_)} {len(theirs.support_)}",
    }


def summary(rows, csv_path):
    """Geometric mean and largest ratio of CPU times, by peer; NAME_summary.csv too."""
    import numpy as np

    report = Report(None if csv_path is None else f"{csv_path[:-4]}_summary.csv")
    for peer in dict.fromkeys(row["peer"] for row in rows):
        own = [row for row in rows if row["peer"] == peer]
        ratios = np.array([float(row["cpu ratio"]) for row in own])
        worst = own[int(ratios.argmax())]
        report.add(
            {
                "peer": peer,
                "races": len(own),
                "ours converged": sum(row["converged"] == "True" for row in own),
                "geometric mean of CPU ratios": f"{np.exp(np.log(ratios).mean()):.3f}",
                "least": f"{ratios.min():.3f}",
                "largest": f"{ratios.max():.3f}",
                "at": f"{worst['data']}, {worst['margin']}, C = {worst['C']}",
            }
        )


if __name__ == "__main__":
    main()
