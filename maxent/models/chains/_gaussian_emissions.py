"""EM of hidden Markov models with Gaussian emissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent.families import DiagonalGaussian, Gaussian, SphericalGaussian
from maxent.families.gaussian import AnyGaussian
from maxent.models._chain_input import Array, with_pseudo_counts
from maxent.models._component_prior import ComponentPrior, prior_of_groups
from maxent.models._partial import (
    check_columns,
    expected_fit,
    is_partial,
    marginal_table,
    with_column_means,
)
from maxent.models.chains._hidden_chain import HiddenChainProblem, Observations

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


def check_scatter(family: type[Any], X: Array, weights: Array) -> None:
    """Refuse rows of positive weight that have no spread in some direction."""
    try:
        family.fit(X, weights)
        return
    except ValueError as error:
        if "singular" not in str(error) and "constant" not in str(error):
            raise
    n, d = X.shape
    constant = constant_columns(X)
    if constant.any():
        raise ValueError(
            f"column {int(np.argmax(constant))} of X is constant, so its variance is "
            "zero; drop it, or add noise of the size of its resolution."
        )
    raise ValueError(
        f"the covariance of X ({n} rows of {d} columns) is singular: full covariances "
        f"need at least {d + 1} rows that are not in one plane. Drop columns that "
        "follow from others (one of shares that sum to one), add rows, or use "
        "DiagonalGaussian."
    )


def covariances(emission: Any) -> Array:
    """Covariance matrices or variances of a batch."""
    return emission.cov if isinstance(emission, Gaussian) else emission.var


def gaussian_table(emission: Any, X: Array) -> Array:
    """Log-densities (n_steps, n_states); rows of NaN have some number."""
    if is_partial(X).any():
        return marginal_table(gaussians, emission.mean, covariances(emission), X)
    return np.ascontiguousarray(emission.log_prob(np.nan_to_num(X, nan=0.0)).T)


class GaussianProblem(HiddenChainProblem):
    """EM of Gaussian emissions; `prior` is that of their means and covariances.

    Rows that are missing in part are filled in by each state.
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
        self.prior = ComponentPrior(FAMILIES[kind])  # none until a start is known
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
        own = self.own[self.shown]
        filled = with_column_means(self.rows, own) if self.partial else self.rows
        v.check_range("sequences", filled)
        constant = constant_columns(self.rows)
        if constant.any():
            if len(self.rows) == 1:
                raise ValueError("there is one observation; a variance needs two.")
            raise ValueError(
                f"column {int(np.argmax(constant))} of the sequences is constant, so "
                "its variance is zero; drop the column, or add noise of the size of "
                "its resolution."
            )

    def emission_sums(
        self, counts: Array, emission: Sequence[Array]
    ) -> tuple[Array, ...]:
        """Sums of the family from expected counts (rows, n_states)."""
        return self.batch_of(*emission)._part_sums(self.rows, counts[self.shown].T)

    def start_at(self, point: tuple[Array, ...]) -> tuple[Array, ...]:
        """A point, whose states' most likely rows decide about the prior."""
        shares = self.expected(point)[0].emission[self.shown].T
        self._set_prior(shares.argmax(axis=0), len(shares))
        return point

    def moves_of(self, shares: Array) -> tuple[Array, Array]:
        """Start and transition of states that have shares (k, rows) of the rows.

        They are those of the rows' shares, and a tenth of even ones, as EM could never
        leave a zero.
        """
        after = np.zeros((len(self.X), len(shares)))
        after[self.shown] = shares.T * self.own[self.shown, None]
        before = np.zeros_like(after)
        before[self.shown] = shares.T
        first = self.seen.sequences.offsets[:-1]
        start = after[first].sum(axis=0)
        after[first] = 0.0
        moves = before[:-1].T @ after[1:]
        even = np.full(moves.shape, 1.0 / len(shares))
        start = 0.9 * with_pseudo_counts(start, 0.0, even[0]) + 0.1 * even[0]
        moves = 0.9 * with_pseudo_counts(moves, 0.0, even) + 0.1 * even
        return start, moves

    def _set_prior(self, labels, n_states):
        own = self.own[self.shown]
        X = with_column_means(self.rows, own) if self.partial else self.rows
        self.prior = prior_of_groups(
            FAMILIES[self.kind], X, own, labels, n_states, self.smoothing
        )

    @staticmethod
    def batch_of(mean: Array, cov: Array) -> AnyGaussian:
        """The emission as a batch of a family."""
        return gaussians(mean, cov)

    @staticmethod
    def arrays_of(batch: AnyGaussian) -> tuple[Array, Array]:
        """Its means and (co)variances."""
        return batch.mean, covariances(batch)

    def log_table(self, emission: Sequence[Array]) -> tuple[Array, float]:
        batch = fitted_gaussians(*emission)
        return gaussian_table(batch, self.X), float(self.prior.log_density(batch).sum())

    def fit_emission(
        self, counts: Array, emission: Sequence[Array]
    ) -> tuple[Array, ...]:
        mean, cov = map(np.array, emission)
        weights = counts[self.shown].T
        total = weights.sum(axis=1)
        used = self.prior.decides(total)  # the others keep what they have
        weights, total = weights[used], total[used]
        prior = self.prior.of_members(used)
        if self.partial:
            moments = expected_fit(self.rows, weights, mean[used], cov[used])
            fitted = prior.blended(total, *moments)
        else:
            fitted = prior.fit(self.rows, weights)
        mean[used], cov[used] = fitted.mean, covariances(fitted)
        return mean, cov


def check_observations(kind: str, X: Array, weights: Array) -> None:
    """Refuse observations that have no fit; what that means here, and the remedy."""
    try:
        FAMILIES[kind].fit(X, weights)
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
