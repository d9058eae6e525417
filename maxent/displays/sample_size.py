"""Quality of the choices among candidates against the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.displays._axes import colour, dashes, line_style, make_axes, marker
from maxent.displays._estimators import refusal

_SELECTIONS = ("entropy", "likelihood")


class SampleSizeDisplay:
    """Mean score against the number of rows, with its standard error.

    Parameters
    ----------
    sizes : array-like of int (n_sizes,)
        Rows to train, increasing.
    scores : dict {str: array-like (n_trials, n_sizes)}
        Name -> score of each trial; NaN where a trial has no model.
    ylabel : str, default="cross entropy, nats per row"
        What the scores are.

    Attributes
    ----------
    means, errors : dict {str: ndarray (n_sizes,)}
        Mean over the trials, and its standard error.
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : dict {str: ErrorbarContainer}
        By name.
    legend_ : Legend

    Raises
    ------
    ValueError
        For sizes that do not increase and scores of another shape.

    See Also
    --------
    CandidatesDisplay : The candidates of one fit.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, figures 4-7.

    Examples
    --------
    >>> from maxent import LMEGaussianMixture
    >>> from maxent.displays import SampleSizeDisplay
    >>> from maxent.families import Gaussian
    >>> truth = Gaussian([0.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
    >>> display = SampleSizeDisplay.from_estimator(
    ...     LMEGaussianMixture(2, n_init=5), truth.sample, [30, 60], n_trials=2,
    ...     n_test=500, random_state=0)
    >>> sorted(display.means)
    ['entropy', 'likelihood']
    """

    def __init__(
        self,
        sizes: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        ylabel: str = "cross entropy, nats per row",
    ) -> None:
        self.sizes = v.as_doubles("sizes", sizes)
        if self.sizes.ndim != 1 or not (np.diff(self.sizes, prepend=0.0) > 0).all():
            raise ValueError(f"sizes={v.shown(sizes)} must be counts that increase.")
        if not isinstance(scores, Mapping) or not scores:
            raise ValueError(
                f"scores={v.shown(scores)} must be a dict from names to arrays "
                f"(n_trials, {len(self.sizes)})."
            )
        self.scores = {
            str(name): v.as_doubles(f"scores[{name!r}]", values)
            for name, values in scores.items()
        }
        for name, values in self.scores.items():
            if values.ndim != 2 or values.shape[1:] != self.sizes.shape:
                raise ValueError(
                    f"scores[{name!r}] has shape {values.shape}; (n_trials, "
                    f"{len(self.sizes)}) is expected."
                )
        self.ylabel = ylabel
        self.means, self.errors = {}, {}
        for name, values in self.scores.items():
            known = np.isfinite(values)
            n = known.sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = np.where(known, values, 0.0).sum(axis=0) / n
                square = np.where(known, values - mean, 0.0) ** 2
                self.errors[name] = np.sqrt(square.sum(axis=0) / (n - 1) / n)
            self.means[name] = mean

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        draw: Callable[[int, np.random.Generator], ArrayLike],
        sizes: ArrayLike,
        *,
        log_prob: Callable[[Any], ArrayLike] | None = None,
        n_trials: int = 10,
        n_test: int = 10_000,
        random_state: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Fit to drawn rows of every size, score both choices on fresh ones, and draw.

        Parameters
        ----------
        estimator : estimator
            Not fitted, with candidates: such as LMEGaussianMixture.
        draw : callable(n, rng) -> array-like (n, n_features)
            Rows of the true distribution, such as ``sample`` of a family. Within a
            trial the rows of a smaller size begin those of a larger one, and all sizes
            share the `n_test` rows of the score.
        sizes : array-like of int (n_sizes,)
            Rows to train, increasing.
        log_prob : callable(rows) -> array-like (n,), optional
            Log-density of the true distribution: scores are then the divergence from
            it, cross entropy less its entropy.
        n_trials : int, default=10
            Trials, >= 1.
        n_test : int, default=10000
            Rows of the score.
        random_state : int, Generator, RandomState or None, default=None
            Seed.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : SampleSizeDisplay
            Trials in which no candidate passes the gates are NaN in `scores`.
        """
        if not (hasattr(estimator, "fit") and hasattr(estimator, "select")):
            raise refusal(
                estimator, "an estimator with candidates, such as LMEGaussianMixture()."
            )
        rows = v.as_doubles("sizes", sizes)
        if rows.ndim != 1 or not (np.diff(rows, prepend=0.0) > 0).all():
            raise ValueError(f"sizes={v.shown(sizes)} must be counts that increase.")
        n_test = v.check_count("n_test", n_test)
        rngs = as_generator(random_state).spawn(v.check_count("n_trials", n_trials))
        scores = {name: np.full((len(rngs), len(rows)), np.nan) for name in _SELECTIONS}
        for trial, rng in enumerate(rngs):
            X, test = (np.asarray(draw(n, rng)) for n in (int(rows[-1]), n_test))
            base = 0.0 if log_prob is None else np.mean(np.asarray(log_prob(test)))
            for i, n in enumerate(rows.astype(int)):
                for name, value in _both(estimator, X[:n], test, rng.spawn(1)[0]):
                    scores[name][trial, i] = base - value
        words = "cross entropy" if log_prob is None else "divergence from the truth"
        return cls(rows, scores, ylabel=f"{words}, nats per row").plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw means, with bars of one standard error.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Properties of the lines, as for ``Axes.errorbar``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (5.4, 3.6))[0, 0]
        from matplotlib.ticker import LogLocator

        self.figure_ = self.ax_.figure
        self.lines_ = {}
        for k, (name, mean) in enumerate(self.means.items()):
            style = line_style(
                kwargs,
                color=colour(k),
                ls=dashes(k),
                lw=1.8,
                marker=marker(k),
                ms=4,
                capsize=3,
                label=name,
            )
            error = np.nan_to_num(self.errors[name])  # one trial has none
            self.lines_[name] = self.ax_.errorbar(self.sizes, mean, error, **style)
        every = np.concatenate(list(self.means.values()))
        ratio = every[np.isfinite(every)]
        wide = len(ratio) > 0 and ratio.min() > 0 and ratio.max() > 10 * ratio.min()
        self.ax_.set(
            xscale="log",
            yscale="log" if wide else "linear",
            xlabel="rows to train",
            ylabel=self.ylabel,
        )
        self.ax_.set_xticks(self.sizes, [f"{n:g}" for n in self.sizes])
        self.ax_.set_xticks([], minor=True)
        if wide:
            self.ax_.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            self.ax_.yaxis.set_major_formatter("{x:g}")
            self.ax_.yaxis.set_minor_formatter("")
        self.legend_ = self.ax_.legend(fontsize="small", frameon=False)
        return self


def _both(
    estimator: Any, X: NDArray[Any], test: NDArray[Any], rng: np.random.Generator
) -> list[tuple[str, float]]:
    """Scores of both choices from one fit; none if every candidate is rejected."""
    from sklearn.base import clone

    from maxent.latent import NoAdmissibleCandidateError

    model = clone(estimator).set_params(random_state=rng)
    try:
        model.fit(X)
    except NoAdmissibleCandidateError:
        return []
    return [(name, float(model.select(name).score(test))) for name in _SELECTIONS]
