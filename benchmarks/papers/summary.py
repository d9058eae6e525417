"""What reproduced: docs/reproductions/summary.csv, of the tables in that folder.

    python summary.py [FOLDER]

Claims, printed values and verdicts are written here; what was found, by which command,
when, at which commit and in how many minutes is read from the tables and from the
files NAME.json that the scripts wrote.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from _results import read_rows, write_rows

HOME = Path(__file__).resolve().parents[2] / "docs" / "reproductions"
YES, NO, PART, OPEN = "reproduced", "not reproduced", "in part", "cannot be judged"
VERDICTS = (YES, PART, NO, OPEN)


@dataclass
class Claim:
    """One line of the summary.

    Attributes
    ----------
    label : str
        Of the section of the documentation.
    where : str
        Paper and place in it.
    claim, printed, verdict : str
    found : str
        With ``{}`` for each of `cells`.
    cells : list of tuple
        (table, first cells of the row, column), in the files NAME_table.csv.
    result : str
        NAME of the results, whose NAME.json tells of the run.
    data : str
    """

    label: str
    where: str
    claim: str
    printed: str
    found: str
    cells: list
    verdict: str
    result: str
    data: str = "bundled"


DUAL, SHARES = "MED Gaussians, the dual's bias", "ML Gaussians, class shares"
TEST = "test errors of 120", "test errors of 169"
COUNTERPART, AREA = "test minus its counterpart", "minus maximum likelihood"
JMJ, JKH, WSZ, MKPGK = "JMJ 1999", "JKH 2004", "WSZ 2012", "MKPGK 2012"
HUMAN = "human donor sites"
GAIN, RLME = "MLE - LME, paired", "3r"
CONTROL, BROWN = "language_model_brown_20", "language_model_brown_90"
STEP = "exponential, level 4, C 1"
VALIDATED = "by validation"

CLAIMS = [
    Claim(
        "crabs",
        f"{JMJ}, table 1",
        "MED Gaussians make fewer errors than maximum likelihood",
        "3 against 7 of 120",
        "{} against {}; difference {}",
        [
            ("crabs", [DUAL], TEST[0]),
            ("crabs", [SHARES], TEST[0]),
            ("crabs", [DUAL], COUNTERPART),
        ],
        f"{PART}: a gain below one error, near two standard errors",
        "crabs",
    ),
    Claim(
        "crabs",
        f"{JMJ}, table 1",
        "MED Gaussians and the linear SVM are ahead of all others",
        "3 and 3; logistic regression 4",
        "{} and {}; logistic regression {}",
        [
            ("crabs", [DUAL], TEST[0]),
            ("crabs", ["SVM, linear"], TEST[0]),
            ("crabs", ["logistic regression"], TEST[0]),
        ],
        f"{NO}: five models tie",
        "crabs",
    ),
    Claim(
        "breast-cancer",
        f"{JMJ}, table 2",
        "MED Gaussians make fewer errors than maximum likelihood",
        "8 against 16 of 169",
        "{} against {}; difference {}",
        [
            ("breast_cancer", [DUAL], TEST[1]),
            ("breast_cancer", [SHARES], TEST[1]),
            ("breast_cancer", [DUAL], COUNTERPART),
        ],
        f"{NO}: true of one split, not of the mean",
        "breast_cancer",
        "wbc_369.csv",
    ),
    Claim(
        "curves",
        f"{JMJ}, figures 3 to 6",
        "The ROC curve of MED Gaussians is above that of maximum likelihood",
        "curves",
        "area {} on the crabs, {} on breast cancer",
        [
            ("crabs_curves", ["MED Gaussians"], AREA),
            ("breast_cancer_curves", ["MED Gaussians"], AREA),
        ],
        f"{PART}: on the crabs, by little",
        "crabs_curves",
    ),
    Claim(
        "trees",
        f"{JMJ}, figure 7",
        "Trees by MED make fewer errors than Chow-Liu trees",
        "12.4 against 14.0 %",
        "{} against {}; difference {}",
        [
            ("splice_tree_human", [STEP], "test error"),
            ("splice_tree_human", ["Chow-Liu trees"], "test error"),
            ("splice_tree_human", [STEP], "minus Chow-Liu"),
        ],
        f"{YES}; most of it by averaging over trees, not by margins",
        "splice_tree_human",
        HUMAN,
    ),
    Claim(
        "trees",
        f"{JMJ}, figure 7",
        "Their ROC curve is above that of Chow-Liu trees",
        "curves",
        "area {} against {}; difference {}",
        [
            ("splice_tree_human", [STEP], "area under the ROC curve"),
            ("splice_tree_human", ["Chow-Liu trees"], "area under the ROC curve"),
            ("splice_tree_human_all", [STEP], "area minus Chow-Liu"),
        ],
        f"{YES}; untrained trees have a larger area still",
        "splice_tree_human",
        HUMAN,
    ),
    Claim(
        "trees",
        f"{JMJ}, figure 8",
        "Edge weights do not follow the mutual informations, which are largest for "
        "adjacent letters",
        "pictures",
        "adjacent: {} of the 24 largest weights, {} of the informations",
        [
            ("splice_tree_human_all", [STEP], f"true: {key}")
            for key in (
                "adjacent letters among the 24 largest weights",
                "among the 24 largest informations",
            )
        ],
        YES,
        "splice_tree_human",
        HUMAN,
    ),
    Claim(
        "trees",
        f"{JMJ}, figure 8",
        "The largest edge weight is 1000 times the next",
        "above 1000",
        "{}",
        [
            (
                "splice_tree_human_all",
                [STEP],
                "true: first weight over the second, median (range)",
            )
        ],
        f"{NO}: only with fixed margins near the largest",
        "splice_tree_human",
        HUMAN,
    ),
    Claim(
        "anomaly",
        f"{JMJ}, figure 9",
        "MED ranks true sites better than the Bayes posterior, and evens out the "
        "training rows",
        "curves",
        "area {} (one test set); sd of training rows {} against {}",
        [
            ("anomaly_splice", ["MED, quantile 0.5, C 1"], "minus Bayes"),
            ("anomaly_splice", ["MED, quantile 0.5, C 1"], "sd of them"),
            ("anomaly_splice", ["Bayes posterior"], "sd of them"),
        ],
        YES,
        "anomaly_splice",
        HUMAN,
    ),
    Claim(
        "anomaly-latent",
        f"{JMJ}, section 4.1",
        "The gain is larger with hidden variables",
        "expected",
        "area {} with two components, {} with 3 states (quantile 0.5)",
        [
            (
                "anomaly_splice_latent",
                ["mixture of 2, MED, quantile 0.5"],
                "minus Bayes",
            ),
            (
                "anomaly_splice_latent",
                ["HMM of 3 states, MED, quantile 0.5"],
                "minus Bayes",
            ),
        ],
        f"{PART}: mixtures, not hidden Markov models in general",
        "anomaly_splice_latent",
        HUMAN,
    ),
    Claim(
        "partial",
        f"{JMJ}, figure 10",
        "Rows without a label help: the curve lies between 10 % and 100 % labelled",
        "curves",
        "area {} over 10 % labelled, of {}",
        [
            (
                "splice_partial",
                ["linear", "10 % + 90 % unlabelled, paper"],
                "minus 10 % labelled",
            ),
            ("splice_partial", ["linear", "100 % labelled"], "minus 10 % labelled"),
        ],
        YES,
        "splice_partial",
        HUMAN,
    ),
    Claim(
        "webkb",
        f"{JKH}, figure 7",
        "The Bhattacharyya kernel is ahead of the linear one and of Gaussian kernels",
        "curves",
        "{} against {} (linear), 77 pages",
        [
            ("webkb", ["Bhattacharyya"], f"77 pages: {VALIDATED}"),
            ("webkb", ["linear"], f"77 pages: {VALIDATED}"),
        ],
        YES,
        "webkb",
        "webkb.csv.gz",
    ),
    Claim(
        "exons",
        f"{JKH}, figure 8",
        "Errors of hidden Markov models at T = 9 and of 3-mers",
        "10 to 11 % and 7 to 8 %",
        "{} and {} on whole genes of a nematode",
        [
            ("exon_intron_nematode", ["HMM, T = 9"], VALIDATED),
            ("exon_intron_nematode", ["3-mers"], VALIDATED),
        ],
        f"{YES} on another species; the genes of the paper are not to be had",
        "exon_intron_nematode",
        "exon_intron.fasta.gz",
    ),
    Claim(
        "exons",
        f"{JKH}, figure 8",
        "4-mers and 5-mers are worse than 3-mers",
        "curves",
        "{} and {} minus 3-mers",
        [
            ("exon_intron_nematode", ["4-mers"], "minus 3-mers"),
            ("exon_intron_nematode", ["5-mers"], "minus 3-mers"),
        ],
        NO,
        "exon_intron_nematode",
        "exon_intron.fasta.gz",
    ),
    Claim(
        "series",
        f"{JKH}, figure 10",
        "Kernels of linear systems are ahead of a Gaussian kernel and of one system "
        "for each class",
        "28 % against 34 and 35 %",
        "{} against {} and {}",
        [
            ("switching_series", [name], VALIDATED)
            for name in ("LDS, per step", "Gaussian kernel", "LDS by class, ML")
        ],
        YES,
        "switching_series",
        "drawn",
    ),
    Claim(
        "series",
        f"{JKH}, figure 10",
        "The kernel of switching systems is ahead of that of linear ones",
        "25 against 28 %",
        "{} minus the linear one",
        [("switching_series", ["SLDS"], "minus LDS, joint")],
        f"{NO}: a tie",
        "switching_series",
        "drawn",
    ),
    Claim(
        "mixtures",
        f"{WSZ}, figures 2 to 7",
        "LME is nearer to the truth than maximum likelihood",
        "at every size in scenarios 1 and 3",
        "KL lower by {} at 50 rows, {} at 1000 (scenario 1)",
        [
            ("latent_gaussians", ["1", "50"], GAIN),
            ("latent_gaussians", ["1", "1000"], GAIN),
        ],
        f"{PART}: up to 100 rows; the order turns over",
        "latent_gaussians",
        "drawn",
    ),
    Claim(
        "mixtures",
        f"{WSZ}, figure 16",
        "The regularised LME is nearer to the truth than MAP",
        "curves",
        "KL lower by {} at 50 rows, {} at 1000",
        [
            ("latent_gaussians", [RLME, "50"], GAIN),
            ("latent_gaussians", [RLME, "1000"], GAIN),
        ],
        f"{PART}: at 50 rows",
        "latent_gaussians",
        "drawn",
    ),
    Claim(
        "iris",
        f"{WSZ}, table I",
        "LME groups iris flowers with fewer errors than maximum likelihood",
        "0.1220 against 0.2446",
        "{} against {}",
        [("latent_iris", [name], "test error") for name in ("LME", "MLE")],
        f"{NO}: the opposite",
        "latent_iris",
        "scikit-learn",
    ),
    Claim(
        "dirichlet",
        f"{WSZ}, figure 8",
        "LME is nearer to the truth, mixtures of Dirichlet distributions",
        "curves",
        "KL lower by {}, {} and {} at 50, 100 and 200 rows",
        [("latent_dirichlet", [n], GAIN) for n in ("50", "100", "200")],
        YES,
        "latent_dirichlet",
        "drawn",
    ),
    Claim(
        "boltzmann",
        f"{WSZ}, figures 13 to 15",
        "LME is nearer to the truth, Boltzmann machines",
        "curves",
        "KL lower by {}, {} and {} at 200 rows",
        [("latent_boltzmann", [n, "200"], GAIN) for n in ("3", "5", "1")],
        YES,
        "latent_boltzmann",
        "drawn",
    ),
    Claim(
        "boltzmann",
        f"{WSZ}, figure 10",
        "More steps of iterative scaling in an M step climb faster per E step",
        "curves",
        "likelihood {}, {} and {} after 10, K = 1, 4 and 16",
        [
            ("latent_boltzmann_ascents", [f"IIS, K = {k}"], "after 10")
            for k in (1, 4, 16)
        ],
        YES,
        "latent_boltzmann_ascents",
        "drawn",
    ),
    Claim(
        "language",
        f"{WSZ}, section 8",
        "Trigrams with topics have a lower perplexity than interpolated trigrams",
        "110 against 132",
        "{} against {}; gain {} nats a word",
        [
            (BROWN, ["trigrams and topics, L-BFGS (60)"], "perplexity"),
            (BROWN, ["interpolated trigram"], "perplexity"),
            (BROWN, ["trigrams and topics, L-BFGS (60)"], "gain, nats a word"),
        ],
        f"{YES} in order, on a corpus 200 times smaller",
        BROWN,
        "brown.csv.gz",
    ),
    Claim(
        "language",
        f"{WSZ}, section 8",
        "RLME of several starts is ahead of MAP",
        "106 against 110",
        "{} against {}",
        [
            (CONTROL, [f"EM-IS, {name} of all starts"], "perplexity")
            for name in ("RLME", "MAP")
        ],
        f"{OPEN}: as printed, no run converges",
        CONTROL,
        "brown.csv.gz",
    ),
    Claim(
        "motifs",
        f"{MKPGK}, table 1",
        "Low orders make fewer errors than the latent SVM",
        "24.9 against 27.1 %",
        "{} against {} %; difference {}",
        [
            ("motifs_pbm_median_methods", ["alpha = 0.25"], "test error"),
            ("motifs_pbm_median_methods", ["latent SVM"], "test error"),
            ("motifs_pbm_median_methods", ["alpha = 0.25"], "minus latent SVM"),
        ],
        f"{YES} on other proteins",
        "motifs_pbm_median",
        "hk_signal.csv.gz",
    ),
    Claim(
        "digits",
        f"{MKPGK}, figures 2 and 3",
        "High orders are ahead on images with one true place",
        "curves",
        "all classes: {} % at infinite order, {} % at order 1",
        [
            ("digits_clutter", ["gradients", "alpha = inf"], "all classes"),
            ("digits_clutter", ["gradients", "alpha = 1"], "all classes"),
        ],
        f"{OPEN}: other images, one split",
        "digits_clutter",
        "digits_on_clutter.npz",
    ),
]


def cell(folder, name, first, column):
    """Cell of NAME_table.csv in the row that starts with the given cells."""
    path = folder / f"{name}_table.csv"
    for row in read_rows(path):
        if list(row.values())[: len(first)] == first:
            return row[column]
    raise SystemExit(f"{path} has no row {first}: run its script again")


def line(claim, folder):
    """Cells of a line of the summary."""
    cells = [cell(folder, *at) for at in claim.cells]
    run = json.loads((folder / f"{claim.result}.json").read_text("utf-8"))
    command = run["command"].replace("benchmarks/papers/", "").split(" --out")[0]
    command = re.sub(r"--data \S+", "--data FOLDER", command)
    word = next(v for v in VERDICTS if claim.verdict.startswith(v))
    return {
        "claim": f":ref:`{claim.where} <reproduction-{claim.label}>`: {claim.claim}",
        "printed": claim.printed,
        "here": claim.found.format(*cells),
        "verdict": f"**{word}**{claim.verdict[len(word) :]}",
        "command": f"``{command}``",
        "data": claim.data,
        "minutes": f"{run['seconds'] / 60:.2g}" if run["seconds"] else "",
        "run": f"{run['date']}, {run['commit']}" + ", earlier" * ("earlier" in run),
    }


def main():
    """Write the summary, and say what each verdict is how often."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HOME
    write_rows(folder / "summary.csv", [line(claim, folder) for claim in CLAIMS])
    for verdict in VERDICTS:
        n = sum(claim.verdict.startswith(verdict) for claim in CLAIMS)
        print(f"{verdict}: {n} of {len(CLAIMS)}")


if __name__ == "__main__":
    main()
