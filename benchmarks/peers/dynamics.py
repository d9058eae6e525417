"""Kernels between linear dynamical systems: dense covariances in SciPy as the peer.

Three peers on the same systems. "joint covariances, SciPy": the dense covariance of
every model's observations is made once, outside the time, and each pair costs one SciPy
Cholesky factor of S + S' and one triangular solve. "the same in LAPACK" calls potrf and
trtrs without SciPy's checks. "covariances per pair" makes both covariances for each
pair, as a direct reading of the formula does. A peer runs on a share of the pairs; its
time is scaled to all pairs i < j.
"""

import argparse
import statistics

from _race import Report, arguments, describe, pin, race


def main():
    """Run the races."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    options = parser.parse_args()
    pin(1)
    describe("Linear dynamical systems", ["one thread"], [])
    report = Report(options.csv)
    sizes = [(60, 4, 2, 25)] if options.quick else [
        (500, 4, 2, 25), (500, 2, 2, 25), (500, 3, 1, 25), (300, 6, 3, 25),
        (200, 4, 2, 100),
    ]  # fmt: skip
    for N, n, d, T in sizes:
        run(options, report, N, n, d, T)
    report.table()


def systems(N, n, d, seed=0):
    """Random stable systems."""
    import numpy as np

    from maxent.models import LinearDynamicalSystem

    rng = np.random.default_rng(seed)
    out = []
    for _ in range(N):
        A = rng.normal(size=(n, n))
        A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
        C = rng.normal(size=(d, n))
        noise = 0.5 * np.eye(d)
        out.append(
            LinearDynamicalSystem(A, np.eye(n), C, noise, rng.normal(size=n), np.eye(n))
        )
    return out


def joint(model, T):
    """Mean and covariance of the observations 0 .. T, by the textbook."""
    import numpy as np

    A, C, d = model.transition, model.observation, model.n_features
    m, P = model.initial_mean, model.initial_cov
    mean, S = np.empty((T + 1, d)), np.empty((T + 1, d, T + 1, d))
    for t in range(T + 1):
        if t:
            m, P = A @ m, A @ P @ A.T + model.transition_cov
        mean[t] = C @ m
        S[t, :, t] = C @ P @ C.T + model.observation_cov
        X = P
        for u in range(t + 1, T + 1):
            X = A @ X
            S[u, :, t] = C @ X @ C.T
            S[t, :, u] = S[u, :, t].T
    D = (T + 1) * d
    return mean.ravel(), S.reshape(D, D)


def run(options, report, N, n, d, T):
    """One size against the peers."""
    import numpy as np
    from scipy.linalg import cholesky, lapack, solve_triangular

    from maxent.kernels import lds_affinity_parts

    P = systems(N, n, d)
    laws = [joint(p, T) for p in P]  # made once, untimed
    rows = max(1, N // 100)  # of the peer

    def ours():
        return lds_affinity_parts(P, horizon=T).log_normalized(0.5)

    def terms(L, z):
        return 2.0 * np.log(np.diagonal(L)).sum(), z @ z

    def by_scipy():
        for i in range(rows):
            for j in range(N):
                L = cholesky(laws[i][1] + laws[j][1], lower=True, check_finite=False)
                z = solve_triangular(
                    L, laws[i][0] - laws[j][0], lower=True, check_finite=False
                )
                out[i, j] = terms(L, z)
        return out

    def by_lapack():
        for i in range(rows):
            for j in range(N):
                L, _ = lapack.dpotrf(laws[i][1] + laws[j][1], lower=1)
                z, _ = lapack.dtrtrs(L, laws[i][0] - laws[j][0], lower=1)
                out[i, j] = terms(L, z)
        return out

    def per_pair():
        for i in range(1):
            for j in range(0, N, 10):
                (m, S), (m2, S2) = joint(P[i], T), joint(P[j], T)
                L = cholesky(S + S2, lower=True, check_finite=False)
                z = solve_triangular(L, m - m2, lower=True, check_finite=False)
                out[i, j] = terms(L, z)
        return out

    out = np.full((N, N, 2), np.nan)
    pairs = 0.5 * N * (N - 1)
    exact = lds_affinity_parts(P, horizon=T)
    for name, peer, done in (
        ("joint covariances, SciPy", by_scipy, rows * N),
        ("the same in LAPACK", by_lapack, rows * N),
        ("covariances per pair, SciPy", per_pair, len(range(0, N, 10))),
    ):
        out[:] = np.nan
        outcome = race(ours, peer, options.pairs)
        made = np.isfinite(out[..., 0])
        error = np.abs(exact.log_det[made] - out[made][:, 0]).max()
        error = max(error, np.abs(exact.distance[made] - out[made][:, 1]).max())
        columns = outcome.columns
        report.add(
            {
                "race": f"{N} x {N}, {n} states, {d} outputs, T = {T}",
                "peer": name,
                **columns,
                "scaled to all pairs": scaled(outcome, done / pairs),
                "check": f"largest difference {error:.1e}",
            }
        )


def scaled(outcome, share):
    """Ratio of CPU times were the peer to make all pairs."""
    return f"{statistics.median(outcome.cpu_ratios) * share:.4f}"


if __name__ == "__main__":
    main()
