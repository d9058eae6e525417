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

import argparse
import csv
import gzip
import warnings
from pathlib import Path

import numpy as np
from _experiment import markdown, mean_and_error

FACTORS = ("Cebpb", "Egr2", "Foxo1", "Junb", "Pou3f1")
LATENT_SVM = "latent SVM"
STRONGEST = 1000


def arguments():
    """Parsed options."""
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with hk_signal.csv.gz")
    parser.add_argument("--task", default="median", choices=("median", "top"))
    parser.add_argument("--factors", nargs="*", default=list(FACTORS))
    return parser.parse_args()


def parser_of(description):
    """Options that scripts of motifs share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=5, help="random splits")
    parser.add_argument("--train", type=int, default=1500, help="sequences to train")
    parser.add_argument("--test", type=int, default=4000, help="most to test")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--width", type=int, default=8)
    orders = [0.0, 0.25, 1.0, 8.0, np.inf]
    parser.add_argument("--alphas", type=float, nargs="*", default=orders)
    parser.add_argument("--rates", type=float, nargs="*", default=[0.05, 0.5])
    parser.add_argument("--seed", type=int, default=0)
    return parser


def read_signals(folder, factors):
    """{factor: codes (n, 35), signals (n,)}, spots flagged bad left out."""
    path = Path(folder) / "hk_signal.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        head, *rows = csv.reader(stream)
    letters = np.array([list(row[0]) for row in rows])
    codes = np.searchsorted(list("ACGT"), letters)
    found = {}
    for factor in factors:
        cells = [row[head.index(factor)] for row in rows]
        good = np.array([cell != "" for cell in cells])
        found[factor] = codes[good], np.array([float(c) for c in cells if c])
    return found


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
    methods = [(f"{a:g}", a, "auto") for a in options.alphas]
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
    mean = {
        (m, rate): np.mean([r[key] for r in records if (r["method"], r["rate"]) == at])
        for m in methods
        for rate in sorted({r["rate"] for r in records})
        for at in [(m, rate)]
    }
    return min(mean, key=mean.get)


def column(records, at, key):
    """Values in per cent of one (method, C/n), a draw each."""
    return np.array([100.0 * r[key] for r in records if (r["method"], r["rate"]) == at])


def by_factor(records, factor, key):
    """Line of table 1 of one factor, C and alpha chosen by `key`."""
    own = [r for r in records if r["factor"] == factor]
    orders = list(dict.fromkeys(r["method"] for r in own if r["method"] != LATENT_SVM))
    theirs, ours = chosen(own, [LATENT_SVM], key), chosen(own, orders, key)
    line = [factor]
    for at in (theirs, ours):
        line += [] if at is theirs else [at[0]]
        line += [f"{at[1]:g}", mean_and_error(column(own, at, "train"), 1)]
        line.append(mean_and_error(column(own, at, "test"), 1))
    step = column(own, ours, "test") - column(own, theirs, "test")
    return [*line, mean_and_error(step, 2), paired_p(step)]


def paired_p(step):
    """Two-sided p of a paired t-test."""
    from scipy.stats import ttest_1samp

    if len(step) < 2 or not step.std() > 0:
        return ""
    return f"{ttest_1samp(step, 0.0).pvalue:.2g}"


def by_method(records, method, key):
    """Test errors of a method (factors, draws), its C chosen by `key`."""
    table = []
    for factor in dict.fromkeys(r["factor"] for r in records):
        own = [r for r in records if r["factor"] == factor]
        table.append(column(own, chosen(own, [method], key), "test"))
    return np.array(table)


def lines_of(records, options, title):
    """The text of the tables."""
    import maxent

    factors = list(dict.fromkeys(r["factor"] for r in records))
    draws = min(len({r["draw"] for r in records if r["factor"] == f}) for f in factors)
    records = [r for r in records if r["draw"] < draws]  # draws of all factors so far
    methods = list(dict.fromkeys(r["method"] for r in records))
    lines = [
        f"# {title}",
        "",
        f"{options.train} sequences to train (or half of them), up to {options.test} "
        f"to test, width {options.width}, words of two letters, "
        f"{draws} draws, {options.starts} random starts, C/n in "
        f"{options.rates}, seed {options.seed}; errors in per cent, mean ± standard "
        f"error over draws. maxent {maxent.__version__}.",
    ]
    head = ["factor", "latent SVM: C/n", "train", "test"]
    head += ["M3E: alpha", "C/n", "train", "test", "difference", "p"]
    for key, name in (("train", "training error"), ("valid", "validation")):
        rows = [by_factor(records, factor, key) for factor in factors]
        lines += ["", f"C and alpha by {name}:", "", *markdown(head, rows)]
    head = ["method", "test error", "sd over draws", "minus latent SVM"]
    head += ["sd of training error over starts"]
    rows = []
    base = by_method(records, LATENT_SVM, "valid")
    for method in methods:
        errors = by_method(records, method, "valid")
        spread = [100.0 * r["spread"] for r in records if r["method"] == method]
        step = (errors - base).ravel()
        rows.append(
            [
                method if method == LATENT_SVM else f"alpha = {method}",
                *(f"{errors.mean():.1f}", f"{_deviation(errors):.1f}"),
                "" if method == LATENT_SVM else mean_and_error(step, 2),
                f"{np.mean(spread):.1f}",
            ]
        )
    lines += ["", "By method, mean over the factors, C by validation:", ""]
    return [*lines, *markdown(head, rows), ""]


def _deviation(errors):
    """Mean over factors of the deviation over draws."""
    return float(errors.std(axis=1, ddof=1).mean()) if errors.shape[1] > 1 else np.nan


def write(records, options, name, title):
    """NAME.md, .csv and .png."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / name
    text = "\n".join(lines_of(records, options, title))
    path.with_suffix(".md").write_text(text, "utf-8")
    with open(path.with_suffix(".csv"), "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    draw(records, options, path.with_suffix(".png"))
    return path


def draw(records, options, path):
    """Test errors over C for every order, a panel for each factor (figure 1)."""
    from matplotlib.figure import Figure

    factors = list(dict.fromkeys(r["factor"] for r in records))
    figure = Figure(figsize=(2.6 * len(factors) + 1.5, 3.0), layout="constrained")
    axes = figure.subplots(1, len(factors), squeeze=False)[0]
    for ax, factor in zip(axes, factors, strict=True):
        own = [r for r in records if r["factor"] == factor]
        for method in dict.fromkeys(r["method"] for r in own):
            mean = [column(own, (method, c), "test").mean() for c in options.rates]
            style = {"ls": "--", "color": "black"} if method == LATENT_SVM else {}
            ax.plot(options.rates, mean, marker="o", ms=3, label=method, **style)
        ax.set(title=factor, xscale="log", xlabel="C / n")
    axes[0].set_ylabel("test error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", title="alpha")
    figure.savefig(path, dpi=150)


def run(data_of, options, name, title):
    """Run the draws of ``data_of(number)``; files are written anew after each of them.

    It gives, factor by factor, its name, sequences, labels and parts.
    """
    from sklearn.exceptions import ConvergenceWarning

    records, path = [], None
    for number in range(options.draws):
        for factor, X, y, parts in data_of(number):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = one_draw(X, y, parts, options, 1000 * number)
            records += [{"factor": factor, "draw": number, **r} for r in found]
            print(f"draw {number + 1} of {options.draws}: {factor}", flush=True)
            path = write(records, options, name, title)
    print(path.with_suffix(".md").read_text("utf-8"))
    print(f"written: {path}.md, .csv and .png")


def main():
    """Run the factors draw by draw."""
    options = arguments()
    data = read_signals(options.data, options.factors)

    def data_of(number):
        for k, (factor, (X, signal)) in enumerate(data.items()):
            rng = np.random.default_rng([options.seed, number, k])
            sizes = (options.train, options.test)
            y, *parts = sampled(signal, options.task, rng, *sizes)
            yield factor, X, y, parts

    title = f"Motifs on protein binding microarrays, task: {options.task}"
    run(data_of, options, f"motifs_pbm_{options.task}", title)


if __name__ == "__main__":
    main()
