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

import warnings

import numpy as np
from _results import column, mean_and_error, parser, run, table
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
    options = parser(__doc__, 10, "human_sites.csv.gz").parse_args()
    from sklearn.metrics import roc_auc_score

    codes, true = load(options.data)

    def work(draw, kernel):
        rng = np.random.default_rng([options.seed, draw])
        y, scores = one_draw(codes, true, KERNELS[kernel], rng)
        if draw == 0:
            picture(y, scores, f"{options.out}/splice_partial_{kernel}.png")
        return [{"model": m, "auc": roc_auc_score(y, scores[m])} for m in MODELS]

    units = [
        {"draw": k, "kernel": name} for k in range(options.draws) for name in KERNELS
    ]
    rows = run("splice_partial", options, units, work)
    lines = []
    for kernel in KERNELS:
        base = column(rows, "auc", kernel=kernel, model=FEW)
        for model in MODELS:
            areas = column(rows, "auc", kernel=kernel, model=model)
            line = [kernel, model, mean_and_error(areas, 4)]
            if model != FEW:
                line.append(mean_and_error(areas - base, 4))
                line.append(f"{(areas > base).sum()} of {len(areas)}")
            lines.append(line)
    head = ["kernel", "rows", "area under the curve", "minus 10 % labelled", "above"]
    table("splice_partial", options, head, lines)


def picture(y, scores, path):
    """ROC curves of a draw."""
    from matplotlib.figure import Figure

    from maxent.displays import ROCComparisonDisplay

    figure = Figure(figsize=(4.5, 3.8), layout="constrained")
    ROCComparisonDisplay.from_predictions(y, scores, ax=figure.subplots())
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
