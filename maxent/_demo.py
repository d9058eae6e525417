"""The demonstration of the command line: four machines on the Leptograpsus crabs."""

import os
import sys
import time

import numpy as np

from maxent._support.files import whole_file

# Machines compared: name, margin prior, kernel.  C = 10 for all of them.
MACHINES = [
    ("MED", "exponential", "linear"),
    ("MED", "exponential", "rbf"),
    ("SVM", "hinge", "linear"),
    ("SVM", "hinge", "rbf"),
]
C = 10.0


def run_demo(seed, picture):
    """Train, print one table, draw.

    Parameters
    ----------
    seed : int
        Of the split into 80 training and 120 test rows.
    picture : str or None
        File to draw into.

    Returns
    -------
    code : int
        0, or 1 if a fit did not reach its tolerance.
    """
    from maxent.datasets import load_crabs
    from maxent.discrimination import MEDClassifier

    crabs = load_crabs()
    train, test = _split(crabs.target, crabs.groups, seed)
    X, y = _standardized(crabs.data, train), crabs.target_names[crabs.target]
    print(
        "Sex of Leptograpsus crabs from 5 measurements, standardised: "
        f"{train.sum()} crabs to train, {test.sum()} to test (seed {seed})\n"
    )
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
                "duality gap": f"{model.duality_gap_:.1e}",
                "time": f"{seconds * 1e3:.1f} ms",
            }
        )
    _print_table(rows)
    print(
        "\nNo solution is better than the one found by more than its duality gap.\n"
        "The leave-one-out error is at most the loo bound.  MED: exponential margin\n"
        f"prior; SVM: its limit, the hinge; C = {C:g}.  Times: best of 3."
    )
    if picture is not None:
        _demo_picture(picture, X, y, train, test, rows)
    if not converged:
        print("maxent demo: a fit did not reach its tolerance", file=sys.stderr)
    return 0 if converged else 1


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


def _print_table(rows):
    columns = list(rows[0])
    cells = [columns] + [[str(row[name]) for name in columns] for row in rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(columns))]
    for row in cells:
        first = row[0].ljust(widths[0])
        print("  ".join([first, *map(str.rjust, row[1:], widths[1:])]))


def _demo_picture(path, X, y, train, test, rows):
    """Left the boundary of a machine in two dimensions, right the errors of all."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        print("\nmatplotlib is not installed, so no picture is drawn.")
        return

    from maxent.discrimination import MEDClassifier

    # Two first principal coordinates of the training rows.
    _, _, axes = np.linalg.svd(X[train], full_matrices=False)
    Z = X @ axes[:2].T
    Z /= Z[train].std(axis=0)
    model = MEDClassifier(kernel="rbf", C=C).fit(Z[train], y[train])

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
    _draw_boundary(left, model, Z, y, train, test)
    _draw_errors(right, rows)
    with whole_file(path) as stream:
        figure.savefig(stream, format=os.path.splitext(path)[1][1:].lower(), dpi=150)
    print(f"\nPicture written to {path}")


def _draw_boundary(axes, model, Z, y, train, test):
    low, high = Z.min(axis=0) - 0.4, Z.max(axis=0) + 0.4
    grid = np.meshgrid(
        np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160)
    )
    points = np.column_stack([grid[0].ravel(), grid[1].ravel()])
    f = model.decision_function(points).reshape(grid[0].shape)
    limit = np.abs(f).max()
    axes.contourf(
        *grid, f, levels=np.linspace(-limit, limit, 21), cmap="RdBu_r", alpha=0.35
    )
    axes.contour(
        *grid,
        f,
        levels=[-1, 0, 1],
        colors="0.2",
        linewidths=[0.7, 1.6, 0.7],
        linestyles=["--", "-", "--"],
    )
    for label, colour, marker in zip(model.classes_, ("tab:blue", "tab:red"), "os"):
        here = test & (y == label)
        axes.scatter(*Z[here].T, s=14, c=colour, marker=marker, label=f"{label}, test")
    size = np.abs(model.dual_coef_[0])
    axes.scatter(
        *model.support_vectors_.T,
        s=10 + 110 * size / size.max(),
        facecolors="none",
        edgecolors="k",
        linewidths=0.8,
        label="support, by multiplier",
    )
    axes.set(
        xlabel="principal coordinate 1",
        ylabel="principal coordinate 2",
        title="MED, rbf kernel, two coordinates",
    )
    axes.legend(fontsize=8, loc="lower left")


def _draw_errors(axes, rows):
    names = [row["machine"] for row in rows]
    place = np.arange(len(rows))
    for shift, kind in ((-0.2, "train"), (0.2, "test")):
        counts = [row[f"{kind} error"].split(" of ") for row in rows]
        share = [100 * int(wrong) / int(total) for wrong, total in counts]
        bars = axes.bar(place + shift, share, width=0.38, label=kind)
        axes.bar_label(bars, [wrong for wrong, _ in counts], fontsize=8)
    axes.set_xticks(place, names)
    axes.set(ylabel="error, %", title="Errors on all five measurements")
    axes.margins(y=0.2)
    axes.legend(ncols=2, loc="upper right")
