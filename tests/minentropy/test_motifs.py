"""M3EMotifClassifier: features by counting, refusals, planted motifs."""

import numpy as np
import pytest

from maxent._inputs.sequences import symbol_sequences
from maxent.datasets import make_planted_motifs
from maxent.minentropy import M3EClassifier, M3EMotifClassifier
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
        ({}, ["ACGTACGT", "ACG", "ACGTACGT", "AC"], r"X\[1\] has 3 .*5 \(2 of 4"),
        ({}, ["ACGTACGT", "ACGXACGT"] * 2, "X"),
        ({"pos_label": "c"}, ["ACGTACGT"] * 4, r"pos_label='c' is none of .* \[0, 1\]"),
        ({}, ["acgtacgt"] * 4, r"X\[0\]\[0\]='a' is not .* in one case"),
        ({}, [None, "ACGTACGT"] * 2, r"X\[0\] is None"),
        ({"missing": 5}, ["ACGTACGT"] * 4, "missing=5 must be a string"),
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
    with pytest.raises(ValueError, match=r"y has 3; .*fit\(X, y == 2\)"):
        M3EMotifClassifier(3).fit(["ACGT"] * 3, [0, 1, 2])


def planted(rng, n=60, share=2):
    """Sequences; one of every `share` has the same letters somewhere."""
    y = np.where(np.arange(n) % share == 0, "bound", "unbound")
    X = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(n)]
    at = rng.integers(0, 14, size=n)
    X = [
        x[:h] + "TATAAT" + x[h + 6 :] if a[0] == "b" else x for x, a, h in zip(X, y, at)
    ]
    return X, y


def test_the_default_C_learns_a_rare_motif():
    X, y = planted(np.random.default_rng(0), 150, 3)
    model = M3EMotifClassifier(6, pos_label="bound", random_state=0).fit(X[:90], y[:90])
    assert model.score(X[90:], y[90:]) > 0.9


def test_the_motif_is_that_of_the_positive_label(rng):
    X, y = planted(rng)
    loss = np.array([[0.0, 2.0], [1.0, 0.0]])
    options = {"random_state": 0, "n_init": 1, "alpha": [2.0, 1.0]}
    model = M3EMotifClassifier(6, pos_label="bound", loss_matrix=loss, **options)
    model.fit(X, y)
    # the same labels in the other order
    z = np.where(y == "bound", 1, 0)
    options["alpha"] = options["alpha"][::-1]
    other = M3EMotifClassifier(6, loss_matrix=loss[::-1, ::-1], **options).fit(X, z)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(
        model.decision_function(X), -other.decision_function(X)
    )
    assert model.pos_label_ == "bound" and list(model.classes_) == ["bound", "unbound"]
    np.testing.assert_array_equal(model.predict(X) == "bound", other.predict(X) == 1)
    for one, two in ((None, None), (y, z)):
        np.testing.assert_array_equal(
            model.predict_hidden(X, one), other.predict_hidden(X, two)
        )
    for a, b in zip(model.hidden_proba(X, y), other.hidden_proba(X, z), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_label_for_all_samples_is_warned_about(rng):
    X, y = planted(rng, 40, 4)
    model = M3EMotifClassifier(6, alpha=0.0, C=0.1, random_state=0)
    with pytest.warns(
        UserWarning, match=r"predicts 'unbound' for all 40 .*to 10, or set class"
    ):
        model.fit(X, y)
    bags, y = np.ones((10, 1, 2)), [0, 1] * 5  # as many of each label
    with pytest.warns(UserWarning, match=r"for all 10 .*to 10000\.$"):
        M3EClassifier().fit(bags, y)


def test_a_start_at_zero_is_left():
    X, y, _, _ = make_planted_motifs(100, 24, 8, information=1.8, random_state=1)
    model = M3EMotifClassifier(8, C=1e4, init="zero", random_state=0).fit(X, y)
    assert model.converged_ and model.score(X, y) > 0.7


def test_unknown_letters_of_proteins_are_X():
    proteins = "ACDEFGHIKLMNPQRSTVWY"
    model = M3EMotifClassifier(4, 0, proteins, max_iter=3, random_state=0)
    assert model.fit(["ACDEFXNN", "NNNNWWWW"] * 5, [1, 0] * 5).missing is None
    model.predict(["NNXXACDE"])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]='N'"):
        model.set_params(missing="X", alphabet="ACGT").fit(["NACGT"] * 2, [0, 1])


def test_short_sequences_to_predict_are_named():
    X = ["ACGTACGT", "TTTTTTTT"] * 5
    model = M3EMotifClassifier(4, random_state=0).fit(X, [1, 0] * 5)
    with pytest.raises(ValueError, match=r"X\[1\] has 3 .*; drop such sequences\."):
        model.predict(["ACGTA", "ACG"])
