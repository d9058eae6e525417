"""EM of Gaussian and Poisson hidden Markov models beside hmmlearn, and of mixtures.

steps     ten EM steps of hidden Markov models from one start beside hmmlearn's
          (implementation="scaling"); overlapping states, so that neither ends early.
mixtures  whole fits beside scikit-learn's GaussianMixture(n_init=3, tol=1e-6); the last
          column is the difference of the mean log-likelihoods, ours less theirs.
"""

import argparse
import statistics
import warnings

from _race import Report, arguments, describe, pin, race

SIZES = (200, 100, 3, 5), (20, 2000, 10, 8), (1, 50_000, 2, 4), (1000, 20, 1, 3)
MIXTURES = (2000, 2, 5), (20_000, 10, 8), (200_000, 5, 10)


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = {"steps": steps, "mixtures": mixtures}
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    options = parser.parse_args()
    pin(1)
    warnings.simplefilter("ignore")
    describe("EM", ["one thread"], ["hmmlearn", "scikit-learn"])
    report = Report(options.csv)
    for part in options.parts:
        parts[part](options, report)
    report.table()


def add(report, name, peer, ours, theirs, check):
    """One row, of CPU seconds."""
    row = {"race": name, "peer": peer, "ours, ms": f"{1e3 * ours:.3g}"}
    row |= {"peer, ms": f"{1e3 * theirs:.3g}", "ratio": f"{ours / theirs:.2f}"}
    report.add({**row, "check": check})


def cpu(clock):
    """Median CPU seconds."""
    return statistics.median(clock.cpu_seconds)


def chain(K):
    """Start and transition of states that last."""
    import numpy as np

    move = np.full((K, K), 0.1 / (K - 1))
    np.fill_diagonal(move, 0.9)
    return np.full(K, 1 / K), move


def steps(options, report):
    """Ten steps from one start, without what a fit does before and after."""
    import numpy as np
    from hmmlearn import hmm

    from maxent.families import Poisson
    from maxent.models import GaussianHMM, HiddenMarkovModel

    rng = np.random.default_rng(0)
    for kind, peer_kind in (("full", "full"), ("diagonal", "diag")):
        for n, T, d, K in SIZES:
            mean = rng.normal(size=(K, d))
            cov = np.ones((K, d))
            if kind == "full":
                cov = np.tile(np.eye(d), (K, 1, 1))
            truth = GaussianHMM(*chain(K), mean, cov)
            x = truth.sample(n, T, 1)
            init = GaussianHMM(*chain(K), rng.normal(size=(K, d)), cov)

            def ours(n_iter, x=x, init=init):
                return GaussianHMM.fit(x, init=init, tol=1e-300, max_iter=n_iter)

            def theirs(n_iter, x=x, init=init, K=K, kind=peer_kind):
                h = hmm.GaussianHMM(K, kind, n_iter=n_iter, tol=-1e300, init_params="")
                h.implementation = "scaling"
                h.startprob_, h.transmat_ = init.start, init.transition
                h.means_, h.covars_ = np.array(init.mean), np.array(init.cov)
                return h.fit(np.vstack(x), [len(one) for one in x])

            report_steps(options, report, f"{n} x {T} x {d}, {K}, {kind}", ours, theirs)
    init = HiddenMarkovModel(*chain(5), Poisson(5.0 * np.arange(1, 6)))
    x = init.sample(200, 100, 0)

    def ours(n_iter):
        return HiddenMarkovModel.fit(x, init=init, tol=1e-300, max_iter=n_iter)

    def theirs(n_iter):
        h = hmm.PoissonHMM(5, n_iter=n_iter, tol=-1e300, init_params="")
        h.implementation = "scaling"
        h.startprob_, h.transmat_ = init.start, init.transition
        h.lambdas_ = 1.0 + init.emission.rate[:, None]
        return h.fit(np.concatenate(x)[:, None], [100] * 200)

    report_steps(options, report, "200 x 100, 5, Poisson", ours, theirs)


def report_steps(options, report, name, ours, theirs):
    """A step, from fits of twelve steps and of two."""
    long = race(lambda: ours(12), lambda: theirs(12), options.pairs)
    short = race(lambda: ours(2), lambda: theirs(2), options.pairs)
    mine, peer = (
        (cpu(getattr(long, who)) - cpu(getattr(short, who))) / 10
        for who in ("ours", "peer")
    )
    taken = long.ours.result.fit_result.n_iter
    add(report, name, "hmmlearn, a step", mine, peer, f"{taken} steps")


def mixtures(options, report):
    """Default fits of as many components as there are groups."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    from maxent.models import Mixture

    rng = np.random.default_rng(0)
    for n, d, K in MIXTURES:
        centre = 4 * rng.normal(size=(K, d))
        X = centre[rng.integers(K, size=n)] + rng.normal(size=(n, d))
        outcome = race(
            lambda X=X, K=K: Mixture.fit(X, n_components=K, random_state=0),
            lambda X=X, K=K: GaussianMixture(
                K, n_init=3, tol=1e-6, max_iter=1000, random_state=0
            ).fit(X),
            options.pairs,
        )
        gain = outcome.ours.result.log_prob(X).mean() - outcome.peer.result.score(X)
        times = cpu(outcome.ours), cpu(outcome.peer)
        add(report, f"{n} x {d}, {K}", "GaussianMixture", *times, f"{gain:+.1e}")


if __name__ == "__main__":
    main()
