"""Spanning trees: LAPACK, one-hot products, pgmpy and networkx as peers.

Sums over trees (log Z and all edge probabilities), by the public function, validation
included, and by the compiled one alone, are raced against LAPACK's Cholesky factor and
inverse of the Laplacian, without the exponentials before and the probabilities after:
the peer does less, and where weights are wide it loses its digits. The pass that a
gradient of a tree model makes over its data is raced against products of one-hot
matrices; Chow-Liu trees against pgmpy, against networkx with scikit-learn's mutual
information, and against what NumPy and SciPy can do: one product of one-hot matrices,
entropies, SciPy's spanning tree. Whole fits stand beside Chow-Liu classifiers.
"""

import argparse
import warnings
from functools import partial

from _race import Report, arguments, describe, pin, race


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument(
        "--races",
        nargs="*",
        default=["sums", "gradient", "chow-liu", "fits"],
        help="which",
    )
    options = parser.parse_args()
    pin(1)
    describe("Spanning trees", ["one thread"], ["pgmpy", "networkx"])
    report = Report(options.csv)
    if "sums" in options.races:
        sums(options, report)
    if "gradient" in options.races:
        gradient(options, report)
    if "chow-liu" in options.races:
        chow_liu(options, report)
    if "fits" in options.races:
        fits(options, report)
    report.table()


def sums(options, report):
    """log Z and edge probabilities against a factor and an inverse."""
    import numpy as np
    from _data import matrices  # noqa: F401  (finds the suite)
    from scipy.linalg import lapack
    from suite.trees import log_weights

    from maxent._core.trees import laplacian
    from maxent.discrimination import spanning_tree_log_partition

    sizes = [25, 100] if options.quick else [25, 50, 100, 200, 400, 1000]
    cases = [
        ("normal", "star-mesh", False),
        ("normal", "star-mesh", True),
        ("normal", "cholesky", False),
        ("normal", "cholesky", True),
        ("uniform", "star-mesh", False),
        ("levels", "star-mesh", False),
    ]

    def public(lw, method):
        return spanning_tree_log_partition(lw, True, method)

    def alone(lw, method):
        out = np.empty(len(lw)), np.empty_like(lw), np.zeros(len(lw), np.intc)
        laplacian.partition(lw, ("star-mesh", "cholesky").index(method), 1, *out)
        return out

    for n in sizes:
        batch = max(1, min(1000, 30_000_000 // n**3))
        W = np.exp(log_weights("normal", n))
        Q = np.asfortranarray((np.diag(W.sum(axis=0)) - W)[1:, 1:])

        def peer(Q=Q, batch=batch):
            for _ in range(batch):
                factor, _ = lapack.dpotrf(Q)
                inverse, _ = lapack.dpotri(factor, overwrite_c=1)
            return inverse

        for kind, method, compiled in cases:
            lw = log_weights(kind, n, (batch,))

            ours = partial(alone if compiled else public, lw, method)
            outcome = race(ours, peer, options.pairs)
            error = np.abs(outcome.ours.result[1].sum(axis=(1, 2)) / 2 - (n - 1)).max()
            report.add(
                {
                    "race": f"{method}, {kind}" + ", compiled alone" * compiled,
                    "size": f"{batch} x n={n}",
                    "peer": "potrf + potri",
                    **outcome.columns,
                    "check": f"error of sum p {error:.1e}",
                }
            )


def one_hot(X, r):
    """Matrix (T, r n) of zeros and ones."""
    import numpy as np

    Z = np.zeros((len(X), r * X.shape[1]))
    Z[np.arange(len(X))[:, None], r * np.arange(X.shape[1]) + X] = 1.0
    return Z


def gradient(options, report):
    """Counts, log W, p and scores against products of a one-hot matrix made before.

    Log weights have a standard deviation near one, at which the inverse that the peer
    takes is accurate.
    """
    import numpy as np
    from _data import matrices  # noqa: F401
    from suite.trees import EdgeSums, letters

    sizes = [(2000, 10, 4)] if options.quick else [(10000, 25, 4), (10000, 25, 2)]
    for rows, n, r in sizes:
        X = letters(rows, n, r)
        rng = np.random.default_rng(1)
        a, M = rng.normal(size=rows), 0.01 * rng.normal(size=(r * n, r * n))
        data, Z = EdgeSums(X, r), one_hot(X, r)
        upper = np.where(data.upper, M, 0.0)

        def peer(a=a, Z=Z, n=n, r=r, upper=upper):
            C = Z.T @ (a[:, None] * Z)
            log_w = (upper * C).reshape(n, r, n, r).sum(axis=(1, 3))
            log_w = log_w + log_w.T
            W = np.exp(log_w - log_w.max())
            np.fill_diagonal(W, 0.0)
            G = np.zeros((n, n))
            G[1:, 1:] = np.linalg.inv((np.diag(W.sum(axis=0)) - W)[1:, 1:])
            d = np.diag(G)
            p = W * (d[:, None] + d - 2 * G)
            weighted = upper * np.repeat(np.repeat(p, r, axis=0), r, axis=1)
            return p, ((Z @ weighted) * Z).sum(axis=1)

        outcome = race(lambda a=a, M=M, d=data: d.gradient(a, M), peer, options.pairs)
        (_, g), (_, other) = outcome.ours.result, outcome.peer.result
        report.add(
            {
                "race": "gradient pass",
                "size": f"{rows} x {n}, {r} letters",
                "peer": "one-hot products",
                **outcome.columns,
                "check": f"largest difference {np.abs(g - other).max():.1e}",
            }
        )


def chow_liu(options, report):
    """Trees of categorical columns."""
    import numpy as np
    from _data import matrices  # noqa: F401
    from scipy.sparse.csgraph import minimum_spanning_tree
    from sklearn.metrics import mutual_info_score
    from suite.trees import letters

    from maxent.discrimination import chow_liu_tree

    rows, n, r = (1000, 10, 4) if options.quick else (10000, 100, 4)
    X = letters(rows, n, r)

    def by_products():
        Z = one_hot(X, r)
        C = (Z.T @ Z).reshape(n, r, n, r) / rows
        single = Z.mean(axis=0).reshape(n, r)
        product = single[:, :, None, None] * single[None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(C > 0, C * np.log(C / product), 0.0)
        information = terms.sum(axis=(1, 3))
        # SciPy takes zeros for missing edges and looks for the least sum
        tree = minimum_spanning_tree(np.triu(1.0 + r - information, 1)).tocoo()
        return np.stack([tree.row, tree.col], axis=1)

    def by_networkx():
        import networkx as nx

        graph = nx.Graph()
        for u in range(n):
            for v in range(u + 1, n):
                weight = mutual_info_score(X[:, u], X[:, v])
                graph.add_edge(u, v, weight=weight)
        return np.array(nx.maximum_spanning_tree(graph).edges)

    def by_pgmpy():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names that will move
            import pandas as pd
            from pgmpy.estimators import TreeSearch

            search = TreeSearch(pd.DataFrame(X), root_node=0, n_jobs=1)
            return np.array(search.estimate(show_progress=False).edges)

    peers = {
        "NumPy and SciPy": by_products,
        "networkx and scikit-learn": by_networkx,
        "pgmpy TreeSearch": by_pgmpy,
    }
    for name, peer in peers.items():
        try:
            peer_edges = peer()  # loads what it needs, untimed
        except ImportError as error:
            print(f"  {name} left out: {error}")
            continue
        outcome = race(lambda: chow_liu_tree(X), peer, options.pairs)
        same = {frozenset(e) for e in outcome.ours.result.tolist()} == {
            frozenset(e) for e in peer_edges.tolist()
        }
        report.add(
            {
                "race": "Chow-Liu tree",
                "size": f"{rows} x {n}, {r} letters",
                "peer": name,
                **outcome.columns,
                "check": "same tree" if same else "ANOTHER TREE",
            }
        )


def fits(options, report):
    """Whole fits of two classes to a relative gap of 1e-8; Chow-Liu trees beside."""
    import numpy as np
    from _data import matrices  # noqa: F401
    from suite.data import letters

    from maxent import ChowLiuClassifier, MEDTreeClassifier

    sizes = [(100, 10)] if options.quick else [(400, 25), (10000, 60), (200, 400)]
    for rows, n in sizes:
        X, y, _, _ = letters(rows, n)
        for parameters in ("fixed", "dirichlet") if n <= 60 else ("fixed",):
            wide = n > 60
            model = MEDTreeClassifier(
                parameters, bias=None if wide else "flat", level=n if wide else 1.0
            )
            outcome = race(
                lambda m=model, X=X, y=y: m.fit(X, y),
                lambda X=X, y=y: ChowLiuClassifier().fit(X, y),
                options.pairs if rows < 1000 and n < 100 else 1,
            )
            gap = model.duality_gap_ / (1.0 + model.objective_)
            report.add(
                {
                    "race": f"fit, {parameters}",
                    "size": f"{rows} x {n}, 4 letters",
                    "peer": "ChowLiuClassifier, an easier problem",
                    **outcome.columns,
                    "check": f"relative gap {gap:.1e}, {len(model.support_)} support",
                }
            )
    for rows, noise in ((100, 0.1),) if options.quick else ((1000, 0.0), (3000, 0.2)):
        X, y, _, _ = letters(rows, 25)
        y = np.where(np.random.default_rng(1).random(rows) < noise, 1 - y, y)
        one, other = MEDTreeClassifier(margin="logistic"), MEDTreeClassifier()
        outcome = race(
            lambda m=one, X=X, y=y: m.fit(X, y),
            lambda m=other, X=X, y=y: m.fit(X, y),
            options.pairs if rows < 3000 else 1,
        )
        report.add(
            {
                "race": "fit, margin='logistic'",
                "size": f"{rows} x 25, {100 * noise:.0f} % of the labels wrong",
                "peer": "margin='exponential'",
                **outcome.columns,
                "check": f"{one.converged_} {other.converged_}",
            }
        )


if __name__ == "__main__":
    main()
