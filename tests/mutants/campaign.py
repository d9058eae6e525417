"""Random wrong changes of the package: which of them do the tests notice?

    python tests/mutants/campaign.py [--count 300] [--seed 0] [--jobs 1] [--record-only]
                                     [--map FOLDER] [--out FILE] [--files PATTERN ...]
                                     [--rest]

Each change is made in a temporary copy of the checkout and meets the tests that run its
line, the nearest and fastest first, then the other tests of the same files. A change is
noticed if a test fails, an import fails, or the time is over (ten times what the tests
took without it, and half a minute). ``--rest`` runs all other tests besides on the
survivors, in groups that are halved while a test fails. The record of which test runs
which line is made first (coverage.py, some 40 minutes) and kept in the folder --map.
Results go to --out, a line of JSON for each change, at once; a run that was interrupted
goes on where it was. What `equivalent.json` lists is not run: it changes nothing.

The exit code is 0 if at least 95 of 100 changes are noticed.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from changes import sample
from coverage_map import CoverageMap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LABELS = "_label* partial_labels _joint_labels"
DETECTORS = (
    "outliers sequence_outliers _outlier* _chain_rounds chain_posterior latent_mixture "
    "_latent_rounds"
)
AREAS = [
    *(
        f"maxent/{part}/**/*.py"
        for part in ("models", "kernels", "latent", "minentropy")
    ),
    *(
        f"maxent/discrimination/**/{name}.py"
        for name in (LABELS + " " + DETECTORS).split()
    ),
]
FIRST = 20.0  # seconds of tests that a change meets before all others
MEMORY = 8 * 2**30  # bytes of address space: a change may ask for any array
ENOUGH = 0.95


def copy_of(folder):
    """A copy of the checkout, without what is built for the pages."""
    unwanted = shutil.ignore_patterns(
        *(".git", ".venv", "__pycache__", "build", "dist", "_build", "generated"),
        *(".*_cache", "gallery", "*.c.tmp", "*.egg-info"),
    )
    shutil.copytree(ROOT, folder, ignore=unwanted, symlinks=True)
    return folder


def environment_of(root):
    """Variables of a process that tests the package of a folder."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        "NUMBA_CACHE_DIR": str(root / "numba_cache"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


# -- running tests ---------------------------------------------------------------------
def run_tests(root, tests, limit, *options):
    """None if all tests pass, else what failed: a test, "timeout" or "crash"."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", "-rfE"]
    command += ["-p", "no:cacheprovider", *options, *tests]
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environment_of(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode in (0, 5):  # passed; no test left to run
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return found[1] if found else f"crash: {output.strip()[-300:]}"


class Trees:
    """Copies of the checkout, one for each job."""

    def __init__(self, folder, jobs):
        self.free = [copy_of(folder / f"tree{k}") for k in range(jobs)]

    def run(self, changes, tests, limit, *options):
        """What `run_tests` finds with some changes made."""
        root = self.free.pop()
        sources = {
            file: (root / file).read_bytes() for file in {c.file for c in changes}
        }
        try:
            for file, source in sources.items():
                own = [change for change in changes if change.file == file]
                for change in sorted(own, key=lambda c: c.start, reverse=True):
                    source = change.applied(source)
                write(root / file, source)
            return run_tests(root, tests, limit, *options)
        finally:
            for file, source in sources.items():
                write(root / file, source)
            self.free.append(root)


def write(path, source):
    """Write a module and forget its bytecode, which knows seconds and sizes only."""
    pathlib.Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    path.write_bytes(source)


# -- one change ------------------------------------------------------------------------
def batches_of(change, record):
    """Tests that may notice a change: the near and fast ones, then the others."""
    room = pathlib.PurePath(change.file).parent.name
    name = pathlib.PurePath(change.file).stem.strip("_")

    def cost(test):
        file = pathlib.PurePath(test.partition("::")[0])
        far = (
            2
            - (room in file.parts)
            - bool(set(name.split("_")) & set(file.stem.split("_")))
        )
        return record.seconds(test) * 10.0**far, test

    tests = record.tests_of(change.file, change.first, change.last)
    tests = sorted((t for t in tests if record.is_reliable(t)), key=cost)
    first, spent = [], 0.0
    while tests and spent < FIRST:
        first.append(tests.pop(0))
        spent += record.seconds(first[-1])
    return [batch for batch in (first, tests) if batch]


def outcome_of(change, record, trees):
    """Outcome of one change, and what noticed it."""
    for batch in batches_of(change, record):
        limit = 30.0 + 10.0 * (6.0 + sum(map(record.seconds, batch)))
        found = trees.run([change], batch, limit)
        if found is not None:
            return "killed", found
    return "survived", ""


def killed_by_the_rest(changes, record, trees):
    """Changes that any other test notices: all at once, halved while one fails."""
    unreliable = [t for t in every_test(record) if not record.is_reliable(t)]
    options = [f"--deselect={test}" for test in unreliable]
    limit = 600.0 + 10.0 * sum(map(record.seconds, every_test(record)))
    if not changes or (found := trees.run(changes, [], limit, *options)) is None:
        return {}
    if len(changes) == 1:
        return {changes[0]: found}
    middle = len(changes) // 2
    return killed_by_the_rest(changes[:middle], record, trees) | killed_by_the_rest(
        changes[middle:], record, trees
    )


def every_test(record):
    """Names of all test functions."""
    return [test for file in record.tests.values() for test in file["seconds"]]


# -- results ---------------------------------------------------------------------------
def equivalents():
    """Reasons why changes change nothing, by what identifies them in any version."""
    listed = json.loads((HERE / "equivalent.json").read_text(encoding="utf-8"))
    return {identity(entry): entry["reason"] for entry in listed}


def identity(entry):
    """What a change is, whatever line it is on."""
    names = ("file", "where", "statement", "kind", "before", "after")
    return tuple(entry[name] for name in names)


def row_of(change, outcome, by):
    """Line of the results."""
    shown = dataclasses.asdict(change)
    for name in ("start", "end", "first", "last"):
        del shown[name]
    return {**shown, "outcome": outcome, "by": by}


def print_table(rows):
    """Counts by kind, and the survivors."""
    kinds = collections.Counter((row["kind"], row["outcome"]) for row in rows)
    outcomes = ("killed", "survived", "equivalent")
    print(f"\n{'kind':12}" + "".join(f"{name:>12}" for name in outcomes))
    for kind in sorted({row["kind"] for row in rows}):
        print(f"{kind:12}" + "".join(f"{kinds[kind, name]:12}" for name in outcomes))
    for row in rows:
        if row["outcome"] == "survived":
            print(f"{row['file']}:{row['line']}: {row['before']!r} -> {row['after']!r}")


def score(rows):
    """Share of the changes that were noticed, of those that change anything."""
    count = collections.Counter(row["outcome"] for row in rows)
    return count["killed"] / max(1, count["killed"] + count["survived"])


def main():
    """Run."""
    options = arguments()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # of all tests, too
    work = pathlib.Path(tempfile.mkdtemp(prefix="maxent-mutants-"))
    try:
        return campaign(options, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def campaign(options, work):
    """Record, change, test, report; the exit code."""
    trees = Trees(work, options.jobs)
    record = CoverageMap(options.map, ROOT)
    files = sorted(
        str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py")
    )
    record.record(files, trees.free[0], environment_of(trees.free[0]))
    if options.record_only:
        return 0
    paths = {p for pattern in options.files for p in ROOT.glob(pattern)}
    sources = {str(p.relative_to(ROOT)): p.read_bytes() for p in paths}
    changes = sample(sources, options.count, options.seed)
    reasons, rows = equivalents(), []
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {identity(row) for row in rows}
    todo = [c for c in changes if identity(dataclasses.asdict(c)) not in done]

    def judged(change):
        reason = reasons.get(identity(dataclasses.asdict(change)))
        if reason is not None:
            return change, "equivalent", reason
        return change, *outcome_of(change, record, trees)

    start = time.monotonic()
    with (
        options.out.open("a", encoding="utf-8") as stream,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        for change, outcome, by in pool.map(judged, todo):
            rows.append(row_of(change, outcome, by))
            print(json.dumps(rows[-1]), file=stream, flush=True)
            where = f"{change.file}:{change.line}"
            shown = f"{change.before[:40]!r} -> {change.after[:40]!r}"
            spent = time.monotonic() - start
            print(
                f"{spent:7.0f} s  {outcome:10} {where}  {shown}  {by[:90]}", flush=True
            )
    if options.rest:
        rows = with_the_rest(rows, changes, record, trees)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        options.out.write_text(text, encoding="utf-8")
    print_table(rows)
    share = 100 * score(rows)
    print(f"noticed: {share:.1f} % of {len(rows)} changes, seed {options.seed}")
    return 0 if score(rows) >= ENOUGH else 1


def with_the_rest(rows, changes, record, trees):
    """Rows after all other tests have met the survivors."""
    named = {identity(dataclasses.asdict(change)): change for change in changes}
    left = [row for row in rows if row["outcome"] == "survived"]
    found = killed_by_the_rest([named[identity(row)] for row in left], record, trees)
    late = {identity(dataclasses.asdict(change)): by for change, by in found.items()}
    return [
        {**row, "outcome": "killed", "by": late[identity(row)]}
        if identity(row) in late
        else row
        for row in rows
    ]


def arguments():
    """Parsed options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record-only", action="store_true")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--files", nargs="+", default=AREAS, help="patterns of sources")
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path("mutants.jsonl")
    )
    parser.add_argument(
        "--map", type=pathlib.Path, default=pathlib.Path("mutants.map"), help="folder"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
