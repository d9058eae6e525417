"""Topics of a fitted trigram model: shares in documents, and words that tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.underflow import allow_underflow
from maxent.latent.language._trigram_partitions import check_documents, coded

Array = NDArray[np.float64]


class TopicsOfWords(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Part of TrigramTopicModel: what a fitted model says of its topics."""

    n_topics: int
    vocabulary_: dict[str, int]
    _scorer: Any  # gives TrigramScores

    @allow_underflow
    def transform(self, X: Sequence[Sequence[str]]) -> Array:
        """Return the shares of the topics in documents.

        The topics of a document are fitted to all its words; a share is the mean
        posterior probability of the topic over these words.

        Parameters
        ----------
        X : sequence of sequences of str
            Documents, each a list of words; unknown ones count as "<unk>".

        Returns
        -------
        ndarray (n, n_topics)
            Rows of sum 1. Documents of fewer than three words, and those without a
            known word, have the shares of the prior, all alike.
        """
        check_is_fitted(self)
        documents = check_documents(X, least=0)
        out = np.full((len(documents), self.n_topics), 1.0 / self.n_topics)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scorer = self._scorer()
            for row, words in zip(out, documents):
                codes = coded(words, self.vocabulary_)
                if len(codes) > 2 and codes.any():
                    row[:] = scorer.shares(codes)
        return checked_finite(out)

    def top_words(self, n_words: int = 10) -> list[list[str]]:
        """Return the words that tell each topic from the others.

        They are those that add most to the divergence of the words of the topic from
        those of all topics, p(w | t) log p(w | t) / p(w).

        Parameters
        ----------
        n_words : int, default=10
            Words of each topic, >= 1.

        Returns
        -------
        list of list of str
            For each topic, the strongest first; "<unk>" is left out, and so are words
            that are rarer in the topic than in all. Of a single topic, its most
            frequent words.
        """
        n_words = v.check_count("n_words", n_words)
        share = self.components_
        words = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        gain = rel_entr(share, share.mean(axis=0))
        order = np.lexsort((-share, -gain))[:, : n_words + 1]  # "<unk>" may be there
        return [
            [words[k] for k in row if k and own[k] >= 0][:n_words]
            for row, own in zip(order, gain)
        ]

    @property
    def components_(self) -> Array:
        """Probabilities (n_topics, n_words) of the words in each topic."""
        check_is_fitted(self)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return checked_finite(self._scorer().words_of_topics())

    @property
    def _n_features_out(self):
        return self.n_topics


def checked_finite(found):
    """Values of a fitted model, which is not trusted."""
    if not np.isfinite(found).all():
        raise ValueError(
            "the fitted model is inconsistent: its weights give no probabilities. Fit "
            "it again."
        )
    return found
