"""Models over a path of orders, each started from the one before."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from maxent._support import validation as v
from maxent.minentropy._base import MinEntropyBase
from maxent.minentropy._ragged_rows import check_alpha
from maxent.minentropy._starts import PATH

Model = TypeVar("Model", bound=MinEntropyBase)


def alpha_path(
    estimator: Model,
    X: Any,
    y: ArrayLike,
    alphas: ArrayLike = PATH,
    *,
    sample_weight: ArrayLike | None = None,
    hidden_mask: Any = None,
) -> list[Model]:
    """Fit a model at every order, each started from the solution of the one before.

    The objective changes little between near orders, so that a solution is a good
    start of the next one; from order 0, whose start hardly matters, this leads to
    latent support vector machines (inf) without their sensitivity to the start.

    Parameters
    ----------
    estimator : M3EClassifier, M3EMotifClassifier, M3EGridClassifier or M3EModel
        With all parameters but `alpha`; it is not fitted itself. Its `init` says where
        each order starts: "path" or "zero" from the solution before, "auto" from there
        and from `n_init` random starts, the smallest objective of which is kept. The
        first order starts as `fit` does.
    X : as `fit` of the estimator takes it
        Samples.
    y : array-like (n,)
        Labels.
    alphas : array-like (k,) or (k, n_classes), default=(0, 1/4, 1/2, 1, 2, 8, 64, inf)
        Orders in [0, inf] in the order of the path, from low to high; a row has one for
        each output.
    sample_weight : array-like (n,), optional
        Weights >= 0 of the margin errors.
    hidden_mask : list of array-like of bool, optional
        As for `fit`.

    Returns
    -------
    list of estimators (k,)
        Fitted copies, one for each order. ``restarts_`` of a copy lists its starts, the
        solution before as "before".

    Raises
    ------
    ValueError
        For orders outside the domain, an `init` that leaves no path, a solver that
        does not take an order, and whatever `fit` refuses.

    Warns
    -----
    ConvergenceWarning
        For an order whose stationarity is above `tol`.
    UserWarning
        If w = 0 is nearly stationary, so that random starts were made as well.

    See Also
    --------
    maxent.displays.AlphaPathDisplay : Errors over orders and C.

    Notes
    -----
    Objectives of different orders do not compare, since the scores change with the
    order: choose alpha by validation error. A copy that is fitted again starts as `fit`
    does and may end elsewhere.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models,
    eq. (6).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EClassifier, alpha_path
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((80, 5, 2)), np.arange(80) % 2
    >>> X[y == 1, 3] += 4.0
    >>> path = alpha_path(M3EClassifier(C=100.0, init="path"), X, y, [0.0, 1.0, np.inf])
    >>> [(model.alpha, model.score(X, y) > 0.95) for model in path]
    [(0.0, True), (1.0, True), (inf, True)]
    """
    if not isinstance(estimator, MinEntropyBase):
        raise ValueError(
            f"estimator={v.shown(estimator)} must be an M3EClassifier, "
            "M3EMotifClassifier, M3EGridClassifier or M3EModel."
        )
    models = [clone(estimator).set_params(alpha=a) for a in _checked_orders(alphas)]
    _check_init(estimator)
    for model in models:
        model._check_solver(np.atleast_1d(model.alpha))
    before = None
    for model in models:
        model._learn(X, y, sample_weight, hidden_mask, before)
        before = model
    return models


def _checked_orders(alphas):
    """Orders as numbers, or as one array for every step of the path."""
    orders = v.as_doubles("alphas", alphas)
    if orders.ndim not in (1, 2) or not orders.size:
        raise ValueError(
            f"alphas has shape {orders.shape}; orders (k,), or (k, n_classes) with one "
            "for each output, are needed."
        )
    check_alpha(orders, orders.shape)
    return [float(a) if orders.ndim == 1 else a for a in orders]


def _check_init(estimator):
    """Refuse starts that know nothing of the solution before."""
    init = estimator.init
    if not isinstance(init, str) or init == "random":
        raise ValueError(
            f"init={v.shown(init)} leaves no path: use 'auto' (the solution before and "
            "random starts) or 'path' (the solution before alone)."
        )
