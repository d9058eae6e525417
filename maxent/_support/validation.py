"""Shortcuts over scikit-learn's validation, with errors that name the remedy."""

from __future__ import annotations

import numbers

import numpy as np


def check_positive(name, value, *, allow_inf=False):
    """Float of a parameter that must be a finite number > 0."""
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, numbers.Real)
        or not value > 0
        or (not allow_inf and not np.isfinite(value))
    ):
        raise ValueError(f"{name}={value!r} must be a finite number > 0.")
    return float(value)


def check_nonnegative(name, value):
    """Float of a parameter that must be a finite number >= 0."""
    if not isinstance(value, numbers.Real) or not (0 <= value < np.inf):
        raise ValueError(f"{name}={value!r} must be a finite number >= 0.")
    return float(value)


def check_count(name, value):
    """Int of a parameter that must be an integer >= 1."""
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, numbers.Integral)
        or value < 1
    ):
        raise ValueError(f"{name}={value!r} must be an integer >= 1.")
    return int(value)


def check_bias(bias):
    """ "flat", None, or the variance of a Gaussian prior as a float."""
    if bias is None or (isinstance(bias, str) and bias == "flat"):
        return bias
    if isinstance(bias, numbers.Real) and 0 < bias < np.inf:
        return float(bias)
    raise ValueError(
        f"bias={bias!r} must be 'flat', None, or a variance > 0 of a Gaussian prior."
    )


def check_weights(sample_weight, n):
    """Float array of nonnegative finite weights, or None."""
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {w.shape}, expected ({n},): one weight a row."
        )
    if not np.isfinite(w).all():
        raise ValueError("sample_weight contains NaN or infinity.")
    if (w < 0).any():
        raise ValueError(
            f"sample_weight[{int(np.argmin(w))}]={w.min():g} is negative; weights "
            "must be >= 0 (0 drops a row)."
        )
    if not (w > 0).any():
        raise ValueError("sample_weight is zero on every row; nothing is left to fit.")
    return w


def check_multipliers(init, n):
    """Float array of starting multipliers >= 0."""
    init = np.asarray(init, dtype=np.float64)
    if init.shape != (n,):
        raise ValueError(f"init has shape {init.shape}, expected ({n},).")
    if not np.isfinite(init).all() or (init < 0).any():
        raise ValueError("init must hold finite multipliers >= 0.")
    return init


def check_signs(y):
    """Labels as -1.0 and +1.0, both present."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; expected one label a row.")
    if not np.isin(y, (-1, 1)).all():
        raise ValueError(
            f"y must contain -1 and +1 only; found {np.unique(y)[:5].tolist()}."
        )
    if len(y) and (y == y[0]).all():
        raise ValueError(f"y contains one class only ({y[0]}); two are needed.")
    return np.ascontiguousarray(y, dtype=np.float64)


def check_gram(K, n=None):
    """Square, finite, symmetric kernel matrix in double precision."""
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K has shape {K.shape}; a kernel matrix must be square.")
    if n is not None and len(K) != n:
        raise ValueError(f"K has {len(K)} rows but y has {n}.")
    K = np.ascontiguousarray(K, dtype=np.float64)
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"K[{i}, {j}]={K[i, j]} is not finite.")
    scale = float(np.abs(K).max(initial=0.0))
    # by blocks, so that no second matrix of this size is needed
    for lo in range(0, len(K), 512):
        difference = np.abs(K[lo : lo + 512] - K[:, lo : lo + 512].T)
        if difference.size and difference.max() > 1e-8 * scale:
            i, j = np.unravel_index(np.argmax(difference), difference.shape)
            raise ValueError(
                f"K is not symmetric: K[{lo + i}, {j}]={K[lo + i, j]:g} but "
                f"K[{j}, {lo + i}]={K[j, lo + i]:g}. Use (K + K.T) / 2 if that is "
                "what you mean."
            )
    return K
