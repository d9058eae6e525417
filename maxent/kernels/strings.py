"""Spectrum kernel: strings compared by the words of k letters that they contain.

    K(x, x') = sum_w n_w(x) n_w(x'),     n_w(x) = how often x contains the word w

Words may have gaps, and be counted with mismatches or on both strands.

Source: Leslie, Eskin & Noble (2002), The spectrum kernel, section 2.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from maxent._inputs.letters import complements
from maxent._inputs.sequences import Sequences, symbol_sequences
from maxent._support.typing import FloatArray
from maxent._support.validation import user_stacklevel
from maxent.kernels._document_counts import sparse_products
from maxent.kernels._string_words import Words
from maxent.kernels._unit_diagonal import scaled_by
from maxent.models._chain_input import alphabet_size
from maxent.models.chains.markov import words as words_of


def spectrum_features(
    sequences: Any,
    k: int = 3,
    *,
    gaps: int = 0,
    mismatches: int = 0,
    both_strands: bool = False,
    lengths: ArrayLike | None = None,
    alphabet: str | None = None,
    n_symbols: int | None = None,
    missing: str | None = None,
) -> sparse.csr_array:
    """Return how often each sequence contains each word of k symbols.

    Words may have gaps, be counted with mismatches, or on both strands.

    Parameters
    ----------
    sequences : list of str or of array-like of int, array-like, or path
        Strings with an `alphabet`; codes 0, 1, ..., -1 where missing; one array with
        `lengths`; or the path of a FASTA or one-per-line text file.
    k : int, default=3
        Symbols of a word, >= 1; `gaps` and `mismatches` together are fewer.
    gaps : int, default=0
        Places of a word that may hold any symbol: it is counted once for each choice
        of the others.
    mismatches : int, default=0
        A word is counted in the columns of all words that differ from it in at most
        this many symbols.
    both_strands : bool, default=False
        Add up the counts of a word and of its reverse complement, in the column of the
        one that comes first. Needs the `alphabet` of DNA or RNA.
    lengths : array-like of int, optional
        Lengths of the sequences in one array.
    alphabet : str, optional
        Letters of strings, in the order of their codes.
    n_symbols : int, optional
        Size of the alphabet; None takes the largest code plus one.
    missing : str, optional
        Letters that stand for a missing symbol; words with one are left out. None takes
        the codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
        beside amino acids, none beside other letters.

    Returns
    -------
    csr_array (n_sequences, n_columns)
        Counts. Without gaps there are ``n_symbols ** k`` columns, and the word (a, b)
        has the column ``a * n_symbols + b``. With gaps there is such a block, of the
        ``k - gaps`` places kept, for each choice of them in the order of
        ``itertools.combinations``.

    Raises
    ------
    ValueError
        For letters outside the alphabet (sequence and place are named), alphabets of
        more than 2^62 words, and `both_strands` of letters without a complement.
    MemoryError
        If the words within so many mismatches do not fit in memory.

    Warns
    -----
    UserWarning
        Of sequences shorter than k, which have no word; the first one is named.

    See Also
    --------
    spectrum_kernel : Their inner products.

    References
    ----------
    Leslie, Eskin & Noble (2002), The spectrum kernel: a string kernel for SVM protein
    classification, Pacific Symposium on Biocomputing.

    Examples
    --------
    >>> from maxent.kernels import spectrum_features
    >>> spectrum_features(["ABAB", "BBB"], 2, alphabet="AB").toarray()
    array([[0., 2., 1., 0.],
           [0., 0., 0., 2.]])

    With one mismatch AB is counted as AA, AB and BB too:

    >>> spectrum_features(["ABAB", "BBB"], 2, mismatches=1, alphabet="AB").toarray()
    array([[3., 2., 1., 3.],
           [0., 2., 2., 2.]])
    """
    found = symbol_sequences(
        sequences, lengths, alphabet=alphabet, n_symbols=n_symbols, missing=missing
    )
    size = alphabet_size(found, alphabet, n_symbols)
    letters = complements(alphabet) if both_strands else None
    words = Words.checked(k, gaps, mismatches, size, letters)
    blocks = list(words.blocks(_counted([("sequences", found)], words)))
    used = np.concatenate([columns for _, columns in blocks])
    F: Any = sparse.hstack([features for features, _ in blocks], format="csr")
    # indices of 32 bits where they fit: half of scikit-learn takes no others
    small = max(len(found), words.n_columns, F.nnz) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    F.sort_indices()
    arrays = F.data, used[F.indices].astype(kind), F.indptr.astype(kind)
    return sparse.csr_array(arrays, shape=(len(found), words.n_columns))


def spectrum_kernel(
    P: Any,
    Q: Any = None,
    *,
    k: int = 3,
    gaps: int = 0,
    mismatches: int = 0,
    both_strands: bool = False,
    alphabet: str | None = None,
    n_symbols: int | None = None,
    missing: str | None = None,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the spectrum kernel: inner products of the counts of words of k symbols.

    Positive semidefinite, always. With `mismatches` it is the mismatch kernel, with
    `gaps` that of gapped words.

    Parameters
    ----------
    P, Q : list of str or of array-like of int, or path
        Sequences as for :func:`spectrum_features`. Q None is P.
    k : int, default=3
        Symbols of a word, >= 1; `gaps` and `mismatches` together are fewer.
    gaps : int, default=0
        Places of a word that may hold any symbol: it is counted once for each choice
        of the others.
    mismatches : int, default=0
        A word is counted in the columns of all words that differ from it in at most
        this many symbols.
    both_strands : bool, default=False
        Add up the counts of a word and of its reverse complement, in the column of the
        one that comes first. Needs the `alphabet` of DNA or RNA.
    alphabet : str, optional
        Letters of strings.
    n_symbols : int, optional
        Size of the alphabet.
    missing : str, optional
        Letters that stand for a missing symbol; words with one are left out. None takes
        the codes of IUPAC: N, R, Y, ... beside the bases of DNA and RNA, X, B, Z and J
        beside amino acids, none beside other letters.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each sequence with itself.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q))

    Raises
    ------
    ValueError
        For letters outside the alphabet, and with `normalize` for sequences without a
        word; sequence and place are named.

    Warns
    -----
    UserWarning
        Of sequences shorter than k, which have no word; the first one is named.

    See Also
    --------
    spectrum_features : The counts, for linear machines.
    product_kernel : Strings compared through models of them.

    Notes
    -----
    Only words that occur are looked at: without mismatches the cost does not depend on
    the size of the alphabet. A word with m mismatches is in
    ``sum_j comb(k, j) (n_symbols - 1)^j``, j <= m, columns; with g gaps there are
    ``comb(k, g)`` products of matrices. Words with up to g gaps that count by a factor
    each (the wildcard kernel) are the weighted sum of the kernels with 0, ..., g gaps.

    References
    ----------
    Leslie, Eskin & Noble (2002), The spectrum kernel; Leslie, Eskin, Cohen, Weston &
    Noble (2004), Mismatch string kernels for discriminative protein classification,
    Bioinformatics 20; Leslie & Kuang (2004), Fast string kernels using inexact matching
    for protein sequences, JMLR 5; Ghandi, Lee, Mohammad-Noori & Beer (2014), Enhanced
    regulatory sequence prediction using gapped k-mer features, PLoS Computational
    Biology 10.

    Examples
    --------
    >>> from maxent.kernels import spectrum_kernel
    >>> spectrum_kernel(["ABAB", "BBB", "BAB"], k=2, alphabet="AB")
    array([[5., 0., 3.],
           [0., 4., 0.],
           [3., 0., 2.]])
    """
    sides = [("P", P)] if Q is None else [("P", P), ("Q", Q)]
    read = [
        symbol_sequences(side, alphabet=alphabet, n_symbols=n_symbols, missing=missing)
        for _, side in sides
    ]
    size = max(alphabet_size(found, alphabet, n_symbols) for found in read)
    letters = complements(alphabet) if both_strands else None
    words = Words.checked(k, gaps, mismatches, size, letters)
    counts = _counted([(name, f) for (name, _), f in zip(sides, read)], words)
    n = len(read[0])
    K: Any = 0.0
    own: Any = 0.0
    for F, _ in words.blocks(counts):
        K = K + sparse_products(F[:n], None if Q is None else F[n:], n_jobs)
        own = own + np.asarray(F.multiply(F).sum(axis=1)).ravel()
    if not normalize:
        return K
    return scaled_by(K, own[:n], None if Q is None else own[n:])


def _warn_of_short(name: str, found: Sequences, k: int) -> None:
    short = np.flatnonzero(found.lengths < k)
    if len(short):
        warnings.warn(
            f"{len(short)} of {len(found)} sequences have fewer than k={k} symbols, "
            f"{name}[{short[0]}] first, and so no word: their counts are zero. Drop "
            "them, or use a smaller k.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def _counted(sides: list[tuple[str, Sequences]], words: Words) -> sparse.csr_array:
    """Counts of the words of the sequences of all sides, one after the other."""
    k, size, n, parts = words.k, words.size, 0, []
    for name, found in sides:
        _warn_of_short(name, found, k)
        parts += [(n + owner, word) for word, _, owner in words_of(found, k, size)]
        n += len(found)
    owner, word = (np.concatenate(part) for part in zip(*parts))
    ones = np.ones(len(word))
    return sparse.coo_array((ones, (owner, word)), shape=(n, size**k)).tocsr()
