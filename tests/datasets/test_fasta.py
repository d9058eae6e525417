"""FASTA files: sequences, identifiers and labels, as the command line reads them."""

import gzip

import numpy as np
import pytest
from refusals import refused

from maxent import load, save
from maxent._inputs.letters import unknown_letters
from maxent.datasets import make_planted_motifs, read_fasta
from maxent.models import CategoricalHMM, MarkovChain

TEXT = "; made\n>s1 of a plant\nACGTN\nA C\n\n>\nGGA\n>s3 a fish\nAC\n"


def test_sequences_identifiers_and_headers(tmp_path):
    file = tmp_path / "a.fasta.gz"
    file.write_bytes(gzip.compress(TEXT.encode()))
    found = read_fasta(file)
    assert found.data == ["ACGTNAC", "GGA", "AC"] and found.target is None
    assert found.ids.tolist() == ["s1", "2", "s3"]
    assert found.headers == ["s1 of a plant", "", "s3 a fish"]
    chain = MarkovChain.fit(found.data, alphabet="ACGT", missing="N")
    same = MarkovChain.fit(
        file, alphabet="ACGT", missing="N"
    )  # the models' own reading
    assert chain == same


def test_labels_are_the_last_words_of_headers(tmp_path):
    X, y, _, _ = make_planted_motifs(20, 12, 6, random_state=0)
    file = tmp_path / "sites.fa"
    records = [f">s{i} chr1 {k}\n{x}\n" for i, (x, k) in enumerate(zip(X, y))]
    file.write_text("".join(records))
    found = read_fasta(str(file), labels=True)
    assert found.data == X
    np.testing.assert_array_equal(found.target, y.astype(str))


@pytest.mark.parametrize(
    "text, labels, match",
    [
        ("ACGT\nGG\n", False, "line 1: a FASTA file begins with '>'"),
        (">a x\nACA\n>\nCAC\n", True, "line 3: the sequence has no label"),
        (">a\nACA\n>b\nCAC\n>c\nA\n", True, "'a' the first, and no two are alike"),
        ("".join(f">s of {i}\nAC\n" for i in range(10)), True, "too many to be labels"),
    ],
)
def test_files_that_are_refused(tmp_path, text, labels, match):
    file = tmp_path / "a.fasta"
    file.write_text(text)
    refused(lambda: read_fasta(file, labels=labels), match)


def test_several_files_and_cases(tmp_path):
    one, two = tmp_path / "a.fa", tmp_path / "b.fa"
    one.write_text(">s1 x\nacgtnACGTACG\n>s2 x\nACC\n")
    two.write_text(">t1 y\nGGtt\n")
    found = read_fasta([one, str(two)], labels=True)
    assert found.data == ["ACGTNACGTACG", "ACC", "GGTT"]
    assert found.files.tolist() == [str(one), str(one), str(two)]
    assert found.ids.tolist() == ["s1", "s2", "t1"] and found.target.tolist() == [
        *"xxy"
    ]
    kept = read_fasta([one, two], keep_case=True)
    assert kept.data == ["acgtnACGTACG", "ACC", "GGtt"] and kept.target is None
    proteins = ">p\nMKvlaaGIEDFW\n"
    two.write_text(proteins)
    assert read_fasta(two).data == ["MKvlaaGIEDFW"]
    refused(lambda: read_fasta([]), "path is empty")


@pytest.mark.parametrize(
    "alphabet, codes",
    [
        ("ACGT", "NRYKMSWBDHV"),
        ("acgu", "nrykmswbdhv"),
        ("ACGTN", ""),  # N is a letter there
        ("AB", ""),
        ("01", ""),
        ("ACDEFGHIKLMNPQRSTVWY", "XBZJ"),
        (None, ""),
    ],
)
def test_unknown_letters_by_default(alphabet, codes):
    assert unknown_letters(None, alphabet) == codes
    assert unknown_letters("?", alphabet) == "?"


def test_models_pass_over_unknown_bases():
    X = ["ACGTNACGGT", "GGRTACATTA"]
    chain = MarkovChain.fit(X)
    assert chain.alphabet == "ACGT" and chain == MarkovChain.fit(
        X, missing=chain.missing
    )
    assert MarkovChain.fit(X, missing="").alphabet == "ACGNRT"
    assert MarkovChain.fit(["AAAAAAAAAAAB", "AAA"]).alphabet == "AB"


@pytest.mark.parametrize("alphabet", ["AC", "ACGT", None])
def test_fits_store_the_letters_that_files_return(alphabet, tmp_path):
    X = ["AACCAC", "ACCCAA"] if alphabet == "AC" else ["ACGTAC", "GGTACA"]
    for data in (X, [[0, 1, 0], [1, 1]] if alphabet is None else X):
        model = CategoricalHMM.fit(data, 1, alphabet=alphabet, random_state=0)
        assert isinstance(model.missing, str)
        save(model, tmp_path / "m.npz")
        assert load(tmp_path / "m.npz") == model
