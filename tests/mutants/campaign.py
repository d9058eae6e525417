"""Random wrong changes of the package: which of them do the tests notice?

    python tests/mutants/campaign.py [--count 300] [--seed 0] [--jobs 1] [--record-only]
                                     [--files PATTERN ...] [--tests PATTERN ...]
                                     [--without-rest] [--again]
                                     [--map FOLDER] [--out FILE]

Each change is made in a temporary copy of the checkout and meets the tests that run its
line, the nearest and fastest first. It is noticed if a test fails, an import fails, or
the time is over (ten times what the tests took without it, and a minute and a half).
Survivors meet all tests together, the long ones too, and then each of them those that
failed.
What `equivalent.json` lists is not run: it changes no result.

Which test runs which line is recorded first (coverage.py, an hour) and kept in the
folder --map for as long as the sources stay the same. Results go to --out at once, a
line of JSON for each change: a campaign that was interrupted goes on where it was, and
--again runs its survivors once more, with the tests that were written since.

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

from changes import sample
from coverage_map import CoverageMap, function_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
AREAS = [
    *(
        f"maxent/{part}/**/*.py"
        for part in ("models", "kernels", "latent", "minentropy")
    ),
    "maxent/discrimination/labels/*.py",
    "maxent/discrimination/detection/*.py",
]
FIRST = 20.0  # seconds of tests that a change meets before all others
LONG = 10.0  # seconds of a test that changes meet all together, at the end
MEMORY = 8 * 2**30  # bytes of address space: a change may ask for any array
ENOUGH = 0.95


def copy_of(folder):
    """A copy of the checkout, without what is built for the pages."""
    unwanted = shutil.ignore_patterns(
        *(".git", ".venv", "__pycache__", "build", "dist", "_build", "generated"),
        *(".*_cache", "gallery", "bench_results", "*.egg-info"),
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
    """What fails: tests, or "timeout" or "crash" alone; nothing if all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--tb=no", "-rfE"]
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
        return ["timeout"]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode in (0, 5):  # passed; no test left to run
        return []
    found = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return found or [f"crash: {output.strip()[-300:]}"]


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
    tests = [t for t in tests if record.is_reliable(t) and record.seconds(t) < LONG]
    tests.sort(key=cost)
    first, spent = [], 0.0
    while tests and spent < FIRST:
        first.append(tests.pop(0))
        spent += record.seconds(first[-1])
    return [batch for batch in (first, tests) if batch]


def outcome_of(change, record, trees):
    """Outcome of one change, and what noticed it."""
    for batch in batches_of(change, record):
        if found := trees.run([change], batch, limit_of(batch, record), "-x"):
            return "killed", found[0]
    return "survived", ""


def limit_of(tests, record):
    """Seconds that some tests may take."""
    return 90.0 + 10.0 * sum(map(record.seconds, tests))


def killed_by_the_rest(changes, record, trees):
    """Changes that any test notices: all meet all tests, then each those that fail."""
    noticed, left, most = {}, list(changes), len(changes)
    tests = every_test(record)
    options = [f"--deselect={t}" for t in tests if not record.is_reliable(t)]
    while left:
        group = apart(left)[:most]
        failed = trees.run(
            group, sorted(record.tests), limit_of(tests, record), *options
        )
        names = sorted(set(map(function_of, failed)) & set(tests))
        if failed and not names and len(group) > 1:  # no import, no end, or a crash
            most = len(group) // 2
            continue
        own = {change: failed for change in group if failed}
        if names:
            limit = limit_of(names, record)
            own = {c: trees.run([c], names, limit, "-x") for c in group}
        own = {change: by[0] for change, by in own.items() if by}
        noticed |= own
        left = [change for change in left if change not in (own or group)]
    return noticed


def apart(changes):
    """Changes of which no two touch one text."""
    out = []
    for new in changes:
        if all(
            new.file != old.file or new.end <= old.start or old.end <= new.start
            for old in out
        ):
            out.append(new)
    return out


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
    names = ("file", "where", "statement", "column", "kind", "before", "after")
    return tuple(entry[name] for name in names)


def place(row):
    """Where a change is, and what it is."""
    return row["line"], identity(row)


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
            print(shown(row))


def score(rows):
    """Share of the changes that were noticed, of those that change anything."""
    count = collections.Counter(row["outcome"] for row in rows)
    return count["killed"] / max(1, count["killed"] + count["survived"])


def main():
    """Run; the exit code."""
    options = arguments()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # of all tests, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copies are removed
    work = pathlib.Path(tempfile.mkdtemp(prefix="maxent-mutants-"))
    try:
        return campaign(options, Trees(work, options.jobs))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def campaign(options, trees):
    """Record, change, test, report."""
    record = CoverageMap(options.map, ROOT)
    tests = {path for pattern in options.tests for path in ROOT.glob(pattern)}
    names = sorted(str(path.relative_to(ROOT)) for path in tests)
    record.record(names, trees.free[0], environment_of(trees.free[0]))
    if options.record_only:
        return 0
    paths = {path for pattern in options.files for path in ROOT.glob(pattern)}
    sources = {str(path.relative_to(ROOT)): path.read_bytes() for path in paths}
    changes = sample(sources, options.count, options.seed)
    rows = rows_of(changes, options, record, trees)
    if not options.without_rest:
        rows = with_the_rest(rows, changes, record, trees)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    options.out.write_text(text, encoding="utf-8")
    print_table(rows)
    share = 100 * score(rows)
    print(f"noticed: {share:.1f} % of {len(rows)} changes, seed {options.seed}")
    return 0 if score(rows) >= ENOUGH else 1


def rows_of(changes, options, record, trees):
    """Results of all changes in their order; those of an earlier run are taken over."""
    reasons, known = equivalents(), {}
    if options.out.exists():
        for line in options.out.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["outcome"] == "killed" or not options.again:
                known[place(row)] = row

    def judged(change):
        entry = dataclasses.asdict(change)
        if place(entry) not in known:
            reason = reasons.get(identity(entry))
            found = (
                ("equivalent", reason) if reason else outcome_of(change, record, trees)
            )
            row = known[place(entry)] = row_of(change, *found)
            print(json.dumps(row), file=stream, flush=True)
            print(shown(row), flush=True)
        return known[place(entry)]

    options.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.out.open("a", encoding="utf-8") as stream,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        return list(pool.map(judged, changes))


def shown(row):
    """One line about a change for the terminal."""
    change = f"{row['before'][:40]!r} -> {row['after'][:40]!r}"
    return (
        f"{row['outcome']:10} {row['file']}:{row['line']}  {change}  {row['by'][:90]}"
    )


def with_the_rest(rows, changes, record, trees):
    """Rows after all other tests have met the survivors."""
    named = {place(dataclasses.asdict(change)): change for change in changes}
    left = [place(row) for row in rows if row["outcome"] == "survived"]
    found = killed_by_the_rest([named[p] for p in left], record, trees)
    late = {place(dataclasses.asdict(change)): by for change, by in found.items()}
    return [
        {**row, "outcome": "killed", "by": late[place(row)]}
        if place(row) in late
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
    parser.add_argument("--without-rest", action="store_true")
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    parser.add_argument("--files", nargs="+", default=AREAS, help="patterns of sources")
    parser.add_argument("--tests", nargs="+", default=["tests/**/test_*.py"])
    folder = pathlib.Path("bench_results")
    parser.add_argument("--out", type=pathlib.Path, default=folder / "mutants.jsonl")
    parser.add_argument("--map", type=pathlib.Path, default=folder / "mutants.map")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
