"""Many classes: our joint machine against one-vs-one and Crammer-Singer machines.

rbf      MEDClassifier (one problem with a constraint for every wrong class) against SVC
         (a two-class problem for every pair of classes), C = 10, sharpness 10, tol 1e-3
linear   MEDClassifier(kernel="linear") against LinearSVC(multi_class="crammer_singer")

The problems differ, so equal accuracy here means the tolerance asked of each and the
test accuracy reached; the relative duality gap of the joint machine is recomputed in
double precision from its coefficients, independently of the package.
"""

import argparse
import warnings

from _race import Report, arguments, describe, pin, race

C, SHARPNESS, TOL = 10.0, 10.0, 1e-3


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--data", help="folder with solver_letter, solver_mnist10k")
    parser.add_argument("--sets", nargs="*", default=["letter", "mnist10k"])
    parser.add_argument("--kernels", nargs="*", default=["rbf", "linear"])
    parser.add_argument("--rows", type=int, default=None, help="of the training part")
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore", category=UserWarning)
    describe(
        "Many classes, whole fit",
        [f"C={C:g}, sharpness {SHARPNESS:g}, tol {TOL:g}, gamma='scale'"],
    )
    report = Report(options.csv)
    for task in tasks(options):
        for kernel in options.kernels:
            report.add(one_race(task, kernel, options))
    report.table()


def tasks(options):
    """The sets asked for; without a folder the digits that scikit-learn carries."""
    rows = options.rows or (120 if options.quick else None)
    if options.data is None:
        from _data import Task
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        X = X / 16.0
        sets = [Task("digits 8 x 8", X[:1000], y[:1000], X[1000:], y[1000:])]
    else:
        from _data import digits, letters

        readers = {"letter": letters, "mnist10k": digits}
        sets = (readers[name](options.data, binary=False) for name in options.sets)
    for task in sets:
        yield task if rows is None else task.head(rows, len(task.y_test))


def one_race(task, kernel, options):
    """Row of the table."""
    from sklearn.svm import SVC, LinearSVC

    from maxent import MEDClassifier

    ours = MEDClassifier(kernel, C, sharpness=SHARPNESS, tol=TOL, n_jobs=1)
    if kernel == "rbf":
        name = "SVC one-vs-one"
        theirs = SVC(C=C, tol=TOL, cache_size=500)
    else:
        name = "LinearSVC Crammer-Singer"
        theirs = LinearSVC(
            C=C, tol=TOL, multi_class="crammer_singer", max_iter=100_000, random_state=0
        )
    outcome = race(
        lambda: ours.fit(task.X, task.y),
        lambda: theirs.fit(task.X, task.y),
        options.pairs,
    )
    score = [model.score(task.X_test, task.y_test) for model in (ours, theirs)]
    return {
        "data": task.name,
        "rows x columns": task.shape,
        "classes": len(ours.classes_),
        "kernel": kernel,
        "peer": name,
        **outcome.columns,
        "our gap": f"{recomputed_gap(ours, task, kernel):.1e}",
        "converged": ours.converged_,
        "test accuracy": f"{score[0]:.4f} {score[1]:.4f}",
    }


def recomputed_gap(model, task, kernel):
    """Relative duality gap of the joint machine, from its coefficients."""
    import numpy as np
    from _data import gamma_scale
    from _measures import joint_quality, rbf_values

    coefficients = np.zeros((len(task.y), len(model.classes_)))
    coefficients[model.support_] = model.dual_coef_.T
    if kernel == "rbf":
        gamma = gamma_scale(task.X)
        f = rbf_values(task.X, model.support_, model.dual_coef_.T, gamma)
    else:
        f = task.X @ (task.X.T @ coefficients)
    codes = np.searchsorted(model.classes_, task.y)
    return joint_quality(codes, coefficients, f, model.intercept_, C, SHARPNESS)


if __name__ == "__main__":
    main()
