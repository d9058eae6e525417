"""Iris flowers without labels: table I of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012): three Gaussians on four measurements, 100 flowers to
train and 50 to test, 100 splits, 300 starts. Printed: "log-likelihood" 5.58886 and
error 0.1220 for LME, 5.37704 and 0.2446 for maximum likelihood. Neither the sign nor
the scale of the likelihood is explained.

Protocol here: random splits; starts at training rows with the pooled covariance; the
log-likelihood of test flowers in nats a flower, centimetres as measured; a component
predicts the species most frequent among its training rows. `--data` is a folder with
``iris.csv`` (four measurements, species); by default the copy of scikit-learn.
"""

import numpy as np
from _experiment import markdown, read_csv
from _latent import CHOICES, Trials, arguments, cell, clock, finish, fitted, share

PRINTED = {"entropy": "5.58886 / 0.1220", "likelihood": "5.37704 / 0.2446"}
NAMES = {"entropy": "LME", "likelihood": "MLE"}


def load(folder):
    """Measurements (150, 4) and species 0-2."""
    if folder is None:
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)
    rows = [list(row.values()) for row in read_csv(folder, "iris.csv")]
    X = np.array([row[:4] for row in rows], dtype=float)
    return X, np.unique([row[4] for row in rows], return_inverse=True)[1]


def error(model, X, y, train):
    """Share of test rows whose component's species is another."""
    own, other = model.predict(X[train]), model.predict(X[~train])
    species = np.zeros(3, dtype=int)
    for k in np.unique(own):
        species[k] = np.bincount(y[train][own == k]).argmax()
    return float(np.mean(species[other] != y[~train]))


def run(X, y, options):
    """Both choices on every split, without and with a prior."""
    from maxent import LMEGaussianMixture

    trials = Trials()
    for draw in range(options.draws):
        rng = np.random.default_rng([options.seed, draw])
        train = np.zeros(len(y), dtype=bool)
        train[rng.choice(len(y), size=100, replace=False)] = True
        for prior in (None, "weak"):
            model = LMEGaussianMixture(
                3,
                n_init=options.starts,
                prior=prior,
                init_params="random_from_data",  # as in the paper
                random_state=draw,
            )
            model, row = fitted(model, X[train]), {}
            for choice in CHOICES if model is not None else ():
                own = model.select(choice)
                row[f"{choice} score"] = own.score(X[~train])
                row[f"{choice} error"] = error(own, X, y, train)
                row[f"{choice} training"] = own.log_likelihood_
                row[f"{choice} joint"] = own.entropy_
            if model is not None:
                row |= model.rejected_
                row["admitted"] = int((model.candidates_["reason"] == "").sum())
            trials.add(draw=draw, prior=prior or "none", **row)
    return trials


def lines_of(trials):
    """Rows of the table."""
    rows = []
    for prior in ("none", "weak"):

        def own(name, prior=prior):
            return trials.column(name, prior=prior)

        for c in CHOICES:
            other = CHOICES[c == CHOICES[0]]
            rows.append(
                [
                    NAMES[c] if prior == "none" else {"entropy": "RLME"}.get(c, "MAP"),
                    cell(own(f"{c} score")),
                    cell(own(f"{c} error")),
                    cell(own(f"{c} error") - own(f"{other} error")),
                    share(np.where(own(f"{c} error") < own(f"{other} error"), 1.0, 0)),
                    cell(own(f"{c} training")),
                    cell(own(f"{c} joint")),
                    PRINTED[c] if prior == "none" else "",
                ]
            )
    return rows


def main():
    """Run and write."""
    parser = arguments(
        *(__doc__.splitlines()[0], 50, None, 100), data="folder of iris.csv"
    )
    options = parser.parse_args()
    spent = clock()
    trials = run(*load(options.data), options)
    head = ["choice", "test log-likelihood", "test error", "minus the other's, paired"]
    head += ["splits with a smaller error", "training log-likelihood", "joint entropy"]
    names = ("unbounded", "not_local_maximum", "independent", "not_converged")
    counts = ", ".join(
        f"{np.nanmean(trials.column(name, prior='none')):.1f} {name.replace('_', ' ')}"
        for name in ("admitted", *names)
    )
    lines = [
        "# Iris, three Gaussians without labels",
        "",
        f"{options.draws} splits, {options.starts} starts, seed {options.seed}; mean ± "
        f"standard error over splits, which share rows; {spent()}.",
        "",
        *markdown([*head, "printed"], lines_of(trials)),
        "",
        f"Candidates of a split without a prior: {counts}.",
    ]

    def draw(path):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
        for ax, what in zip(axes, ("score", "error")):
            x, y = (trials.column(f"{c} {what}", prior="none") for c in CHOICES)
            ax.plot(y, x, "o", ms=4, alpha=0.6)
            ax.axline((np.nanmean(y), np.nanmean(y)), slope=1, color="0.5", lw=1)
            ax.set(xlabel=f"{what}, MLE", ylabel=f"{what}, LME")
        figure.tight_layout()
        figure.savefig(path, dpi=110)
        plt.close(figure)

    finish(trials, lines, options.out, "latent_iris", draw)


if __name__ == "__main__":
    main()
