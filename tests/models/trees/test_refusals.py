"""What the functions on spanning trees refuse, and in which words."""

import numpy as np
import pytest
from oracles.tree_cases import symmetric
from refusals import refused

from maxent.discrimination import (
    max_spanning_tree,
    sample_spanning_trees,
    spanning_tree_covariance,
    spanning_tree_log_partition,
)

GOOD = symmetric(np.zeros((4, 4)))
ON_WEIGHTS = {
    "partition": spanning_tree_log_partition,
    "covariance": lambda a: spanning_tree_covariance(a, np.ones((4, 4)), np.eye(4)),
    "samples": sample_spanning_trees,
    "maximum": max_spanning_tree,
}


def changed(*places, value):
    a = GOOD.copy()
    for place in places:
        a[place] = value
    return a


@pytest.mark.parametrize("call", ON_WEIGHTS.values(), ids=ON_WEIGHTS.keys())
@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (changed((2, 1), value=1.0), r"weights is not symmetric: .*\[1, 2\]=0 but"),
        (changed((2, 1), value=-np.inf), "weights is not symmetric"),
        (changed((2, 1), (1, 2), value=np.nan), r"weights\[1, 2\]=nan is not allowed"),
        (changed((2, 1), (1, 2), value=np.inf), r"weights\[1, 2\]=inf is not allowed"),
        (changed((2, 1), (1, 2), value=1e200), "weights has entries as large as 1e"),
        (changed((2, 1), (1, 2), value=-1e200), "weights has entries as large as 1e"),
        ([[0.0, 1.0], [1.0]], r"weights=.* is ragged: its rows differ in length"),
        (np.zeros((4, 3)), r"weights has shape \(4, 3\)"),
        (np.zeros(4), r"weights has shape \(4,\)"),
        (np.full((1, 1), -np.inf), "weights has n=1 variables; .* two or more"),
        (np.zeros((0, 0)), "weights has n=0 variables"),
        (
            symmetric(np.where(np.arange(4)[:, None] == 3, -np.inf, np.zeros((4, 4)))),
            r"no spanning tree: .* separate parts \[0, 1, 2\], \[3\]",
        ),
        (1j * np.ones((4, 4)), "weights is complex"),
        ([["a"] * 4] * 4, "cannot be converted to real numbers"),
    ],
)
def test_bad_weights_are_refused(call, bad, match):
    refused(lambda: call(bad), match)


@pytest.mark.parametrize("value", [1.0, np.nan, -1e200])
def test_a_bad_weight_is_found_wherever_it_is(value):
    """Matrices are looked at by tiles, which must leave no pair out."""
    n = 35
    good = symmetric(np.zeros((n, n)))
    for i in range(n):
        for j in range(i):
            bad = good.copy()
            bad[i, j] = value  # the mirrored entry stays 0
            with pytest.raises(ValueError, match=r"not symmetric|not allowed|large"):
                spanning_tree_log_partition(bad)


@pytest.mark.parametrize("name", ["partition", "covariance", "samples"])
def test_a_finite_diagonal_is_refused(name):
    match = r"log_weights\[2, 2\]=0 joins a variable to itself; .*fill_diagonal"
    refused(lambda: ON_WEIGHTS[name](changed((2, 2), value=0.0)), match)
    max_spanning_tree(changed((2, 2), value=0.0))  # where it counts for nothing


def test_a_bad_member_of_a_batch_is_named():
    batch = np.stack([GOOD, GOOD])[None].repeat(2, axis=0)
    batch[1, 0, 3, :] = batch[1, 0, :, 3] = -np.inf
    for call in (
        spanning_tree_log_partition,
        lambda a: spanning_tree_covariance(a, np.ones((4, 4)), np.ones((4, 4))),
    ):
        refused(lambda call=call: call(batch), r"log_weights\[1, 0\] has no spanning")
    batch[1, 1, 2, 0] = np.nan
    match = r"log_weights\[1, 1, 2, 0\]=nan is not allowed"
    refused(lambda: spanning_tree_log_partition(batch), match)
    many = np.repeat(GOOD[None], 70_000, axis=0)  # beyond what is looked at together
    many[69_999, 2, 0] = 3.0
    match = r"log_weights\[69999, 0, 2\]=0 but the mirrored entry is 3"
    refused(lambda: spanning_tree_log_partition(many), match)
    for call in (sample_spanning_trees, max_spanning_tree):
        refused(lambda call=call: call(batch), r"shape \(2, 2, 4, 4\); \(n, n\) is")


@pytest.mark.parametrize("marginals", [False, True])
def test_cholesky_refuses_what_it_cannot_do(marginals, rng):
    lw = symmetric(40 * rng.normal(size=(30, 30)))
    refused(
        lambda: spanning_tree_log_partition(lw, marginals, method="cholesky"),
        "method='cholesky' would lose too many digits, .* use method='star-mesh'",
    )
    refused(lambda: spanning_tree_log_partition(lw, method="qr"), "method='qr' is not")


@pytest.mark.parametrize("name", ["f", "g"])
def test_bad_edge_values_are_refused(name):
    good, n = np.ones((4, 4)), 4

    def call(bad):
        pair = {"f": good, "g": good, name: bad}
        return spanning_tree_covariance(GOOD, **pair)

    refused(lambda: call(np.ones((3, 3))), rf"{name} has shape \(3, 3\)")
    refused(lambda: call(np.where(np.eye(n)[::-1], np.nan, good)), rf"{name}\[0, 3\]")
    refused(lambda: call(np.arange(16.0).reshape(4, 4)), f"{name} is not symmetric")
    batch = np.stack([GOOD] * 2)
    refused(
        lambda: spanning_tree_covariance(batch, np.ones((3, 4, 4)), good),
        "leading axes of log_weights, f and g",
    )


def test_weights_beyond_the_memory_are_refused_before_they_are_copied():
    n = 10**7
    huge = np.broadcast_to(-np.inf, (n, n))
    for call in (spanning_tree_log_partition, sample_spanning_trees, max_spanning_tree):
        with pytest.raises(MemoryError, match=r"n=10000000 needs .* GB of memory"):
            call(huge)
    with pytest.raises(MemoryError, match=r"size=10{12} needs 4\.8e\+04 GB"):
        sample_spanning_trees(GOOD, 10**12)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None, "2"])
def test_bad_sizes_are_refused(size):
    refused(
        lambda: sample_spanning_trees(GOOD, size), "size=.* must be an integer >= 1"
    )
