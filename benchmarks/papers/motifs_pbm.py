"""Motifs on protein binding microarrays: table 1 of the min-entropy paper.

The paper's proteins (UniPROBE) are not among the data; five factors of the DREAM5
arrays, which are measurements of the same kind and size, take their place. Two tasks:

    median    positive: signal above the factor's median (the paper's setting)
    top       the 1000 strongest against 1000 of the lower half

Protocol as printed: four random starts, the one with the least training error wins
(ties: the smaller objective), then C and alpha by the mean training error over the
draws. Beside it, C and alpha by the error on sequences that are held out of training.
All methods of a draw share their sequences, C and seeds of the starts. Orders and
penalties are fewer than in the paper, and so are the training sequences unless
`--train` says otherwise: an order costs about as many seconds as thousands of
sequences, times penalties, starts and draws.
"""

import csv
import gzip
import warnings

import _results
import numpy as np
from _results import column, mean_and_error, table
from fetch import found

FACTORS = ("Cebpb", "Egr2", "Foxo1", "Junb", "Pou3f1")
LATENT_SVM = "latent SVM"
STRONGEST = 1000


def parser_of(doc, data=None):
    """Options that scripts of motifs share."""
    out = _results.parser(doc, 5, data)
    out.add_argument("--train", type=int, default=1500, help="sequences to train")
    out.add_argument("--test", type=int, default=4000, help="most to test")
    out.add_argument("--starts", type=int, default=4)
    out.add_argument("--width", type=int, default=8)
    orders = [0.0, 0.25, 1.0, 8.0, np.inf]
    out.add_argument("--alphas", type=float, nargs="*", default=orders)
    out.add_argument("--rates", type=float, nargs="*", default=[0.05, 0.5])
    return out


def read_signals(folder, factors):
    """{factor: codes (n, 35), signals (n,)}, spots flagged bad left out."""
    path = found(folder, "hk_signal.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        head, *rows = csv.reader(stream)
    letters = np.array([list(row[0]) for row in rows])
    codes = np.searchsorted(list("ACGT"), letters)
    signals = {}
    for factor in factors:
        cells = [row[head.index(factor)] for row in rows]
        good = np.array([cell != "" for cell in cells])
        signals[factor] = codes[good], np.array([float(c) for c in cells if c])
    return signals


def sampled(signal, task, rng, n_train, n_test):
    """Labels, and the rows of the training, validation and test parts.

    Validation has a quarter of as many rows as training; all parts are drawn at random.
    """
    y = (signal > np.median(signal)).astype(int)
    rows = np.arange(len(y))
    if task == "top":
        order = np.argsort(signal)
        low = rng.choice(order[: len(y) // 2], STRONGEST, replace=False)
        rows = np.concatenate([low, order[-STRONGEST:]])
    rows = rng.permutation(rows)
    n_train = min(n_train, len(rows) // 2)
    n_valid = n_train // 4
    ends = np.cumsum([n_train, n_valid, n_test])
    train, valid, test = np.split(rows, ends)[:3]
    return y, train, valid, test


def one_draw(X, y, parts, options, seed):
    """Records of every method and C/n: errors of the start that trains best."""
    from maxent.minentropy import M3EMotifClassifier

    train, valid, test = parts
    methods = [(f"alpha = {a:g}", a, "auto") for a in options.alphas]
    methods.append((LATENT_SVM, np.inf, "latent_svm"))
    records = []
    for name, alpha, solver in methods:
        for rate in options.rates:
            fits = []
            for start in range(options.starts):
                model = M3EMotifClassifier(
                    *(options.width,),
                    **{"alpha": alpha, "C": rate * len(train), "solver": solver},
                    **{"init": "random", "n_init": 1, "tol": 1e-3, "max_iter": 100},
                    random_state=seed + start,
                ).fit(X[train], y[train])
                error = 1.0 - model.score(X[train], y[train])
                fits.append((error, model.objective_, start, model))
            error, objective, _, model = min(fits, key=lambda fit: fit[:2])
            records.append(
                {
                    **{"method": name, "rate": rate, "train": error},
                    "valid": 1.0 - model.score(X[valid], y[valid]),
                    "test": 1.0 - model.score(X[test], y[test]),
                    "objective": objective,
                    "spread": float(np.std([fit[0] for fit in fits])),
                    "consensus": consensus(model.motif_),
                }
            )
    return records


def consensus(weights):
    """The heaviest letter of every position."""
    return "".join("ACGT"[k] for k in weights.argmax(axis=1))


# -- what is written ---------------------------------------------------------------
def chosen(records, methods, key):
    """(method, C/n) of the least mean error over the draws, ties to the first."""
    rates = sorted({r["rate"] for r in records})
    mean = {
        (m, rate): column(records, key, method=m, rate=rate).mean()
        for m in methods
        for rate in rates
    }
    return min(mean, key=mean.get)


def percent(records, at, key):
    """Values in per cent of one (method, C/n), a draw each."""
    return 100.0 * column(records, key, method=at[0], rate=at[1])


def by_factor(records, factor, key):
    """Cells of table 1 of one factor, C and alpha chosen by `key`."""
    own = [r for r in records if r["factor"] == factor]
    orders = list(dict.fromkeys(r["method"] for r in own if r["method"] != LATENT_SVM))
    theirs, ours = chosen(own, [LATENT_SVM], key), chosen(own, orders, key)
    cells = []
    for at in (theirs, ours):
        cells += [] if at is theirs else [at[0]]
        cells += [f"{at[1]:g}", mean_and_error(percent(own, at, "train"), 1)]
        cells.append(mean_and_error(percent(own, at, "test"), 1))
    step = percent(own, ours, "test") - percent(own, theirs, "test")
    return [*cells, mean_and_error(step, 2), paired_p(step)]


def paired_p(step):
    """Two-sided p of a paired t-test."""
    from scipy.stats import ttest_1samp

    if len(step) < 2 or not step.std() > 0:
        return ""
    return f"{ttest_1samp(step, 0.0).pvalue:.2g}"


def by_method(records, method, key):
    """Test errors of a method (factors, draws), its C chosen by `key`."""
    errors = []
    for factor in dict.fromkeys(r["factor"] for r in records):
        own = [r for r in records if r["factor"] == factor]
        errors.append(percent(own, chosen(own, [method], key), "test"))
    return np.array(errors)


def tables(records, options, name):
    """NAME_table.csv by factor, NAME_methods_table.csv by method."""
    lines = [
        [factor, title, *by_factor(records, factor, key)]
        for key, title in (("train", "training error"), ("valid", "validation"))
        for factor in dict.fromkeys(r["factor"] for r in records)
    ]
    head = ["factor", "settings by", "latent SVM: C/n", "latent SVM: train"]
    head += ["latent SVM: test", "M3E: order", "M3E: C/n", "M3E: train", "M3E: test"]
    table(name, options, [*head, "difference", "p"], lines)
    lines, base = [], by_method(records, LATENT_SVM, "valid")
    for method in dict.fromkeys(r["method"] for r in records):
        errors = by_method(records, method, "valid")
        spread = 100.0 * column(records, "spread", method=method).mean()
        step = mean_and_error((errors - base).ravel()) if method != LATENT_SVM else ""
        deviation = errors.std(axis=1, ddof=1).mean() if errors.shape[1] > 1 else np.nan
        cells = f"{errors.mean():.1f}", f"{deviation:.1f}", step, f"{spread:.1f}"
        lines.append([method, *cells])
    head = ["method", "test error", "sd over draws", "minus latent SVM"]
    head += ["sd of training error over starts"]
    table(f"{name}_methods", options, head, lines)


def draw(records, options, path):
    """Test errors over C for every order, a panel for each factor (figure 1)."""
    from matplotlib.figure import Figure

    factors = list(dict.fromkeys(r["factor"] for r in records))
    figure = Figure(figsize=(2.6 * len(factors) + 1.5, 3.0), layout="constrained")
    axes = figure.subplots(1, len(factors), squeeze=False)[0]
    for ax, factor in zip(axes, factors, strict=True):
        own = [r for r in records if r["factor"] == factor]
        for method in dict.fromkeys(r["method"] for r in own):
            mean = [percent(own, (method, c), "test").mean() for c in options.rates]
            style = {"ls": "--", "color": "black"} if method == LATENT_SVM else {}
            ax.plot(options.rates, mean, marker="o", ms=3, label=method, **style)
        ax.set(title=factor, xscale="log", xlabel="C / n")
    axes[0].set_ylabel("test error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    figure.savefig(path, dpi=150)


def run(data_of, factors, options, name):
    """Run all draws and write; ``data_of(factor, draw)`` is X, y and the parts."""
    from sklearn.exceptions import ConvergenceWarning

    def work(factor, draw):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # a penalty may be too high for an order: its error says so
            warnings.filterwarnings("ignore", message=".*for all .* training samples")
            return one_draw(*data_of(factor, draw), options, 1000 * draw)

    units = [{"factor": f, "draw": k} for k in range(options.draws) for f in factors]
    records = _results.run(name, options, units, work)
    tables(records, options, name)
    draw(records, options, f"{options.out}/{name}.png")


def main():
    """Run the factors draw by draw."""
    out = parser_of(__doc__, "hk_signal.csv.gz")
    out.add_argument("--task", default="median", choices=("median", "top"))
    out.add_argument("--factors", nargs="*", default=list(FACTORS))
    options = out.parse_args()
    data = read_signals(options.data, options.factors)

    def data_of(factor, draw):
        X, signal = data[factor]
        rng = np.random.default_rng([options.seed, draw, list(data).index(factor)])
        sizes = (options.train, options.test)
        y, *parts = sampled(signal, options.task, rng, *sizes)
        return X, y, parts

    run(data_of, options.factors, options, f"motifs_pbm_{options.task}")


if __name__ == "__main__":
    main()
