"""Penalised likelihood of a log-linear latent model: M steps, and ascent to the end.

The penalty U*(lam) is quadratic, sum w_i |lam_i|, or the caller's. Where it has a
corner at zero, an M step of scaling takes each weight to the maximiser on its side of
zero, and quasi-Newton methods split lam = u - v, u, v >= 0.

Source: Wang, Schuurmans & Zhao (2012), sections 3 and 8.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from maxent._support import validation as v
from maxent.latent._log_linear import LogLinearModel, Posterior
from maxent.latent._penalty import L2, Box, Penalty
from maxent.latent._quasi_newton import lbfgs, newton_step
from maxent.latent._scaling_steps import SCALING

Array = NDArray[np.float64]

M_STEPS = ("iis", "gis", "scgis", "newton", "cg", "lbfgs")

_NEWTON_UP_TO = 300  # weights
_BEFORE_NEWTON = 100  # iterations of L-BFGS
_NEWTON_STEPS = 50


def check_method(method: Any, penalty: Penalty) -> str:
    """An M step that the penalty has."""
    v.check_choice("method", method, M_STEPS)
    if isinstance(penalty, L2):
        return str(method)
    box = isinstance(penalty, Box)
    able = ("iis", "gis", "newton", "lbfgs") if box else ("newton", "cg", "lbfgs")
    if method not in able:
        given = "penalty='box'" if box else "a ConvexPenalty"
        raise ValueError(
            f"method={v.shown(method)} has no steps with {given}; use "
            f"{', '.join(map(repr, able[:-1]))} or {able[-1]!r}."
        )
    return str(method)


@dataclass
class Likelihood:
    """The penalised likelihood of a model on data, with bounds of its weights.

    Attributes
    ----------
    model : LogLinearModel
    observed : object
        From its `observe`.
    penalty : Penalty
    bound : float or ndarray (N,)
        Weights stay within [-bound, bound].
    units : Units, optional
        How the weights belong to those of the caller.
    """

    model: LogLinearModel
    observed: Any
    penalty: Penalty
    bound: float | Array = np.inf
    units: Any = None

    @classmethod
    def standard(
        cls,
        model: LogLinearModel,
        data: Any,
        sample_weight: ArrayLike | None,
        penalty: Penalty,
        bound: float,
    ) -> Self:
        """The likelihood of a model on data, with features of order one."""
        observed = model.observe(data, sample_weight)
        model, units = model._standard()
        penalty = penalty.in_units(units.unit)
        within: float | Array = bound
        if np.isfinite(bound) and (units.unit != 1.0).any():
            within = bound * units.unit
        return cls(model, observed, penalty, within, units)

    def evaluate(
        self, lam: Array
    ) -> tuple[Posterior, Array, Array, Array, Array, Array]:
        """(Posterior, log Phi, mean, objective, gradient, largest unmet mean)."""
        found, log_phi, mean = self.model.expectation(lam, self.observed)
        gradient = -self.penalty.residual(lam, mean - found.target)
        size = np.where(self.outward(lam, gradient), 0.0, np.abs(gradient))
        size = size / self.model._spread(lam, mean)
        objective = found.log_likelihood - self.penalty.value(lam)
        return found, log_phi, mean, objective, gradient, size.max(axis=-1)

    def outward(self, lam: Array, gradient: Array) -> NDArray[np.bool_]:
        """Weights at the bound that the gradient of an ascent pushes beyond it."""
        return np.asarray((np.abs(lam) >= self.bound) & (gradient * lam > 0))

    def free(self, lam: Array, gradient: Array) -> NDArray[np.bool_]:
        """Weights (N,) that a Newton step may move: not held at a bound or corner."""
        free = ~self.outward(lam, gradient)
        if isinstance(self.penalty, Box):
            free &= (lam != 0) | (gradient != 0)
        return free

    def projected(self, new: Array, lam: Array, gradient: Array) -> Array:
        """Weights within the bound, and on the side of zero of lam or its ascent."""
        new = np.clip(new, -self.bound, self.bound)
        if isinstance(self.penalty, Box):
            side = np.where(lam != 0, np.sign(lam), np.sign(gradient))
            new = np.where((self.penalty.width > 0) & (new * side < 0), 0.0, new)
        return new


# -- the M step ------------------------------------------------------------------------
def m_step(
    likelihood: Likelihood, lam: Array, target: Array, inner: int, method: str
) -> Array:
    """Weights (R, N) after an M step of `inner` steps towards target (R, N).

    A start whose weights would be infinite stays where it was; all of them are an
    error.
    """
    if method in SCALING:
        start = lam
        for _ in range(inner):
            lam = _scaled(likelihood, lam, target, method)
            lost = ~np.isfinite(lam)
            if lost.any(axis=1).all():
                row, at = np.argwhere(lost)[0]
                end = "largest" if lam[row, at] > 0 else "smallest"
                raise ValueError(
                    f"feature {at} has its {end} value given the data, so its weight "
                    "would be infinite; set sigma2 < inf (a penalty) or a finite bound."
                )
            lam = np.where(lost.any(axis=1, keepdims=True), start, lam)
        return lam
    step = _newton if method == "newton" else _minimized
    return np.stack(
        [step(likelihood, x, eta, inner, method) for x, eta in zip(lam, target)]
    )


def _scaled(likelihood, lam, target, method):
    """One step of scaling for every row of lam."""
    model, penalty, bound = likelihood.model, likelihood.penalty, likelihood.bound
    if isinstance(penalty, L2):
        return model.scaled(lam, target, penalty.weight, method, bound)
    # the gain that GIS and IIS climb is separable and concave, with a corner at zero
    none, width = np.zeros(lam.shape[1]), penalty.width
    above = model.scaled(lam, target - width, none, method, bound)
    below = model.scaled(lam, target + width, none, method, bound)
    return np.where(above > 0, above, np.where(below < 0, below, 0.0))


def _complete(likelihood, lam, target):
    """Complete-data dual without penalty at one lam, and its gradient."""
    log_phi, mean = likelihood.model.partition(lam[None])
    return float(log_phi[0] - lam @ target), mean[0] - target


def _minimized(likelihood, lam, target, inner, method):
    """A few iterations of SciPy's conjugate gradients or L-BFGS on the dual."""

    def smooth(x):
        return _complete(likelihood, x, target)

    options = {"maxiter": inner, "gtol": 1e-12}
    if method == "lbfgs":
        options["ftol"] = 0.0
        return lbfgs(smooth, likelihood.penalty, lam, options, likelihood.bound)
    own = likelihood.penalty

    def both(x):
        value, gradient = smooth(x)
        return value + own.value(x), gradient + own.gradient(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = minimize(both, lam, jac=True, method="CG", options=options)
    new = np.clip(result.x, -likelihood.bound, likelihood.bound)
    return new if both(new)[0] <= both(lam)[0] else lam


def _newton(likelihood, lam, target, inner, method):
    """Damped Newton steps on the dual, within the bounds."""
    penalty = likelihood.penalty

    def at(x):
        value, excess = _complete(likelihood, x, target)
        return value + penalty.value(x), penalty.residual(x, excess)

    for _ in range(inner):
        dual, g = at(lam)
        free = likelihood.free(lam, -g)
        if not free.any():
            return lam
        H = likelihood.model.covariance(lam) + penalty.hessian(lam)
        step = np.zeros_like(lam)
        step[free] = newton_step(H[np.ix_(free, free)], g[free])
        for t in 0.5 ** np.arange(40):
            new = likelihood.projected(lam + t * step, lam, -g)
            value, slope = at(new)
            flat = value <= dual + 1e-15 * (1.0 + abs(dual))
            if value < dual or (
                flat and np.abs(slope[free]).max() < np.abs(g[free]).max()
            ):
                break
        else:
            return lam
        lam = new
    return lam


# -- ascent on the likelihood itself ---------------------------------------------------
def polished(likelihood: Likelihood, lam: Array, tol: float, max_iter: int) -> Array:
    """Ascent on the penalised likelihood from one lam; it never falls.

    L-BFGS; where the model has a Hessian, Newton steps finish what crawls.
    """
    small = likelihood.model.has_hessian and len(lam) <= _NEWTON_UP_TO
    left = max_iter
    while left > 0:
        step = min(left, _BEFORE_NEWTON) if small else left
        lam = _lbfgs_ascent(likelihood, lam, tol, step)
        left -= step
        if likelihood.evaluate(lam[None])[5][0] <= tol or not small:
            break
        lam = _newton_ascent(likelihood, lam, tol, min(_NEWTON_STEPS, max_iter))
        if likelihood.evaluate(lam[None])[5][0] <= tol:
            break
    return lam


def _lbfgs_ascent(likelihood, lam, tol, max_iter):
    model, observed = likelihood.model, likelihood.observed
    mean = likelihood.evaluate(lam[None])[2]
    unit = float(np.min(model._spread(lam[None], mean)))

    def smooth(x):
        found, _, mean = model.expectation(x[None], observed)
        return -float(found.log_likelihood[0]), mean[0] - found.target[0]

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 30}
    options |= {"ftol": 0.0, "gtol": 0.5 * tol * unit}
    return lbfgs(smooth, likelihood.penalty, lam, options, likelihood.bound)


def _newton_ascent(likelihood, lam, tol, max_iter):
    """Newton steps with the absolute values of the Hessian's eigenvalues.

    They climb along every direction, so saddles are left. Weights at the bound whose
    gradient points outside, and those at the corner of the penalty, are held.
    """
    for _ in range(max_iter):
        _, _, _, value, gradient, residual = likelihood.evaluate(lam[None])
        if residual[0] <= 0.1 * tol:
            break
        g = gradient[0]
        free = likelihood.free(lam, g)
        H = likelihood.model.hessian(lam, likelihood.observed)
        H = (H - likelihood.penalty.hessian(lam))[np.ix_(free, free)]
        size, axes = np.linalg.eigh(H)
        size = np.maximum(np.abs(size), 1e-10 * max(np.abs(size).max(), 1e-300))
        along = axes.T @ g[free]
        # no weight moves by more than five; where nothing curves, along the gradient
        largest = np.abs(along).max(initial=0.0)
        size = np.maximum(size, 1e-3 * largest / len(lam))
        step = np.zeros_like(lam)
        step[free] = axes @ (along / np.maximum(size, 1e-300))
        step *= min(1.0, 5.0 / max(np.abs(step).max(), 1e-300))
        for t in 0.5 ** np.arange(30):
            new = likelihood.projected(lam + t * step, lam, g)
            found = likelihood.evaluate(new[None])
            if found[3][0] > value[0] or (
                found[5][0] < residual[0] and found[3][0] >= value[0] - 1e-14
            ):
                break
        else:
            break
        lam = new
    return lam
