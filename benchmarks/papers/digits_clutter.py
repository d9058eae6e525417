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

import warnings

import numpy as np
from _results import column, mean_and_error, parser, run, table
from fetch import found

CELL, WINDOW = 4, (7, 7)
LATENT_SVM = "latent SVM"
RATES = [0.01, 0.1]  # C / n, chosen by validation
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
    out = parser(__doc__, 5, "digits_on_clutter.npz")
    out.add_argument("--train", type=int, default=40, help="images of each class")
    out.add_argument("--starts", type=int, default=4)
    out.add_argument("--rates", type=float, nargs="*", default=RATES)
    kinds = ("gradients", "pixels")
    out.add_argument("--features", nargs="*", default=list(kinds), choices=kinds)
    tasks = [*(f"digit {k}" for k in range(6)), TOGETHER]
    out.add_argument("--tasks", nargs="*", default=tasks, choices=tasks)
    return out.parse_args()


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
        fits = []
        for rate in options.rates:
            model = M3EGridClassifier(
                *(WINDOW, alpha, rate * len(train)),
                **{"solver": solver, "init": init, "n_init": options.starts},
                **{"tol": 1e-3, "max_iter": 100, "random_state": seed},
                class_weight="balanced",
            ).fit(cells[train], y[train])
            fits.append((error_on(model, valid), rate, model))
        _, rate, model = min(fits, key=lambda each: each[:2])
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
            where = {"row": name, "features": kind}
            heights = [
                100 * column(records, "test", task=task, **where).mean()
                for task in tasks
            ]
            at = np.arange(len(tasks)) + (k - 0.5 * len(METHODS) + 0.5) * width
            ax.bar(at, heights, width, label=name)
        ax.set_xticks(range(len(tasks)), tasks)
        ax.set(ylabel="test error, %", title=kind)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


def main():
    """Run the tasks draw by draw."""
    from sklearn.exceptions import ConvergenceWarning

    options = arguments()
    with np.load(found(options.data, "digits_on_clutter.npz")) as data:
        images, y, position = data["X"] / 31.0, data["y"], data["position"]
    cells = {kind: cells_of(images, kind) for kind in options.features}

    def work(draw, features, task):
        parts = split(y, np.random.default_rng([options.seed, draw]), options.train)
        labels = y if task == TOGETHER else (y == int(task[-1])).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # a penalty may be too high for an order: its error says so
            warnings.filterwarnings("ignore", message=".*for all .* training samples")
            return one_task(cells[features], labels, position, parts, options, draw)

    units = [
        {"draw": number, "features": kind, "task": task}
        for number in range(options.draws)
        for kind in options.features
        for task in options.tasks
    ]
    name = "digits_clutter"
    if options.rates != RATES:
        name += "".join(f"_{rate:g}" for rate in options.rates)
    records = run(name, options, units, work)
    head = ["features", "method", *options.tasks, "window within a cell"]
    lines = []
    for kind in options.features:
        for method in METHODS:
            own = [r for r in records if (r["features"], r["row"]) == (kind, method)]
            errors = (100 * column(own, "test", task=task) for task in options.tasks)
            cells = [mean_and_error(each, 1) for each in errors]
            place = f"{100 * column(own, 'found').mean():.0f} %"
            lines.append([kind, method, *cells, place])
    table(name, options, head, lines)
    draw(records, f"{options.out}/{name}.png")


if __name__ == "__main__":
    main()
