"""Spectrum and marginalised kernels, against counts and enumeration of paths."""

import itertools

import numpy as np
import pytest
from families.family_cases import MAKERS
from models.sequence_cases import random_codes, random_gaussian_hmm, random_hmm
from refusals import refused
from scipy import sparse

from maxent.families import Categorical
from maxent.kernels import (
    marginalized_features,
    marginalized_kernel,
    spectrum_features,
    spectrum_kernel,
)
from maxent.models import CategoricalHMM, MarkovChain, Mixture


def strings(rng, n, letters="ACGT", low=5, high=30):
    codes = [rng.integers(len(letters), size=k) for k in rng.integers(low, high, n)]
    return ["".join(letters[c] for c in one) for one in codes]


# -- spectrum --------------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_words_are_counted(k, rng):
    X = strings(rng, 12)
    words = ["".join(w) for w in itertools.product("ACGT", repeat=k)]
    expected = [
        [sum(x[i : i + k] == w for i in range(len(x) - k + 1)) for w in words]
        for x in X
    ]
    F = spectrum_features(X, k, alphabet="ACGT")
    assert isinstance(F, sparse.csr_array)
    np.testing.assert_array_equal(F.toarray(), expected)
    K = spectrum_kernel(X, k=k, alphabet="ACGT")
    np.testing.assert_array_equal(K, np.array(expected) @ np.transpose(expected))
    part = spectrum_kernel(X[:3], X, k=k, alphabet="ACGT")
    np.testing.assert_array_equal(part, K[:3])
    own = np.sqrt(np.diagonal(K))
    normal = spectrum_kernel(X, k=k, alphabet="ACGT", normalize=True)
    np.testing.assert_allclose(normal, K / np.outer(own, own), rtol=1e-14)
    np.testing.assert_array_equal(np.diagonal(normal), 1.0)
    np.testing.assert_allclose(
        spectrum_kernel(X[:3], X, k=k, alphabet="ACGT", normalize=True),
        normal[:3],
        rtol=1e-14,
    )
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)


def columns_by_enumeration(word, k, gaps, mismatches, both, letters="ACGT"):
    """Numbers of the columns in which a word is counted, by looking at all words."""
    pairs = dict(zip("ACGT*", "TGCA*"))
    kept = list(itertools.combinations(range(k), k - gaps))
    names = {}  # words with a star at every gap, in the order of the columns
    for places in kept:
        for own in itertools.product(letters, repeat=k - gaps):
            name = ["*"] * k
            for i, a in zip(places, own):
                name[i] = a
            names["".join(name)] = len(names)
    out = []
    for name, number in names.items():
        differ = sum(a not in ("*", b) for a, b in zip(name, word))
        if differ <= mismatches:
            mirror = "".join(pairs[a] for a in reversed(name))
            out.append(min(number, names[mirror]) if both else number)
    return out, len(names)


@pytest.mark.parametrize(
    "k, gaps, mismatches, both",
    [
        (4, 0, 1, False),
        (3, 0, 2, False),
        (4, 2, 0, False),
        (3, 1, 1, False),
        (3, 0, 0, True),
        (4, 0, 1, True),
        (4, 2, 0, True),
        (3, 1, 1, True),
        (4, 1, 1, True),
    ],
)
def test_gaps_mismatches_and_strands_by_enumeration(k, gaps, mismatches, both, rng):
    X = [*strings(rng, 4, low=k, high=9), "ACNNNGTTA", "N" * k]
    options = {"gaps": gaps, "mismatches": mismatches, "both_strands": both}
    options |= {"alphabet": "ACGT", "missing": "N"}
    expected = None
    for i, x in enumerate(X):
        for t in range(len(x) - k + 1):
            if "N" in (word := x[t : t + k]):
                continue
            at, n = columns_by_enumeration(word, k, gaps, mismatches, both)
            expected = np.zeros((len(X), n)) if expected is None else expected
            np.add.at(expected[i], at, 1.0)
    F = spectrum_features(X, k, **options)
    assert F.has_canonical_format and F.indices.dtype == np.int32
    np.testing.assert_array_equal(F.toarray(), expected)
    K = expected @ expected.T
    np.testing.assert_array_equal(spectrum_kernel(X, k=k, **options), K)
    np.testing.assert_array_equal(spectrum_kernel(X[:2], X, k=k, **options), K[:2])
    own = np.sqrt(np.diagonal(K)[:-1])
    part = spectrum_kernel(X[:2], X[:-1], k=k, normalize=True, **options)
    np.testing.assert_allclose(part, (K[:-1, :-1] / own / own[:, None])[:2], rtol=1e-14)
    if both:
        mirror = [x[::-1].translate(str.maketrans("ACGT", "TGCA")) for x in X]
        np.testing.assert_array_equal(
            spectrum_features(mirror, k, **options).toarray(), expected
        )


def test_mismatches_of_large_alphabets(rng):
    X = rng.integers(20, size=(3, 12))
    F = spectrum_features(list(X), 3, mismatches=1, n_symbols=20)
    assert F.sum() == 3 * 10 * (1 + 3 * 19)
    one = spectrum_kernel(list(X), k=9, mismatches=1, n_symbols=20, n_jobs=1)
    two = spectrum_kernel(list(X), k=9, mismatches=1, n_symbols=20, n_jobs=2)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"gaps": 2, "mismatches": 1}, "gaps=2 and mismatches=1 leave none of k=3"),
        ({"gaps": -1}, "gaps=-1"),
        ({"mismatches": 0.5}, "mismatches=0.5"),
        ({"both_strands": True}, "alphabet='AB' has letters without a complement"),
    ],
)
def test_words_that_are_none_are_refused(options, message):
    for call in (spectrum_features, spectrum_kernel):
        refused(
            lambda call=call: call(["ABAB"], k=3, alphabet="AB", **options), message
        )


def test_codes_lengths_and_missing_symbols():
    F = spectrum_features(["ABNBA"], 2, alphabet="AB", missing="N").toarray()
    np.testing.assert_array_equal(F, [[0, 1, 1, 0]])
    codes = spectrum_features([[0, 1, -1, 1, 0]], 2, n_symbols=2).toarray()
    np.testing.assert_array_equal(codes, F)
    cut = spectrum_features([0, 1, 1, 1, 0], 2, lengths=[2, 3], n_symbols=2).toarray()
    np.testing.assert_array_equal(cut, [[0, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(
        spectrum_kernel([[0, 1]], [[0, 1], [1, 2]], k=2), [[1, 0]]
    )


def test_many_letters_and_long_words(rng):
    X = [rng.integers(100_000, size=20) for _ in range(4)]
    K = spectrum_kernel(X, k=3)
    np.testing.assert_array_equal(K, 18 * np.eye(4))
    one = spectrum_kernel(X, k=1, n_jobs=1)
    np.testing.assert_array_equal(one, spectrum_kernel(X, k=1, n_jobs=2))
    assert spectrum_features(X, 3).shape[1] == (1 + max(map(max, X))) ** 3


def test_files(tmp_path):
    path = tmp_path / "some.fasta"
    path.write_text(">a\nABAB\n>b\nBBB\n")
    np.testing.assert_array_equal(
        spectrum_kernel(path, k=2, alphabet="AB"), [[5, 0], [0, 4]]
    )


def test_short_sequences_have_no_word_and_a_warning_names_the_first():
    ab = {"k": 3, "alphabet": "AB"}
    with pytest.warns(UserWarning, match=r"1 of 2 .* k=3 symbols, P\[1\] first"):
        K = spectrum_kernel(["ABA", "AB"], **ab)
    np.testing.assert_array_equal(K, [[1, 0], [0, 0]])
    with pytest.warns(UserWarning, match=r"1 of 1 .* Q\[0\] first"):
        assert spectrum_kernel(["ABA"], ["B"], **ab) == 0
    with pytest.warns(UserWarning, match=r"sequences\[0\]"):
        F = spectrum_features(["A", "BABB"], **ab)
    np.testing.assert_array_equal(F.sum(axis=1), [0, 2])


def test_spectrum_refusals():
    refused(
        lambda: spectrum_kernel(["ABA", "ABC"], k=2, alphabet="AB"),
        r"sequences\[1\]\[2\]='C' is not in the alphabet",
    )
    refused(lambda: spectrum_kernel(["ABA"], k=2), "alphabet=")
    refused(lambda: spectrum_kernel(["ABA"], k=0, alphabet="AB"), "k=0")
    refused(lambda: spectrum_kernel(["A" * 70], k=63, alphabet="AB"), "2..62 words")
    refused(
        lambda: spectrum_kernel(
            ["AB", "NN"], k=1, alphabet="AB", missing="N", normalize=True
        ),
        r"P\[1\] has the kernel 0",
    )


# -- marginalised ----------------------------------------------------------------------
def enumerated(model, x, order):
    """Counts of (state, symbol), averaged over paths and missing symbols."""
    S, O = model.emission.prob.shape
    out = np.zeros((S, O) if order == 1 else (S * O, S * O))
    total = 0.0
    full = [range(O) if c < 0 else [c] for c in x]
    for symbols in itertools.product(*full):
        for path in itertools.product(range(S), repeat=len(x)):
            p = model.start[path[0]] * model.emission.prob[path[0], symbols[0]]
            for t in range(1, len(x)):
                p *= model.transition[path[t - 1], path[t]]
                p *= model.emission.prob[path[t], symbols[t]]
            total += p
            pairs = [h * O + c for h, c in zip(path, symbols)]
            for t, (h, c) in enumerate(zip(path, symbols)):
                if order == 1:
                    out[h, c] += p / len(x)
                elif t:
                    out[pairs[t - 1], pairs[t]] += p / (len(x) - 1)
    return out / total


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("sparse_chain", [False, True])
def test_expected_counts_by_enumeration(order, sparse_chain, rng):
    model = random_hmm(rng, 2, 3, sparse_chain)
    X = random_codes(rng, 6, 3, low=1, high=5, missing=0.3)
    F = marginalized_features(X, model, order=order)
    expected = np.array([enumerated(model, x, order) for x in X])
    np.testing.assert_allclose(F, expected, atol=1e-13)
    K = marginalized_kernel(X, model=model, order=order)
    flat = expected.reshape(len(X), -1)
    np.testing.assert_allclose(K, flat @ flat.T, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    part = marginalized_kernel(X[:2], X, model=model, order=order)
    np.testing.assert_allclose(part, K[:2], atol=1e-13)


def test_normalised_marginalised_kernel(rng):
    model = random_hmm(rng, 2, 3)
    X = random_codes(rng, 6, 3, low=2)
    K = marginalized_kernel(X, model=model)
    own = np.sqrt(np.diagonal(K))
    normal = marginalized_kernel(X, model=model, normalize=True)
    np.testing.assert_allclose(normal, K / np.outer(own, own), rtol=1e-13)
    part = marginalized_kernel(X[:2], X, model=model, normalize=True)
    np.testing.assert_allclose(part, normal[:2], rtol=1e-13)


def test_vectors_and_mixtures_by_their_joint_kernel(rng):
    """sum over steps and states of p(h | x_t) p(h | x'_s) (1 + x_t.x'_s)."""
    model = random_gaussian_hmm(rng, 3, 2)
    X = model.sample(4, [1, 3, 5, 2], rng)
    X[2] = np.array(X[2])
    X[2][1] = np.nan
    K = marginalized_kernel(X, model=model)
    shown = [~np.isnan(x[:, 0]) for x in X]
    share = [g[s] for g, s in zip(model.posterior(X), shown)]
    rows = [x[s] for x, s in zip(X, shown)]
    for i, j in np.ndindex(4, 4):
        joint = (share[i] @ share[j].T) * (1 + rows[i] @ rows[j].T)
        np.testing.assert_allclose(K[i, j], joint.mean(), rtol=1e-11)

    M = Mixture([0.3, 0.7], MAKERS["gaussian"](rng, (2,)))
    rows = M.sample(6, rng)
    g = M.posterior(rows)
    expected = (g @ g.T) * (1 + rows @ rows.T)
    np.testing.assert_allclose(marginalized_kernel(rows, model=M), expected, rtol=1e-11)

    M = Mixture([0.3, 0.7], Categorical(rng.dirichlet(np.ones(3), size=2)))
    codes = np.array([0, 1, 2, 1])
    g = M.posterior(codes)
    expected = (g @ g.T) * (codes[:, None] == codes)
    np.testing.assert_allclose(
        marginalized_kernel(codes, model=M), expected, rtol=1e-11
    )


def test_marginalised_refusals(rng):
    model = random_hmm(rng, 2, 2)
    refused(lambda: marginalized_features([[0]], model, order=3), "order=3")
    gaussian = random_gaussian_hmm(rng, 2, 1)
    refused(
        lambda: marginalized_kernel([[[0.0]]], model=gaussian, order=2),
        "GaussianHMM.*order=1",
    )
    chain = MarkovChain([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]])
    refused(lambda: marginalized_kernel([[0]], model=chain), "CategoricalHMM")
    never = CategoricalHMM([1.0], [[1.0]], [[1.0, 0.0]])
    refused(lambda: marginalized_kernel([[0], [1]], model=never), "datum 1.*smoothing")
    refused(
        lambda: marginalized_kernel([[0], [2]], model=never), r"sequences\[1\]\[0\]"
    )


def test_rows_of_a_mixture_with_missing_values_are_refused(rng):
    X = rng.normal(size=(30, 2))
    model = Mixture.fit(X, n_components=2, random_state=0)
    assert marginalized_features(X, model).shape == (30, 2, 3)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"data\[3, 1\]=nan"):
        marginalized_kernel(X, model=model)


def test_indices_of_features_are_those_that_linear_machines_take(rng):
    F = spectrum_features(strings(rng, 20), k=3, alphabet="ACGT")
    assert F.indices.dtype == F.indptr.dtype == np.int32
