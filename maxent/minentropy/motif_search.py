"""Several motifs of two classes of sequences, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.minentropy.motif_table import Motif
from maxent.minentropy.motifs import M3EMotifClassifier, best_places

_HELD_OUT = 4  # every fourth sequence of each class judges the motif


def find_motifs(
    estimator: M3EMotifClassifier,
    X: Any,
    y: ArrayLike,
    n_motifs: int = 3,
    *,
    threshold: float = 1e-4,
    significance: float = 0.05,
) -> list[Motif]:
    """Find several motifs of one class of sequences.

    A classifier learns a motif; its places get random letters in all sequences, and the
    next one is learnt. Three in four sequences of each class learn,
    and the others judge.

    Parameters
    ----------
    estimator : M3EMotifClassifier
        Not changed; its `width` may be a range, and its `random_state` draws the
        letters too.
    X : as for its fit
        Sequences.
    y : array-like (n,)
        Labels of two classes, four sequences of each at least.
    n_motifs : int, default=3
        Largest number of motifs.
    threshold : float, default=1e-4
        Largest p-value of the places that are erased, besides the best place of each
        sequence with the motif.
    significance : float, default=0.05
        The search ends with the first motif of a larger one, which is left out.

    Returns
    -------
    list of Motif
        ``motif_1``, ``motif_2``, ... in the order in which they were found. Their
        `significance` is the one-sided p-value of the Mann-Whitney test that held-out
        sequences with the motif have larger scores than the others.

    Raises
    ------
    ValueError
        As for the fit of the estimator, and for fewer than four sequences of a class.

    See Also
    --------
    Motif.scan : Places of a motif.
    write_motifs : Files for other programs.

    Notes
    -----
    The search is that of MEME and STREME: greedy, with the places of earlier motifs
    erased (Bailey, 2021, STREME). They get letters of the background and not unknown
    ones, which would show the class of a sequence. The test judges each motif on
    sequences from which it did not learn, and is not corrected for their number.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EMotifClassifier, find_motifs
    >>> rng = np.random.default_rng(0)
    >>> X = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(120)]
    >>> y = np.arange(120) % 2
    >>> X = [x[:3] + "TATAAT" + x[9:18] + "GGCCGG" + x[24:] if k else x
    ...      for x, k in zip(X, y)]
    >>> finder = M3EMotifClassifier(6, 0, init="path", tol=1e-2, random_state=0)
    >>> sorted(motif.consensus for motif in find_motifs(finder, X, y, 2))
    ['GGCCGG', 'TATAAT']
    """
    from sklearn.base import clone

    if not isinstance(estimator, M3EMotifClassifier):
        raise v.not_this("estimator", estimator, "an M3EMotifClassifier")
    n_motifs = v.check_count("n_motifs", n_motifs)
    limit = v.check_nonnegative("significance", significance)
    codes = [one.copy() for one in estimator._read(X)]
    y = v.as_array("y", y)
    if len(y) != len(codes):
        raise ValueError(
            f"X has {len(codes)} samples and y {len(y)} labels; one label for each "
            "sample is needed."
        )
    train, test = _halves(y)
    found: list[Motif] = []
    rng = as_generator(estimator.random_state)
    for k in range(1, n_motifs + 1):
        model = clone(estimator).fit([codes[i] for i in train], y[train])
        p = _rank_test(model, [codes[i] for i in test], y[test])
        if p > limit:
            break
        counted = Motif.from_estimator(model, codes, y, name=f"motif_{k}")
        found.append(Motif(**{**counted.get_spec(), "significance": p}))
        if k < n_motifs:
            _erase(model, counted, codes, y, threshold, rng)
    return found


def _halves(y):
    """Sequences that learn, and those that judge: every fourth one of each class."""
    turn = np.empty(len(y), dtype=np.intp)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        if len(own) < _HELD_OUT:
            raise ValueError(
                f"y has {len(own)} of the label {v.shown(label)}; {_HELD_OUT} "
                "sequences of each class are needed, one of them to judge the motifs."
            )
        turn[own] = np.arange(len(own)) % _HELD_OUT
    held_out = turn == _HELD_OUT - 1
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _rank_test(model, X, y):
    """P-value that sequences with the motif score above the others by chance."""
    from scipy.stats import mannwhitneyu

    sign = 1.0 if model.pos_label_ == model.classes_[-1] else -1.0
    scores, has = sign * model.decision_function(X), y == model.pos_label_
    return float(mannwhitneyu(scores[has], scores[~has], alternative="greater").pvalue)


def _erase(model, motif, codes, y, threshold, rng):
    """Put random letters at all places of a motif."""
    index, start, _ = best_places(model, codes, y)
    both = model.both_strands
    places = motif.scan(codes, both_strands=both, threshold=threshold)
    for i, at in [*zip(index, start), *zip(places.index, places.start)]:
        letters = rng.choice(len(motif.alphabet), len(motif), p=motif.background)
        codes[i][at : at + len(motif)] = letters
