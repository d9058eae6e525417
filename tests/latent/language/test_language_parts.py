"""The trigram model on partitions of documents, against one list."""

from itertools import pairwise

import numpy as np
import pytest

from maxent.latent import TrigramTopicModel
from maxent.latent.language._ngrams import NGrams
from maxent.latent.language._trigram_partitions import Documents, PartitionedTopics

bag = pytest.importorskip("dask.bag")
dask = pytest.importorskip("dask")


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def documents(rng, n=7):
    words = "abcdefg"
    return [
        [words[i + (k % 2) * 3] for i in rng.integers(0, 4, size=20 + k)]
        for k in range(n)
    ]


def cut(texts, *sizes):
    """Bag of documents in partitions of these sizes."""
    ends = np.cumsum([0, *sizes])
    parts = [dask.delayed(list)(texts[lo:hi]) for lo, hi in pairwise(ends)]
    return bag.from_delayed(parts)


def model_of(X):
    documents = Documents(X)
    vocabulary = {w: i for i, w in enumerate(sorted(documents.counted))}
    codes = documents.codes(vocabulary)
    grams, _ = NGrams.of(codes, len(vocabulary), 1)
    topics = [np.array([k % 3, 3]) for k in range(len(codes))]
    return documents.topics(grams, topics, 4)


def test_sums_over_partitions_are_those_of_one_list(rng):
    texts = documents(rng)
    whole, parts = model_of(texts), model_of(cut(texts, 3, 1, 3))
    assert isinstance(parts, PartitionedTopics) and parts.total == whole.total
    x = rng.normal(size=(1, whole.n_features))
    for own, other in zip(whole.partition(x), parts.partition(x)):
        np.testing.assert_allclose(other, own, rtol=1e-12, atol=1e-14)
    for own, other in zip(whole.posterior(x, whole), parts.posterior(x, parts)):
        np.testing.assert_allclose(other, own, rtol=1e-12, atol=1e-14)
    target = rng.uniform(0.0, 0.1, size=x.shape)
    steps = [
        m.scaled(x, target, np.full(whole.n_features, 0.1), "gis", np.inf)
        for m in (whole, parts)
    ]
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["lbfgs", "gis"])
def test_the_model_of_two_partitions_is_that_of_one_list(method, rng):
    texts = documents(rng)
    options = {"method": method, "max_iter": 400, "tol": 1e-6, "random_state": 0}
    if method == "gis":
        options |= {"max_iter": 3, "tol": 1.0}
    model = TrigramTopicModel(2, 1, **options)
    one = model.fit(texts)
    weights, objective, vocabulary = one.weights_, one.objective_, one.vocabulary_
    two = model.fit(cut(texts, 4, 3))
    assert two.vocabulary_ == vocabulary and two.converged_
    assert two.objective_ == pytest.approx(objective, abs=1e-9)
    # a gradient of 1e-6 is left, and the prior has a curvature of one in all words
    n = sum(map(len, texts))
    np.testing.assert_allclose(two.weights_, weights, rtol=0, atol=2e-6 * n)


def test_same_bits_by_any_scheduler_and_for_one_partition(rng):
    texts = documents(rng)
    model = TrigramTopicModel(2, 2, max_iter=60, tol=1e-3, random_state=0)
    found = [model.fit(cut(texts, 7)).weights_.tobytes()]
    assert found[0] == model.fit(texts).weights_.tobytes()
    found = [model.fit(cut(texts, 3, 4)).weights_.tobytes()]
    with dask.config.set(scheduler="threads"):
        found.append(model.fit(cut(texts, 3, 4)).weights_.tobytes())
    assert found[0] == found[1]


def test_bad_documents_are_named_by_partition(rng):
    texts = documents(rng)
    texts[5] = "a b c"
    with pytest.raises(ValueError, match=r"partition 1: X\[1\] is a string"):
        TrigramTopicModel(2, 1).fit(cut(texts, 4, 3))
    with pytest.raises(ValueError, match="partition 1: X holds no document"):
        TrigramTopicModel(2, 1).fit(cut(texts[:3], 3, 0))
    array = pytest.importorskip("dask.array").ones((4, 3))
    with pytest.raises(TypeError, match=r"give documents as a dask.bag"):
        TrigramTopicModel(2, 1).fit(array)
