"""Random dependency trees on splice sites: figures 7 and 8 of the MED paper.

Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, section 3.7: windows of
25 letters about human splice sites, true against false, 400 to train (200 each) and
4724 to test; a fixed margin of 4, the largest that the training rows allow; trees with
the smoothed shares of each class as tables, against the maximum-likelihood (Chow-Liu)
tree of each class. Printed: test error 12.4 % against 14.0 %, training error 0 %
against 0.5 %, 61 rows of 400 with a multiplier (leave-one-out bound 15 %); ROC curves
without numbers; and of the edge weights of true sites that the largest is more than
10^3 times the next, and that they do not follow the mutual informations, of which those
of adjacent letters are the largest. The data are not identified.

Data here, by their folder: `human_sites.csv.gz`, with columns site, label and sequence
of 140 letters (GT at positions 70 and 71 of donors, false ones included); 1192 true and
3532 false donors to test. Or `statlog_dna.npz`, with X (3186, 180) of three indicators
a site and y ("ei", "ie", "n"): exon-intron sites against the rest that are neither,
window of positions 18 to 42, all rows left over to test. False sites there lack the
consensus, which makes them easier. Draws are random; no setting is chosen.
"""

import csv
import gzip
import time
import warnings

import numpy as np
from _results import column, mean_and_error, parser, run, table
from fetch import found

FILES = {"human": "human_sites.csv.gz", "primate": "statlog_dna.npz"}
TRAIN = 200  # rows of each class
TRUE_TEST, FALSE_TEST = 1192, 3532
WINDOW = slice(58, 83)
BASELINE = "Chow-Liu trees"
NAIVE = "naive Bayes"
# a prior that asks for nothing leaves the averages over trees as before training
UNTRAINED = {"C": 1e-9, "level": 1e-3}
SETTINGS = {
    "fixed margin, 0.8 of the largest": {"margin": "fixed", "level": "0.8*max"},
    "fixed margin, 0.95 of the largest": {"margin": "fixed", "level": "0.95*max"},
    "fixed margin 4": {"margin": "fixed", "level": 4.0},
    "exponential, level 4, C 1": {"C": 1.0, "level": 4.0},
    "exponential, level 1, C 5": {},
    "random tables, level 4, C 1": {
        "parameters": "dirichlet",
        "C": 1.0,
        "level": 4.0,
    },
    "random tables, uniform trees, level 4, C 1": {
        **{"parameters": "dirichlet", "structures": "uniform"},
        "C": 1.0,
        "level": 4.0,
    },
    "untrained": UNTRAINED,
    "untrained, random tables": {"parameters": "dirichlet", **UNTRAINED},
    "untrained, random tables, uniform trees": {
        **{"parameters": "dirichlet", "structures": "uniform"},
        **UNTRAINED,
    },
}
SHOWN = next(iter(SETTINGS))
CLASSES = ("false", "true")


def load(folder, which=None):
    """Codes 0..3 (n, 25), whether each row is a true site, and the name of the set."""
    names = FILES.values() if which is None else (FILES[which],)
    path = found(folder, *names)
    if path.name == FILES["human"]:
        with gzip.open(path, "rt", encoding="ascii") as stream:
            rows = [row for row in csv.DictReader(stream) if row["site"] == "donor"]
        letters = np.array([list(row["sequence"][WINDOW]) for row in rows])
        true = np.array([row["label"] == "1" for row in rows])
        return np.searchsorted(list("ACGT"), letters), true, "human"
    with np.load(path) as data:
        X, y = data["X"].reshape(-1, 60, 3), data["y"]
    keep = y != "ie"
    codes = (X.astype(int) @ [1, 2, 3])[keep, 18:43]
    return codes, y[keep] == "ei", "primate"


def split(true, rng):
    """Training and test rows."""
    parts = [rng.permutation(np.flatnonzero(true == k)) for k in (True, False)]
    train = np.concatenate([part[:TRAIN] for part in parts])
    most = (TRUE_TEST, FALSE_TEST)
    rest = [p[TRAIN : TRAIN + k] for p, k in zip(parts, most, strict=True)]
    return train, np.concatenate(rest)


def edge_measures(log_weights, information):
    """What figure 8 shows of one class, in numbers."""
    from scipy.stats import spearmanr

    n = len(information)
    upper = np.triu_indices(n, 1)
    adjacent = upper[1] - upper[0] == 1
    weights, shared = log_weights[upper], information[upper]
    second, first = np.sort(weights)[-2:]
    top = [np.argsort(v)[-(n - 1) :] for v in (weights, shared)]
    return {
        "first_to_second": np.exp(first - second),
        "weights_adjacent": adjacent[top[0]].sum(),
        "information_adjacent": adjacent[top[1]].sum(),
        "rank_correlation": spearmanr(weights, shared).statistic,
    }


def fitted_models(codes, true, train):
    """Pairs of name and fitted model; margins that are out of reach are left out."""
    from sklearn.naive_bayes import CategoricalNB

    from maxent import MEDTreeClassifier

    # one pseudo-count a column, as in the tables of the trees
    naive = CategoricalNB(alpha=0.25, min_categories=4, fit_prior=False)
    models = {NAIVE: naive} | {
        name: MEDTreeClassifier(bias=None, **setting)
        for name, setting in SETTINGS.items()
    }
    most = np.inf
    for name, model in models.items():
        if name == "fixed margin 4" and most <= 4.0:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # nothing to learn
            model.fit(codes[train], true[train])
        if name != NAIVE and not model.converged_:
            raise RuntimeError(f"{name} did not converge")
        most = getattr(model, "max_margin_", most)
        yield name, model, time.perf_counter() - start


def one_draw(codes, true, rng):
    """Records of every model, of its edges, and what the figures need."""
    from maxent import ChowLiuClassifier
    from maxent.displays import ROCComparisonDisplay
    from maxent.displays.roc import compare_scores

    train, test = split(true, rng)
    base = ChowLiuClassifier(class_prior="uniform").fit(codes[train], true[train])
    wrong = base.predict(codes[test]) != true[test]
    nothing = dict.fromkeys(("level", "support", "bound", "seconds"), np.nan)
    records = [
        {
            "model": BASELINE,
            "train": np.mean(base.predict(codes[train]) != true[train]),
            "test": wrong.mean(),
            "se": 0.0,
            **nothing,
        }
    ]
    scores = {BASELINE: np.diff(base.predict_log_proba(codes[test]))[:, 0]}
    edges, shown = [], None
    for name, model, seconds in fitted_models(codes, true, train):
        predicted = model.predict(codes[test])
        # the same test rows: the difference of two errors is a mean over rows
        change = (predicted != true[test]).astype(float) - wrong
        records.append(
            {
                "model": name,
                "train": np.mean(model.predict(codes[train]) != true[train]),
                "test": np.mean(predicted != true[test]),
                "se": change.std(ddof=1) / np.sqrt(len(test)),
                "level": getattr(model, "level_", np.nan),
                "support": len(getattr(model, "support_", ())),
                "bound": len(getattr(model, "support_", ())) / len(train),
                "seconds": seconds,
            }
        )
        if name == NAIVE:
            scores[name] = np.diff(model.predict_log_proba(codes[test]))[:, 0]
            continue
        scores[name] = model.decision_function(codes[test])
        shown = model if name == SHOWN else shown
        edges += [
            {
                "model": name,
                "class": kind,
                **edge_measures(model.edge_log_weights_[k], base.information_[k]),
            }
            for k, kind in enumerate(CLASSES)
            if not name.startswith("untrained")
        ]
    curves = ROCComparisonDisplay(*compare_scores(true[test], scores), list(scores))
    for record, area in zip(records, curves.auc, strict=True):
        step, error = curves.difference(record["model"], BASELINE)
        record |= {"auc": area, "auc_step": step, "auc_se": error}
    edges = {(e["model"], e["class"]): e for e in edges}
    for record in records:
        for kind in CLASSES:
            own = edges.get((record["model"], kind), {})
            record |= {f"{kind} {k}": own.get(k, np.nan) for k in EDGES}
    return records, (curves, shown, base)


def main():
    """Run the draws; write the tables, their numbers, a figure of the first draw."""
    out = parser(__doc__, 10, " or ".join(FILES.values()))
    sets = list(FILES)
    out.add_argument(
        "--set", choices=sets, help="of both (default: human if it is there)"
    )
    options = out.parse_args()
    codes, true, title = load(options.data, options.set)
    name = f"splice_tree_{title}"

    def work(draw):
        rng = np.random.default_rng([options.seed, draw])
        rows, pictures = one_draw(codes, true, rng)
        if draw == 0:
            picture(*pictures, f"{options.out}/{name}.png")
        return rows

    rows = run(name, options, [{"draw": k} for k in range(options.draws)], work)
    lines = [line(rows, m) for m in (BASELINE, NAIVE, *SETTINGS)]
    head = [
        *("model", "level, nats", "training error", "test error", "minus Chow-Liu"),
        *("draws below", "minus untrained, same tables", "rows with a multiplier"),
        *("area under the ROC curve", "minus untrained, fixed tables"),
    ]
    table(name, options, head, [own[: len(head)] for own in lines])
    head += [
        "area minus Chow-Liu",
        "error minus Chow-Liu, one test set",
        "area minus Chow-Liu, one test set",
    ]
    head += ["draws with a larger area", "share of rows with a multiplier", "seconds"]
    head += [f"{kind}: {name}" for kind in CLASSES for name in EDGE_HEAD]
    table(f"{name}_all", options, head, lines)


EDGES = {
    "first_to_second": "first weight over the second, median (range)",
    "weights_adjacent": "adjacent letters among the 24 largest weights",
    "information_adjacent": "among the 24 largest informations",
    "rank_correlation": "rank correlation",
}
EDGE_HEAD = list(EDGES.values())


def line(rows, model):
    """Cells of a model: means over the draws, paired differences with their errors.

    The share of rows with a multiplier would bound the error, left one out, but the
    tables come from the same rows: it is no guarantee.
    """

    def own(key, model=model):
        return column(rows, key, model=model)

    def over(step, digits, unit=""):
        return mean_and_error(step, digits) + unit

    if not len(own("test")):
        return [model, "out of reach in every draw"]
    draws = np.isin(column(rows, "draw", model=BASELINE), own("draw"))
    step = 100 * (own("test") - own("test", BASELINE)[draws])
    gain, untrained = own("auc_step"), own("auc") - own("auc", "untrained")[draws]
    kinds = (word for word in ("random tables", "uniform trees") if word in model)
    alike = ", ".join(["untrained", *kinds])
    trained = 100 * (own("test") - own("test", alike)[draws])
    trees, base = model not in (BASELINE, NAIVE), model == BASELINE
    return [
        *(model, f"{own('level').mean():.2f}" if trees else ""),
        *(f"{100 * own('train').mean():.2f} %", f"{100 * own('test').mean():.2f} %"),
        *("" if base else over(step, 2, " %"),),
        *("" if base else f"{(step < 0).sum()} of {len(step)}",),
        *(over(trained, 2, " %") if trees and model != alike else "",),
        *(f"{own('support').mean():.0f}" if trees else "", f"{own('auc').mean():.4f}"),
        *(over(untrained, 4) if model != "untrained" else "",),
        *("" if base else over(gain, 4),),
        *("" if base else f"{step.mean():.2f} ± {100 * own('se').mean():.2f} %",),
        *("" if base else f"{gain.mean():.4f} ± {own('auc_se').mean():.4f}",),
        *("" if base else f"{(gain > 0).sum()} of {len(gain)}",),
        *(f"{100 * own('bound').mean():.1f} %" if trees else "",),
        *("" if base else f"{own('seconds').mean():.2f}",),
        *(cell for kind in CLASSES for cell in edge_cells(own, kind)),
    ]


def edge_cells(own, kind):
    """Cells of the edges of one class."""
    ratio = own(f"{kind} first_to_second")
    if not np.isfinite(ratio).any():
        return [""] * len(EDGES)
    return [
        f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.4g})",
        *(f"{own(f'{kind} {key}').mean():.1f}" for key in list(EDGES)[1:3]),
        f"{own(f'{kind} rank_correlation').mean():+.2f}",
    ]


def picture(curves, model, base, path):
    """ROC curves, and edge weights beside the mutual information of both classes."""
    from matplotlib.figure import Figure

    from maxent.displays import EdgeWeightsDisplay

    if model is None:
        return
    figure = Figure(figsize=(15, 6), layout="constrained")
    grid = figure.subplot_mosaic([["roc", "false", "true"]])
    kept = [curves.names.index(name) for name in (BASELINE, SHOWN)]
    type(curves)(
        [curves.curves[k] for k in kept],
        curves.auc[kept],
        curves.covariance[np.ix_(kept, kept)],
        [curves.names[k] for k in kept],
    ).plot(grid["roc"])
    grid["roc"].set(
        title="test rows",
        xlabel="share of false sites taken for true",
        ylabel="share of true sites recognised",
    )
    for k, name in enumerate(CLASSES):
        EdgeWeightsDisplay(
            model.edge_log_weights_[k], base.information_[k], title=f"{name} sites"
        ).plot(grid[name])
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
