"""Kernel between linear Gaussian networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent.families import Gaussian
from maxent.families._checks import least_of_correlation
from maxent.kernels._lists import check_models
from maxent.kernels.pairs._gaussian_parts import GaussianParts, check_powers
from maxent.models.networks.linear_gaussian import LinearGaussianNetwork


def linear_gaussian_kernel(
    P: Sequence[LinearGaussianNetwork],
    Q: Sequence[LinearGaussianNetwork] | None = None,
    *,
    rho: ArrayLike = 0.5,
    log: bool = False,
    normalize: bool = False,
) -> NDArray[np.float64]:
    """Return the probability product kernel of linear Gaussian networks.

    k = int p(x)^rho p'(x)^rho dx over the observed nodes, exact for every rho.

    Parameters
    ----------
    P, Q : list of LinearGaussianNetwork
        Structures and hidden nodes may differ, observed nodes may not. Q None is P.
    rho : float or array-like (n_powers,), default=0.5
        Powers > 0. Further powers cost nothing.
    log : bool, default=False
        Return logarithms.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself.

    Returns
    -------
    ndarray (len(P), len(Q), [n_powers])

    Raises
    ------
    ValueError
        If the observed nodes differ, or the covariance of a model's observed nodes is
        singular: its kernel with itself is then infinite or zero.

    Notes
    -----
    The power taken on the law of all nodes, hidden ones then integrated out, gives the
    same up to one factor per model, hence the same normalised kernel.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.4.

    Examples
    --------
    >>> from maxent.kernels import linear_gaussian_kernel
    >>> from maxent.models import LinearGaussianNetwork
    >>> P = [LinearGaussianNetwork(["a", "b"], {("b", "a"): slope}, covs=1.0)
    ...      for slope in (0.0, 1.0)]
    >>> linear_gaussian_kernel(P).round(4)
    array([[1.    , 0.8944],
           [0.8944, 1.    ]])
    """
    check_powers(rho)
    return linear_gaussian_parts(P, Q).kernel(rho, log=log, normalize=normalize)


def linear_gaussian_parts(
    P: Sequence[LinearGaussianNetwork],
    Q: Sequence[LinearGaussianNetwork] | None = None,
) -> GaussianParts:
    """Return the parts of all pairs that kernels of any power share."""
    P = check_models("P", P, LinearGaussianNetwork)
    Q = None if Q is None else check_models("Q", Q, LinearGaussianNetwork, like=P)
    first = P[0]
    left = _gaussians("P", P, first)
    right = left if Q is None else _gaussians("Q", Q, first)
    log_det, distance = left._pair_terms(right)
    return GaussianParts(
        first.n_features, left._log_det, right._log_det, log_det, distance, Q is None
    )


def _sizes(net):
    size = dict(net.order)
    return {name: size[name] for name in net.observed}


def _gaussians(name, models, first):
    """Laws of the observed nodes, in the order of the first model."""
    means, covs = [], []
    for i, net in enumerate(models):
        if _sizes(net) != _sizes(first):
            raise ValueError(
                f"{name}[{i}] has observed nodes {_sizes(net)}, the first model has "
                f"{_sizes(first)}: the models are over different spaces."
            )
        index = np.arange(len(net.offsets))
        shown = np.concatenate([index[net._place[node]] for node in first.observed])
        cov = net.cov[np.ix_(shown, shown)]
        if least_of_correlation(cov) <= 1e-14:
            raise ValueError(
                f"the covariance of the observed nodes of {name}[{i}] is singular: its "
                "kernel with itself is infinite for rho >= 1 and zero below, so no rho "
                "is admissible. Add variance to the observed nodes."
            )
        means.append(net.mean[shown])
        covs.append(cov)
    return Gaussian(np.array(means), np.array(covs))
