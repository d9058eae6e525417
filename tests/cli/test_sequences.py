"""The command line on sequences: FASTA files, and lines of a sequence and its label."""

import gzip
import io
import re
import sys

import numpy as np
import pytest
from command_line import assert_one_sentence, pairs, read_rows, values_beside
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier
from maxent._persistence.persistence import load
from maxent.kernels import ProductKernel
from maxent.models import CategoricalHMM, MarkovChain

MARKOV = ("--sequence-model", "markov", "--horizon", "4", "-C", "10")


@pytest.fixture
def strings(rng):
    """Strings of two chains, and their labels."""
    laws = {
        "exon": MarkovChain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], alphabet="AC"),
        "intron": MarkovChain([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]], alphabet="AC"),
    }
    X = [x for law in laws.values() for x in law.sample(12, 40, rng)]
    return X, np.repeat(list(laws), 12)


@pytest.fixture
def fasta(strings, tmp_path):
    path = tmp_path / "train.fasta"
    path.write_text(
        "".join(
            f">s{i} chromosome {i} {label}\n{x[:25]}\n{x[25:]}\n"
            for i, (x, label) in enumerate(zip(*strings))
        )
    )
    return path


@pytest.fixture
def lines(strings, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{x} {label}\n" for x, label in zip(*strings)))
    return path


def machine(horizon=4, **options):
    kernel = ProductKernel(
        "MarkovChain", horizon=horizon, model_params={"alphabet": "AC", **options}
    )
    return make_pipeline(kernel, MEDClassifier(kernel="precomputed", C=10))


def test_fit_and_predict_are_the_pipeline(run, fasta, lines, strings, tmp_path):
    X, y = strings
    expected = machine().fit(X, y)
    for path, more in ((fasta, ()), (lines, ("--format", "sequences"))):
        model = tmp_path / "m.npz"
        code, out, err = run("fit", path, model, *MARKOV, *more)
        assert (code, err) == (0, "")
        said = pairs(out)
        assert said["sequences"] == "24" and said["alphabet"] == "AC (2 letters)"
        assert said["classes"] == "exon (12), intron (12)"
        assert said["model"] == "MarkovChain, horizon 4, rho 0.5"
        np.testing.assert_allclose(
            load(model).decision_function(X), expected.decision_function(X), rtol=1e-12
        )
        wrong = int((expected.predict(X) != y).sum())
        assert said["training error"].startswith(f"{wrong} of 24")
        code, out, err = run("predict", model, path)
        assert code == 0 and err.startswith(f"error: {wrong} of 24")
        rows = read_rows(out)
        names = [] if more else ["id"]  # lines of text have no names
        assert rows[0] == [*names, "prediction"]
        assert [row[-1] for row in rows[1:]] == expected.predict(X).tolist()
        if names:
            assert [row[0] for row in rows[1:]] == [f"s{i}" for i in range(24)]


def test_decisions_without_labels_to_a_file(run, fasta, strings, tmp_path):
    X, y = strings
    model, out_path = tmp_path / "m.npz", tmp_path / "p.csv"
    assert run("fit", fasta, model, *MARKOV)[0] == 0
    bare = tmp_path / "bare.fa.gz"
    with gzip.open(bare, "wt") as stream:
        stream.writelines(f">{i}\n{x}\n" for i, x in enumerate(X))
    code, out, err = run("predict", model, bare, "--decision", "-o", out_path)
    assert (code, out, err) == (0, "", "")
    expected = machine().fit(X, y).decision_function(X)
    found = values_beside(out_path.read_text(), "decision")
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)
    code, _, err = run("predict", model, fasta, "--no-label", "-o", out_path)
    assert (code, err) == (0, "")


def test_options_reach_the_kernel(run, lines, tmp_path):
    model = tmp_path / "m.npz"
    code, out, _ = run(
        *("fit", lines, model, "--format", "sequences", "--sequence-model", "markov"),
        *("--order", "2", "--smoothing", "0.5", "--rho", "1", "--alphabet", "ACGT"),
        *("--margin", "logistic", "--jobs", "2", "--unknown", "N"),
    )
    assert code == 0
    assert pairs(out)["model"] == "MarkovChain, horizon 39, rho 1"
    kernel = load(model)[0]
    assert kernel.models_[0].order == 2 and kernel.model_params["missing"] == "N"
    code, out, _ = run("predict", model, lines, "--proba")
    proba = values_beside(out, "proba_exon", "proba_intron")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    code, out, _ = run("info", model)
    said = pairs(out)
    assert code == 0 and said["step kernel"] == "ProductKernel"
    assert said["step machine"] == "MEDClassifier" and said["converged"] == "yes"
    assert "array" not in out


def test_hidden_markov_models_are_the_default(run, tmp_path):
    path = tmp_path / "few.seq"
    path.write_text("AAAACCAA x\nACACACAC y\nAACCAAAA x\nCACACACA y\n")
    model = tmp_path / "m.npz"
    options = "--states", "1", "--seed", "3", "--em-tol", "1e-3", "--starts", "2"
    code, out, _ = run("fit", path, model, *options)
    assert code == 0 and "CategoricalHMM, horizon 7" in out
    kernel = load(model)[0]
    assert kernel.random_state == 3 and kernel.models_[0].n_states == 1
    assert kernel.model_params["tol"] == 1e-3 and kernel.model_params["n_init"] == 2
    code, _, err = run("fit", path, model, "--em-tol", "-1")
    assert code == 2 and "argument --em-tol: '-1' is not > 0" in err


@pytest.mark.parametrize(
    "options, words",
    [
        (["--kernel", "rbf"], "--kernel does not apply to the classifier of sequences"),
        (["--gamma", "1"], "--gamma does not apply to the classifier of sequences"),
        (["--set", "kernel=rbf"], "--set kernel does not apply to the classifier of"),
        (["--standardize"], "--standardize does not apply to sequences"),
        (["--label", "0"], "--label does not apply to sequences"),
        (["--bins", "3"], "--bins does not apply to sequences"),
        (["--estimator", "regressor"], "which have classifier, motif, outliers"),
        (["--order", "2"], "--order does not apply to --sequence-model hmm"),
        ([*MARKOV, "--states", "2"], "--states does not apply"),
        ([*MARKOV, "--em-tol", "1"], "--em-tol does not apply to --sequence-model"),
        (["--estimator", "motif", "--em-tol", "1"], "--em-tol does not apply to the"),
        ([*MARKOV, "--format", "csv"], "--horizon is for sequences|--sequence-model"),
        (
            [*MARKOV, "--alphabet", "A"],
            r"line \d+: the sequence 's\d+ .*' has the letter 'C' at place \d+, which",
        ),
        ([*MARKOV, "--rho", "0"], "--rho 0.* must be"),
        (["--horizon", "long"], "use mean or an integer"),
    ],
)
def test_wrong_options_are_one_sentence(run, fasta, tmp_path, options, words):
    model = tmp_path / "m.npz"
    code, out, err = run("fit", fasta, model, *options)
    assert code == 2 and not out and not model.exists()
    assert_one_sentence(err, "fit")
    assert re.search(words, err)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "has no sequence"),
        ("ACA x\nCAC\n", "line 2: the sequence has no label"),
        (">a x\nACA\n>\nCAC\n", "line 3: the sequence has no label"),
        ("ACA x\nCAC ?\n", "line 2: the sequence has the label '?', which stands for"),
        (">a x\nACA\n>b NA\nCAC\n", "line 3: the sequence has the label 'NA', which"),
        ("ACA x y\n", "line 1: a sequence and its label are expected, and 3 words"),
        ("seq,label\nACA,x\n", "line 1: 'seq,label' looks like names of columns"),
        ("@a x\nAC\n+\n!\n", "begins with @ is read as FASTQ"),
        (">a\nAC\n>b\nCA\n>c\nAA\n", "every header is one word, 'a' the first"),
    ],
)
def test_damaged_files_are_one_sentence(run, tmp_path, text, words):
    path = tmp_path / "data.seq"
    path.write_text(text)
    code, _, err = run("fit", path, tmp_path / "m.npz", *MARKOV)
    assert code == 2 and words in err
    assert_one_sentence(err, "fit")


def test_prediction_refusals(run, fasta, crabs, tmp_path):
    model = tmp_path / "m.npz"
    assert run("fit", fasta, model, *MARKOV)[0] == 0
    other = tmp_path / "other.fasta"
    other.write_text(">a\nACCA\n>b 7\nACGT\n")
    code, _, err = run("predict", model, other)
    assert code == 2
    assert "line 3: the sequence 'b 7' has the letter 'G' at place 3, which" in err
    assert_one_sentence(err, "predict")
    other.write_text(">a\nACCA\n>b 7\nACaC\n")
    assert run("predict", model, other)[0] == 0
    code, _, err = run("predict", model, other, "--keep-case")
    assert code == 2 and "the letter 'a' at place 3" in err and "toupper" in err
    bare = tmp_path / "bare.txt"
    bare.write_text("ACAC\nAAXA\n")
    code, _, err = run("predict", model, bare, "--format", "sequences")
    assert code == 2 and "line 2: the sequence has the letter 'X' at place 3" in err
    code, _, err = run("predict", model, fasta, "--format", "csv")
    assert code == 2 and "model of sequences" in err
    code, _, err = run("predict", model, fasta, "--proba")
    assert code == 2 and "--margin logistic" in err
    code, _, err = run("predict", model, fasta, "--label", "1")
    assert code == 2 and "--label does not apply" in err
    table = tmp_path / "table.npz"
    assert run("fit", crabs, table, "--label", "sex")[0] == 0
    code, _, err = run("predict", table, fasta, "--format", "sequences")
    assert code == 2 and "model of a table" in err
    code, _, err = run("predict", table, fasta)
    assert code == 2
    assert_one_sentence(err, "predict")


def test_labels_that_stand_for_none_are_no_error(run, strings, tmp_path):
    path, other = tmp_path / "s.fasta", tmp_path / "o.fasta"
    text = "".join(f">s {label}\n{x}\n" for x, label in zip(*strings))
    path.write_text(text)
    other.write_text(f"{text}>t NA\nACAC\n>u null\nCACC\n")
    assert run("fit", path, tmp_path / "m", *MARKOV)[0] == 0
    said = run("predict", tmp_path / "m", path)[2].strip()
    code, _, err = run("predict", tmp_path / "m", other)
    assert code == 0 and err.strip() == f"{said}; 2 without a label left out"


def test_bases_of_both_cases_are_read_alike(run, strings, tmp_path):
    path = tmp_path / "mixed.fasta"
    path.write_text(
        "".join(f">s {label}\n{x[:20]}{x[20:].lower()}\n" for x, label in zip(*strings))
    )
    _, _, err = run("fit", path, tmp_path / "m", *MARKOV, "-q")
    assert "24 of 24 sequences have lower-case bases, read as upper case" in err
    assert load(tmp_path / "m")[0].model_params["alphabet"] == "AC"
    _, _, err = run("fit", path, tmp_path / "m", *MARKOV, "-q", "--keep-case")
    assert "warning: A, C occur in lower case too" in err and "toupper" in err
    assert load(tmp_path / "m")[0].model_params["alphabet"] == "ACac"
    _, _, err = run("fit", path, tmp_path / "m", *MARKOV, "-q", "--alphabet", "ACac")
    assert err == ""


def test_labels_that_the_model_does_not_know_are_said(run, strings, tmp_path):
    path, other = tmp_path / "s.fasta", tmp_path / "o.fasta"
    for file, change in ((path, str), (other, str.upper)):
        file.write_text(
            "".join(f">s {change(str(c))}\n{x}\n" for x, c in zip(*strings))
        )
    assert run("fit", path, tmp_path / "m", *MARKOV, "-q")[0] == 0
    code, _, err = run("predict", tmp_path / "m", other)
    assert code == 0 and "no last word of a header or line is a class" in err
    # numbers that are text to FASTA are keys of weights all the same
    path.write_text("".join(f">s {int(c == 'exon')}\n{x}\n" for x, c in zip(*strings)))
    options = [*MARKOV, "--class-weight", "0:1,1:3"]
    assert run("fit", path, tmp_path / "m", *options)[0] == 0


def test_headers_that_end_in_names_are_refused(run, strings, tmp_path):
    path = tmp_path / "names.fasta"
    path.write_text("".join(f">exon s{i}\n{x}\n" for i, x in enumerate(strings[0])))
    code, _, err = run("fit", path, tmp_path / "m", *MARKOV)
    assert code == 2 and "too many to be labels" in err


def test_a_file_that_is_no_model_is_not_replaced(run, strings, tmp_path):
    path, other = tmp_path / "s.fasta", tmp_path / "test.fasta"
    for file in (path, other):
        file.write_text("".join(f">s {c}\n{x}\n" for x, c in zip(*strings)))
    text = other.read_text()
    code, _, err = run("fit", path, other, *MARKOV)
    assert code == 2 and "exists and is no model file" in err
    assert other.read_text() == text
    arrays = tmp_path / "data.npz"
    np.savez(arrays, x=np.ones(3))
    assert run("fit", path, arrays, *MARKOV)[0] == 2
    assert np.load(arrays)["x"].sum() == 3.0
    assert [run("fit", path, tmp_path / "m", *MARKOV)[0] for _ in range(2)] == [0, 0]


def test_unknown_letters_of_motifs_are_those_of_nucleic_acids(run, tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(w) for w in rng.choice(list("ACGT"), size=(40, 20))]
    for letters, found in (("ACGT", "ACGT (4 letters)"), ("NSDK", "DKNS (4 letters)")):
        table = str.maketrans("ACGT", letters)
        path = tmp_path / f"{letters}.fasta"
        path.write_text(
            "".join(
                f">s {i % 2}\n{w[:10].translate(table)} {w[10:].translate(table)}\n"
                for i, w in enumerate(words)
            )
        )
        options = ["--estimator", "motif", "--width", 4, "--max-iter", 3]
        _, out, _ = run("fit", path, tmp_path / f"{letters}.npz", *options)
        assert found in out and "motif sought in" in out


@pytest.mark.parametrize(
    "options",
    [
        ["--sequence-model", "markov"],
        ["--estimator", "motif", "--width", "4", "--max-iter", "3"],
        ["--estimator", "outliers", "--max-iter", "3"],
    ],
)
def test_codes_of_unknown_bases_are_no_letters(run, options, tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(w) for w in rng.choice(list("ACGT"), size=(16, 12))]
    words[3], words[8] = words[3][:9] + "NRN", "Y" + words[8]
    path, model = tmp_path / "dna.fasta", tmp_path / "m.npz"
    path.write_text("".join(f">s {i % 2}\n{w}\n" for i, w in enumerate(words)))
    _, out, err = run("fit", path, model, *options)
    assert "alphabet" in pairs(out) and pairs(out)["alphabet"] == "ACGT (4 letters)"
    assert "maxent fit: N (2), R (1), Y (1) stand for unknown letters" in err
    other = tmp_path / "other.fasta"
    other.write_text(">a\nACGTK\n>b\nACGTA\n")
    assert run("predict", model, other)[0] == 0
    _, out, err = run("fit", path, model, *options, "--unknown", "NRY")
    assert "4 letters" in out and "unknown letters" not in err
    _, out, err = run("fit", path, model, *options, "--alphabet", "ACGT")
    assert "4 letters" in out and "unknown letters" in err


def test_motifs_of_a_label_and_their_lengths(run, tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(w) for w in rng.choice(list("ACGT"), size=(60, 16))]
    words = [f"{w[:5]}TATAAT{w[11:]}" if i % 2 else w for i, w in enumerate(words)]
    path, model = tmp_path / "sites.fasta", tmp_path / "m.npz"
    names = ["unbound", "bound"]
    lines = [f">s{i} {names[i % 2]}\n{w}\n" for i, w in enumerate(words)]
    path.write_text("".join(lines))
    options = ["--estimator", "motif", "--width", 6, "--positive", "bound"]
    code, out, err = run("fit", path, model, *options)
    assert (code, err) == (0, "") and pairs(out)["motif sought in"] == "bound"
    assert load(model).C == 80.0
    code, out, _ = run("info", model)
    assert "TATAAT" in pairs(out)["motif of bound"]
    for given, words in (
        (["--positive", "x"], "--positive x is none of the labels .* bound, unbound"),
        (["--probability"], "does not combine with --positive bound"),
    ):
        code, _, err = run("fit", path, model, *options, *given)
        assert code == 2 and re.search(words, err)
    code, _, err = run("fit", path, model, *options, "--max-iter", 1, "--tol", 1e-12)
    assert code == 1 and "raise --max-iter (now 1) or --tol" in err
    path.write_text("".join(lines) + ">short bound\nACG\n")
    code, _, err = run("fit", path, model, *options)
    assert code == 2 and re.search(r"line 121: .*'short bound' has 3 .*--width", err)
    code, _, err = run("predict", model, path)
    assert code == 2 and re.search("has 3 letters and the motif 6 .1 of 61", err)


def test_the_motif_of_one_of_three_labels_and_its_places(run, tmp_path):
    rng = np.random.default_rng(1)
    words = ["".join(w) for w in rng.choice(list("ACGT"), size=(90, 16))]
    at = rng.integers(0, 11, size=90)
    words = [
        w if i % 3 else f"{w[:h]}TATAAG{w[h + 6 :]}"
        for i, (w, h) in enumerate(zip(words, at))
    ]
    path, model = tmp_path / "sites.fasta", tmp_path / "m.npz"
    names = ["exon", "intron", "utr"]
    path.write_text("".join(f">s {names[i % 3]}\n{w}\n" for i, w in enumerate(words)))
    options = ["--estimator", "motif", "--width", 6]
    code, _, err = run("fit", path, model, *options)
    assert code == 2 and "has the labels exon, intron, utr" in err
    code, out, _ = run("fit", path, model, *options, "--positive", "exon")
    assert pairs(out)["classes"] == "exon (30), not exon (60)"
    code, out, err = run("predict", model, path, "--places")
    rows = read_rows(out)
    assert code == 0 and rows[0] == ["id", "prediction", "place"]
    hidden = load(model).predict_hidden(words, ["exon"] * 90)
    assert [int(r[2]) for r in rows[1:]] == (hidden + 1).tolist()
    shift = hidden[::3] - at[::3]  # a learnt motif may be shifted by a letter
    assert np.mean(shift == np.median(shift)) > 0.8
    assert re.match(r"error: \d of 90", err)

    both = [*options, "--positive", "exon", "--both-strands"]
    assert run("fit", path, model, *both)[0] == 0
    flip = str.maketrans("ACGT", "TGCA")
    turned = [w.translate(flip)[::-1] for w in words[::3]]
    path.write_text("".join(f">s\n{w}\n" for w in [*words[::3], *turned]))
    rows = read_rows(run("predict", model, path, "--places")[1])
    assert rows[0] == ["id", "prediction", "place", "strand"]
    found = [(int(r[2]), r[3]) for r in rows[1:]]
    other = {"+": "-", "-": "+"}
    assert [(12 - p, other[s]) for p, s in found[:30]] == found[30:]
    assert len({s for _, s in found[:30]}) == 1


def test_places_are_those_of_motifs(run, fasta, crabs, tmp_path):
    for data, options in ((fasta, MARKOV), (crabs, ("--label", "sex"))):
        assert run("fit", data, tmp_path / "m", *options)[0] == 0
        code, _, err = run("predict", tmp_path / "m", data, "--places")
        assert code == 2 and "--places is for models of motifs" in err


def test_fasta_is_known_by_its_first_lines(run, fasta, tmp_path, monkeypatch):
    data = fasta.read_bytes()
    other = tmp_path / "train.txt"
    other.write_bytes(data)
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdin", stream)
    for path in (other, "-"):
        code, out, err = run("fit", path, tmp_path / "m", *MARKOV)
        assert (code, err) == (0, "") and pairs(out)["sequences"] == "24"


def test_reads_without_letters_are_left_out_and_told(run, fasta, tmp_path):
    assert run("fit", fasta, tmp_path / "m", *MARKOV)[0] == 0
    reads = tmp_path / "r.fastq"
    reads.write_text("@a\nACA\n+\n!!!\n@b\n\n+\n\n")
    code, out, err = run("predict", tmp_path / "m", reads)
    assert (
        code == 0
        and len(read_rows(out)) == 2
        and "reads without letters were left out" in err
    )
    reads.write_text(">a\nACA\n>b\n>c\nCA\n")
    code, out, err = run("predict", tmp_path / "m", reads)
    assert code == 0 and [row[0] for row in read_rows(out)[1:]] == ["a", "c"]
    assert "1 reads without letters, line 3 with header 'b' first, were left" in err


def test_fits_that_stop_early_are_told_once(run, lines, tmp_path, monkeypatch):
    own = CategoricalHMM.fit_many.__func__

    def hasty(cls, data, **options):
        return own(cls, data, **{**options, "max_iter": 1})

    monkeypatch.setattr(CategoricalHMM, "fit_many", classmethod(hasty))
    options = ["--format", "sequences", "--states", "2", "--horizon", "4"]
    _, _, err = run("fit", lines, tmp_path / "m", *options, "-v", "3")
    told = [line for line in err.splitlines() if "did not converge" in line]
    assert len(told) == 2  # in the folds, and in the fit of all
    words = r"fits did not converge, that of data\[\d+\] first .* or --em-tol\. "
    assert re.search(words, told[0])
    _, _, err = run("predict", tmp_path / "m", lines, "--format", "sequences")
    assert re.search(f"{words}.* Options are those of maxent fit", err)
