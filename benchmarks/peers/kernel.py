"""RBF machines: MEDClassifier against SVC and scikit-learn-intelex, one thread.

Both solve a soft-margin dual with C = 10 to an optimality violation of 1e-3: ours with
the exponential margin prior at sharpness 10, the others with the hinge. Whole `fit`
against whole `fit`. The violation and the relative gap reached by either are
recomputed in double precision by one code.

scikit-learn-intelex gets float32 features, its faster road, and then so do we; its SVC
is imported explicitly, so that scikit-learn itself stays unpatched. SVC gets float64
(it converts whatever it is given).
"""

import argparse

from _race import Report, arguments, describe, pin, race

C, SHARPNESS, TOL = 10.0, 10.0, 1e-3
SIZES = ("5000x20", "5000x200", "20000x20")


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--sizes", nargs="*", default=None, help="ROWSxCOLUMNS ...")
    parser.add_argument("--data", help="folder with solver_a9a, solver_mnist10k, ...")
    parser.add_argument("--sets", nargs="*", default=None, help="real sets, by name")
    parser.add_argument("--peers", nargs="*", default=["sklearn", "intelex"])
    parser.add_argument("--cache-size", type=float, default=500.0, help="MB, for both")
    options = parser.parse_args()
    pin(1)

    describe(
        "RBF machines, whole fit",
        [
            f"C={C:g}, tol={TOL:g}, gamma='scale', cache {options.cache_size:g} MB; "
            f"ours: exponential margin, sharpness {SHARPNESS:g}; peers: hinge",
            "make_classification: half of the columns informative, 4 clusters a class, "
            "5 % of labels flipped; 5000 test rows",
            f"{options.pairs} alternated pairs, medians; quality recomputed in float64",
        ],
        ["scikit-learn-intelex"],
    )
    report = Report(options.csv)
    for task in tasks(options):
        for peer in options.peers:
            report.add(one_race(task, peer, options))
    report.table()


def tasks(options):
    """The tasks asked for, one after the other."""
    from _data import REAL, classification

    sizes = options.sizes
    if sizes is None:
        sizes = ["800x20"] if options.quick else SIZES
    for size in sizes:
        n, d = map(int, size.split("x"))
        yield classification(n, d, test=500 if options.quick else 5000)
    if options.data is None:
        return
    for name in REAL if options.sets is None else options.sets:
        task = REAL[name](options.data)
        yield task.head(800) if options.quick else task


def one_race(task, peer, options):
    """Row of the table: times, ratio, and what both solutions are worth."""
    import numpy as np
    from _data import gamma_scale
    from _measures import rbf_machine_quality

    from maxent import MEDClassifier

    if peer == "intelex":
        from sklearnex.svm import SVC

        task = task.as_type(np.float32)
    else:
        from sklearn.svm import SVC

    ours = MEDClassifier(
        C=C, sharpness=SHARPNESS, tol=TOL, cache_size=options.cache_size, n_jobs=1
    )
    theirs = SVC(C=C, tol=TOL, cache_size=options.cache_size)
    few = task.head(300)  # libraries load and set themselves up untimed
    ours.fit(few.X, few.y)
    theirs.fit(few.X, few.y)
    outcome = race(
        lambda: ours.fit(task.X, task.y),
        lambda: theirs.fit(task.X, task.y),
        options.pairs,
    )
    gamma = gamma_scale(task.X)
    quality = [
        rbf_machine_quality(ours, task.X, task.y, C, gamma, SHARPNESS).columns,
        rbf_machine_quality(theirs, task.X, task.y, C, gamma).columns,
    ]
    score = [model.score(task.X_test, task.y_test) for model in (ours, theirs)]
    return {
        "data": task.name,
        "rows x columns": task.shape,
        "peer": peer,
        **outcome.columns,
        "violation": f"{quality[0][0]} {quality[1][0]}",
        "rel. gap": f"{quality[0][1]} {quality[1][1]}",
        "test accuracy": f"{score[0]:.4f} {score[1]:.4f}",
        "support": f"{len(ours.support_)} {len(theirs.support_)}",
    }


if __name__ == "__main__":
    main()
