"""Run the models that were asked for on all splits; tables that compare them."""

import warnings

import _gaussians
import _kernels
import _others
import numpy as np
from _curves import curves
from _gaussians import GRID, PERCENTILES, RATES, REFERENCE
from _results import mean_and_error, run, table

GROUPS = {
    "kernels": _kernels.MODELS,
    "gaussians": _gaussians.MODELS | GRID,
    "others": _others.MODELS,
}
COUNTERPARTS = _kernels.COUNTERPARTS | _gaussians.COUNTERPARTS


def run_and_write(experiment, options, name):
    """Files NAME, NAME_curves; tables of the paper's models, of all, of the grid."""
    from sklearn.exceptions import ConvergenceWarning

    every = {
        m: f for g, own in GROUPS.items() if g in options.rows for m, f in own.items()
    }

    def work(split, model):
        X, y, train = experiment.rows_of(split, options.seed)
        seed = options.seed if split in experiment.fixed else split
        wrong, chosen, converged = every[model](X, y, train, seed)
        return {
            **{"train": wrong[train].sum(), "test": wrong[~train].sum()},
            **{"chosen": named(chosen), "converged": int(converged)},
        }

    with warnings.catch_warnings():
        # candidates may fail; whether the machine chosen did is a column
        warnings.simplefilter("ignore", ConvergenceWarning)
        # classes that are apart before training: said by the model, counted nowhere
        warnings.filterwarnings("ignore", message=".*every margin is above")
        # a score that is constant in a class within a fold of the cross-validation
        warnings.filterwarnings("ignore", message=".*Here prior='weak' was used")
        splits = [*range(options.draws), *experiment.fixed]
        units = [{"split": k, "model": m} for k in splits for m in every]
        if units:
            write(experiment, run(name, options, units, work), options, name)
        if "curves" in options.rows:
            curves(experiment, options, name)


def named(chosen):
    """Hyper-parameters as text, under the names of `_kernels`."""
    rate = "sharpness" in chosen
    return " ".join(
        f"{'c' if rate and key == 'C' else key}={value:g}"
        for key, value in chosen.items()
        if key != "sharpness"
    )


def write(experiment, rows, options, name):
    """The three tables, of what was run."""
    found = {}
    for row in rows:
        found.setdefault(row["model"], []).append(row)
    train = experiment.rows_of(0, 0)[2]
    head = [
        *("model", f"training errors of {train.sum()}"),
        *(f"test errors of {(~train).sum()}", *experiment.fixed),
        *("printed", "splits with test <= printed"),
        *("test minus MED Gaussians", "test minus its counterpart"),
    ]
    # a table of the paper's models, then one with more of them and more of each
    kept = [m for m in found if m not in GRID and not m.startswith("MED, ")]
    lines = {model: line(experiment, found, model) for model in found}
    table(name, options, head, [lines[m][: len(head)] for m in kept])
    head += ["splits with more / fewer than MED Gaussians", "than its counterpart"]
    head += ["training minus its counterpart", "sd of one split, test"]
    head += ["chosen most often", "not converged"]
    table(f"{name}_all", options, head, list(lines.values()))
    if set(GRID) <= set(found):
        cells = [
            " / ".join(f"{column(found, m, k).mean():.2f}" for k in ("train", "test"))
            for m in GRID
        ]
        cells = np.reshape(cells, (len(RATES), -1))
        head = ["C", *(f"{p}th percentile" for p in PERCENTILES)]
        lines = [[f"{C:g}", *own] for C, own in zip(RATES, cells, strict=True)]
        table(f"{name}_grid", options, head, lines)


def column(found, model, key):
    """Errors (splits,) on the random splits."""
    return np.array([r[key] for r in found[model] if isinstance(r["split"], int)])


def line(experiment, found, model):
    """Cells of one model."""
    train, test = (column(found, model, key) for key in ("train", "test"))
    cells = [model, mean_and_error(train), mean_and_error(test)]
    once = {r["split"]: f"{r['train']} / {r['test']}" for r in found[model]}
    cells += [once[title] for title in experiment.fixed]
    errors = experiment.printed.get(model)
    if errors is None:
        cells += ["", ""]
    else:
        cells.append(" / ".join("none" if e is None else str(e) for e in errors))
        cells.append(f"{100 * np.mean(test <= errors[1]):.0f} %")
    steps, shares, base = [], [], COUNTERPARTS.get(model)
    for other in (REFERENCE, base):
        known = other in found and other != model
        step = test - column(found, other, "test") if known else np.zeros(0)
        more, fewer = (100 * np.mean(s > 0) if known else 0 for s in (step, -step))
        steps.append(mean_and_error(step) if known else "")
        shares.append(f"{more:.0f} % / {fewer:.0f} %" if known else "")
    trained = train - column(found, base, "train") if base in found else ()
    chosen = [str(r["chosen"]).replace("nan", "") for r in found[model]]
    return [
        *(*cells, *steps, *shares, mean_and_error(trained) if base in found else ""),
        f"{test.std(ddof=1):.1f}" if len(test) > 1 else "",
        *(max(sorted(set(chosen)), key=chosen.count),),
        sum(not r["converged"] for r in found[model]),
    ]
