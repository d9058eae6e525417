"""Reader of FASTA files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from maxent._inputs.sequence_files import (
    checked_labels,
    identifiers,
    last_words,
    read_records,
    warn_of_empty,
)

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def read_fasta(path: str | os.PathLike[str], *, labels: bool = False) -> Bunch:
    """Read the sequences of a FASTA or FASTQ file, with their identifiers and labels.

    Parameters
    ----------
    path : str or path-like
        The file, compressed by gzip, bzip2, xz or not. A header begins with ">"; lines
        that begin with ";" and blank lines are left out, and blanks inside sequences
        dropped. Of FASTQ the qualities, and reads without letters, are left out.
    labels : bool, default=False
        Whether the last word of each header is the label of its sequence, as for the
        command line. Labels that are written otherwise can be taken from ``headers``.

    Returns
    -------
    Bunch
        ``data``, list of str: the sequences, as models and classifiers of sequences
        take them; ``ids``, ndarray of str (n,): the first word of each header, or its
        number, from 1, if it is empty; ``headers``, list of str: the whole lines
        without ">"; ``target``, ndarray of str (n,): the labels, or None.

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
    Letters are kept as they are. In files of genomes lower case marks repeats: write
    ``[x.upper() for x in found.data]`` if that should not count.

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

    found = read_records(path)
    warn_of_empty(path, found)
    if not found.fasta:
        raise ValueError(
            f"{os.fspath(path)}, line {found.lines[0]}: a FASTA file begins with '>' "
            "and a header. For a text file of one sequence a line use "
            "open(path).read().split()."
        )
    target = checked_labels(path, found, last_words(found)) if labels else None
    return Bunch(
        data=found.sequences,
        ids=np.array(identifiers(found)),
        headers=found.names,
        target=target,
    )
