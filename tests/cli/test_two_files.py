"""Sequences of two classes in two files, their cases and unknown letters."""

import json

import numpy as np
import pytest
from command_line import assert_one_sentence, pairs, read_rows

from maxent import M3EMotifClassifier
from maxent._inputs.letters import in_case_of, unknown_letters
from maxent._persistence.persistence import load
from maxent.datasets import read_fasta
from maxent.kernels import spectrum_kernel
from maxent.models import CategoricalHMM

MOTIF = ("--estimator", "motif", "--width", 4, "--set", "max_iter=50")
AMINO = "ACDEFGHIKLMNPQRSTVWY"


@pytest.fixture
def files(tmp_path):
    """Files of strings with a motif, and without it, and the strings."""
    rng = np.random.default_rng(0)
    X = ["".join(x) for x in rng.choice(list("ACGT"), (40, 20))]
    with_motif = [x[:9] + "TATA" + x[13:] for x in X[:20]]
    for name, strings in (("pos", with_motif), ("neg", X[20:])):
        lines = [f">{name}{i} chr{i % 3}\n{x}\n" for i, x in enumerate(strings)]
        (tmp_path / f"{name}.fa").write_text("".join(lines))
    return tmp_path / "pos.fa", tmp_path / "neg.fa", with_motif, X[20:]


def test_two_files_are_two_classes(run, files, tmp_path):
    pos, neg, X, others = files
    model = tmp_path / "m"
    code, out, _ = run("fit", pos, model, *MOTIF, "--negative", neg)
    assert code == 0 and pairs(out)["classes"] == "negative (20), positive (20)"
    assert pairs(out)["motif sought in"] == "positive"
    y = np.repeat(["positive", "negative"], 20)
    machine = load(model)
    again = M3EMotifClassifier(**machine.get_params()).fit([*X, *others], y)
    np.testing.assert_array_equal(again.coef_, machine.coef_)
    code, out, err = run("evaluate", model, pos, "--negative", neg, "--json")
    found = json.loads(out)
    wrong = int(np.sum(machine.predict([*X, *others]) != y))
    assert code == 0 and found["accuracy"]["count"] == 40 - wrong
    code, out, err = run("predict", model, pos, "--negative", neg)
    assert code == 0 and err.startswith(f"error: {wrong} of 40")
    assert [row[0] for row in read_rows(out)[1:]][::20] == ["pos0", "neg0"]
    assert run("predict", model, pos)[0] == 0


@pytest.mark.parametrize(
    "options, words",
    [
        (["--negative", "pos.fa"], "is the data file itself"),
        (["--negative", "neg.fa", "--positive", "a"], "leave one of them out"),
        (["--negative", "none.fa"], "none.fa: No such file"),
        (
            ["--negative", "short.fa"],
            "short.fa, line 1: the sequence 's' has 3 letters",
        ),
        (["--negative", "wrong.fa"], None),
    ],
)
def test_wrong_second_files(run, files, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.fa").write_text(">s\nACG\n")
    (tmp_path / "wrong.fa").write_text(">s\nACGT!ACG\n")
    code, _, err = run("fit", "pos.fa", "m", *MOTIF, "--alphabet", "ACGT", *options)
    assert code == 2
    assert_one_sentence(err, "fit")
    assert (words or "wrong.fa, line 1: the sequence 's' has the letter '!'") in err


def test_one_class_names_the_remedy(run, files, tmp_path):
    pos = files[0]
    pos.write_text(pos.read_text().replace("chr1", "chr0").replace("chr2", "chr0"))
    code, _, err = run("fit", pos, tmp_path / "m", *MOTIF)
    assert code == 2 and "have the label 'chr0'" in err and "--negative FILE" in err
    options = "--estimator", "outliers", "--negative", files[1]
    code, _, err = run("fit", pos, tmp_path / "m", *options)
    assert code == 2 and "--negative does not apply to the outliers" in err


def test_soft_masked_letters_are_the_same_ones(run, files, tmp_path):
    pos, neg, *_ = files
    model, masked = tmp_path / "m", tmp_path / "masked.fa"
    run("fit", pos, tmp_path / "plain", *MOTIF, "--negative", neg)
    headers = iter(pos.read_text().splitlines())
    masked.write_text(
        "".join(
            f"{h}\n{x[:5]}{x[5:12].lower()}{x[12:]}\n" for h, x in zip(headers, headers)
        )
    )
    code, out, err = run("fit", masked, model, *MOTIF, "--negative", neg)
    assert code == 0 and "20 of 40 sequences have lower-case bases" in err
    np.testing.assert_array_equal(load(model).coef_, load(tmp_path / "plain").coef_)
    assert run("predict", model, masked)[1] == run("predict", model, pos)[1]
    code, out, err = run("fit", masked, model, *MOTIF, "--negative", neg, "--keep-case")
    assert "alphabet" in out and "ACGTacgt" in out


@pytest.mark.parametrize(
    "letters, unknown",
    [
        ("ACGT", "NRYKMSWBDHV"),
        ("ACGU", "NRYKMSWBDHV"),
        ("acgt", "nrykmswbdhv"),
        (AMINO, "XBZJ"),
        (AMINO + "X", "BZJ"),
        ("abcd", ""),
        ("01", ""),
        ("", ""),
    ],
)
def test_unknown_letters_have_one_default(letters, unknown):
    assert unknown_letters(None, letters) == unknown
    if unknown:  # one of them among many letters
        given = unknown_letters(None, None, [50 * letters + unknown[0]])
        assert {*unknown} <= {*given}


@pytest.mark.parametrize(
    "strings, alphabet, expected",
    [
        (["acGT" * 5, "Nn"], None, ["ACGT" * 5, "NN"]),
        (["acGT"], "acgt", ["acgt"]),
        (["acGT"], "ACGTacgt", ["acGT"]),
        (["Hello"], None, ["Hello"]),
        ([AMINO.lower()], None, [AMINO.lower()]),
    ],
)
def test_only_bases_change_their_case(strings, alphabet, expected):
    assert [*in_case_of(strings, alphabet)] == expected


def test_stretches_of_unknown_bases_leave_dna_what_it_is(run, files, tmp_path):
    pos, _, X, _ = files
    masked = tmp_path / "masked.fa"
    text = "".join(f">m{i}\n{'N' * 6}{x[6:].lower()}\n" for i, x in enumerate(X))
    masked.write_text(text)
    assert read_fasta(masked).data[0] == "N" * 6 + X[0][6:]
    model = tmp_path / "m"
    code, _, _ = run("fit", masked, model, *MOTIF, "--negative", pos)
    assert code == 0 and load(model).alphabet == "ACGT"
    # a path is read by the same rule as read_fasta
    words = spectrum_kernel(masked, k=2, alphabet="ACGT")
    same = spectrum_kernel(read_fasta(masked).data, k=2, alphabet="ACGT")
    np.testing.assert_array_equal(words, same)
    assert CategoricalHMM.fit(masked, 2, random_state=0).n_symbols == 4


def test_files_of_dna_and_of_proteins_are_told_apart(run, files, tmp_path):
    pos, _, _, _ = files
    other = tmp_path / "protein.fa"
    other.write_text("".join(f">p{i}\n{AMINO}\n" for i in range(20)))
    for pair, nucleic in (((pos, other), pos), ((other, pos), pos)):
        _, _, err = run("fit", pair[0], tmp_path / "m", *MOTIF, "--negative", pair[1])
        assert f"{nucleic} has bases of DNA or RNA" in err


def test_a_range_of_widths_is_checked_as_the_fit_does(run, files, tmp_path):
    pos, neg, _, _ = files
    short = tmp_path / "short.fa"
    short.write_text(">s1\nACGTA\n")
    width = ("--estimator", "motif", "--set")
    fit = "fit", pos, tmp_path / "m", *width
    code, _, err = run(*fit, "width=[4,6]", "--negative", short)
    assert code == 2 and "the motif 6" in err
    code, _, err = run(*fit, 'width="a"', "--negative", neg)
    assert code == 2 and "must be an integer >= 1" in err
    assert_one_sentence(err, "fit")
