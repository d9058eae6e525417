"""EM of hidden Markov models with Gaussian emissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.sequences import Sequences
from maxent._support.threads import single_threaded_loops
from maxent.families import DiagonalGaussian, Gaussian, SphericalGaussian
from maxent.families.gaussian import AnyGaussian
from maxent.models._chain_input import Array
from maxent.models._hidden_chain import HiddenChainProblem, Observations
from maxent.models._partial import (
    check_columns,
    expected_fit,
    is_partial,
    marginal_table,
    with_column_means,
)

_MOST_CLUSTERED = 10000  # rows that a start looks at
FAMILIES: dict[str, type[Any]] = {
    "full": Gaussian,
    "diagonal": DiagonalGaussian,
    "spherical": SphericalGaussian,
}


def free_parameters(kind: str, d: int) -> int:
    """Free parameters of one Gaussian."""
    return d + {"full": d * (d + 1) // 2, "diagonal": d, "spherical": 1}[kind]


def gaussians(mean: ArrayLike, cov: ArrayLike) -> AnyGaussian:
    """Batch of Gaussians of the kind that the axes of `cov` say."""
    shape = v.as_doubles("cov", cov).shape
    kinds: dict[int, Callable[[ArrayLike, ArrayLike], AnyGaussian]]
    kinds = {1: SphericalGaussian, 2: DiagonalGaussian, 3: Gaussian}
    family = kinds.get(len(shape))
    if family is None:
        raise ValueError(
            f"cov has shape {shape}; (n_states, d, d), (n_states, d) or (n_states,) is "
            "expected."
        )
    return family(mean, cov)


def fitted_gaussians(mean: ArrayLike, cov: ArrayLike) -> AnyGaussian:
    """Gaussians that EM has come to; what a singular one means, and the remedy."""
    try:
        return gaussians(mean, cov)
    except ValueError as error:
        if "not positive definite" not in str(error):
            raise
        raise ValueError(
            "a covariance became singular in the fit: observations lie in a plane, or "
            "too few of them belong to a state or component. Drop columns that follow "
            "from the others, set smoothing > 0, or take diagonal covariances."
        ) from error


def covariances(emission: Any) -> Array:
    """Covariance matrices or variances of a batch."""
    return emission.cov if isinstance(emission, Gaussian) else emission.var


def gaussian_table(emission: Any, X: Array) -> Array:
    """Log-densities (n_steps, n_states); rows of NaN have some number."""
    if is_partial(X).any():
        return marginal_table(gaussians, emission.mean, covariances(emission), X)
    return np.ascontiguousarray(emission.log_prob(np.nan_to_num(X, nan=0.0)).T)


class GaussianProblem(HiddenChainProblem):
    """EM of Gaussian emissions.

    The prior of a state's mean and covariance is the likelihood of `smoothing` further
    observations that are distributed like all the data,

        smoothing / n * sum_t log p(x_t | state),

    so the M step is the family's own fit to weighted rows. Rows that are missing in
    part are filled in by each state.
    """

    def __init__(
        self,
        seen: Observations,
        weights: Array,
        smoothing: float,
        kind: str,
        n_jobs: int | None = None,
        part: bool = False,
    ) -> None:
        super().__init__(seen, weights, smoothing, n_jobs)
        self.kind, self.partial = kind, False
        X = seen.sequences.values
        self.shown = seen.row >= 0
        self.own = own = np.repeat(weights, seen.sequences.lengths) * self.shown
        if part:  # what is refused of all data may be right for a part of them
            self.X, self.rows = X, X[self.shown]
            return
        if not own.any():
            raise ValueError(
                "every observation is missing or has weight 0: there is nothing to fit."
            )
        self.X, self.rows = X, X[self.shown]
        check_columns(self.rows)
        self.partial = bool(is_partial(self.rows).any())
        filled = with_column_means(self.rows) if self.partial else self.rows
        v.check_range("sequences", filled)
        self.share = own[self.shown] / own.sum()
        constant = constant_columns(self.rows)
        if constant.any():
            if len(self.rows) == 1:
                raise ValueError("there is one observation; a variance needs two.")
            raise ValueError(
                f"column {int(np.argmax(constant))} of the sequences is constant, so "
                "its variance is zero; drop the column, or add noise of the size of "
                "its resolution."
            )

    def take_share_of(self, total: float) -> None:
        """Be a part of data whose observations have this total weight."""
        self.share = self.own[self.shown] / total

    def emission_sums(
        self, counts: Array, emission: Sequence[Array]
    ) -> tuple[Array, ...]:
        """Sums of the family from expected counts (rows, n_states)."""
        weights = counts[self.shown].T + self.smoothing * self.share
        return self.batch_of(*emission)._part_sums(self.rows, weights)

    @staticmethod
    def batch_of(mean: Array, cov: Array) -> AnyGaussian:
        """The emission as a batch of a family."""
        return gaussians(mean, cov)

    @staticmethod
    def arrays_of(batch: AnyGaussian) -> tuple[Array, Array]:
        """Its means and (co)variances."""
        return batch.mean, covariances(batch)

    def log_table(self, emission: Sequence[Array]) -> tuple[Array, float]:
        mean, cov = emission
        table = gaussian_table(fitted_gaussians(mean, cov), self.X)
        if not self.smoothing:
            return table, 0.0
        return table, self.smoothing * float((self.share @ table[self.shown]).sum())

    def fit_emission(
        self, counts: Array, emission: Sequence[Array]
    ) -> tuple[Array, ...]:
        mean, cov = map(np.array, emission)
        weights = counts[self.shown].T + self.smoothing * self.share
        used = weights.sum(axis=1) > 0  # the others keep what they have
        if self.partial:
            mean[used], cov[used] = expected_fit(
                self.rows, weights[used], mean[used], cov[used]
            )
            return mean, cov
        fitted = _fitted(self.kind, self.rows, weights[used])
        mean[used], cov[used] = fitted.mean, covariances(fitted)
        return mean, cov


def _fitted(kind: str, X: Array, weights: Array) -> AnyGaussian:
    """The family's own fit; what a singular one means here, and the remedy."""
    try:
        return FAMILIES[kind].fit(X, weights)
    except ValueError as error:
        if "singular" not in str(error):
            raise
        d = X.shape[1]
        raise ValueError(
            f"the covariance of a state, or of all observations ({len(X)} rows of {d} "
            f"columns), is singular: full ones need at least {d + 1} rows that are not "
            "in one plane. Give more observations, drop columns that follow from the "
            "others, or use covariance_type='diagonal'. smoothing > 0 helps where the "
            "observations together are not in one plane."
        ) from error


def constant_columns(rows: Array) -> NDArray[np.bool_]:
    """Columns whose observed entries are all equal; none may be empty."""
    return np.asarray(np.nanmin(rows, axis=0) == np.nanmax(rows, axis=0))


def refuse_flat_series(series: list[Sequences]) -> None:
    """Refuse series that have no variance in a column, all of them in one message."""
    flat = []
    for i, one in enumerate(series):
        rows = one.values[~np.isnan(one.values).all(axis=1)]
        if len(rows) < 2 or np.isnan(rows).all(axis=0).any():
            continue  # its fit says what is wrong
        constant = constant_columns(rows)
        if constant.any():
            flat.append((i, int(np.argmax(constant))))
    if flat:
        i, j = flat[0]
        others = ", ".join(str(k) for k, _ in flat[:10])
        more = ", ..." if len(flat) > 10 else ""
        raise ValueError(
            f"data[{i}]: column {j} is constant, so its variance is zero. Series with "
            f"such a column: {others}{more} ({len(flat)} of {len(series)}). "
            "Leave these series out, drop the column of all, or add noise of the size "
            "of its resolution to all."
        )


def clustered_starts(
    problem: GaussianProblem, n_states: int, n_init: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Starts with the means and covariances of random k-means clusterings."""
    from sklearn.cluster import KMeans

    X = with_column_means(problem.rows) if problem.partial else problem.rows
    overall = _fitted(problem.kind, X, problem.share)
    if len(X) > _MOST_CLUSTERED:
        X = X[np.sort(rng.choice(len(X), _MOST_CLUSTERED, replace=False))]
    scale = np.sqrt(overall.moments()[1])
    k = min(n_states, len(np.unique(X, axis=0)))
    for _ in range(n_init):
        seed = int(rng.integers(2**31))
        with single_threaded_loops():  # whose threads do not survive a fork
            found = KMeans(k, n_init=1, random_state=seed).fit(X / scale)
        means = found.cluster_centers_
        mean = overall.mean + rng.normal(size=(n_states, X.shape[1])) * scale
        mean[:k] = means * scale
        cov = np.repeat(0.5 * covariances(overall)[None], n_states, axis=0)
        start = 0.9 * rng.dirichlet(np.ones(n_states)) + 0.1 / n_states
        transition = rng.dirichlet(np.ones(n_states), size=n_states)
        yield start, 0.9 * transition + 0.1 / n_states, mean, cov
