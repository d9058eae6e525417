"""``maxent demo latent``: Gaussian mixtures by latent maximum entropy, on the crabs."""

import time

import numpy as np

from maxent._commands.demos._drawing import Demo
from maxent._commands.reports import table

__all__ = ["run_demo"]

_COMPONENTS, _STARTS, _SHOWN = 4, 40, 6


def run_demo(seed):
    """Fit mixtures from many starts and tell."""
    from maxent.datasets import load_crabs
    from maxent.latent import LMEGaussianMixture

    crabs = load_crabs()
    X = _shape(crabs.data)
    kinds = np.array([f"{s} {g}" for s, g in zip(crabs.target, crabs.groups)])
    start = time.perf_counter()
    options = {"init_params": "random_from_data", "random_state": seed}
    model = LMEGaussianMixture(_COMPONENTS, n_init=_STARTS, **options).fit(X)
    seconds = time.perf_counter() - start
    chosen, rows = {}, []
    for selection in ("likelihood", "entropy"):
        other = model.select(selection)
        chosen[selection] = labels = other.predict(X)
        pool = other.candidates_
        at = other.selected_
        rows.append(
            {
                "kept": f"greatest {selection}",
                "entropy": f"{pool['entropy'][at]:.4f}",
                "mean log-likelihood": f"{other.score(X):.4f}",
                "sizes": "/".join(map(str, np.sort(np.bincount(labels))[::-1])),
                "crabs in a group of their kind": _agreement(labels, kinds),
            }
        )
    admitted = int(np.sum(model.candidates_["reason"] == ""))
    text = (
        f"Mixture of {_COMPONENTS} Gaussians on the shape of 200 Leptograpsus crabs: "
        "two principal coordinates of\nthe logarithms, size removed. The crabs are of "
        f"two species and two sexes. {_STARTS} starts of EM\n(seed {seed}) in "
        f"{seconds:.2f} s, of which {admitted} are admitted: maxima that converged.\n\n"
        f"{table(rows)}\n"
        "Latent maximum entropy keeps the candidate that assumes least, maximum\n"
        "likelihood the one that fits these rows best. Neither has seen the kinds.\n"
    )
    return Demo(
        *(text, bool(model.converged_)),
        lambda figure: _paint(figure, model, X, chosen["entropy"]),
    )


def _shape(data):
    """Two principal coordinates of the logarithms, without the mean of each crab."""
    Z = np.log(data)
    Z -= Z.mean(axis=1, keepdims=True)
    Z -= Z.mean(axis=0)
    _, _, directions = np.linalg.svd(Z, full_matrices=False)
    Z = Z @ directions[:2].T
    return Z / Z.std(axis=0)


def _agreement(labels, kinds):
    """Rows whose component holds mostly rows of their kind."""
    from scipy.optimize import linear_sum_assignment

    names, codes = np.unique(kinds, return_inverse=True)
    counts = np.zeros((labels.max() + 1, len(names)), dtype=int)
    np.add.at(counts, (labels, codes), 1)
    i, j = linear_sum_assignment(-counts)
    return f"{counts[i, j].sum()} of {len(labels)}"


def _paint(figure, model, X, labels):
    from maxent.displays import CandidatesDisplay

    left, right = figure.subplots(1, 2)
    CandidatesDisplay.from_estimator(model, ax=left)
    for k, marker in zip(range(_COMPONENTS), "osD^"):
        own = X[labels == k]
        right.scatter(own[:, 0], own[:, 1], s=18, marker=marker, label=f"{k}")
    right.set(
        xlabel="principal coordinate 1",
        ylabel="principal coordinate 2",
        title="Components of the mixture of greatest entropy",
    )
    right.legend(frameon=False)
