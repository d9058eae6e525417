"""Product kernels by sampling, for any model that can be sampled.

One importance sample z_1, ..., z_n from g, the even mixture of the models' laws, serves
all pairs:

    F[m, i] = p_m(z_i)^rho / sqrt(n g(z_i)),      K = F F'.

Source: Jebara, Kondor & Howard (2004), section 5; the shared sample is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.threads import single_threaded_blas
from maxent.families import ExponentialFamily
from maxent.kernels.pairs._routes import is_sequence_model

Array = NDArray[np.float64]


class SharedSample:
    """Draws from the even mixture of the laws of models, shared by all pairs.

    Kernels estimated from one shared sample are inner products of explicit features:
    positive semidefinite for any number of draws, unbiased in every entry, at any
    power of the models' laws. New models take the same draws.

    Parameters
    ----------
    models : list of models, or batch of a family
        With ``sample`` and ``log_likelihood`` or ``log_prob``.
    horizon : int, optional
        T >= 0 of models of sequences: draws have T + 1 observations.
    n_samples : int, default=1000
        Draws, as many from each model (up to one).
    random_state : int, Generator, RandomState or None, default=None
        For the draws.

    Attributes
    ----------
    draws : ndarray or list
        What was drawn.
    log_proposal : ndarray (n_samples,)
        log g of the draws.
    horizon : int or None

    See Also
    --------
    shared_sample_features : The features in one call.

    Notes
    -----
    The draws are stratified: g is the mixture of the laws by their numbers of draws.
    For rho = 1/2 no term of the sum exceeds the number of models. For large rho and
    laws that are narrow in many dimensions few draws carry all the weight;
    :meth:`effective_size` says how many.

    Examples
    --------
    >>> from maxent.families import Gaussian
    >>> from maxent.kernels import SharedSample
    >>> P = Gaussian([[0.0], [1.0], [2.0]], [[1.0]])
    >>> sample = SharedSample(P, n_samples=3000, random_state=0)
    >>> sample.features(P, 0.5).shape
    (3, 3000)
    """

    def __init__(
        self,
        models: Sequence[Any] | ExponentialFamily,
        *,
        horizon: int | None = None,
        n_samples: int = 1000,
        random_state: Any = None,
    ) -> None:
        n = v.check_count("n_samples", n_samples)
        rng = as_generator(random_state)
        self.horizon = checked_horizon(models, horizon)
        self.columns = one_order(models)
        counts = np.full(len(models), n // len(models))
        extra = rng.permutation(len(models))[: n - counts.sum()]
        counts[extra] += 1
        parts = [
            drawn(model, int(k), self.horizon, rng)
            for model, k in zip(models, counts)
            if k
        ]
        self.draws = joined(parts)
        with np.errstate(divide="ignore"):
            share = np.log(counts / n)
        self.log_proposal = logsumexp(
            self._log_density(models) + share[:, None], axis=0
        )

    def __len__(self) -> int:
        return len(self.log_proposal)

    def _log_density(self, models):
        one_order(models, self.columns)
        return log_densities(models, self.draws)

    def log_features(self, models: Any, rho: float = 0.5) -> Array:
        """Logarithms of the features.

        Parameters
        ----------
        models : list of models, or batch of a family
            Over the space of the draws.
        rho : float, default=0.5
            Power > 0.

        Returns
        -------
        ndarray (n_models, n_samples)
            -inf where a model cannot produce a draw.
        """
        rho = v.check_positive("rho", rho)
        L = rho * self._log_density(models)
        return L - 0.5 * (self.log_proposal + np.log(len(self)))

    def features(self, models: Any, rho: float = 0.5) -> Array:
        """Features whose inner products are the kernel.

        Parameters
        ----------
        models : list of models, or batch of a family
        rho : float, default=0.5

        Returns
        -------
        ndarray (n_models, n_samples)
        """
        with np.errstate(over="ignore"):
            return np.exp(self.log_features(models, rho))

    def log_kernel(self, P: Any, Q: Any = None, *, rho: float = 0.5) -> Array:
        """Logarithms of the estimated kernel.

        Parameters
        ----------
        P, Q : list of models, or batch of a family
            Q None is P.
        rho : float, default=0.5

        Returns
        -------
        ndarray (len(P), len(Q))
        """
        left = self.log_features(P, rho)
        return _log_product(left, None if Q is None else self.log_features(Q, rho))

    def standard_error(self, P: Any, Q: Any = None, *, rho: float = 0.5) -> Array:
        """Standard errors of the entries of the estimated kernel.

        Parameters
        ----------
        P, Q : list of models, or batch of a family
            Q None is P.
        rho : float, default=0.5

        Returns
        -------
        ndarray (len(P), len(Q))
            Of draws that were independent from g; stratified ones vary less.
        """
        left = self.log_features(P, rho)
        right = None if Q is None else self.log_features(Q, rho)
        n = len(self)
        with np.errstate(over="ignore"):
            squares = np.exp(
                _log_product(2 * left, None if right is None else 2 * right)
            )
            mean = np.exp(_log_product(left, right))
        return np.sqrt(np.maximum(squares - mean**2 / n, 0.0) * n / max(n - 1, 1))

    def effective_size(self, models: Any, *, rho: float = 0.5) -> Array:
        """Number of equal draws worth as much, for each model with itself.

        Parameters
        ----------
        models : list of models, or batch of a family
        rho : float, default=0.5

        Returns
        -------
        ndarray (n_models,)
            Between 1 and `n_samples`.
        """
        L = 2.0 * self.log_features(models, rho)
        return np.exp(2.0 * logsumexp(L, axis=1) - logsumexp(2.0 * L, axis=1))


def shared_sample_features(
    models: Any,
    *,
    rho: float = 0.5,
    horizon: int | None = None,
    n_samples: int = 1000,
    random_state: Any = None,
    sample: SharedSample | None = None,
) -> Array:
    """Return explicit features whose inner products estimate the product kernel.

    Parameters
    ----------
    models : list of models, or batch of a family
        With ``sample`` and ``log_likelihood`` or ``log_prob``.
    rho : float, default=0.5
        Power > 0 of the laws of the observations; hidden variables are summed out
        first.
    horizon : int, optional
        T >= 0 of models of sequences.
    n_samples : int, default=1000
        Draws, hence features.
    random_state : int, Generator, RandomState or None, default=None
        For the draws.
    sample : SharedSample, optional
        Draws to use instead of new ones: pass those of the training models for new
        models. Of this `horizon`, if one is given; `n_samples` is not read.

    Returns
    -------
    ndarray (n_models, n_samples)

    Raises
    ------
    ValueError
        If `horizon` is not that of `sample`.

    See Also
    --------
    SharedSample : Logarithms, standard errors and effective sizes.

    Examples
    --------
    >>> from maxent.families import Gaussian
    >>> from maxent.kernels import shared_sample_features
    >>> P = Gaussian([[0.0], [1.0]], [[1.0]])
    >>> F = shared_sample_features(P, n_samples=4000, random_state=0)
    >>> (F @ F.T).round(2)
    array([[1.01, 0.88],
           [0.88, 0.99]])
    """
    if sample is None:
        sample = SharedSample(
            models, horizon=horizon, n_samples=n_samples, random_state=random_state
        )
    elif horizon is not None:
        check_sample(sample, horizon)
    return sample.features(models, rho)


# -- what sampling asks of models ------------------------------------------------------
def check_sample(sample: Any, horizon: Any, method: str = "shared_sample") -> None:
    """Refuse draws that a method does not read, or of other horizons."""
    if not isinstance(sample, SharedSample):
        raise TypeError(
            f"sample={v.shown(sample)} must be a SharedSample of models, or None."
        )
    if method != "shared_sample":
        raise ValueError(
            f"method={v.shown(method)} does not read sample; pass "
            "method='shared_sample', or sample=None."
        )
    if np.ndim(horizon) > 1 or np.ravel(horizon).tolist() != [sample.horizon]:
        raise ValueError(
            f"horizon={v.shown(horizon)} but sample has draws of "
            f"horizon={sample.horizon}: pass that one, or make a "
            "SharedSample(models, horizon=...) for every horizon."
        )


def checked_horizon(models: Any, horizon: Any) -> int | None:
    """Horizon of models of sequences; None of the others."""
    if not len(models):
        raise ValueError("models=[] has no model; pass one at least.")
    if isinstance(models, ExponentialFamily) or not is_sequence_model(models[0]):
        if horizon is not None:
            raise ValueError(
                f"horizon={v.shown(horizon)} has no meaning for models that are not of "
                "sequences; leave it None."
            )
        return None
    from maxent.kernels._lists import check_horizons

    horizons, one = check_horizons(horizon, models)
    if not one:
        raise ValueError(f"horizon={v.shown(horizon)} must be one integer.")
    return int(horizons[0])


def one_order(
    models: Any, columns: list[str] | None = None, name: str = "models"
) -> list[str] | None:
    """Columns of draws, in which all models must have theirs; None if not known."""
    if isinstance(models, ExponentialFamily):
        return columns
    for i, model in enumerate(models):
        own = getattr(model, "feature_names", None)
        own = None if own is None else list(own)
        if columns is not None and own not in (None, columns):
            raise ValueError(
                f"{name}[{i}] has the columns {v.shown(own)}, another model "
                f"{v.shown(columns)}: draws of one model are rows of all, so that "
                "columns must have one order (that of observed= in nets)."
            )
        columns = own if columns is None else columns
    return columns


def drawn(model: Any, n: int, horizon: int | None, rng: np.random.Generator) -> Any:
    """Draws of one model: an array of rows, or a list of sequences."""
    if horizon is None:
        X = np.asarray(model.sample(n, rng))
        # independent coordinates: (d, n, event) as rows (n, d, event)
        return X.swapaxes(0, 1) if getattr(model, "batch_shape", ()) else X
    return list(model.sample(n, horizon + 1, rng))


def joined(parts: Sequence[Any]) -> Any:
    """Draws of several models together."""
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return np.concatenate(parts)


def log_densities(models: Any, draws: Any) -> Array:
    """(n_models, n_draws)."""
    if isinstance(models, ExponentialFamily):
        if len(models.batch_shape) == 1:
            return models.log_prob(draws)
        by = [models[:, d].log_prob(draws[:, d]) for d in range(models.batch_shape[1])]
        return np.sum(by, axis=0)
    return np.stack([_log_density(model, draws) for model in models])


def _log_density(model, draws):
    by = model.log_prob if hasattr(model, "log_prob") else model.log_likelihood
    out = np.asarray(by(draws), dtype=np.float64)
    if out.shape != (len(draws),):
        raise ValueError(
            f"{type(model).__name__} returned log-likelihoods of shape {out.shape} for "
            f"{len(draws)} draws; one number for each is needed."
        )
    return out


def log_pair_kernel(
    P: Any, Q: Any, rho: float, draws_P: list[Any], draws_Q: list[Any]
) -> Array:
    """log of the mean of both one-sided estimates, each from the draws of one model.

        k = E_p p^(rho - 1) q^rho = E_q q^(rho - 1) p^rho

    Draws are those of each model; (len(P), len(Q)).
    """
    one = _one_sided(P, Q, rho, draws_P)
    two = _one_sided(Q, P, rho, draws_Q).T
    return np.logaddexp(one, two) - np.log(2.0)


def _one_sided(P, Q, rho, draws):
    """log mean over draws of p_i of p_i^(rho - 1) q_j^rho, (n, m)."""
    out = np.empty((len(P), len(Q)))
    for i, own in enumerate(draws):
        here = log_densities(P[i : i + 1], own)[0]
        L = rho * log_densities(Q, own) + (rho - 1.0) * here
        out[i] = logsumexp(L, axis=1) - np.log(len(own))
    return out


def _log_product(left, right):
    """log F G' from log F (n, k) and log G (m, k); G None is F."""
    F, top = _scaled(left)
    G, top2 = (F, top) if right is None else _scaled(right)
    with single_threaded_blas(), np.errstate(divide="ignore"):
        return np.log(F @ G.T) + (top[:, None] + top2)


def _scaled(L):
    top = L.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.exp(L - top[:, None]), top
