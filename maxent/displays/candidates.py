"""Candidates of a latent model: entropy against likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from maxent.displays._axes import GREY, INK, colour, line_style, make_axes
from maxent.displays._estimators import refusal
from maxent.displays._layout import clear_offset, fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL = 55.0  # width of a number at the x axis, in points


class CandidatesDisplay:
    """Joint entropy of the candidates against their log-likelihood.

    Every start of a latent model is a point, admitted ones filled and rejected ones
    crossed; the choice by entropy and the choice by likelihood are marked.

    Parameters
    ----------
    log_likelihood : ndarray (n_candidates,)
        Average log-likelihood, nats.
    entropy : ndarray (n_candidates,)
        Joint entropy, regularised if the model was penalised.
    reason : ndarray of str (n_candidates,)
        Gate that rejected each candidate, "" if none.
    chosen : dict {str: int}
        Name of the choice -> number of the candidate.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    points_ : dict {str: Line2D}
        "admitted", "rejected" (if there are any) and the choices.
    legend_ : Legend

    See Also
    --------
    maxent.latent.LMEGaussianMixture : Mixtures with candidates.
    maxent.latent.LatentMaxEnt : Finitely many values.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import LMEGaussianMixture
    >>> from maxent.displays import CandidatesDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = LMEGaussianMixture(2, n_init=10, random_state=0).fit(X)
    >>> display = CandidatesDisplay.from_estimator(model)
    >>> sorted(display.chosen)
    ['entropy', 'likelihood']
    """

    def __init__(
        self,
        log_likelihood: Any,
        entropy: Any,
        reason: Any,
        chosen: dict[str, int],
    ) -> None:
        self.log_likelihood = log_likelihood
        self.entropy = entropy
        self.reason = reason
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the candidates of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with `candidates_`, such as LMEGaussianMixture.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Properties of the points, as for ``Axes.plot``.

        Returns
        -------
        display : CandidatesDisplay
        """
        table = getattr(estimator, "candidates_", None)
        if not isinstance(table, dict):
            raise refusal(
                estimator,
                "a fitted estimator with candidates_, such as LMEGaussianMixture or "
                "LatentMaxEnt after fit.",
            )
        words = ("entropy", "likelihood")
        chosen = {word: estimator.select(word).selected_ for word in words}
        columns = (table["log_likelihood"], table["regularized_entropy"])
        return cls(*columns, table["reason"], chosen).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Properties of the points, as for ``Axes.plot``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (5.4, 3.6))[0, 0]
        self.figure_ = self.ax_.figure
        L, H = np.asarray(self.log_likelihood), np.asarray(self.entropy)
        admitted = np.asarray(self.reason) == ""
        shown = np.isfinite(L) & np.isfinite(H)
        self.points_ = {}
        groups = (
            ("admitted", admitted, {"marker": "o", "ms": 4, "color": GREY}),
            ("rejected", ~admitted, {"marker": "x", "ms": 5, "color": INK}),
        )
        for name, at, style in groups:
            if (at & shown).any():
                label = f"{name} ({at.sum()})"
                style = line_style(kwargs, ls="", label=label, **style)
                (self.points_[name],) = self.ax_.plot(
                    L[at & shown], H[at & shown], **style
                )
        for k, (word, i) in enumerate(sorted(self.chosen.items())):
            style = line_style(
                kwargs,
                ls="",
                marker="sD"[k % 2],
                ms=8,
                mfc="none",
                mew=2,
                color=colour(5 * (1 - k % 2)),
                label=f"largest {word}",
            )
            (self.points_[word],) = self.ax_.plot(L[i], H[i], **style)
        self.ax_.set(
            xlabel="log-likelihood, nats per row", ylabel="joint entropy, nats"
        )
        self.legend_ = self.ax_.legend(fontsize="small", frameon=False)
        # values of one maximum differ in late digits: long labels
        points = self.ax_.bbox.width * 72 / self.figure_.dpi
        self.ax_.locator_params(axis="x", nbins=max(2, int(points / _LABEL)))
        clear_offset(self.ax_)
        fit(self.ax_)
        return self
