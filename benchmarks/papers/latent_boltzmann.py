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
from _latent import CHOICES, arguments, both, compared, fitted
from _results import column, run, share, table

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

    rows = states(VISIBLE)

    def work(hidden, draw, size):
        rng = np.random.default_rng([options.seed, hidden, draw])
        p = visible_probabilities(hidden, rng)
        numbers = rng.choice(len(p), size=max(options.sizes), p=p)[:size]

        def weighted(own, X):
            return len(p) * p * own.score_samples(X)  # its mean is the exact sum

        model = LMEBoltzmannMachine(
            3, options.starts, bias=False, prior_variance=np.inf, random_state=draw
        )
        model = fitted(model, rows[numbers])
        row = both(model, weighted, rows, float(p @ np.log(p)))
        best = float(np.log(p)[numbers].mean())
        for c in CHOICES if model is not None else ():
            row[f"{c} condition"] = int(row[f"{c} log_likelihood"] >= best)
        return row

    every = itertools.product(HIDDEN, range(options.draws), options.sizes)
    units = [dict(zip(("hidden", "draw", "size"), u, strict=True)) for u in every]
    return run("latent_boltzmann", options, units, work)


def convergence(options):
    """Log-likelihoods of figure 10 by ascent and step, of every draw."""
    from maxent.displays import ConvergenceDisplay
    from maxent.latent import FiniteLatentModel

    x = states(VISIBLE + 3)
    i, j = np.triu_indices(VISIBLE + 3, 1)
    model = FiniteLatentModel((x[:, i] * x[:, j]).reshape(2**VISIBLE, 8, -1))

    def work(draw):
        import matplotlib.pyplot as plt

        rng = np.random.default_rng([options.seed, 10, draw])
        p = visible_probabilities(3, rng)
        y = rng.choice(len(p), size=100, p=p)
        start = rng.normal(size=model.n_features)
        display = ConvergenceDisplay.from_model(
            *(model, y, start), inner=(1, 4, 16), n_steps=max(STEPS), bound=15.0
        )
        plt.close(display.figure_)
        return [
            # an ascent that has ended stays where it is
            {"ascent": name}
            | {f"step {n}": own[min(n, len(own) - 1)] for n in range(max(STEPS) + 1)}
            for name, own in display.histories.items()
        ]

    units = [{"draw": draw} for draw in range(options.draws)]
    return run("latent_boltzmann_ascents", options, units, work)


def line(trials, hidden, size):
    """Cells of figures 13-15."""

    def own(name):
        return column(trials, name, hidden=hidden, size=size)

    mle, lme = own("likelihood divergence"), own("entropy divergence")
    return [
        *(hidden, size, *compared(mle, lme, 4)),
        *(share(own(f"{c} condition")) for c in reversed(CHOICES)),
        f"{np.nanmean(own('admitted')):.1f}",
        int(np.isnan(mle).sum()),
    ]


def main():
    """Run and write."""
    import matplotlib

    matplotlib.use("Agg")
    from maxent.displays import ConvergenceDisplay

    options = arguments(__doc__, 10, SIZES, 15).parse_args()
    trials, ascents = choices(options), convergence(options)
    head = ["hidden units of the truth", "rows", "MLE: KL", "LME: KL"]
    head += ["MLE - LME, paired", "LME better, of trials that differ"]
    head += ["L at least the truth's, MLE", "LME", "admitted", "without a model"]
    rows = [line(trials, *at) for at in itertools.product(HIDDEN, options.sizes)]
    table("latent_boltzmann", options, head, rows)
    steps = [f"step {n}" for n in range(max(STEPS) + 1)]
    means = {
        name: np.array([column(ascents, step, ascent=name).mean() for step in steps])
        for name in dict.fromkeys(r["ascent"] for r in ascents)
    }
    rows = [[name, *(f"{own[n]:.4f}" for n in STEPS)] for name, own in means.items()]
    head = ["M step", *(f"after {n}" for n in STEPS)]
    table("latent_boltzmann_ascents", options, head, rows)
    figure = ConvergenceDisplay(means).plot().figure_
    path = f"{options.out}/latent_boltzmann.png"
    figure.savefig(path, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
