"""Sequences with hidden motifs: their letters, labels and sites by definition."""

import numpy as np
import pytest
from refusals import refusals

from maxent.datasets import make_motif_occupancy, make_planted_motifs


@pytest.mark.parametrize("bits", [0.2, 1.0, 1.9])
def test_positions_have_the_bits_asked_for(bits, rng):
    motif = make_motif_occupancy(10, information=bits, random_state=rng)[2]
    np.testing.assert_allclose(motif.sum(axis=1), 1.0)
    entropy = -np.sum(motif * np.log2(motif + 1e-300), axis=1)
    np.testing.assert_allclose(2.0 - entropy, bits, atol=1e-9)


def test_without_noise_labels_are_the_occupancies(rng):
    X, y, motif = make_motif_occupancy(60, 12, 4, noise=0.0, random_state=rng)
    odds = 4.0 * motif
    occupancy = [
        sum(
            np.prod([odds[j, "ACGT".index(x[h + j])] for j in range(4)])
            for h in range(9)
        )
        for x in X
    ]
    assert np.max(np.array(occupancy)[y == 0]) <= np.min(np.array(occupancy)[y == 1])
    assert y.sum() == 30 and {len(x) for x in X} == {12}


def test_positives_have_sites_and_negatives_half_of_one(rng):
    n = 4000
    X, y, motif, places = make_planted_motifs(n, 20, 6, random_state=rng)
    codes = np.array([["ACGT".index(a) for a in x] for x in X])
    sites = codes[np.arange(n)[:, None], places[:, None] + np.arange(6)]
    outside = np.delete(
        codes.ravel(),
        (np.arange(n)[:, None] * 20 + places[:, None] + np.arange(6)).ravel(),
    )
    whole, half = (
        np.stack([np.bincount(s, minlength=4) for s in sites[y == k].T]) / (n / 2)
        for k in (1, 0)
    )
    # five deviations of a share among 2000, over 48 shares
    bound = 5 * np.sqrt(0.25 / 2000)
    assert np.abs(whole - motif).max() < bound
    assert np.abs(half - 0.5 * (motif + 0.25)).max() < bound
    shares = np.bincount(outside, minlength=4) / len(outside)
    assert np.abs(shares - 0.25).max() < bound


def test_same_seed_same_sequences():
    for make in (make_motif_occupancy, make_planted_motifs):
        one, other = make(20, random_state=3), make(20, random_state=3)
        assert one[0] == other[0] and (one[1] == other[1]).all()


test_bad_input_is_named = refusals(
    [
        (lambda: make_motif_occupancy(1), "n_samples=1 must be 2"),
        (lambda: make_motif_occupancy(9, 5, 6), "width=6 must be at most length=5"),
        (lambda: make_motif_occupancy(9, information=2.0), "information=2.0"),
        (lambda: make_motif_occupancy(9, noise=-1.0), "noise=-1"),
        (lambda: make_planted_motifs(9, decoy=1.5), "decoy=1.5"),
    ],
    literal=True,
)
