"""Two threads against one: whole fits and Gram matrices, wall times, same bits.

Every estimator and function that has work for two cores. Runs in a process with two
CPUs; the ratio is the time on one thread over that on two. It is believed only if CPU
over wall time of the runs on two threads is well above one: on a busy machine it is
not. Jobs in processes of their own show little CPU time here.

"shared" is the share of the time on one thread in functions of which a profile says
that two threads are a fifth faster or more. "bound" is the ratio if all of that took
half the time, and the rest as long as on one thread (Amdahl).

With --busy a process beside it takes what it gets of one of the CPUs: two threads
should then be no slower than one, which has a CPU to itself.
"""

import argparse
import contextlib
import cProfile
import os
import pstats
import statistics
import subprocess
import sys
import warnings
from functools import partial

from _race import Report, arguments, describe, pin, race
from product_kernels import documents, fit_each, hmm_models, letters
from sequences import our_fit


def main():
    """Run the jobs asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--only", help="jobs whose name holds this text")
    parser.add_argument("--busy", action="store_true", help="keep one CPU busy")
    options = parser.parse_args()
    pin(2)
    warnings.filterwarnings("ignore")
    with busy_neighbour() if options.busy else contextlib.nullcontext():
        run_jobs(options)


@contextlib.contextmanager
def busy_neighbour():
    """A process that runs all the time on the first of our CPUs."""
    cpu = min(os.sched_getaffinity(0))
    loop = f"import os\nos.sched_setaffinity(0, [{cpu}])\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop]) as process:
        try:
            yield
        finally:
            process.kill()


def run_jobs(options):
    """Race every job, on two threads and on one."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    describe("Two threads", ["time on one thread / time on two"], ["numba"])
    report = Report(options.csv)
    for make in JOBS:
        for name, job in make(options.quick):
            if options.only is not None and options.only not in name:
                continue

            def run(k, job=job):
                with threadpool_limits(k):
                    return np.asarray(job(k))

            jobs = partial(run, 1), partial(run, 2)
            outcome = race(*jobs, options.pairs)
            one, two = outcome.ours, outcome.peer
            same = np.array_equal(one.result, two.result)
            row = {
                "job": name,
                "one thread s": f"{one.median:.4g}",
                "two threads s": f"{two.median:.4g}",
                "ratio": f"{statistics.median(outcome.ratios):.2f}",
                "ratios": f"{min(outcome.ratios):.2f}-{max(outcome.ratios):.2f}",
            }
            if not options.busy:  # beside which one thread is used anyway
                row |= {"shared": "", "bound": ""}
                if statistics.median(two.cpu_share) > 0.9:  # else it is in processes
                    shared = shared_part(*jobs, one.median)
                    row["shared"] = f"{shared:.2f}"
                    row["bound"] = f"{1 / (1 - shared / 2):.2f}"
            row["CPU / wall on two"] = f"{statistics.median(two.cpu_share):.2f}"
            row["bits"] = "same" if same else "OTHER"
            report.add(row)
    report.table()


def shared_part(one, two, seconds):
    """Share of the seconds on one thread in functions that are faster on two."""
    on_one, on_two = own_times(one), own_times(two)
    shared = sum(
        time
        for name, time in on_one.items()
        if time > 0.005 * seconds and on_two.get(name, 0.0) < 0.8 * time
    )
    return min(shared / seconds, 1.0)


def own_times(job, runs=3):
    """Least time of each function of Python itself, compiled ones that it calls in."""
    least = {}
    for _ in range(runs):
        profile = cProfile.Profile(builtins=False)
        profile.runcall(job)
        for name, (_, _, own, *_) in pstats.Stats(profile).stats.items():
            least[name] = min(own, least.get(name, own))
    return least


def kernel_machines(quick):
    """Classifier, regressor and detector with kernels."""
    import numpy as np
    from _data import classification
    from suite import data

    from maxent import MEDClassifier, MEDRegressor

    for n, d in ((800, 20),) if quick else ((20_000, 20), (5000, 200)):
        task = classification(n, d, test=10)
        for margin in ("exponential", "hinge"):
            yield (
                f"MEDClassifier rbf {margin} {task.shape}",
                lambda k, task=task, margin=margin: (
                    MEDClassifier(C=10.0, sharpness=10.0, margin=margin, n_jobs=k)
                    .fit(task.X, task.y)
                    .dual_coef_
                ),
            )
    n = 600 if quick else 8000
    task = classification(n, 20, test=10)
    y = data.classification(n, 20, classes=10, test=10)[1]
    yield (
        f"MEDClassifier linear hinge {25 * n} x 20",
        lambda k: (
            MEDClassifier("linear", margin="hinge", n_jobs=k)
            .fit(np.tile(task.X, (25, 1)), np.tile(task.y, 25))
            .coef_
        ),
    )
    yield (
        f"MEDClassifier linear exponential {25 * n} x 20",
        lambda k: (
            MEDClassifier("linear", n_jobs=k)
            .fit(np.tile(task.X, (25, 1)), np.tile(task.y, 25))
            .coef_
        ),
    )
    for form in ("joint", "ovo"):
        yield (
            f"MEDClassifier rbf {form}, 10 classes {n} x 20",
            lambda k, form=form: (
                MEDClassifier(C=10.0, sharpness=10.0, multi_class=form, n_jobs=k)
                .fit(task.X, y)
                .dual_coef_
            ),
        )
    yield (
        f"MEDClassifier nystroem {12 * n} x 20, 300 landmarks",
        lambda k: (
            MEDClassifier(
                approximation="nystroem", n_components=300, random_state=0, n_jobs=k
            )
            .fit(np.tile(task.X, (12, 1)), np.tile(task.y, 12))
            .decision_function(task.X)
        ),
    )
    X, target, _, _ = data.regression(n, 20, test=10)
    yield (
        f"MEDRegressor rbf {n} x 20",
        lambda k: MEDRegressor(C=10.0, n_jobs=k).fit(X, target).dual_coef_,
    )
    machine = MEDClassifier(C=10.0, n_jobs=1).fit(task.X[: n // 2], task.y[: n // 2])

    def predicted(k):
        machine.n_jobs = k
        return machine.decision_function(np.tile(task.X, (4, 1)))

    yield f"predict {4 * n} rows, {len(machine.support_)} support vectors", predicted


def generative_machines(quick):
    """Gaussians, Bayes nets, trees, detectors."""
    from suite import data

    from maxent import MEDOutlierDetector
    from maxent.discrimination import (
        ChowLiuClassifier,
        LatentMixture,
        MEDBayesNetClassifier,
        MEDGaussianClassifier,
        MEDSequenceOutlierDetector,
        MEDTreeClassifier,
    )

    n = 300 if quick else 3000
    X, y, _, _ = data.gaussian_classes(n, 20, test=10)
    yield (
        f"MEDGaussianClassifier {n} x 20",
        lambda k: MEDGaussianClassifier().fit(X, y).decision_function(X),
    )
    L, labels, _, _ = data.letters(n, 25, test=10)
    yield (
        f"MEDBayesNetClassifier {n} x 25",
        lambda k: MEDBayesNetClassifier().fit(L, labels).decision_function(L),
    )
    yield (
        f"MEDTreeClassifier fixed {n} x 25",
        lambda k: (
            MEDTreeClassifier("fixed", n_jobs=k).fit(L, labels).decision_function(L)
        ),
    )
    yield (
        f"MEDOutlierDetector multinomial {n} x 25",
        lambda k: MEDOutlierDetector("multinomial", n_jobs=k).fit(L).score_samples(L),
    )
    yield (
        f"MEDOutlierDetector mixture {n} x 25",
        lambda k: (
            MEDOutlierDetector(LatentMixture("multinomial", random_state=0), n_jobs=k)
            .fit(L)
            .score_samples(L)
        ),
    )
    S, _ = letters(100 if quick else 1000)
    yield (
        f"MEDSequenceOutlierDetector {len(S)} sequences",
        lambda k: (
            MEDSequenceOutlierDetector(5, n_symbols=4, random_state=0, n_jobs=k)
            .fit(S)
            .score_samples(S)
        ),
    )
    rows = 2000 if quick else 200_000
    B, c, _, _ = data.letters(rows, 60, test=10)
    yield (
        f"ChowLiuClassifier {rows} x 60",
        lambda k: ChowLiuClassifier(n_jobs=k).fit(B, c).predict_log_proba(B[:1000]),
    )


def many_rows(quick):
    """Models of classes and detectors on rows whose fits take seconds."""
    from suite import data

    from maxent import MEDOutlierDetector
    from maxent.discrimination import (
        MEDBayesNetClassifier,
        MEDFeatureSelector,
        MEDGaussianClassifier,
        MEDTreeClassifier,
    )

    few, many = (300, 600) if quick else (20_000, 50_000)
    X, y, _, _ = data.gaussian_classes(few, 20, test=10)
    L, labels, _, _ = data.letters(many, 25, test=10)
    Z, target, _, _ = data.classification(many, 100, test=10)
    yield (
        f"MEDGaussianClassifier {few} x 20",
        lambda k: MEDGaussianClassifier().fit(X, y).decision_function(X),
    )
    yield (
        f"MEDBayesNetClassifier {many} x 25",
        lambda k: MEDBayesNetClassifier().fit(L, labels).decision_function(L),
    )
    yield (
        f"MEDTreeClassifier {few} x 25",
        lambda k: (
            MEDTreeClassifier(n_jobs=k)
            .fit(L[:few], labels[:few])
            .decision_function(L[:few])
        ),
    )
    yield (
        f"MEDFeatureSelector {many} x 100",
        lambda k: MEDFeatureSelector().fit(Z, target).coef_,
    )
    yield (
        f"MEDOutlierDetector gaussian {few} x 20",
        lambda k: MEDOutlierDetector(n_jobs=k).fit(X).score_samples(X),
    )
    yield (
        f"MEDOutlierDetector multinomial {many} x 25",
        lambda k: MEDOutlierDetector("multinomial", n_jobs=k).fit(L).score_samples(L),
    )


def models(quick):
    """EM and Gram matrices of models."""
    import numpy as np
    from dynamics import systems

    from maxent.kernels import (
        FisherScores,
        ProductKernel,
        fisher_kernel,
        lds_affinity_parts,
        spectrum_kernel,
    )
    from maxent.kernels.pairs._hmm import log_hmm_kernel

    n = 60 if quick else 500
    chains, linear = hmm_models(n), systems(n, 4, 2)
    X, init = letters(100 if quick else 1000)
    docs = documents(quick)
    yield (
        f"HMM Gram {n} x {n}",
        lambda k: log_hmm_kernel(chains, rho=0.5, horizon=10, n_jobs=k),
    )
    yield (
        f"LDS Gram {n} x {n}",
        lambda k: lds_affinity_parts(linear, horizon=25, n_jobs=k).log_det,
    )
    yield (
        f"EM, {len(X)} sequences, 40 iterations",
        lambda k: our_fit(init, X, 40, k).transition,
    )
    yield (
        f"one model for each of {len(X)}",
        lambda k: np.stack([m.transition for m in fit_each(X, k)]),
    )
    yield (
        f"one model for each of {len(X)}, states by length, 3 starts",
        lambda k: np.concatenate(
            [m.transition.ravel() for m in fit_each(X, k, n_init=3, max_iter=400)]
        ),
    )
    yield (
        f"multinomial Gram {docs.shape[0]} documents",
        lambda k: ProductKernel(
            model_params={"smoothing": 0.01}, n_jobs=k
        ).fit_transform(docs),
    )
    yield (
        f"Fisher kernel {len(X)} sequences",
        lambda k: fisher_kernel(
            FisherScores(init, n_jobs=k).fit_transform(X), ridge=0.01, n_jobs=k
        ),
    )
    words = ["".join("acgt"[int(c)] for c in x) for x in X]
    yield (
        f"spectrum kernel {len(X)} sequences",
        lambda k: spectrum_kernel(words, k=6, alphabet="acgt", n_jobs=k),
    )


def latent(quick):
    """Candidates from many starts, and min-entropy models."""
    import numpy as np

    from maxent.datasets import make_planted_motifs
    from maxent.latent import LMEBoltzmannMachine, LMEGaussianMixture
    from maxent.minentropy import M3EMotifClassifier

    rng = np.random.default_rng(0)
    n = 200 if quick else 5000
    X = rng.normal(size=(n, 2)) + 3.0 * rng.integers(3, size=(n, 1))
    yield (
        f"LMEGaussianMixture {n} x 2, 100 starts",
        lambda k: (
            LMEGaussianMixture(3, n_init=10 if quick else 100, random_state=0, n_jobs=k)
            .fit(X)
            .means_
        ),
    )
    bits = rng.integers(2, size=(500, 8))
    yield (
        "LMEBoltzmannMachine 8 + 4 units, 10 starts",
        lambda k: (
            LMEBoltzmannMachine(4, n_init=2 if quick else 10, random_state=0, n_jobs=k)
            .fit(bits)
            .weights_
        ),
    )
    words, y, *_ = make_planted_motifs(500 if quick else 20_000, random_state=0)
    yield (
        f"M3EMotifClassifier {len(words)} sequences",
        lambda k: (
            M3EMotifClassifier(8, alpha=0.5, n_init=1, init="random", random_state=0)
            .fit(words, y)
            .coef_
        ),
    )


JOBS = (kernel_machines, generative_machines, many_rows, models, latent)

if __name__ == "__main__":
    main()
