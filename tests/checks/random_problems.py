"""Random problems of every shape for every estimator: no crash, no NaN, an end.

    python tests/checks/random_problems.py [--problems 400] [--seed 0] [--seconds 60]
                                           [--only NAME] [--jobs 2]

A fit may converge, stop with a ConvergenceWarning, or refuse its input with a
ValueError that says why. Anything else is a failure: another exception, NaN or infinity
in an answer, a crash of the process, or no end after the given seconds of processor
time. The seed and number of a failing problem are printed; they make it again.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import multiprocessing
import signal
import sys
import time
import traceback
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

MARGINS = ("exponential", "erlang", "laplace", "gaussian", "logistic", "hinge", "fixed")
TUBES = ("exponential", "laplace", "gaussian", "hinge", "uniform_exponential")


class NoEnd(BaseException):
    """The time of a problem is over; no code of the package catches it."""


# -- problems ------------------------------------------------------------------------
def _size(rng, most=400):
    return int(np.exp(rng.uniform(np.log(4), np.log(most))))


def _power(rng, low, high):
    return float(10.0 ** rng.uniform(low, high))


def _weights(rng, n):
    kind = rng.integers(4)
    if kind < 2:
        return None
    return rng.integers(0, 4, n).astype(float) if kind == 2 else rng.gamma(1.0, size=n)


def features(rng, n):
    """Features of many kinds: correlated, repeated, constant, far apart in scale."""
    d = int(np.exp(rng.uniform(0, np.log(40))))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    kind = rng.integers(8)
    if kind == 1:
        X = X * 10.0 ** rng.uniform(-4, 4, size=d)
    elif kind == 2:
        X[:, rng.integers(d)] = 3.0
    elif kind == 3:
        X = X[rng.integers(0, max(n // 3, 1), size=n)]
    elif kind == 4:
        X = np.round(X)
    elif kind == 5:
        X = X + 1e3 * rng.normal(size=d)
    elif kind == 6:
        X = rng.standard_t(1.5, size=(n, d))
    elif kind == 7:
        X = X * (rng.random((n, d)) < 0.2)
    return X


def labels(rng, X, most=5):
    """Classes by a noisy rule, balanced or not."""
    n, m = len(X), int(rng.integers(2, most + 1)) if rng.random() < 0.5 else 2
    scores = np.nan_to_num(X / (np.abs(X).max() or 1.0)) @ rng.normal(
        size=(X.shape[1], m)
    )
    noise = _power(rng, -3, 1) * scores.std()
    y = np.argmax(scores + noise * rng.normal(size=scores.shape), axis=1)
    y[rng.permutation(n)[:m]] = np.arange(m)[: min(n, m)]
    return y


def categories(rng, n):
    """Categorical codes, independent or tied to one another, with rare values."""
    d = int(rng.integers(2, 15))
    sizes = rng.integers(1, 7, size=d)
    hidden = rng.integers(0, 3, size=n)
    X = np.empty((n, d), dtype=int)
    for j, r in enumerate(sizes):
        p = rng.dirichlet(np.full(r, _power(rng, -1, 1)), size=3)
        X[:, j] = [rng.choice(r, p=p[h]) for h in hidden]
    return X


# -- estimators ----------------------------------------------------------------------
def classifier(rng):
    import maxent

    X = features(rng, _size(rng))
    kernel = rng.choice(["rbf", "linear", "poly", "rbf"])
    options = {
        "kernel": str(kernel),
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 5),
        "sharpness": 1.0 + _power(rng, -1, 3),
        "bias": [None, "flat", 1.0][rng.integers(3)],
        "tol": _power(rng, -8, -2),
        "cache_size": float(rng.choice([500.0, 0.01])),
        "degree": int(rng.integers(1, 4)),
    }
    return maxent.MEDClassifier(**options), X, labels(rng, X), _weights(rng, len(X))


def regressor(rng):
    import maxent

    X = features(rng, _size(rng))
    scale = _power(rng, -3, 6)
    y = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) + _power(rng, -3, 0) * rng.normal(
        size=len(X)
    )
    options = {
        "kernel": str(rng.choice(["rbf", "linear"])),
        "margin": str(rng.choice(TUBES)),
        "C": _power(rng, -2, 4),
        "epsilon": float(rng.choice([0.0, 0.1 * scale])),
        "bias": [None, "flat", 1.0][rng.integers(3)],
        "cache_size": float(rng.choice([500.0, 0.01])),
    }
    return maxent.MEDRegressor(**options), X, scale * y, _weights(rng, len(X))


def selector(rng):
    import maxent

    X = features(rng, _size(rng))
    options = {
        "margin": str(rng.choice(MARGINS[:-1])),
        "C": _power(rng, -2, 4),
        "prior_inclusion": _power(rng, -6, 0),
        "bias": [None, "flat", 1.0][rng.integers(3)],
    }
    return maxent.MEDFeatureSelector(**options), X, labels(rng, X, 2), None


def gaussian(rng):
    import maxent

    X = features(rng, _size(rng))
    options = {"margin": str(rng.choice(MARGINS)), "C": _power(rng, -2, 3)}
    if rng.random() < 0.5:
        options["level"] = float(rng.choice([0.0, 1.0, _power(rng, -1, 2)]))
    estimator = maxent.MEDGaussianClassifier(**options)
    return estimator, X, labels(rng, X), _weights(rng, len(X))


def _coded(rng, estimator):
    X = categories(rng, _size(rng))
    return estimator, X, labels(rng, X), _weights(rng, len(X))


def _codes_options(rng):
    options = {"margin": str(rng.choice(MARGINS)), "C": _power(rng, -1, 2)}
    if rng.random() < 0.5:
        options["level"] = float(rng.choice([0.0, 1.0, _power(rng, -1, 1.5)]))
    return options


def bayes_net(rng):
    import maxent

    return _coded(rng, maxent.MEDBayesNetClassifier(**_codes_options(rng)))


def trees(rng):
    import maxent

    options = _codes_options(rng) | {"ess": _power(rng, -1, 1.5)}
    return _coded(rng, maxent.MEDTreeClassifier(**options))


def random_tables(rng):
    import maxent

    options = _codes_options(rng) | {"ess": _power(rng, 0, 1.5)}
    return _coded(rng, maxent.MEDTreeClassifier("dirichlet", **options))


def chow_liu(rng):
    import maxent

    return _coded(rng, maxent.ChowLiuClassifier(ess=_power(rng, -2, 1)))


def outliers(rng):
    import maxent

    model = str(rng.choice(["gaussian", "multinomial", "tree"]))
    X = (
        features(rng, _size(rng))
        if model == "gaussian"
        else categories(rng, _size(rng))
    )
    options = {
        "margin": str(rng.choice(MARGINS)),
        "C": _power(rng, -2, 2),
        "quantile": float(rng.random()),
    }
    return maxent.MEDOutlierDetector(model, **options), X, None, _weights(rng, len(X))


ESTIMATORS = {
    "classifier": classifier,
    "regressor": regressor,
    "selector": selector,
    "gaussian": gaussian,
    "bayes_net": bayes_net,
    "trees": trees,
    "random_tables": random_tables,
    "chow_liu": chow_liu,
    "outliers": outliers,
}


# -- one problem -----------------------------------------------------------------------
def attempt(task):
    """(name, number, outcome, detail, seconds) of one random problem."""
    name, seed, k, seconds = task
    code = list(ESTIMATORS).index(name)
    rng = np.random.default_rng([seed, code, k])
    estimator, X, y, weight = ESTIMATORS[name](rng)

    def stop(signum, frame):
        raise NoEnd

    # waiting threads of BLAS and OpenMP count as processor time
    threadpool_limits(1)
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    start = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            estimator.fit(X, y, sample_weight=weight)
            outcome, detail = "converged", ""
            if not getattr(estimator, "converged_", True):
                outcome, detail = "stopped", _shown(estimator)
                if not any(issubclass(w.category, ConvergenceWarning) for w in said):
                    outcome = "SILENT"
            bad = [w for w in said if issubclass(w.category, RuntimeWarning)]
            if bad:
                outcome, detail = "RUNTIME WARNING", f"{bad[0].message}"
            if not np.isfinite(_answers(estimator, X)).all():
                outcome, detail = "NOT FINITE", _shown(estimator)
    except ValueError as error:
        outcome, detail = "refused", str(error)[:160]
    except NoEnd:
        outcome, detail = "NO END", _shown(estimator)
    except Exception:
        outcome, detail = "EXCEPTION", traceback.format_exc()[-600:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return name, k, outcome, detail, time.process_time() - start


def _answers(estimator, X):
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    return estimator.predict(X)


def _shown(estimator):
    gap = getattr(estimator, "duality_gap_", np.nan)
    J = getattr(estimator, "objective_", np.nan)
    return f"gap {gap:.1e} of {J:.3g}: {estimator!r}".replace("\n", " ")[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=ESTIMATORS, action="append")
    parser.add_argument("--number", type=int, help="one problem alone")
    args = parser.parse_args()
    numbers = range(args.problems) if args.number is None else [args.number]
    names = args.only or list(ESTIMATORS)
    tasks = [(name, args.seed, k, args.seconds) for name in names for k in numbers]
    counts, failures = collections.defaultdict(collections.Counter), 0
    slowest = collections.defaultdict(float)
    # a crash of a worker breaks the pool, so that no result is lost in silence
    with concurrent.futures.ProcessPoolExecutor(
        args.jobs, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        runs = [pool.submit(attempt, task) for task in tasks]
        for run in concurrent.futures.as_completed(runs):
            name, k, outcome, detail, took = run.result()
            counts[name][outcome] += 1
            slowest[name] = max(slowest[name], took)
            if outcome.isupper() or outcome == "stopped":
                failures += outcome.isupper()
                print(f"{name} {k} ({took:.1f} s): {outcome} {detail}", flush=True)
    for name in names:
        found = ", ".join(f"{n} {what}" for what, n in sorted(counts[name].items()))
        print(f"{name}: {found}; slowest {slowest[name]:.1f} s")
    print(f"{len(tasks) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
