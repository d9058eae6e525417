"""Ascent of the penalised likelihood of the trigram model with topics."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from maxent._support.results import Report, Status, relayed, tell
from maxent._support.typing import Callback
from maxent.latent._em_is import EMISResult, run, single, summary
from maxent.latent._likelihood import Likelihood

Array = NDArray[np.float64]
METHODS = ("lbfgs", "gis")
_PAIRS = 5  # of L-BFGS, each as large as the weights


def climb(
    likelihood: Likelihood,
    x: Array,
    method: str,
    inner: int,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> tuple[EMISResult, Array]:
    """End of the ascent from weights x, and the objective after each iteration."""
    told: Any = relayed(callback, partial(_of_one_start, method=method, tol=tol))
    if method == "gis":
        end = single(run(likelihood, x[None], inner, "gis", tol, max_iter, told))
        return end, np.array([objective for _, objective, _ in end.history])
    return _lbfgs(likelihood, x, tol, max_iter, told)


def _of_one_start(report, method, tol):
    """Report of a batch of one start, as that of the start."""
    value, left = (float(np.ravel(x)[0]) for x in (report.objective, report.gap))
    report = replace(report, objective=value, gap=left, reached=left, tol=tol)
    report = replace(report, solver=method, measure="relative gradient")
    return report.translated(lambda found: found[0][0])


def _lbfgs(likelihood, x, tol, max_iter, callback):
    # The curvature of log Phi along weight i is near its mean, which spans as many
    # magnitudes as counts do; in units of its root L-BFGS needs a fraction of the
    # iterations.
    eta = likelihood.model.posterior(x[None], likelihood.observed)[1][0]
    unit = 1.0 / np.sqrt(eta + likelihood.penalty.weight)
    del eta
    last, history = {"stopped": False}, []

    def both(z):
        _, _, _, value, gradient, left = likelihood.evaluate((unit * z)[None])
        last.update(value=float(value[0]), left=float(left[0]))
        return -last["value"], -unit * gradient[0]

    def progress(z):
        history.append(last["value"])
        met = last["left"] <= tol
        report = Report(len(history), last["value"], last["left"], last=met)
        report = replace(report, solution=lambda: ((unit * z)[None],))
        last["stopped"] = tell(callback, report)
        if met or last["stopped"]:
            raise StopIteration

    options = {"maxiter": max_iter, "maxcor": _PAIRS, "gtol": 0.0, "ftol": 0.0}
    result = minimize(
        both,
        x / unit,
        jac=True,
        method="L-BFGS-B",
        callback=progress,
        options=options,
    )
    lam, n_iter = (unit * result.x)[None], np.array([len(history)])
    end = single(summary(likelihood, lam, n_iter, tol, [], max_iter))
    if last["stopped"] and not end.converged:
        end.status = Status.STOPPED
    return end, np.array(history)
