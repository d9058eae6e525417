"""Label priors of rows: from labels, probabilities of labels, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from maxent._inputs.estimator_input import check_labels
from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v

UNLABELLED = -1
_SUM = 1e-6  # by which probabilities of all classes may miss one


@dataclass
class LabelPriors:
    """The rows of positive weight and what is known of their labels.

    Attributes
    ----------
    classes : ndarray (2,)
    keep : ndarray of int
        Rows of positive weight.
    sample, weight : ndarray (len(keep),)
        Sample weights; and these times class weights, expected under the prior.
    half_odds : ndarray (len(keep),)
        Half the log odds of ``classes[1]``; infinite for known labels.
    evidence : ndarray (len(keep),)
        How much the prior says of the label: its mean, between -1 and 1, and 0 for
        rows without a label or a probability of their own. Label means start here: at
        `class_prior` rows without a label would all demand one class together.
    all_half_odds : ndarray (n,)
        Of all rows.
    """

    classes: np.ndarray
    keep: np.ndarray
    sample: np.ndarray
    weight: np.ndarray
    half_odds: np.ndarray
    evidence: np.ndarray
    all_half_odds: np.ndarray

    @property
    def open_rows(self):
        """Indices of the rows whose labels are not known."""
        return np.flatnonzero(np.isfinite(self.half_odds))

    @property
    def blank(self):
        """True for rows of which the prior says nothing."""
        return self.evidence == 0

    @property
    def means(self):
        """Label means of all rows before training."""
        return np.tanh(self.all_half_odds)

    def guess(self, rows, rng):
        """Label means of a label drawn for each of these rows from its prior."""
        positive = rng.random(len(rows)) < expit(2.0 * self.half_odds[rows])
        return np.where(positive, 1.0, -1.0)

    def chosen(self, p):
        """Index of the more probable class of every row; -1 where both are alike."""
        return np.where(p == 0, -1, (p > 0).astype(np.intp))


@dataclass
class SeveralPriors:
    """The rows of positive weight and what is known of their labels.

    Attributes
    ----------
    classes : ndarray (n_classes,)
    keep : ndarray of int
        Rows of positive weight.
    sample, weight : ndarray (len(keep),)
        Sample weights; and these times class weights, expected under the prior.
    prior : ndarray (len(keep), n_classes)
        Probabilities of the labels before training.
    evidence : ndarray (len(keep), n_classes)
        Means of s_k under the prior where it says something of the label, 0 elsewhere.
    everything : ndarray (n, n_classes)
        Prior probabilities of all rows.
    """

    classes: np.ndarray
    keep: np.ndarray
    sample: np.ndarray
    weight: np.ndarray
    prior: np.ndarray
    evidence: np.ndarray
    everything: np.ndarray

    def of_class(self, k):
        """LabelPriors of a class against the others."""
        with np.errstate(divide="ignore"):
            logs, others = np.log(self.everything), np.log1p(-self.everything)
        half_odds = 0.5 * (logs - others)[:, k]
        return LabelPriors(
            np.array([False, True]),
            self.keep,
            self.sample,
            self.weight,
            half_odds[self.keep],
            self.evidence[:, k],
            half_odds,
        )

    @property
    def open_rows(self):
        """Indices of the rows whose labels are not known."""
        return np.flatnonzero(self.prior.max(axis=1) < 1.0)

    @property
    def blank(self):
        """True for rows of which the prior says nothing."""
        return (self.evidence == 0).all(axis=1)

    @property
    def means(self):
        """Label means of all rows before training."""
        return 2.0 * self.everything - 1.0

    def guess(self, rows, rng):
        """Label means of a label drawn for each of these rows from its prior."""
        ends = np.cumsum(self.prior[rows], axis=1)
        drawn = (rng.random(len(rows))[:, None] * ends[:, -1:] >= ends).sum(axis=1)
        return np.where(drawn[:, None] == np.arange(len(self.classes)), 1.0, -1.0)

    def chosen(self, q):
        """Index of the most probable class of every row; -1 where two are alike."""
        best = q.argmax(axis=1)
        alike = (q == q.max(axis=1, keepdims=True)).sum(axis=1) > 1
        return np.where(alike, -1, best)


def with_unlabelled(y):
    """Labels with -1 for those that are missing: None, NaN or pandas' NA."""
    labels = v.as_array("y", y)
    if labels.ndim != 1:
        return y
    absent = missing_values(labels)
    if not absent.any():
        return y
    known = labels[~absent].tolist()
    if labels.dtype.kind == "O" and not any(isinstance(one, str) for one in known):
        labels = np.array([UNLABELLED if a else x for a, x in zip(absent, labels)])
    else:
        labels = labels.copy()
        labels[absent] = UNLABELLED
    return labels


def label_priors(name, n, y, label_prior, sample_weight, class_weight, class_prior):
    """Checked LabelPriors of n rows, or SeveralPriors of more than two classes.

    Parameters
    ----------
    name : str
        Of the estimator, for errors.
    y : ndarray (n,) or None
        Labels; -1 is unlabelled.
    label_prior : array-like (n,), (n, n_classes) or None
        Probabilities of ``classes[1]``, or of all classes; NaN takes y.
    class_prior : float, array-like (n_classes,), "labelled" or None
        Probability of ``classes[1]``, or of all classes, for rows without a label;
        None is the same for all.
    """
    if y is None and label_prior is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: give y, with "
            "-1 for rows without a label, or label_prior."
        )
    given = None if label_prior is None else v.as_doubles("label_prior", label_prior)
    classes, codes = _from_labels(name, n, y, given)
    given = given if given is None else _check_probabilities(given, n, len(classes))
    sample = v.check_weights(sample_weight, n)
    sample = np.ones(n) if sample is None else sample
    keep = np.flatnonzero(sample > 0)
    if len(classes) > 2:
        probability = np.full((n, len(classes)), np.nan)
        probability[codes >= 0] = np.eye(len(classes))[codes[codes >= 0]]
        if given is not None:
            probability = np.where(np.isnan(given), probability, given)
        return _of_several(
            classes, probability, sample, keep, y, class_weight, class_prior
        )
    probability = np.where(codes < 0, np.nan, codes == 1)
    if given is not None:
        probability = np.where(np.isnan(given), probability, given)
    evidence = np.where(np.isnan(probability), 0.0, 2.0 * probability - 1.0)
    _check_both_classes(name, classes, evidence, sample, y)
    share = _class_share(class_prior, evidence * sample)
    probability = np.where(np.isnan(probability), share, probability)
    factors = _class_factors(class_weight, classes, (evidence * sample)[keep])
    expected = factors[0] + probability[keep] * (factors[1] - factors[0])
    with np.errstate(divide="ignore"):
        half_odds = 0.5 * (np.log(probability) - np.log1p(-probability))
    return LabelPriors(
        classes,
        keep,
        sample[keep],
        sample[keep] * expected,
        half_odds[keep],
        evidence[keep],
        half_odds,
    )


def _of_several(classes, probability, sample, keep, y, class_weight, class_prior):
    """SeveralPriors from probabilities (n, n_classes), NaN of rows without a label."""
    m = len(classes)
    blank = np.isnan(probability[:, 0])
    told = np.where(blank, -1, np.nan_to_num(probability).argmax(axis=1))
    counts = np.bincount(told[(told >= 0) & (sample > 0)], minlength=m)
    if not counts.all():
        absent = v.shown(classes[int(np.argmin(counts))])
        raise ValueError(
            f"no row of positive weight has class {absent} as its label, or as the "
            "most probable one of its label_prior; label a few rows of each class."
        )
    evidence = np.where(blank[:, None], 0.0, 2.0 * probability - 1.0)
    mass = sample[~blank] @ probability[~blank]
    probability[blank] = _class_shares(class_prior, mass)
    v.check_class_weight(class_weight)
    factors = np.asarray(v.class_factors(class_weight, classes, mass))
    return SeveralPriors(
        classes,
        keep,
        sample[keep],
        sample[keep] * (probability[keep] @ factors),
        probability[keep],
        evidence[keep],
        probability,
    )


def _class_shares(class_prior, mass):
    """Probabilities of several classes for rows without a label."""
    m = len(mass)
    if class_prior is None:
        return np.full(m, 1.0 / m)
    if isinstance(class_prior, str) and class_prior == "labelled":
        return mass / mass.sum()
    shares = v.as_doubles("class_prior", class_prior)
    if not (shares.shape == (m,) and (shares > 0).all()):
        raise ValueError(
            f"class_prior={v.shown(class_prior)} must hold a probability > 0 for each "
            f"of the {m} classes, or be 'labelled' for their shares among labelled "
            "rows, or None."
        )
    if abs(shares.sum() - 1.0) > _SUM:
        raise ValueError(
            f"class_prior={v.shown(class_prior)} adds up to {shares.sum():g}; "
            "probabilities of the classes add up to 1."
        )
    return shares / shares.sum()


def _from_labels(name, n, y, given):
    """Classes, and codes (n,) of the labels, -1 of none.

    Without labels the classes are 0, 1, .. as many as `given` has columns.
    """
    m = given.shape[1] if given is not None and given.ndim == 2 else 2
    nothing = np.arange(max(m, 2)), np.full(n, -1)
    if y is None:
        return nothing
    labelled = np.ones(n, dtype=bool)
    if y.dtype.kind in "biuf" or y.dtype == object:
        labelled = np.array(y != UNLABELLED, dtype=bool)
    check_labels(y[labelled] if labelled.any() else y)  # -1 may stand beside text
    classes = np.unique(y[labelled])
    if len(classes) > 2 and y.dtype.kind == "U" and str(UNLABELLED) in classes:
        raise ValueError(
            "y is text, so that -1 for rows without a label has become the label "
            "'-1'; pass an object array: y=numpy.array([...], dtype=object), or "
            "y = y.astype(object) and y[y == '-1'] = -1."
        )
    if len(classes) == 1:
        _refuse_one_class(name, classes.tolist(), y)
    if not len(classes):
        return nothing
    codes = np.full(n, -1)
    codes[labelled] = np.searchsorted(classes, y[labelled])
    return classes, codes


def _refuse_one_class(name, present, y):
    more = ""
    if y is not None and (np.asarray(y) == UNLABELLED).any():
        more = " (-1 stands for rows without a label; labels -1 and 1 must be recoded)"
    raise ValueError(
        f"y contains one class only ({present}) among labelled rows of positive "
        f"weight{more}; {name} needs two classes: label rows of another."
    )


def _check_probabilities(given, n, m):
    """Probabilities of ``classes[1]``, or (n, m) of several classes; NaN of none."""
    if given.shape != (n, m) and not (m == 2 and given.shape == (n,)):
        each = "one probability of classes_[1]" if m == 2 else f"{m} probabilities"
        raise ValueError(
            f"label_prior has shape {given.shape}; it must hold {each}, or NaN, for "
            f"each of the {n} rows."
        )
    wrong = np.argwhere(~(np.isnan(given) | ((given >= 0) & (given <= 1))))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise ValueError(
            f"label_prior[{', '.join(map(str, at))}]={given[at]:g} is a probability "
            "and must be between 0 and 1, or NaN for the label of y."
        )
    if given.ndim == 1:
        return given
    sums = given.sum(axis=1)
    part = np.isnan(sums) & ~np.isnan(given).all(axis=1)
    wrong = np.flatnonzero(part | (np.abs(sums - 1.0) > _SUM))
    if len(wrong):
        raise ValueError(
            f"label_prior[{wrong[0]}]={v.shown(given[wrong[0]].tolist())} must add up "
            "to 1, or be NaN throughout for the label of y."
        )
    shares = given / np.where(np.isnan(sums), 1.0, sums)[:, None]
    return shares[:, 1] if m == 2 else shares


def _check_both_classes(name, classes, evidence, sample, y):
    """Refuse priors that say nothing, or point to one class only."""
    known = evidence[(sample > 0) & (evidence != 0)]
    if not len(known):
        raise ValueError(
            f"no row of positive weight has a label, or a label_prior other than 1/2: "
            f"{name} would have nothing to start from. Label a few rows of each class."
        )
    if (known > 0).all() or (known < 0).all():
        _refuse_one_class(name, [classes.tolist()[int(known[0] > 0)]], y)


def _class_share(class_prior, evidence):
    """Probability of ``classes[1]`` for rows without a label."""
    if class_prior is None:
        return 0.5
    if isinstance(class_prior, str) and class_prior == "labelled":
        return float(np.maximum(evidence, 0.0).sum() / np.abs(evidence).sum())
    if not (v.is_real(class_prior) and 0 < class_prior < 1):
        raise ValueError(
            f"class_prior={v.shown(class_prior)} must be a probability in (0, 1), "
            "'labelled' for the share of the second class among labelled rows, or "
            "None."
        )
    return float(class_prior)


def _class_factors(
    class_weight: Any, classes: NDArray[Any], evidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of both classes; "balanced" counts labelled rows."""
    v.check_class_weight(class_weight)
    count = np.array([-np.minimum(evidence, 0.0).sum(), np.maximum(evidence, 0).sum()])
    return v.class_factors(class_weight, classes, count)
