"""Learning and applying the metric of a Fisher kernel: centre and Cholesky factor."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import eigvalsh, solve_triangular
from scipy.linalg.lapack import dpocon, dpotrf

from maxent._support import validation as v
from maxent._support.validation import user_stacklevel

_ESTIMATED = ("empirical", "diagonal")
_NAMES = (*_ESTIMATED, "identity")
_ARRAYS = ", or an array of shape (p, p) or (p,)"
_SMALL = (
    1e-4  # of the mean information, by which scores of one sign are measured at least
)
_EPS = np.finfo(np.float64).eps
_REMEDY = (
    "Add a ridge (such as ridge=0.01), drop redundant parameters, or use "
    "information='diagonal' or 'identity'."
)


def learn_whitening(R, information, ridge, center):
    """Centre and Cholesky factor of the information, from checked scores.

    Parameters
    ----------
    R : ndarray (r, p)
    information, ridge, center
        As for :func:`fisher_kernel`.

    Returns
    -------
    mean : ndarray (p,)
    factor : ndarray (p, p) lower triangular, or (p,) for a diagonal information
    """
    ridge = v.check_nonnegative("ridge", ridge)
    center = v.check_bool("center", center)
    n, p = R.shape
    with np.errstate(over="ignore"):
        mean = R.mean(axis=0) if center else np.zeros(p)
    if not np.isfinite(mean).all():
        raise ValueError("the mean score overflows. Rescale the parameters.")
    if not is_estimated(information):
        return mean, _factor(_given_information(information, p), ridge, 1)
    full = information == "empirical"
    if (full and ridge == 0 and n - center <= p) or n - center == 0:
        raise ValueError(_too_few_rows(n, p, center))
    F = _estimate(R, mean, information, center)
    factor = _factor(F, ridge, n)
    if not center:
        _warn_of_a_mean(R, F)
    if full:
        _warn_of_few_rows(n, F, ridge)
    return mean, factor


def whiten(U, mean, factor):
    """``(U - mean) L^{-T}``, refused where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if factor.ndim == 1:
            Phi = (U - mean) / factor
        else:
            Phi = solve_triangular(
                factor,
                (U - mean).T,
                lower=True,
                overwrite_b=True,
                check_finite=False,
            ).T
    if not np.isfinite(Phi).all():
        raise ValueError(
            f"the whitened scores overflow: scores reach {np.abs(U).max():.3g}. "
            "Rescale the parameters of the model, or the information with them."
        )
    return np.ascontiguousarray(Phi)


def is_estimated(information):
    """True if the information is taken from scores; refuses unknown names."""
    if isinstance(information, str) and information not in _NAMES:
        raise v.unknown("information", information, _NAMES, _ARRAYS)
    return isinstance(information, str) and information in _ESTIMATED


def _estimate(R, mean, information, center):
    """Mean of u u' over the centred rows u, or its diagonal."""
    with np.errstate(over="ignore", invalid="ignore"):
        U = (R - mean) / np.sqrt(len(R))
        F = np.einsum("ij,ij->j", U, U) if information == "diagonal" else U.T @ U
    if center:
        # what centring leaves of a constant column is rounding, not information
        constant = np.ptp(R, axis=0) <= 4 * _EPS * np.abs(mean)
        F[..., constant] = 0.0
        F[constant] = 0.0
    return F


def _given_information(information, p):
    """Checked matrix (p, p) or diagonal (p,)."""
    if isinstance(information, str):
        return np.ones(p)
    if information is None:
        raise v.unknown("information", information, _NAMES, _ARRAYS)
    F = np.array(v.as_doubles("information", information))
    if F.shape not in ((p,), (p, p)):
        raise ValueError(
            f"information has shape {F.shape}, but the scores have {p} parameters; "
            f"expected ({p}, {p}), or ({p},) for a diagonal."
        )
    if not np.isfinite(F).all():
        where = np.argwhere(~np.isfinite(F))[0].tolist()
        raise ValueError(f"information{where}={F[tuple(where)]} is not finite.")
    if F.ndim == 2:
        # on the scale of its diagonal, which may span many orders of magnitude
        size = np.sqrt(np.abs(np.diagonal(F)))
        off = np.abs(F - F.T) > 1e-8 * np.outer(size, size)
        if off.any():
            i, j = np.argwhere(off)[0]
            raise ValueError(
                f"information is not symmetric: [{i}, {j}] is {F[i, j]:g} but "
                f"[{j}, {i}] is {F[j, i]:g}. Use (F + F.T) / 2 if that is what you "
                "mean."
            )
    return F


def _factor(F, ridge, n):
    """Lower Cholesky factor of F plus ridge, (p, p), or square roots (p,).

    F is a mean over n rows (1 if it is given), which sets its rounding error.
    """
    if not (np.abs(F) < 1e300).all():
        raise ValueError(
            "the information overflows double precision. Rescale the parameters of "
            "the model."
        )
    diagonal = F if F.ndim == 1 else np.diagonal(F)
    level = ridge * diagonal.mean()
    if not (diagonal + level > 0).all():
        j = int(np.argmin(diagonal))
        what = (
            "no information (its score is zero or constant on every row)"
            if diagonal[j] == 0
            else f"information {diagonal[j]:g}, which is no variance"
        )
        raise ValueError(f"parameter {j} has {what}. {_REMEDY}")
    if F.ndim == 1:
        return np.sqrt(F + level)
    F = F.copy()
    F.flat[:: len(F) + 1] += level
    # With unit diagonal the pivots are shares of variance that earlier parameters
    # leave unexplained, and the units of the parameters play no part.
    size = np.sqrt(np.diagonal(F))
    F /= size
    F /= size[:, None]
    return _unit_factor(F, n) * size[:, None]


def _unit_factor(F, n):
    """Lower Cholesky factor of an information with unit diagonal, if it is definite."""
    norm = np.abs(F).sum(axis=0).max()
    L, failed = dpotrf(F, lower=1, clean=1)
    if failed:
        raise ValueError(
            "the information is not positive definite: its Cholesky factor ends at "
            f"parameter {failed - 1}. That parameter is redundant, a combination of "
            f"the ones before it, or the matrix given is no information. {_REMEDY}"
        )
    rcond, _ = dpocon(L, norm, uplo="L")
    if rcond < 10 * max(len(F), np.sqrt(n)) * _EPS:
        j = int(np.argmin(np.diagonal(L)))
        raise ValueError(
            f"the information is singular within rounding (reciprocal condition "
            f"{rcond:.1e}): parameter {j} is nearly a combination of the ones before "
            f"it. {_REMEDY}"
        )
    return L


def _too_few_rows(n, p, center):
    if n - center == 0:
        return (
            "center=True leaves nothing of n_samples = 1 row; give more rows, or use "
            "center=False."
        )
    less = ", less one for the centre," if center else ""
    return (
        f"an empirical information of n_samples = {n} rows{less} for {p} parameters "
        f"makes the kernel of these rows {n} times the identity, whatever the data. "
        f"{_REMEDY} Or give the information, or estimate it from more rows (draws "
        "from the model will do)."
    )


def _warn_of_few_rows(n, F, ridge):
    """Warn if the rows are few for the parameters that the ridge leaves free.

    The kernel of the rows themselves has trace ``n trace((F + r I)^{-1} F)``, n times
    the effective number of parameters, against n^2 for n times the identity.
    """
    effective = len(F)
    if ridge > 0:
        s = np.maximum(eigvalsh(F, check_finite=False), 0.0)
        total = s + ridge * s.mean()
        effective = float(np.sum(s[total > 0] / total[total > 0]))
    if n < 5 * effective:
        warnings.warn(
            f"an empirical information of {n} rows for {effective:.4g} effective "
            f"parameters is noisy: use at least {int(np.ceil(5 * effective))} rows, a "
            "larger ridge, or information='diagonal'.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def _warn_of_a_mean(R, F):
    """Warn if the mean score of the rows is not zero: theta is not their fit.

    Pseudo-counts leave tiny scores of one sign, nearly constant and so up to sqrt(n)
    standard errors from zero; these count by the size of the other scores.
    """
    own = F if F.ndim == 1 else np.diagonal(F)
    some = own > 0
    one_sign = (R >= 0).all(axis=0) | (R <= 0).all(axis=0)
    size = own + np.where(one_sign, _SMALL * own.mean(), 0.0)
    z = np.sqrt(len(R) / size[some]) * np.abs(R.mean(axis=0)[some])
    if z.size and z.max() > 6:
        j = int(np.flatnonzero(some)[np.argmax(z)])
        warnings.warn(
            f"the mean score of parameter {j} is {z.max():.3g} standard errors from "
            "zero, so the information is not estimated at the fit of these rows; use "
            "center=True, or rows that the model was fitted on.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
