"""Regressions that come out constant, and the parameters to blame."""

from __future__ import annotations

import warnings

import numpy as np

from maxent._support.remedies import SCALE_FEATURES
from maxent._support.validation import user_stacklevel
from maxent.discrimination.grams.kernel_parameters import resolve_gamma

_ROWS = 50  # of the smallest targets, and of the largest
# Share of the targets' standard deviation. Fits to noise alone, with one feature and n
# rows, vary by about n**-0.5 of it; unscaled diabetes, of R^2 = 0.04, by 0.3.
_CONSTANT = 1e-3
_SMALL_GAMMA = 1e-2  # share of gamma="scale"
_NOTHING = 1e-9  # share of the targets' size that may be rounding
_WITHOUT_SHARPNESS = ("gaussian", "hinge")


def warn_of_constant(model, X, y, keep):
    """One UserWarning of a fitted regressor that hardly varies where the targets do.

    Parameters
    ----------
    model : MEDRegressor
    X : ndarray, CSR (n, n_features) or kernel matrix (n, n)
        Checked rows.
    y : ndarray (n,)
    keep : ndarray of int
        Rows of positive weight.
    """
    target = y[keep]
    spread = float(np.std(target))
    if not np.ptp(target) > _NOTHING * np.abs(target).max():
        return
    order = np.argsort(target, kind="stable")
    ends = keep[np.r_[order[:_ROWS], order[_ROWS:][-_ROWS:]]]
    if np.ptp(model._scores(X[ends], 1)) < _CONSTANT * spread:
        remedy = constant_remedy(model, spread)
        warnings.warn(
            f"MEDRegressor: all predictions are nearly the same: {remedy}.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def constant_remedy(model, spread, between=", "):
    """Name the parameters to change in a regressor no better than the mean target.

    Parameters
    ----------
    model : MEDRegressor
    spread : float
        Standard deviation of the targets.
    between : str, default=", "
        What stands between parameters and their values.

    Returns
    -------
    str
        The cause, and values to try.
    """
    units = f"the targets have a standard deviation of {spread:.3g}"
    gamma = _larger_gamma(model)
    if gamma is not None:
        why = f"gamma={model.gamma_:.2g} is far below what suits the scale of X"
        found = {"gamma": gamma}
    elif model.objective_ <= _NOTHING * spread**2:
        tube = f"epsilon={model.epsilon:g} and sharpness={model.sharpness:g}"
        why = f"{tube} tolerate all residuals, and {units}"
        found = {"epsilon": 0.1 * spread, "sharpness": 10.0 / spread}
    elif 0.3 * spread > model.C:
        why = f"C, epsilon and sharpness are in units of the targets, and {units}"
        found = {"C": max(model.C, 1.0) * spread}
        if model.epsilon <= 1e-3 * spread:  # not in units of these targets yet
            found["epsilon"] = model.epsilon * spread
        if model.sharpness * spread >= 1e3:
            found["sharpness"] = model.sharpness / spread
    else:
        return (
            f"{SCALE_FEATURES}, for instance by StandardScaler, raise C, or give "
            "features that say more of the targets"
        )
    if model.margin in _WITHOUT_SHARPNESS:
        found.pop("sharpness", None)
    values = between.join(f"{name}={value:.2g}" for name, value in found.items())
    return f"{why}; try {values}"


def _larger_gamma(model):
    """gamma="scale" of the support vectors, where the one given is far below it."""
    if model.kernel not in ("rbf", "poly", "sigmoid") or not len(model.support_):
        return None
    usual = resolve_gamma("scale", model.support_vectors_, None)
    return usual if model.gamma_ < _SMALL_GAMMA * usual else None
