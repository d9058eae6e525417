"""Time series of switching systems: figure 10 of the product-kernel paper.

Twenty random switching linear systems, ten of each class, five series of 25 steps from
each. Machines with product kernels between systems fitted to single series, against a
Gaussian kernel on the series and against one system for each class. The scales of the
generator are not in the paper: see `maxent.datasets.make_switching_series`.

Errors are those of ten stratified folds over the series. Power, horizon, width and C
are chosen inside the other nine folds; the smallest mean error over all settings, which
the paper shows, is in a column of its own. Figure 10 (a) and (b) claim that errors fall
with the horizon T, to rise again for long ones, and with smaller powers: errors at each
T and at each power, all else chosen inside the other folds.
"""

import warnings

import numpy as np
from _precomputed import compared, grid_errors, head_of, validated_errors
from _results import column, mean_and_error, parser, run, table

POWERS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
HORIZONS = (1, 2, 4, 9, 14, 19, 24)
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
KERNELS = ("LDS, per step", "LDS, joint", "SLDS")


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


def at_least(errors, inside):
    """Error of the setting with the least error in validation, the first of equals."""
    return errors.ravel()[np.argmin(inside)]


def slices(found):
    """Mean errors at every horizon and every power, the rest chosen by validation."""
    shape = (len(HORIZONS), len(POWERS), len(PENALTIES))
    cubes = [[each.reshape(shape) for each in pair] for pair in found]
    out = {}
    for axis, (letter, values) in enumerate({"T": HORIZONS, "rho": POWERS}.items()):
        for k, value in enumerate(values):
            parts = ([np.take(each, k, axis) for each in pair] for pair in cubes)
            out[f"{letter} = {value:g}"] = np.mean([at_least(*pair) for pair in parts])
    return out


def one_draw(number, seed):
    """Rows of every model; of kernels between systems errors at each T and power."""
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
            (
                grid_errors(kernels, y, a, b, PENALTIES),
                validated_errors(kernels, y, a, PENALTIES, number + 1),
            )
            for a, b in parts
        ]
        rows.append(
            {
                **{"row": name, "error": np.mean([at_least(*pair) for pair in found])},
                "best": np.mean([errors for errors, _ in found], axis=0).min(),
                **(slices(found) if name in KERNELS else {}),
            }
        )
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
    for letter, values in (("T", HORIZONS), ("rho", POWERS)):
        head = [letter, *KERNELS, *(f"{name}, minus the last" for name in KERNELS)]
        lines = [slice_line(rows, letter, value, values[-1]) for value in values]
        table(f"switching_series_{letter.lower()}", options, head, lines)
    draw(rows, f"{options.out}/switching_series.png")


def slice_line(rows, letter, value, last):
    """Cells: errors of every kernel at a value, and less those at the last."""
    own, end = (
        [100 * column(rows, f"{letter} = {each:g}", row=name) for name in KERNELS]
        for each in (value, last)
    )
    steps = [mean_and_error(a - b, 1) for a, b in zip(own, end, strict=True)]
    errors = [f"{mean_and_error(each, 1)} %" for each in own]
    return [f"{value:g}", *errors, *(steps if value != last else [""] * len(own))]


def draw(rows, path):
    """Errors over the horizon (a) and over the power (b), a line for each kernel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    sides = (("T", HORIZONS, "horizon T"), ("rho", POWERS, "power ρ"))
    for ax, (letter, values, label) in zip(axes, sides, strict=True):
        for name in KERNELS:
            found = [100 * column(rows, f"{letter} = {x:g}", row=name) for x in values]
            errors = [np.std(each) / np.sqrt(max(len(each) - 1, 1)) for each in found]
            means = [each.mean() for each in found]
            ax.errorbar(values, means, errors, marker="o", ms=3, capsize=2, label=name)
        for row, style in zip(list(PRINTED)[:3], (":", "-.", "--"), strict=True):
            level = 100 * column(rows, "error", row=row).mean()
            ax.axhline(level, color="black", linestyle=style, lw=0.9, label=row)
        ax.set(xlabel=label)
    axes[1].set_xscale("log")
    axes[0].set_ylabel("error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
