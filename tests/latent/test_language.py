"""TrigramTopicModel: an exact conditional model that learns, and its refusals."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxent.latent import TrigramTopicModel
from maxent.latent._trigram_tables import TrigramLikelihood
from maxent.latent.language import frequencies


def documents(rng, n=6):
    """Two kinds of documents with words of their own."""
    out = []
    for k in range(n):
        words = ["abc", "cde"][k % 2]
        steps = rng.integers(0, 2, size=30)
        out.append([words[i] for i in np.cumsum(steps) % 3])
    return out


def fitted(rng, **options):
    options = {"max_iter": 300, "random_state": 0, "tol": 1e-4} | options
    return TrigramTopicModel(2, 1, **options).fit(documents(rng))


@pytest.mark.parametrize("min_count", [1, 3])
def test_conditional_probabilities_add_up_to_one(min_count, rng):
    model = fitted(rng, min_count=min_count)
    words = list(model.vocabulary_)
    for before in (["a", "b"], ["e", "a"], ["never", "c"]):
        p = [np.exp(model.log_prob([*before, w]))[0] for w in words]
        assert sum(p) == pytest.approx(1.0, abs=1e-10)


def test_training_climbs_and_beats_the_uniform_model(rng):
    model = fitted(rng)
    assert model.converged_
    assert np.diff(model.objective_history_).min() >= -1e-12
    assert model.perplexity(documents(rng)) < len(model.vocabulary_)


def test_no_word_is_scored_by_what_follows_it(rng):
    model = fitted(rng)
    a, b = list("abcabcabcabc"), list("abcabcabceee")
    x, y = (model.log_prob(d, fold_in=2) for d in (a, b))
    np.testing.assert_allclose(x[:7], y[:7], atol=1e-12)


@pytest.mark.parametrize(
    "X, words",
    [
        ("a b c", "list of documents"),
        (["a b c"], r"X\[0\] is a string"),
        ([["a", "b", "c"], []], r"X\[1\] has 0 words"),
        ([], "no document"),
    ],
)
def test_bad_documents_are_named(X, words):
    with pytest.raises(ValueError, match=words):
        TrigramTopicModel(2, 1).fit(X)


def test_a_refit_that_is_refused_leaves_no_model(rng):
    model = fitted(rng)
    with pytest.raises(ValueError, match="has 0 words"):
        model.fit([["a", "b", "c"], []])
    with pytest.raises(NotFittedError):
        model.log_prob(["a", "b", "c"])
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_bound_on_the_iterations_is_said(rng):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted(rng, max_iter=1, tol=1e-9)


def test_the_start_is_near_interpolated_frequencies(rng):
    # the text is more likely than with words' frequencies and no weight of an n-gram
    model = TrigramTopicModel(2, 1)
    model.vocabulary_ = {w: i for i, w in enumerate("abcde")}
    codes = [model._codes(d) for d in documents(rng, 8)]
    seen = model._index(codes)
    share = np.bincount(np.concatenate(codes), minlength=5) / (8 * 30)
    likelihood = TrigramLikelihood(
        model._grams, [model._counts(c) for c in codes], [np.array([0])] * 8, 2
    )
    found = []
    for own in (
        frequencies(model._grams, share, *seen, 100.0),
        (np.log(share), 0.0, 0.0),
    ):
        x = np.zeros(likelihood.size)
        for table, column in zip(likelihood.split(x)[0], own):
            table[:, 0] = column
        found.append(likelihood.evaluate(x)[0])
    # two words of three have two successors of five: about half of 2 log(5 / 2)
    assert found[0] > found[1] + np.log(5 / 2)


def test_means_given_the_text_count_its_words(rng):
    # every word is a feature of its own and of its topic, and so is every n-gram
    n = 30 - 2
    codes = np.arange(30) % 3
    model = TrigramTopicModel(2, 2)
    model.vocabulary_ = {"a": 0, "b": 1, "c": 2}
    pairs, triples = model._index([codes])
    assert pairs.sum() == n + 1 and triples.sum() == n
    likelihood = TrigramLikelihood(
        model._grams, [model._counts(codes)], [np.array([0, 1])], 2
    )
    eta = likelihood.target(rng.normal(size=likelihood.size))
    (words, bigrams, trigrams), docs = likelihood.split(eta)
    for table in (words, bigrams, trigrams):
        np.testing.assert_allclose(table[:, 0], table[:, 1:].sum(axis=1), rtol=1e-12)
    assert words[:, 0].sum() == pytest.approx(3.0)
    assert bigrams[:, 0].sum() == pytest.approx(2.0)
    assert trigrams[:, 0].sum() == pytest.approx(1.0)
    assert docs.sum() == pytest.approx(3.0)
