"""Result files: rows for every unit of work, and how they came about.

A script calls `run` with the units of its work: a split, a draw and a size, ... After
each of them OUT/NAME.csv is written anew, so that a run that was interrupted goes on
where it was, and more draws are added to those that are there. OUT/NAME.json beside it
holds options, command, commit, date, seconds and versions. `table` writes and prints
what the documentation shows, OUT/NAME_table.csv.
"""

import argparse
import csv
import io
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

# options that choose units, or say where files are: results do not depend on them
FREE = ("out", "draws", "rows", "tasks", "features", "scenarios", "set")


def parser(doc, draws, data=None, required=True):
    """Options that all scripts have; `data` says what the folder holds, if one must."""
    out = argparse.ArgumentParser(description=doc.splitlines()[0])
    if data is not None:
        out.add_argument("--data", required=required, help=f"folder with {data}")
    out.add_argument("--out", default="bench_results", help="folder for the results")
    out.add_argument("--draws", "--splits", type=int, default=draws, help="how many")
    out.add_argument("--seed", type=int, default=0)
    return out


def run(name, options, units, work):
    """Rows of all units; those that OUT/NAME.csv has are not done again.

    Every unit is a dict of key columns, the same for all; ``work(**unit)`` gives the
    other columns of a row, or a list of such dicts. `options` are those of `parser`:
    a file of others is refused. In the rows that come back, text that is a number is
    one, and what is empty is NaN.
    """
    path = Path(options.out) / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    about, rows, done = *_opened(path, options), {}

    def key(row):
        return tuple(str(row[k]) for k in units[0])

    for row in rows:
        done.setdefault(key(row), []).append(row)
    numbers = [_value(row.get("draw", row.get("split"))) for row in rows]
    most = max((k for k in numbers if isinstance(k, int)), default=-1)
    if most >= options.draws:
        raise SystemExit(
            f"{path} has {most + 1} draws, and {options.draws} are asked for: give "
            f"--draws {most + 1}, or another --out"
        )
    missing = [unit for unit in units if key(unit) not in done]
    start = shown = time.perf_counter()
    for count, unit in enumerate(missing, 1):
        begin = time.perf_counter(), time.process_time()
        try:
            found = work(**unit)
        except KeyboardInterrupt:
            raise SystemExit(
                f"\ninterrupted at {count} of {len(missing)}; {path} has what is "
                "done: the same command goes on from there"
            ) from None
        found = [found] if isinstance(found, dict) else found
        done[key(unit)] = [{**unit, **row} for row in found]
        rows += done[key(unit)]
        now, processor = time.perf_counter(), time.process_time()
        about["seconds"] = round(about["seconds"] + now - begin[0], 2)
        about["processor"] = round(about["processor"] + processor - begin[1], 2)
        _replace(path.with_suffix(".json"), json.dumps(about, indent=1) + "\n")
        write_rows(path, rows)
        # one line, rewritten on a terminal; elsewhere two a minute at most
        left, live = len(missing) - count, sys.stderr.isatty()
        if live or not left or now - shown > 30:
            shown, spent = now, now - start
            text = f"{name}: {len(units) - left} of {len(units)}, {spent:.0f} s"
            text += f", {spent * left / count:.0f} s left"
            end = " " if live and left else "\n"
            print("\r" * live + text, end=end, file=sys.stderr, flush=True)
    if not missing:
        print(f"{path} has all of it: delete it to run again", file=sys.stderr)
    return [
        {k: _value(x) for k, x in row.items()} | unit
        for unit in units
        for row in done[key(unit)]
    ]


def table(name, options, head, rows):
    """Write OUT/NAME_table.csv, short rows filled, and print it."""
    rows = [[*map(str, row), *[""] * (len(head) - len(row))] for row in rows]
    path = Path(options.out) / f"{name}_table.csv"
    write_rows(path, [dict(zip(head, row, strict=True)) for row in rows])
    wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    print(f"\n{path}")
    for row in (head, *rows):
        print("  ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)).rstrip())


def column(rows, name, **where):
    """Values (float) of a column in the rows that agree with `where`."""
    own = (r for r in rows if all(r[k] == x for k, x in where.items()))
    return np.array([r.get(name, np.nan) for r in own], dtype=float)


def share(flags):
    """Share of true ones, in per cent, of those known."""
    flags = np.asarray(flags, dtype=float)
    flags = flags[np.isfinite(flags)]
    return f"{100 * flags.mean():.0f} %" if len(flags) else "none"


def mean_and_error(values, digits=2):
    """ "mean ± standard error of the mean" of the finite values, "none" without any."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return f"{values[0]:.{digits}f}" if len(values) else "none"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def read_rows(path):
    """Rows of a CSV as dicts of text."""
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_rows(path, rows):
    """Dicts as a CSV of all their columns."""
    stream, names = io.StringIO(), dict.fromkeys(k for row in rows for k in row)
    writer = csv.DictWriter(stream, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _replace(path, stream.getvalue())


def _replace(path, text):
    """Write a file; the one that is there stays whole until then."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def _value(text):
    for kind in (int, float):
        try:
            return kind(str(text) or "nan")
        except ValueError:
            pass
    return text


def _opened(path, options):
    """What is known of the run that writes a file, and the rows that are there."""
    from threadpoolctl import threadpool_info

    used = {k: str(v) for k, v in vars(options).items() if k not in FREE}
    used["data"] = Path(used.get("data", "None")).name  # a folder, by its name
    about, rows = {"options": used, "seconds": 0.0, "processor": 0.0, "commit": ""}, []
    if path.exists():
        side = path.with_suffix(".json")
        about = (
            json.loads(side.read_text("utf-8")) if side.exists() else {"options": {}}
        )
        there, rows = about["options"], read_rows(path)
        other = {k for k in {**there, **used} if there.get(k) != used.get(k)}
        if other:
            text = ", ".join(f"{k} {there.get(k)}, not {used.get(k)}" for k in other)
            remedy = f"delete it or give another --out than {options.out}"
            raise SystemExit(f"{path} holds results of other options: {text}; {remedy}")
    names = ("maxent", "numpy", "scipy", "scikit-learn")
    versions = {name: version(name) for name in names}
    blas = {i["architecture"] for i in threadpool_info() if "architecture" in i}
    versions |= {"python": platform.python_version(), "blas": ", ".join(sorted(blas))}
    commits = dict.fromkeys([*filter(None, about["commit"].split(", ")), commit()])
    about |= {"commit": ", ".join(commits), "date": str(date.today())}
    words = [p.rsplit("/", 1)[-1] if p.startswith("/") else p for p in sys.argv]
    return about | {"command": shlex.join(words), "versions": versions}, rows


def commit():
    """Commit of the package, "modified" if it is; its version outside a checkout."""
    git = ["git", "-C", str(Path(__file__).parents[2])]
    quiet = {"text": True, "stderr": subprocess.DEVNULL}
    try:
        head = subprocess.check_output(
            [*git, "rev-parse", "--short=8", "HEAD"], **quiet
        )
        own = [*git, "diff", "HEAD", "--name-only", "--", "maxent", "benchmarks"]
        return head.strip() + " modified" * bool(subprocess.check_output(own, **quiet))
    except (OSError, subprocess.CalledProcessError):
        return version("maxent")
