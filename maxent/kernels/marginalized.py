"""Marginalised kernels: averages over the hidden variables of both data.

    K(x, x') = sum_{h, h'} p(h | x) p(h' | x') k((x, h), (x', h'))

With joint kernels of counts it is an inner product of posterior expected counts.

Source: Tsuda, Kin & Asai (2002), Marginalized kernels for biological sequences.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import FloatArray
from maxent.families import Categorical
from maxent.kernels._unit_diagonal import scaled_by
from maxent.kernels.scores._expected_counts import chain_counts
from maxent.kernels.scores._scores import refuse_impossible
from maxent.models import CategoricalHMM, Mixture
from maxent.models.chains.hidden_markov import HiddenMarkovModel

Array = NDArray[np.float64]
LatentModel: TypeAlias = Mixture | HiddenMarkovModel
Order: TypeAlias = Literal[1, 2]


def marginalized_features(
    data: Any, model: LatentModel, *, order: Order = 1, n_jobs: int | None = None
) -> FloatArray:
    """Return posterior expected counts, the features of the marginalised kernel.

    Parameters
    ----------
    data : list of sequences, or array-like (n, event)
        Sequences of a hidden Markov model, rows of a mixture.
    model : CategoricalHMM, GaussianHMM or Mixture
        Fitted; one for all data.
    order : {1, 2}, default=1
        1 counts states with what they show; 2 counts pairs of neighbouring steps of a
        :class:`~maxent.models.CategoricalHMM`, states and symbols of both.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (n, n_states, n_symbols)
        Of symbols and of order 1: how often each state shows each symbol, over the
        number of steps; missing symbols are hidden variables too.
    ndarray (n, n_states * n_symbols, n_states * n_symbols)
        Of order 2: how often a state with its symbol is followed by another, over the
        number of pairs; zeros of a sequence of one step.
    ndarray (n, n_states, 1 + d)
        Of vectors: the share of the observed steps in each state, and the sum of their
        vectors in it over the number of these steps.
    ndarray (n, n_components, 1 + d)
        Of a mixture: the posterior of each component, and its product with the row.
    ndarray (n, n_components, n_categories)
        Of a mixture of categories: the posterior of each component, at the category.

    Raises
    ------
    TypeError
        For a model of another class.
    ValueError
        For data that the model cannot produce, and for rows of a mixture with missing
        values.

    See Also
    --------
    marginalized_kernel : Their inner products.

    References
    ----------
    Tsuda, Kin & Asai (2002), Marginalized kernels for biological sequences,
    Bioinformatics 18.

    Examples
    --------
    >>> from maxent.kernels import marginalized_features
    >>> from maxent.models import CategoricalHMM
    >>> model = CategoricalHMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]],
    ...                        [[1.0, 0.0], [0.5, 0.5]], alphabet="AB")
    >>> marginalized_features(["B", "AB"], model).round(3)
    array([[[0.   , 0.   ],
            [0.   , 1.   ]],
    <BLANKLINE>
           [[0.091, 0.   ],
            [0.409, 0.5  ]]])
    """
    if order not in (1, 2):
        raise ValueError(f"order={v.shown(order)} is not known; use 1 or 2.")
    symbols = isinstance(model, HiddenMarkovModel) and model._emissions.shared
    if order == 2 and not symbols:
        raise ValueError(
            f"order=2 counts pairs of symbols; model is a {type(model).__name__}, use "
            "order=1 or a CategoricalHMM."
        )
    with single_threaded_blas():
        if isinstance(model, Mixture):
            return _of_rows(model, data)
        if symbols:
            found = model._read(data, None)
            by_order = _of_symbols if order == 1 else _of_symbol_pairs
            return by_order(model, found, n_jobs)
        if isinstance(model, HiddenMarkovModel):
            return _of_vectors(model, model._read(data, None), n_jobs)
    raise TypeError(
        f"model={v.shown(model)} has no marginalised kernel; use a CategoricalHMM, a "
        "GaussianHMM or a Mixture."
    )


def marginalized_kernel(
    P: Any,
    Q: Any = None,
    *,
    model: LatentModel,
    order: Order = 1,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the marginalised kernel of data under one latent model.

    Data are alike if the same states show the same things in both: each is replaced by
    its posterior expected counts. Positive semidefinite, always.

    Parameters
    ----------
    P, Q : list of sequences, or array-like (n, event)
        Data of the model. Q None is P.
    model : CategoricalHMM, GaussianHMM or Mixture
        Fitted; one for all data.
    order : {1, 2}, default=1
        As for :func:`marginalized_features`.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each datum with itself.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q))

    Raises
    ------
    TypeError
        For a model of another class.
    ValueError
        For data that the model cannot produce.

    See Also
    --------
    marginalized_features : The expected counts, for linear machines.
    FisherScores : What hidden variables say about the parameters.

    Notes
    -----
    The kernel of data with their hidden variables is the inner product of the counts of
    (state, symbol), or of pairs of them, by their numbers; of vectors it is
    ``(1 + x.x')`` for steps in the same state, and 0 otherwise.

    References
    ----------
    Tsuda, Kin & Asai (2002), Marginalized kernels for biological sequences.

    Examples
    --------
    >>> from maxent.kernels import marginalized_kernel
    >>> from maxent.models import CategoricalHMM
    >>> model = CategoricalHMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]],
    ...                        [[0.9, 0.1], [0.1, 0.9]], alphabet="AB")
    >>> marginalized_kernel(["AAAA", "AAAB", "BBBB"], model=model).round(2)
    array([[0.98, 0.72, 0.  ],
           [0.72, 0.56, 0.13],
           [0.  , 0.13, 0.98]])
    """
    left = _flat(P, model, order, n_jobs)
    right = None if Q is None else _flat(Q, model, order, n_jobs)
    with single_threaded_blas():
        K = left @ (left if right is None else right).T
    if right is None:
        K = 0.5 * (K + K.T)
    if not normalize:
        return K
    own = np.einsum("ij,ij->i", left, left)
    other = None if right is None else np.einsum("ij,ij->i", right, right)
    return scaled_by(K, own, other)


def _flat(data: Any, model: Any, order: Order, n_jobs: int | None) -> Array:
    F = marginalized_features(data, model, order=order, n_jobs=n_jobs)
    return F.reshape(len(F), -1)


def _of_symbols(model: Any, found: Sequences, n_jobs: int | None) -> Array:
    counts = chain_counts(model, found, n_jobs)
    refuse_impossible(counts.log_likelihood)
    out = counts.emission.swapaxes(1, 2).copy()
    missing = np.add.reduceat(found.values < 0, found.offsets[:-1]) > 0
    for i in np.flatnonzero(missing).tolist():
        share = model.posterior(found.singles()[i])[0][found[i] < 0].sum(axis=0)
        out[i] += share[:, None] * model.emission.prob
    return out / found.lengths[:, None, None]


def _of_symbol_pairs(model: Any, found: Sequences, n_jobs: int | None) -> Array:
    """Transitions of the chain whose states are states with their symbols."""
    S, O = model.emission.prob.shape
    shown = model.emission.prob
    start = (model.start[:, None] * shown).ravel()
    moves = np.einsum("ij,jo->ijo", model.transition, shown).reshape(S, 1, S * O)
    moves = np.broadcast_to(moves, (S, O, S * O)).reshape(S * O, S * O)
    symbol = np.tile(np.eye(O), (S, 1))
    joint = CategoricalHMM(start, np.ascontiguousarray(moves), symbol)
    counts = chain_counts(joint, found, n_jobs)
    refuse_impossible(counts.log_likelihood)
    return counts.transition / np.maximum(found.lengths - 1, 1)[:, None, None]


def _of_vectors(
    model: HiddenMarkovModel, found: Sequences, n_jobs: int | None
) -> Array:
    counts = chain_counts(model, found, n_jobs)
    refuse_impossible(counts.log_likelihood)
    shown = ~np.isnan(found.values[:, 0])
    steps = np.add.reduceat(shown.astype(np.intp), found.offsets[:-1])
    X = np.where(shown[:, None], found.values, 0.0)
    terms = counts.emission[:, :, None] * _with_one(X)[:, None]
    total = np.add.reduceat(terms, found.offsets[:-1], axis=0)
    return total / np.maximum(steps, 1)[:, None, None]


def _of_rows(model: Mixture, data: Any) -> Array:
    v.check_entries("data", v.as_doubles("data", data), "impute missing values")
    refuse_impossible(model.log_prob(data))
    share = model.posterior(data)
    if isinstance(model.components, Categorical):
        shown = model.components.sufficient_statistics(data)
    else:
        X = v.as_doubles("data", data)
        shown = _with_one(X.reshape(len(X), -1))
    out: Array = share[:, :, None] * shown[:, None]
    return out


def _with_one(X: Array) -> Array:
    return np.column_stack([np.ones(len(X)), X])
