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
from _experiment import markdown
from _latent import Trials, arguments, both, cell, clock, finish, fitted, rate, share

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
    out["admitted"] = int((table["reason"] == "").sum())
    for name, count in model.rejected_.items():
        out[name] = count
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


def run(scenario, options):
    """Trials of one scenario."""
    truth, trials = Truth(scenario), Trials()
    best = best_model(scenario, truth, options.seed)
    for draw in range(options.draws):
        rng = np.random.default_rng([options.seed, int(scenario[:1]), draw])
        X, test = truth.sample(max(options.sizes), rng), truth.sample(TESTED, rng)
        for size in options.sizes:
            columns = trial(
                *(scenario, truth, best, X[:size], test, options.starts, draw)
            )
            trials.add(scenario=scenario, draw=draw, size=size, **columns)
    return trials


def tables(scenario, trials, sizes):
    """Lines of the three tables of a scenario."""
    first, second, third = [], [], []
    for size in sizes:

        def own(name, size=size):
            return trials.column(name, size=size)

        mle, lme = own("likelihood divergence"), own("entropy divergence")
        both_known = np.isfinite(mle) & np.isfinite(lme)
        equal = both_known & (np.abs(mle - lme) < 1e-6)
        won = np.where(both_known & ~equal, lme < mle, np.nan)
        first.append(
            [
                size,
                cell(mle),
                cell(lme),
                cell(mle - lme),
                f"{share(won)} of {int((both_known & ~equal).sum())}",
                cell(own("literal divergence")),
                cell(own("one Gaussian")),
                printed(scenario, size),
            ]
        )
        second.append(
            [
                size,
                *(
                    cell(own(f"{choice} {what}"))
                    for what in ("log_likelihood", "entropy")
                    for choice in ("likelihood", "entropy")
                ),
                share(own("likelihood condition")),
                share(own("entropy condition")),
            ]
        )
        third.append(
            [
                size,
                *(
                    f"{np.nanmean(own(name)):.1f}"
                    for name in (
                        *("admitted", "unbounded", "not_local_maximum"),
                        *("independent", "not_converged"),
                    )
                ),
                share(own("likelihood takes unbounded")),
                share(own("entropy takes unbounded")),
                int(np.isnan(own("admitted")).sum()),
            ]
        )
    words = ("MAP", "RLME") if scenario.endswith("r") else ("MLE", "LME")
    a, b = words
    slopes = [
        rate(
            sizes, [np.nanmean(trials.column(f"{c} divergence", size=n)) for n in sizes]
        )
        for c in ("likelihood", "entropy")
    ]
    return [
        f"## Scenario {scenario}",
        "",
        *markdown(
            [
                *("rows", f"{a}: KL", f"{b}: KL", f"{a} - {b}, paired"),
                *(f"{b} better, of trials that differ", "literal", "one Gaussian"),
                f"printed {a} / {b}",
            ],
            first,
        ),
        "",
        f"Slope of log KL against log rows: {a} {slopes[0]:.2f}, {b} {slopes[1]:.2f}.",
        "",
        *markdown(
            [
                *("rows", f"L, {a}", f"L, {b}", f"H, {a}", f"H, {b}"),
                *(f"L at least the best model's, {a}", f"{b}"),
            ],
            second,
        ),
        "",
        "Candidates of a trial, and what each choice takes without gates:",
        "",
        *markdown(
            [
                *("rows", "admitted", "unbounded", "not a maximum", "independent"),
                *("not converged", f"{a} takes an unbounded one", f"{b} takes one"),
                "trials without a model",
            ],
            third,
        ),
        "",
    ]


def draw(results, sizes):
    """Function that draws divergence, likelihood and entropy against rows."""

    def save(path):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        from maxent.displays import SampleSizeDisplay

        figure, axes = plt.subplots(
            *(len(results), 3), figsize=(13, 3.4 * len(results)), squeeze=False
        )
        labels = ("KL, nats", "mean log-likelihood, nats", "mean entropy, nats")
        for row, (scenario, trials) in zip(axes, results.items()):
            columns = ("divergence", "log_likelihood", "entropy")
            for ax, what, label in zip(row, columns, labels):
                scores = {
                    name: np.stack(
                        [trials.column(f"{c} {what}", size=n) for n in sizes], axis=1
                    )
                    for c, name in (
                        ("entropy", "entropy"),
                        ("likelihood", "likelihood"),
                    )
                }
                SampleSizeDisplay(sizes, scores, ylabel=label).plot(ax)
                ax.set_title(f"scenario {scenario}", fontsize="medium")
        figure.tight_layout()
        figure.savefig(path, dpi=110)
        plt.close(figure)

    return save


def main():
    """Run the scenarios and write their tables and figure."""
    parser = arguments(__doc__.splitlines()[0], draws=20, sizes=SIZES, starts=40)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    options = parser.parse_args()
    spent = clock()
    results = {scenario: run(scenario, options) for scenario in options.scenarios}
    lines = [
        "# Mixtures in the plane, by latent maximum entropy and maximum likelihood",
        "",
        f"{options.draws} trials, {options.starts} starts, seed {options.seed}; mean ± "
        f"standard error over trials; {spent()}.",
        "",
    ]
    every = Trials()
    for scenario, trials in results.items():
        lines += tables(scenario, trials, options.sizes)
        every.rows += trials.rows
    figure = draw(results, options.sizes)
    finish(every, lines, options.out, "latent_gaussians", figure)


if __name__ == "__main__":
    main()
