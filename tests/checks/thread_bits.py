"""Same seed, same bits: 22 fits at many counts of threads.

    python tests/checks/thread_bits.py

Every fit runs in fresh processes with OMP_NUM_THREADS and OPENBLAS_NUM_THREADS of 1 to
16, and n_jobs of 1 to 8 where the estimator has it. Prints the fits whose fitted arrays
or decision values differ in any bit from those on one thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings

import numpy as np

SETTINGS = [(1, 1, 1)] + [
    (omp, blas, jobs)
    for omp, blas in ((1, 2), (2, 1), (4, 4), (8, 16), (16, 8))
    for jobs in (1, 2, 8)
]


def fits(k):
    """(name, estimator, X, y) of every fit, with n_jobs=k where there is one."""
    import scipy.sparse as sp

    import maxent as m
    from maxent.discrimination import GaussianCentre, GaussianScores, LatentMixture

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = (X[:, 0] + rng.normal(size=1500) > 0).astype(int)
    three = y + (X[:, 1] > 0.5)
    wide = rng.normal(size=(400, 300))
    codes = (X[:600] > rng.normal(size=6)).astype(int) + (X[:600] > 1)
    thin = sp.csr_array(np.where(X > 0.5, X, 0.0))
    C = {"C": 5.0, "n_jobs": k}
    yield "rbf", m.MEDClassifier(**C), X, y
    many = rng.normal(size=(6500, 6))
    yield "rbf of many rows", m.MEDClassifier(**C), many, many[:, 0] > many[:, 1] ** 2
    yield "rbf wide", m.MEDClassifier(**C), wide, y[:400]
    yield "rbf sparse", m.MEDClassifier(**C), thin, y
    yield "rbf short memory", m.MEDClassifier(cache_size=1.0, **C), X, y
    yield "poly", m.MEDClassifier("poly", **C), X, y
    yield "interior", m.MEDClassifier(solver="interior", **C), X[:400], y[:400]
    yield "newton", m.MEDClassifier("linear", **C), X, y
    yield "coordinate", m.MEDClassifier("linear", solver="coordinate", **C), X, y
    yield "coordinate sparse", m.MEDClassifier("linear", **C), thin, y
    yield "three classes", m.MEDClassifier(**C), X[:600], three[:600]
    joint = m.MEDClassifier("linear", multi_class="joint", **C)
    yield "three joint", joint, X[:600], three[:600]
    yield "three joint, rbf", m.MEDClassifier(multi_class="joint", **C), X, three
    yield "regressor", m.MEDRegressor(**C), X, X[:, 1] + y
    yield "regressor linear", m.MEDRegressor("linear", **C), X, X[:, 1] + y
    yield "selector", m.MEDFeatureSelector(prior_inclusion=0.3), X, y
    few = np.where(np.arange(600) % 8, -1, y[:600])
    partial = m.MEDPartialLabelClassifier(m.MEDClassifier(**C), max_rounds=5)
    yield "partial labels", partial, X[:600], few
    yield "gaussian", m.MEDGaussianClassifier(), X, three
    yield "bayes net", m.MEDBayesNetClassifier(), codes, y[:600]
    # products that are worth threads
    tall, broad = rng.normal(size=(3000, 16)), rng.normal(size=(9000, 60))
    side = (tall[:, 0] > 0).astype(int)
    yield "gaussian of many rows", m.MEDGaussianClassifier(max_iter=30), tall, side
    letters = rng.integers(4, size=(12000, 20))
    other = (letters[:, 0] + rng.integers(3, size=12000) > 3).astype(int)
    yield "bayes net of many rows", m.MEDBayesNetClassifier(), letters, other
    of_broad = (broad[:, 0] + rng.normal(size=9000) > 0).astype(int)
    yield "selector of many rows", m.MEDFeatureSelector(), broad, of_broad
    yield "trees", m.MEDTreeClassifier(n_jobs=k), codes, y[:600]
    yield (
        "random tables",
        m.MEDTreeClassifier("dirichlet", ess=20.0, n_jobs=k),
        codes,
        y[:600],
    )
    yield "outliers", m.MEDOutlierDetector("gaussian"), X, None
    yield "outliers tree", m.MEDOutlierDetector("tree", n_jobs=k), codes, None
    mixture = LatentMixture(n_init=2, random_state=0, tol=1e-4)
    yield "outliers mixture", m.MEDOutlierDetector(mixture, n_jobs=k), X[:300], None
    chains = m.MEDSequenceOutlierDetector(2, n_init=2, random_state=0, tol=1e-3)
    yield "outliers chains", chains.set_params(n_jobs=k), codes[:100], None
    yield (
        "kernel centre",
        m.MEDOutlierDetector(GaussianCentre(), n_jobs=k),
        X[:800],
        None,
    )
    yield (
        "kernel scores",
        m.MEDOutlierDetector(GaussianScores(), level=1.5, n_jobs=k),
        X,
        None,
    )


def bits(k):
    """Hash of the fitted arrays and of decision values of every fit."""
    warnings.simplefilter("ignore")
    found = {}
    for name, estimator, X, y in fits(k):
        estimator.fit(X, y)
        ask = getattr(estimator, "decision_function", None) or estimator.predict
        digest = hashlib.sha256(np.ascontiguousarray(ask(X[:200])).tobytes())
        for key, value in sorted(vars(estimator).items()):
            if key.endswith("_") and isinstance(value, (np.ndarray, float)):
                value = np.ascontiguousarray(value)
                if value.dtype != object:
                    digest.update(value.tobytes())
        found[name] = digest.hexdigest()
    return found


def main():
    if len(sys.argv) > 1:
        print(json.dumps(bits(int(sys.argv[1]))))
        return 0
    first, failed = None, 0
    for omp, blas, jobs in SETTINGS:
        threads = {"OMP_NUM_THREADS": str(omp), "OPENBLAS_NUM_THREADS": str(blas)}
        said = subprocess.run(
            [sys.executable, __file__, str(jobs)],
            env={**os.environ, **threads},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        found = json.loads(said.splitlines()[-1])
        first = found if first is None else first
        wrong = [name for name in found if found[name] != first[name]]
        failed += bool(wrong)
        print(f"OMP {omp}, BLAS {blas}, n_jobs {jobs}: {wrong or 'same bits'}")
    print(f"{len(first)} fits; {len(SETTINGS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
