"""Mixture of Dirichlet distributions: figure 8 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), section 7.1: three components on two proportions,
weights 1/3, parameters (1, 2), (3, 1) and (5, 2); 10 trials of each size; curves
without numbers.

Protocol here: both choices from one pool of `LMEDirichletMixture`; divergences from the
truth by quadrature on 20 000 equal cells of the interval; both choices share it.
"""

import numpy as np
from _latent import CHOICES, arguments, both, compared, fitted, size_display
from _results import column, mean_and_error, run, share, table

SIZES = [20, 50, 100, 200]
ALPHA = np.array([(1.0, 2.0), (3.0, 1.0), (5.0, 2.0)])
CELLS = 20_000


def main():
    """Run and write."""
    import matplotlib
    from scipy.stats import beta

    from maxent.latent import LMEDirichletMixture

    matplotlib.use("Agg")
    options = arguments(__doc__, 10, SIZES, 10).parse_args()
    grid = (np.arange(CELLS) + 0.5) / CELLS
    density = np.mean([beta.pdf(grid, a, b) for a, b in ALPHA], axis=0)
    mass = density / density.sum()
    points = np.column_stack([grid, 1.0 - grid])
    entropy = float(mass @ np.log(density))

    def log_density(model, points):
        return CELLS * mass * model.score_samples(points)  # its mean is the integral

    def work(draw, size):
        rng = np.random.default_rng([options.seed, draw])
        which = rng.integers(3, size=max(options.sizes))
        y = np.clip(rng.beta(*ALPHA[which].T), 1e-9, 1 - 1e-9)[:size]
        known = np.log(np.mean([beta.pdf(y, a, b) for a, b in ALPHA], axis=0))
        model = LMEDirichletMixture(3, n_init=options.starts, random_state=draw)
        model = fitted(model, np.column_stack([y, 1.0 - y]))
        row = both(model, log_density, points, entropy)
        for c in CHOICES if model is not None else ():
            row[f"{c} condition"] = int(known.mean() <= row[f"{c} log_likelihood"])
        return row

    units = [
        {"draw": k, "size": n} for k in range(options.draws) for n in options.sizes
    ]
    rows = run("latent_dirichlet", options, units, work)
    table("latent_dirichlet", options, HEAD, [line(rows, n) for n in options.sizes])
    display = size_display(rows, options.sizes, "divergence", "KL, nats").plot()
    path = f"{options.out}/latent_dirichlet.png"
    display.figure_.savefig(path, dpi=110, bbox_inches="tight")


HEAD = [
    *("rows", "MLE: KL", "LME: KL", "MLE - LME, paired"),
    *("LME better, of trials that differ", "H, MLE", "H, LME"),
    *("L at least the truth's, MLE", "LME", "admitted", "unbounded", "without a model"),
]


def line(rows, size):
    """Cells of one size."""

    def own(name):
        return column(rows, name, size=size)

    mle, lme = own("likelihood divergence"), own("entropy divergence")
    return [
        *(size, *compared(mle, lme, 4)),
        *(mean_and_error(own(f"{c} entropy"), 3) for c in reversed(CHOICES)),
        *(share(own(f"{c} condition")) for c in reversed(CHOICES)),
        *(f"{np.nanmean(own(name)):.1f}" for name in ("admitted", "unbounded")),
        int(np.isnan(mle).sum()),
    ]


if __name__ == "__main__":
    main()
