"""Measures of predictions with standard errors.

Shares have binomial standard errors, means those of means, and ROC AUC those of DeLong;
RMSE and R2 have them by the delta method, average precision by the bootstrap.

Source: DeLong, DeLong & Clarke-Pearson (1988), Biometrics 44:837-845.
"""

import math
from dataclasses import dataclass

import numpy as np

from maxent.displays.roc import placements

__all__ = [
    "Estimate",
    "average_precision",
    "calibration_table",
    "log_loss",
    "mean_of",
    "mean_roc_auc",
    "regression_measures",
    "roc_auc",
    "share",
]

_LEAST = float(np.finfo(np.float64).eps)  # probability in a log-loss, as scikit-learn's
_RESAMPLES = 200
_N_BINS = 10


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error or NaN where there is none, and counts of a share."""

    value: float
    error: float = math.nan
    counts: tuple[int, int] | None = None

    def __str__(self):
        of = "" if self.counts is None else " ({} of {})".format(*self.counts)
        return self._number() + of

    def _number(self):
        if not math.isfinite(self.error):
            return f"{self.value:.4g}"
        # as many digits as the first two of the error have
        digits = 4
        if self.error > 1e-12 * abs(self.value):  # no rounding of folds that are alike
            digits = min(max(1 - math.floor(math.log10(self.error)), 0), 8)
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"

    def as_dict(self):
        """Value and standard error, None where it is not known; counts of a share."""
        error = self.error if math.isfinite(self.error) else None
        found = {"value": self.value, "standard_error": error}
        if self.counts is not None:
            found |= dict(zip(("count", "total"), self.counts))
        return found


def share(count, total):
    """A share of independent rows; none and all of them have no standard error."""
    count, total = int(count), int(total)
    p = count / total if total else math.nan
    error = math.sqrt(p * (1 - p) / total) if 0 < count < total else math.nan
    return Estimate(p, error, (count, total))


def mean_of(values):
    """The mean of independent values."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Estimate(float(np.mean(values)), error)


def log_loss(proba, codes):
    """Mean of the negative logs of the probabilities (n, K) of the true classes."""
    proba = np.clip(proba, _LEAST, 1 - _LEAST)
    proba = proba / proba.sum(axis=1, keepdims=True)
    return mean_of(-np.log(proba[np.arange(len(codes)), codes]))


def _placements(positive, score):
    """Share of the other class that every row is on the right side of."""
    out = np.empty(len(score))
    out[positive], out[~positive] = placements(score, positive)
    return out


def roc_auc(positive, score):
    """Area under the ROC curve, with DeLong's standard error.

    Parameters
    ----------
    positive : ndarray of bool (n,)
    score : ndarray (n,)
        Larger for rows that are more likely positive.

    Returns
    -------
    estimate : Estimate
        NaN where a class has no row.
    """
    n_pos = int(positive.sum())
    if not 0 < n_pos < len(positive):
        return Estimate(math.nan)
    placed = _placements(positive, score)
    error = math.nan
    if 1 < n_pos < len(positive) - 1:
        parts = (placed[positive], placed[~positive])
        error = math.sqrt(sum(np.var(p, ddof=1) / len(p) for p in parts))
    return Estimate(float(placed[positive].mean()), error)


def mean_roc_auc(codes, scores):
    """Mean of the areas of every class against the others.

    The standard error is that of the sum of the placements that a row has in all of
    them, so that it counts how they depend on each other.
    """
    classes = [k for k in range(scores.shape[1]) if 0 < np.sum(codes == k) < len(codes)]
    if not classes:
        return Estimate(math.nan)
    areas, influence = [], np.zeros(len(codes))
    for k in classes:
        positive = codes == k
        placed = _placements(positive, scores[:, k])
        areas.append(placed[positive].mean())
        for own in (positive, ~positive):
            influence[own] += (placed[own] - areas[-1]) / own.sum()
    error = math.sqrt(float(influence @ influence)) / len(classes)
    return Estimate(float(np.mean(areas)), error)


def average_precision(positive, score, seed=0):
    """Mean of the precision over the positives, rows by falling score.

    Rows of equal score count together, as in scikit-learn. The standard error is of
    200 resamples of the rows.
    """
    n_pos = int(positive.sum())
    if not 0 < n_pos < len(positive):
        return Estimate(math.nan)
    order = np.argsort(-score, kind="stable")
    hits, score = positive[order], score[order]
    ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    value = _precision_at_hits(hits, np.ones(len(hits)), ends)
    rng, n = np.random.default_rng(seed), len(hits)
    drawn = []
    for _ in range(_RESAMPLES):
        weight = np.bincount(rng.integers(0, n, n), minlength=n)
        if weight[hits].any():
            drawn.append(_precision_at_hits(hits, weight, ends))
    return Estimate(value, float(np.std(drawn, ddof=1)))


def _precision_at_hits(hits, weight, ends):
    found = np.cumsum(weight * hits)[ends]
    taken = np.cumsum(weight)[ends]
    precision = np.divide(found, taken, out=np.zeros(len(ends)), where=taken > 0)
    return float(np.diff(found, prepend=0.0) @ precision / found[-1])


def calibration_table(proba, hit):
    """Observed shares against probabilities, in ten bins of equal width.

    Parameters
    ----------
    proba : ndarray (n,)
        Probabilities of an event.
    hit : ndarray of bool (n,)
        Whether it was.

    Returns
    -------
    table : list of dict
        Of every bin with rows "from", "to", "rows", "mean" of the probabilities, and
        "observed", an Estimate.
    """
    place = np.minimum((proba * _N_BINS).astype(int), _N_BINS - 1)
    table = []
    for k in range(_N_BINS):
        own = place == k
        if own.any():
            n = int(own.sum())
            table.append(
                {
                    "from": k / _N_BINS,
                    "to": (k + 1) / _N_BINS,
                    "rows": n,
                    "mean": float(proba[own].mean()),
                    "observed": share(hit[own].sum(), n),
                }
            )
    return table


def regression_measures(predicted, y):
    """RMSE, MAE and R2 by name."""
    residual, n = y - predicted, len(y)
    squares = residual**2
    mse, spread = float(squares.mean()), (y - y.mean()) ** 2
    variance, root = float(spread.mean()), float(np.sqrt(squares.mean()))
    found = {"RMSE": Estimate(root), "MAE": mean_of(np.abs(residual))}
    if n > 1 and root > 0:
        error = float(np.std(squares, ddof=1)) / (2 * root * math.sqrt(n))
        found["RMSE"] = Estimate(root, error)
    if variance > 0:
        influence = mse * (spread - variance) / variance**2 - (squares - mse) / variance
        error = float(np.sqrt(np.mean(influence**2) / n)) if n > 1 else math.nan
        found["R2"] = Estimate(1 - mse / variance, error)
    return found
