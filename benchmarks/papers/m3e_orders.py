"""Orders of the entropy from one to infinity: figures 1 and 3 of the min-entropy paper.

Figure 1 is the test error of motifs against C for several orders: high ones are to be
the latent support vector machine, and order 1 unstable for large C. Figure 3, of images
of six classes, has every order of 1000 and more at the least error, and the latent
support vector machine behind it. Here, in kind:

    motifs   five factors of the DREAM5 arrays, as in `motifs_pbm`, around order 1 and
             from 1000 on, over four decades of C
    digits   six classes of scikit-learn's digits at one of 25 places of a canvas with
             fragments of other digits, from order 8 on; the place is hidden

All orders of a draw share rows, C and starts; the start with the fewest training errors
is kept (ties: the smaller objective), as printed. "Differs" is the share of test rows
with another label than by infinite order from the same start, mean over starts. A last
row continues the ends of order 1e6 at infinity, as what starts do and what the order
does are not told apart otherwise.
"""

import itertools
import warnings

import numpy as np
from _results import column, mean_and_error, parser, run, table
from motifs_pbm import FACTORS, LATENT_SVM, read_signals, sampled

ORDERS = {
    "motifs": (0.25, 0.9, 1.0, 1.1, 8.0, 1e3, 1e6),
    "digits": (8.0, 1e3, 1e6),
}
RATES = {"motifs": (0.05, 0.5, 5.0, 50.0), "digits": (1.0,)}
STEPS = {"motifs": 100, "digits": 500}  # outer steps: finite orders take the most
WIDTH = 8
BASE, LARGE = "order inf", "order 1e+06"
CONTINUED = f"{BASE}, from {LARGE}"
CANVAS, SIDE, CELL, CLASSES = 16, 8, 2, 6


def cluttered_digits(n, rng):
    """Cells (n, 8, 8, 4) of 2 x 2 pixels, and labels 0 to 5, as many of each.

    A digit of 8 x 8 pixels lies at an even place of a canvas of 16 x 16, over four
    fragments of 4 x 4 pixels of any digits.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images / 16.0
    of_class = [np.flatnonzero(digits.target == k) for k in range(CLASSES)]
    y = rng.permutation(np.arange(n) % CLASSES)
    X = np.zeros((n, CANVAS, CANVAS))
    for canvas, label in zip(X, y, strict=True):
        for _ in range(4):
            fragment, a, b = images[rng.integers(len(images))], *rng.integers(0, 5, 2)
            i, j = rng.integers(0, CANVAS - 3, 2)
            canvas[i : i + 4, j : j + 4] = fragment[a : a + 4, b : b + 4]
        i, j = CELL * rng.integers(0, (CANVAS - SIDE) // CELL + 1, 2)
        canvas[i : i + SIDE, j : j + SIDE] = images[rng.choice(of_class[label])]
    R = CANVAS // CELL
    cells = X.reshape(n, R, CELL, R, CELL).swapaxes(2, 3).reshape(n, R, R, -1)
    return cells - cells.mean(), y


def estimator(task):
    """Function of order, C and options: a classifier of the task."""
    from maxent.minentropy import M3EGridClassifier, M3EMotifClassifier

    if task == "digits":
        window = (SIDE // CELL, SIDE // CELL)
        return lambda *args, **options: M3EGridClassifier(window, *args, **options)
    return lambda alpha, C, **options: M3EMotifClassifier(
        WIDTH, alpha=alpha, C=C, **options
    )


def compared_orders(task, X, y, train, test, starts, seed):
    """Rows of all orders and rates, of the start that trains best."""
    make, rows = estimator(task), []
    methods = {f"order {a:g}": (a, "auto") for a in (np.inf, *ORDERS[task])}
    methods |= {LATENT_SVM: (np.inf, "latent_svm"), CONTINUED: (np.inf, "auto")}
    for rate in RATES[task]:
        base, large = [], []
        for name, (alpha, solver) in methods.items():
            fits = []
            for start in range(starts):
                init = large[start] if name == CONTINUED else "random"
                model = make(
                    *(alpha, rate * len(train)),
                    **{"solver": solver, "init": init, "n_init": 1, "tol": 1e-3},
                    **{"max_iter": STEPS[task], "random_state": seed + start},
                ).fit(X[train], y[train])
                labels = model.predict(X[test])
                if name == BASE:
                    base.append(labels)
                if name == LARGE:
                    large.append(model.coef_)
                fits.append(
                    {
                        "train": 1.0 - model.score(X[train], y[train]),
                        "objective": model.objective_,
                        "test": np.mean(labels != y[test]),
                        "differs": np.mean(labels != base[start]),
                        "converged": int(model.stationarity_ <= 1e-3),
                    }
                )
            best = min(fits, key=lambda fit: (fit["train"], fit["objective"]))
            means = {k: np.mean([f[k] for f in fits]) for k in ("differs", "converged")}
            mean = np.mean([fit["test"] for fit in fits])
            row = {"rate": rate, "method": name, **best, **means, "mean test": mean}
            rows.append(row)
    return rows


def methods(rows):
    """Names of the methods."""
    return list(dict.fromkeys(r["method"] for r in rows))


def line(rows, task, name):
    """Cells of a row: errors at each C, and at the C of least training error."""
    rates = RATES[task]

    def errors(key, method, rate, **where):
        return 100 * column(rows, key, method=method, rate=rate, **where)

    def chosen(method):
        # of each factor, by the mean over its draws, as printed
        out = []
        for data in dict.fromkeys(r["data"] for r in rows):
            train = [errors("train", method, rate, data=data).mean() for rate in rates]
            best = rates[int(np.argmin(train))]
            out.append(errors("test", method, best, data=data))
        return np.concatenate(out)

    best, base = chosen(name), chosen(BASE)
    step = "" if name == BASE else mean_and_error(best - base, 2)
    objective = column(rows, "objective", method=name, rate=rates[-1]).mean()
    cells = [mean_and_error(errors("test", name, rate), 1) for rate in rates]
    cells += [mean_and_error(best, 1)] * (len(rates) > 1)
    shares = (column(rows, key, method=name) for key in ("differs", "converged"))
    shares = [f"{100 * each.mean():.0f} %" for each in shares]
    starts = mean_and_error(errors("mean test", name, rates[-1]), 1)
    return [name, *cells, step, starts, f"{objective:.1f}", *shares]


def draw(rows, tasks, path):
    """Test errors over C, a line for each order and a panel for each task."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(tasks) + 1.5, 3.4), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False)[0]
    for ax, task in zip(axes, tasks, strict=True):
        own = [r for r in rows if r["task"] == task]
        for name in methods(own):
            mean = [
                100 * column(own, "test", method=name, rate=rate).mean()
                for rate in RATES[task]
            ]
            style = {"ls": "--", "color": "black"} if name == LATENT_SVM else {}
            ax.plot(RATES[task], mean, marker="o", ms=3, label=name, **style)
        ax.set(title=task, xscale="log", xlabel="C / n", ylabel="test error, %")
        ax.legend(fontsize="x-small")
    figure.savefig(path, dpi=110)


def main():
    """Run the tasks draw by draw."""
    from sklearn.exceptions import ConvergenceWarning

    out = parser(__doc__, 2, "hk_signal.csv.gz, for motifs", required=False)
    out.add_argument("--train", type=int, default=600, help="sequences to train")
    out.add_argument("--test", type=int, default=4000, help="rows to test")
    out.add_argument("--images", type=int, default=120, help="images to train")
    out.add_argument("--starts", type=int, default=2)
    out.add_argument("--tasks", nargs="*", default=list(ORDERS), choices=list(ORDERS))
    options = out.parse_args()
    signals = {}
    if "motifs" in options.tasks:
        if options.data is None:
            out.error("motifs need --data; --tasks digits needs none")
        signals = read_signals(options.data, FACTORS)

    def data_of(task, name, rng):
        if task == "motifs":
            X, signal = signals[name]
            y, train, _, test = sampled(
                signal, "median", rng, options.train, options.test
            )
            return X, y, train, test
        n = options.images + options.test
        return *cluttered_digits(n, rng), *np.split(np.arange(n), [options.images])

    def work(task, data, draw):
        # both tasks and every factor have their own rows; starts are the draw's
        rng = np.random.default_rng([options.seed, draw, *data.encode()])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # a penalty may be too high for an order: its error says so
            warnings.filterwarnings("ignore", message=".*for all .* training samples")
            own = data_of(task, data, rng)
            return compared_orders(task, *own, options.starts, 1000 * draw)

    names = {"motifs": FACTORS, "digits": ("canvas a", "canvas b")}
    every = []
    for task in options.tasks:
        units = [
            {"task": task, "data": name, "draw": k}
            for name, k in itertools.product(names[task], range(options.draws))
        ]
        rows = run(f"m3e_orders_{task}", options, units, work)
        head = ["method", *(f"C/n = {rate:g}" for rate in RATES[task])]
        if len(RATES[task]) > 1:
            head.append("C by training error")
        last = f"at C/n = {RATES[task][-1]:g}"
        head += [f"minus {BASE}", f"all starts {last}", f"objective {last}"]
        head += [f"labels other than of {BASE}", "converged"]
        lines = [line(rows, task, name) for name in methods(rows)]
        table(f"m3e_orders_{task}", options, head, lines)
        every += rows
    draw(every, options.tasks, f"{options.out}/m3e_orders.png")


if __name__ == "__main__":
    main()
