"""Boltzmann machines: figures 10 and 13-15 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), section 7.2: five visible units; data from machines with
3, 5 or 1 hidden units, fitted with three, no biases; 10 runs; curves without numbers.
The weights of the generators are not given: here standard normal.

Protocol here: both choices from one pool of `LMEBoltzmannMachine(3, bias=False)`,
without a penalty and with weights within 15 (pairs that never occur together have no
finite weight); divergences of the visible units are exact. Figure 10: mean log-
likelihood of improved iterative scaling with K steps and of L-BFGS from the same
starts, by E steps, a fresh machine with three hidden units and 100 rows in each trial.
"""

import itertools

import numpy as np
from _experiment import markdown
from _latent import Trials, arguments, both, cell, clock, finish, fitted, share

SIZES = [50, 200, 1000]
HIDDEN = (3, 5, 1)
VISIBLE = 5
STEPS = (1, 3, 10, 30, 100)


def states(n):
    """All rows of n binary units."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def visible_probabilities(hidden, rng):
    """p(v) of a machine with random weights, (32,)."""
    M = VISIBLE + hidden
    W = np.triu(rng.normal(size=(M, M)), 1)
    x = states(M)
    p = np.exp(np.sum(x @ W * x, axis=1)).reshape(2**VISIBLE, -1).sum(axis=1)
    return p / p.sum()


def choices(options):
    """Trials of figures 13-15."""
    from maxent.latent import LMEBoltzmannMachine

    rows, trials = states(VISIBLE), Trials()
    for hidden, draw in itertools.product(HIDDEN, range(options.draws)):
        rng = np.random.default_rng([options.seed, hidden, draw])
        p = visible_probabilities(hidden, rng)
        numbers = rng.choice(len(p), size=max(options.sizes), p=p)
        base = float(p @ np.log(p))

        def weighted(own, X, p=p):
            return len(p) * p * own.score_samples(X)  # its mean is the exact sum

        for size in options.sizes:
            model = LMEBoltzmannMachine(
                3,
                options.starts,
                bias=False,
                prior_variance=np.inf,
                random_state=draw,
            )
            model = fitted(model, rows[numbers[:size]])
            row = both(model, weighted, rows, base)
            if model is not None:
                row |= model.rejected_
                row["admitted"] = int((model.candidates_["reason"] == "").sum())
                best = float(np.log(p)[numbers[:size]].mean())
                for c in ("entropy", "likelihood"):
                    row[f"{c} condition"] = int(row[f"{c} log_likelihood"] >= best)
            trials.add(hidden=hidden, draw=draw, size=size, **row)
    return trials


def convergence(options):
    """Display with the mean histories of figure 10."""
    from maxent.displays import ConvergenceDisplay
    from maxent.latent import FiniteLatentModel

    x = states(VISIBLE + 3)
    i, j = np.triu_indices(VISIBLE + 3, 1)
    model = FiniteLatentModel((x[:, i] * x[:, j]).reshape(2**VISIBLE, 8, -1))
    runs = []
    for draw in range(options.draws):
        rng = np.random.default_rng([options.seed, 10, draw])
        p = visible_probabilities(3, rng)
        y = rng.choice(len(p), size=100, p=p)
        start = rng.normal(size=model.n_features)
        display = ConvergenceDisplay.from_model(
            *(model, y, start), inner=(1, 4, 16), n_steps=max(STEPS), bound=15.0
        )
        runs.append(display.histories)
        close(display)

    def padded(values):
        short = max(STEPS) + 1 - len(values)
        return np.append(values, np.full(short, values[-1]))

    means = {name: np.mean([padded(r[name]) for r in runs], axis=0) for name in runs[0]}
    return ConvergenceDisplay(means)


def close(display):
    """Close the figure of a display."""
    import matplotlib.pyplot as plt

    plt.close(display.figure_)


def table_rows(trials, sizes):
    """Cells of figures 13-15."""
    out = []
    for hidden, size in itertools.product(HIDDEN, sizes):

        def own(name, hidden=hidden, size=size):
            return trials.column(name, hidden=hidden, size=size)

        mle, lme = own("likelihood divergence"), own("entropy divergence")
        differ = np.abs(mle - lme) > 1e-6
        out.append(
            [
                *(hidden, size),
                *(cell(mle, 4), cell(lme, 4), cell(mle - lme, 4)),
                f"{share(np.where(differ, lme < mle, np.nan))} of {int(differ.sum())}",
                *(share(own("likelihood condition")), share(own("entropy condition"))),
                f"{np.nanmean(own('admitted')):.1f}",
                int(np.isnan(mle).sum()),
            ]
        )
    return out


def main():
    """Run and write."""
    import matplotlib

    matplotlib.use("Agg")
    parser = arguments(__doc__.splitlines()[0], draws=10, sizes=SIZES, starts=15)
    options = parser.parse_args()
    spent = clock()
    trials, display = choices(options), convergence(options)
    head = ["hidden units of the truth", "rows", "MLE: KL", "LME: KL"]
    head += ["MLE - LME, paired", "LME better, of trials that differ"]
    head += ["L at least the truth's, MLE", "LME", "admitted", "without a model"]
    lines = [
        "# Boltzmann machines with three hidden units",
        "",
        f"{options.draws} trials, {options.starts} starts, seed {options.seed}; mean ± "
        f"standard error over trials; {spent()}. Printed: curves only.",
        "",
        *markdown(head, table_rows(trials, options.sizes)),
        "",
        "Mean log-likelihood after E steps (figure 10):",
        "",
        *markdown(
            ["M step", *map(str, STEPS)],
            [
                [name, *(f"{values[n]:.4f}" for n in STEPS)]
                for name, values in display.histories.items()
            ],
        ),
    ]

    def draw(path):
        display.plot().figure_.savefig(path, dpi=110, bbox_inches="tight")

    finish(trials, lines, options.out, "latent_boltzmann", draw)


if __name__ == "__main__":
    main()
