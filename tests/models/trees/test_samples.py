"""Random spanning trees: their frequencies and their seeds."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import normal, symmetric
from scipy.stats import chi2

from maxent.discrimination import sample_spanning_trees, spanning_tree_log_partition


def chi_square(trees, lw):
    """P-value of the frequencies of sampled trees."""
    n = len(lw)
    power = (n * n) ** np.arange(n - 1)
    known = (oracle.all_trees(n) @ [n, 1]) @ power
    _, probability = oracle.distribution(lw)
    count = (((trees @ [n, 1]) @ power)[:, None] == known).sum(axis=0)
    assert count.sum() == len(trees)
    expected = len(trees) * probability
    often = expected >= 5
    terms = (count[often] - expected[often]) ** 2 / expected[often]
    return chi2.sf(terms.sum(), max(1, often.sum() - 1))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_sampled_trees_have_their_frequencies(n, rng, seed):
    for lw in (normal(n, rng), symmetric(np.zeros((n, n)))):
        trees = sample_spanning_trees(lw, 20_000, random_state=seed)
        assert trees.shape == (20_000, n - 1, 2)
        assert (trees[..., 0] < trees[..., 1]).all()
        assert chi_square(trees, lw) >= 1e-5


def test_trapped_walks_are_left_out(rng, seed):
    # two pairs held by e^80 each: the walk would take e^80 steps
    lw = normal(4, rng)
    lw[0, 1] = lw[1, 0] = lw[2, 3] = lw[3, 2] = 80.0
    trees = sample_spanning_trees(lw, 20_000, random_state=seed)
    _, prob = spanning_tree_log_partition(lw, marginals=True)
    for u, v in ((0, 2), (0, 3), (1, 2), (1, 3)):
        seen = ([u, v] == trees).all(axis=-1).any(axis=-1).mean()
        assert abs(seen - prob[u, v]) <= 5 * np.sqrt(0.25 / 20_000)
    for u, v in ((0, 1), (2, 3)):
        assert ([u, v] == trees).all(axis=-1).any(axis=-1).all()


def test_seeds_decide_the_trees(rng, seed):
    lw = normal(10, rng)
    one = sample_spanning_trees(lw, 50, random_state=seed)
    assert (one == sample_spanning_trees(lw, 50, random_state=seed)).all()
    state = np.random.RandomState(seed)
    assert (one == sample_spanning_trees(lw, 50, random_state=state)).all()
    assert (one != sample_spanning_trees(lw, 50, random_state=seed + 1)).any()
    a, b = (np.random.default_rng(seed) for _ in range(2))
    first = sample_spanning_trees(lw, 50, random_state=a)
    assert (first == sample_spanning_trees(lw, 50, random_state=b)).all()
    assert (first != sample_spanning_trees(lw, 50, random_state=a)).any()
    assert sample_spanning_trees(lw).shape == (1, 9, 2)
