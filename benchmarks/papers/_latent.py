"""What the experiments of the latent maximum entropy paper share.

Trials over sample sizes, each from one pool of candidates: the choice by entropy (LME)
and by likelihood (MLE), with the gates and without them.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from _experiment import write_text

FIELDS = ("divergence", "log_likelihood", "entropy")
CHOICES = ("entropy", "likelihood")


def arguments(description, draws, sizes, starts, data=None):
    """Parsed options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", help=data or "not used: the data are drawn")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--draws", type=int, default=draws, help="trials of each size")
    parser.add_argument("--seed", type=int, default=0)
    if sizes:
        parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--starts", type=int, default=starts)
    return parser


class Trials:
    """Rows of results, one dict for each trial; each name is a column.

    Attributes
    ----------
    rows : list of dict
    """

    def __init__(self):
        self.rows = []

    def add(self, **row):
        """One trial."""
        self.rows.append(row)

    def column(self, name, **where):
        """Values of a column (float) in the rows that agree with `where`."""
        own = (r for r in self.rows if all(r[k] == x for k, x in where.items()))
        return np.array([r.get(name, np.nan) for r in own], dtype=float)

    def write(self, path):
        """All rows as a CSV."""
        names = list(dict.fromkeys(k for row in self.rows for k in row))
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows(self.rows)


def cell(values, digits=3):
    """ "mean ± standard error" of the finite values."""
    values = values[np.isfinite(values)]
    if not len(values):
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def share(flags):
    """Share of true ones, in per cent, of those known."""
    flags = flags[np.isfinite(flags)]
    return f"{100 * flags.mean():.0f} %" if len(flags) else "-"


def rate(sizes, means):
    """Slope of log divergence against log size by least squares: minus the rate."""
    sizes, means = np.asarray(sizes, float), np.asarray(means)
    at = np.isfinite(means) & (means > 0)
    if at.sum() < 2:
        return np.nan
    return float(np.polyfit(np.log(sizes[at]), np.log(means[at]), 1)[0])


def fitted(estimator, X):
    """Fitted estimator, None if the gates reject every candidate."""
    from maxent.latent import NoAdmissibleCandidateError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator.fit(X)
    except NoAdmissibleCandidateError:
        return None


def both(model, log_density, test, base):
    """Divergence, likelihood and entropy of both choices, as columns of a trial."""
    out = {}
    for choice in CHOICES if model is not None else ():
        own = model.select(choice)
        out[f"{choice} divergence"] = base - float(log_density(own, test).mean())
        out[f"{choice} log_likelihood"] = own.log_likelihood_
        out[f"{choice} entropy"] = own.entropy_
    return out


def clock():
    """Function that gives "N s" since now, of wall clock and of processor."""
    start = time.perf_counter(), time.process_time()

    def spent():
        wall, own = time.perf_counter() - start[0], time.process_time() - start[1]
        return f"{wall:.0f} s, {own:.0f} s of processor"

    return spent


def finish(trials, lines, out, name, draw=None):
    """NAME.md, NAME.csv and, by draw(path), NAME.png."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    write_text(lines, out / f"{name}.md")
    trials.write(out / f"{name}.csv")
    if draw is not None:
        draw(out / f"{name}.png")
    print(f"written: {out / name}.*")
