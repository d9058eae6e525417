"""Checks of a block by finite differences of what it says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.validation import check_answer
from maxent.families.priors.block import as_block

# Steps of central differences, as shares of the way along a direction of unit size. The
# best of them counts: wide ones have truncation errors, narrow ones rounding.
_STEPS = 10.0 ** -np.arange(1, 7)
_LOCALISED = 200  # rows looked at, one by one, where a direction disagrees
_LARGER = 10.0  # steps along which a domain without a boundary is tried
_ROUNDING = 1e-9  # of the size of log Z: what convexity may miss


def check_block(
    block: Any, *, n_points: int = 3, tol: float = 1e-5, random_state: int = 0
) -> dict[str, float]:
    """Compare what a block says of itself at random weights.

    ``log_partition`` must be zero at zero weights, convex, finite inside the domain
    that ``max_step`` states and infinite beyond; ``mean`` must be its gradient;
    ``hessian_factor``, ``hessian_product`` and the optional methods must be its
    Hessian. Derivatives are central differences, the best of six steps.

    Parameters
    ----------
    block : Block or object
        As :func:`~maxent.discrimination.solve_blocks` takes it. It needs few rows: ten
        are enough, and all methods are called some hundred times.
    n_points : int, default=3
        Random weights inside the domain at which it is checked, >= 1.
    tol : float, default=1e-5
        Largest relative disagreement that is let pass, in (0, 0.1].
    random_state : int, default=0
        Seed of the random weights and directions.

    Returns
    -------
    dict of str to float
        Largest relative disagreement by the name of the method; "slacks" only for
        blocks that have some.

    Raises
    ------
    TypeError
        If it is no block.
    ValueError
        For the first disagreement: the method, by how much, and at which row.
    FloatingPointError
        For NaN or infinity inside the domain.

    See Also
    --------
    Block : What a block defines.

    Examples
    --------
    >>> from maxent.families import DirichletProduct, check_block
    >>> block = DirichletProduct(1.0, n_categories=[2, 3]).block([[0, 1], [1, 2]])
    >>> report = check_block(block)
    >>> sorted(report)
    ['convexity', 'hessian_factor', 'hessian_product', 'log_partition', 'mean']
    >>> max(report.values()) < 1e-5
    True
    """
    found = as_block(block)
    if found is None:
        raise TypeError(
            f"block={v.shown(block)} is no Block; derive it from "
            "maxent.families.Block, or give it n_rows, log_partition, mean and "
            "hessian_factor."
        )
    n_points = v.check_count("n_points", n_points)
    tol = v.check_positive("tol", tol)
    if tol > 0.1:
        raise ValueError(f"tol={tol:g} must be in (0, 0.1].")
    probe = _Probe(found, np.random.default_rng(random_state), tol)
    probe.check_zero()
    points = probe.points(n_points)
    for a, where in points:
        probe.check_domain(a, where)
        probe.check_mean(a, where)
        probe.check_hessian(a, where)
        probe.check_slacks(a, where)
    probe.check_convexity(points)
    return probe.report


class _Probe:
    """A block, random directions, and what was found so far."""

    def __init__(self, block, rng, tol):
        self.block, self.rng, self.tol = block, rng, tol
        self.n = v.check_count("n_rows", block.n_rows)
        self.report: dict[str, float] = {}

    # -- answers -----------------------------------------------------------------------
    def call(self, name, shape, where, *args):
        """Call a method; refuse other shapes and what is not finite."""
        found = getattr(self.block, name)(*args)
        check_answer(f"{type(self.block).__name__}.{name}", found, shape, where)
        return np.asarray(found, dtype=np.float64)

    def log_partition(self, a, where):
        """The value, or inf outside the domain."""
        found = self.block.log_partition(a)
        if np.ndim(found) == 0 and found == np.inf:
            return np.inf
        name = f"{type(self.block).__name__}.log_partition"
        check_answer(name, found, (), where)
        return float(found)

    def direction(self):
        return self.rng.normal(size=self.n)

    def max_step(self, a, direction, where):
        found = self.block.max_step(a, direction)
        if np.ndim(found) == 0 and found > 0:
            return float(found)
        raise ValueError(
            f"{type(self.block).__name__}.max_step returned {v.shown(found)} {where}, "
            "inside its domain; it must return a number > 0, or inf."
        )

    def agree(self, check, size, sentence):
        """Note the relative size of a disagreement; raise if it is too large."""
        if not size <= self.tol:
            raise ValueError(
                f"{type(self.block).__name__}.{sentence} (relative difference "
                f"{size:.2g}, tol={self.tol:g})."
            )
        self.report[check] = max(self.report.get(check, 0.0), float(size))

    # -- where to look -----------------------------------------------------------------
    def check_zero(self):
        """Log Z is zero at zero weights."""
        value = self.log_partition(np.zeros(self.n), "at zero weights")
        self.agree(
            "log_partition",
            abs(value),
            f"log_partition is {value:.6g} at zero weights and must be 0 there: "
            "subtract its value for the prior",
        )

    def points(self, n_points):
        """Pairs (weights, how to call them): zero, and random ones of the domain."""
        zero = np.zeros(self.n)
        start, found = zero, []
        # the domain of some blocks is a cone, with zero at its tip
        if np.isfinite(self.log_partition(np.full(self.n, -1e-9), "near zero")):
            found.append((zero, "at zero weights"))
        else:
            start = np.full(self.n, 0.5)
        for k in range(n_points):
            where = f"at random weights {k} (inside the domain by max_step)"
            d = self.direction()
            reach = min(1.0, self.max_step(start, d, "at its first weights"))
            a = start + self.rng.uniform(0.2, 0.8) * reach * d
            if not np.isfinite(self.log_partition(a, where)):
                raise ValueError(
                    f"{type(self.block).__name__}.log_partition is infinite {where}, "
                    f"on the way of length {reach:.6g} that max_step allows: its "
                    "steps are too long, or the domain is not convex."
                )
            found.append((a, where))
        return found

    def check_domain(self, a, where):
        """Log Z is finite up to the step stated, and infinite beyond."""
        name, d = type(self.block).__name__, self.direction()
        step = self.max_step(a, d, where)
        within = 0.999 * step if np.isfinite(step) else _LARGER
        if not np.isfinite(self.log_partition(a + within * d, where)):
            raise ValueError(
                f"{name}.max_step returned {step:.6g} {where}, but log_partition is "
                f"infinite after {within:.6g} of the direction: the step is too long."
            )
        if np.isfinite(step):
            value = self.log_partition(a + 1.001 * step * d, "beyond max_step")
            if np.isfinite(value):
                raise ValueError(
                    f"{name}.max_step returned {step:.6g} {where}, but log_partition "
                    f"is {value:.6g} after 1.001 of it: the step is too short, or "
                    "log_partition is not infinite outside the domain."
                )

    # -- derivatives -------------------------------------------------------------------
    def differences(self, f, a, d, where):
        """Central differences of f along d, one for each step."""
        reach = min(self.max_step(a, d, where), self.max_step(a, -d, where), 1.0)
        for h in _STEPS * reach:
            yield (f(a + h * d) - f(a - h * d)) / (2.0 * h)

    def slope(self, a, d, wanted, where):
        """The difference quotient of log Z along d that is closest to one wanted."""
        quotients = self.differences(
            lambda x: self.log_partition(x, where), a, d, where
        )
        return min(quotients, key=lambda found: abs(found - wanted))

    def spread(self, a, d, where):
        """Standard deviation of d . log p, the scale of a mean that cancels."""
        along = self.call("hessian_product", (self.n,), where, a, d) @ d
        return np.sqrt(abs(along))

    def check_mean(self, a, where):
        """The mean is the gradient of log Z."""
        mean, d = self.call("mean", (self.n,), where, a), self.direction()
        wanted = float(mean @ d)
        scale = max(np.abs(mean) @ np.abs(d), self.spread(a, d, where), 1e-300)
        slope = self.slope(a, d, wanted, where)
        size = abs(slope - wanted) / scale
        sentence = "" if size <= self.tol else self._worst_row(a, mean, where)
        self.agree("mean", size, sentence)
        top = float(mean.max())
        if top > self.block.largest + self.tol:
            raise ValueError(
                f"{type(self.block).__name__}.mean is {top:.6g} for row "
                f"{int(mean.argmax())} {where}, above largest="
                f"{self.block.largest:g}, which no log-likelihood exceeds."
            )

    def _worst_row(self, a, mean, where):
        """The sentence about the row where mean and slope differ most."""
        rows = self.rng.permutation(self.n)[:_LOCALISED]
        worst, sentence = -1.0, ""
        for t in np.sort(rows):
            e = np.zeros(self.n)
            e[t] = 1.0
            slope = self.slope(a, e, float(mean[t]), where)
            if not abs(slope - mean[t]) <= worst:
                worst = abs(slope - mean[t])
                sentence = (
                    f"mean is not the gradient of log_partition: for row {t} it is "
                    f"{mean[t]:.6g} {where}, where log_partition changes by "
                    f"{slope:.6g} per unit of the weight of the row"
                )
        return sentence

    def check_hessian(self, a, where):
        """Factor and products are the derivative of the mean."""
        x = self.direction()
        factor = self.call("hessian_factor", (self.n, None), where, a)
        by_factor = factor @ (factor.T @ x)
        mean = self.call("mean", (self.n,), where, a)
        # a Hessian of zeros: rounding in the mean over the widest step
        scale = max(np.abs(by_factor).max(), 1e-8 * np.abs(mean).max(), 1e-300)
        found = min(
            self.differences(
                lambda b: self.call("mean", (self.n,), where, b), a, x, where
            ),
            key=lambda found: np.abs(found - by_factor).max(),
        )
        scale = max(scale, np.abs(found).max())
        self._same(
            "hessian_factor", by_factor, found, scale, where, "differences of mean"
        )
        product = self.call("hessian_product", (self.n,), where, a, x)
        self._same("hessian_product", product, found, scale, where, "those of mean")
        rows = np.sort(self.rng.permutation(self.n)[: (self.n + 1) // 2])
        some, inner = np.zeros(self.n), x[rows]
        some[rows] = inner
        wanted = self.call("hessian_product", (self.n,), where, a, some)[rows]
        among = np.asarray(self.block.hessian_among(a, rows)(inner))
        self._same("hessian_among", among, wanted, scale, where, "hessian_product")
        matrix = self.block.hessian_matrix(a, rows)
        if matrix is not None:
            self._same(
                "hessian_matrix", matrix @ inner, wanted, scale, where, "the product"
            )

    def _same(self, name, found, wanted, scale, where, other):
        """Two vectors over rows agree; the sentence names the worst row."""
        t = int(np.argmax(np.abs(found - wanted)))
        self.agree(
            name if name in ("hessian_factor", "slacks") else "hessian_product",
            np.abs(found - wanted)[t] / scale,
            f"{name} along a random direction is {found[t]:.6g} for row {t} {where}, "
            f"and by {other} {wanted[t]:.6g}",
        )

    # -- the rest ----------------------------------------------------------------------
    def check_slacks(self, a, where):
        """Slacks are positive and affine, and their methods are adjoint."""
        slacks = self.block.slacks(a)
        if slacks is None:
            return
        slacks, x = np.asarray(slacks, dtype=np.float64), self.direction()
        k = len(slacks)
        if not (slacks > 0).all():
            raise ValueError(
                f"{type(self.block).__name__}.slacks has {slacks.min():.6g} {where}, "
                "inside its domain, where all slacks are > 0."
            )
        step = 0.5 * min(1.0, self.max_step(a, x, where))
        changes = self.call("slack_changes", (k,), where, x)
        moved = np.asarray(self.block.slacks(a + step * x))
        scale = max(np.abs(slacks).max(), np.abs(moved).max())
        self._same("slacks", moved - slacks, step * changes, scale, where, "changes")
        z = self.rng.uniform(0.5, 1.5, k)
        gradient = self.call("slack_gradient", (self.n,), where, z)
        size = np.abs(z) @ np.abs(changes) + np.abs(gradient) @ np.abs(x)
        self.agree(
            "slacks",
            abs(gradient @ x - z @ changes) / max(size, 1e-300),
            "slack_gradient is not the transpose of slack_changes",
        )
        factor = self.call("barrier_factor", (self.n, None), where, a, z)
        wanted = self.call("hessian_product", (self.n,), where, a, x)
        wanted = wanted + self.call("slack_gradient", (self.n,), where, z * changes)
        self._same(
            "hessian_factor",
            factor @ (factor.T @ x),
            wanted,
            max(np.abs(wanted).max(), 1e-300),
            f"{where}, with a curvature along the slacks,",
            "products",
        )

    def check_convexity(self, points):
        """Log Z at the middle of chords is below the mean of their ends."""
        for i, (a, where) in enumerate(points):
            for b, _ in points[i + 1 :]:
                ends = [self.log_partition(c, where) for c in (a, b)]
                middle = self.log_partition(0.5 * (a + b), where)
                rise = middle - 0.5 * sum(ends)
                size = max(abs(ends[0]), abs(ends[1]), 1.0)
                if not rise <= _ROUNDING * size:
                    raise ValueError(
                        f"{type(self.block).__name__}.log_partition is not convex: "
                        f"halfway between two random weights it is {middle:.6g}, above "
                        f"the mean {0.5 * sum(ends):.6g} of its values at the ends."
                    )
                previous = self.report.get("convexity", 0.0)
                self.report["convexity"] = max(previous, rise / size)
