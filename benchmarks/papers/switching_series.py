"""Time series of switching systems: figure 10 of the product-kernel paper.

Twenty random switching linear systems, ten of each class, five series of 25 steps from
each. Machines with product kernels between systems fitted to single series, against a
Gaussian kernel on the series and against one system for each class. The scales of the
generator are not in the paper: see `maxent.datasets.make_switching_series`.

Errors are those of ten stratified folds over the series. Power, horizon, width and C
are chosen inside the other nine folds; the smallest mean error over all settings, which
the paper shows, is in a column of its own.
"""

import warnings

import numpy as np
from _precomputed import chosen_error, compared, head_of
from _results import column, parser, run, table

POWERS = (0.02, 0.1, 0.5, 1.0)
HORIZONS = (1, 4, 9, 14, 24)
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
WIDTHS = (0.3, 1.0, 3.0, 10.0, 30.0)  # 2 sigma^2 over that of the series
OUTER = 10
STATES, REGIMES, CLASS_REGIMES = 2, 2, 5
PRINTED = {
    "LDS by class, ML": 0.35,
    "SLDS by class, ML": 0.30,
    "Gaussian kernel": 0.34,
    "LDS, per step": 0.28,
    "LDS, joint": None,
    "SLDS": 0.25,
}
BASE = "LDS, joint"
# in the order of the settings below
CURVE = [f"error at T = {T}, rho = {rho:g}" for T in HORIZONS for rho in POWERS]


def kernels_of(series, seed):
    """{row: {setting: kernel matrix}}."""
    from sklearn.metrics.pairwise import rbf_kernel

    from maxent.kernels import product_kernel
    from maxent.models import LinearDynamicalSystem, SwitchingLDS

    X = np.stack([x.ravel() for x in series])
    spread = X.var(axis=0).sum()
    linear = LinearDynamicalSystem.fit_many(series, n_states=STATES, tol=1e-4)
    switching = SwitchingLDS.fit_many(
        series, n_states=STATES, n_regimes=REGIMES, tol=1e-3, random_state=seed
    )

    def grid(models, method):
        K = product_kernel(
            models,
            rho=POWERS,
            horizon=HORIZONS,
            method=method,
            normalize=True,
            random_state=seed,
        )
        return {
            (rho, T): np.ascontiguousarray(K[:, :, i, j])
            for i, T in enumerate(HORIZONS)
            for j, rho in enumerate(POWERS)
        }

    return {
        "Gaussian kernel": {w: rbf_kernel(X, gamma=1 / (w * spread)) for w in WIDTHS},
        "LDS, per step": grid(linear, "per_step"),
        "LDS, joint": grid(linear, "joint"),
        "SLDS": grid(switching, "auto"),
    }


def by_class(fit, score, series, y, train, test):
    """Error of the class whose model gives a series the larger score."""
    new = [series[i] for i in test]
    scores = [score(fit([series[i] for i in train if y[i] == k]), new) for k in (0, 1)]
    return np.mean((scores[1] > scores[0]) != y[test])


def class_models(seed):
    """{row: (fit, score)}; scores of switching systems are lower bounds."""
    from maxent.models import LinearDynamicalSystem, SwitchingLDS

    def switching(series):
        return SwitchingLDS.fit(
            series, n_states=STATES, n_regimes=CLASS_REGIMES, random_state=seed
        )

    return {
        "LDS by class, ML": (
            lambda series: LinearDynamicalSystem.fit(series, n_states=STATES, tol=1e-6),
            LinearDynamicalSystem.log_likelihood,
        ),
        "SLDS by class, ML": (switching, SwitchingLDS.lower_bound),
    }


def one_draw(number, seed):
    """Rows of every model; of kernels the error at each power and horizon, best C."""
    from sklearn.model_selection import StratifiedKFold

    from maxent.datasets import make_switching_series

    rng = np.random.default_rng([seed, number])
    series, y, _ = make_switching_series(random_state=rng)
    folds = StratifiedKFold(OUTER, shuffle=True, random_state=number)
    parts = list(folds.split(y, y))
    rows = []
    for name, (fit, score) in class_models(number).items():
        errors = [by_class(fit, score, series, y, a, b) for a, b in parts]
        rows.append({"row": name, "error": np.mean(errors), "best": np.mean(errors)})
    for name, kernels in kernels_of(series, number).items():
        found = [
            chosen_error(kernels, y, a, b, PENALTIES, number + 1) for a, b in parts
        ]
        grid = np.mean([errors for *_, errors in found], axis=0)
        error = np.mean([error for error, *_ in found])
        curve = {} if name == "Gaussian kernel" else zip(CURVE, grid.min(axis=1))
        rows.append({"row": name, "error": error, "best": grid.min(), **dict(curve)})
    return rows


def main():
    """Run the draws; write the table, its numbers and a figure."""
    from sklearn.exceptions import ConvergenceWarning

    options = parser(__doc__, 10).parse_args()

    def work(draw):
        with warnings.catch_warnings():
            # kernels of systems at the edge of stability, at the longest horizon
            warnings.filterwarnings("ignore", message=".*unstable")
            # fits stop after 500 steps: kernels do not need the optimum
            warnings.simplefilter("ignore", ConvergenceWarning)
            return one_draw(draw, options.seed)

    units = [{"draw": k} for k in range(options.draws)]
    rows = run("switching_series", options, units, work)
    lines = [
        [n, "" if p is None else f"{100 * p:.0f} %", *compared(rows, n, BASE)]
        for n, p in PRINTED.items()
    ]
    table("switching_series", options, ["row", "printed", *head_of(BASE)], lines)
    draw(rows, f"{options.out}/switching_series.png")


def draw(rows, path):
    """Errors over the horizon for each power, C the best on the test rows."""
    from matplotlib.figure import Figure

    names = list(PRINTED)[3:]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True)
    for ax, name in zip(axes, names, strict=True):
        mean = np.array([column(rows, at, row=name).mean() for at in CURVE])
        lines = mean.reshape(len(HORIZONS), len(POWERS)).T
        for rho, line in zip(POWERS, lines, strict=True):
            ax.plot(np.add(HORIZONS, 1), 100 * line, label=f"ρ = {rho:g}")
        for row, style in (("Gaussian kernel", "--"), ("LDS by class, ML", ":")):
            level = 100 * column(rows, "best", row=row).mean()
            ax.axhline(level, color="black", linestyle=style, label=row)
        ax.set(title=name, xlabel="observations compared, T + 1")
    axes[0].set_ylabel("error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
