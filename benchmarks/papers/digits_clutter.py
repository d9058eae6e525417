"""Digits at unknown places on clutter: figures 2 and 3 of the min-entropy paper.

The paper's mammal images were not to be had; digits on clutter, six classes, take their
place. A window of 7 x 7 cells of four pixels, as large as a digit, lies at one of 64
places. Six tasks of one class against the rest (figure 2) and the classes together
(figure 3), with oriented gradients and with raw pixels as the features of a cell. One
class is a sixth of the images: both sides weigh alike in training, and errors are the
mean of those of the classes.

About as many images train as in the paper, 40 of each class; others, 10 of each class,
choose C, and all that are left test, where the paper tests on 27. Every method has the
same random starts, and keeps the one with the smallest objective; the rows "path" start
from lower orders instead. The true place of the digit is used to see how often the
window is within a cell of it, not to learn.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from _experiment import markdown, mean_and_error

CELL, WINDOW = 4, (7, 7)
LATENT_SVM = "latent SVM"
TOGETHER = "all classes"
# row: order, solver, init
METHODS = {
    "alpha = 0.25": (0.25, "auto", "random"),
    "alpha = 1": (1.0, "auto", "random"),
    "alpha = 8": (8.0, "auto", "random"),
    "alpha = inf": (np.inf, "auto", "random"),
    LATENT_SVM: (np.inf, "latent_svm", "random"),
    "alpha = 8, path": (8.0, "auto", "path"),
    "alpha = inf, path": (np.inf, "auto", "path"),
}


def arguments():
    """Parsed options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with the .npz file")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=5, help="random splits")
    parser.add_argument("--train", type=int, default=40, help="images of each class")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--rates", type=float, nargs="*", default=[0.01, 0.1])
    kinds = ("gradients", "pixels")
    parser.add_argument("--features", nargs="*", default=list(kinds), choices=kinds)
    tasks = [*map(str, range(6)), TOGETHER]
    parser.add_argument("--tasks", nargs="*", default=tasks, choices=tasks)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def cells_of(images, kind):
    """Features of the cells, (n, 14, 14, p)."""
    from maxent.minentropy import gradient_cells

    if kind == "gradients":
        return gradient_cells(images, CELL)
    n, height, width = images.shape
    R, C = height // CELL, width // CELL
    blocks = images.reshape(n, R, CELL, C, CELL).swapaxes(2, 3)
    cells = blocks.reshape(n, R, C, CELL * CELL)
    return cells - cells.mean()


def split(y, rng, n_train):
    """Rows to train, to choose C, and to test; as many of each class in the first."""
    parts = [rng.permutation(np.flatnonzero(y == k)) for k in np.unique(y)]
    n_valid = max(n_train // 4, 2)
    train, valid, test = zip(
        *(np.split(part, [n_train, n_train + n_valid]) for part in parts), strict=True
    )
    return np.concatenate(train), np.concatenate(valid), np.concatenate(test)


def one_task(cells, y, position, parts, options, seed):
    """Records of every method: errors at the C with the least validation error."""
    from sklearn.metrics import balanced_accuracy_score

    from maxent.minentropy import M3EGridClassifier

    train, valid, test = parts

    def error_on(model, rows):
        return 1.0 - balanced_accuracy_score(y[rows], model.predict(cells[rows]))

    records = []
    for name, (alpha, solver, init) in METHODS.items():
        found = []
        for rate in options.rates:
            model = M3EGridClassifier(
                *(WINDOW, alpha, rate * len(train)),
                **{"solver": solver, "init": init, "n_init": options.starts},
                **{"tol": 1e-3, "max_iter": 100, "random_state": seed},
                class_weight="balanced",
            ).fit(cells[train], y[train])
            found.append((error_on(model, valid), rate, model))
        _, rate, model = min(found, key=lambda each: each[:2])
        kept = test if len(model.classes_) > 2 else test[y[test] == 1]
        windows = model.predict_window(cells[kept], y[kept])[:, :2]
        off = np.abs(CELL * windows - position[kept]).max(axis=1)
        records.append(
            {
                **{"row": name, "rate": rate},
                "train": error_on(model, train),
                "test": error_on(model, test),
                "found": float(np.mean(off <= CELL)),
                "objective": model.objective_,
            }
        )
    return records


# -- what is written ---------------------------------------------------------------
def mean_of(records, key, **which):
    """Values in per cent of the records that match."""
    own = [r for r in records if all(r[k] == value for k, value in which.items())]
    return np.array([100.0 * r[key] for r in own])


def lines_of(records, options):
    """The text of the tables."""
    import maxent

    draws = len({r["draw"] for r in records})
    lines = [
        "# Digits on clutter",
        "",
        f"{options.train} images of each class to train, {draws} draws begun, "
        f"{options.starts} random starts, C/n in {options.rates} by validation, seed "
        f"{options.seed}; per cent of the test images, mean ± standard error over "
        f"draws. maxent {maxent.__version__}.",
    ]
    tasks = list(dict.fromkeys(r["task"] for r in records))
    for kind in dict.fromkeys(r["features"] for r in records):
        lines += ["", f"Test errors, {kind}; last column: window within a cell", ""]
        rows = []
        for name in METHODS:
            cells, places = [], []
            for task in tasks:
                which = {"row": name, "task": task, "features": kind}
                errors = mean_of(records, "test", **which)
                cells.append(mean_and_error(errors, 1) if len(errors) else "")
                places += list(mean_of(records, "found", **which))
            rows.append([name, *cells, f"{np.mean(places):.0f} %"])
        lines += markdown(["method", *tasks, "found"], rows)
    return [*lines, ""]


def write(records, options):
    """digits_clutter.md, .csv and .png."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "digits_clutter"
    path.with_suffix(".md").write_text("\n".join(lines_of(records, options)), "utf-8")
    with open(path.with_suffix(".csv"), "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    draw(records, path.with_suffix(".png"))
    return path


def draw(records, path):
    """Test errors of every method, a group of bars for each task."""
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(r["features"] for r in records))
    tasks = list(dict.fromkeys(r["task"] for r in records))
    figure = Figure(figsize=(9.0, 2.8 * len(kinds)), layout="constrained")
    axes = figure.subplots(len(kinds), 1, squeeze=False)[:, 0]
    width = 0.8 / len(METHODS)
    for ax, kind in zip(axes, kinds, strict=True):
        for k, name in enumerate(METHODS):
            errors = [
                mean_of(records, "test", row=name, task=task, features=kind)
                for task in tasks
            ]
            heights = [each.mean() if len(each) else 0.0 for each in errors]
            at = np.arange(len(tasks)) + (k - 0.5 * len(METHODS) + 0.5) * width
            ax.bar(at, heights, width, label=name)
        ax.set_xticks(range(len(tasks)), tasks)
        ax.set(ylabel="test error, %", title=kind)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


def main():
    """Run draw by draw; the files are written anew after each task."""
    from sklearn.exceptions import ConvergenceWarning

    options = arguments()
    path = Path(options.data) / "digits_on_clutter.npz"
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    with np.load(path) as data:
        images, y, position = data["X"] / 31.0, data["y"], data["position"]
    cells = {kind: cells_of(images, kind) for kind in options.features}
    records = []
    for number in range(options.draws):
        parts = split(y, np.random.default_rng([options.seed, number]), options.train)
        for kind in options.features:
            for task in options.tasks:
                labels = y if task == TOGETHER else (y == int(task)).astype(int)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    found = one_task(
                        cells[kind], labels, position, parts, options, number
                    )
                where = {"features": kind, "task": task, "draw": number}
                records += [{**where, **r} for r in found]
                print(f"draw {number + 1}: {kind}, {task}", flush=True)
                path = write(records, options)
    print(path.with_suffix(".md").read_text("utf-8"))
    print(f"written: {path}.md, .csv and .png")


if __name__ == "__main__":
    main()
