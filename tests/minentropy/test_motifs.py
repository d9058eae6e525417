"""M3EMotifClassifier: features by counting, refusals, planted motifs."""

import numpy as np
import pytest

from maxent._support.sequences import symbol_sequences
from maxent.minentropy import M3EMotifClassifier
from maxent.minentropy.motifs import MotifFeatures

COMPLEMENT = np.array([3, 2, 1, 0])


def sequences(rng, n=20, unknown=True):
    letters = list("ACGTN" if unknown else "ACGT")
    return ["".join(rng.choice(letters, rng.integers(6, 15))) for _ in range(n)]


def counted(read, m, o):
    """Features of every place of one read, by counting: (places, 4 m + 4^o)."""
    rows = []
    for h in range(len(read) - m + 1):
        own = np.zeros(4 * m + 4**o if o else 4 * m)
        for j in range(m):
            if read[h + j] in "ACGT":
                own[4 * j + "ACGT".index(read[h + j])] += 1
        for k in range(h, h + m):
            word = read[k : k + o]
            if o and len(word) == o and "N" not in word:
                code = 0
                for a in word:
                    code = 4 * code + "ACGT".index(a)
                own[4 * m + code] -= 1
        rows.append(own)
    return np.array(rows)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("o", [0, 1, 2, 3])
def test_scores_and_pool_by_counting(both, o, rng):
    X, m = sequences(rng), 5
    found = symbol_sequences(X, alphabet="ACGT", missing="N")
    features = MotifFeatures(found, m, 4, o, COMPLEMENT if both else None, 1.0)
    flip = str.maketrans("ACGTN", "TGCAN")
    psi = [
        np.concatenate(
            [counted(x, m, o)]
            + ([counted(x.translate(flip)[::-1], m, o)] if both else [])
        )
        for x in X
    ]
    psi = [np.column_stack([rows, np.ones(len(rows))]) for rows in psi]
    w = rng.standard_normal(features.d)
    np.testing.assert_allclose(
        features.raw_scores(w), np.concatenate([rows @ w for rows in psi]), atol=1e-12
    )
    beta = rng.standard_normal(features.offsets[-1])
    ends = zip(features.offsets[:-1], features.offsets[1:], strict=True)
    expected = [beta[lo:hi] @ rows for rows, (lo, hi) in zip(psi, ends, strict=True)]
    np.testing.assert_allclose(features.pool(beta)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.25, np.inf])
def test_finds_a_planted_motif(alpha, rng):
    X, y, place = [], np.arange(80) % 2, rng.integers(0, 14, size=80)
    for i, h in enumerate(place):
        x = "".join(rng.choice(list("ACGT"), 20))
        X.append(x[:h] + "TATAAT" + x[h + 6 :] if y[i] else x)
    model = M3EMotifClassifier(6, alpha=alpha, C=100.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    shift = model.predict_hidden(X, y)[y == 1] - place[y == 1]
    values, counts = np.unique(shift, return_counts=True)
    assert counts.max() >= 0.8 * len(shift) and abs(values[counts.argmax()]) <= 2
    assert model.motif_.shape == (6, 4) and model.background_.shape == (16,)


def test_codes_are_like_strings(rng):
    X = sequences(rng, unknown=False)
    codes = [np.array(["ACGT".index(a) for a in x]) for x in X]
    y = np.arange(20) % 2
    options = {"alpha": 1.0, "init": "path", "both_strands": True}
    one = M3EMotifClassifier(4, **options).fit(X, y)
    other = M3EMotifClassifier(4, **options).fit(codes, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize(
    "change, X, message",
    [
        ({}, ["ACGTACGT", "ACG", "ACGTACGT", "AC"], r"sequences \[1, 3\] are shorter"),
        ({}, ["ACGTACGT", "ACGXACGT"] * 2, "X"),
        ({"width": 0}, ["ACGTACGT"] * 4, "width=0"),
        ({"background": -1}, ["ACGTACGT"] * 4, "background=-1"),
        ({"background": 9}, ["ACGTACGT"] * 4, "262144 words"),
        (
            {"alphabet": "ACGX", "both_strands": True},
            ["ACGACG"] * 4,
            "without a complement",
        ),
    ],
)
def test_impossible_input_is_refused(change, X, message):
    options = {"width": 5, **change}
    with pytest.raises(ValueError, match=message):
        M3EMotifClassifier(**options).fit(X, [0, 1, 0, 1])


def test_more_classes_are_refused():
    with pytest.raises(ValueError, match="needs two classes and y has 3"):
        M3EMotifClassifier(3).fit(["ACGT"] * 3, [0, 1, 2])
