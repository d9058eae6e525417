"""Boltzmann machines: figures 11-15 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), section 7.2: five visible units; data from machines with
3, 5 or 1 hidden units, fitted with three, no biases; 10 runs; curves without numbers.
Figures 11 and 12 are the log-likelihood and the joint entropy of both choices, of data
from three hidden units; 13-15 the divergence from the truth for 3, 5 and 1. Figure 10
is in `latent_gradient.py`. The weights of the generators are not given: here standard
normal.

Protocol here: both choices from one pool of `LMEBoltzmannMachine(3, bias=False)`,
without a penalty and with weights within 15 (pairs that never occur together have no
finite weight); divergences of the visible units are exact.
"""

import itertools

import numpy as np
from _latent import CHOICES, arguments, both, compared, fitted, size_display
from _results import column, mean_and_error, run, share, table

SIZES = [10, 50, 200, 1000, 5000, 10_000]
HIDDEN = (3, 5, 1)
VISIBLE = 5


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
    """Trials of all figures."""
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


def line(trials, hidden, size):
    """Cells of figures 13-15."""

    def own(name):
        return column(trials, name, hidden=hidden, size=size)

    mle, lme = own("likelihood divergence"), own("entropy divergence")
    return [
        *(hidden, size, *compared(mle, lme, 4)),
        *(share(own(f"{c} condition")) for c in reversed(CHOICES)),
        mean_and_error(own("admitted"), 1),
        int(np.isnan(mle).sum()),
    ]


def choice_line(trials, size):
    """Cells of figures 11 and 12."""
    names = itertools.product(("log_likelihood", "entropy"), reversed(CHOICES))
    L, L_lme, H, H_lme = (
        column(trials, f"{choice} {what}", hidden=HIDDEN[0], size=size)
        for what, choice in names
    )
    columns = (L, L_lme, L - L_lme, H, H_lme, H_lme - H)
    return [size, *(mean_and_error(each, 3) for each in columns)]


def draw(trials, sizes, path):
    """Likelihood and entropy (figures 11, 12), and the three divergences (13-15)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 3.2), layout="constrained")
    axes = figure.subplots(1, 2 + len(HIDDEN))
    panels = [(HIDDEN[0], "log_likelihood", "L, nats"), (HIDDEN[0], "entropy", "H")]
    panels += [(hidden, "divergence", "KL, nats") for hidden in HIDDEN]
    for ax, (hidden, what, label) in zip(axes, panels, strict=True):
        own = [r for r in trials if r["hidden"] == hidden]
        size_display(own, sizes, what, label).plot(ax)
        ax.set_title(f"{hidden} hidden units", fontsize="medium")
        if np.isfinite(column(own, f"entropy {what}")).any() and what == "divergence":
            ax.set_yscale("log")
    figure.savefig(path, dpi=110)


def main():
    """Run and write."""
    options = arguments(__doc__, 10, SIZES, 15).parse_args()
    trials = choices(options)
    head = ["hidden units of the truth", "rows", "MLE: KL", "LME: KL"]
    head += ["MLE - LME, paired", "LME better, of trials that differ"]
    head += ["L at least the truth's, MLE", "LME", "admitted", "without a model"]
    rows = [line(trials, *at) for at in itertools.product(HIDDEN, options.sizes)]
    table("latent_boltzmann", options, head, rows)
    head = ["rows", "L, MLE", "L, LME", "L lost by LME", "H, MLE", "H, LME"]
    rows = [choice_line(trials, size) for size in options.sizes]
    table("latent_boltzmann_choices", options, [*head, "H won by LME"], rows)
    draw(trials, options.sizes, f"{options.out}/latent_boltzmann.png")


if __name__ == "__main__":
    main()
