"""Anomaly detection on splice sites: figure 9 of the MED paper, with another data set.

Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, section 4: a product of
multinomials over the 25 letters around true splice sites, trained on 7000 of them,
tested on 1192 true and 3532 false ones; the MED distribution against the Bayes
posterior of the same Dirichlet prior. Claims: training log-likelihoods more uniform,
without a long lower tail, and a better ROC curve. No numbers are printed, and the data
are not identified.

Protocol here: `human_sites.csv.gz` in the data folder, with columns site, label (1
true, 0 false) and sequence (140 letters, GT at positions 70 and 71 of donors, false
ones included); 8000 true and 8000 false donors. Windows of 25 letters, 12 before the
GT. A draw puts 1192 true and 3532 false donors into the test set and trains on the
other 6808 true ones. All category counts have the prior pseudo-count 1.

No setting is chosen: the first MED row has quantile 0.2 and C 1, the others change
one thing or two, and every one of them is in the table. Scores are expected
log-likelihoods.
"""

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np

TRUE_TEST, FALSE_TEST = 1192, 3532
WINDOW = slice(58, 83)
SETTINGS = {
    "MED, quantile 0.2, C 1": {"quantile": 0.2},
    "MED, quantile 0.05, C 1": {"quantile": 0.05},
    "MED, quantile 0.5, C 1": {"quantile": 0.5},
    "MED, quantile 0.2, C 10": {"quantile": 0.2, "C": 10.0},
    "MED, quantile 0.05, C 10": {"quantile": 0.05, "C": 10.0},
}
BAYES, DEFAULT = "Bayes posterior", next(iter(SETTINGS))


def load(folder):
    """Codes 0..3 of the windows (n, 25) and whether each donor is true (n,)."""
    path = Path(folder) / "human_sites.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    with gzip.open(path, "rt", encoding="ascii") as stream:
        rows = [row for row in csv.DictReader(stream) if row["site"] == "donor"]
    letters = np.array([list(row["sequence"][WINDOW]) for row in rows])
    codes = np.searchsorted(list("ACGT"), letters)
    if not (np.array(list("ACGT"))[codes] == letters).all():
        raise SystemExit(f"{path} holds letters other than A, C, G, T")
    return codes, np.array([row["label"] == "1" for row in rows])


def one_draw(codes, true, rng):
    """Test labels, and training and test scores by model, of one draw."""
    from maxent import MEDOutlierDetector
    from maxent.families import DirichletProduct

    yes = rng.permutation(np.flatnonzero(true))
    no = rng.permutation(np.flatnonzero(~true))[:FALSE_TEST]
    train = codes[yes[TRUE_TEST:]]
    test = codes[np.concatenate([yes[:TRUE_TEST], no])]
    normal = np.arange(len(test)) < TRUE_TEST
    prior = DirichletProduct(1.0, [4] * codes.shape[1])
    bayes = prior.posterior(train)
    scores = {BAYES: (bayes.expected_log_prob(train), bayes.expected_log_prob(test))}
    support = {BAYES: len(train)}
    for name, setting in SETTINGS.items():
        model = MEDOutlierDetector(prior, **setting).fit(train)
        if not model.converged_:
            raise RuntimeError(f"{name} did not converge")
        scores[name] = model.score_samples(train), model.score_samples(test)
        support[name] = len(model.support_)
    return normal, scores, support


def main():
    """Run the draws; write the table, its numbers, and the figure of the first draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with human_sites.csv.gz")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from maxent.displays import ROCComparisonDisplay
    from maxent.displays.roc import compare_scores

    codes, true = load(options.data)
    records, first = [], None
    for number in range(options.draws):
        rng = np.random.default_rng([options.seed, number])
        normal, scores, support = one_draw(codes, true, rng)
        tests = {name: test for name, (_, test) in scores.items()}
        roc = ROCComparisonDisplay(*compare_scores(normal, tests), list(tests))
        for k, (name, (train, _)) in enumerate(scores.items()):
            difference, error = roc.difference(name, BAYES)
            records.append(
                {
                    "draw": number,
                    "model": name,
                    "auc": roc.auc[k],
                    "se": roc.standard_error[k],
                    "minus_bayes": difference,
                    "se_minus_bayes": error,
                    "least": train.min(),
                    "sd": train.std(),
                    "support": support[name],
                }
            )
        first = first or (normal, scores)
        print(f"\r{number + 1} of {options.draws} draws", end="", flush=True)
    print()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    write(records, codes, true, options, out)
    draw(*first, out / "anomaly_splice.png")
    print(f"written: {out / 'anomaly_splice'}.md, .csv and .png")


def write(records, codes, true, options, out):
    """anomaly_splice.md and .csv; prints the table."""
    import maxent

    trained = true.sum() - TRUE_TEST
    equal = len(codes) - len(np.unique(codes, axis=0))
    lines = [
        "# Human donor sites, windows of 25 letters: anomaly detection",
        "",
        f"{options.draws} draws, seed {options.seed}: {trained} true sites "
        f"to train, {TRUE_TEST} true and {FALSE_TEST} false to test. Mean over draws; "
        "standard errors are those of one test set (DeLong), also of the differences. "
        f"Windows that repeat another: {equal} of {len(codes)}. maxent "
        f"{maxent.__version__}.",
        "",
        "| model | AUC | minus Bayes | draws above Bayes | least training "
        "log-likelihood | sd of them | rows with a multiplier |",
        "|" + "---|" * 7,
    ]
    for name in (BAYES, *SETTINGS):
        rows = [r for r in records if r["model"] == name]

        def mean(key, rows=rows):
            return np.mean([r[key] for r in rows])

        above = 100 * np.mean([r["minus_bayes"] > 0 for r in rows])
        is_bayes = name == BAYES
        difference = f"{mean('minus_bayes'):+.4f} ± {mean('se_minus_bayes'):.4f}"
        cells = [
            name,
            f"{mean('auc'):.4f} ± {mean('se'):.4f}",
            "" if is_bayes else difference,
            "" if is_bayes else f"{above:.0f} %",
            f"{mean('least'):.1f}",
            f"{mean('sd'):.2f}",
            f"{mean('support'):.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    text = "\n".join([*lines, ""])
    (out / "anomaly_splice.md").write_text(text, encoding="utf-8")
    print(text)
    with open(out / "anomaly_splice.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def draw(normal, scores, path):
    """Training log-likelihoods and ROC curves of the first draw, Bayes against MED."""
    from matplotlib.figure import Figure

    from maxent.displays import LogLikelihoodDisplay, ROCComparisonDisplay

    shown = {name: scores[name] for name in (BAYES, DEFAULT)}
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    training, test = ({n: s[k] for n, s in shown.items()} for k in (0, 1))
    LogLikelihoodDisplay.from_scores(training, ax=axes[0])
    ROCComparisonDisplay.from_predictions(normal, test, ax=axes[1])
    axes[0].set_title("true donor sites, training")
    axes[1].set(
        title="true against false, test",
        xlabel="share of false sites taken for true",
        ylabel="share of true sites recognised",
    )
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
