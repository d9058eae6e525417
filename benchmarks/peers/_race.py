"""Races in pairs: one process, fixed threads, alternated order, medians of ratios.

A race runs ours and a peer in turn, ours first in one pair and second in the next, so
that drifts of the machine meet both. Its result is the median of the ratios of the
pairs, of wall times and of CPU times. The share of CPU in wall time is recorded: where
it falls below one per thread the machine was busy, and only the ratio of CPU times is
worth something.
"""

import csv
import gc
import math
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass, field

_MARK = "MAXENT_RACE_THREADS"
_POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def pin(threads=1, cpus=None):
    """Restart the script with this many threads and as many CPUs, unless done.

    Thread pools read their environment when they load, and some read only the CPUs
    that the process may use: both are set, and the interpreter starts anew.
    More `cpus` are for worker processes of that many threads each.
    """
    if os.environ.get(_MARK) == str(threads):
        return
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[-(cpus or threads) :])
    environment = dict.fromkeys(_POOLS, str(threads))
    environment[_MARK] = str(threads)
    sys.stdout.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, **environment})


def cpu_name():
    """Model name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe(title, setup, packages=()):
    """Print machine, versions and set-up of a race.

    Parameters
    ----------
    title : str
    setup : list of str
        What is raced, one line each.
    packages : sequence of str
        Distributions whose versions matter besides the usual ones.
    """
    from importlib.metadata import PackageNotFoundError, version

    import maxent

    def version_of(name):
        try:
            return version(name)
        except PackageNotFoundError:
            return "missing"

    versions = [f"maxent {maxent.__version__}", f"Python {platform.python_version()}"]
    names = ("numpy", "scipy", "scikit-learn", *packages)
    versions += [f"{name} {version_of(name)}" for name in names]
    print(title)
    print(f"  machine   {cpu_name()}, {platform.system()} {platform.release()}")
    print(f"  threads   {os.environ.get(_MARK, 'not fixed')}")
    print(f"  versions  {', '.join(versions)}")
    for line in setup:
        print(f"  set-up    {line}")
    print(flush=True)


@dataclass
class Clock:
    """Wall and CPU times of one contestant, and its last result."""

    seconds: list = field(default_factory=list)
    cpu_seconds: list = field(default_factory=list)
    result: object = None

    def run(self, call):
        """Run and time once."""
        self.result = None  # free the result of the run before
        gc.collect()
        cpu, start = time.process_time(), time.perf_counter()
        self.result = call()
        wall = time.perf_counter() - start
        self.seconds.append(wall)
        self.cpu_seconds.append(time.process_time() - cpu)
        return wall

    @property
    def cpu_share(self):
        """CPU seconds per wall second, one a run."""
        return [a / b for a, b in zip(self.cpu_seconds, self.seconds)]

    @property
    def median(self):
        """Median wall time, seconds."""
        return statistics.median(self.seconds)


@dataclass
class Outcome:
    """Both clocks of a race."""

    ours: Clock
    peer: Clock

    @property
    def ratios(self):
        """Our time over the peer's, one a pair."""
        return [a / b for a, b in zip(self.ours.seconds, self.peer.seconds)]

    @property
    def cpu_ratios(self):
        """Our CPU time over the peer's, one a pair."""
        return [a / b for a, b in zip(self.ours.cpu_seconds, self.peer.cpu_seconds)]

    @property
    def columns(self):
        """Cells for a table: times, ratios, CPU shares."""
        ratios = self.ratios
        share = [min(clock.cpu_share) for clock in (self.ours, self.peer)]
        return {
            "ours s": f"{self.ours.median:.4g}",
            "peer s": f"{self.peer.median:.4g}",
            "ratio": f"{statistics.median(ratios):.3f}",
            "ratios": f"{min(ratios):.3f}-{max(ratios):.3f}",
            "cpu ratio": f"{statistics.median(self.cpu_ratios):.3f}",
            "cpu/wall": f"{share[0]:.2f} {share[1]:.2f}",
        }


def race(ours, peer, pairs=5, seconds=math.inf):
    """Run two calls in alternated pairs.

    Parameters
    ----------
    ours, peer : callable
        Without arguments; the last value returned is kept.
    pairs : int
    seconds : float, default=inf
        No pair is begun after this time, but for the second.

    Returns
    -------
    Outcome
    """
    clocks = Clock(), Clock()
    calls = ours, peer
    start = time.perf_counter()
    for pair in range(pairs):
        if pair > 1 and time.perf_counter() - start > seconds:
            break
        for who in (0, 1) if pair % 2 == 0 else (1, 0):
            clocks[who].run(calls[who])
    return Outcome(*clocks)


class Report:
    """Rows of a table: shown as they come, kept in a CSV, printed together at last.

    Parameters
    ----------
    csv_path : str or None
        File to which rows are appended at once, so that a long run cut short is not
        lost.
    """

    def __init__(self, csv_path=None):
        self.csv_path = csv_path
        self.rows = []

    def add(self, row):
        """Add a row: a dict with the keys of all other rows."""
        self.rows.append(row)
        print("  " + ", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
        if self.csv_path is None:
            return
        path = self.csv_path
        fresh = not os.path.exists(path) or os.path.getsize(path) == 0
        with open(path, "a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(row))
            if fresh:
                writer.writeheader()
            writer.writerow(row)

    def table(self):
        """Print all rows as a plain table."""
        if not self.rows:
            print("nothing was run")
            return
        names = list(self.rows[0])
        cells = [names] + [[str(row[name]) for name in names] for row in self.rows]
        widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
        print()
        for row in cells:
            line = "  ".join(cell.ljust(w) for cell, w in zip(row, widths))
            print(line.rstrip())
        print(flush=True)


def arguments(parser):
    """Options that every race has."""
    parser.add_argument("--quick", action="store_true", help="small sizes, to try out")
    parser.add_argument("--pairs", type=int, default=5, help="pairs a race (default 5)")
    parser.add_argument("--csv", help="append the rows of the table to this file")
    return parser
