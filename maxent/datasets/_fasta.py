"""Reader of FASTA files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._inputs.letters import counted, is_nucleic
from maxent._inputs.sequence_files import (
    checked_labels,
    identifiers,
    last_words,
    read_records,
    warn_of_empty,
)
from maxent._support.typing import PathLike

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def read_fasta(
    path: PathLike | Iterable[PathLike],
    *,
    labels: bool = False,
    keep_case: bool = False,
) -> Bunch:
    """Read the sequences of FASTA or FASTQ files, with their identifiers and labels.

    Parameters
    ----------
    path : str or path-like, or several in a list
        The file, compressed by gzip, bzip2, xz or not; the records of several ones
        follow one another. A header begins with ">"; lines
        that begin with ";" and blank lines are left out, and blanks inside sequences
        dropped. Of FASTQ the qualities, and reads without letters, are left out.
    labels : bool, default=False
        Whether the last word of each header is the label of its sequence, as for the
        command line. Labels that are written otherwise can be taken from ``headers``,
        and a label for each file from ``files``.
    keep_case : bool, default=False
        Keep letters as they are. By default those of DNA and RNA become upper case: in
        files of genomes lower case marks repeats. Other sequences stay as they are.

    Returns
    -------
    Bunch
        ``data``, list of str: the sequences, as models and classifiers of sequences
        take them; ``ids``, ndarray of str (n,): the first word of each header, or its
        number, from 1, if it is empty; ``headers``, list of str: the whole lines
        without ">"; ``target``, ndarray of str (n,): the labels, or None; ``files``,
        ndarray of str (n,): the path of the file that each is from.

    Raises
    ------
    ValueError
        For a file that is not FASTA, is not in UTF-8 or has no sequence; and with
        `labels` for a header without one, and for headers that end in names.
    OSError
        If the file cannot be read.

    Warns
    -----
    UserWarning
        If headers without a sequence below them are left out; the first one is named.

    See Also
    --------
    make_planted_motifs : Sequences with a hidden motif.

    Notes
    -----
    Sequences are of DNA or RNA if all their letters are A, C, G, T, U and the codes of
    IUPAC, in either case, three kinds of bases occur, and of the letters other than N
    nine in ten are bases.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxent.datasets import read_fasta
    >>> text = ">s1 of a plant\\nACGTN\\nAC\\n>s2 of a fish\\nGGA\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "genes.fasta")
    ...     _ = file.write_text(text)
    ...     found = read_fasta(file, labels=True)
    >>> found.ids.tolist(), found.data, found.target.tolist()
    (['s1', 's2'], ['ACGTNAC', 'GGA'], ['plant', 'fish'])
    """
    from sklearn.utils import Bunch

    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError(
            "path is empty; give the path of a file, or several in a list."
        )
    read = [_read(one) for one in paths]
    data = [text for found in read for text in found.sequences]
    if not keep_case and is_nucleic(counted(data)):
        data = [text.upper() for text in data]
    targets: list[Any] = [
        checked_labels(one, found, last_words(found))
        for one, found in zip(paths, read)
        if labels
    ]
    sizes = [len(found.sequences) for found in read]
    return Bunch(
        data=data,
        ids=np.concatenate([identifiers(found) for found in read]),
        headers=[name for found in read for name in found.names],
        target=np.concatenate(targets) if labels else None,
        files=np.repeat([os.fspath(one) for one in paths], sizes),
    )


def _read(path):
    found = read_records(path)
    warn_of_empty(path, found)
    if not found.fasta:
        raise ValueError(
            f"{os.fspath(path)}, line {found.lines[0]}: a FASTA file begins with '>' "
            "and a header. For a text file of one sequence a line use "
            "open(path).read().split()."
        )
    return found
