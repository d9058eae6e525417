"""Known labels of anomalies, and what a detector finds of them."""

import numpy as np

from maxent._commands.console import tell
from maxent._commands.measures import average_precision, roc_auc, share
from maxent._commands.outcome import CommandError, listed, quoted

__all__ = [
    "detection_measures",
    "is_detector",
    "known_anomalies",
    "refuse_options_of_detectors",
]

# Labels that mean an anomaly, where one of two labels is among them.
_WORDS = {
    *("1", "-1", "true", "yes", "y", "positive", "malignant", "fraud", "attack"),
    *("anomaly", "anomalous", "outlier", "abnormal", "fault", "faulty", "defect"),
}


def is_detector(machine):
    """As scikit-learn's, imported when it is needed."""
    from sklearn.base import is_outlier_detector

    return is_outlier_detector(machine)


def refuse_options_of_detectors(args, machine, *flags):
    """Refuse options that say something of anomalies where a model finds none."""
    if is_detector(machine):
        return
    for flag in flags:
        if vars(args)[flag] is not None:
            raise CommandError(
                f"--{flag} {quoted(vars(args)[flag])} is for detectors, and "
                f"{args.model} is a {type(machine).__name__}"
            )


def known_anomalies(args, y):
    """Marks of the anomalies among the labelled rows, and which rows these are.

    Of -1 and 1 the label -1 means one, as scikit-learn has it, of 0 and 1 the label 1.

    Returns
    -------
    truth, kept : ndarray of bool
        None where the labels do not say, of which ``predict`` tells.

    Raises
    ------
    CommandError
        Where --positive names no label.
    """
    labels = np.array([None if label is None else str(label) for label in y.tolist()])
    kept = np.array([label is not None for label in labels.tolist()])
    known = sorted({*labels[kept].tolist()})
    positive = args.positive
    if positive is None:
        found = [label for label in known if label.lower() in _WORDS]
        positive = "-1" if {*known} <= {"-1", "1"} else (found or [None])[0]
        if len(found) > 1 and positive != "-1":
            positive = None
        if positive is None or len(known) > 2:
            if {*known} <= {"0"}:
                positive = "1"
            else:
                if args.command == "predict":
                    tell(
                        f"maxent predict: hint: the labels are {listed(known)}: "
                        f"--positive {quoted(known[0])} takes that one for anomalies, "
                        "and has recall, precision and ROC AUC computed"
                    )
                return None, None
    elif positive not in known:
        raise CommandError(
            f"--positive {quoted(positive)} is none of the labels of {args.data}: "
            f"{listed(known)}"
        )
    return labels[kept] == positive, kept


def detection_measures(truth, flagged, unusual):
    """Recall, precision, false alarms and ranking measures, by name.

    Parameters
    ----------
    truth, flagged : ndarray of bool (n,)
        Anomalies, and rows that are called so.
    unusual : ndarray (n,)
        Larger for rows that are more unusual.
    """
    hits = int(np.sum(truth & flagged))
    found = {}
    if truth.any():
        found["recall"] = share(hits, truth.sum())
    if flagged.any():
        found["precision"] = share(hits, flagged.sum())
    if not truth.all():
        found["false alarms"] = share(np.sum(flagged & ~truth), np.sum(~truth))
    if truth.any() and not truth.all():
        found["ROC AUC"] = roc_auc(truth, unusual)
        found["average precision"] = average_precision(truth, unusual)
    return found
