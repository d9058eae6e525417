"""``maxent demo kernels``: sequences compared by models of them, over the horizon."""

import time

import numpy as np

from maxent._commands.demos._drawing import Demo
from maxent._commands.reports import table

__all__ = ["run_demo"]

HORIZONS = (0, 1, 2, 4, 8, 16)
_PER_CLASS, _LENGTH = 30, 80  # sequences of each class; the first half is for training


def run_demo(seed):
    """Train on product kernels of Markov chains and tell."""
    X, y = _sequences(seed)
    train = np.arange(len(X)) % 2 == 0
    rows, kernels, converged = [], {}, True
    for horizon in HORIZONS:
        row, kernels[horizon], done = _trained(X, y, train, horizon)
        rows.append(row)
        converged &= done
    text = (
        f"DNA sequences of {_LENGTH} letters from two Markov chains with the same "
        f"letters: {train.sum()} to train,\n{(~train).sum()} to test (seed {seed}). A "
        "chain is fitted to each, and their product kernel trains a machine.\n\n"
        f"{table(rows)}\n"
        "The horizon T compares the chains on strings of T + 1 letters: at 0 only the\n"
        "first letter counts. The normalised kernel within and between the classes\n"
        "tells whether it separates them.\n"
    )
    own = [X[i] for i in np.flatnonzero(train)]
    return Demo(text, converged, lambda figure: _paint(figure, kernels, own, y[train]))


def _sequences(seed):
    """Sequences of two chains whose letters are uniform in the long run."""
    from maxent.models import MarkovChain

    rng = np.random.default_rng(seed)
    X = []
    for share in (0.34, 0.16):  # of a letter to be followed by itself
        step = np.full((4, 4), (1 - share) / 3)
        np.fill_diagonal(step, share)
        law = MarkovChain(np.full(4, 0.25), step, alphabet="ACGT")
        X += law.sample(_PER_CLASS, _LENGTH, rng)
    return X, np.repeat(["sticky", "restless"], _PER_CLASS)


def _trained(X, y, train, horizon):
    """A row of the table, the fitted kernel, and whether its machine converged."""
    from maxent.discrimination import MEDClassifier
    from maxent.kernels import ProductKernel

    start = time.perf_counter()
    kernel = ProductKernel(
        "MarkovChain", horizon=horizon, model_params={"alphabet": "ACGT"}
    )
    own, other = ([x for x, t in zip(X, train) if t == part] for part in (True, False))
    K = kernel.fit_transform(own)
    machine = MEDClassifier("precomputed", C=10.0).fit(K, y[train])
    wrong = int(np.sum(machine.predict(kernel.transform(other)) != y[~train]))
    same = np.equal.outer(y[train], y[train])
    return (
        {
            "horizon": horizon,
            "test error": f"{wrong} of {len(other)}",
            "kernel within": f"{K[same].mean():.4f}",
            "between": f"{K[~same].mean():.4f}",
            "support": len(machine.support_),
            "time": f"{time.perf_counter() - start:.2f} s",
        },
        kernel,
        bool(machine.converged_),
    )


def _paint(figure, kernels, X, y):
    from maxent.displays import GramDisplay, HorizonDisplay

    left, middle, right = figure.subplots(1, 3)
    kernel = kernels[HORIZONS[-1]]
    HorizonDisplay.from_estimator(kernel, HORIZONS, y, ax=left)
    GramDisplay.from_estimator(kernel, X, y, ax=(middle, right))
