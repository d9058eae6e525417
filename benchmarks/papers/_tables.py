"""Run the rows that were asked for, write their tables, compare all of them."""

import csv
from pathlib import Path

import _curves
import _gaussians
import _kernels
import _others
import numpy as np
from _experiment import (
    markdown,
    mean_and_error,
    set_up,
    write_splits,
    write_text,
)

REFERENCE = ("MED", _gaussians.DUAL)


def run_and_write(experiment, options, name):
    """NAME_ROWS.md, .csv and .png for all rows asked for, and NAME_compared.md."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    run = {"kernels": kernels, "gaussians": gaussians, "others": others}
    entries = []
    for rows in options.rows:
        if rows == "curves":
            curves(experiment, options, out / f"{name}_curves")
        else:
            entries += run[rows](experiment, options, out / f"{name}_{rows}")
    if any((e.machine, e.kernel) == REFERENCE for e in entries):
        write_text(compared(experiment, entries, options), out / f"{name}_compared.md")
    print(f"written: {out / name}_*")


def kernels(experiment, options, path):
    """Kernel machines: errors, settings, MED against SVM."""
    entries, fixed = _kernels.run(experiment, options.splits, options.seed)
    unconverged = sum(e.unconverged for e in entries + fixed)
    lines = [
        f"# {experiment.title}: kernel machines",
        "",
        set_up(options),
        "",
        *_kernels.table(experiment, entries, fixed),
        "",
        "Paired on the same splits:",
        "",
        *_kernels.paired(entries),
        "",
        *experiment.notes,
        "",
        f"Final fits that did not meet their tolerance: {unconverged}.",
    ]
    write_text(lines, path.with_suffix(".md"))
    write_splits(entries, path.with_suffix(".csv"))
    _kernels.draw(experiment, entries, path.with_suffix(".png"))
    return entries


def gaussians(experiment, options, path):
    """Gaussians: errors, MED against maximum likelihood, the whole grid."""
    entries, grids, fixed = _gaussians.run(experiment, options.splits, options.seed)
    fixed_part = [
        "One split, train / test errors, the models as above:",
        "",
        *_gaussians.fixed_lines(fixed),
        "",
    ]
    lines = [
        f"# {experiment.title}: Gaussians",
        "",
        set_up(options),
        "",
        *_gaussians.table(experiment, entries),
        "",
        "Paired on the same splits:",
        "",
        *_gaussians.paired(entries),
        "",
        f"MED with the bias of {_gaussians.FEWEST}, mean training / test errors for "
        "every setting (none of them chosen):",
        "",
        *_gaussians.grid_table(grids),
        "",
        *(fixed_part if fixed else []),
        "Fits that did not meet their tolerance: "
        f"{sum(e.unconverged for e in entries)}.",
    ]
    write_text(lines, path.with_suffix(".md"))
    write_splits(entries, path.with_suffix(".csv"))
    _gaussians.draw(experiment, entries, path.with_suffix(".png"))
    return entries


def others(experiment, options, path):
    """Models of scikit-learn."""
    entries = _others.run(experiment, options.splits, options.seed)
    lines = [
        f"# {experiment.title}: other models",
        "",
        set_up(options),
        "",
        *_others.table(experiment, entries),
    ]
    write_text(lines, path.with_suffix(".md"))
    write_splits(entries, path.with_suffix(".csv"))
    return entries


def curves(experiment, options, path):
    """Areas under ROC curves."""
    areas, training, errors, first = _curves.run(
        experiment, options.splits, options.seed
    )
    lines = [
        f"# {experiment.title}: areas under ROC curves",
        "",
        set_up(options),
        "",
        *_curves.table(areas, training, errors),
    ]
    write_text(lines, path.with_suffix(".md"))
    with open(path.with_suffix(".csv"), "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["split", *areas])
        writer.writerows(enumerate_rows(areas.values()))
    _curves.draw(experiment, first, path.with_suffix(".png"))


def enumerate_rows(columns):
    """Rows of equally long columns, numbered."""
    return ([k, *row] for k, row in enumerate(zip(*columns, strict=True)))


def compared(experiment, entries, options):
    """Lines with every row against MED Gaussians, split by split."""
    by_name = {(e.machine, e.kernel): e for e in entries}
    base = by_name[REFERENCE]
    rows = []
    for entry in entries:
        step = np.subtract(entry.test, base.test)
        cells = (
            ["", ""]
            if entry is base
            else [
                mean_and_error(step),
                f"{100 * np.mean(step > 0):.0f} % / {100 * np.mean(step < 0):.0f} %",
            ]
        )
        name = ", ".join(filter(None, (entry.machine, entry.kernel)))
        printed = entry.printed_cells()[0]
        rows.append([name, mean_and_error(entry.test), printed, *cells])
    head = [
        "model",
        f"test errors of {experiment.sizes()[1]}",
        "printed",
        f"minus MED Gaussians, {REFERENCE[1]} bias, paired",
        "splits with more / fewer",
    ]
    title = f"# {experiment.title}: all rows"
    return [title, "", set_up(options), "", *markdown(head, rows)]
