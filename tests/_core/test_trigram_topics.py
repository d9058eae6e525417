"""The trigram model with topics against enumeration of words, documents and topics."""

import itertools
import math

import numpy as np
import pytest

from maxent._core import trigram_topics as core
from maxent.latent._trigram_tables import (
    Counts,
    NGrams,
    Potentials,
    TrigramLikelihood,
)


def problem(rng, V=3, T=3, topics=((0, 2), (1,))):
    """Two documents with supports, some n-grams, counts and random weights."""
    bigrams = [b for b in itertools.product(range(V), repeat=2) if rng.random() < 0.6]
    known = {b: i for i, b in enumerate(bigrams)}
    trigrams = [
        t
        for t in itertools.product(range(V), repeat=3)
        if t[:2] in known and t[1:] in known and rng.random() < 0.6
    ]

    def ints(values):
        return np.array(list(values), dtype=np.int64)

    grams = NGrams(
        V,
        ints(b[0] for b in bigrams),
        ints(b[1] for b in bigrams),
        ints(known[t[:2]] for t in trigrams),
        ints(known[t[1:]] for t in trigrams),
        ints(t[2] for t in trigrams),
    )
    counts = []
    for _ in topics:
        own = rng.integers(0, 3, size=len(trigrams)).astype(float)
        words, pairs = np.zeros(V), np.zeros(len(bigrams))
        np.add.at(words, grams.first[grams.t_uv], own)
        np.add.at(pairs, grams.t_uv, own)
        parts = ((np.flatnonzero(c), c[c > 0]) for c in (words, pairs, own))
        counts.append(Counts(*parts))
    supports = [ints(t) for t in topics]
    likelihood = TrigramLikelihood(grams, counts, supports, T)
    lookup = known, {t: i for i, t in enumerate(trigrams)}
    return likelihood, lookup, rng.normal(size=likelihood.size)


def joint(likelihood, lookup, x):
    """Unnormalised p(d, u, v, w) by loops over topics, {(d, u, v, w): value}."""
    (words, pairs, triples), docs = likelihood.split(x)
    known, trigram = lookup
    out = {}
    for d, support in enumerate(likelihood.topics):
        own = docs[likelihood.ends[d] : likelihood.ends[d + 1]]
        for uvw in itertools.product(range(likelihood.grams.n_words), repeat=3):
            total = 0.0
            for ks in itertools.product(range(len(support)), repeat=3):
                energy = 0.0
                for at in range(3):
                    w, t = uvw[at], 1 + int(support[ks[at]])
                    energy += words[w, 0] + words[w, t] + own[ks[at]]
                    b = known.get(uvw[at - 1 : at + 1]) if at else None
                    if b is not None:
                        energy += pairs[b, 0] + pairs[b, t]
                    if at == 2 and uvw in trigram:
                        n = trigram[uvw]
                        energy += triples[n, 0] + triples[n, t]
                total += math.exp(energy)
            out[(d, *uvw)] = total
    return out


def log_likelihood(likelihood, lookup, x):
    table = joint(likelihood, lookup, x)
    log_Z, total = math.log(math.fsum(table.values())), 0.0
    for d, counts in enumerate(likelihood.counts):
        seen = dict(zip(*counts.trigrams))
        for uvw, n in lookup[1].items():
            total += seen.get(n, 0.0) * (math.log(table[(d, *uvw)]) - log_Z)
    return total / likelihood.total


def test_likelihood_is_that_of_enumeration(rng):
    likelihood, lookup, x = problem(rng)
    exact = log_likelihood(likelihood, lookup, x)
    assert likelihood.evaluate(x)[0] == pytest.approx(exact, abs=1e-10)


def test_every_expectation_is_that_of_enumeration(rng):
    # the gradient of log Z at zero counts is minus the means; by central differences
    # of the enumerated log Z, whose error is below 1e-9 at this step
    likelihood, lookup, x = problem(rng)
    gradient, h = likelihood.evaluate(x)[1], 1e-4
    for i in range(0, len(x), max(len(x) // 40, 1)):
        e = h * np.eye(1, len(x), i)[0]
        around = [log_likelihood(likelihood, lookup, x + s * e) for s in (-2, -1, 1, 2)]
        slope = (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / (12 * h)
        assert gradient[i] == pytest.approx(slope, abs=1e-10)


def test_masses_and_successors_are_sums_over_words(rng):
    likelihood, lookup, x = problem(rng)
    grams = likelihood.grams
    own = Potentials(grams, likelihood.split(x)[0])
    doc = likelihood.split(x)[1][:2]
    log_Z, share, Z = own.document(likelihood.topics[0], doc)
    table = {k: p for k, p in joint(likelihood, lookup, x).items() if k[0] == 0}
    assert log_Z == pytest.approx(math.log(math.fsum(table.values())), abs=1e-10)
    assert sum(m.sum() for m in own.mass) == pytest.approx(3 * Z, rel=1e-12)
    R, X = np.empty(grams.n_words), np.empty(len(grams.first))
    core.successors(*own.room, *grams.pairs, R, X)
    for b, (u, v) in enumerate(zip(grams.first, grams.second)):
        row = math.fsum(table[(0, int(u), int(v), w)] for w in range(grams.n_words))
        left = own.room[0][u] * own.room[1][b]
        scale = math.exp(3 * (own.shift + doc.max()))
        assert X[b] * left * scale == pytest.approx(row, rel=1e-10)
    assert share.max() == 1.0
