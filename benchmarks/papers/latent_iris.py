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
from _latent import CHOICES, arguments, counts, fitted
from _results import column, mean_and_error, read_rows, run, share, table
from fetch import found

PRINTED = {"entropy": "5.58886 / 0.1220", "likelihood": "5.37704 / 0.2446"}
NAMES = {
    "none": {"entropy": "LME", "likelihood": "MLE"},
    "weak": {"entropy": "RLME", "likelihood": "MAP"},
}


def load(folder):
    """Measurements (150, 4) and species 0-2."""
    if folder is None:
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)
    rows = [list(row.values()) for row in read_rows(found(folder, "iris.csv"))]
    X = np.array([row[:4] for row in rows], dtype=float)
    return X, np.unique([row[4] for row in rows], return_inverse=True)[1]


def error(model, X, y, train):
    """Share of test rows whose component's species is another."""
    own, other = model.predict(X[train]), model.predict(X[~train])
    species = np.zeros(3, dtype=int)
    for k in np.unique(own):
        species[k] = np.bincount(y[train][own == k]).argmax()
    return float(np.mean(species[other] != y[~train]))


def line(rows, prior, choice):
    """Cells of one choice."""

    def own(name, choice=choice):
        return column(rows, f"{choice} {name}", prior=prior)

    other = own("error", CHOICES[choice == CHOICES[0]])
    return [
        *(NAMES[prior][choice], mean_and_error(own("score"), 3)),
        *(mean_and_error(own("error"), 3), mean_and_error(own("error") - other, 3)),
        share(np.where(own("error") < other, 1.0, 0.0)),
        *(mean_and_error(own("training"), 3), mean_and_error(own("joint"), 3)),
        PRINTED[choice] if prior == "none" else "",
    ]


def main():
    """Both choices on every split, without and with a prior."""
    from maxent import LMEGaussianMixture

    parser = arguments(__doc__, 50, None, 100)
    parser.add_argument("--data", help="folder of iris.csv")
    options = parser.parse_args()
    X, y = load(options.data)

    def work(draw, prior):
        rng = np.random.default_rng([options.seed, draw])
        train = np.zeros(len(y), dtype=bool)
        train[rng.choice(len(y), size=100, replace=False)] = True
        model = LMEGaussianMixture(
            3,
            n_init=options.starts,
            prior=None if prior == "none" else prior,
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
        return row | counts(model)

    units = [{"draw": k, "prior": p} for k in range(options.draws) for p in NAMES]
    rows = run("latent_iris", options, units, work)
    head = ["choice", "test log-likelihood", "test error", "minus the other's, paired"]
    head += ["splits with a smaller error", "training log-likelihood", "joint entropy"]
    lines = [line(rows, prior, choice) for prior in NAMES for choice in CHOICES]
    table("latent_iris", options, [*head, "printed"], lines)


if __name__ == "__main__":
    main()
