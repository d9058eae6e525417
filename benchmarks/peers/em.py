"""EM and decoding of hidden Markov models beside hmmlearn; fits of mixtures.

steps     ten EM steps of hidden Markov models from one start beside hmmlearn's
          (implementation="scaling"); overlapping states, so that neither ends early.
mixed     the same of states that show mixtures of three Gaussians, beside GMMHMM, whose
          first weights and means are ours; its (co)variances are about the old means.
decoding  most likely path, posterior and draws of a million steps beside hmmlearn; it
          draws a tenth of them, and its time is scaled.
mixtures  whole fits beside scikit-learn's GaussianMixture(n_init=3, tol=1e-6); the last
          column is the difference of the mean log-likelihoods, ours less theirs.
tables    the same on real tables, with smoothing=0 here, but where the likelihood is
          unbounded (whole numbers that repeat) and such a fit is refused: there with
          the default prior. With --data also letters, digits and protein binding.
"""

import argparse
import statistics
import warnings
from functools import partial
from pathlib import Path

from _race import Report, arguments, describe, pin, race

SIZES = (200, 100, 3, 5), (20, 2000, 10, 8), (1, 50_000, 2, 4), (1000, 20, 1, 3)
MIXED = (200, 100, 3, 5), (1, 20_000, 2, 4)
MIXTURES = (2000, 2, 5), (20_000, 10, 8), (200_000, 5, 10)
LONG = 1_000_000  # steps that are decoded


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = (steps, mixed, decoding, mixtures, tables)
    parts = {part.__name__: part for part in parts}
    parser.add_argument("--data", type=Path, help="folder with real tables")
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


def mixed(options, report):
    """Ten steps of states that show mixtures, from one start."""
    import numpy as np
    from hmmlearn import hmm

    from maxent.families import DiagonalGaussian, Gaussian
    from maxent.models import HiddenMarkovModel, Mixtures

    rng = np.random.default_rng(0)
    M = 3
    for family, kind in ((Gaussian, "full"), (DiagonalGaussian, "diag")):
        for n, T, d, K in MIXED:
            shape, weights = (K, M, d), rng.dirichlet(np.full(M, 3.0), size=K)
            cov = np.ones(shape) if kind == "diag" else np.tile(np.eye(d), (K, M, 1, 1))
            truth, init = (
                HiddenMarkovModel(*chain(K), Mixtures(w, family(mean, cov)))
                for w, mean in (
                    (weights, 2 * rng.normal(size=shape)),
                    (np.full((K, M), 1 / M), 2 * rng.normal(size=shape)),
                )
            )
            x = truth.sample(n, T, 1)

            def ours(n_iter, x=x, init=init):
                own = {"smoothing": 0.0, "tol": 1e-300, "max_iter": n_iter}
                return HiddenMarkovModel.fit(x, init=init, **own)

            def theirs(n_iter, x=x, init=init, kind=kind):
                shape, cov = init.emission.weights.shape, init.emission.components
                h = hmm.GMMHMM(*shape, n_iter=n_iter, tol=-1e300, init_params="")
                h.covariance_type, h.implementation = kind, "scaling"
                h.startprob_, h.transmat_ = init.start, init.transition
                h.weights_, h.means_ = init.emission.weights, cov.mean
                h.covars_ = cov.cov if kind == "full" else cov.var
                return h.fit(np.vstack(x), [len(one) for one in x])

            shown = "full" if kind == "full" else "diagonal"
            name = f"{n} x {T} x {d}, {K} x {M}, {shown}"
            report_steps(options, report, name, ours, theirs)


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


def decoding(options, report):
    """Path, posterior and draws of one long sequence."""
    import numpy as np

    from maxent.models import CategoricalHMM, GaussianHMM

    rng = np.random.default_rng(0)
    K, T = 5, LONG // 100 if options.quick else LONG
    mean = rng.normal(size=(K, 3))
    models = {
        "full": GaussianHMM(*chain(K), mean, np.tile(np.eye(3), (K, 1, 1))),
        "diagonal": GaussianHMM(*chain(K), mean, np.ones((K, 3))),
        "categorical": CategoricalHMM(*chain(K), rng.dirichlet(np.ones(20), size=K)),
    }
    for kind, model in models.items():
        decode(options, report, f"{kind}, {T} steps", model, T)


def decode(options, report, name, model, T):
    """Rows of one model."""
    import numpy as np

    peer = model.to_hmmlearn()
    peer.implementation = "scaling"
    X = model.sample(1, T, 1)[0]
    rows = X[:, None] if X.ndim == 1 else X

    def same(mine, other):
        return f"{np.mean(mine[0][0] == other):.4%} of the states the same"

    def near(mine, other):
        return f"largest difference {np.abs(mine[0] - other).max():.0e}"

    for what, ours, theirs, share, check in (
        ("viterbi", model.viterbi, peer.predict, 1, same),
        ("posterior", model.posterior, peer.predict_proba, 1, near),
        ("sample", lambda _: model.sample(1, T, 0), lambda _: peer.sample(T // 10), 10,
         lambda *_: "–"),
    ):  # fmt: skip
        outcome = race(
            partial(ours, X), partial(theirs, rows), options.pairs, seconds=60
        )
        check = check(outcome.ours.result, outcome.peer.result)
        times = cpu(outcome.ours), share * cpu(outcome.peer)
        add(report, f"{what}, {name}", "hmmlearn", *times, check)


def mixtures(options, report):
    """Default fits of as many components as there are groups."""
    import numpy as np

    rng = np.random.default_rng(0)
    for n, d, K in MIXTURES:
        centre = 4 * rng.normal(size=(K, d))
        X = centre[rng.integers(K, size=n)] + rng.normal(size=(n, d))
        fit(options, report, f"{n} x {d}, {K}", X, K)


def tables(options, report):
    """Real tables in standard units, as many components as there are classes."""
    import numpy as np
    import pandas as pd
    from sklearn import datasets
    from sklearn.decomposition import PCA

    from maxent.datasets import load_breast_cancer_wisconsin, load_crabs

    def main_axes(X, d):
        return PCA(d, random_state=0).fit_transform(X)

    diabetes = np.delete(datasets.load_diabetes().data, 1, axis=1)  # without the sex
    wisconsin = load_breast_cancer_wisconsin().data
    found = {
        "iris": (datasets.load_iris().data, 3),
        "wine": (datasets.load_wine().data, 3),
        "crabs": (load_crabs().data, 4),
        "wisconsin, prior": (wisconsin[~np.isnan(wisconsin).any(axis=1)], 2),
        "breast cancer": (datasets.load_breast_cancer().data, 2),
        "diabetes": (diabetes, 3),
        "digits, 16 axes": (main_axes(datasets.load_digits().data, 16), 10),
    }
    if options.data is not None and not options.quick:
        digits = np.load(options.data / "solver_mnist10k/mnist10k.npz")["X"] / 255.0
        letters = np.load(options.data / "solver_letter/letter.npz")["X"].astype(float)
        found["letters, prior"] = letters, 26
        found["MNIST, 20 axes"] = main_axes(digits, 20), 10
        signal = pd.read_csv(options.data / "pbm_dream5/hk_signal.csv.gz", index_col=0)
        found["binding, logs"] = np.log(signal[(signal > 0).all(axis=1)].to_numpy()), 5
    for name, (X, K) in found.items():
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        size = f"{len(X)} x {X.shape[1]}, {K}"
        more = {} if name.endswith("prior") else {"smoothing": 0}
        fit(options, report, f"{name}, {size}", X, K, **more)


def fit(options, report, name, X, K, **more):
    """A race of fits, and a row."""
    from sklearn.mixture import GaussianMixture

    from maxent.models import Mixture

    theirs = {"n_init": 3, "tol": 1e-6, "max_iter": 1000, "random_state": 0}
    outcome = race(
        lambda: Mixture.fit(X, n_components=K, random_state=0, **more),
        lambda: GaussianMixture(K, **theirs).fit(X),
        options.pairs,
        seconds=60,
    )
    gain = outcome.ours.result.log_prob(X).mean() - outcome.peer.result.score(X)
    times = cpu(outcome.ours), cpu(outcome.peer)
    add(report, name, "GaussianMixture", *times, f"{gain:+.1e}")


if __name__ == "__main__":
    main()
