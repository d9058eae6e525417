"""Conjugate priors of families of one or two parameters, by quadrature.

    P(theta) ~ exp(chi . eta(theta) - nu A(eta(theta)))

chi and nu are sums over the rows that the prior is worth, of their statistics and of
their weights. What a prior does with weighted rows follows from the moments of eta and
A under it: log N(chi, nu) of the normaliser N is convex, its gradient is (E eta, -E A)
and its Hessian their covariance. The integrals are sums over a grid about the mode,
whose errors fall faster than any power of its step for analytic functions.

Source: Diaconis & Ylvisaker (1979), Conjugate priors for exponential families;
Jaakkola, Meila & Jebara (1999), footnote 1 and section 3.6.
"""

from __future__ import annotations

import functools
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families._charts import Chart
from maxent.families.base import ExponentialFamily
from maxent.families.priors.conjugate import ConjugatePrior

_DROP = 45.0  # of the log-density, in nats, at the ends of a grid
_STEPS = 0.05, 0.3  # of a grid at most, in standard deviations and in coordinates
_NODES = {1: (48, 4096), 2: (40, 256)}  # least and most of an axis, by how many axes
# distances from the mode at which ends are sought, in standard deviations
_LADDER = np.concatenate([np.arange(2.0, 12.0), 12.0 * 1.5 ** np.arange(32)])
_MOST_NODES = 1 << 22  # of the grids that are held at once


class FamilyPrior(ConjugatePrior):
    """Conjugate prior of a family of one or two parameters.

    Parameters
    ----------
    family : ExponentialFamily
        A member of it; only what all members share, such as ``r`` of NegativeBinomial,
        is read. Poisson, NegativeBinomial, Geometric, Bernoulli, Exponential, Gamma,
        Beta, and VonMisesFisher, whose rows in two dimensions may be angles (n, 1) in
        radians.
    mean : array-like (k,)
        Mean of the statistics of the rows that the prior is worth.
    count : float
        How many rows those are, > 0.

    Attributes
    ----------
    mean : ndarray (k,)
    count : float

    See Also
    --------
    NormalInverseWishart : Of Gaussians.
    DirichletProduct : Of categories.

    References
    ----------
    Diaconis & Ylvisaker (1979); Jaakkola, Meila & Jebara (1999), footnote 1.

    Examples
    --------
    Two rows of mean 3 and two counts more:

    >>> from maxent.families import FamilyPrior, Poisson
    >>> prior = FamilyPrior(Poisson(1.0), [3.0], 2.0)
    >>> posterior = prior.posterior([[4.0], [6.0]])
    >>> posterior.mean, posterior.count
    (array([4.]), 4.0)
    """

    mean: FloatArray
    count: float

    def __init__(
        self, family: ExponentialFamily, mean: ArrayLike, count: float
    ) -> None:
        self.family, self._chart = _checked_family(family)
        mean = np.array(v.as_doubles("mean", mean))
        k = self.family.natural_parameters.shape[-1]
        if mean.shape != (k,):
            raise ValueError(
                f"mean has shape {mean.shape}; the statistics of "
                f"{type(self.family).__name__} are {k} number{'s' * (k > 1)}."
            )
        count = v.check_positive("count", count)
        if not np.isfinite(mean).all() or not self._chart.is_mean(mean):
            raise ValueError(
                f"mean={v.shown(mean.tolist())} is no mean of the statistics of a "
                f"{type(self.family).__name__}: it must lie inside their range."
            )
        self._set(count * mean, count, 0.0)

    def _set(self, total, count, log_base):
        self.mean, self.count, self._log_base = total / count, float(count), log_base
        self._chi = self.mean * count  # the same bits from the mean
        self.mean.setflags(write=False)
        self._known: Any = None

    def _with(self, total, count, log_base):
        value = object.__new__(type(self))
        value.family, value._chart = self.family, self._chart
        value._set(total, count, log_base)
        return value

    @classmethod
    def weak(
        cls,
        family: type[ExponentialFamily],
        X: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        count: float = 1.0,
        **options: Any,
    ) -> Self:
        """A prior worth a row whose statistics are the means of those of the data.

        Parameters
        ----------
        family : class
        X : array-like (n, event)
            Rows; they must differ.
        weight : array-like (n,), optional
            Weights >= 0 of the rows.
        count : float, default=1.0
            Rows that it is worth, > 0.
        **options
            Further arguments of the family's `fit`, such as ``r``.

        Returns
        -------
        FamilyPrior

        Raises
        ------
        ValueError
            If the rows have no fit of the family.
        """
        fitted = family.fit(X, weight, **options)
        return cls(fitted, fitted.mean_parameters, count)

    def _without_rows(self):
        return self._with(self._chi, self.count, 0.0)

    def __repr__(self) -> str:
        return (
            f"FamilyPrior({type(self.family).__name__}, mean={self.mean.tolist()!r}, "
            f"count={self.count:g})"
        )

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {"family": self.family, "mean": self.mean, "count": self.count}

    # -- on rows -------------------------------------------------------------------
    def _prepare(self, X):
        """Statistics (n, k) of the rows, and the logarithm (n,) of the base measure."""
        X = v.as_doubles("X", X)
        event = self.family.event_shape
        width = event[0] if event else 1
        if X.ndim == 2 and X.shape[1] == 1 and event == (2,):
            X = directions_of(X)
        if X.ndim != 2 or X.shape[1] != width:
            raise ValueError(f"X has shape {X.shape}; (n, {width}) is expected.")
        X = X if event else X[:, 0]
        T = self.family.sufficient_statistics(X)
        if not np.isfinite(T).all():
            raise ValueError(
                "X has rows on the edge of the support of "
                f"{type(self.family).__name__}; move them inside."
            )
        base = np.broadcast_to(self.family._log_base(X), T.shape[:1])
        return np.ascontiguousarray(T, dtype=np.float64), base

    def _length(self, data):
        return len(data[0])

    def _update(self, data, weight):
        T, base = data
        total, count = self._chi + weight @ T, self.count + float(weight.sum())
        if not self._is_proper(total, count):
            return None
        return self._with(total, count, self._log_base + float(weight @ base))

    def _is_proper(self, total, count):
        with np.errstate(all="ignore"):
            inside = count > 0 and self._chart.is_mean(total / count)
        return bool(inside and np.isfinite(total).all())

    @property
    def _moments(self):
        """log N; means and covariance of eta and -A."""
        if self._known is None:
            found = integrals(self._chi[None], np.array([self.count]), self)
            self._known = tuple(part[0] for part in found)
        return self._known

    def _log_normalizer(self):
        return float(self._moments[0]) + self._log_base

    def _expected(self, data):
        T, base = data
        mean = self._moments[1]
        return T @ mean[:-1] + mean[-1] + base

    def _predictive(self, data):
        T, base = data
        rows, place = np.unique(T, axis=0, return_inverse=True)
        count = np.full(len(rows), self.count + 1.0)
        log_norm = integrals(self._chi + rows, count, self)[0]
        return (log_norm - self._moments[0])[place.ravel()] + base

    def _factor(self, data):
        T, _ = data
        # deviations from the mean: statistics far from zero cost no digits
        root = self._root
        return (T - self.mean) @ root[:-1] + (root[-1] + self.mean @ root[:-1])

    @functools.cached_property
    def _root(self):
        """Root (k + 1, k + 1) of the covariance."""
        values, vectors = np.linalg.eigh(self._moments[2])
        return vectors * np.sqrt(np.maximum(values, 0.0))

    def _rank(self, data):
        return len(self._chi) + 1

    def _product(self, data, x):
        factor = self._factor(data)
        return factor @ (factor.T @ x)

    def _max_step(self, data, direction):
        T, _ = data
        total, count = direction @ T, float(direction.sum())
        slacks = self._chart.slacks(self._chi, self.count)
        if slacks is not None:
            change = self._chart.slacks(total, count)
            down = change < 0
            return float(np.min(slacks[down] / -change[down], initial=np.inf))

        def inside(t):
            return self._is_proper(self._chi + t * total, self.count + t * count)

        high = 1.0
        while inside(high):
            high *= 4.0
            if high > 1e18:
                return np.inf
        low = 0.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if inside(middle) else (low, middle)
        return low

    def _why_improper(self, data, weight):
        return (
            "the base weights leave the domain of this prior; use smaller ones, or a "
            "prior worth more rows."
        )


def directions_of(X: FloatArray) -> FloatArray:
    """Unit vectors of angles (n, 1) in radians; other rows as they are."""
    return np.hstack([np.cos(X), np.sin(X)]) if X.shape[1] == 1 else X


def _checked_family(family: Any) -> tuple[Any, Chart]:
    """One member of a family, and its chart."""
    chart = getattr(family, "_chart", None)
    if isinstance(family, type) or not isinstance(family, ExponentialFamily):
        raise TypeError(
            f"family={v.shown(family)} must be a member of a family, such as "
            "maxent.families.Poisson(1.0)."
        )
    if chart is None:
        raise TypeError(
            f"{type(family).__name__} has no prior by quadrature: families of one or "
            "two parameters have, such as Poisson, Gamma and Beta."
        )
    return (family if not family.batch_shape else family._flat()[0]), chart


def integrate_together(priors: list[Any]) -> None:
    """Find the moments of those of one family at once, which costs little more."""
    groups: dict[Any, list[FamilyPrior]] = {}
    for prior in priors:
        if isinstance(prior, FamilyPrior):
            kind = type(prior.family), *map(repr, prior.family._fixed().items())
            groups.setdefault((kind, len(prior._chi)), []).append(prior)
    for group in groups.values():
        if len(group) > 1:
            chi = np.stack([prior._chi for prior in group])
            count = np.array([prior.count for prior in group])
            for prior, *found in zip(group, *integrals(chi, count, group[0])):
                prior._known = tuple(found)


def integrals(
    chi: FloatArray, nu: FloatArray, prior: FamilyPrior
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log N (B,), means (B, k + 1) and covariances of (eta, -A), of many priors.

    `chi` (B, k) and `nu` (B,) are in the domain.
    """
    axes = prior._chart.n_axes
    step = max(1, _MOST_NODES // _NODES[axes][1] ** axes)
    parts = [
        _integrals(chi[lo : lo + step], nu[lo : lo + step], prior)
        for lo in range(0, len(chi), step)
    ]
    return tuple(np.concatenate(part) for part in zip(*parts))  # type: ignore[return-value]


def _integrals(chi, nu, prior):
    chart, family = prior._chart, prior.family

    def log_density(u):
        with np.errstate(all="ignore"):
            value = chart.log_density(family, u, chi, nu)
        return np.where(np.isfinite(value), value, -np.inf)

    centre = chart.free(family._natural_of_mean(chi / nu[:, None]))
    centre, axes = _mode(log_density, centre, nu)
    top, k = log_density(centre), centre.shape[1]
    ends = np.empty((len(chi), k, 2))
    for i in range(k):
        for side, sign in enumerate((-1.0, 1.0)):
            away = sign * _LADDER[:, None] * axes[:, None, :, i]
            low = log_density(centre[:, None] + away) < top[:, None] - _DROP
            at = np.where(low.any(axis=1), low.argmax(axis=1), len(_LADDER) - 1)
            ends[:, i, side] = sign * _LADDER[at]

    def points(z):
        return centre[:, None] + z @ np.swapaxes(axes, 1, 2)

    if k == 2:
        ends = _widened(ends, points, log_density, top)
    size = np.linalg.norm(axes, axis=1)
    # spacings grow with the distance from the mode, as tails may be long
    ends = np.arcsinh(ends)
    width = ends[..., 1] - ends[..., 0]
    finest = (width / np.minimum(_STEPS[0], _STEPS[1] / size)).max()
    n = int(np.clip(np.ceil(finest), *_NODES[k]))
    t = np.swapaxes(ends[..., :1] + width[..., None] * np.linspace(0, 1, n), 1, 2)
    if k == 2:
        first, second = np.broadcast_arrays(t[:, :, None, 0], t[:, None, :, 1])
        t = np.stack([first, second], axis=-1).reshape(len(chi), n * n, 2)
    u = points(np.sinh(t))
    value = log_density(u) + np.log(np.cosh(t)).sum(axis=2)
    total = logsumexp(value, axis=1)
    cell = np.log(width / (n - 1)).sum(axis=1)
    log_norm = total + cell + np.linalg.slogdet(axes)[1]
    share = np.exp(value - total[:, None])[..., None]
    with np.errstate(all="ignore"):
        each, within = chart.moments(family, u, chi, nu)
    each = np.where(share > 0, each, 0.0)
    mean = (share * each).sum(axis=1)
    each -= mean[:, None]
    cov = np.swapaxes(each * share, 1, 2) @ each
    if within is not None:
        within = np.where(share[..., None] > 0, within, 0.0)
        cov = cov + (share[..., None] * within).sum(axis=1)
    return log_norm, mean, cov


def _widened(ends, point, log_density, top):
    """Ends (B, 2, 2) of grids, farther where the edges have not fallen far enough."""
    share = np.linspace(0, 1, 41)
    for _ in range(20):
        width = ends[..., 1] - ends[..., 0]
        lines = ends[..., :1] + width[..., None] * share
        high = np.empty(ends.shape, dtype=bool)
        for i in range(2):
            for side in range(2):
                z = np.empty((len(ends), len(share), 2))
                z[..., i] = ends[:, i, side, None]
                z[..., 1 - i] = lines[:, 1 - i]
                found = log_density(point(z)).max(axis=1)
                high[:, i, side] = found > top - 0.8 * _DROP
        if not high.any():
            break
        ends = np.where(high, 1.3 * ends, ends)
    return ends


def _mode(log_density, u, nu):
    """Modes (B, k) near given points, and axes (B, k, k) of one standard deviation."""
    (_, k), eye = u.shape, np.eye(u.shape[1])
    h = 1e-2 / np.sqrt(1.0 + nu)[:, None]
    for _ in range(30):
        at = log_density(u)
        plus = np.stack([log_density(u + h * e) for e in eye], axis=-1)
        minus = np.stack([log_density(u - h * e) for e in eye], axis=-1)
        gradient = (plus - minus) / (2 * h)
        curvature = np.empty((len(u), k, k))
        for i in range(k):
            curvature[:, i, i] = (plus[:, i] - 2 * at + minus[:, i]) / h[:, 0] ** 2
            for j in range(i):
                mixed = sum(
                    s * t * log_density(u + h * (s * eye[i] + t * eye[j]))
                    for s in (1, -1)
                    for t in (1, -1)
                )
                curvature[:, i, j] = curvature[:, j, i] = mixed / (4 * h[:, 0] ** 2)
        values, vectors = np.linalg.eigh(-curvature)
        values = np.maximum(values, 1e-3 * np.abs(values).max(axis=1, keepdims=True))
        values = np.maximum(np.where(np.isfinite(values), values, 1.0), 1e-12)
        along = (vectors * gradient[:, :, None]).sum(axis=1) / values
        move = (vectors * along[:, None, :]).sum(axis=2)
        size = np.sqrt((along**2 * values).sum(axis=1))  # in standard deviations
        factor = np.ones(len(u))
        for _ in range(20):
            worse = log_density(u + factor[:, None] * move) < at
            if not worse.any():
                break
            factor = np.where(worse, 0.5 * factor, factor)
        u = u + np.where(worse, 0.0, factor)[:, None] * move
        if (size < 0.1).all():
            break
    return u, vectors / np.sqrt(values)[:, None, :]
