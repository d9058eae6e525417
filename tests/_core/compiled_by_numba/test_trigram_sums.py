"""The trigram model with topics against enumeration of words, documents and topics."""

import itertools
import math

import numpy as np
import pytest

from maxent._core.compiled_by_numba import trigram_sums as core
from maxent.latent.language import _trigram_tables
from maxent.latent.language._ngrams import Counts, NGrams
from maxent.latent.language._trigram_tables import Potentials, TrigramTopics


def problem(rng, V=3, T=3, topics=((0, 2), (1,))):
    """Two documents with supports, some n-grams, counts and random weights."""
    bigrams = [b for b in itertools.product(range(V), repeat=2) if rng.random() < 0.6]
    known = {b: i for i, b in enumerate(bigrams)}
    trigrams = [
        t
        for t in itertools.product(range(V), repeat=3)
        if t[:2] in known and t[1:] in known and rng.random() < 0.6
    ]
    if not trigrams:
        return problem(rng, V, T, topics)

    def ints(values):
        return np.array(list(values), dtype=np.int64)

    grams = NGrams(
        V,
        ints(b[0] for b in bigrams),
        ints(b[1] for b in bigrams),
        ints(known[t[:2]] for t in trigrams),
        ints(known[t[1:]] for t in trigrams),
    )
    counts = []
    for _ in topics:
        own = rng.integers(0, 3, size=len(trigrams)).astype(float)
        own[0] += 1.0  # no document is empty
        words, pairs = np.zeros(V), np.zeros(len(bigrams))
        np.add.at(words, grams.first[grams.t_uv], own)
        np.add.at(pairs, grams.t_uv, own)
        parts = ((np.flatnonzero(c), c[c > 0]) for c in (words, pairs, own))
        counts.append(Counts(*parts))
    supports = [ints(t) for t in topics]
    model = TrigramTopics(grams, supports, T)
    lookup = known, {t: i for i, t in enumerate(trigrams)}
    return model, counts, lookup, rng.normal(size=model.n_features)


def documents_of(model, x):
    """Topic weights of every document."""
    ends = np.cumsum([len(t) for t in model.topics])[:-1]
    return np.split(model.split(x)[1], ends)


def joint(model, lookup, x):
    """Unnormalised p(d, u, v, w) by loops over topics, {(d, u, v, w): value}."""
    words, pairs, triples = model.split(x)[0]
    known, trigram = lookup
    out = {}
    for d, (support, own) in enumerate(zip(model.topics, documents_of(model, x))):
        for uvw in itertools.product(range(model.grams.n_words), repeat=3):
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


def log_partition(model, lookup, x):
    return math.log(math.fsum(joint(model, lookup, x).values()))


def log_numerator(model, counts, lookup, x):
    """Average over the text of the log of the unnormalised probability."""
    table, total, n_all = joint(model, lookup, x), 0.0, 0.0
    for d, own in enumerate(counts):
        seen = dict(zip(*own.trigrams))
        for uvw, n in lookup[1].items():
            total += seen.get(n, 0.0) * math.log(table[(d, *uvw)])
            n_all += seen.get(n, 0.0)
    return total / n_all


def slope(function, x, i, h=1e-4):
    """Derivative by x_i from five points, whose error is below 1e-9 at this step."""
    e = h * np.eye(1, len(x), i)[0]
    a, b, c, d = (function(x + s * e) for s in (-2, -1, 1, 2))
    return (a - 8 * b + 8 * c - d) / (12 * h)


def test_likelihood_is_that_of_enumeration(rng):
    model, counts, lookup, x = problem(rng)
    found, log_phi, _ = model.expectation(x[None], model.observe(counts))
    exact = log_partition(model, lookup, x)
    assert log_phi[0] == pytest.approx(exact, abs=1e-10)
    exact = log_numerator(model, counts, lookup, x) - exact
    assert found.log_likelihood[0] == pytest.approx(exact, abs=1e-10)


def test_every_expectation_is_that_of_enumeration(rng):
    model, counts, lookup, x = problem(rng)
    found, _, mean = model.expectation(x[None], model.observe(counts))
    for i in range(0, len(x), max(len(x) // 40, 1)):
        exact = slope(lambda x: log_partition(model, lookup, x), x, i)
        assert mean[0, i] == pytest.approx(exact, abs=1e-10)
        exact = slope(lambda x: log_numerator(model, counts, lookup, x), x, i)
        assert found.target[0, i] == pytest.approx(exact, abs=1e-10)


def test_passes_agree_whatever_the_block(rng, monkeypatch):
    model, counts, _, x = problem(rng, topics=((0, 2), (1,), (0, 1, 2), (2,)))
    observed = model.observe(counts)
    found, log_phi, mean = model.expectation(x[None], observed)
    for width in (1, 3):
        monkeypatch.setattr(_trigram_tables, "WIDTH", width)
        numerator, eta = model.posterior(x[None], observed)
        np.testing.assert_allclose(eta, found.target, rtol=1e-12, atol=1e-15)
        assert numerator[0] == pytest.approx(found.log_numerator[0], abs=1e-13)
        again, own = model.partition(x[None])
        np.testing.assert_allclose(own, mean, rtol=1e-12, atol=1e-15)
        assert again[0] == pytest.approx(log_phi[0], abs=1e-13)


def test_steps_of_iterative_scaling_never_lower_the_bound(rng):
    # Q = lam . eta - log Phi - penalty, at the eta of the start
    model, counts, _, x = problem(rng)
    weight = np.full(len(x), 0.05)
    eta = model.posterior(x[None], model.observe(counts))[1]
    lam, values = x[None], []
    for _ in range(30):
        log_phi = model.partition(lam)[0]
        penalty = 0.5 * np.sum(weight * lam**2)
        values.append(float(lam[0] @ eta[0] - log_phi[0] - penalty))
        lam = model.scaled(lam, eta, weight, "gis", np.inf)
    assert np.diff(values).min() >= -1e-12 and values[-1] > values[0] + 1e-3


def test_masses_and_successors_are_sums_over_words(rng):
    model, _, lookup, x = problem(rng)
    grams, doc = model.grams, documents_of(model, x)[0]
    own, share = Potentials(grams, model.split(x)[0]), np.zeros((1, 3))
    share[0, model.topics[0]] = np.exp(doc)
    own.fill(share)
    Z = own.normalisers()[0]
    table = {k: p for k, p in joint(model, lookup, x).items() if k[0] == 0}
    exact = math.log(math.fsum(table.values()))
    assert math.log(Z) + 3 * own.shift == pytest.approx(exact, abs=1e-10)
    mass = sum((room * ratio).sum() for room, ratio in zip(own.room, own.ratio))
    assert mass == pytest.approx(3 * Z, rel=1e-12)
    phi, psi, chi = (room[:, 0] for room in own.room)
    R, X = np.empty(grams.n_words), np.empty(len(grams.first))
    core.successors(phi, psi, chi, *grams.pairs, R, X)
    for b, (u, v) in enumerate(zip(grams.first, grams.second)):
        row = math.fsum(table[(0, int(u), int(v), w)] for w in range(grams.n_words))
        scale = math.exp(3 * own.shift)
        assert X[b] * phi[u] * psi[b] * scale == pytest.approx(row, rel=1e-10)
