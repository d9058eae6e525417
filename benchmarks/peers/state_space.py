"""Kalman filters and smoothers beside statsmodels and pykalman, and structural fits.

long    filter and smoother of 10,000 steps, 4 states and 2 outputs, beside statsmodels.
many    smoother of 1000 series of 100 steps, beside a loop over pykalman on a share of
        them, whose time is scaled.
fit     maximum likelihood of a local level and a local linear trend with diffuse starts
        beside statsmodels' UnobservedComponents; the last column is the difference of
        the log-likelihoods reached.
"""

import argparse
import statistics

from _race import Report, arguments, describe, pin, race


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = {"long": long, "many": many, "fit": fit}
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    options = parser.parse_args()
    pin(1)
    describe("State-space models", ["one thread"], ["statsmodels", "pykalman"])
    report = Report(options.csv)
    for part in options.parts:
        parts[part](options, report)
    report.table()


def random_system(n, d, seed=0):
    """Random stable system."""
    import numpy as np

    from maxent.models import LinearDynamicalSystem

    rng = np.random.default_rng(seed)
    A, C = rng.normal(size=(n, n)), rng.normal(size=(d, n))
    A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
    noise = 0.3 * np.eye(n), 0.5 * np.eye(d)
    return LinearDynamicalSystem(A, noise[0], C, noise[1], np.zeros(n), np.eye(n))


def add(report, name, peer, outcome, check, share=1.0):
    """One row, with the ratio were the peer to do all the work."""
    ratio = statistics.median(outcome.cpu_ratios) * share
    report.add(
        {
            "race": name,
            "peer": peer,
            **outcome.columns,
            "scaled to all": f"{ratio:.4f}",
            "check": check,
        }
    )


def long(options, report):
    """One long series against statsmodels."""
    import numpy as np
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    model = random_system(4, 2)
    T = 1000 if options.quick else 10_000
    x = model.sample(1, T, 0)[0]
    peer = KalmanSmoother(2, 4, 4)
    peer.bind(x.T.copy(order="F"))
    peer["design"], peer["obs_cov"] = model.observation, model.observation_cov
    peer["transition"], peer["state_cov"] = model.transition, model.transition_cov
    peer["selection"] = np.eye(4)
    peer.initialize_known(model.initial_mean, model.initial_cov)
    error = np.abs(peer.smooth().smoothed_state.T - model.posterior(x)[0].mean).max()
    outcome = race(lambda: model.posterior(x), peer.smooth, options.pairs)
    name = f"smoother, {T} steps, 4 states, 2 outputs"
    add(report, name, "statsmodels", outcome, f"largest difference {error:.1e}")


def many(options, report):
    """Many short series against pykalman."""
    import numpy as np
    from pykalman import KalmanFilter

    model = random_system(4, 2)
    N, few = (100, 5) if options.quick else (1000, 20)
    series = model.sample(N, 100, 0)
    peer = KalmanFilter(
        model.transition,
        model.observation,
        model.transition_cov,
        model.observation_cov,
        np.zeros(4),
        np.zeros(2),
        model.initial_mean,
        model.initial_cov,
    )
    ours = model.posterior(series)
    error = np.abs(peer.smooth(series[0])[0] - ours[0].mean).max()
    outcome = race(
        lambda: model.posterior(series),
        lambda: [peer.smooth(x) for x in series[:few]],
        options.pairs,
    )
    name = f"smoother, {N} series of 100"
    check = f"largest difference {error:.1e}"
    add(report, name, "pykalman", outcome, check, few / N)


def fit(options, report):
    """Structural models by maximum likelihood."""
    import numpy as np
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    from maxent.models import LinearDynamicalSystem

    rng = np.random.default_rng(0)
    T = 100 if options.quick else 500
    slope = np.cumsum(0.2 * rng.normal(size=T))
    x = np.cumsum(slope + rng.normal(size=T)) + 2.0 * rng.normal(size=T)
    held = ["transition", "observation", "transition_offset", "observation_offset"]
    for name, A in (("llevel", [[1.0]]), ("lltrend", [[1.0, 1.0], [0.0, 1.0]])):
        n = len(A)
        C, P = np.eye(n)[:1], np.diag(np.full(n, np.inf))
        start = LinearDynamicalSystem(A, np.eye(n), C, [[1.0]], np.zeros(n), P)

        def ours(start=start):
            return LinearDynamicalSystem.fit(
                x, init=start, fixed=held, prior=0, tol=1e-8, stable=False,
                transition_cov_type="diagonal",
            )  # fmt: skip

        def peer(name=name):
            model = UnobservedComponents(x, name, use_exact_diffuse=True)
            return model.fit(disp=0, maxiter=500, cov_type="none")

        gain = ours().fit_result.objective - peer().llf
        outcome = race(ours, peer, options.pairs)
        add(report, f"fit, {name}, {T} steps", "statsmodels", outcome, f"{gain:+.1e}")


if __name__ == "__main__":
    main()
