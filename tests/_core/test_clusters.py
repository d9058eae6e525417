"""k-means against enumeration, a local search by hand and scikit-learn."""

import itertools

import numpy as np
import pytest
from maxent._core.clusters import k_means
from sklearn.cluster import KMeans


def clusters(X, w, k, rng, max_iter=1000):
    candidates = rng.random((k, 2 + int(np.log(k))))
    return k_means(np.ascontiguousarray(X), w, k, candidates, max_iter)


def squares_of(X, w, labels):
    """Weighted squares about the means of groups."""
    total = 0.0
    for h in np.unique(labels):
        at = labels == h
        centre = np.average(X[at], axis=0, weights=w[at])
        total += w[at] @ np.square(X[at] - centre).sum(axis=1)
    return total


def test_the_best_of_some_clusterings_is_that_of_all_partitions(rng):
    X, w = rng.normal(size=(8, 2)), rng.uniform(0.2, 2.0, 8)
    want = min(
        squares_of(X, w, np.array(labels))
        for labels in itertools.product(range(3), repeat=8)
    )
    found = min(clusters(X, w, 3, rng)[1] for _ in range(60))
    assert found == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("n, d, k", [(40, 1, 2), (700, 3, 5), (1100, 9, 12)])
def test_every_row_is_at_the_nearest_mean(n, d, k, rng):
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + 100.0
    w = rng.uniform(0.2, 2.0, n)
    labels, squares = clusters(X, w, k, rng)
    assert set(labels.tolist()) == set(range(k))
    assert squares == pytest.approx(squares_of(X, w, labels), rel=1e-9)
    centre = [
        np.average(X[labels == h], axis=0, weights=w[labels == h]) for h in range(k)
    ]
    apart = np.square(X[:, None] - np.array(centre)).sum(axis=2)
    nearest = apart.min(axis=1)
    own = apart[np.arange(n), labels]
    assert (own <= nearest * (1 + 1e-9) + 1e-12 * squares).all()


def test_seeds_are_as_good_as_those_of_scikit_learn(rng):
    X = rng.normal(size=(300, 2)) + 6.0 * rng.integers(0, 4, size=(300, 2))
    ours = [clusters(X, np.ones(300), 16, rng, 50)[1] for _ in range(200)]
    theirs = [
        KMeans(16, n_init=1, max_iter=50, random_state=seed).fit(X).inertia_
        for seed in range(100)
    ]
    assert np.mean(ours) < 1.15 * np.mean(theirs)


def test_fewer_different_rows_than_clusters_are_as_many_clusters(rng):
    X = np.repeat([[0.0, 1.0], [5.0, 5.0], [0.0, 1.5]], 7, axis=0)
    labels, squares = clusters(X, np.ones(21), 6, rng)
    assert squares == 0.0 and len(np.unique(labels)) == 3
    assert (labels.reshape(3, 7) == labels.reshape(3, 7)[:, :1]).all()


def test_weights_are_repetitions(rng):
    X, times = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    labels = clusters(X, times.astype(float), 3, np.random.default_rng(1))[0]
    many = np.repeat(X, times, axis=0)
    assert squares_of(X, times, labels) == pytest.approx(
        squares_of(many, np.ones(len(many)), np.repeat(labels, times)), rel=1e-12
    )
    # a row of hardly any weight has a cluster of its own no more
    far = np.vstack([X, [[1e3, 1e3]]])
    alone = clusters(far, np.append(np.ones(30), 1e-9), 2, np.random.default_rng(2))[0]
    assert len(np.unique(alone[:30])) == 2
