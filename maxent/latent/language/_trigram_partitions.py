"""Groups of documents as partitions: their words, and passes of the trigram model.

The words of all documents and the factors of the start are found in this process; what
a pass needs of a group stays with its partition: counts, topics and the n-grams. A pass
sends all weights to every partition, and brings back two sums as large.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._partitions.partition_checks import attempt, results_of
from maxent._partitions.partitions import is_partitioned, item_partitions
from maxent._support import validation as v
from maxent.latent.language._ngrams import Codes, NGrams
from maxent.latent.language._trigram_tables import (
    TokenCounts,
    Totals,
    TrigramTopics,
    sums_of,
)

Array = NDArray[np.float64]


class Documents:
    """Documents of a list, or of the partitions of a Dask bag.

    Parameters
    ----------
    X : sequence of sequences of str, or dask.bag.Bag of them

    Attributes
    ----------
    counted : Counter
        How often each word occurs.
    sizes : list of int
        Documents of each partition.
    """

    def __init__(self, X: Any):
        local = not is_partitioned(X)
        if not local and hasattr(X, "ndim"):
            raise TypeError(
                f"X is a Dask collection of type {type(X).__name__}; give documents as "
                "a dask.bag, such as dask.bag.from_sequence(documents, npartitions=8)."
            )
        parts = item_partitions(check_documents(X) if local else X)
        self.parts = parts.holding(parts.update(_words_of, None)[0])
        self.counted: Counter[str] = Counter()
        self.sizes = []
        for size, counted in results_of(self.parts, _count_words):
            self.sizes.append(size)
            self.counted.update(counted)

    def codes(self, vocabulary: dict[str, int]) -> list[Codes]:
        """Numbers of all words; the partitions keep theirs in place of the words."""
        found = self.parts.update(_numbers_of, None, vocabulary)[0]
        self.parts = self.parts.holding(found)
        return [codes for group in self.parts.map(_held) for codes in group]

    def topics(
        self, grams: NGrams, topics: list[NDArray[np.intp]], n_topics: int
    ) -> PartitionedTopics:
        """The model, whose groups of documents stay with the partitions."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        model = PartitionedTopics(grams, topics, n_topics)
        shared = grams, topics, ends, n_topics
        groups, (total,) = self.parts.update(_group_of, None, *shared)
        model.parts, model.total = self.parts.holding(groups), total
        return model


class PartitionedTopics(TrigramTopics):
    """The same model, whose sums over documents are added up over partitions.

    It has observed the text itself: `observed` is the model.
    """

    parts: Any
    total: float

    def totals(self, x: Array, observed: Any, means: bool) -> Totals:
        """Sums over all documents at weights x."""
        total = None if observed is None else self.total
        return Totals(total, *self.parts.total(_pass, x, total, means))


# -- functions of one partition (documents, words, codes or group; number) -------------
def _words_of(documents, _, state):
    """(message of a refusal or None, documents as lists of words), to be kept."""
    return attempt(check_documents, documents), ()


def _count_words(held, _):
    wrong, documents = held
    if wrong is not None:
        raise ValueError(wrong)
    return len(documents), Counter(w for words in documents for w in words)


def _numbers_of(held, _, state, vocabulary):
    return [coded(words, vocabulary) for words in held[1]], ()


def _held(codes, _):
    return codes


def _group_of(codes, i, state, grams, topics, ends, n_topics):
    """((model, counts) of the group, to be kept), its tokens."""
    first = sum(len(t) for t in topics[: ends[i]])
    model = TrigramTopics(grams, topics[ends[i] : ends[i + 1]], n_topics, first)
    counts = TokenCounts([grams.counts(c) for c in codes], model.sizes)
    return (model, counts), (counts.total,)


def _pass(group, _, x, total, means):
    model, counts = group
    return sums_of(model, x, None if total is None else counts, total, means)


# -- words -----------------------------------------------------------------------------
def coded(document: list[str], vocabulary: dict[str, int]) -> Codes:
    """Numbers of the words of a document; 0 for unknown ones."""
    return np.array([vocabulary.get(w, 0) for w in document], dtype=np.int64)


def check_documents(documents: Any, least: int = 3) -> list[list[str]]:
    """Documents as lists of words, at least so many in each."""
    if isinstance(documents, str) or not hasattr(documents, "__iter__"):
        raise ValueError(
            f"X={v.shown(documents)} must be a list of documents, each a list of words."
        )
    if hasattr(documents, "shape") and len(documents.shape) == 2:
        raise ValueError(
            f"X is a matrix of shape {documents.shape}; a trigram model reads words in "
            "their order: pass a list of documents, each a list of words."
        )
    out = [check_document(f"X[{i}]", x, least) for i, x in enumerate(documents)]
    if not out:
        raise ValueError("X holds no document.")
    return out


def check_document(name: str, document: Any, least: int = 3) -> list[str]:
    """Words of one document as a list, at least so many."""
    if isinstance(document, str):
        raise ValueError(f"{name} is a string; give its words: {name}.split().")
    if not hasattr(document, "__iter__"):
        raise ValueError(
            f"{name}={v.shown(document)} is no document, which is a list of words; "
            "drop it."
        )
    words = list(document)
    if len(words) < least:
        raise ValueError(
            f"{name} has {len(words)} words; a trigram model needs three or more in "
            "each document: drop it."
        )
    for j, word in enumerate(words):
        if not isinstance(word, str):
            raise ValueError(
                f"{name}[{j}]={v.shown(word)} is no word: words are strings; drop it, "
                "or write numbers as str(number)."
            )
    return words
