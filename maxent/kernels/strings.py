"""Spectrum kernel: strings compared by the words of k letters that they contain.

    K(x, x') = sum_w n_w(x) n_w(x'),     n_w(x) = how often x contains the word w

Source: Leslie, Eskin & Noble (2002), The spectrum kernel, section 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxent._inputs.sequences import Sequences, symbol_sequences
from maxent._support import validation as v
from maxent._support.typing import FloatArray
from maxent.kernels._document_counts import sparse_products
from maxent.kernels._unit_diagonal import scaled_by
from maxent.models._chain_input import alphabet_size
from maxent.models.chains.markov import words

_MOST_WORDS = 2**62  # that 64-bit integers can number


def spectrum_features(
    sequences: Any,
    k: int = 3,
    *,
    lengths: ArrayLike | None = None,
    alphabet: str | None = None,
    n_symbols: int | None = None,
    missing: str = "",
) -> sparse.csr_array:
    """Return how often each sequence contains each word of k symbols.

    Parameters
    ----------
    sequences : list of str or of array-like of int, array-like, or path
        Strings with an `alphabet`; codes 0, 1, ..., -1 where missing; one array with
        `lengths`; or the path of a FASTA or one-per-line text file.
    k : int, default=3
        Symbols of a word, >= 1.
    lengths : array-like of int, optional
        Lengths of the sequences in one array.
    alphabet : str, optional
        Letters of strings, in the order of their codes.
    n_symbols : int, optional
        Size of the alphabet; None takes the largest code plus one.
    missing : str, default=""
        Letters that stand for a missing symbol; words with one are left out.

    Returns
    -------
    csr_array (n_sequences, n_symbols ** k)
        Counts. The word (a, b) has the column ``a * n_symbols + b``.

    Raises
    ------
    ValueError
        For sequences shorter than k, letters outside the alphabet (sequence and place
        are named), and alphabets of more than 2^62 words.

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
    """
    k = v.check_count("k", k)
    found = symbol_sequences(
        sequences, lengths, alphabet=alphabet, n_symbols=n_symbols, missing=missing
    )
    size = alphabet_size(found, alphabet, n_symbols)
    owner, words = _words("sequences", found, k, size)
    return _counted(owner, words, (len(found), size**k))


def spectrum_kernel(
    P: Any,
    Q: Any = None,
    *,
    k: int = 3,
    alphabet: str | None = None,
    n_symbols: int | None = None,
    missing: str = "",
    normalize: bool = False,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the spectrum kernel: inner products of the counts of words of k symbols.

    Positive semidefinite, always.

    Parameters
    ----------
    P, Q : list of str or of array-like of int, or path
        Sequences as for :func:`spectrum_features`. Q None is P.
    k : int, default=3
        Symbols of a word, >= 1.
    alphabet : str, optional
        Letters of strings.
    n_symbols : int, optional
        Size of the alphabet.
    missing : str, default=""
        Letters that stand for a missing symbol; words with one are left out.
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
        For sequences shorter than k and letters outside the alphabet; sequence and
        place are named.

    See Also
    --------
    spectrum_features : The counts, for linear machines.
    product_kernel : Strings compared through models of them.

    Notes
    -----
    The cost does not depend on the size of the alphabet: only words that occur are
    looked at.

    References
    ----------
    Leslie, Eskin & Noble (2002), The spectrum kernel.

    Examples
    --------
    >>> from maxent.kernels import spectrum_kernel
    >>> spectrum_kernel(["ABAB", "BBB", "BAB"], k=2, alphabet="AB")
    array([[5., 0., 3.],
           [0., 4., 0.],
           [3., 0., 2.]])
    """
    k = v.check_count("k", k)
    sides = [("P", P)] if Q is None else [("P", P), ("Q", Q)]
    read = [
        symbol_sequences(side, alphabet=alphabet, n_symbols=n_symbols, missing=missing)
        for _, side in sides
    ]
    size = max(alphabet_size(found, alphabet, n_symbols) for found in read)
    pairs = [_words(name, f, k, size) for (name, _), f in zip(sides, read)]
    # columns for the words that occur
    used, place = np.unique(
        np.concatenate([words for _, words in pairs]), return_inverse=True
    )
    ends = np.cumsum([len(words) for _, words in pairs])[:-1]
    counts = [
        _counted(owner, own, (len(found), len(used)))
        for (owner, _), own, found in zip(pairs, np.split(place, ends), read)
    ]
    K = sparse_products(counts[0], None if Q is None else counts[1], n_jobs)
    if not normalize:
        return K
    own = [np.asarray(S.multiply(S).sum(axis=1)).ravel() for S in counts]
    return scaled_by(K, own[0], None if Q is None else own[1])


def _words(
    name: str, found: Sequences, k: int, size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The sequence and the number of every word of k known symbols."""
    short = found.lengths < k
    if short.any():
        i = int(np.argmax(short))
        raise ValueError(
            f"{name}[{i}] has {found.lengths[i]} symbols, fewer than k={k}; drop "
            "sequences that are shorter, or use a smaller k."
        )
    if float(size) ** k > _MOST_WORDS:
        raise ValueError(
            f"k={k} with {size} symbols gives more than 2**62 words; use a smaller k."
        )
    word, _, owner = (np.concatenate(part) for part in zip(*words(found, k, size)))
    return owner, word


def _counted(
    owner: NDArray[np.intp], words: NDArray[np.intp], shape: tuple[int, int]
) -> sparse.csr_array:
    # indices of 32 bits where they fit: half of scikit-learn takes no others
    small = max(*shape, len(words)) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    pairs = (np.ones(len(words)), (owner.astype(kind), words.astype(kind)))
    return sparse.coo_array(pairs, shape=shape).tocsr()
