"""Mixture of Dirichlet distributions: figure 8 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), section 7.1: three components on two proportions,
weights 1/3, parameters (1, 2), (3, 1) and (5, 2); 10 trials of each size; curves
without numbers.

Protocol here: both choices from one pool of `LMEDirichletMixture`; divergences from the
truth by quadrature on 20 000 equal cells of the interval; both choices share it.
"""

import numpy as np
from _experiment import markdown
from _latent import Trials, arguments, both, cell, clock, finish, fitted, share

SIZES = [20, 50, 100, 200]
ALPHA = np.array([(1.0, 2.0), (3.0, 1.0), (5.0, 2.0)])
CELLS = 20_000


def main():
    """Run and write."""
    from scipy.stats import beta

    from maxent.latent import LMEDirichletMixture

    parser = arguments(__doc__.splitlines()[0], draws=10, sizes=SIZES, starts=10)
    options = parser.parse_args()
    spent, trials = clock(), Trials()
    grid = (np.arange(CELLS) + 0.5) / CELLS
    density = np.mean([beta.pdf(grid, a, b) for a, b in ALPHA], axis=0)
    mass = density / density.sum()
    rows = np.column_stack([grid, 1.0 - grid])
    entropy = float(mass @ np.log(density))

    def log_density(model, points):
        return CELLS * mass * model.score_samples(points)  # its mean is the integral

    for draw in range(options.draws):
        rng = np.random.default_rng([options.seed, draw])
        n = max(options.sizes)
        which = rng.integers(3, size=n)
        y = np.clip(rng.beta(*ALPHA[which].T), 1e-9, 1 - 1e-9)
        X = np.column_stack([y, 1.0 - y])
        known = np.log(np.mean([beta.pdf(y, a, b) for a, b in ALPHA], axis=0))
        for size in options.sizes:
            model = LMEDirichletMixture(3, n_init=options.starts, random_state=draw)
            model = fitted(model, X[:size])
            row = both(model, log_density, rows, entropy)
            if model is not None:
                row |= model.rejected_
                row["admitted"] = int((model.candidates_["reason"] == "").sum())
                for c in ("entropy", "likelihood"):
                    L = row[f"{c} log_likelihood"]
                    row[f"{c} condition"] = int(known[:size].mean() <= L)
            trials.add(draw=draw, size=size, **row)
    lines = [
        "# Mixture of three Dirichlet distributions",
        "",
        f"{options.draws} trials, {options.starts} starts, seed {options.seed}; mean ± "
        f"standard error over trials; {spent()}. Printed: curves only.",
        "",
        *markdown(HEAD, [table_row(trials, size) for size in options.sizes]),
    ]
    figure = picture(trials, options.sizes)
    finish(trials, lines, options.out, "latent_dirichlet", figure)


HEAD = [
    *("rows", "MLE: KL", "LME: KL", "MLE - LME, paired"),
    *("LME better, of trials that differ", "H, MLE", "H, LME"),
    *("L at least the truth's, MLE", "LME", "admitted", "unbounded", "without a model"),
]


def table_row(trials, size):
    """Cells of one size."""

    def own(name):
        return trials.column(name, size=size)

    mle, lme = own("likelihood divergence"), own("entropy divergence")
    differ = np.abs(mle - lme) > 1e-6
    return [
        size,
        *(cell(mle, 4), cell(lme, 4), cell(mle - lme, 4)),
        f"{share(np.where(differ, lme < mle, np.nan))} of {int(differ.sum())}",
        *(cell(own("likelihood entropy")), cell(own("entropy entropy"))),
        *(share(own("likelihood condition")), share(own("entropy condition"))),
        *(f"{np.nanmean(own(name)):.1f}" for name in ("admitted", "unbounded")),
        int(np.isnan(mle).sum()),
    ]


def picture(trials, sizes):
    """Function that draws divergences against sizes."""

    def save(path):
        import matplotlib

        matplotlib.use("Agg")
        from maxent.displays import SampleSizeDisplay

        scores = {
            c: np.stack(
                [trials.column(f"{c} divergence", size=n) for n in sizes], axis=1
            )
            for c in ("entropy", "likelihood")
        }
        display = SampleSizeDisplay(sizes, scores, ylabel="KL, nats").plot()
        display.figure_.savefig(path, dpi=110, bbox_inches="tight")

    return save


if __name__ == "__main__":
    main()
