"""Label priors of rows: from labels, probabilities of labels, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v
from maxent._support.estimator_input import check_labels
from maxent._support.remedies import ONE_AGAINST_REST

UNLABELLED = -1


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
    """Checked LabelPriors of n rows.

    Parameters
    ----------
    name : str
        Of the estimator, for errors.
    y : ndarray (n,) or None
        Labels; -1 is unlabelled.
    label_prior : array-like (n,) or None
        Probabilities of ``classes[1]``; NaN takes y.
    class_prior : float, "labelled" or None
        Probability of ``classes[1]`` for rows without a label; None is 1/2.
    """
    classes, probability = _from_labels(name, n, y)
    if label_prior is not None:
        given = _check_probabilities(label_prior, n)
        probability = np.where(np.isnan(given), probability, given)
    elif y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: give y, with "
            "-1 for rows without a label, or label_prior."
        )
    sample = v.check_weights(sample_weight, n)
    sample = np.ones(n) if sample is None else sample
    evidence = np.where(np.isnan(probability), 0.0, 2.0 * probability - 1.0)
    _check_both_classes(name, classes, evidence, sample, y)
    share = _class_share(class_prior, evidence * sample)
    probability = np.where(np.isnan(probability), share, probability)
    keep = np.flatnonzero(sample > 0)
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


def _from_labels(name, n, y):
    """Two classes, and probabilities (n,) of the second; NaN without a label."""
    if y is None:
        return np.array([0, 1]), np.full(n, np.nan)
    labelled = np.ones(n, dtype=bool)
    if y.dtype.kind in "biuf" or y.dtype == object:
        labelled = np.array(y != UNLABELLED, dtype=bool)
    check_labels(y[labelled] if labelled.any() else y)  # -1 may stand beside text
    classes = np.unique(y[labelled])
    if len(classes) > 2:
        if y.dtype.kind == "U" and str(UNLABELLED) in classes:
            raise ValueError(
                "y is text, so that -1 for rows without a label has become the label "
                "'-1'; pass an object array: y=numpy.array([...], dtype=object), or "
                "y = y.astype(object) and y[y == '-1'] = -1."
            )
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"multiclass: y has the {len(classes)} classes "
            f"{v.shown(classes.tolist())} besides -1 for rows without a label; "
            f"{ONE_AGAINST_REST} where all labels are known, or fit one machine for "
            "each class."
        )
    if len(classes) == 1:
        _refuse_one_class(name, classes.tolist(), y)
    if not len(classes):
        return np.array([0, 1]), np.full(n, np.nan)
    probability = np.full(n, np.nan)
    probability[labelled] = y[labelled] == classes[1]
    return classes, probability


def _refuse_one_class(name, present, y):
    more = ""
    if y is not None and (np.asarray(y) == UNLABELLED).any():
        more = " (-1 stands for rows without a label; labels -1 and 1 must be recoded)"
    raise ValueError(
        f"y contains one class only ({present}) among labelled rows of positive "
        f"weight{more}; {name} needs two classes: label rows of another."
    )


def _check_probabilities(label_prior, n):
    given = v.as_doubles("label_prior", label_prior)
    if given.shape != (n,):
        raise ValueError(
            f"label_prior has shape {given.shape}; it must hold one probability of "
            f"classes_[1], or NaN, for each of the {n} rows."
        )
    wrong = np.flatnonzero(~(np.isnan(given) | ((given >= 0) & (given <= 1))))
    if len(wrong):
        t = int(wrong[0])
        raise ValueError(
            f"label_prior[{t}]={given[t]:g} is a probability and must be between 0 "
            "and 1, or NaN for the label of y."
        )
    return given


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
