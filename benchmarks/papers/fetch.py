"""Data that are not bundled: check a folder of them, and say where to get the rest.

    python fetch.py FOLDER [NAME ...]    # of all files, or of those named

The files may lie in FOLDER or in folders of it. Checked are size and SHA-256 of the
*content*: of what a .gz holds, and of the arrays of an .npz, so that a file that was
made again with other compression passes. Nothing is downloaded: sources move and have
terms of their own. The exit code is the number of files that are missing or differ.
`--table FILE` writes the table of the documentation.

Every file here is a table of one kind or an .npz of arrays; the column `made` says what
a converter has to write from the source.
"""

import argparse
import gzip
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass
class Source:
    """One file: who reads it, where it comes from, how it is made, what it must be."""

    file: str
    scripts: str
    source: str
    licence: str
    made: str
    size: int
    sha256: str


SOURCES = [
    Source(
        "wbc_369.csv",
        "breast_cancer.py",
        "R package MASS, object biopsy, and the notes of the UCI database",
        "MASS: GPL-2 or 3; UCI: CC BY 4.0",
        "row, group, id, nine scores (empty if missing), class, removed_later: the "
        "first 367 rows of the file, then the cases 765878 and 484201 from the notes",
        15851,
        "6dc665e8d8c0c3dd798e2529193304edd1c574927d387b3451458ba9350e2a5d",
    ),
    Source(
        "human_sites.csv.gz",
        "anomaly_splice.py, splice_partial.py, splice_tree.py",
        "https://github.com/OluwadareLab/EnsembleSplice, folder of Homo sapiens "
        "(Akpokiro, Martin & Oluwadare 2022)",
        "none stated",
        "site (donor, acceptor), label, split, sequence: 8000 true and 8000 false "
        "windows of each site, cut from 602 letters to 140, GT at 70 (donor), AG at 68",
        5001626,
        "4b129dd89483f7aaf9c3e5959e208f7616621444138c57b00abac7fca11aad17",
    ),
    Source(
        "statlog_dna.npz",
        "splice_tree.py",
        "R package mlbench 2.1-3, object DNA (UCI, StatLog)",
        "UCI: CC BY 4.0; mlbench: GPL-2",
        "X uint8 (3186, 180), three indicators a site; y ei, ie or n",
        598998,
        "0c3e91808e7f27770f60436702629fec86c93bf6bb7ca2bafa124dc807054292",
    ),
    Source(
        "webkb.csv.gz",
        "webkb.py",
        "The 4 Universities data of CMU, or github.com/namaemonaishi/"
        "WebKB-classification (Craven et al. 1998)",
        "none stated, collected for research",
        "page, category, university, text, n_words: the pages but for the category "
        "other, without server headers, tags, scripts, addresses and letters outside "
        "ASCII; white space collapsed",
        7835447,
        "d5c9ab85bf73d5c62d22ed1ffd0ba96fce7f77e5293e61381286bf67d5d37eec",
    ),
    Source(
        "exon_intron.fasta.gz",
        "exon_intron.py",
        "https://github.com/KorfLab/datacore, project_gendl, exons1 and introns1 "
        "(WormBase)",
        "MIT",
        "records >kind|transcript|number and one line of letters: a sample of 10000 "
        "distinct exons and as many introns of 24 letters or more",
        4862149,
        "531cc9ed2aa5c171536255de3819386e82977f760ddf99b8fdf5ee07040544f1",
    ),
    Source(
        "hs3d_true_donors.csv.gz",
        "exon_intron.py",
        "https://github.com/hudan42/Position-Weight-Matrix-PWM, EI_true.seq of HS3D "
        "(Pollastro & Rampone 2002)",
        "none stated",
        "genbank_entry, position, sequence of 140 letters, GT at 70: all 2796",
        450854,
        "a1f8576cfc263f184335cca125ea87637793fb8d7f35d80c255786fadbe9903d",
    ),
    Source(
        "brown.csv.gz",
        "language_model.py",
        "https://github.com/nltk/nltk_data, packages/corpora/brown.zip "
        "(Francis & Kucera)",
        "non-commercial use",
        "document, category, n_sentences, n_tokens, text: words without their tags, a "
        "space between, </s> after a sentence",
        6423630,
        "6b2a33202ee0238fe252b88f31150f80d8f37d041226de61a9fe7077b13ecc7a",
    ),
    Source(
        "reuters21578.csv.gz",
        "language_model.py --corpus reuters",
        "distribution 1.0, 22 .sgm files, as in github.com/SilasKal/COMP479_Project3 "
        "(Lewis 1997)",
        "research use, with acknowledgement",
        "id, date, lewissplit, topics_attr, topics, title, body: without the closing "
        "word Reuter and control characters",
        17069961,
        "b95434e308c877d799fa87249293c83aa710fb7df58f753906e80ae2ed0bfc6f",
    ),
    Source(
        "hk_signal.csv.gz",
        "motifs_pbm.py",
        "https://github.com/connersk/DREAM5-CNN, data (Weirauch et al. 2013)",
        "none stated, public challenge",
        "sequence (the 35 letters that vary), then the raw signal of each of 20 "
        "factors on the array HK, empty where the spot is flagged",
        5283743,
        "adf4dde1d78f90648a326f006a5dd205b0bf3ec3b7916b47c5369446bcf5ca0a",
    ),
    Source(
        "digits_on_clutter.npz",
        "digits_clutter.py",
        "MNIST test digits (LeCun et al. 1998), placed by a generator, seed 12345",
        "CC BY-SA 3.0, as MNIST",
        "X uint8 (2400, 56, 56) of 32 levels, y 0 to 5, position (2400, 2), "
        "mnist_index: a digit at a random place, 14 pieces of 9 x 9 of the digits 6 to "
        "9, noise of deviation 12. The generator is not kept: other pictures of this "
        "kind will not have this checksum",
        7543278,
        "0c38847e6963d5fb71f62ff7131e715ffd64a190157b616ae16d93d7683fcb55",
    ),
]


def found(folder, *names):
    """Path of the first of the names that the folder holds, or a folder of it."""
    for name in names:
        for path in (Path(folder) / name, *sorted(Path(folder).rglob(name))):
            if path.exists():
                return path
    here = Path(__file__).name
    raise SystemExit(
        f"{folder} holds no {' and no '.join(names)}; {here} says where to get it"
    )


def content(path):
    """(size, SHA-256) of what a file holds, whatever its compression."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as data:
            arrays = {name: np.ascontiguousarray(data[name]) for name in data}
        parts = [
            part
            for name, a in sorted(arrays.items())
            for part in (f"{name} {a.dtype.str} {a.shape}".encode(), a.tobytes())
        ]
        text = b"".join(parts)
    else:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
            text = stream.read()
    return len(text), hashlib.sha256(text).hexdigest()


def check(source, folder):
    """What is wrong with a file, "" if nothing is."""
    paths = sorted(folder.rglob(source.file))
    if not paths:
        return "missing"
    try:
        size, code = content(paths[0])
    except (OSError, EOFError, ValueError) as error:
        return f"cannot be read: {error}"
    if size != source.size:
        return f"holds {size} bytes, not {source.size}"
    return "" if code == source.sha256 else f"has SHA-256 {code[:12]}..., another one"


def row(source):
    """Line of the table: the checksum in parts, which may be wrapped."""
    code = [source.sha256[k : k + 16] for k in range(0, 64, 16)]
    return {
        "file": source.file,
        "read by": source.scripts,
        "source": source.source,
        "licence": source.licence,
        "a converter writes": source.made,
        "bytes of content": source.size,
        "SHA-256 of content": " ".join(code),
    }


def main():
    """Check, and say what to do about each file that is not as it must be."""
    from _results import write_rows

    names = [s.file for s in SOURCES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--table", type=Path, help="write the table of the files")
    options = parser.parse_args()
    if options.table:
        write_rows(options.table, [row(s) for s in SOURCES])
    if options.folder is None:
        return 0 if options.table else parser.error("give a folder")
    if unknown := set(options.names) - set(names):
        parser.error(
            f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(names)}"
        )
    bad = 0
    for s in SOURCES:
        if options.names and s.file not in options.names:
            continue
        wrong = check(s, options.folder)
        print(f"{s.file}: {wrong or 'as it must be'}")
        if wrong:
            bad += 1
            print(f"    for     {s.scripts}\n    from    {s.source}")
            print(f"    licence {s.licence}\n    made of {s.made}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
