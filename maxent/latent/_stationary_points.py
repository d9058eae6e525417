"""Stationary points of one likelihood from many starts, in batches and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support.compiling import compiled
from maxent._support.processes import spread
from maxent._support.progress import Progress
from maxent._support.results import Report, Status, relayed, tell
from maxent._support.threads import single_threaded_blas
from maxent.latent._em_is import run, summary
from maxent.latent._hull import reach_within
from maxent.latent._likelihood import Likelihood, polished
from maxent.latent._log_linear import LogLinearModel
from maxent.latent._penalty import Box
from maxent.latent._pool import groups, reasons

Array = NDArray[np.float64]

_LARGEST_BATCH = 4  # starts; to work on more at a time gains little
_BATCHES = 4  # for processes to share out, before any has so many starts
_FINER = 1e-3  # share of tol to which weights that may be endless are polished
_HESSIAN_UP_TO = 500  # weights; beyond, candidates are perturbed instead


def batch_size(n_starts: int) -> int:
    """Starts of one batch, for any number of processes."""
    return min(_LARGEST_BATCH, max(1, n_starts // _BATCHES))


def take_best(model: Any, found: Any) -> None:
    """Make the best start of an unfinished batch the model."""
    weights, n_iter, objective = found
    model.candidate_weights_, model.candidates_ = weights, {"n_iter": n_iter}
    model._keep(int(np.argmax(objective)))


def candidates(
    likelihood: Likelihood,
    starts: Array,
    *,
    method: str,
    inner: int,
    em_iter: int,
    tol: float,
    max_iter: int,
    mi_tol: float,
    check_maximum: bool,
    progress: Progress,
    store: Callable[[Any, Any], object],
    n_jobs: int | None = None,
) -> tuple[dict[str, NDArray[Any]], Array, Array]:
    """Table of the stationary points from starts (R, N), weights, best objectives."""
    if method in ("gis", "iis", "scgis"):
        compiled("iterative_scaling")  # announced here, not in a process
    options = (method, inner, em_iter, tol, max_iter, check_maximum)
    size = batch_size(len(starts))
    chunks = [starts[lo : lo + size] for lo in range(0, len(starts), size)]
    listener = partial(progress.callback, store, task="EM step")
    parts = parts_of(
        partial(_chunk, likelihood, options), chunks, progress, listener, n_jobs
    )
    table, weights = gated(parts, tol, mi_tol, progress)
    model = likelihood.model
    table["group"] = groups(
        table["log_likelihood"],
        table["entropy"],
        lambda i: model._signature(weights[i]),
        signed=model._signed,
    )
    return table, weights, _joined([part[2] for part in parts])


def gated(
    parts: list[Any], tol: float, mi_tol: float, progress: Progress
) -> tuple[dict[str, NDArray[Any]], Array]:
    """Table and weights of all parts, with the gate that each candidate fails."""
    table = {k: np.concatenate([p[0][k] for p in parts]) for k in parts[0][0]}
    weights = np.concatenate([p[1] for p in parts])
    bounded = np.isfinite(table["entropy"]) & np.isfinite(weights).all(axis=1)
    bounded &= ~table.pop("endless", np.zeros(len(weights), dtype=bool))
    if progress.stopped:  # the gates are about ends
        tol, mi_tol = np.inf, -1.0
    table["reason"] = reasons(
        table["residual"],
        tol,
        bounded,
        table["dependence"],
        mi_tol,
        table.pop("maximum"),
    )
    return table, weights


def parts_of(
    work: Callable[..., Any],
    chunks: list[Any],
    progress: Progress,
    listener: Callable[[], Any],
    n_jobs: int | None,
) -> list[Any]:
    """work(chunk) of all chunks, or until a callback asks to stop; at least one."""
    from joblib import effective_n_jobs

    if effective_n_jobs(n_jobs) > 1 and len(chunks) > 1:
        found = spread(work, [(chunk,) for chunk in chunks], n_jobs)
    else:
        found = (work(c, listener()) for c in chunks)
    parts: list[Any] = []
    n = sum(map(len, chunks))
    while len(parts) < len(chunks) and not progress.stopped:
        with progress.group("candidates"):
            parts.append(next(found))
        progress.say(f"{sum(map(len, chunks[: len(parts)]))} of {n} starts have ended")
    found.close()
    return parts


def _chunk(likelihood, options, starts, callback=None):
    """Candidates of a few starts, as one batch."""
    with single_threaded_blas():
        return _candidates_of(likelihood, starts, *options, callback)


def _best_of_starts(report):
    """Report of a batch, as that of its best start."""
    i = int(np.argmax(report.objective))
    left = float(report.gap[i])
    return replace(
        report,
        objective=float(report.objective[i]),
        gap=left,
        reached=left,
        measure="relative gradient",
        note=f"best of {len(report.gap)} starts",
    )


def _told_of_the_best(callback, tol):
    """A callback that hears of the best start of a batch; None stays None."""
    if callback is None:
        return None
    return relayed(callback, lambda report: replace(_best_of_starts(report), tol=tol))


def _candidates_of(
    likelihood,
    starts,
    method,
    inner,
    em_iter,
    tol,
    max_iter,
    check_maximum,
    callback=None,
):
    bound = likelihood.bound
    starts = np.clip(starts, -bound, bound)
    callback = _told_of_the_best(callback, tol)
    result = run(likelihood, starts, inner, method, tol, em_iter, callback)
    lam, n_iter = result.lam, np.array(result.n_iter)
    stopped = Status.STOPPED in result.status
    if not stopped:
        unfinished = np.flatnonzero(result.residual > tol)
        stopped = _polish(likelihood, result, unfinished, tol, max_iter, callback)
    end = summary(likelihood, lam, n_iter, tol, [])
    met = np.flatnonzero(end.residual <= tol) if not stopped else []
    curvature, maximum, endless = _verdicts(
        likelihood, lam, met, tol, max_iter, check_maximum
    )
    cost = likelihood.penalty.cost(lam)
    table = {
        "log_likelihood": end.log_likelihood,
        "objective": end.objective,
        "entropy": end.entropy,
        "regularized_entropy": end.entropy - cost,
        "residual": end.residual,
        "dependence": _dependence(likelihood, lam),
        "curvature": curvature,
        "n_iter": n_iter,
        "maximum": maximum,
        "endless": endless,
    }
    return table, lam, _best_history(result, end)


def _polish(likelihood, result, rows, tol, max_iter, callback):
    """Take these starts of a batch to the tolerance; True if a callback ends it."""
    lam = result.lam
    for r in rows:
        lam[r] = polished(likelihood, lam[r], tol, max_iter)
        if callback is None:
            continue
        if tell(callback, _polished(likelihood, lam, result.n_iter)):
            return True
    return False


def _verdicts(likelihood, lam, met, tol, max_iter, check_maximum):
    """Curvature, whether a maximum, whether endless; found for the rows `met`."""
    curvature, maximum = np.full(len(lam), np.nan), np.ones(len(lam), dtype=bool)
    endless = np.zeros(len(lam), dtype=bool)
    for r in met:
        if check_maximum:
            curvature[r], maximum[r] = _curvature(likelihood, lam[r], tol, max_iter)
        endless[r] = _endless(likelihood, lam[r], tol, max_iter)
    return curvature, maximum, endless


def _dependence(likelihood, lam):
    """I(Y; Z), NaN of models that do not say."""
    if type(likelihood.model).dependence is LogLinearModel.dependence:
        return np.full(len(lam), np.nan)
    return likelihood.model.dependence(lam, likelihood.observed)


def _best_history(result, end):
    """Best objective after each E step, and after the polishing."""
    history = [float(np.max(value)) for _, value, _ in result.history]
    return [*history, max(history[-1], float(end.objective.max()))]


def _joined(histories):
    """Best objective of all batches; what has ended keeps its last."""
    n = max(map(len, histories))
    padded = [h[:-1] + h[-1:] * (n + 1 - len(h)) for h in histories]
    return np.max(padded, axis=0)


def _endless(likelihood, lam, tol, max_iter):
    """True if weights (N,) of a stationary point grow without limit.

    Where the likelihood has no maximum but at infinity, its gradient falls below any
    tolerance at weights of the order of log(1/tol) over the range of the features, and
    stays below as they grow. So the weights are polished to a finer tolerance and then
    drawn back by one over the range: a maximum that is finite is left.
    """
    free = likelihood.penalty.endless * likelihood.model.span
    pull = (np.abs(lam) * free).max()
    if np.isfinite(likelihood.bound).all() or pull <= reach_within(tol):
        return False
    further = polished(likelihood, lam, _FINER * tol, max_iter)
    pull = (np.abs(further) * free).max()
    back = np.where(free > 0, further * (1.0 - 1.0 / pull), further)
    here, there = likelihood.evaluate(np.stack([further, back]))[5]
    # Collinear features may have large weights that cancel: then nothing changes, which
    # a gradient below the rounding of log-odds of this size cannot tell.
    rounding = np.finfo(np.float64).eps * pull
    redundant = here > rounding and abs(there - here) <= 1e-6 * here
    return bool(there <= tol and not redundant)


def _polished(likelihood, lam, n_iter):
    """Report of a batch of which one more start has been polished."""
    _, _, _, objective, _, residual = likelihood.evaluate(lam)
    point = lam, n_iter, objective
    report = Report(int(n_iter.max()), objective, residual, "L-BFGS")
    return replace(report, solution=lambda: point)


def _curvature(likelihood, lam, tol, max_iter):
    """Largest eigenvalue of the Hessian, and whether lam is a local maximum.

    Weights at the bound, and at the corner of the box, are held. Eigenvalues within the
    rounding of the two covariances are zero (redundant features). Without a Hessian:
    one perturbed run.
    """
    model = likelihood.model
    if not model.has_hessian or model.n_features > _HESSIAN_UP_TO:
        return np.nan, _survives(likelihood, lam, tol, max_iter)
    free = np.abs(lam) < likelihood.bound
    if isinstance(likelihood.penalty, Box):
        free &= lam != 0
    H = model.hessian(lam, likelihood.observed) - likelihood.penalty.hessian(lam)
    H = H[np.ix_(free, free)]
    if not len(H):
        return 0.0, True
    size = max(np.abs(H).max(), np.trace(model.covariance(lam)) / len(lam), 1e-300)
    largest = float(np.linalg.eigvalsh(H)[-1])
    return largest, largest <= 1e-7 * size


def _survives(likelihood, lam, tol, max_iter):
    """True if a perturbed run comes back to the same likelihood."""
    rng = np.random.default_rng(0)
    moved = lam + 1e-3 * (1.0 + np.abs(lam)) * rng.normal(size=lam.shape)
    moved = np.clip(moved, -likelihood.bound, likelihood.bound)
    again = polished(likelihood, moved, tol, max_iter)
    old, new = likelihood.evaluate(np.stack([lam, again]))[3]
    return bool(new <= old + 1e-7 * (1.0 + abs(old)))
