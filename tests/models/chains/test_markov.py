"""Markov chains against enumeration, counts by hand, and their hidden form."""

import os
import pathlib
import tracemalloc
import warnings

import numpy as np
import pytest
from models.sequence_cases import random_codes
from oracles.sequence_models import log_markov
from refusals import refusals, refused

from maxent._inputs.sequences import symbol_sequences
from maxent.kernels import product_kernel
from maxent.models import CategoricalHMM, MarkovChain
from maxent.models.chains import markov

orders = pytest.mark.parametrize("order", [0, 1, 2, 3])


def random_markov(rng, order, O):
    n = O**order
    return MarkovChain(
        rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(O), size=n), order
    )


@orders
def test_likelihood_by_enumeration(order, rng):
    model = random_markov(rng, order, 2)
    for missing in (0.0, 0.3):
        X = random_codes(rng, 15, 2, high=6, missing=missing)
        expected = [log_markov(model.start, model.transition, order, x) for x in X]
        # of probabilities near one the oracle's sum keeps 1e-16, whatever their log
        np.testing.assert_allclose(
            model.log_likelihood(X), expected, rtol=1e-12, atol=1e-14
        )


@orders
def test_hidden_form_has_the_same_law(order, rng):
    model = random_markov(rng, order, 3)
    X = random_codes(rng, 20, 3, high=12, missing=0.0)
    np.testing.assert_allclose(
        model.as_hmm().log_likelihood(X), model.log_likelihood(X), rtol=1e-11
    )


@orders
def test_fit_counts(order, rng):
    X = random_codes(rng, 9, 2, high=9, missing=0.2)
    w = rng.uniform(0.5, 2.0, size=9)
    for where in ("first", "all"):
        fit = MarkovChain.fit(
            X, order, weights=w, n_symbols=2, smoothing=0.5, start=where
        )
        cells = np.full((2**order, 2), 0.5)
        first = np.full(2**order, 0.5)
        for x, own in zip(X, w):
            for t in range(len(x) + 1):
                window = x[t - order : t] if t >= order else [-1]
                if any(o < 0 for o in window):
                    continue
                digits = int("".join(map(str, window)) or "0", 2)
                seen = t >= order and (order > 0 or t < len(x))
                if seen and (where == "all" or t == order):
                    first[digits] += own
                if t < len(x) and x[t] >= 0:
                    cells[digits, x[t]] += own
        np.testing.assert_allclose(
            fit.transition, cells / cells.sum(axis=1, keepdims=True), rtol=1e-13
        )
        if order:
            np.testing.assert_allclose(fit.start, first / first.sum(), rtol=1e-13)


@orders
def test_blocks_of_steps_change_no_count(order, rng, monkeypatch):
    X = random_codes(rng, 30, 3, high=9, missing=0.1)
    w = rng.integers(1, 4, size=30)  # whose sums are exact
    fits = [
        MarkovChain.fit(X, order, weights=w, n_symbols=3, start=where)
        for where in ("first", "all")
    ]
    known = [np.abs(x) for x in X]
    value = fits[0].log_likelihood(known)
    monkeypatch.setattr(markov, "_BLOCK", 4)
    for fit, where in zip(fits, ("first", "all")):
        assert fit == MarkovChain.fit(X, order, weights=w, n_symbols=3, start=where)
    np.testing.assert_array_equal(fits[0].log_likelihood(known), value)
    found = symbol_sequences(X, n_symbols=3)
    windows = [
        (x[t - order : t + 1], i, t)
        for i, x in enumerate(X)
        for t in range(order, len(x))
        if (x[t - order : t + 1] >= 0).all()
    ]
    parts = [np.concatenate(one) for one in zip(*markov.words(found, order + 1, 3))]
    steps = [found.offsets[i] + t for _, i, t in windows]
    digits = [int("".join(map(str, x)), 3) for x, _, _ in windows]
    for part, expected in zip(parts, (digits, steps, [i for _, i, _ in windows])):
        np.testing.assert_array_equal(part, expected)


def test_a_long_sequence_needs_little_more_than_its_codes(rng):
    text = "".join(np.array(list("ACGT"))[rng.integers(4, size=10**6)])
    MarkovChain.fit([text])
    tracemalloc.start()
    MarkovChain.fit([text])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 14 * len(text)  # 8 of codes, 1 of letters, 1 of masks


@orders
def test_draws_have_the_law_of_the_chain(order, rng):
    model = random_markov(rng, order, 2)
    n, T = 4000, order + 1
    codes = np.array(model.sample(n, T, rng)) @ 2 ** np.arange(T)[::-1]
    law = (model.start[:, None] * model.transition).ravel()
    share = np.bincount(codes, minlength=2**T) / n
    assert np.abs(share - law).max() < 6 * 0.5 / np.sqrt(n)


@pytest.mark.parametrize("wrap", [list, np.array, tuple, pathlib.Path])
@pytest.mark.parametrize("model", [MarkovChain, CategoricalHMM])
def test_letters_of_strings_are_found(model, wrap, rng, tmp_path):
    strings = ["".join(rng.choice(list("TCAN"), size=9)) for _ in range(8)]
    given = wrap(strings) if wrap is not pathlib.Path else tmp_path / "x.txt"
    (tmp_path / "x.txt").write_text("\n".join(strings))
    options = {"missing": "N"} | ({} if model is MarkovChain else {"random_state": 0})
    fits = [model.fit(given, 1, alphabet=a, **options) for a in (None, "ACT")]
    assert fits[0].alphabet == "ACT" and fits[0] == fits[1]
    if model is CategoricalHMM:
        options["n_states"] = 1
    for one in model.fit_many(given, **options):  # of all together
        assert one.alphabet == "ACT"


def test_letters_that_may_be_a_list_of_one_sequence_need_an_alphabet():
    refused(lambda: MarkovChain.fit(["a", "b", "a"]), "pass the letters in order")
    for fit in (MarkovChain.fit, MarkovChain.fit_many, CategoricalHMM.fit):
        refused(lambda own=fit: own("aba"), r"'aba' are one string.*Write \[X\]")
    refused(lambda: MarkovChain.fit("a.b"), "pass pathlib.Path")


def test_contexts_without_counts_are_uniform():
    fit = MarkovChain.fit([[0, 0, 0]], 1, n_symbols=2, smoothing=0.0)
    np.testing.assert_array_equal(fit.transition, [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_array_equal(fit.start, [1.0, 0.0])


def test_fit_many_is_one_fit_each(rng):
    strings = ["ACCA", "CCC", "AAAC"]
    many = MarkovChain.fit_many(strings, order=1, alphabet="AC")
    assert many == [MarkovChain.fit([s], 1, alphabet="AC") for s in strings]
    assert many[0].fit_result is None
    codes = MarkovChain.fit_many([[0, 1], [0, 2, 1]])
    assert [chain.n_symbols for chain in codes] == [3, 3]  # of all data
    assert codes == MarkovChain.fit_many([0, 1, 0, 2, 1], lengths=[2, 3])
    for wrong, words in (("AG", r"\[1\]\[1\]='G'"), ("", r"\[1\] is empty")):
        refused(lambda w=wrong: MarkovChain.fit_many(["AC", w], alphabet="AC"), words)


@pytest.mark.parametrize(
    "strings, warns",
    [
        (["ACGTacgt", "AAGT"], True),  # lower case marks repeats of genomes
        (["ACGT", "AAGT"], False),
        (["acgtn", "aagt"], False),
        (["Abba", "abBa"], False),  # letters of other alphabets mean what they are
    ],
)
def test_bases_in_both_cases_are_named(strings, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MarkovChain.fit(strings)
    said = [str(w.message) for w in caught]
    assert len(said) == warns and all("A, C, G, T occur in lower" in w for w in said)
    letters = {*"".join(strings)} - {"n"}  # which is any base
    assert model.alphabet == "".join(sorted(letters))


test_bad_input_is_named = refusals(
    [
        (lambda: MarkovChain([1.0], [[0.5, 0.5]], -1), "order=-1 .* >= 0"),
        (lambda: MarkovChain.fit([[0, 1]], order=-1), "order=-1 .* integer >= 0"),
        (lambda: MarkovChain.fit_many([[0, 1]], order=1.5), "order=1.5 .* >= 0"),
        (lambda: MarkovChain([1.0], [[0.5, 0.5]], 1), r"start has shape \(1,\)"),
        (lambda: MarkovChain([1.0], [[0.5, 0.4]], 0), "sums to 0.9"),
        (lambda: MarkovChain.fit(["A", "B"], 1), "alphabet="),
        (lambda: MarkovChain.fit([[0, 1]], 1, start="last"), "start='last'"),
        (lambda: MarkovChain.fit([[0, 1]], 1).sample(1, 0), "length=0"),
        (lambda: MarkovChain.fit([[0, 1]], 1).sample(1, 1.5), "length=1.5"),
        (lambda: MarkovChain.fit([[0, 1]], 1).sample(2, [2, 1.5]), "length=.*integer"),
        (lambda: MarkovChain.fit([[0, 1]], 1).sample(2, [2, 2, 2]), "or 2 of them"),
    ]
)


def test_chains_beyond_the_memory_are_refused_before_any_is_fitted(monkeypatch):
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", memory.__getitem__)
    assert len(MarkovChain.fit_many(["ACGTAC"] * 3, order=5, alphabet="ACGT")) == 3
    with pytest.raises(MemoryError, match=r"order=5, .* 200 chains .*=1024 needs"):
        MarkovChain.fit_many(["ACGTAC"] * 200, order=5, alphabet="ACGT")
    chains = MarkovChain.fit_many(["ACGTAC"] * 60, order=5, alphabet="ACGT")
    with pytest.raises(MemoryError, match="60 chains"):  # stacked, and their powers
        product_kernel(chains, horizon=3)
