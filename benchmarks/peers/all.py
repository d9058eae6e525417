"""Every race, one after the other; the tables of the performance pages.

    python all.py --data FOLDER [--out docs/performance] [--only NAME ...] [--resume]

Each race runs in a process of its own with nothing beside it; it is meant for an idle
machine, and takes about an hour (--quick: minutes, small sizes, to try it out). Its
table goes to OUT/NAME.csv when it has ended, so that a run that is cut short leaves
whole tables; --resume leaves out those that are newer than --since hours (12). The page
docs/performance_tables.rst shows what the files hold. machine.txt names the machine and
the versions. Races without --data that need it are left out, and said.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _race import cpu_name

FOLDER = Path(__file__).resolve().parent


@dataclass
class Table:
    """A table: the script and the words that make it; `{data}` is the data folder."""

    name: str
    script: str
    words: str = ""

    def command(self, options, csv_path, scratch):
        """Command line, or None where the data are missing."""
        words = self.words
        if "{data}" in words:
            if options.data is None:
                return None
            words = words.replace("{data}", str(options.data))
        words = words.replace("{scratch}", scratch)
        command = [sys.executable, str(FOLDER / self.script), *words.split()]
        command += ["--csv", str(csv_path)]
        return [*command, "--quick"] if options.quick else command


TABLES = [
    Table("kernel", "kernel.py", "--data {data}"),
    Table("linear_sparse", "linear.py", "--parts sparse --pairs 3"),
    Table("linear_dense", "linear.py", "--parts dense --pairs 3"),
    Table("linear_scaling", "linear.py", "--parts scaling --out {scratch}"),
    Table("multiclass", "multiclass.py", "--data {data} --pairs 3"),
    Table(
        "multiclass_letters",
        "multiclass.py",
        "--data {data} --sets letter --kinds joint pairs --rows 8000",
    ),
    Table("generative_fit", "generative.py", "--parts fit"),
    Table("generative_memory", "generative.py", "--parts memory"),
    Table("generative_passes", "generative.py", "--parts passes"),
    Table("predict", "predict.py"),
    Table("first_page", "first_page.py"),
    Table("waiting", "waiting.py"),
    Table("gram", "gram.py"),
    Table("memory", "memory.py", "--peer"),
    Table("approximation", "approximation.py"),
    Table("trees", "trees.py"),
    Table("product_kernels", "product_kernels.py", "--pairs 3"),
    Table("threads", "threads.py", "--pairs 5"),
    Table("threads_busy", "threads.py", "--pairs 3 --busy"),
    Table("sequences", "sequences.py", "--pairs 3"),
    Table("em", "em.py", "--parts steps mixed mixtures --pairs 3"),
    Table("decoding", "em.py", "--parts decoding --pairs 3"),
    Table("mixture_fits", "em.py", "--parts tables --data {data} --pairs 3"),
    Table("hmmlearn_examples", "hmmlearn_examples.py", "--pairs 3"),
    Table("state_space", "state_space.py", "--pairs 3"),
    Table("dynamics", "dynamics.py", "--pairs 3"),
    Table(
        "latent", "latent.py", "--data {data}/newsgroups20/newsgroups20.npz --pairs 3"
    ),
    Table("minentropy_qp", "minentropy.py", "--parts qp --pairs 3"),
    Table("minentropy_pass", "minentropy.py", "--parts pass"),
    Table("minentropy_fit", "minentropy.py", "--parts fit"),
    Table("margin_solvers", "margin_solvers.py", "--parts solvers"),
    Table("margin_starts", "margin_solvers.py", "--parts starts"),
    Table("partial_labels", "uncertain.py", "--parts labels"),
    Table(
        "partial_labels_splice",
        "uncertain.py",
        "--parts splice --data {data}/splice_hs3d",
    ),
    Table("partial_label_methods", "uncertain.py", "--parts overlap"),
    Table("sequence_outliers", "uncertain.py", "--parts detector"),
    Table("partitions", "partitions.py", "--folder {scratch}"),
]


def main():
    """Run the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--out", type=Path, default="docs/performance")
    names = [table.name for table in TABLES]
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    parser.add_argument("--quick", action="store_true", help="small sizes, to try out")
    parser.add_argument("--resume", action="store_true", help="leave out fresh tables")
    parser.add_argument("--since", type=float, default=12.0, help="hours; fresh tables")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data: {options.data} is not a folder")
    (options.out / "machine.txt").write_text(machine(), encoding="utf-8")
    failed = []
    for table in TABLES:
        if table.name in options.only and not run(table, options):
            failed.append(table.name)
    if failed:
        sys.exit(f"without a table: {', '.join(failed)}")


def run(table, options):
    """Whether the table was made, or did not have to be."""
    path = options.out / f"{table.name}.csv"
    age = time.time() - path.stat().st_mtime if path.exists() else float("inf")
    if options.resume and age < 3600.0 * options.since:
        print(f"{table.name}: fresh", flush=True)
        return True
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / path.name
        command = table.command(options, fresh, scratch)
        if command is None:
            print(f"{table.name}: left out, needs --data", flush=True)
            return False
        start = time.perf_counter()
        log = path.with_suffix(".log")
        with open(log, "w", encoding="utf-8") as stream:
            code = subprocess.run(command, stdout=stream, stderr=stream).returncode
        seconds = time.perf_counter() - start
        if code or not fresh.exists():
            print(f"{table.name}: failed ({code}) after {seconds:.0f} s, see {log}")
            return False
        for written in Path(scratch).glob(f"{table.name}*.csv"):  # and its summary
            (options.out / written.name).write_bytes(written.read_bytes())
        log.unlink()
    print(f"{table.name}: {seconds:.0f} s", flush=True)
    return True


def machine():
    """Processor, memory, versions and month, in one paragraph."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "hmmlearn"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"no {name}")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{cpu_name()}, {os.cpu_count()} processors, {pages / 2**30:.0f} GiB, "
        f"{platform.system()}; {', '.join(versions)}; {time.strftime('%B %Y')}.\n"
    )


if __name__ == "__main__":
    main()
