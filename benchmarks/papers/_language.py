"""Models of language to compare with: interpolated trigrams, and PLSA.

Documents are sequences of word numbers. Every model gives log p of the words from the
third on, given the words before them in the document.

Sources: Jelinek & Mercer (1980) for the interpolation; Hofmann (1999) for PLSA.
"""

import numpy as np

_HISTORIES = (0, 1, 2, 4, 8, 16, 64, 256, 1024)  # edges of counts of a history


def _counted(keys):
    return np.unique(keys, return_counts=True)


def _of(table, keys):
    """Counts of keys, 0 where they were not seen."""
    known, count = table
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, count[at], 0)


class InterpolatedTrigram:
    """Deleted interpolation of trigram, bigram, unigram and uniform frequencies.

    The weights depend on how often the two words before were seen, and are fitted by
    EM to every tenth training document, of which the counts know nothing; the counts
    of all documents are used afterwards.

    Parameters
    ----------
    documents : list of ndarray of int
    n_words : int
        Size of the vocabulary.
    min_count : int
        Trigrams seen less often are dropped.
    """

    def __init__(self, documents, n_words, min_count=1):
        self.V, self.min_count = n_words, min_count
        held = [d for i, d in enumerate(documents) if i % 10 == 9]
        rest = [d for i, d in enumerate(documents) if i % 10 != 9]
        self._count(rest)
        parts, buckets = zip(*(self._parts(d) for d in held))
        self._fit(np.concatenate(parts), np.concatenate(buckets))
        self._count(documents)

    def _count(self, documents):
        V = self.V
        self.words = np.bincount(np.concatenate(documents), minlength=V)
        self.pairs = _counted(np.concatenate([d[:-1] * V + d[1:] for d in documents]))
        # the numbers of words before which a pair or a word stands
        self.before = np.bincount(
            np.concatenate([d[:-1] for d in documents]), minlength=V
        )
        triples = [(d[:-2] * V + d[1:-1]) * V + d[2:] for d in documents]
        known, count = _counted(np.concatenate(triples))
        keep = count >= self.min_count
        self.triples = known[keep], count[keep]
        own = known[keep] // V
        found, at = np.unique(own, return_inverse=True)
        self.histories = found, np.bincount(at, weights=count[keep])

    def _parts(self, d):
        """Frequencies (n - 2, 4) of each word by every order, and its bucket."""
        V = self.V
        history = d[:-2] * V + d[1:-1]
        seen = _of(self.histories, history)
        third = _of(self.triples, history * V + d[2:]) / np.maximum(seen, 1)
        second = _of(self.pairs, d[1:-1] * V + d[2:]) / np.maximum(
            self.before[d[1:-1]], 1
        )
        first = self.words[d[2:]] / self.words.sum()
        uniform = np.full(len(first), 1.0 / V)
        bucket = np.searchsorted(_HISTORIES, seen, side="right") - 1
        return np.column_stack([third, second, first, uniform]), bucket

    def _fit(self, parts, buckets):
        self.share = np.full((len(_HISTORIES), 4), 0.25)
        for b in range(len(_HISTORIES)):
            own = parts[buckets == b]
            for _ in range(200 if len(own) else 0):
                joint = own * self.share[b]
                self.share[b] = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)

    def log_prob(self, d):
        """log p of each word from the third on."""
        parts, bucket = self._parts(d)
        return np.log((parts * self.share[bucket]).sum(axis=1))


class TopicUnigram:
    """PLSA mixed with the unigram: (1 - a) sum_t p(t | d) p(w | t) + a p(w).

    p(t | d) of a new document and the weight a are fitted by EM to its words already
    read, every `fold_in` words.
    """

    def __init__(self, documents, n_words, n_topics, seed=0):
        from scipy.sparse import csr_array
        from sklearn.decomposition import NMF

        rows = np.array([np.bincount(d, minlength=n_words) for d in documents])
        model = NMF(
            n_topics,
            init="random",
            beta_loss="kullback-leibler",
            solver="mu",
            random_state=seed,
            max_iter=100,
            tol=0.0,
        )
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(csr_array(rows.astype(float)))
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        words = rows.sum(axis=0) + 0.5
        # the unigram is one more topic
        self.table = np.vstack([topics, words / words.sum()])

    def log_prob(self, d, fold_in=200):
        """log p of each word from the third on."""
        K = len(self.table)
        share, out = np.full(K, 1.0 / K), []
        for lo in range(2, len(d), fold_in):
            if lo > 4:
                p = self.table[:, d[:lo]].T
                for _ in range(50):
                    joint = p * share
                    # one word in advance to each: a weight never reaches zero
                    mass = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + 1
                    share = mass / mass.sum()
            out.append(np.log(share @ self.table[:, d[lo : lo + fold_in]]))
        return np.concatenate(out)
