"""Kernels from divergences between distributions, and the heat kernel of the simplex.

    symmetrised KL      exp(-gamma (KL(p || q) + KL(q || p)))            not always PSD
    Jensen-Shannon      exp(-gamma (KL(p || m) + KL(q || m)) / 2),  m = (p + q) / 2
    heat                (4 pi t)^{-(D-1)/2} exp(-arccos(sum sqrt(p q))^2 / t), or exact

Sources: Moreno, Ho & Vasconcelos (2004); Fuglede & Topsoe (2004); Lafferty & Lebanon
(2005), section 3.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.special import gammaln, xlogy

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import FloatArray
from maxent.families import Categorical, ExponentialFamily, _checks
from maxent.kernels._document_counts import sparse_products
from maxent.kernels.pairs._family_routes import FamilyRoute, coordinates
from maxent.kernels.repair import repair_kernel

_LOG_2 = math.log(2.0)
_MOST_TERMS = 10_000  # of the exact heat kernel's series
_TILE = 2**18  # numbers of the series side by side


def kl_kernel(
    P: Any,
    Q: Any = None,
    *,
    gamma: float = 1.0,
    normalize: bool = False,
    repair: bool = False,
) -> FloatArray:
    """Return the exponentiated symmetrised KL divergence between distributions.

    ``exp(-gamma (KL(p || q) + KL(q || p)))``. It is positive semidefinite for Gaussians
    of one covariance and *not in general*: use :func:`js_kernel` for categories, or
    `repair`.

    Parameters
    ----------
    P, Q : batch of a family (n,) or (n, d), or list of single distributions
        (n, d) stands for d independent coordinates. Q None is P.
    gamma : float, default=1.0
        Rate > 0.
    normalize : bool, default=False
        Divide by the square roots of the diagonal. It is one already, unless `repair`
        changes it.
    repair : bool, default=False
        Set negative eigenvalues to zero, see :func:`repair_kernel`; for Q=None only.

    Returns
    -------
    ndarray (len(P), len(Q))
        0 where one distribution has mass outside the support of the other.

    Raises
    ------
    ValueError
        For distributions over different spaces, and `repair` with Q.

    Warns
    -----
    UserWarning
        If `repair` changes the matrix.

    References
    ----------
    Moreno, Ho & Vasconcelos (2004), A Kullback-Leibler divergence based kernel for SVM
    classification in multimedia applications.

    Examples
    --------
    >>> from maxent.families import Poisson
    >>> from maxent.kernels import kl_kernel
    >>> kl_kernel(Poisson([1.0, 2.0, 4.0])).round(3)
    array([[1.   , 0.5  , 0.016],
           [0.5  , 1.   , 0.25 ],
           [0.016, 0.25 , 1.   ]])
    """
    gamma = v.check_positive("gamma", gamma)
    _check_repair(repair, Q)
    route = FamilyRoute()
    P = route.checked("P", _listed("P", P))
    Q = None if Q is None else route.checked("Q", _listed("Q", Q), like=P)
    divergence: Any = 0.0
    with single_threaded_blas():
        for p, q in coordinates(P, Q):
            forward = p.kl(p if q is None else q)
            back = forward if q is None else q.kl(p)
            divergence = divergence + forward + np.transpose(back)
    K = np.exp(-gamma * divergence)
    if Q is None:
        np.fill_diagonal(K, 1.0)
    return repair_kernel(K, normalize=normalize) if repair else K


def js_kernel(
    P: Any, Q: Any = None, *, gamma: float = 1.0, normalize: bool = False
) -> FloatArray:
    """Return the exponentiated Jensen-Shannon divergence between distributions.

    ``exp(-gamma JS(p, q))``, ``JS = (KL(p || m) + KL(q || m)) / 2``, ``m = (p + q) /
    2``, in nats: between 0 and log 2. Positive semidefinite at every gamma.

    Parameters
    ----------
    P, Q : Categorical (n,), array-like (n, D), or sparse (n, D)
        Rows of probabilities of the categories; zeros are allowed. Q None is P.
    gamma : float, default=1.0
        Rate > 0.
    normalize : bool, default=False
        Has no effect, the kernel of a distribution with itself is one; so that all
        kernels can be called alike.

    Returns
    -------
    ndarray (len(P), len(Q))

    Raises
    ------
    ValueError
        For rows that are no probabilities, and different numbers of categories.

    Notes
    -----
    Costs the common categories of all pairs: the rest is log 2 for each.

    References
    ----------
    Fuglede & Topsoe (2004), Jensen-Shannon divergence and Hilbert space embedding.

    Examples
    --------
    >>> from maxent.kernels import js_kernel
    >>> js_kernel([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]).round(3)
    array([[1.   , 0.806, 0.5  ],
           [0.806, 1.   , 0.806],
           [0.5  , 0.806, 1.   ]])
    """
    gamma = v.check_positive("gamma", gamma)
    X, Y = _simplex_rows(P, Q)
    columns = (X if Y is None else Y).tocsc()
    m = columns.shape[0]
    K = np.empty((X.shape[0], m))
    for i in range(len(K)):
        mine = slice(X.indptr[i], X.indptr[i + 1])
        p, used = X.data[mine], X.indices[mine]
        met = columns[:, used]
        own = np.repeat(p, np.diff(met.indptr))
        q, total = met.data, own + met.data
        # JS = log 2 - (sum over common categories of what the pair has in common) / 2
        common = xlogy(total, total) - (xlogy(own, own) + xlogy(q, q))
        K[i] = np.bincount(met.indices, common, minlength=m)
    K = np.exp(-gamma * np.clip(_LOG_2 - 0.5 * K, 0.0, _LOG_2))
    if Y is None:
        np.fill_diagonal(K, 1.0)
    return K


def heat_kernel(
    P: Any,
    Q: Any = None,
    *,
    t: float = 1.0,
    method: Literal["parametrix", "exact"] = "parametrix",
    log: bool = False,
    normalize: bool = True,
    repair: bool = False,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the heat kernel of the simplex with its Fisher metric.

    Square roots of probabilities lie on a sphere, of radius 2 in the Fisher metric, on
    which ``arccos(sum_d sqrt(p_d q_d))`` is half the distance of p and q. The kernel is
    how much heat has come from p to q after the time t.

    Parameters
    ----------
    P, Q : Categorical (n,), array-like (n, D), or sparse (n, D)
        Rows of probabilities of D >= 2 categories; zeros are allowed. Q None is P.
    t : float, default=1.0
        Time > 0, the width of the kernel.
    method : {"parametrix", "exact"}, default="parametrix"
        "parametrix" is the first term of the expansion in t, ``exp(-arccos^2 / t)``. It
        is *not positive semidefinite* for large t (of three categories from about 3
        on). "exact" is the kernel of the sphere, positive semidefinite at every t, by
        its series; entries below 1e-16 of the diagonal are rounding.
    log : bool, default=False
        Return logarithms.
    normalize : bool, default=True
        Divide by the kernel of a distribution with itself, the same for all. With many
        categories that factor leaves the range of doubles.
    repair : bool, default=False
        Set negative eigenvalues to zero, see :func:`repair_kernel`; for Q=None only.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q))

    Raises
    ------
    ValueError
        For rows that are no probabilities, different numbers of categories, `repair`
        with Q or `log`, and a t so small that the series has more than 10^4 terms.

    Warns
    -----
    UserWarning
        If `repair` changes the matrix.

    See Also
    --------
    product_kernel : With ``length_law="poisson"`` of multinomials another positive
        semidefinite kernel of the same affinities, ``exp(lam (b - 1))``.

    References
    ----------
    Lafferty & Lebanon (2005), Diffusion kernels on statistical manifolds, Journal of
    Machine Learning Research 6.

    Examples
    --------
    >>> from maxent.kernels import heat_kernel
    >>> heat_kernel([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]).round(3)
    array([[1.   , 0.54 , 0.085],
           [0.54 , 1.   , 0.54 ],
           [0.085, 0.54 , 1.   ]])
    """
    t = v.check_positive("t", t)
    v.check_choice("method", method, ("parametrix", "exact"))
    _check_repair(repair, Q)
    if repair and log:
        raise ValueError("repair=True gives no logarithms; use log=False.")
    X, Y = _simplex_rows(P, Q)
    D = X.shape[1]
    if D < 2:
        raise ValueError("P has 1 category; the heat kernel needs two at least.")
    b = np.clip(
        sparse_products(X.sqrt(), None if Y is None else Y.sqrt(), n_jobs), 0, 1
    )
    if Y is None:
        np.fill_diagonal(b, 1.0)
    if method == "parametrix":
        L = -(np.arccos(b) ** 2) / t
        scale = -0.5 * (D - 1) * math.log(4.0 * math.pi * t)
    else:
        L, scale = _log_heat_series(b, D, t)
    if not normalize:
        L += scale
    if log:
        return L
    with np.errstate(over="ignore"):
        K = np.exp(L)
    return repair_kernel(K, normalize=normalize) if repair else K


def _log_heat_series(b: FloatArray, D: int, t: float) -> tuple[FloatArray, float]:
    """Log of the heat kernel over that at distance zero, and log of the latter.

    sum_l N_l exp(-l (l + D - 2) t / 4) R_l(b) / volume, with the number N_l of
    spherical harmonics of degree l and R_l = C_l(b) / C_l(1) of Gegenbauer's
    polynomials, R_{l+1} = ((2 l + D - 2) b R_l - l R_{l-1}) / (l + D - 2). The sphere
    has radius 2.
    """
    weights, log_top = _series_weights(D, t)
    total = weights.sum()
    out = np.empty_like(b)
    flat, result = b.ravel(), out.ravel()
    for lo in range(0, flat.size, _TILE):
        x = flat[lo : lo + _TILE]
        before, here = np.ones_like(x), x.copy()
        value = weights[0] + (weights[1] * x if len(weights) > 1 else 0.0)
        for l in range(1, len(weights) - 1):
            following = ((2 * l + D - 2) * x * here - l * before) / (l + D - 2)
            before, here = here, following
            value += weights[l + 1] * here
        result[lo : lo + _TILE] = np.clip(value / total, 0.0, 1.0)
    log_volume = (D - 1) * _LOG_2 + _LOG_2 + 0.5 * D * math.log(math.pi)
    log_volume -= float(gammaln(0.5 * D))
    with np.errstate(divide="ignore"):
        return np.log(out), log_top + math.log(total) - log_volume


def _series_weights(D: int, t: float) -> tuple[FloatArray, float]:
    """N_l exp(-l (l + D - 2) t / 4) over its largest value, and log of that value."""
    l = np.arange(_MOST_TERMS + 1.0)
    size = np.maximum(l + D - 2.0, 1.0)  # l = 0 of D = 2: N_0 = 1
    log_n = np.log(np.maximum(2.0 * l + D - 2.0, 1.0) / size)
    log_n += gammaln(l + D - 1.0) - gammaln(l + 1.0) - gammaln(D - 1.0)
    log_w = log_n - 0.25 * t * l * (l + D - 2.0)
    top = float(log_w.max())
    # terms below 1e-20 of the largest add nothing
    needed = np.flatnonzero(log_w > top - 46.0)
    if needed[-1] == _MOST_TERMS:
        raise ValueError(
            f"t={t:g} with {D} categories needs more than {_MOST_TERMS} terms of the "
            "series; use method='parametrix', which is accurate for small t."
        )
    return np.exp(log_w[: needed[-1] + 1] - top), top


def _listed(name: str, models: Any) -> Any:
    if isinstance(models, (ExponentialFamily, list, tuple)):
        return models
    raise TypeError(
        f"{name}={v.shown(models)} must be a batch of a family or a list of "
        "distributions; rows of probabilities are Categorical(rows)."
    )


def _check_repair(repair: bool, Q: Any) -> None:
    if repair and Q is not None:
        raise ValueError(
            "repair=True needs the square matrix of all data; compute it for P and Q "
            "together, with Q=None."
        )


def _simplex_rows(P: Any, Q: Any) -> tuple[Any, Any]:
    """Rows of probabilities as CSR; the second is None if Q is."""
    X = _probabilities("P", P)
    if Q is None:
        return X, None
    Y = _probabilities("Q", Q)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"Q has {Y.shape[1]} categories but P has {X.shape[1]}; both must be over "
            "the same ones."
        )
    return X, Y


def _probabilities(name: str, rows: Any) -> Any:
    if isinstance(rows, Categorical):
        rows = rows.prob
    if not sparse.issparse(rows):
        rows = _checks.simplex_array(name, rows)
        if rows.ndim != 2 or not rows.size:
            raise ValueError(
                f"{name} has shape {rows.shape}; rows of probabilities, (n, D), are "
                "needed."
            )
        return sparse.csr_array(rows)  # its columns increase
    X = sparse.csr_array(rows, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    _checks.probability_array(f"{name}.data", X.data)
    total = np.asarray(X.sum(axis=1)).ravel()
    wrong = np.abs(total - 1.0) > _checks.SUM_TOLERANCE
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"{name}[{i}] sums to {total[i]:.10g}; probabilities must sum to 1 within "
            f"{_checks.SUM_TOLERANCE:g}. Divide by the sum if that is what you mean."
        )
    return X
