"""Distributions over spanning trees: sums, probabilities, covariances, samples.

A tree E on n variables has a probability proportional to the product of the weights of
its edges, ``P(E) = prod_{uv in E} W_uv / Z``.  All functions take ``log W``, (n, n),
symmetric, with -inf where there is no edge and on the diagonal.

Source: Jaakkola, Meila & Jebara (1999), sections 3.3-3.4 and appendix A, eq. (27)-(40)
and (58)-(62); their eq. (31) takes the log weight for the weight, and the factor 1/2 of
their sums belongs to ordered pairs.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, overload

import numpy as np

from maxent._core.trees import laplacian as _laplacian
from maxent._core.trees import tree_covariance as _covariance
from maxent._core.trees import tree_sampling as _sampling
from maxent._support import validation as v
from maxent._support.random_state import draw_seed
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    FloatArrayOrScalar,
    IntArray,
    RandomState,
)
from maxent._support.validation import check_memory
from maxent.models.trees._tree_input import check_edge_values, check_log_weights, refuse

Method: TypeAlias = Literal["auto", "star-mesh", "cholesky"]
_METHODS = {"auto": 0, "star-mesh": 0, "cholesky": 1}


@overload
def spanning_tree_log_partition(
    log_weights: ArrayLike, marginals: Literal[False] = ..., method: Method = ...
) -> FloatArrayOrScalar: ...
@overload
def spanning_tree_log_partition(
    log_weights: ArrayLike, marginals: Literal[True], method: Method = ...
) -> tuple[FloatArrayOrScalar, FloatArray]: ...
def spanning_tree_log_partition(
    log_weights: ArrayLike, marginals: bool = False, method: Method = "auto"
) -> Any:
    """Log of the sum over all spanning trees, and the probabilities of edges.

    ``Z = sum_E prod_{uv in E} W_uv`` over the n^(n-2) trees is the determinant of the
    Laplacian without one row and column (JMJ 1999, eq. 31, 36);
    ``P(uv in E) = d log Z / d log W_uv`` (eq. 61).

    Parameters
    ----------
    log_weights : array-like (..., n, n)
        Natural logarithms of the weights, n >= 2; symmetric, -inf for no edge and on
        the diagonal, otherwise finite. Entries may differ by thousands. Leading axes
        are a batch. Entries below the diagonal are the ones read.
    marginals : bool, default=False
        Return the edge probabilities too.
    method : {"auto", "star-mesh", "cholesky"}, default="auto"
        "star-mesh" eliminates nodes without a subtraction: relative errors of all
        probabilities stay near rounding, whatever the weights. "cholesky" factorises
        the Laplacian, estimates the error from the conditioning, and refuses weights
        where it could exceed 1e-10. "auto" is "star-mesh" (see Notes).

    Returns
    -------
    log_z : float or ndarray (...)
        log Z, in nats.
    probability : ndarray (..., n, n)
        With `marginals` only: symmetric, in [0, 1], zero diagonal; the entries above
        the diagonal add up to n - 1.

    Raises
    ------
    ValueError
        For weights that are not square, symmetric and free of NaN and +inf, for a
        finite diagonal, for fewer than two variables, where the edges do not connect
        all variables (the parts are named), and where method="cholesky" would be
        inaccurate.
    MemoryError
        Where the work space would exceed the memory of the machine.

    See Also
    --------
    sample_spanning_trees : Draw trees from the distribution.
    max_spanning_tree : The most probable tree.

    Notes
    -----
    Time O(n^3) per matrix, by matrix products; memory 2 n^2 doubles and, for weights
    that span more than exp(900), 2 n^2 more. A batch is worked on by several threads;
    results have the same bits for any number of them.

    "auto" never takes "cholesky", which is hardly faster anywhere: probabilities
    included, it was measured to take 0.8 to 1.4 times as long as "star-mesh" for n from
    8 to 1000; for log Z alone two to four times as long, as its estimate of the error
    needs the inverse.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination.
    Grassmann, Taksar & Heyman (1985), Regenerative analysis and steady state
    distributions for Markov chains, Operations Research 33.

    Examples
    --------
    Three variables, all trees alike:

    >>> import numpy as np
    >>> from maxent.discrimination import spanning_tree_log_partition
    >>> log_weights = np.zeros((3, 3))
    >>> np.fill_diagonal(log_weights, -np.inf)
    >>> log_z, probability = spanning_tree_log_partition(log_weights, marginals=True)
    >>> round(float(np.exp(log_z)), 6)
    3.0
    >>> probability.round(6)
    array([[0.      , 0.666667, 0.666667],
           [0.666667, 0.      , 0.666667],
           [0.666667, 0.666667, 0.      ]])
    """
    v.check_choice("method", method, _METHODS)
    weights = check_log_weights(log_weights)
    shape, n = weights.shape[:-2], weights.shape[-1]
    weights = weights.reshape(-1, n, n)
    log_z = np.empty(len(weights))
    probability = np.empty_like(weights) if marginals else None
    status = np.zeros(len(weights), dtype=np.intc)
    with single_threaded_blas():
        _laplacian.partition(
            weights, _METHODS[method], effective_threads(), log_z, probability, status
        )
    if status.any():
        b = int(np.flatnonzero(status)[0])
        place = np.unravel_index(b, shape) if shape else ()
        refuse(int(status[b]), weights[b], place)
    value = log_z.reshape(shape) if shape else float(log_z[0])
    if probability is None:
        return value
    return value, probability.reshape(*shape, n, n)


def spanning_tree_covariance(
    log_weights: ArrayLike, f: ArrayLike, g: ArrayLike
) -> FloatArrayOrScalar:
    """Covariance of two sums over the edges of a random tree.

    ``Cov( sum_{uv in E} f_uv, sum_{uv in E} g_uv )`` (JMJ 1999, eq. 59, with the
    determinant of the Laplacian as divisor in place of the printed Z), the second
    derivative of log Z along f and g. The means are ``(probability * f).sum() / 2``.

    Parameters
    ----------
    log_weights : array-like (..., n, n)
        As for `spanning_tree_log_partition`.
    f, g : array-like (..., n, n)
        Symmetric and finite; the diagonal counts for nothing. Leading axes broadcast
        with those of `log_weights`.

    Returns
    -------
    float or ndarray (...)
        In units of f times g; a variance (f equal to g) is never negative. For n <= 128
        or weights far apart, errors are near rounding relative to the product of the
        two standard deviations, however small, where f and g less their mean over an
        edge may be rounded to 1e-16 of the largest entry; otherwise, relative to
        ``sqrt(sum p f^2 sum p g^2)`` of what these means leave.

    Raises
    ------
    ValueError
        As `spanning_tree_log_partition`, and for f or g of another shape, not
        symmetric or not finite.
    MemoryError
        Where the work space would exceed the memory of the machine.

    See Also
    --------
    spanning_tree_log_partition : The probabilities behind the means.

    Notes
    -----
    Time O(n^3). For n > 128 two matrix products with the inverse Laplacian serve where
    the conditioning allows; elsewhere the derivatives are carried through the
    elimination, as a sum whose terms are squares for a variance. That was measured to
    take about fifteen times as long for n from 300 to 600.

    Examples
    --------
    Two edges of a triangle exclude each other more often than not:

    >>> import numpy as np
    >>> from maxent.discrimination import spanning_tree_covariance
    >>> log_weights = np.zeros((3, 3))
    >>> np.fill_diagonal(log_weights, -np.inf)
    >>> f, g = np.zeros((3, 3)), np.zeros((3, 3))
    >>> f[0, 1] = f[1, 0] = g[0, 2] = g[2, 0] = 1.0
    >>> round(spanning_tree_covariance(log_weights, f, g), 6)   # 1/3 - 2/3 * 2/3
    -0.111111
    """
    weights = check_log_weights(log_weights, copies=8)
    n = weights.shape[-1]
    f, g = check_edge_values("f", f, n), check_edge_values("g", g, n)
    try:
        shape = np.broadcast_shapes(weights.shape, f.shape, g.shape)[:-2]
    except ValueError:
        raise ValueError(
            f"the leading axes of log_weights, f and g, with shapes {weights.shape}, "
            f"{f.shape} and {g.shape}, do not broadcast."
        ) from None
    weights, f, g = (np.broadcast_to(a, (*shape, n, n)) for a in (weights, f, g))
    out = np.empty(shape)
    with single_threaded_blas():
        for place in np.ndindex(shape):
            parts = (np.ascontiguousarray(a[place]) for a in (weights, f, g))
            status, out[place] = _covariance.covariance(*parts, n > 128)
            if status:
                refuse(status, weights[place], place)
    return out if shape else float(out)


def sample_spanning_trees(
    log_weights: ArrayLike, size: int = 1, random_state: RandomState = None
) -> IntArray:
    """Independent random trees, exactly from the distribution.

    Parameters
    ----------
    log_weights : array-like (n, n)
        As for `spanning_tree_log_partition`.
    size : int, default=1
        Number of trees, >= 1.
    random_state : int, RandomState, Generator or None, default=None
        The same seed gives the same trees, whatever the number of threads.

    Returns
    -------
    ndarray of int (size, n - 1, 2)
        Edges (u, v), u < v, of every tree, sorted.

    Raises
    ------
    ValueError
        As `spanning_tree_log_partition`, and for a size that is no integer >= 1.
    MemoryError
        Where the trees would exceed the memory of the machine.

    See Also
    --------
    spanning_tree_log_partition : Probabilities of single edges without sampling.

    Notes
    -----
    Wilson's loop-erased random walk (1996), from the root at which its expected number
    of steps, ``sum_v Q_vv R_vr``, is least; it is known beforehand from the
    resistances. Where weights trap the walk (more than 2 n^2 steps), trees come
    from the star-mesh elimination played backwards, O(n^2) per tree.

    References
    ----------
    Wilson (1996), Generating random spanning trees more quickly than the cover time.
    Colbourn, Myrvold & Neufeld (1996), Two algorithms for unranking arborescences.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import sample_spanning_trees
    >>> log_weights = np.zeros((4, 4))
    >>> np.fill_diagonal(log_weights, -np.inf)
    >>> trees = sample_spanning_trees(log_weights, size=1000, random_state=0)
    >>> trees.shape
    (1000, 3, 2)
    """
    size = v.check_count("size", size)
    weights = check_log_weights(log_weights, copies=4, one=True)
    n = len(weights)
    check_memory("size", size, 16 * size * (n - 1))
    seed = draw_seed(random_state)
    steps = np.empty(n)
    with single_threaded_blas():
        status = _laplacian.walk_steps(weights, steps)
        if status:
            refuse(status, weights, ())
        root = int(np.argmin(steps))
        walk = steps[root] <= 2.0 * n * n
        trees = np.empty((size, n - 1, 2), dtype=np.intp)
        status = _sampling.sample(
            weights,
            root if walk else -1,
            float(steps[root]) if walk else float(n * n),
            seed,
            effective_threads(),
            trees,
        )
    if status:
        refuse(status, weights, ())
    return trees
