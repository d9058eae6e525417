"""Sampled trees, by the walk and by the elimination, against enumeration."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import symmetric, wide
from scipy.stats import chi2

from maxent._core.trees import star_mesh_elimination, tree_sampling
from maxent.discrimination import spanning_tree_log_partition

OK = 0


def sample(lw, root, size, seed, threads=1):
    trees = np.empty((size, len(lw) - 1, 2), dtype=np.intp)
    assert tree_sampling.sample(lw, root, 1.0 * len(lw), seed, threads, trees) == OK
    return trees


def frequencies(trees, n):
    """How often each tree of the enumeration occurs."""
    power = (n * n) ** np.arange(n - 1)
    known = (oracle.all_trees(n) @ [n, 1]) @ power
    drawn = (trees @ [n, 1]) @ power
    at = np.argsort(known)
    place = np.searchsorted(known[at], drawn)
    assert (known[at][place] == drawn).all()
    return np.bincount(at[place], minlength=len(known))


@pytest.mark.parametrize("root", [-1, 0, 3])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_samples_have_the_frequencies_of_the_trees(root, scale, rng, seed):
    n, size = 5, 40_000
    lw = symmetric(scale * rng.normal(size=(n, n)))
    _, probability = oracle.distribution(lw)
    count = frequencies(sample(lw, root, size, seed), n)
    expected = size * probability
    rare = expected < 5
    terms = (count[~rare] - expected[~rare]) ** 2 / expected[~rare]
    left = expected[rare].sum()
    if left > 0:
        terms = np.append(terms, (count[rare].sum() - left) ** 2 / max(left, 1.0))
    assert chi2.sf(terms.sum(), len(terms) - 1) >= 1e-5


@pytest.mark.parametrize("kind", ["uniform", "chain", "parts", "normal", "narrow"])
def test_logarithms_of_pivots_add_up_to_log_z(kind, rng):
    scale = 0.2 if kind == "narrow" else 1.0
    lw = wide(kind, 40, rng)
    lw = np.where(np.isfinite(lw), scale * lw, lw)
    log_z = spanning_tree_log_partition(lw)
    pivots = np.zeros(40)
    assert star_mesh_elimination._log_pivots_for_tests(lw, pivots) == OK
    assert pivots[1:].sum() == pytest.approx(log_z, rel=1e-13, abs=1e-11)


@pytest.mark.parametrize("kind", ["chain", "parts", "normal"])
def test_samples_of_wide_weights(kind, rng, seed):
    lw = wide(kind, 9, rng)
    size = 20_000
    trees = sample(lw, -1, size, seed)
    count = np.zeros((9, 9))
    np.add.at(count, (trees[..., 0], trees[..., 1]), 1)
    _, prob = spanning_tree_log_partition(lw, True)
    p = np.triu(prob)
    # five standard deviations of a binomial count, and one for rare edges
    assert (np.abs(count - size * p) <= 5 * np.sqrt(size * p * (1 - p)) + 6).all()


@pytest.mark.parametrize("middle", [1, 2, 3])
def test_edges_a_thousand_nats_above_the_others_are_in_every_tree(middle, seed):
    """Scales are the largest there are, wherever the strong node stands."""
    lw = symmetric(np.full((4, 4), -500.0))
    ends = [node for node in range(4) if node != middle][:2]
    for end in ends:
        lw[end, middle] = lw[middle, end] = 500.0
    trees = sample(lw, -1, 200, seed)
    for end in ends:
        edge = sorted((end, middle))
        assert (trees == edge).all(axis=-1).any(axis=-1).all()


def test_sampler_leaves_missing_edges_out(rng, seed):
    lw = symmetric(rng.normal(size=(6, 6)))
    lw[2, :5] = lw[:5, 2] = -np.inf
    for root in (-1, 0):
        trees = sample(lw, root, 300, seed)
        assert (trees == [2, 5]).all(axis=-1).any(axis=-1).all()
        assert np.isfinite(lw[trees[..., 0], trees[..., 1]]).all()


@pytest.mark.parametrize("root", [-1, 2])
def test_samples_are_the_same_for_any_number_of_threads(root, rng, seed):
    lw = symmetric(rng.normal(size=(12, 12)))
    one = sample(lw, root, 5000, seed)
    assert (one == sample(lw, root, 5000, seed, threads=3)).all()
    assert (one[:100] == sample(lw, root, 100, seed)).all()
    assert (one != sample(lw, root, 5000, seed + 1)).any()
