"""Log-likelihoods of rows under several models, as histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent.displays._axes import INK, colour, dashes, figure_of, line_style, make_axes
from maxent.displays._estimators import check_named
from maxent.displays._layout import fit, legend_outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch
    from numpy.typing import ArrayLike, NDArray


class LogLikelihoodDisplay:
    """How evenly models explain the same rows: histograms of log-likelihoods.

    Counts are on a logarithmic scale, so that the few rows in the lower tail are
    visible: outlier detection depends on them.

    Parameters
    ----------
    scores : list of ndarray (n,)
        Log-likelihoods in nats, one array per model.
    names : list of str
        Names of the models.
    level : float or list of (float or None), optional
        A level to mark: one for all models, or one per model, None for a model without.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    patches_ : list of StepPatch
        One outline per model.
    level_lines_ : list of Line2D
        The levels, in the colours of their models; a common one in black.
    counts_ : ndarray (k, bins)
        Rows in every bin.
    edges_ : ndarray (bins + 1,)
    legend_ : Legend

    See Also
    --------
    maxent.discrimination.MEDOutlierDetector : Raises the lower tail.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), figure 9a.

    Examples
    --------
    >>> from maxent.displays import LogLikelihoodDisplay
    >>> from maxent.families import DirichletProduct
    >>> from maxent import MEDOutlierDetector
    >>> X = [[0, 0]] * 20 + [[1, 1]] * 2
    >>> models = {
    ...     "Bayes": DirichletProduct(1.0, [2, 2]).posterior(X),
    ...     "MED": MEDOutlierDetector("multinomial", contamination=0.1).fit(X),
    ... }
    >>> display = LogLikelihoodDisplay.from_models(models, X)
    >>> bool(display.scores[1].min() > display.scores[0].min())
    True
    """

    ax_: Axes
    figure_: Figure
    patches_: list[StepPatch]
    level_lines_: list[Line2D]
    counts_: NDArray[np.intp]
    edges_: NDArray[np.float64]
    legend_: Legend

    def __init__(
        self,
        scores: Sequence[NDArray[np.float64]],
        names: Sequence[str],
        *,
        level: float | Sequence[float | None] | None = None,
    ) -> None:
        self.scores = list(scores)
        self.names = list(names)
        self.level = _check_level(level, len(self.scores))

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        *,
        level: float | Mapping[str, float | None] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> LogLikelihoodDisplay:
        """Draw histograms of log-likelihoods that are known.

        Parameters
        ----------
        scores : dict of str to array-like (n,)
            Log-likelihoods in nats.
        level : float, or dict of str to (float or None), optional
            A level to mark: one for all, or one per name.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : LogLikelihoodDisplay

        Raises
        ------
        ValueError
            For scores that are no vectors of finite numbers, and levels of other names.
        """
        checked = []
        for name, values in check_named("scores", scores, "log-likelihoods").items():
            row = v.as_doubles(f"scores[{name!r}]", values)
            if row.ndim != 1 or not len(row) or not np.isfinite(row).all():
                raise ValueError(
                    f"scores[{name!r}]={v.shown(values)} must be a vector of finite "
                    "numbers; leave out rows of probability zero."
                )
            checked.append(row)
        levels: Any = level
        if isinstance(level, Mapping):
            for name in level:
                if name not in scores:
                    raise ValueError(
                        f"level[{name!r}] has no scores; its names must be among "
                        f"{v.shown(list(scores))}."
                    )
            levels = [level.get(name) for name in scores]
        return cls(checked, list(scores), level=levels).plot(ax, **kwargs)

    @classmethod
    def from_models(
        cls,
        models: Mapping[str, object],
        X: ArrayLike,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> LogLikelihoodDisplay:
        """Draw histograms of the log-likelihoods that models give to rows.

        Parameters
        ----------
        models : dict of str to model
            With ``score_samples``, as outlier detectors and scikit-learn's densities
            have it, or else ``expected_log_prob``, as the priors of
            :mod:`maxent.families`.
        X : array-like (n, n_features)
            Rows that all models can score.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : LogLikelihoodDisplay
            With the level of each model that has one (``level_``).

        Raises
        ------
        ValueError
            For a model without log-likelihoods.
        """
        scores, levels = {}, {}
        for name, model in check_named("models", models, "models").items():
            for method in ("score_samples", "expected_log_prob"):
                score = getattr(model, method, None)
                if score is not None and not isinstance(model, type):
                    break
            else:
                raise ValueError(
                    f"models[{name!r}]={v.shown(model)} has neither score_samples nor "
                    "expected_log_prob; give a fitted outlier detector, a density, or "
                    "the posterior of a prior of maxent.families."
                )
            scores[name] = score(X)
            levels[name] = getattr(model, "level_", None)
        return cls.from_scores(scores, level=levels, ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: int = 40,
        log: bool = True,
        **kwargs: Any,
    ) -> LogLikelihoodDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        bins : int, default=40
            Bins over the range of all scores.
        log : bool, default=True
            Logarithmic counts.
        **kwargs
            Properties of the outlines, as ``linewidth``; see ``Axes.stairs``.

        Returns
        -------
        self
        """
        v.check_count("bins", bins)
        self.ax_ = make_axes(ax, (1, 1), (6.6, 3.4))[0, 0]
        self.figure_ = figure_of(self.ax_)
        low = min(s.min() for s in self.scores)
        high = max(s.max() for s in self.scores)
        self.edges_ = np.histogram_bin_edges([low, high], bins)
        self.counts_ = np.array([np.histogram(s, self.edges_)[0] for s in self.scores])
        self.patches_, self.level_lines_ = [], []
        handles: list[Artist] = []
        for k, (name, s) in enumerate(zip(self.names, self.scores, strict=True)):
            text = f"{name}\nleast {s.min():.1f}, sd {s.std():.2f}"
            style = line_style(kwargs, color=colour(k), lw=1.5, ls=dashes(k))
            row = self.counts_[k], self.edges_
            patch = self.ax_.stairs(*row, **{"baseline": 0, "label": text, **style})
            self.ax_.stairs(*row, color=colour(k), fill=True, alpha=0.15)
            self.patches_.append(patch)
            handles.append(patch)
            if isinstance(self.level, list) and self.level[k] is not None:
                handles.append(self._mark(self.level[k], colour(k), f" of {name}"))
        if isinstance(self.level, float):
            handles.append(self._mark(self.level, INK, ""))
        self.ax_.set(xlabel="log-likelihood of a row (nats)", ylabel="rows")
        if log:
            self.ax_.set_yscale("log")
            self.ax_.set_ylim(0.7, 1.5 * self.counts_.max())
        self.legend_ = legend_outside(self.ax_, handles)
        fit(self.ax_)
        return self

    def _mark(self, level: float | None, ink: str, whose: str) -> Line2D:
        assert level is not None
        label = f"level{whose} {level:.1f}"
        line = self.ax_.axvline(level, color=ink, ls=":", lw=1.4, label=label)
        self.level_lines_.append(line)
        return line


def _check_level(level: Any, n: int) -> float | list[float | None] | None:
    """None, one level for all models, or a list with one per model."""
    if level is None or v.is_real(level):
        return None if level is None else v.check_number("level", level)
    if isinstance(level, str) or not np.ndim(level) or len(level) != n:
        raise ValueError(
            f"level={v.shown(level)} must be a number, or hold one level or None for "
            f"each of the {n} models."
        )
    if all(x is None for x in level):
        return None
    return [
        None if x is None else v.check_number(f"level[{k}]", x)
        for k, x in enumerate(level)
    ]
