"""Single trees: the maximum spanning tree of weights, the Chow-Liu tree of data."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from maxent._core.trees import maximum_tree as _maximum_tree
from maxent._core.trees.tables import Columns
from maxent._inputs.codes import category_offsets, encode_columns
from maxent._support import validation as v
from maxent._support.threads import effective_threads
from maxent._support.typing import ArrayLike, FloatArray, IntArray
from maxent._support.validation import check_memory
from maxent.models.trees._pair_counts import counted
from maxent.models.trees._tree_input import check_square, refuse


def max_spanning_tree(weights: ArrayLike) -> IntArray:
    """The spanning tree with the largest sum of weights.

    Of log weights, it is the most probable tree.

    Parameters
    ----------
    weights : array-like (n, n)
        Symmetric real numbers, n >= 2; -inf for no edge. The diagonal counts for
        nothing.

    Returns
    -------
    ndarray of int (n - 1, 2)
        Edges (u, v), u < v, sorted.

    Raises
    ------
    ValueError
        For weights that are not square, symmetric and free of NaN and +inf, and where
        the edges do not connect all variables.
    MemoryError
        Where the work space would exceed the memory of the machine.

    See Also
    --------
    chow_liu_tree : The maximum-likelihood tree of categorical data.

    Notes
    -----
    Prim's method, O(n^2). Of several best trees one is returned, always the same.

    Examples
    --------
    >>> from maxent.discrimination import max_spanning_tree
    >>> max_spanning_tree([[0, 3, 1], [3, 0, 2], [1, 2, 0]]).tolist()
    [[0, 1], [1, 2]]
    """
    weights = check_square("weights", weights, copies=2, one=True)
    edges = np.empty((len(weights) - 1, 2), dtype=np.intp)
    status = _maximum_tree.maximum_tree(weights, edges)
    if status:
        refuse(status, weights, (), "weights")
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


@overload
def chow_liu_tree(
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = ...,
    ess: float = ...,
    n_categories: ArrayLike | None = ...,
    return_information: Literal[False] = ...,
) -> IntArray: ...
@overload
def chow_liu_tree(
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = ...,
    ess: float = ...,
    n_categories: ArrayLike | None = ...,
    return_information: Literal[True],
) -> tuple[IntArray, FloatArray]: ...
def chow_liu_tree(
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    ess: float = 0.0,
    n_categories: ArrayLike | None = None,
    return_information: bool = False,
) -> Any:
    """Maximum-likelihood tree of categorical data.

    The tree that maximises the sum of mutual informations over its edges (Chow & Liu
    1968), which is what the trees of `spanning_tree_log_partition` are compared with
    (JMJ 1999, section 3.7).

    Parameters
    ----------
    X : array-like of int (n_samples, n)
        Codes 0, 1, ... of the categories, n >= 2 columns.
    sample_weight : array-like (n_samples,), optional
        Weights >= 0; weight two counts as two rows.
    ess : float, default=0.0
        Equivalent sample size, >= 0, in rows: this many pseudo-counts are spread evenly
        over the cells of each pair table, so that all tables agree on their margins.
    n_categories : int or array-like of int (n,), optional
        Number of categories of the columns; None takes the largest code plus one. It
        matters if `ess` > 0 only.
    return_information : bool, default=False
        Return the mutual informations too.

    Returns
    -------
    edges : ndarray of int (n - 1, 2)
        Edges (u, v), u < v, sorted.
    information : ndarray (n, n)
        With `return_information` only: mutual information in nats, symmetric, zero
        diagonal.

    Raises
    ------
    ValueError
        For codes that are not integers from 0 to 65535, for fewer than two columns or
        no rows, for categories beyond `n_categories`, and for weights that are negative
        or all zero.
    MemoryError
        Where a pair table would exceed the memory of the machine.

    See Also
    --------
    max_spanning_tree : The same for any weights.

    Notes
    -----
    Time O(n_samples n^2), several pairs at a time for columns of few categories; memory
    O(n_samples n + n^2).

    References
    ----------
    Chow & Liu (1968), Approximating discrete probability distributions with dependence
    trees, IEEE Transactions on Information Theory 14.

    Examples
    --------
    The second column copies the first one; the third copies the second, with errors:

    >>> from maxent.discrimination import chow_liu_tree
    >>> X = [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]]
    >>> edges, information = chow_liu_tree(X, return_information=True)
    >>> edges[0].tolist()
    [0, 1]
    >>> round(float(information[0, 1]), 6)    # log 2
    0.693147
    """
    ess = v.check_nonnegative("ess", ess)
    codes = encode_columns(X)
    n, rows = codes.shape
    offset = category_offsets(n_categories, codes)
    weight = v.check_weights(sample_weight, rows)
    widest = int(np.diff(offset).max())
    threads = effective_threads()
    # a table of every thread, and the same again for groups of narrow columns
    check_memory("X with columns of categories up to", widest, 16 * threads * widest**2)
    check_memory("X with columns", n, 16 * n**2)
    edges, information = most_likely_tree(Columns(codes, offset), weight, ess)
    return (edges, information) if return_information else edges


def most_likely_tree(columns, weight, ess):
    """Edges and mutual information of columns; see :func:`chow_liu_tree`.

    Parameters
    ----------
    columns : Columns
    weight : ndarray (n_samples,) or None
        >= 0, not all zero.
    ess : float
    """
    if weight is not None:
        largest = float(weight.max())
        weight = weight / largest  # no overflow of the sums
        ess = ess / largest
    information = np.empty((columns.n, columns.n))
    threads = effective_threads()
    columns.mutual_information(counted(weight), ess, threads, information)
    return max_spanning_tree(information), information
