"""What ``maxent info`` says of some models: motifs, likely columns, topics.

Only what a file holds is read; nothing of it is run. Arrays that do not agree give no
line: loading says what is wrong with them.
"""

import numpy as np

from maxent._commands.outcome import listed
from maxent._persistence.persistence import resolve_class

__all__ = ["summary"]

_MOST_WORDS = 8  # of a topic


def summary(machine, names=None):
    """Lines about what a model has learnt.

    Parameters
    ----------
    machine : dict
        Its "class", "params" and "fitted".
    names : list of str or None
        Names of the columns.
    """
    make = _LINES.get(machine["class"])
    if make is None:
        return []
    try:
        return make(machine["params"], machine["fitted"], names)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return []


def _motif(params, fitted, _):
    """Heaviest letters, and by how much they outweigh the mean of their position."""
    letters, width, classes = params["alphabet"], params["width"], fitted["classes_"]
    weights = fitted["coef_"][: width * len(letters)].reshape(width, -1)
    label = params.get("pos_label")
    label = classes[-1] if label is None else label
    consensus = "".join(letters[k] for k in weights.argmax(axis=1))
    height = weights.max(axis=1) - weights.mean(axis=1)
    return [
        (f"motif of {label}", consensus),
        ("  weight of letter", " ".join(f"{h:.2g}" for h in height)),
    ]


def _likely(params, fitted, names):
    """Columns by falling probability of being in use."""
    proba = fitted["inclusion_proba_"]
    if names is None or len(names) != len(proba):
        names = range(len(proba))
    order = np.argsort(-proba, kind="stable").tolist()
    shown = [f"{names[k]} ({proba[k]:.2f})" for k in order]
    given = {key: params[key] for key in ("threshold", "prior_inclusion")}
    selector = resolve_class("MEDFeatureSelector")(**given)  # both select alike
    selector.inclusion_proba_ = proba
    if proba.max() <= selector.threshold_:
        return [("likely columns", f"none; the likeliest is {shown[0]}")]
    return [("likely columns", listed(shown))]


def _topics(params, fitted, _):
    """Words that gain the most weight by each topic."""
    words = sorted(fitted["vocabulary_"], key=fitted["vocabulary_"].__getitem__)
    weights = fitted["candidate_weights_"][str(fitted["selected_"])]
    width = 1 + params["n_topics"]
    table = weights[: len(words) * width].reshape(len(words), width)[1:, 1:]
    heaviest = np.argsort(-table, axis=0, kind="stable")[:_MOST_WORDS]
    return [
        (f"topic {t}", " ".join(words[1 + k] for k in column))
        for t, column in enumerate(heaviest.T)
    ]


_LINES = {
    "M3EMotifClassifier": _motif,
    "MEDFeatureSelector": _likely,
    "MEDRegressionSelector": _likely,
    "TrigramTopicModel": _topics,
}
