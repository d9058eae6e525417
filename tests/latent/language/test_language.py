"""TrigramTopicModel: an exact conditional model that learns, and its refusals."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxent
from maxent.latent import TrigramTopicModel
from maxent.latent.language._ngrams import NGrams
from maxent.latent.language._trigram_scores import TrigramScores, _places
from maxent.latent.language._trigram_start import frequencies
from maxent.latent.language._trigram_tables import TrigramTopics


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


def test_conditional_probabilities_have_the_potentials_of_all_ngrams(rng):
    texts = documents(rng)
    model = TrigramTopicModel(2, 1, max_iter=300, random_state=0).fit(texts)
    words = sorted(model.vocabulary_)
    seen = {tuple(t[i : i + 3]) for t in texts for i in range(len(t) - 2)}
    # with every word that may follow, each trigram of the model is scored
    for u, v in {t[:2] for t in seen}:
        p = [np.exp(model.log_prob([u, v, w]))[0] for w in words]
        assert sum(p) == pytest.approx(1.0, abs=1e-10)
        rare = [p[words.index(w)] for w in words if (u, v, w) not in seen]
        often = [p[words.index(w)] for w in words if (u, v, w) in seen]
        assert max(rare, default=0.0) < min(often)


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
        (None, "X=None must be a list of documents"),
        ([["a", "b", "c"], None], r"X\[1\]=None is no document"),
        ([], "no document"),
        ([["a", "b", None]], r"X\[0\]\[2\]=None is no word"),
        ([["a", "b", "c"], ["a", 3, "b"]], r"X\[1\]\[1\]=3 is no word.*str"),
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


def coded(documents, words):
    numbers = {w: i for i, w in enumerate(words)}
    return [np.array([numbers[w] for w in document]) for document in documents]


def test_the_start_is_near_interpolated_frequencies(rng):
    # the text is more likely than with words' frequencies and no weight of an n-gram
    codes = coded(documents(rng, 8), "abcde")
    grams, seen = NGrams.of(codes, 5, 1)
    share = np.bincount(np.concatenate(codes), minlength=5) / (8 * 30)
    model = TrigramTopics(grams, [np.array([0])] * 8, 2)
    observed = model.observe([grams.counts(c) for c in codes])
    found = []
    for own in (
        frequencies(grams, share, *seen, 100.0),
        (np.log(share), 0.0, 0.0),
    ):
        x = np.zeros(model.n_features)
        for table, column in zip(model.split(x)[0], own):
            table[:, 0] = column
        found.append(model.expectation(x[None], observed)[0].log_likelihood[0])
    # two words of three have two successors of five: about half of 2 log(5 / 2)
    assert found[0] > found[1] + np.log(5 / 2)


def test_weights_of_the_start_maximise_penalised_frequencies(rng):
    codes = coded(documents(rng, 8), "abcde")
    grams, (pairs, triples) = NGrams.of(codes, 5, 1)
    share, variance = np.bincount(np.concatenate(codes), minlength=5) / (8 * 30), 2.0
    _, bigram, trigram = frequencies(grams, share, pairs, triples, variance)

    def interpolated(count, history, before):
        """Frequencies p(w | v) of Witten and Bell, and their weights, gram by gram."""
        p, x0 = np.empty(len(count)), np.empty(len(count))
        for k, v in enumerate(history):
            total, kinds = count[history == v].sum(), (history == v).sum()
            p[k] = (count[k] + kinds * before[k]) / (total + kinds)
            x0[k] = np.log(p[k] / (before[k] * kinds / (total + kinds)))
        return p, x0

    p, x0 = interpolated(pairs, grams.first, share[grams.second])
    _, y0 = interpolated(triples, grams.t_uv, p[grams.t_vw])
    for count, x, full in ((pairs, bigram, x0), (triples, trigram, y0)):
        slope = count * (1.0 - np.exp(x - full)) - x / variance
        np.testing.assert_allclose(slope, 0.0, atol=1e-6 * count.max())


def test_means_given_the_text_count_its_words(rng):
    # every word is a feature of its own and of its topic, and so is every n-gram
    n = 30 - 2
    codes = np.arange(30) % 3
    grams, (pairs, triples) = NGrams.of([codes], 3, 1)
    assert pairs.sum() == n + 1 and triples.sum() == n
    model = TrigramTopics(grams, [np.array([0, 1])], 2)
    observed = model.observe([grams.counts(codes)])
    _, eta = model.posterior(rng.normal(size=(1, model.n_features)), observed)
    (words, bigrams, trigrams), docs = model.split(eta[0])
    for table in (words, bigrams, trigrams):
        np.testing.assert_allclose(table[:, 0], table[:, 1:].sum(axis=1), rtol=1e-12)
    assert words[:, 0].sum() == pytest.approx(3.0)
    assert bigrams[:, 0].sum() == pytest.approx(2.0)
    assert trigrams[:, 0].sum() == pytest.approx(1.0)
    assert docs.sum() == pytest.approx(3.0)


def test_em_is_climbs_to_the_maximum_of_lbfgs(rng):
    X = documents(rng, 4)
    options = {"random_state": 0, "tol": 1e-4, "prior_variance": 0.1}
    direct = TrigramTopicModel(2, 1, max_iter=500, **options).fit(X)
    scaling = TrigramTopicModel(2, 1, method="gis", inner=5, max_iter=2000, **options)
    scaling.fit(X)
    assert direct.converged_ and scaling.converged_
    assert np.diff(scaling.objective_history_).min() >= -1e-12
    assert scaling.objective_ == pytest.approx(direct.objective_, abs=1e-5)


@pytest.mark.parametrize("init", ["frequencies", "zero", "random"])
def test_one_pool_serves_both_choices(init, rng):
    model = TrigramTopicModel(
        2, 2, n_init=4, init=init, max_iter=300, tol=1e-4, random_state=0
    )
    model.fit(documents(rng))
    table = model.candidates_
    assert len(table["objective"]) == 4 and (table["reason"] == "").sum() >= 3
    other = model.select("likelihood")
    for one, column in ((model, "regularized_entropy"), (other, "objective")):
        admitted = np.where(table["reason"] == "", table[column], -np.inf)
        assert one.selected_ == np.argmax(admitted)
        assert one.objective_ == table["objective"][one.selected_]
        # the chosen weights are those of the row
        p = [np.exp(one.log_prob(["a", "b", w]))[0] for w in one.vocabulary_]
        assert sum(p) == pytest.approx(1.0, abs=1e-10)
    assert other.objective_ >= model.objective_
    # penalised: H - U = -(Q - penalty), so that entropy is a matter of the E step
    X = documents(rng)
    assert model.perplexity(X) > 1 and other.perplexity(X) > 1


def test_starts_do_not_depend_on_their_number(rng):
    X = documents(rng)
    options = {"max_iter": 300, "tol": 1e-2, "random_state": 3}
    few, many = (TrigramTopicModel(2, 1, n_init=n, **options).fit(X) for n in (2, 3))
    np.testing.assert_array_equal(
        few.candidates_["objective"], many.candidates_["objective"][:2]
    )


def test_unfinished_starts_are_said(rng):
    with pytest.warns(ConvergenceWarning, match="none of 2 starts has converged"):
        model = fitted(rng, n_init=2, max_iter=2, tol=1e-9)
    assert not model.converged_ and set(model.candidates_["reason"]) == {
        "not_converged"
    }


def test_a_copy_keeps_no_tables_of_its_own(rng):
    model = fitted(rng)
    before = model.log_prob(list("abcab"))
    again = pickle.loads(pickle.dumps(model))
    assert again._scores is None and model._scores is not None
    np.testing.assert_array_equal(again.log_prob(list("abcab")), before)


def test_model_files_keep_both_choices(rng, tmp_path):
    model = TrigramTopicModel(2, 1, n_init=3, tol=1e-4, max_iter=300, random_state=0)
    model.fit(documents(rng))
    maxent.save(model, tmp_path / "language.npz")
    again, words = maxent.load(tmp_path / "language.npz"), list("abcab")
    for selection in ("entropy", "likelihood"):
        one, other = model.select(selection), again.select(selection)
        np.testing.assert_array_equal(one.log_prob(words), other.log_prob(words))


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_refit_that_fails_leaves_no_model(error, rng, monkeypatch):
    model = fitted(rng)

    def fail(*args):
        raise error("no")

    with monkeypatch.context() as patch:
        patch.setattr("maxent.latent.language.trigram_topics.climb", fail)
        with pytest.raises(error, match="no"):
            model.fit(documents(rng))
    with pytest.raises(NotFittedError):
        model.perplexity(documents(rng))
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    "name, change",
    [
        ("bigrams_", lambda a: a + 1),
        ("bigrams_", lambda a: a[::-1].copy()),
        ("bigrams_", lambda a: a.astype(float)),
        ("trigrams_", lambda a: a - 1),
        ("trigrams_", lambda a: a[:, 0].copy()),
        ("candidate_weights_", lambda a: {"0": a["0"][1:].copy()}),
        ("candidate_weights_", lambda a: {"0": a["0"] * np.nan}),
        ("selected_", lambda a: a + 1),
        ("vocabulary_", lambda a: {w: 2 * i for w, i in a.items()}),
    ],
)
def test_damaged_models_are_refused(name, change, rng):
    model = fitted(rng)
    setattr(model, name, change(getattr(model, name)))
    with pytest.raises(ValueError, match="inconsistent"):
        model.log_prob(list("abcab"))


def test_a_variance_that_a_file_may_hold_is_checked(rng):
    model = fitted(rng)
    model.prior_variance = 0
    for call in (model.log_prob, lambda text: model.transform([text])):
        with pytest.raises(ValueError, match="prior_variance"):
            call(list("abcab"))


def test_score_is_the_mean_log_probability(rng):
    texts = [list(rng.choice(list("abcd"), 20)) for _ in range(8)]
    model = TrigramTopicModel(2, 1, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(texts)
    each = np.concatenate([model.log_prob(text) for text in texts])
    assert model.score(texts) == pytest.approx(each.mean(), rel=1e-12)
    with pytest.raises(
        ValueError, match=r"X is a matrix of shape .*words in their order"
    ):
        model.fit(sp.csr_array(np.eye(4)))


# -- topics ----------------------------------------------------------------------------
def test_words_and_shares_of_topics_by_enumeration(rng):
    text = rng.integers(3, size=8)
    grams, _ = NGrams.of([text], 3, 1)
    model = TrigramTopics(grams, [np.array([0, 1])], 2)
    tables = model.split(rng.normal(size=model.n_features))[0]
    words, bigrams, trigrams = (table[:, :1] + table[:, 1:] for table in tables)
    scores = TrigramScores(grams, tables, 1.0)

    def potentials(*codes):
        """Of three words with each topic, (3, 2)."""
        (uv, vw), uvw = (x.tolist() for x in grams.lookup(np.array(codes)))
        out = words[list(codes)]
        out[1] += bigrams[uv] if uv >= 0 else 0.0
        out[2] += bigrams[vw] if vw >= 0 else 0.0
        out[2] += trigrams[uvw[0]] if uvw[0] >= 0 else 0.0
        return np.exp(out)

    expected = np.zeros((2, 3))
    for codes in itertools.product(range(3), repeat=3):
        each = potentials(*codes)
        total = each.sum(axis=1)
        for word, row, one in zip(codes, each, total):
            expected[:, word] += row / one * total.prod()
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores.words_of_topics(), expected, rtol=1e-12)

    doc = np.exp(scores._folded(text, np.zeros(2), 100))
    each = [potentials(*text[i : i + 3]) * doc for i in range(len(text) - 2)]
    posterior = np.concatenate([x / x.sum(axis=1, keepdims=True) for x in each])
    np.testing.assert_allclose(scores.shares(text), posterior.mean(axis=0), rtol=1e-12)


def test_topics_tell_kinds_of_documents(rng):
    X = documents(rng)
    model = TrigramTopicModel(2, 1, random_state=0).fit(X)  # of the default max_iter
    assert model.converged_ and model.components_.shape == (2, 6)
    share = model.transform([*X, ["a", "b"], [], ["never"] * 4])
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    kind = share[:6].argmax(axis=1)
    assert (kind[::2] == kind[0]).all() and (kind[1::2] == 1 - kind[0]).all()
    assert (share[6:] == 0.5).all()
    words = model.top_words(2)
    assert {*words[kind[0]]} == {*"ab"} and {*words[kind[1]]} == {*"de"}
    assert list(model.get_feature_names_out())[1] == "trigramtopicmodel1"
    # of a single topic, the most frequent words
    assert model.set_params(n_topics=1).fit([list("abbbcab")]).top_words(1) == [["b"]]


def test_documents_without_a_word_to_score_do_not_fail_the_others(rng):
    model = fitted(rng)
    text = list("abcabc")
    assert model.log_prob(["a", "b"]).shape == (0,)
    assert model.perplexity([text, ["a"], []]) == model.perplexity([text])
    with pytest.raises(ValueError, match="no document of three words"):
        model.perplexity([["a"], []])
    with pytest.raises(ValueError, match="document=None is no document"):
        model.log_prob(None)


# -- topics of new documents -----------------------------------------------------------
def test_places_of_folding_in_grow():
    assert [*_places(60, None)] == [2, 3, 5, 8, 14, 26, 50]
    assert [*_places(9, 3)] == [2, 5, 8]
    for n in (0, 1, 2):
        assert [*_places(n, None)] == [*_places(n, 1)] == []
    assert [*_places(3, None)] == [*_places(3, 200)] == [2]


def test_short_documents_have_topics(rng):
    # topics of few words each, and documents of one topic: a few words tell which
    of_topic = np.kron(np.eye(4), np.full(3, 0.25)) + 1 / 48
    letters = list("abcdefghijkl")
    X = [list(rng.choice(letters, size=60, p=of_topic[i % 4])) for i in range(50)]
    scores = {}
    for topics in (1, 4):
        model = TrigramTopicModel(topics, 4, max_iter=100, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores[topics] = model.fit(X[:40]).score(X[40:])
    assert scores[4] > scores[1] + 0.1  # so that searches find the topics
    every, never = (
        np.mean([model.log_prob(text, fold_in) for text in X[40:]])
        for fold_in in (1, 100)
    )
    assert scores[4] > never + 0.3 and scores[4] > every - 0.05
    assert scores[4] == pytest.approx(-np.log(model.perplexity(X[40:])), rel=1e-12)
    first = model.log_prob(X[40])[0]
    assert first == model.log_prob(X[40], 100)[0]  # no word has been read
