"""Features on a common scale, which a model file keeps as numbers."""

import numpy as np

from maxent._commands.outcome import CommandError

__all__ = ["are_scales", "scales_of", "standardized"]


def scales_of(X, name, weights=None):
    """Mean and scale of every feature; sparse features keep their zeros."""
    from sklearn.preprocessing import StandardScaler

    dense = isinstance(X, np.ndarray)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(with_mean=dense).fit(X, sample_weight=weights)
    wild = np.flatnonzero(~np.isfinite(scaler.var_))
    if wild.size:
        raise CommandError(
            f"{name}: the values of feature {wild[0]} (counted from 0) are too large "
            "to standardize"
        )
    return {"mean": scaler.mean_ if dense else None, "scale": scaler.scale_}


def standardized(X, scales):
    """The rows on these scales; None leaves them."""
    if scales is None:
        return X
    mean, scale = scales["mean"], scales["scale"]
    if not isinstance(X, np.ndarray):
        if mean is None:
            X = X.copy()
            X.data /= scale[X.indices]
            return X
        X = X.toarray()
    with np.errstate(over="ignore"):  # infinity is refused by the estimator
        return (X if mean is None else X - mean) / scale


def are_scales(scales, n):
    """True if what a file says of its scales can be one of `scales_of`."""
    if not isinstance(scales, dict):
        return False
    mean, scale = scales.get("mean"), scales.get("scale")
    return all(
        isinstance(part, np.ndarray) and part.shape == (n,) and np.isfinite(part).all()
        for part in (scale if mean is None else mean, scale)
    ) and bool((scale > 0).all())
