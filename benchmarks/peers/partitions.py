"""Linear machines on Dask arrays: overhead, two workers, and more rows than memory.

    python partitions.py --folder /tmp/partitions [--rows 10000000] [--columns 50]
    python partitions.py --folder /tmp/partitions --columns 20 --landmarks 300 \\
        --parts disk --memory 2GB --repeats 1

Rows are drawn once into --folder as X.npy and y.npy (8 bytes an entry) and mapped into
memory from there. Each line is a whole fit: checks, start, passes, certificate.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from _race import Report, describe, pin


def main():
    """Run the settings one after the other and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try out")
    parser.add_argument("--csv", help="append the rows of the table to this file")
    parser.add_argument("--folder", required=True, help="where the rows are kept")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--margin", default="exponential")
    parser.add_argument("--memory", default="1.5GB", help="limit of a worker")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--landmarks", type=int, help="an RBF machine on as many landmarks"
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["overhead", "sizes", "memory", "disk"],
        choices=["overhead", "sizes", "memory", "disk"],
    )
    options = parser.parse_args()
    options.rows = options.rows or (100_000 if options.quick else 10_000_000)
    pin(1, cpus=2)  # BLAS on one thread, for two workers
    n, d = options.rows, options.columns
    describe(
        "Linear MED on partitions"
        if options.landmarks is None
        else f"MED with {options.landmarks} landmarks on partitions",
        [
            f"{n} x {d} normal rows, two classes, margin={options.margin!r}, C=1, "
            f"{8e-9 * n * d:.2f} GB in {options.blocks} blocks",
            f"workers: processes of one thread, {options.memory} each",
        ],
    )
    X, y = rows_of(Path(options.folder), n, d)
    report = Report(options.csv)
    parts = {
        "overhead": lambda: overhead(options, X, y, report),
        "sizes": lambda: sizes(options, X, y, report),
        "memory": lambda: in_memory(options, y, report),
        "disk": lambda: from_disk(options, y, report),
    }
    for name in options.parts:
        parts[name]()
    report.table()


def rows_of(folder, n, d):
    """The rows, drawn if the folder does not hold them yet; mapped into memory."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"X_{n}_{d}.npy"
    labels = folder / f"y_{n}_{d}.npy"
    if not labels.exists():
        rng = np.random.default_rng(0)
        w = rng.normal(size=d) / np.sqrt(d)
        X = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(n, d))
        y = np.empty(n, dtype=np.int8)
        for lo in range(0, n, 100_000):
            part = rng.normal(size=(min(100_000, n - lo), d))
            X[lo : lo + len(part)] = part
            noise = rng.normal(size=len(part))
            y[lo : lo + len(part)] = part @ w + 0.5 * noise > 0.1
        X.flush()
        np.save(labels, y)
    return np.load(path, mmap_mode="r"), np.load(labels)


def timed(fit, repeats):
    """(median seconds, result) of a fit."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = fit()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), found


def model_of(options):
    """The estimator."""
    from maxent import MEDClassifier

    if options.landmarks is None:
        return MEDClassifier("linear", margin=options.margin)
    return MEDClassifier(
        gamma=1.0 / options.columns,
        margin=options.margin,
        approximation="nystroem",
        n_components=options.landmarks,
        random_state=0,
    )


def bits_of(model):
    """The weights of a machine, to the last bit."""
    return getattr(model, "coef_", model.dual_coef_).tobytes()


def row(name, seconds, model, **more):
    """A row of the table."""
    return {
        "setting": name,
        "seconds": seconds,
        "steps": model.n_iter_,
        "relative gap": model.duality_gap_ / (1 + model.objective_),
        **more,
    }


def overhead(options, X, y, report):
    """One block against one array, on rows that are cheap to hold."""
    import dask
    import dask.array as da

    few = min(len(X), 1_000_000)
    part, labels = np.array(X[:few]), y[:few]
    one = da.from_array(part, chunks=-1)
    ratios = []
    with dask.config.set(scheduler="synchronous"):
        for _ in range(options.repeats):
            own, model = timed(lambda: model_of(options).fit(part, labels), 1)
            block, other = timed(lambda: model_of(options).fit(one, labels), 1)
            ratios.append((block, own, block / own))
    block, own, ratio = np.median(ratios, axis=0)
    report.add(row(f"one array, {few} rows", own, model))
    report.add(row("one block", block, other, ratio=ratio))


def sizes(options, X, y, report):
    """One array in this process against two workers that hold the blocks."""
    for n in (10_000, 100_000, 1_000_000, 5_000_000):
        if n > len(X):
            break
        part, labels = np.array(X[:n]), y[:n]
        alone, model = timed(lambda: model_of(options).fit(part, labels), 3)  # noqa: B023
        report.add(row(f"one array, {n} rows", alone, model))
        with cluster(2, "8GB"):
            from dask.distributed import wait

            kept = blocks_on_disk(options, n, min(n // 2, 100_000)).persist()
            wait(kept)
            both, model = timed(lambda: model_of(options).fit(kept, labels), 3)  # noqa: B023
        report.add(row(f"2 workers, {n} rows", both, model, ratio=both / alone))


def in_memory(options, y, report):
    """One process against two, all rows in the memory of the workers."""
    found = {}
    for workers in (1, 2):
        with cluster(workers, "16GB" if workers == 1 else "8GB"):
            from dask.distributed import wait

            kept = blocks_on_disk(options).persist()
            wait(kept)
            seconds, model = timed(
                lambda kept=kept: model_of(options).fit(kept, y), options.repeats
            )
            found[workers] = (
                seconds,
                bits_of(model),
            )
            ratio = seconds / found[1][0]
            same = found[1][1] == found[workers][1]
            name = f"{workers} worker{'s' * (workers > 1)}, in memory"
            report.add(row(name, seconds, model, ratio=ratio, same_bits=same))


def from_disk(options, y, report):
    """Two workers whose memory holds a part of the rows, against one."""
    found = {}
    for workers in (1, 2):
        with cluster(workers, options.memory) as client:
            X = blocks_on_disk(options)
            seconds, model = timed(lambda X=X: model_of(options).fit(X, y), 1)
            peak = max(client.run(peak_memory).values())
        found[workers] = (
            seconds,
            bits_of(model),
        )
        ratio = seconds / found[1][0]
        same = found[1][1] == found[workers][1]
        name = f"{workers} worker{'s' * (workers > 1)}, from disk"
        report.add(row(name, seconds, model, ratio=ratio, same_bits=same, peak_MB=peak))


def blocks_on_disk(options, n=None, size=None):
    """Rows as a Dask array whose blocks are read from the file, each by a task."""
    import dask
    import dask.array as da

    d = options.columns
    path = Path(options.folder) / f"X_{options.rows}_{d}.npy"
    n = n or options.rows
    size = size or -(-n // options.blocks)

    def read(lo):
        return np.array(np.load(path, mmap_mode="r")[lo : min(lo + size, n)])

    return da.concatenate(
        [
            da.from_delayed(
                dask.delayed(read)(lo), shape=(min(size, n - lo), d), dtype=float
            )
            for lo in range(0, n, size)
        ]
    )


def cluster(workers, memory):
    """Client of worker processes."""
    import contextlib

    from dask.distributed import Client, LocalCluster

    @contextlib.contextmanager
    def running():
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address=None,
            ) as found,
            Client(found) as client,
        ):
            yield client

    return running()


def peak_memory():
    """Largest resident memory of this process so far, MB; that of its parent is not."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
