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

import argparse
import csv
import gzip
import time
import warnings
from pathlib import Path

import numpy as np

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
    "untrained": UNTRAINED,
    "untrained, random tables": {"parameters": "dirichlet", **UNTRAINED},
}
SHOWN = next(iter(SETTINGS))
CLASSES = ("false", "true")


def load(folder):
    """Codes 0..3 (n, 25), whether each row is a true site, and the name of the set."""
    folder = Path(folder)
    path = folder / "human_sites.csv.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="ascii") as stream:
            rows = [row for row in csv.DictReader(stream) if row["site"] == "donor"]
        letters = np.array([list(row["sequence"][WINDOW]) for row in rows])
        true = np.array([row["label"] == "1" for row in rows])
        return np.searchsorted(list("ACGT"), letters), true, "human donor sites"
    path = folder / "statlog_dna.npz"
    if not path.exists():
        raise SystemExit(f"{folder} holds no human_sites.csv.gz and no statlog_dna.npz")
    with np.load(path) as data:
        X, y = data["X"].reshape(-1, 60, 3), data["y"]
    keep = y != "ie"
    codes = (X.astype(int) @ [1, 2, 3])[keep, 18:43]
    return codes, y[keep] == "ei", "primate exon-intron sites"


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
    return records, edges, (curves, shown, base)


def main():
    """Run the draws; write the table, its numbers, and figures of the first draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with the data")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    codes, true, title = load(options.data)
    records, edges, first = [], [], None
    for number in range(options.draws):
        rng = np.random.default_rng([options.seed, number])
        found, of_edges, pictures = one_draw(codes, true, rng)
        records.extend({"draw": number, **record} for record in found)
        edges.extend({"draw": number, **record} for record in of_edges)
        first = first or pictures
        print(f"\r{number + 1} of {options.draws} draws", end="", flush=True)
    print()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    name = "splice_tree_" + title.split()[0]
    write(records, edges, title, options, out / name)
    draw(*first, out / f"{name}.png")
    print(f"written: {out / name}.md, .csv and .png")


def write(records, edges, title, options, path):
    """The tables as .md and .csv; prints them."""
    import maxent

    lines = [
        f"# {title[0].upper() + title[1:]}, windows of 25 letters: dependency trees",
        "",
        f"{options.draws} draws, seed {options.seed}; {TRAIN} rows of each class to "
        "train. Mean over draws. Differences are paired: on the rows of one test set, "
        "with their standard error; over the draws, with theirs. The bound is the "
        "share of rows with a multiplier; the tables come from the same rows, so it "
        f"is no guarantee. maxent {maxent.__version__}.",
        "",
        *error_table(records),
        "",
        "Areas under the ROC curves, with the same differences:",
        "",
        *area_table(records),
        "",
        "Edges of the two classes: weight of the heaviest edge over that of the next, "
        "median and range over draws; how many of the 24 largest belong to adjacent "
        "letters; rank correlation of log weights and mutual informations.",
        "",
        *edge_table(edges),
        "",
    ]
    text = "\n".join(lines)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    for table, suffix in ((records, ""), (edges, "_edges")):
        name = path.with_name(f"{path.name}{suffix}.csv")
        with open(name, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(table[0]))
            writer.writeheader()
            writer.writerows(table)


def markdown(head, rows):
    """Lines of a table; short rows are filled."""
    full = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    lines = [head, ["---"] * len(head), *full]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def mean_of(rows, key):
    return np.mean([row[key] for row in rows])


def over_draws(steps, scale=1.0, form="+.2f", unit=""):
    """Mean of paired differences and its standard error over the draws."""
    steps = scale * np.asarray(steps)
    spread = steps.std(ddof=1) / np.sqrt(len(steps)) if len(steps) > 1 else 0.0
    return f"{steps.mean():{form}} ± {spread:{form[1:]}}{unit}"


def error_table(records):
    """Errors, levels and multipliers."""
    base = {r["draw"]: r["test"] for r in records if r["model"] == BASELINE}
    out = []
    for name in (BASELINE, NAIVE, *SETTINGS):
        rows = [r for r in records if r["model"] == name]
        if not rows:
            out.append([name, "0, out of reach"])
            continue
        change = np.array([r["test"] - base[r["draw"]] for r in rows])
        cells = [
            name,
            len(rows),
            "" if name in (BASELINE, NAIVE) else f"{mean_of(rows, 'level'):.2f}",
            f"{100 * mean_of(rows, 'train'):.2f} %",
            f"{100 * mean_of(rows, 'test'):.2f} %",
        ]
        if name != BASELINE:
            cells += [
                f"{100 * change.mean():+.2f} ± {100 * mean_of(rows, 'se'):.2f} %",
                over_draws(change, 100.0, unit=" %"),
                f"{(change < 0).sum()} of {len(change)}",
                f"{mean_of(rows, 'support'):.0f}",
                f"{100 * mean_of(rows, 'bound'):.1f} %",
                f"{mean_of(rows, 'seconds'):.2f}",
            ]
        out.append(cells)
    head = [
        *("model", "draws", "level", "training error", "test error"),
        *("minus Chow-Liu, one test set", "over draws", "better in"),
        *("rows with a multiplier", "bound", "seconds"),
    ]
    return markdown(head, out)


def area_table(records):
    """Areas under the ROC curves, against Chow-Liu trees and untrained ones."""
    out = []
    untrained = {r["draw"]: r["auc"] for r in records if r["model"] == "untrained"}
    for name in (BASELINE, NAIVE, *SETTINGS):
        rows = [r for r in records if r["model"] == name]
        if not rows:
            continue
        steps = np.array([r["auc_step"] for r in rows])
        cells = [name, f"{mean_of(rows, 'auc'):.4f}"]
        if name != BASELINE:
            cells += [
                f"{steps.mean():+.4f} ± {mean_of(rows, 'auc_se'):.4f}",
                over_draws(steps, form="+.4f"),
                f"{(steps > 0).sum()} of {len(steps)}",
                over_draws([r["auc"] - untrained[r["draw"]] for r in rows], form="+.4f")
                if name != "untrained"
                else "",
            ]
        out.append(cells)
    head = [
        *("model", "area", "minus Chow-Liu, one test set", "over draws", "larger in"),
        "minus untrained, over draws",
    ]
    return markdown(head, out)


def edge_table(edges):
    """Weights of the edges beside their mutual informations."""
    out = []
    for name in SETTINGS:
        for kind in CLASSES:
            rows = [e for e in edges if (e["model"], e["class"]) == (name, kind)]
            if not rows:
                continue
            ratio = np.array([r["first_to_second"] for r in rows])
            out.append(
                [
                    name,
                    kind,
                    f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})",
                    f"{mean_of(rows, 'weights_adjacent'):.1f}",
                    f"{mean_of(rows, 'information_adjacent'):.1f}",
                    f"{mean_of(rows, 'rank_correlation'):+.2f}",
                ]
            )
    head = [
        *("model", "class", "first to second weight"),
        *("adjacent among weights", "adjacent among informations"),
        "rank correlation",
    ]
    return markdown(head, out)


def draw(curves, model, base, path):
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
