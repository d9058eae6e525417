"""Motifs as tables: exact p-values, places, files of other programs, several motifs."""

import io
import itertools

import numpy as np
import pytest
from refusals import refused

import maxent
from maxent.datasets import make_planted_motifs
from maxent.minentropy import (
    M3EMotifClassifier,
    Motif,
    alpha_path,
    find_motifs,
    read_motifs,
    write_motifs,
)
from maxent.minentropy.motifs import widths

FLIP = str.maketrans("ACGTN", "TGCAN")


def drawn(rng, m=5, size=4, **options):
    shares = rng.dirichlet(np.full(size, 5.0))
    table = rng.dirichlet(np.full(size, 0.6), size=m)
    return Motif(table, "ACGTVWXYZ"[:size], background=shares, **options)


@pytest.mark.parametrize("m, size", [(1, 4), (4, 4), (7, 4), (6, 2), (3, 9)])
def test_p_values_enclose_the_sum_over_all_words(m, size, rng):
    motif = drawn(rng, m, size)
    words = np.array(list(itertools.product(range(size), repeat=m)))
    scores = motif.weights[range(m), words].sum(axis=1)
    shares = motif.background[words].prod(axis=1)
    asked = np.unique(rng.choice(scores, 50))
    exact = np.array([shares[scores >= s - 1e-9].sum() for s in asked])
    lower, upper = motif.p_values(asked)
    assert (lower <= exact * (1 + 1e-9)).all() and (exact <= upper * (1 + 1e-9)).all()
    # within m steps of a score there is little else
    step = np.ptp(motif.weights, axis=1).sum() / 2**17
    within = np.array(
        [shares[np.abs(scores - s) <= m * step + 1e-9].sum() for s in asked]
    )
    assert (upper - lower <= within + 1e-12).all()


def test_p_values_of_whole_weights_are_exact():
    # weights -1 and 1 of two letters: the score is binomial
    shares = np.array([1 / 3, 2 / 3])
    table = np.tile([2 * shares[0], 0.5 * shares[1]], (8, 1))
    motif = Motif(table, "AB", background=shares, n_sites=1e12, pseudo_count=1e-12)
    np.testing.assert_allclose(motif.weights, np.tile([1.0, -1.0], (8, 1)), atol=1e-9)
    from scipy.stats import binom

    scores = np.arange(-8.0, 9.0, 2.0)
    exact = binom.sf((scores + 8) / 2 - 1, 8, 1 / 3)
    for bound in motif.p_values(scores - 1e-7):
        np.testing.assert_allclose(bound, exact, rtol=1e-9)


@pytest.mark.parametrize("both", [False, True])
def test_scan_finds_what_every_place_scores(both, rng):
    motif = drawn(rng, 4)
    letters = ["A", "C", "G", "T", "N"]
    X = ["".join(rng.choice(letters, rng.integers(1, 30))) for _ in range(20)]
    found = motif.scan(X, both_strands=both, threshold=0.2)
    expected = {}
    for i, x in enumerate(X):
        for start in range(len(x) - 3):
            word = x[start : start + 4]
            reads = [("+", word), ("-", word.translate(FLIP)[::-1])][: 1 + both]
            for strand, read in reads:
                if "N" in read:
                    continue
                codes = ["ACGT".index(a) for a in read]
                score = motif.weights[range(4), codes].sum()
                p = float(motif.p_values(score)[1])
                if p <= 0.2:
                    expected[i, start, start + 4, strand] = score, p
    keys = zip(found.index, found.start, found.end, found.strand, strict=True)
    assert list(keys) == sorted(expected)
    values = [expected[key] for key in sorted(expected)]
    if values:
        np.testing.assert_allclose(np.array(values).T[0], found.score, atol=1e-9)
        np.testing.assert_allclose(np.array(values).T[1], found.p_value, rtol=1e-6)


def test_the_other_strand_is_the_other_motif(rng):
    X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(5)]
    equal = Motif(drawn(rng, 5).probabilities)  # one background for both strands
    one = equal.scan(X, both_strands=True, threshold=0.05)
    two = equal.reverse_complement().scan(X, both_strands=True, threshold=0.05)
    assert set(zip(one.index, one.start, one.strand)) == {
        (i, s, {"+": "-", "-": "+"}[t])
        for i, s, t in zip(two.index, two.start, two.strand)
    }


def test_names_and_bed(tmp_path):
    file = tmp_path / "a.fa"
    file.write_text(">s1 chr2\nAATATAATA\n>s2\nATTATAA\n")
    table = np.full((6, 4), 0.02)
    table[range(6), [3, 0, 3, 0, 0, 3]] = 0.94
    motif = Motif(table, name="box")
    found = motif.scan(file, both_strands=True, threshold=1e-3)
    assert len(found) == 2 and found.sequence.tolist() == ["s1", "s2"]
    text = found.to_bed(tmp_path / "out.bed")
    assert (tmp_path / "out.bed").read_text() == text
    rows = [line.split("\t") for line in text.splitlines()]
    assert [row[:4] for row in rows] == [
        ["s1", "2", "8", "box"],
        ["s2", "0", "6", "box"],
    ]
    assert [row[5] for row in rows] == ["+", "-"]
    assert all(0 <= int(row[4]) <= 1000 for row in rows)
    codes = motif.scan([[0, 0, 3, 0, 3, 0, 0, 3, 0]], names=["s1"], threshold=1e-3)
    assert codes.start.tolist() == [2]
    assert len(motif.scan(["ACGT"])) == 0  # shorter than the motif


@pytest.mark.parametrize("format", ["meme", "jaspar"])
@pytest.mark.parametrize("counts", [True, False])
def test_files_return_the_motif(format, counts, rng, tmp_path):
    motifs = []
    for name in "ab":
        table = rng.dirichlet(np.ones(4), size=6)
        if counts:
            table = rng.multinomial(25, [0.25] * 4, size=6) / 25
        motifs.append(Motif(table, name=name, n_sites=25))
    file = tmp_path / "m.txt"
    write_motifs(motifs, file, format=format)
    again = read_motifs(file)
    assert [one.name for one in again] == ["a", "b"]
    for one, two in zip(motifs, again, strict=True):
        np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=1e-12)
        np.testing.assert_allclose(two.n_sites, 25.0, rtol=1e-12)
    if format == "meme":
        assert again == motifs


def test_biopython_reads_the_files(rng):
    motifs = pytest.importorskip("Bio.motifs")
    table = rng.multinomial(30, rng.dirichlet(np.ones(4)), size=7) / 30
    shares = rng.dirichlet(np.full(4, 9.0))
    motif = Motif(table, name="box", n_sites=30, background=shares)
    meme = motifs.parse(io.StringIO(write_motifs(motif)), "minimal")[0]
    assert meme.name == "box" and meme.num_occurrences == 30
    for k, a in enumerate("ACGT"):
        assert meme.background[a] == pytest.approx(shares[k])
        np.testing.assert_allclose(meme.pwm[a], table[:, k], atol=1e-6)
    text = write_motifs(motif, format="jaspar")
    jaspar = motifs.parse(io.StringIO(text), "jaspar")[0]
    for k, a in enumerate("ACGT"):
        np.testing.assert_allclose(jaspar.counts[a], 30 * table[:, k])
    # log-odds and places, by Biopython's loops
    pseudo = {a: 0.1 * p for a, p in zip("ACGT", shares)}
    odds = jaspar.counts.normalize(pseudo).log_odds(dict(zip("ACGT", shares)))
    x = "".join(rng.choice(list("ACGT"), 60))
    theirs = dict(odds.search(x, threshold=-100.0, both=False))
    ours = motif.scan([x], threshold=1.0)
    np.testing.assert_allclose([theirs[s] for s in ours.start], ours.score, atol=1e-4)


def test_files_of_other_programs(tmp_path):
    file = tmp_path / "m.meme"
    file.write_text(
        "MEME version 5.5.2\n\nALPHABET= ACGT\n\nstrands: + -\n\nBackground letter "
        "frequencies (from uniform background):\nA 0.3 C 0.2 G 0.2 T 0.3 \n\n"
        "MOTIF MA0004.1 Arnt\nletter-probability matrix: alength= 4 w= 2 nsites= 20 E= "
        "1.5e-3\n  0.333  0.333  0.333  0.000\n  0.95 0.0 0.05 0.0\nURL http://x\n"
    )
    (motif,) = read_motifs(file)
    assert motif.name == "MA0004.1" and motif.significance == 1.5e-3
    np.testing.assert_allclose(motif.probabilities[0], [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(motif.background, [0.3, 0.2, 0.2, 0.3])
    proteins = Motif(np.full((2, 20), 0.05), "ACDEFGHIKLMNPQRSTVWY")
    other = Motif([[0.5, 0.5]], "01", name="bits")
    for one in (proteins, other):
        write_motifs(one, file)
        assert read_motifs(file) == [one]
    file.write_text(">m\n4 0 0\n0 4 0\n0 0 4\n0 0 0\n")  # rows without letters
    assert read_motifs(file)[0].consensus == "ACG"


@pytest.mark.parametrize(
    "text, match",
    [
        ("AC\n", "begins with 'AC'"),
        (">m\nA [ 1 2 ]\nC [ 1 2 ]\nG [ 1 ]\nT [ 1 2 ]\n", "rows of equal lengths"),
        (">m\nA [ 1 x ]\n", "line 2: .* is no row of counts"),
        ("MEME version 4\n", "has no motif"),
        ("MEME version 4\nMOTIF a\nletter-probability matrix: w= 2\n1 0 0 0\n", "w= 2"),
        ("MEME version 4\nMOTIF a\nletter-probability matrix:\n1 0 0\n", "3 numbers"),
        ("MEME version 4\nMOTIF a\nletter-probability matrix:\n1 1 0 0\n", "sums to 2"),
    ],
)
def test_files_that_are_refused(text, match, tmp_path):
    file = tmp_path / "m.txt"
    file.write_text(text)
    refused(lambda: read_motifs(file), match)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: Motif([0.5, 0.5]), "probabilities has shape"),
        (lambda: Motif([[0.5, 0.5]]), "alphabet='ACGT' must be a str of 2"),
        (lambda: Motif([[1.0, 0.5]], "AB"), "row 0 sums to 1.5"),
        (lambda: Motif([[1.5, -0.5]], "AB"), "entry -0.5"),
        (lambda: Motif([[0.5, 0.5]], "AB", background=[1, 0]), "background"),
        (lambda: Motif([[0.5, 0.5]], "AB", name="a b"), "name='a b'"),
        (lambda: Motif(np.eye(4)).scan(["ACGT"], threshold=2.0), "threshold=2.0"),
        (lambda: Motif(np.eye(4)).scan(["ACGQ"]), "'Q' is not in the alphabet"),
        (lambda: Motif(np.eye(4)).scan(["ACGT"], names=["a", "b"]), "names has 2"),
        (lambda: Motif(np.eye(4)).p_values(np.nan), "NaN"),
        (lambda: write_motifs([]), "motifs is empty"),
        (lambda: write_motifs(Motif(np.eye(2), "AB"), format="jaspar"), "'AB'"),
        (lambda: write_motifs([Motif(np.eye(4))] * 2), "the name 'motif'"),
    ],
)
def test_impossible_input_is_refused(make, match):
    refused(make, match)


@pytest.fixture(scope="module")
def learnt():
    X, y, _, places = make_planted_motifs(240, 30, 8, information=1.9, random_state=3)
    model = M3EMotifClassifier(8, alpha=8.0, C=80.0, init="path", tol=1e-2)
    return model.fit(X, y), X, np.asarray(y), places


def test_letters_are_counted_at_the_places(learnt):
    model, X, y, _ = learnt
    motif = Motif.from_estimator(model, X, y)
    at = model.predict_hidden(X, y)
    counts = np.zeros((8, 4))
    for x, h in ((x, h) for x, h, k in zip(X, at, y) if k == 1):
        for j, a in enumerate(x[h : h + 8]):
            counts[j, "ACGT".index(a)] += 1
    np.testing.assert_allclose(motif.probabilities, counts / (y == 1).sum())
    assert motif.n_sites == (y == 1).sum()
    with pytest.raises(ValueError, match="no sequence of class 1"):
        Motif.from_estimator(model, X[:3], [0, 0, 0])


def test_both_strands_are_counted_in_one_direction():
    rng = np.random.default_rng(0)
    core = "TTGACC"
    y = np.arange(120) % 2
    X = ["".join(rng.choice(list("ACGT"), 18)) for _ in y]
    turned = core.translate(FLIP)[::-1]
    X = [x[:4] + (core, turned)[i % 4 // 2] + x[10:] if k else x
         for i, (x, k) in enumerate(zip(X, y))]  # fmt: skip
    model = M3EMotifClassifier(
        6, 0, both_strands=True, alpha=2.0, init="path", tol=1e-2
    )
    motif = Motif.from_estimator(model.fit(X, y), X, y)
    assert motif.consensus in (core, turned)
    hits = motif.scan(X, both_strands=True, threshold=1e-3)
    for i in np.flatnonzero(y):
        strand = "+" if (i % 4 < 2) == (motif.consensus == core) else "-"
        own = hits.index == i
        assert (4, strand) in zip(hits.start[own], hits.strand[own], strict=True)


def test_width_by_held_out_score(tmp_path):
    X, y, _, _ = make_planted_motifs(150, 24, 8, information=1.9, random_state=1)
    assert widths(6, 20) == [6, 8, 11, 15, 20] and widths(1, 4) == [1, 2, 3, 4]
    settings = {"alpha": 8.0, "C": 80.0, "init": "path", "tol": 1e-2}
    model = M3EMotifClassifier((2, 8), **settings).fit(X, y)
    assert list(model.width_scores_) == [2, 3, 4, 5, 7, 8]
    best = max(model.width_scores_.values())
    assert model.width_scores_[model.width_] == best and model.width_ > 4
    one = M3EMotifClassifier(model.width_, **settings).fit(X, y)
    np.testing.assert_array_equal(model.coef_, one.coef_)
    np.testing.assert_array_equal(model.predict_hidden(X, y), one.predict_hidden(X, y))
    assert model.motif_.shape == (model.width_, 4)
    maxent.save(model, tmp_path / "m.npz")
    again = maxent.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), one.decision_function(X))
    assert not hasattr(one, "width_scores_")


@pytest.mark.parametrize(
    "width, options, match",
    [
        ((8, 6), {}, r"width=\(8, 6\)"),
        ((2, 3, 4), {}, r"width=\(2, 3, 4\)"),
        ((2, 30), {}, "whose width is 30"),
        ((2, 4), {"hidden_mask": [None] * 8}, "hidden_mask is made for one width"),
        ((2, 4), {"y": [0, 1] + [0] * 6}, "y has 1 of the label 1"),
    ],
)
def test_ranges_that_are_refused(width, options, match):
    options = {"y": [0, 1] * 4, **options}
    refused(lambda: M3EMotifClassifier(width).fit(["ACGTACGT"] * 8, **options), match)


def test_paths_take_one_width():
    model = M3EMotifClassifier((2, 4), init="path")
    refused(lambda: alpha_path(model, ["ACGT"] * 4, [0, 1] * 2, [0.0]), "of which fit")


def test_several_motifs():
    rng = np.random.default_rng(5)
    y = np.where(np.arange(140) % 2, "bound", "free")  # the first one has the motif
    X = ["".join(rng.choice(list("ACGT"), 30)) for _ in y]
    X = [
        x[:3] + "TATAAT" + x[9:18] + "GGCCGG" + x[24:] if k == "bound" else x
        for x, k in zip(X, y)
    ]
    finder = M3EMotifClassifier(
        6, 0, pos_label="bound", init="path", tol=1e-2, random_state=0
    )
    found = find_motifs(finder, X, y, 4)
    assert {one.consensus for one in found} == {"TATAAT", "GGCCGG"}
    assert all(one.significance < 0.05 for one in found)
    assert [one.name for one in found] == ["motif_1", "motif_2"]
    assert find_motifs(finder, X, y, 4) == found  # the same seed
    refused(lambda: find_motifs(finder, X[:6], y[:6]), "y has 3 of the label")


def test_motifs_are_saved(rng, tmp_path):
    motif = drawn(rng, name="m", significance=0.01)
    maxent.save(motif, tmp_path / "m.npz")
    assert maxent.load(tmp_path / "m.npz") == motif
    assert motif != drawn(rng) and "n_sites=20" in repr(motif)
