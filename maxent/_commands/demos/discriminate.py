"""``maxent demo discriminate``: four machines on the Leptograpsus crabs."""

import time

import numpy as np

from maxent._commands.demos._drawing import Demo
from maxent._commands.reports import table
from maxent._support.results import gap_text

# Machines compared: name, margin prior, kernel.  C = 10 for all of them.
MACHINES = [
    ("MED", "exponential", "linear"),
    ("MED", "exponential", "rbf"),
    ("SVM", "hinge", "linear"),
    ("SVM", "hinge", "rbf"),
]
C = 10.0


def run_demo(seed):
    """Train and tell."""
    from maxent.datasets import load_crabs
    from maxent.discrimination import MEDClassifier

    crabs = load_crabs()
    train, test = _split(crabs.target, crabs.groups, seed)
    X, y = _standardized(crabs.data, train), crabs.target_names[crabs.target]
    rows, converged = [], True
    for name, margin, kernel in MACHINES:
        model = MEDClassifier(kernel=kernel, C=C, margin=margin)
        seconds = _best_time(lambda model=model: model.fit(X[train], y[train]))
        converged &= bool(model.converged_)
        rows.append(
            {
                "machine": f"{name} {kernel}",
                "train error": _count(model, X[train], y[train]),
                "test error": _count(model, X[test], y[test]),
                "support": len(model.support_),
                "loo bound": f"{model.loo_bound_:.3f}",
                "objective": f"{model.objective_:.4f}",
                "duality gap": gap_text(model.duality_gap_, model.objective_),
                "time": f"{seconds * 1e3:.1f} ms",
            }
        )
    text = (
        "Sex of Leptograpsus crabs from 5 measurements, standardised: "
        f"{train.sum()} crabs to train, {test.sum()} to test (seed {seed})\n\n"
        f"{table(rows)}\n"
        "No solution is better than the one found by more than its duality gap; '<'\n"
        "marks a gap within the rounding error of the objective.  The leave-one-out\n"
        "error is at most the loo bound.  MED: exponential margin prior; SVM: its\n"
        f"limit, the hinge; C = {C:g}.  Times: best of 3.\n"
    )
    return Demo(
        *(text, converged, lambda figure: _paint(figure, X, y, train, test, rows)),
        size=(12.0, 7.8),
    )


def _best_time(call, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _split(target, groups, seed):
    """Masks of 20 training rows from each species-by-sex group, and of the others."""
    rng = np.random.default_rng(seed)
    train = np.zeros(len(target), dtype=bool)
    for k in np.unique(target):
        for group in np.unique(groups):
            members = np.flatnonzero((target == k) & (groups == group))
            train[rng.choice(members, size=20, replace=False)] = True
    return train, ~train


def _standardized(X, train):
    return (X - X[train].mean(axis=0)) / X[train].std(axis=0)


def _count(model, X, y):
    return f"{int(np.sum(model.predict(X) != y))} of {len(y)}"


def _paint(figure, X, y, train, test, rows):
    """A machine with its multipliers, the errors of all, and a path over C."""
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.45, 1], hspace=0.05)
    left, right = upper.subplots(1, 2, width_ratios=[1.5, 1])
    _draw_boundary(left, X[train], y[train])
    _draw_errors(right, rows)
    lower.suptitle("MED rbf on all five measurements, along a path of C", size="large")
    _draw_path(lower.subplots(1, 4), X, y, train, test)


def _draw_boundary(axes, X, y):
    """The machine in the two principal coordinates of its training rows."""
    from maxent.discrimination import MEDClassifier
    from maxent.displays import MEDBoundaryDisplay

    _, _, directions = np.linalg.svd(X, full_matrices=False)
    Z = X @ directions[:2].T
    Z /= Z.std(axis=0)
    model = MEDClassifier(kernel="rbf", C=C).fit(Z, y)
    MEDBoundaryDisplay.from_estimator(model, Z, y, ax=axes)
    axes.set(
        xlabel="principal coordinate 1",
        ylabel="principal coordinate 2",
        title="MED rbf on two coordinates: each crab's multiplier",
    )


def _draw_path(axes, X, y, train, test):
    from sklearn.metrics.pairwise import rbf_kernel

    from maxent.discrimination import ExponentialMargin, dual_path
    from maxent.displays import DualPathDisplay

    K = rbf_kernel(X, X[train], gamma=1 / (X.shape[1] * X[train].var()))
    signs = np.where(y == y[0], -1, 1)
    values, tol = np.geomspace(0.1, 1e3, 13), 1e-6
    path = dual_path(K[train], signs[train], ExponentialMargin(), values, tol=tol)
    known = {"y": signs[train], "K_test": K[test], "y_test": signs[test]}
    DualPathDisplay.from_results(values, path, **known, ax=axes, tol=tol)


def _draw_errors(axes, rows):
    names = [row["machine"] for row in rows]
    place = np.arange(len(rows))
    for shift, kind, grey in ((-0.2, "train", "0.75"), (0.2, "test", "0.4")):
        counts = [row[f"{kind} error"].split(" of ") for row in rows]
        share = [100 * int(wrong) / int(total) for wrong, total in counts]
        bars = axes.bar(place + shift, share, width=0.38, color=grey, label=kind)
        axes.bar_label(bars, [wrong for wrong, _ in counts], fontsize=8)
    axes.set_xticks(place, names)
    axes.set(ylabel="error (%)", title="Errors on all five measurements")
    axes.margins(y=0.2)
    axes.legend(ncols=2, loc="upper right", frameon=False)
