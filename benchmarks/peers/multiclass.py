"""Many classes: joint machines and machines of pairs against those of scikit-learn.

joint    MEDClassifier (one problem with a constraint for every wrong class) against SVC
         (a two-class problem for every pair of classes), sharpness 10, tol 1e-3
pairs    MEDClassifier(multi_class="ovo") against SVC
linear   MEDClassifier(kernel="linear") against LinearSVC(multi_class="crammer_singer")

The joint problems differ from their peers', so equal accuracy here means the tolerance
asked of each and the test accuracy reached; the relative duality gap of the joint
machine is recomputed in double precision from its coefficients, independently of the
package.
"""

import argparse
import warnings

from _race import Report, arguments, describe, pin, race

SHARPNESS, TOL = 10.0, 1e-3


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--data", help="folder with solver_letter, ...")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--kinds", nargs="*", default=["joint", "pairs", "linear"])
    parser.add_argument("--C", nargs="*", type=float, default=[10.0])
    parser.add_argument("--rows", type=int, default=None, help="of the training part")
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore", category=UserWarning)
    describe(
        "Many classes, whole fit",
        [f"sharpness {SHARPNESS:g}, tol {TOL:g}, gamma='scale'"],
    )
    report = Report(options.csv)
    for task in tasks(options):
        for C in options.C:
            for kind in options.kinds:
                report.add(one_race(task, kind, C, options))
    report.table()


def tasks(options):
    """The sets asked for; without a folder those that need none."""
    from _data import crab_groups, digits, letters, small_digits, splice_junctions

    rows = options.rows or (120 if options.quick else None)
    readers = {"digits": small_digits, "crabs": crab_groups}
    if options.data is not None:
        folder = options.data
        readers |= {
            "letter": lambda: letters(folder, binary=False),
            "mnist10k": lambda: digits(folder, binary=False),
            "splice": lambda: splice_junctions(folder),
        }
    for name in options.sets or readers:
        task = readers[name]()
        yield task if rows is None else task.head(rows, len(task.y_test))


def one_race(task, kind, C, options):
    """Row of the table."""
    from sklearn.svm import SVC, LinearSVC

    from maxent import MEDClassifier

    settings = {"sharpness": SHARPNESS, "tol": TOL, "n_jobs": 1}
    if kind == "linear":
        ours = MEDClassifier("linear", C, multi_class="joint", **settings)
        name = "LinearSVC Crammer-Singer"
        theirs = LinearSVC(
            C=C, tol=TOL, multi_class="crammer_singer", max_iter=100_000, random_state=0
        )
    else:
        machine = "ovo" if kind == "pairs" else "joint"
        ours = MEDClassifier("rbf", C, multi_class=machine, **settings)
        theirs, name = SVC(C=C, tol=TOL, cache_size=500), "SVC one-vs-one"
    outcome = race(
        lambda: ours.fit(task.X, task.y),
        lambda: theirs.fit(task.X, task.y),
        options.pairs,
    )
    score = [model.score(task.X_test, task.y_test) for model in (ours, theirs)]
    if kind == "pairs":
        gap = ours.duality_gap_ / (1.0 + ours.objective_)
    else:
        gap = recomputed_gap(ours, task, kind, C)
    return {
        "data": task.name,
        "rows x columns": task.shape,
        "classes": len(ours.classes_),
        "machine": kind,
        "C": f"{C:g}",
        "peer": name,
        **outcome.columns,
        "our gap": f"{gap:.1e}",
        "converged": ours.converged_,
        "test accuracy": f"{score[0]:.4f} {score[1]:.4f}",
    }


def recomputed_gap(model, task, kind, C):
    """Relative duality gap of the joint machine, from its coefficients."""
    import numpy as np
    from _data import gamma_scale
    from _measures import joint_quality, rbf_values

    coefficients = np.zeros((len(task.y), len(model.classes_)))
    coefficients[model.support_] = model.dual_coef_.T
    if kind == "joint":
        gamma = gamma_scale(task.X)
        f = rbf_values(task.X, model.support_, model.dual_coef_.T, gamma)
    else:
        f = task.X @ (task.X.T @ coefficients)
    codes = np.searchsorted(model.classes_, task.y)
    return joint_quality(codes, coefficients, f, model.intercept_, C, SHARPNESS)


if __name__ == "__main__":
    main()
