"""Rows by class: codes, weights, labels, equal rows, and the leave-one-out bound."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from maxent._inputs.estimator_input import check_labels
from maxent._support import validation as v
from maxent.discrimination._equal_rows import distinct


def class_rows(name, y, sample_weight, class_weight):
    """Classes, codes and weights of the rows that count.

    Returns
    -------
    classes : ndarray (m,)
        Classes with positive weight, at least two.
    keep : ndarray of int
        Rows of positive weight.
    codes : ndarray of int (len(keep),)
    sample : ndarray (len(keep),)
        Sample weights.
    weight : ndarray (len(keep),)
        Sample weights times class weights.
    """
    check_labels(y)
    v.check_class_weight(class_weight)
    classes, codes = np.unique(y, return_inverse=True)
    sample = v.check_weights(sample_weight, len(codes))
    sample = np.ones(len(codes)) if sample is None else sample
    keep = np.flatnonzero(sample > 0)
    present = np.flatnonzero(np.bincount(codes[keep]))
    if len(present) < 2:
        raise ValueError(
            f"y contains one class only ({classes[present].tolist()}) among rows of "
            f"positive weight; {name} needs two classes: add rows of another."
        )
    factor, total = np.ones(len(classes)), np.bincount(codes, sample)
    # "balanced" counts classes with positive weight; keys may be those of all classes
    which = present if isinstance(class_weight, str) else slice(None)
    factor[which] = v.class_factors(class_weight, classes[which], total[which])
    # classes without weight can never be predicted
    codes = np.searchsorted(present, codes[keep])
    sample = sample[keep]
    return classes[present], keep, codes, sample, sample * factor[present][codes]


class DistinctRows:
    """Rows that are equal and of one class as one row, with the sum of their weights.

    Such rows have one margin, so only the sum of their multipliers is determined, which
    leaves the Hessian of the dual singular; each gets its share by weight.

    Parameters
    ----------
    X : ndarray of int (n, n_features)
        Codes of categories.
    codes : ndarray of int (n,)
        Class of each row.
    weight, cost : ndarray (n,)
        Sample weights, without and with class weights; > 0.

    Attributes
    ----------
    X, codes, weight, cost : ndarray
        Those of the distinct rows, in the order in which they come first.
    """

    def __init__(self, X, codes, weight, cost):
        first, self._place = distinct(np.column_stack([X, codes]))
        self.X, self.codes = X[first], codes[first]
        self.weight = np.bincount(self._place, weight)
        self.cost = np.bincount(self._place, cost)
        self._share = weight / self.weight[self._place]

    def spread(self, lam):
        """Multipliers (n * k,) of all rows from those of the distinct ones."""
        lam = lam.reshape(len(self.weight), -1)
        return (lam[self._place] * self._share[:, None]).ravel()


def leave_one_out_bound(result, codes, margin, bias, weight):
    """Share of rows with a multiplier, or NaN where it bounds no error.

    Parameters
    ----------
    result : DualResult
        `lam` (n,), signed or not, for two classes; (n, m) for several.
    codes : ndarray of int (n,)
        Class of each row.
    margin : MarginPrior
    bias : "flat", float or None
    weight : ndarray (n,)

    Returns
    -------
    float
    """
    if not others_keep_the_machine(result, codes, margin, bias, weight):
        return np.nan
    lam = result.lam
    return float((lam != 0 if lam.ndim == 1 else (lam != 0).any(axis=1)).mean())


def others_keep_the_machine(result, codes, margin, bias, weight):
    """True if the machine without a row of multiplier zero is the same machine.

    It then has that row right (JMJ 1999, Lemma 1), if kernel and weights stay as they
    are, every row of no loss is on its side, and the optimum has one bias. Parameters
    are those of :func:`leave_one_out_bound`.
    """
    if not (result.converged and np.isfinite(margin.prior_mean)):
        return False
    if bias != "flat":
        return True
    lam = np.abs(result.lam)
    if lam.ndim == 1:  # as of several classes, with the one wrong class alone
        lam = lam[:, None]
    return _settles_the_bias(lam, codes, margin, weight)


def _settles_the_bias(lam, codes, margin, weight):
    """True if rows whose loss is curved tie the biases of all classes together.

    Where they do not, the bias may move when a row without a multiplier is left out,
    and misjudge that row.
    """
    curved = lam > 0
    if margin.unit_potential.closed:
        # the loss is linear at both ends, which solvers reach within 1e-3
        share = lam / (margin.upper * weight[:, None])
        curved = (share > 1e-3) & (share < 1 - 1e-3)
    m = lam.shape[1]
    if m == 1:
        return bool(curved.any())
    rows, wrong = np.nonzero(curved)
    links = sp.coo_array((np.ones(len(rows)), (codes[rows], wrong)), shape=(m, m))
    return connected_components(links, directed=False)[0] == 1


def labels_of(scores, classes):
    """Classes (n,) of scores (n,), positive for the second, or (n, n_classes)."""
    if scores.ndim == 1:
        return classes[(scores > 0).astype(np.intp)]
    return classes[scores.argmax(axis=1)]
