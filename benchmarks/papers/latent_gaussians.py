"""Mixtures in the plane: figures 2-7 and 16 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), sections 6 and 8: three fitted Gaussians, data from
three Gaussians (scenarios 1 and 4), five (2) and three Laplacians (3); 300 starts, 500
trials. The print is damaged: the means of scenario 1 are likely, those of 2 a guess;
those of 3 are illegible, here those of 4; "covariances" of Laplacians are taken as
variances. "3r" is figure 16: scenario 3 with a prior, MAP against regularised LME.

Protocol here: both choices from one pool of `LMEGaussianMixture` (starts at rows with
the pooled covariance, gates on); divergences from the truth by 20 000 fresh rows that
all models of a trial share. Besides the paper's two: the largest entropy among all
bounded stationary points, saddles included (the literal principle), and one Gaussian.
The condition of corollary 9.2: the chosen candidate's likelihood is at least that of
the best model of the family, the true one, or else the best of 20 starts on 20 000
rows.
"""

import numpy as np
from _latent import CHOICES, arguments, both, compared, fitted, rate, size_display
from _results import column, mean_and_error, run, share, table

SIZES = [50, 100, 200, 500, 1000, 2000]
DIAGONALS = [(2, 1), (2, 2), (1, 2), (2, 1), (1, 2)]
SCENARIOS = {
    "1": ([(0, -3), (0, 0), (0, 3)], [(2, 1)] * 3, "normal"),
    "2": ([(0, 0), (2, 0), (0, 2), (-2, 0), (0, -2)], DIAGONALS, "normal"),
    "3": ([(2, 0), (0, 0), (0, 2)], DIAGONALS[:3], "laplace"),
    "4": ([(2, 0), (0, 0), (0, 2)], DIAGONALS[:3], "normal"),
}
SCENARIOS["3r"] = SCENARIOS["3"]
TESTED = 20_000
T_PRINTED = (10, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
PRINTED = {
    "1": (
        "3.6656 .6520 .4963 .4199 .3788 .3688 .3631 .3572 .3548",
        "1.4325 .4386 .3775 .3468 .3310 .3285 .3264 .3223 .3224",
    ),
    "2": (
        "3.0388 .2641 .1470 .0892 .0633 .0557 .0510 .0487 .0479",
        ".5695 .1505 .1012 .0719 .0594 .0563 .0540 .0529 .0526",
    ),
    "3": (
        "- 3.3539 2.8648 2.5654 2.3634 2.2098 2.2067 2.1751 2.1164",
        "- 2.5881 1.9723 1.7301 1.6009 1.5196 1.3276 1.1941 .9871",
    ),
    "4": (
        "4.4644 .2689 .1586 .1135 .0883 .0800 .0768 .0754 .0745",
        ".3865 .1654 .1203 .0999 .0879 .0858 .0851 .0840 .0816",
    ),
}


def printed(scenario, size):
    """The paper's cells, MLE / LME."""
    if scenario not in PRINTED or size not in T_PRINTED:
        return ""
    at = T_PRINTED.index(size)
    return " / ".join(each.split()[at] for each in PRINTED[scenario])


class Truth:
    """Mixture of independent normal or Laplacian coordinates."""

    def __init__(self, scenario):
        means, variances, self.kind = SCENARIOS[scenario]
        self.means, self.variances = np.array(means, float), np.array(variances, float)

    def sample(self, n, rng):
        """Rows (n, 2)."""
        which = rng.integers(len(self.means), size=n)
        spread = np.sqrt(self.variances[which])
        if self.kind == "laplace":
            return self.means[which] + rng.laplace(size=(n, 2)) * spread / np.sqrt(2)
        return self.means[which] + rng.normal(size=(n, 2)) * spread

    def log_prob(self, X):
        """Log-density (n,)."""
        R = X[:, None] - self.means
        if self.kind == "laplace":
            b = np.sqrt(self.variances / 2)
            log = -np.abs(R) / b - np.log(2 * b)
        else:
            log = -0.5 * (R**2 / self.variances + np.log(2 * np.pi * self.variances))
        return np.logaddexp.reduce(log.sum(axis=2), axis=1) - np.log(len(self.means))


def estimator(scenario, starts, seed, **options):
    """The mixture of a scenario."""
    from maxent import LMEGaussianMixture

    prior = "weak" if scenario.endswith("r") else None
    options["init_params"] = "random_from_data"  # as in the paper
    return LMEGaussianMixture(
        3, n_init=starts, prior=prior, random_state=seed, **options
    )


def best_model(scenario, truth, seed):
    """Log-density function of the best model of the family."""
    if truth.kind == "normal" and len(truth.means) == 3:
        return truth.log_prob
    X = truth.sample(TESTED, np.random.default_rng([seed, 77]))
    model = estimator(scenario[:1], 20, seed, selection="likelihood", max_iter=2000)
    return fitted(model, X).score_samples


def candidate_density(model, i, X):
    """Log-density of one candidate."""
    from maxent.families import Gaussian

    parts = Gaussian(model.candidate_means_[i], model.candidate_covariances_[i])
    log = parts.log_prob(X) + np.log(model.candidate_weights_[i])[:, None]
    return np.logaddexp.reduce(log, axis=0)


def trial(scenario, truth, best, X, test, starts, seed):
    """Columns of one trial."""
    base = float(truth.log_prob(test).mean())
    model = fitted(estimator(scenario, starts, seed), X)
    out = both(model, lambda own, rows: own.score_samples(rows), test, base)
    S = np.cov(X.T, bias=True)
    R = test - X.mean(axis=0)
    log = -0.5 * (np.sum(R @ np.linalg.inv(S) * R, axis=1))
    log -= 0.5 * np.log(np.linalg.det(2 * np.pi * S))
    out["one Gaussian"] = base - float(log.mean())
    if model is None:
        return out
    table = model.candidates_
    # what each choice takes without any gate
    unbounded = table["reason"] == "unbounded"
    L = np.where(np.isnan(table["objective"]), np.inf, table["objective"])
    H = np.nan_to_num(table["regularized_entropy"], nan=-np.inf)
    out["likelihood takes unbounded"] = int(unbounded[np.argmax(L)])
    out["entropy takes unbounded"] = int(unbounded[np.argmax(H)])
    still = ~unbounded & (table["reason"] != "not_converged")
    i = int(np.flatnonzero(still)[np.argmax(H[still])])
    out["literal divergence"] = base - float(candidate_density(model, i, test).mean())
    known = float(best(X).mean())
    for choice in ("entropy", "likelihood"):
        out[f"{choice} condition"] = int(out[f"{choice} log_likelihood"] >= known)
    return out


def words(scenario):
    """Names of the choices by likelihood and by entropy."""
    return ("MAP", "RLME") if scenario.endswith("r") else ("MLE", "LME")


def lines(rows, scenario, size):
    """Cells of the table of divergences, and of that of everything else."""

    def own(name):
        return column(rows, name, scenario=scenario, size=size)

    mle, lme = own("likelihood divergence"), own("entropy divergence")
    first = [
        *(scenario, size, *compared(mle, lme, 3)),
        *(mean_and_error(own("one Gaussian"), 3), printed(scenario, size)),
    ]
    second = [
        *(scenario, " / ".join(words(scenario)), size),
        *(
            mean_and_error(own(f"{choice} {what}"), 3)
            for what in ("log_likelihood", "entropy")
            for choice in reversed(CHOICES)
        ),
        *(share(own(f"{choice} condition")) for choice in reversed(CHOICES)),
        mean_and_error(own("literal divergence"), 3),
        *(f"{np.nanmean(own(name)):.1f}" for name in ("admitted", "unbounded", *GATES)),
        *(share(own(f"{choice} takes unbounded")) for choice in reversed(CHOICES)),
        int(np.isnan(own("admitted")).sum()),
    ]
    return first, second


def slopes(rows, scenario, sizes):
    """Cells: slope of log divergence against log rows, of both choices."""
    where = {"scenario": scenario}
    means = [
        [np.nanmean(column(rows, f"{c} divergence", size=n, **where)) for n in sizes]
        for c in reversed(CHOICES)
    ]
    return [scenario, *words(scenario), *(f"{rate(sizes, own):.2f}" for own in means)]


GATES = ("not_local_maximum", "independent", "not_converged")
HEAD = [
    *("scenario", "rows", "MLE: KL", "LME: KL", "MLE - LME, paired"),
    *("LME better, of trials that differ", "one Gaussian: KL", "printed MLE / LME"),
]
MORE = [
    *("scenario", "choices", "rows", "L, MLE", "L, LME", "H, MLE", "H, LME"),
    *("L at least the best model's, MLE", "L at least the best model's, LME"),
    *("literal: KL", "admitted", "unbounded", "not a maximum", "independent"),
    *("not converged", "MLE takes an unbounded one", "LME takes one"),
    "trials without a model",
]


def draw(rows, scenarios, sizes, path):
    """Divergence, likelihood and entropy against rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        *(len(scenarios), 3), figsize=(13, 3.4 * len(scenarios)), squeeze=False
    )
    labels = ("KL, nats", "mean log-likelihood, nats", "mean entropy, nats")
    for panels, scenario in zip(axes, scenarios, strict=True):
        own = [r for r in rows if r["scenario"] == scenario]
        kinds = ("divergence", "log_likelihood", "entropy")
        for ax, what, label in zip(panels, kinds, labels, strict=True):
            size_display(own, sizes, what, label).plot(ax)
            ax.set_title(f"scenario {scenario}", fontsize="medium")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    """Run the scenarios and write their tables and figure."""
    import matplotlib

    matplotlib.use("Agg")
    parser = arguments(__doc__, 20, SIZES, 40)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    options = parser.parse_args()
    best = {}

    def work(scenario, draw, size):
        truth = Truth(scenario)
        if scenario not in best:
            best[scenario] = best_model(scenario, truth, options.seed)
        rng = np.random.default_rng([options.seed, int(scenario[:1]), draw])
        X, test = truth.sample(max(options.sizes), rng), truth.sample(TESTED, rng)
        known = best[scenario]
        return trial(scenario, truth, known, X[:size], test, options.starts, draw)

    units = [
        {"scenario": scenario, "draw": draw, "size": size}
        for scenario in options.scenarios
        for draw in range(options.draws)
        for size in options.sizes
    ]
    rows = run("latent_gaussians", options, units, work)
    at = [(scenario, size) for scenario in options.scenarios for size in options.sizes]
    first, second = zip(*(lines(rows, *each) for each in at), strict=True)
    table("latent_gaussians", options, HEAD, first)
    table("latent_gaussians_more", options, MORE, second)
    found = [slopes(rows, s, options.sizes) for s in options.scenarios]
    head = ["scenario", "first choice", "second", "slope, first", "slope, second"]
    table("latent_gaussians_slopes", options, head, found)
    path = f"{options.out}/latent_gaussians.png"
    draw(rows, options.scenarios, options.sizes, path)


if __name__ == "__main__":
    main()
