"""Maximum entropy: mixtures and text against scikit-learn, states against NumPy.

restarts   300 random starts of a 3-component mixture in the plane, 500 rows. Two races
           at the same rule for stopping: a gain of the mean log-likelihood below 1e-3
           (scikit-learn's default, which stops near the pooled saddle), and EM run to
           the end, ours to a relative gradient of 1e-6 and scikit-learn to a gain of
           1e-8 (its best log-likelihood is then still the lower one). The peer's long
           race is timed on 30 starts and multiplied by ten.
text       MaxEntClassifier against LogisticRegression(lbfgs) on the 20 newsgroups
           training posts (tf-idf), C = 1. The peer gets the loosest tolerance in
           1e-4, 1e-5, ... whose penalised likelihood is within 1e-5 of the optimum;
           ours likewise.
states     one pass over 2^8 and 2^20 states: log Phi and all pair moments. NumPy keeps
           its table of states; exponents, softmax and moments are products with it.
"""

import argparse
import time
import warnings

import numpy as np
from _race import Report, arguments, describe, pin, race


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = ["states", "restarts", "text"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument("--data", help="newsgroups20.npz, for the text")
    options = parser.parse_args()
    pin(1)
    warnings.filterwarnings("ignore")
    report = Report(options.csv)
    describe("Maximum entropy", [f"{options.pairs} alternated pairs"], ("numba",))
    for part in options.parts:
        {"restarts": restarts, "text": text, "states": states}[part](options, report)
    report.table()


def planar(n=500):
    """Rows of three Gaussians in the plane."""
    rng = np.random.default_rng(0)
    means = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
    noise = rng.normal(size=(n, 2)) * [np.sqrt(2.0), 1.0]
    return means[rng.integers(3, size=n)] + noise


def restarts(options, report):
    """Races of the mixture at a loose and at a tight rule for stopping."""
    from sklearn.mixture import GaussianMixture

    from maxent.latent import LMEGaussianMixture
    from maxent.latent.mixtures._gaussian_em import GaussianEM
    from maxent.latent.mixtures.lme_mixture_em import climb

    X, R = planar(), 30 if options.quick else 300
    w = np.ones(len(X))

    def loose():
        problem = GaussianEM(X, w, 3, "full", n_jobs=1)
        model = LMEGaussianMixture(3, init_params="random")
        rngs = np.random.default_rng(0).spawn(R)
        starts = model._starts(problem, X, w, rngs)
        rule = {"accelerate": False, "change_tol": 1e-3}
        return climb(problem, starts, 0.0, 100, **rule).objective.max()

    def peer():
        common = {"init_params": "random", "random_state": 0}
        return GaussianMixture(3, n_init=R, tol=1e-3, **common).fit(X).lower_bound_

    outcome = race(loose, peer, options.pairs)
    report.add({"race": f"{R} starts, gain 1e-3", **outcome.columns})

    def tight():
        model = LMEGaussianMixture(
            3,
            n_init=R,
            selection="likelihood",
            init_params="random",
            random_state=0,
            n_jobs=1,
        )
        return model.fit(X).log_likelihood_

    def tight_peer():
        model = GaussianMixture(
            3,
            n_init=max(R // 10, 1),
            init_params="random",
            random_state=0,
            tol=1e-8,
            max_iter=10_000,
        )
        return model.fit(X).lower_bound_

    outcome = race(tight, tight_peer, options.pairs)
    row = {"race": f"{R} starts to the end / a tenth of them", **outcome.columns}
    report.add(row)
    ratio = np.median(outcome.cpu_ratios) / 10
    print(
        f"    ratio of {R} to {R} starts {ratio:.4f}; best log-likelihood ours "
        f"{outcome.ours.result:.8f}, peer {outcome.peer.result:.8f}"
    )


def text(options, report):
    """The race on sparse text, at equal penalised likelihood."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    from maxent import MaxEntClassifier
    from maxent.latent._softmax import ConditionalDual, rows_of

    if not options.data:
        print("  text needs --data newsgroups20.npz")
        return
    with np.load(options.data) as z:
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=z["shape"])
        n = 2000 if options.quick else int(z["n_train"])
        X, y = X[:n].astype(float), z["y"][:n]
    X = sp.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(X))
    K = len(np.unique(y))
    rows = rows_of(X, y.astype(np.intp), np.ones(n), K)
    dual = ConditionalDual(rows, X.shape[1], K, n, float(n), True)

    def value(model):
        x = np.concatenate([model.coef_.T.ravel(), model.intercept_])
        return dual.value_gradient(x)[0]

    best = value(MaxEntClassifier(tol=1e-7).fit(X, y))
    makers = {
        "ours": lambda tol: MaxEntClassifier(tol=tol),
        "peer": lambda tol: LogisticRegression(tol=tol, max_iter=10_000),
    }
    calls = {}
    for name, make in makers.items():
        for tol in (1e-3, 1e-4, 1e-5, 1e-6):
            excess = value(make(tol).fit(X, y)) - best
            if excess <= 1e-5:
                break
        print(f"    {name}: tol {tol:g}, excess {excess:.2e}", flush=True)
        calls[name] = lambda make=make, tol=tol: make(tol).fit(X, y)
    outcome = race(calls["ours"], calls["peer"], options.pairs)
    report.add({"race": "20 newsgroups, C = 1", **outcome.columns})


def states(options, report):
    """One pass over all states."""
    from maxent._core.compiled_by_numba import binary_units as core

    rng = np.random.default_rng(0)
    for M in (8, 16 if options.quick else 20):
        W = np.triu(rng.normal(scale=0.3, size=(M, M)), 1)
        W, b = W + W.T, rng.normal(size=M)
        X = core.all_states(M)
        halves = core.HalfTables(*core.split_evenly(M))
        times = 2000 if M == 8 else 1

        def ours(W=W, b=b, halves=halves, M=M, times=times):
            one = halves.pair_moments if M >= core.HALVES_FROM else core.pair_moments
            for _ in range(times):
                found = one(W, b)
            return found

        def numpy(W=W, b=b, X=X, times=times):
            for _ in range(times):
                u = 0.5 * ((X @ W) * X).sum(axis=1) + X @ b
                top = u.max()
                p = np.exp(u - top)
                total = p.sum()
                p /= total
                found = top + np.log(total), (X.T * p) @ X
            return found

        ours()
        start = time.perf_counter()
        outcome = race(ours, numpy, options.pairs)
        assert abs(outcome.ours.result[0] - outcome.peer.result[0]) < 1e-9
        name = f"2^{M} states, {times} passes"
        report.add({"race": name, **outcome.columns})
        print(f"    {time.perf_counter() - start:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
