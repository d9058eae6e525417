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
from _precomputed import (
    chosen_error,
    minus,
    options_of,
    percent,
    rows_of,
    write_all,
)

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
    """Records of every row, and the error over the horizon of each kernel row."""
    from sklearn.model_selection import StratifiedKFold

    from maxent.datasets import make_switching_series

    rng = np.random.default_rng([seed, number])
    series, y, _ = make_switching_series(random_state=rng)
    folds = StratifiedKFold(OUTER, shuffle=True, random_state=number)
    parts = list(folds.split(y, y))
    records, curves = [], {}
    for name, (fit, score) in class_models(number).items():
        errors = [by_class(fit, score, series, y, a, b) for a, b in parts]
        error = np.mean(errors)
        records.append({"draw": number, "row": name, "error": error, "best": error})
    for name, kernels in kernels_of(series, number).items():
        found = [
            chosen_error(kernels, y, a, b, PENALTIES, number + 1) for a, b in parts
        ]
        grid = np.mean([errors for *_, errors in found], axis=0)
        error = np.mean([error for error, *_ in found])
        records.append({"draw": number, "row": name, "error": error})
        records[-1]["best"] = grid.min()
        if name != "Gaussian kernel":
            shape = (len(HORIZONS), len(POWERS), len(PENALTIES))
            curves[name] = grid.reshape(shape).min(axis=2)
    return records, curves


def main():
    """Run the draws; write the table, its numbers and a figure."""
    from sklearn.exceptions import ConvergenceWarning

    options = options_of(__doc__.splitlines()[0], 10)
    records, curves = [], []
    for number in range(options.draws):
        with warnings.catch_warnings():
            # kernels of systems at the edge of stability, at the longest horizon
            warnings.filterwarnings("ignore", message=".*unstable")
            # fits stop after 500 steps: kernels do not need the optimum
            warnings.simplefilter("ignore", ConvergenceWarning)
            found, curve = one_draw(number, options.seed)
        records += found
        curves.append(curve)
        print(f"\r{number + 1} of {options.draws} draws", end="", flush=True)
    print()
    write(records, curves, options)


def write(records, curves, options):
    """switching_series.md, .csv and .png."""
    table = []
    for name, printed in PRINTED.items():
        step, fewer = minus(records, name, BASE)
        table.append(
            [
                name,
                "" if printed is None else f"{100 * printed:.0f} %",
                percent(records, name, "best"),
                percent(records, name),
                step,
                fewer,
            ]
        )
    head = [
        *("row", "printed", "least over all settings", "by nested validation"),
        *(f"minus {BASE}", "draws below it"),
    ]
    path = write_all(
        ["# Switching time series"], head, table, records, options, "switching_series"
    )
    draw(records, curves, path)


def draw(records, curves, path):
    """Errors over the horizon for each power, C the best on the test rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, len(curves[0]), sharey=True)
    for ax, name in zip(axes, curves[0], strict=True):
        mean = np.mean([curve[name] for curve in curves], axis=0)
        for rho, line in zip(POWERS, mean.T, strict=True):
            ax.plot(np.add(HORIZONS, 1), 100 * line, label=f"ρ = {rho:g}")
        for row, style in (("Gaussian kernel", "--"), ("LDS by class, ML", ":")):
            level = np.mean([100 * r["best"] for r in rows_of(records, row)])
            ax.axhline(level, color="black", linestyle=style, label=row)
        ax.set(title=name, xlabel="observations compared, T + 1")
    axes[0].set_ylabel("error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
