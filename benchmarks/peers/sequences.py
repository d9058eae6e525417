"""Hidden Markov models against hmmlearn, and their product kernel against NumPy.

em       one EM iteration of CategoricalHMM over 1000 sequences of 20 to 200 letters:
         the time of many iterations less that of few, over their difference. hmmlearn
         with implementation="scaling" and with its default, "log", from the same start;
         the last column is the difference of the log-likelihoods reached.
many     fit_many: one model for each of 1000 sequences, against a loop over hmmlearn
         with the same number of iterations, one start each.
kernel   Gram matrix of 500 models (10 states, 4 letters, horizon 10) against batched
         NumPy matmul of one row of the matrix at a time.
forward  log-likelihood of one sequence of 20,000 steps, 16 states.
"""

import argparse
import functools
import statistics
import time

from _race import Report, arguments, describe, pin, race


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = ["em", "many", "kernel", "forward"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    options = parser.parse_args()
    pin(1)
    describe("Sequence models", ["one thread"], ["hmmlearn"])
    report = Report(options.csv)
    for part in options.parts:
        {"em": em, "many": many, "kernel": kernel, "forward": forward}[part](
            options, report
        )
    report.table()


def random_hmm(rng, states, letters):
    """Random model."""
    import numpy as np

    from maxent.models import CategoricalHMM

    return CategoricalHMM(
        rng.dirichlet(np.ones(states)),
        rng.dirichlet(np.ones(states), size=states),
        rng.dirichlet(np.ones(letters), size=states),
    )


def peer_fit(init, X, lengths, n_iter, implementation):
    """Fit of hmmlearn from a start, for a number of iterations."""
    import numpy as np

    h = init.to_hmmlearn()
    h.init_params, h.implementation = "", implementation
    h.n_iter = h.monitor_.n_iter = n_iter
    h.tol = h.monitor_.tol = -np.inf
    return h.fit(X, lengths)


def our_fit(init, X, n_iter, n_jobs=1):
    """Our fit from the same start, for a number of iterations."""
    import warnings

    from maxent.models import CategoricalHMM

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CategoricalHMM.fit(
            X, init=init, smoothing=0, max_iter=n_iter, tol=1e-300, n_jobs=n_jobs
        )


def row(part, case, ours, peer, difference):
    """One row of the table; times in milliseconds."""
    ratio = statistics.median(a / b for a, b in zip(ours, peer))
    return {
        "part": part,
        "case": case,
        "ours ms": f"{1e3 * statistics.median(ours):.4g}",
        "peer ms": f"{1e3 * statistics.median(peer):.4g}",
        "ratio": f"{ratio:.4f}",
        "difference": f"{difference:.1e}",
    }


def em(options, report):
    """Time an EM iteration."""
    import numpy as np

    rng = np.random.default_rng(0)
    n = 100 if options.quick else 1000
    for states, letters in ((4, 4), (10, 4), (10, 20)):
        X = random_hmm(rng, states, letters).sample(n, rng.integers(20, 201, n), rng)
        init = random_hmm(rng, states, letters)
        flat, lengths = np.concatenate(X)[:, None], [len(x) for x in X]
        for implementation in ("scaling", "log"):
            few, most = 1, 4 if implementation == "log" else 11
            fits = {
                "ours": functools.partial(our_fit, init, X),
                "peer": functools.partial(
                    peer_fit, init, flat, lengths, implementation=implementation
                ),
            }
            clocks = {"ours": [], "peer": []}
            for _ in range(options.pairs):
                for name, fit in fits.items():
                    seconds = []
                    for k in (few, most):
                        start = time.process_time()
                        fit(n_iter=k)
                        seconds.append(time.process_time() - start)
                    clocks[name].append((seconds[1] - seconds[0]) / (most - few))
            ours = our_fit(init, X, most).log_likelihood(X).sum()
            peer = peer_fit(init, flat, lengths, most, implementation)
            gap = ours - peer.score(flat, lengths)
            report.add(
                row(
                    "em",
                    f"{states} states, {letters} letters, {implementation}",
                    clocks["ours"],
                    clocks["peer"],
                    gap,
                )
            )


def many(options, report):
    """Time one model for each sequence."""
    import warnings

    import numpy as np

    from maxent.models import CategoricalHMM

    rng = np.random.default_rng(0)
    n, n_iter = (50, 20) if options.quick else (1000, 50)
    X = random_hmm(rng, 3, 4).sample(n, rng.integers(20, 201, n), rng)

    def ours():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CategoricalHMM.fit_many(
                X, n_states=3, n_init=1, max_iter=n_iter, tol=1e-300, random_state=0
            )

    def peer():
        from hmmlearn.hmm import CategoricalHMM as Peer

        return [
            Peer(
                3,
                n_features=4,
                n_iter=n_iter,
                tol=-np.inf,
                implementation="scaling",
                random_state=0,
            ).fit(x[:, None])
            for x in X
        ]

    ours()  # imports
    outcome = race(ours, peer, min(options.pairs, 3))
    report.add(
        row(
            "many",
            f"{n} models, {n_iter} iterations",
            outcome.ours.cpu_seconds,
            outcome.peer.cpu_seconds,
            float("nan"),
        )
    )


def batched_gram(models, rho, T, affinities=None):
    """Log Gram matrix by batched matmul, a row at a time.

    `affinities` (i) gives those of the emissions of model i and of i, i + 1, ..., (n -
    i, states, states); without it these are tables of symbols.
    """
    import numpy as np

    n = len(models)
    pi = np.stack([m.start for m in models]) ** rho
    A = np.stack([m.transition for m in models]) ** rho
    if affinities is None:
        E = np.stack([m.emission.prob for m in models]) ** rho

        def affinities(i):
            return E[i] @ E[i:].transpose(0, 2, 1)

    out = np.empty((n, n))
    for i in range(n):
        psi = affinities(i)
        X = (pi[i][:, None] * pi[i:, None, :]) * psi
        log_k = np.zeros(n - i)
        for _ in range(T):
            z = X.sum(axis=(1, 2))
            log_k += np.log(z)
            X = np.matmul(np.matmul(A[i].T, X / z[:, None, None]), A[i:]) * psi
        out[i, i:] = log_k + np.log(X.sum(axis=(1, 2)))
        out[i:, i] = out[i, i:]
    return out


def kernel(options, report):
    """Time a Gram matrix."""
    import numpy as np

    from maxent.kernels.pairs._hmm import log_hmm_kernel

    rng = np.random.default_rng(0)
    n = 60 if options.quick else 500
    models = [random_hmm(rng, 10, 4) for _ in range(n)]

    outcome = race(
        lambda: log_hmm_kernel(models, rho=0.5, horizon=10, n_jobs=1),
        lambda: batched_gram(models, rho=0.5, T=10),
        options.pairs,
    )
    report.add(
        row(
            "kernel",
            f"{n} x {n}",
            outcome.ours.cpu_seconds,
            outcome.peer.cpu_seconds,
            np.abs(outcome.ours.result - outcome.peer.result).max(),
        )
    )


def forward(options, report):
    """Time a long forward pass."""
    import numpy as np

    rng = np.random.default_rng(0)
    model = random_hmm(rng, 16, 4)
    X = model.sample(1, 20000, rng)
    h = model.to_hmmlearn()
    h.implementation = "scaling"
    outcome = race(
        lambda: model.log_likelihood(X, n_jobs=1),
        lambda: h.score(X[0][:, None]),
        options.pairs,
    )
    report.add(
        row(
            "forward",
            "20000 steps, 16 states",
            outcome.ours.cpu_seconds,
            outcome.peer.cpu_seconds,
            float(outcome.ours.result[0] - outcome.peer.result),
        )
    )


if __name__ == "__main__":
    main()
