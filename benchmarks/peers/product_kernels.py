"""Models and product kernels against their peers, with the ratio that each must keep.

hmm        Gram matrix of 500 hidden Markov models (10 states, 4 letters, horizon 10)
           against batched NumPy matmul.
gaussian   Gram matrix of 500 of 3 states whose rows are Gaussian (2 columns, full
           covariances, horizon 25) against batched NumPy: determinants, solves, matmul.
lds        Gram matrix of 500 linear dynamical systems (4 states, 2 outputs, horizon 25)
           against one SciPy Cholesky factor and solve of the dense joint covariances a
           pair, which are made outside the time. The peer runs on some pairs; its time
           is scaled to all of them.
em         one EM iteration of CategoricalHMM over 1000 sequences of 20 to 200 letters
           against hmmlearn with implementation="scaling" and with "log", its default:
           the time of many iterations less that of one, over their difference.
many       one model for each of these sequences, 50 iterations, against hmmlearn.
counts     Gram matrix of 10,000 documents over 40,000 words, with smoothing, against
           SciPy's sparse product of the counts alone.
forward    log-likelihood of 20,000 steps with 16 states, in ms, also where every step
           has probability 1e-300; a million steps must have a finite one.

Times are the least over the runs, in CPU time: the machine may be shared. The ratio is
that of the least times; behind it stands the range over the pairs.
"""

import argparse
import functools
import time
import warnings

from _race import Report, arguments, describe, pin, race
from dynamics import joint, systems
from sequences import batched_gram, our_fit, peer_fit, random_hmm

PARTS = ("hmm", "gaussian", "lds", "em", "many", "counts", "forward")


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    options = parser.parse_args()
    pin(1)
    describe("Models and product kernels", ["one thread"], ["hmmlearn"])
    report = Report(options.csv)
    for part in options.parts:
        globals()[part](options, report)
    report.table()


def add(report, what, ours, peer, bound, check):
    """One row; seconds of ours and the peer's runs in pairs."""
    ratios = [a / b for a, b in zip(ours, peer)]
    ratio = min(ours) / min(peer)
    report.add(
        {
            "what": what,
            "ours ms": f"{1e3 * min(ours):.4g}",
            "peer ms": f"{1e3 * min(peer):.4g}",
            "ratio": f"{ratio:.4f} ({min(ratios):.4f}-{max(ratios):.4f})",
            "bound": bound,
            "check": check,
        }
    )


def hmm_models(n):
    """Random hidden Markov models of 10 states and 4 letters."""
    import numpy as np

    rng = np.random.default_rng(0)
    return [random_hmm(rng, 10, 4) for _ in range(n)]


def hmm(options, report):
    """Gram matrix of hidden Markov models."""
    import numpy as np

    from maxent.kernels.pairs._hmm import log_hmm_kernel

    n = 60 if options.quick else 500
    models = hmm_models(n)
    outcome = race(
        lambda: log_hmm_kernel(models, rho=0.5, horizon=10, n_jobs=1),
        lambda: batched_gram(models, rho=0.5, T=10),
        options.pairs,
    )
    error = np.abs(outcome.ours.result - outcome.peer.result).max()
    add(
        report,
        f"HMM Gram {n} x {n}",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "<= 0.25",
        f"difference {error:.1e}",
    )


def gaussian(options, report):
    """Gram matrix of hidden Markov models of Gaussian rows."""
    import numpy as np

    from maxent.kernels import product_kernel
    from maxent.models import GaussianHMM

    n, S, d = 60 if options.quick else 500, 3, 2
    rng = np.random.default_rng(0)
    models = []
    for _ in range(n):
        A = rng.normal(size=(S, d, d))
        cov = A @ A.swapaxes(1, 2) + 0.3 * np.eye(d)
        start, move = rng.dirichlet(np.ones(S)), rng.dirichlet(np.ones(S), S)
        models.append(GaussianHMM(start, move, rng.normal(size=(S, d)), cov))
    mean = np.stack([model.emission.mean for model in models])
    cov = np.stack([model.emission.cov for model in models])
    root = np.linalg.det(cov) ** 0.25

    def affinities(i):
        half = 0.5 * (cov[i][:, None] + cov[i:, None])
        off = mean[i][:, None] - mean[i:, None]
        far = (off * np.linalg.solve(half, off[..., None])[..., 0]).sum(axis=-1)
        size = root[i][:, None] * root[i:, None] / np.sqrt(np.linalg.det(half))
        return size * np.exp(-far / 8.0)

    outcome = race(
        lambda: product_kernel(models, horizon=25, log=True),
        lambda: batched_gram(models, rho=0.5, T=25, affinities=affinities),
        options.pairs,
    )
    error = np.abs(outcome.ours.result - outcome.peer.result).max()
    add(
        report,
        f"Gaussian HMM Gram {n} x {n}",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "<= 0.25",
        f"difference {error:.1e}",
    )


def lds(options, report):
    """Gram matrix of linear dynamical systems."""
    import numpy as np
    from scipy.linalg import cholesky, solve_triangular

    from maxent.kernels import lds_affinity_parts

    n = 60 if options.quick else 500
    models = systems(n, 4, 2)
    laws = [joint(model, 25) for model in models]
    rows = max(1, n // 100)

    def peer():
        out = np.empty((rows, n, 2))
        for i in range(rows):
            for j in range(n):
                S = laws[i][1] + laws[j][1]
                L = cholesky(S, lower=True, check_finite=False)
                z = solve_triangular(
                    L, laws[i][0] - laws[j][0], lower=True, check_finite=False
                )
                out[i, j] = 2.0 * np.log(np.diagonal(L)).sum(), z @ z
        return out

    def ours():
        return lds_affinity_parts(models, horizon=25, n_jobs=1)

    outcome = race(ours, peer, options.pairs)
    exact, found = outcome.ours.result, outcome.peer.result
    error = max(
        np.abs(exact.log_det[:rows].reshape(rows, n) - found[..., 0]).max(),
        np.abs(exact.distance[:rows].reshape(rows, n) - found[..., 1]).max(),
    )
    scale = 0.5 * n * (n - 1) / (rows * n)
    add(
        report,
        f"LDS Gram {n} x {n}",
        outcome.ours.cpu_seconds,
        [scale * t for t in outcome.peer.cpu_seconds],
        "<= 0.03",
        f"difference {error:.1e}",
    )


def letters(n):
    """Sequences of 20 to 200 letters, and a model to start from."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = random_hmm(rng, 10, 4).sample(n, rng.integers(20, 201, n), rng)
    return X, random_hmm(rng, 10, 4)


def em(options, report):
    """One EM iteration."""
    import numpy as np

    X, init = letters(100 if options.quick else 1000)
    flat, lengths = np.concatenate(X)[:, None], [len(x) for x in X]

    def seconds(fit, k):
        start = time.process_time()
        fit(k)
        return time.process_time() - start

    for implementation, most in (("scaling", 11), ("log", 4)):
        peer = functools.partial(
            peer_fit, init, flat, lengths, implementation=implementation
        )
        fits = (functools.partial(our_fit, init, X), 41), (peer, most)
        clocks = [], []
        for fit, _ in fits:
            fit(1)  # imports and first calls
        for _ in range(options.pairs):
            for (fit, last), clock in zip(fits, clocks):
                clock.append((seconds(fit, 1), seconds(fit, last)))
        # the whole fit has set-up too: least times of many steps and of one
        ours, other = (
            (min(b for _, b in clock) - min(a for a, _ in clock)) / (last - 1)
            for clock, (_, last) in zip(clocks, fits)
        )
        reached = our_fit(init, X, most).log_likelihood(X).sum()
        gap = abs(reached / peer(most).score(flat, lengths) - 1.0)
        add(
            report,
            f"EM iteration, {len(X)} sequences; hmmlearn {implementation}",
            [ours],
            [other],
            "<= 0.06" if implementation == "scaling" else "<= 0.01",
            f"log-likelihoods agree to {gap:.0e}",
        )


def many(options, report):
    """One model for each sequence."""
    import numpy as np
    from hmmlearn.hmm import CategoricalHMM as Peer

    X, _ = letters(50 if options.quick else 1000)

    def ours():
        return fit_each(X, 1)

    def peer():
        return [
            Peer(
                3,
                n_features=4,
                n_iter=50,
                tol=-np.inf,
                implementation="scaling",
                random_state=0,
            ).fit(x[:, None])
            for x in X
        ]

    outcome = race(ours, peer, min(options.pairs, 2))
    add(
        report,
        f"one model for each of {len(X)}, 50 iterations",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "",
        "",
    )


def fit_each(X, n_jobs, **options):
    """One model for each sequence; of three states, 50 iterations, by default."""
    from maxent.models import CategoricalHMM

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = options or {
            "n_states": 3, "n_init": 1, "max_iter": 50, "tol": 1e-300
        }  # fmt: skip
        return CategoricalHMM.fit_many(X, random_state=0, n_jobs=n_jobs, **options)


def documents(quick):
    """Counts of documents of 100 words, of frequencies by Zipf's law, as CSR."""
    import numpy as np
    from scipy import sparse

    n, k = (1000, 4000) if quick else (10_000, 40_000)
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, k + 1)
    words = rng.choice(k, size=n * 100, p=share / share.sum())
    ends = np.arange(0, n * 100 + 1, 100)
    X = sparse.csr_array((np.ones(n * 100), words, ends), shape=(n, k))
    X.sum_duplicates()
    return X


def counts(options, report):
    """Gram matrix of documents."""
    import numpy as np

    from maxent.kernels import ProductKernel

    X = documents(options.quick)
    maker = ProductKernel(model_params={"smoothing": 0.01}, n_jobs=1)
    outcome = race(
        lambda: maker.fit_transform(X), lambda: X @ X.T, min(options.pairs, 3)
    )
    P = X[:50].toarray() + 0.01
    P = np.sqrt(P / P.sum(axis=1, keepdims=True))
    error = np.abs(outcome.ours.result[:50, :50] - P @ P.T).max()
    add(
        report,
        f"multinomial Gram {X.shape[0]} documents x {X.shape[1]} words",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "<= 2",
        f"difference {error:.1e}",
    )


def forward(options, report):
    """Long forward passes."""
    import numpy as np

    from maxent.models import CategoricalHMM

    rng = np.random.default_rng(0)
    model = random_hmm(rng, 16, 4)
    X = model.sample(1, 20_000, rng)
    peer = model.to_hmmlearn()
    peer.implementation = "scaling"
    outcome = race(
        lambda: model.log_likelihood(X, n_jobs=1),
        lambda: peer.score(X[0][:, None]),
        options.pairs,
    )
    gap = abs(outcome.ours.result[0] / outcome.peer.result - 1.0)
    add(
        report,
        "forward, 20,000 steps, 16 states; hmmlearn scaling",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "5 ms",
        f"log-likelihoods agree to {gap:.0e}",
    )
    table = np.full((16, 2), 1e-300)
    table[:, 1] = 1.0 - 1e-300
    rare = CategoricalHMM(model.start, model.transition, table)
    zeros = [np.zeros(20_000, dtype=int)]
    outcome = race(
        lambda: rare.log_likelihood(zeros, n_jobs=1),
        lambda: model.log_likelihood(X, n_jobs=1),
        options.pairs,
    )
    error = abs(outcome.ours.result[0] / (20_000 * np.log(1e-300)) - 1.0)
    add(
        report,
        "forward, all steps of probability 1e-300; ours at usual steps",
        outcome.ours.cpu_seconds,
        outcome.peer.cpu_seconds,
        "5 ms",
        f"relative error {error:.0e}",
    )
    million = [rng.integers(0, 4, 1_000_000)]
    start = time.process_time()
    value = model.log_likelihood(million, n_jobs=1)[0]
    seconds = time.process_time() - start
    add(
        report,
        "forward, 1,000,000 steps; 50 times 20,000",
        [seconds],
        [50 * min(outcome.peer.cpu_seconds)],
        "finite",
        f"log-likelihood {value:.6g}",
    )


if __name__ == "__main__":
    main()
