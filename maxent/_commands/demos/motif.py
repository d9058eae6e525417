"""``maxent demo motif``: a motif learnt without knowing where it stands."""

import time

import numpy as np

from maxent._commands.demos._drawing import Demo
from maxent._commands.reports import table

__all__ = ["run_demo"]

_SEQUENCES, _LENGTH, _WIDTH = 200, 30, 6


def run_demo(seed):
    """Train and tell."""
    from maxent.datasets import make_planted_motifs
    from maxent.minentropy import M3EMotifClassifier

    X, y, motif, places = make_planted_motifs(
        2 * _SEQUENCES, _LENGTH, _WIDTH, random_state=seed
    )
    train, test = slice(0, _SEQUENCES), slice(_SEQUENCES, None)
    start = time.perf_counter()
    model = M3EMotifClassifier(
        _WIDTH, background=1, C=10.0, n_init=1, random_state=seed
    )
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    rows = [_counts_row(X, y, train, test)]
    rows.append(_row("motif, hidden place", model.predict, X, y, train, test))
    positive = [i for i in range(_SEQUENCES, 2 * _SEQUENCES) if y[i]]
    found = model.predict_hidden([X[i] for i in positive], y[positive])
    hit = int(np.sum(np.abs(found - places[positive]) <= 1))
    best = "".join("ACGT"[k] for k in motif.argmax(axis=1))
    text = (
        f"DNA sequences of {_LENGTH} letters with a planted site of {_WIDTH}, whole in "
        f"one class and half\nspoilt in the other: {_SEQUENCES} to train, {_SEQUENCES} "
        f"to test (seed {seed}). Labels are known,\nplaces are not.\n\n"
        f"{table(rows)}\n"
        f"Of {len(positive)} test sequences with the site, {hit} have it found, to a "
        f"letter. Planted motif: {best}.\nTime of the fit: {seconds:.1f} s.\n"
    )
    return Demo(
        *(text, bool(model.converged_)),
        lambda figure: _paint(figure, model, X[test], y[test]),
    )


def _row(name, predict, X, y, train, test):
    row = {"machine": name}
    for kind, part in (("train", train), ("test", test)):
        wrong = int(np.sum(predict(X[part]) != y[part]))
        row[f"{kind} error"] = f"{wrong} of {len(y[part])}"
    return row


def _counts_row(X, y, train, test):
    """Row of the table: sequences as counts of three letters, whatever their place."""
    from sklearn.feature_extraction.text import CountVectorizer

    from maxent.latent import MaxEntClassifier

    counts = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False)
    counts.fit(X[train])
    model = MaxEntClassifier().fit(counts.transform(X[train]), y[train])

    def predict(texts):
        return model.predict(counts.transform(texts))

    return _row("counts of 3 letters", predict, X, y, train, test)


def _paint(figure, model, X, y):
    from maxent.displays import MotifLogoDisplay

    MotifLogoDisplay.from_estimator(model, X, y, ax=figure.subplots(1, 2))
