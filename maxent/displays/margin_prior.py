"""Margin priors side by side, with their potentials and losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maxent._support import validation as v
from maxent.discrimination._margin_parameters import (
    classification_margin,
    regression_margin,
)
from maxent.discrimination.margins.base import MarginPrior
from maxent.discrimination.margins.priors import MARGINS
from maxent.displays._axes import GREY, INK, colour, figure_of, line_style, make_axes
from maxent.displays._estimators import last_step, refusal
from maxent.displays._layout import fit_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from maxent.displays._axes import ManyAxes

PARTS: tuple[Literal["density", "potential", "loss"], ...] = (
    "density",
    "potential",
    "loss",
)


class MarginPriorDisplay:
    """Margin priors side by side: density, potential and loss.

    A prior over the margin gamma has the dual potential
    ``phi(lam) = -log E exp(-lam gamma)``, and the machine minimises its conjugate,
    the loss ``ell(m) = max over lam of phi(lam) - lam m``. The loss is zero where m
    exceeds the prior mean (dashed). Dotted is the limit of a margin fixed at the
    level with multipliers up to the same bound: the hinge of support vector machines.

    Parameters
    ----------
    priors : list of MarginPrior, optional
        None takes those of JMJ (1999), figure 2: exponential, Laplace and Gaussian,
        with rate 5 and level 1.
    C : float, optional
        Draw potential and loss of rows with the weight that `C` gives them in the
        estimators, which makes losses comparable; None draws those of the priors.

    Attributes
    ----------
    ax_ : ndarray of Axes (n_parts, n_priors)
    figure_ : Figure
    lines_ : ndarray of Line2D (n_parts, n_priors)
        The curves; None where a prior has no density.

    Notes
    -----
    JMJ's potentials (15b) and (15c), Laplace and Gaussian, are misprinted; here each
    potential belongs to the prior above it.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, figure 2.

    Examples
    --------
    >>> from maxent import MEDClassifier
    >>> from maxent.displays import MarginPriorDisplay
    >>> display = MarginPriorDisplay.from_estimator(MEDClassifier(C=2.0))
    >>> display.priors
    [ExponentialMargin(rate=10.0, level=1.0)]
    """

    ax_: NDArray[Any]
    figure_: Figure
    lines_: NDArray[Any]

    def __init__(
        self, priors: Sequence[MarginPrior] | None = None, *, C: float | None = None
    ) -> None:
        if priors is None:
            kinds = ("exponential", "laplace", "gaussian")
            makers: dict[str, Any] = MARGINS
            priors = [makers[kind](rate=5.0, level=1.0) for kind in kinds]
        self.priors = list(priors)
        if not self.priors:
            raise ValueError("priors is empty; give at least one margin prior.")
        for prior in self.priors:
            if not isinstance(prior, MarginPrior):
                raise TypeError(
                    f"priors: {v.shown(prior)} is not a MarginPrior object; give "
                    "objects such as ExponentialMargin(rate=5.0), or an estimator to "
                    "MarginPriorDisplay.from_estimator."
                )
        self.C = None if C is None else v.check_positive("C", C)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: ManyAxes | None = None, **kwargs: Any
    ) -> MarginPriorDisplay:
        """Draw the margin prior of an estimator, at its C.

        Parameters
        ----------
        estimator : estimator with a margin prior, or a Pipeline that ends in one
            MEDClassifier, MEDRegressor or a feature selector, fitted or not.
        ax : array-like of Axes, optional
            One per part; None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : MarginPriorDisplay

        Raises
        ------
        ValueError
            For an estimator without a margin prior.
        """
        e: Any = last_step(estimator)
        if isinstance(e, type) or not all(
            hasattr(e, name) for name in ("margin", "sharpness", "C")
        ):
            raise refusal(
                estimator,
                "a MEDClassifier, MEDRegressor or feature selector, which have a "
                "margin prior; for a prior itself use MarginPriorDisplay([prior]).",
            )
        if hasattr(e, "epsilon"):
            prior = regression_margin(e.margin, e.sharpness, e.epsilon)
        else:
            prior = classification_margin(e.margin, e.sharpness)
        return cls([prior], C=e.C).plot(ax, **kwargs)

    def plot(
        self,
        ax: ManyAxes | None = None,
        *,
        parts: Sequence[Literal["density", "potential", "loss"]] = PARTS,
        **kwargs: Any,
    ) -> MarginPriorDisplay:
        """Draw a row of axes for every part and a column for every prior.

        Parameters
        ----------
        ax : Axes or array-like of Axes, optional
            As many as parts times priors; None makes a figure.
        parts : sequence of {"density", "potential", "loss"}
            What to draw, from top to bottom.
        **kwargs
            Properties of the curves, as ``linewidth``; see ``Axes.plot``.

        Returns
        -------
        self
        """
        parts = list(parts)
        if not parts or not set(parts) <= set(PARTS):
            raise ValueError(f"parts={v.shown(parts)} must be some of {PARTS}.")
        shape = (len(parts), len(self.priors))
        size = (1.0 + 2.6 * shape[1], 0.5 + 2.0 * shape[0])
        self.ax_ = make_axes(ax, shape, size, sharex="row", sharey="row")
        self.figure_ = figure_of(self.ax_[0, 0])
        self.lines_ = np.empty(shape, dtype=object)
        for i, part in enumerate(parts):
            draw = getattr(self, f"_draw_{part}")
            for j, prior in enumerate(self.priors):
                style = line_style(kwargs, color=colour(j), lw=2)
                self.lines_[i, j] = draw(self.ax_[i, j], prior, style)
                if j > 0:
                    self.ax_[i, j].set_ylabel("")
        for j, prior in enumerate(self.priors):
            self.ax_[0, j].set_title(_title(prior, self.C), fontsize="medium")
        for i, part in enumerate(parts):
            self._finish(part, self.ax_[i], self.lines_[i])
        fit_alike(list(self.ax_.flat))
        return self

    # -- parts ---------------------------------------------------------------------
    def _margins(self) -> tuple[float, float]:
        """Ends of the margins worth showing, of priors with a density."""
        wide = [p for p in self.priors if p.density(p.level) is not None]
        low = min((p.level - 5 / p.rate for p in wide), default=-1.0)
        high = max((p.level + 4 / p.rate for p in wide), default=2.0)
        return low, high

    def _weight(self, prior: MarginPrior) -> float:
        return 1.0 if self.C is None else float(prior.unit_weight(self.C))

    def _upper(self, prior: MarginPrior) -> float:
        return self._weight(prior) * float(prior.upper)

    def _draw_density(
        self, ax: Axes, prior: MarginPrior, style: dict[str, Any]
    ) -> Line2D | None:
        gamma = np.linspace(*self._margins(), 801)
        ax.set(
            xlabel=r"margin $\gamma$",
            ylabel="prior density\n$P_0(\\gamma)$",
            xlim=(gamma[0], gamma[-1]),
        )
        if prior.unit_potential.hard:
            (line,) = ax.plot(
                [prior.level] * 2,
                [0.0, 0.85],
                transform=ax.get_xaxis_transform(),
                **{"marker": "^", "markevery": [1], **style},
            )
            return line
        density = prior.density(gamma)
        if density is None:
            limit = prior.unit_potential.linear
            text = "a limit,\nnot a prior" if limit else "not known"
            ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
            return None
        ax.fill_between(gamma, density, color=style["color"], alpha=0.2, lw=0)
        (line,) = ax.plot(gamma, density, **style)
        mean = prior.prior_mean
        if math.isfinite(mean):
            height = np.asarray(prior.density(mean))
            ax.vlines(mean, 0, height, INK, ls="--", lw=1.2, label="prior mean")
        return line

    def _draw_potential(
        self, ax: Axes, prior: MarginPrior, style: dict[str, Any]
    ) -> Line2D:
        finite = [t for t in map(self._upper, self.priors) if math.isfinite(t)]
        lam = np.linspace(0.0, 1.06 * max(finite, default=5.0), 2001)
        w, inside = self._weight(prior), lam <= self._upper(prior)
        phi, limit = np.full((2, len(lam)), np.nan)
        phi[inside] = w * prior.potential(lam[inside] / w)
        phi[np.isinf(phi)] = np.nan
        limit[inside] = prior.level * lam[inside]
        ax.plot(lam, limit, color=GREY, ls=":", lw=1.5, label="fixed margin")
        (line,) = ax.plot(lam, phi, **style)
        formula = "\n$-\\log E\\,e^{-\\lambda\\gamma}$" if self.C is None else ""
        ax.set(
            xlabel=r"multiplier $\lambda$",
            ylabel=r"potential $\phi(\lambda)$" + formula,
            xlim=(0.0, lam[-1]),
        )
        return line

    def _draw_loss(self, ax: Axes, prior: MarginPrior, style: dict[str, Any]) -> Line2D:
        low, high = self._margins()
        m = np.linspace(1.5 * low - 0.5 * high, high, 801)
        w, upper = self._weight(prior), self._upper(prior)
        loss = w * np.asarray(prior.loss(m))
        loss[np.isinf(loss)] = np.nan
        if math.isfinite(upper):
            hinge = upper * np.maximum(prior.level - m, 0.0)
            ax.plot(m, hinge, color=GREY, ls=":", lw=1.5, label="hinge")
        (line,) = ax.plot(m, loss, **style)
        if prior.unit_potential.hard:
            ax.axvline(prior.level, ymin=0.02, **style)
        if math.isfinite(prior.prior_mean):
            start = prior.prior_mean
            ax.plot(start, 0, "o", color=INK, ms=5, zorder=3, label="prior mean")
        ax.set(
            xlabel="margin $m$",
            ylabel="loss $\\ell(m)$\n$\\max_\\lambda\\;\\phi(\\lambda)-\\lambda m$",
            xlim=(m[0], m[-1]),
        )
        return line

    def _finish(self, part: str, axes: NDArray[Any], lines: NDArray[Any]) -> None:
        """Limits that suit all priors, and one legend."""
        bounded = [math.isfinite(self._upper(p)) for p in self.priors]
        heights = [1e-300]
        for prior, line, ok in zip(self.priors, lines, bounded, strict=True):
            if line is None or (part == "density" and prior.unit_potential.hard):
                continue
            # the quadratic loss of an unbounded prior would flatten the others
            if part != "loss" or ok or not any(bounded):
                heights.append(np.nanmax(line.get_ydata()))
        top = 1.12 * max(heights)
        # a potential falls to minus infinity at its bound: show where it turns
        bottom = -0.15 * top if part == "potential" else 0.0
        for ax in axes:
            ax.set_ylim(bottom - 0.02 * top, top)
        labelled = [ax for ax in axes if ax.get_legend_handles_labels()[0]]
        if labelled:
            loc = "upper right" if part == "loss" else "upper left"
            labelled[0].legend(loc=loc, fontsize="small", frameon=False)


def _title(prior: MarginPrior, C: float | None) -> str:
    values = {k: x for k, x in prior.parameters().items() if isinstance(x, float)}
    if C is not None and not prior.unit_potential.hard:
        values["C ="] = C
        if values.get("level") == 1.0:
            del values["level"]  # the estimators' own
    numbers = ", ".join(f"{name} {value:g}" for name, value in values.items())
    return f"{prior.name.capitalize().replace('_', '-')}\n{numbers}"
