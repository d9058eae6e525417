"""Partially labelled splice sites: figure 10 of the MED paper, with another data set.

Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, section 5: 500 true
and 500 false sites, windows of 25 letters as 100 bits, 10 % of them labelled, ten
rounds with step 0.1, linear and Gaussian kernels; 1192 true and 3532 false sites to
test. Claim: the ROC curve with 10 % labelled and 90 % unlabelled rows lies between
those with 10 % and with 100 % labelled. No numbers are printed, and the data are not
identified.

Protocol here: the donors of `human_sites.csv.gz`, windows as in `anomaly_splice.py`. A
draw takes 500 + 500 rows to train and 1192 + 3532 others to test, and labels 50 of each
class. C is 1, sharpness 10, the width of the Gaussian kernel scikit-learn's "scale";
nothing is chosen. "paper" is step 0.1 for ten rounds, "full steps" is step 1 until it
has converged.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from _experiment import markdown, mean_and_error, write_text
from anomaly_splice import FALSE_TEST, TRUE_TEST, load

TRAIN, LABELLED = 500, 50
FEW, PAPER, FULL, ALL = (
    "10 % labelled",
    "10 % + 90 % unlabelled, paper",
    "10 % + 90 % unlabelled, full steps",
    "100 % labelled",
)
MODELS = (FEW, PAPER, FULL, ALL)
KERNELS = {"linear": "linear", "Gaussian": "rbf"}


def bits(codes):
    """One bit a letter, (n, 4 * 25)."""
    return np.eye(4)[codes].reshape(len(codes), -1)


def one_draw(codes, true, kernel, rng):
    """Test labels, and scores by model, of one draw."""
    from maxent import MEDClassifier, MEDPartialLabelClassifier

    yes = rng.permutation(np.flatnonzero(true))
    no = rng.permutation(np.flatnonzero(~true))
    train = np.concatenate([yes[:TRAIN], no[:TRAIN]])
    test = np.concatenate(
        [yes[TRAIN : TRAIN + TRUE_TEST], no[TRAIN : TRAIN + FALSE_TEST]]
    )
    X, y = bits(codes[train]), true[train].astype(int)
    labelled = np.arange(len(train)) % TRAIN < LABELLED
    part = np.where(labelled, y, -1)
    machine = MEDClassifier(kernel)
    machine.gamma = 1.0 / (X.shape[1] * X.var())  # the same for all
    models = {
        FEW: MEDClassifier(kernel, gamma=machine.gamma).fit(X[labelled], y[labelled]),
        ALL: MEDClassifier(kernel, gamma=machine.gamma).fit(X, y),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds do not converge
        for name, options in (
            (PAPER, {"step": 0.1, "max_rounds": 10}),
            (FULL, {"step": 1.0}),
        ):
            models[name] = MEDPartialLabelClassifier(machine, **options).fit(X, part)
    Z = bits(codes[test])
    scores = {name: models[name].decision_function(Z) for name in MODELS}
    return true[test], scores


def main():
    """Run the draws; write the table, its numbers, and the curves of the first draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with human_sites.csv.gz")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from sklearn.metrics import roc_auc_score

    codes, true = load(options.data)
    records, first = [], {}
    for number in range(options.draws):
        for name, kernel in KERNELS.items():
            rng = np.random.default_rng([options.seed, number])
            y, scores = one_draw(codes, true, kernel, rng)
            first.setdefault(name, (y, scores))
            for model in MODELS:
                area = float(roc_auc_score(y, scores[model]))
                record = {"draw": number, "kernel": name, "model": model, "auc": area}
                records.append(record)
        print(f"\r{number + 1} of {options.draws} draws", end="", flush=True)
    print()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    write(records, options, out)
    draw(first, out / "splice_partial.png")


def write(records, options, out):
    """splice_partial.md and .csv."""
    import maxent

    def areas(kernel, model):
        return np.array(
            [r["auc"] for r in records if (r["kernel"], r["model"]) == (kernel, model)]
        )

    rows = []
    for kernel in KERNELS:
        base = areas(kernel, FEW)
        for model in MODELS:
            found = areas(kernel, model)
            gain = "" if model == FEW else mean_and_error(found - base, 4)
            better = "" if model == FEW else f"{100 * np.mean(found > base):.0f} %"
            rows.append([kernel, model, mean_and_error(found, 4), gain, better])
    lines = [
        "# Human donor sites, 10 % of 500 + 500 windows labelled",
        "",
        f"{options.draws} draws, seed {options.seed}; {TRUE_TEST} true and "
        f"{FALSE_TEST} false sites to test. Mean ± standard error of the mean over "
        f"draws. maxent {maxent.__version__}.",
        "",
        *markdown(
            ["kernel", "rows", "area under the curve", "minus 10 % labelled", "better"],
            rows,
        ),
    ]
    write_text(lines, out / "splice_partial.md")
    with open(out / "splice_partial.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def draw(first, path):
    """ROC curves of the first draw."""
    from matplotlib.figure import Figure

    from maxent.displays import ROCComparisonDisplay

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (kernel, found) in zip(
        figure.subplots(1, len(first)), first.items(), strict=True
    ):
        ROCComparisonDisplay.from_predictions(*found, ax=axes)
        axes.set_title(f"{kernel} kernel")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
