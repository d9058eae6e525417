"""Log-likelihoods of rows under several models, as histograms."""

from __future__ import annotations

import numpy as np

from maxent.displays._axes import INK, colour, make_axes

_DASHES = ("-", "--", "-.", ":")


class LogLikelihoodDisplay:
    """How evenly models explain the same rows: histograms of log-likelihoods.

    Counts are on a logarithmic scale, so that the few rows in the lower tail are seen:
    they are what a model trained for outliers is about.

    Parameters
    ----------
    scores : list of ndarray (n,)
        Log-likelihoods in nats, one array a model.
    names : list of str
    level : float, optional
        A level to mark.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    patches_ : list
        One outline a model.
    counts_ : ndarray (k, bins)
        Rows in every bin.
    edges_ : ndarray (bins + 1,)
    legend_ : Legend

    See Also
    --------
    maxent.discrimination.MEDOutlierDetector : What lifts the lower tail.

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
    ...     "MED": MEDOutlierDetector("multinomial").fit(X),
    ... }
    >>> display = LogLikelihoodDisplay.from_models(models, X)
    >>> bool(display.scores[1].min() > display.scores[0].min())
    True
    """

    def __init__(self, scores, names, *, level=None):
        self.scores = scores
        self.names = names
        self.level = level

    @classmethod
    def from_scores(cls, scores, *, level=None):
        """Histograms of log-likelihoods that are known.

        Parameters
        ----------
        scores : dict of str to array-like (n,)
        level : float, optional
            A level to mark.

        Returns
        -------
        display : LogLikelihoodDisplay

        Raises
        ------
        ValueError
            For scores that are no vectors of finite numbers.
        """
        if not isinstance(scores, dict) or not scores:
            raise ValueError(
                "scores must be a dict from names to log-likelihoods, with one entry "
                "at least."
            )
        checked = []
        for name, values in scores.items():
            values = np.asarray(values, dtype=np.float64)
            if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
                raise ValueError(
                    f"scores of {name!r} must be a vector of finite numbers."
                )
            checked.append(values)
        return cls(checked, list(scores), level=level)

    @classmethod
    def from_models(cls, models, X):
        """Histograms of the log-likelihoods that models give to rows.

        Parameters
        ----------
        models : dict of str to model
            With ``score_samples``, as outlier detectors and scikit-learn's densities
            have it, or else ``expected_log_prob``, as the priors of
            :mod:`maxent.families`.
        X : array-like (n, n_features)

        Returns
        -------
        display : LogLikelihoodDisplay
            With the level of the last model that has one.

        Raises
        ------
        ValueError
            For a model without log-likelihoods.
        """
        if not isinstance(models, dict):
            raise ValueError("models must be a dict from names to models.")
        scores, level = {}, None
        for name, model in models.items():
            score = getattr(model, "score_samples", None)
            score = (
                getattr(model, "expected_log_prob", None) if score is None else score
            )
            if score is None:
                raise ValueError(
                    f"{name!r} is a {type(model).__name__}, which has neither "
                    "score_samples nor expected_log_prob."
                )
            scores[name] = score(X)
            level = getattr(model, "level_", level)
        return cls.from_scores(scores, level=level)

    def plot(self, ax=None, *, bins=40, log=True):
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        bins : int, default=40
            Bins over the range of all scores.
        log : bool, default=True
            Logarithmic counts.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (6.0, 3.4))[0, 0]
        self.figure_ = self.ax_.figure
        low = min(s.min() for s in self.scores)
        high = max(s.max() for s in self.scores)
        self.edges_ = np.histogram_bin_edges([low, high], bins)
        self.counts_ = np.array([np.histogram(s, self.edges_)[0] for s in self.scores])
        self.patches_ = []
        for k, name in enumerate(self.names):
            s = self.scores[k]
            text = f"{name}\nleast {s.min():.1f}, sd {s.std():.2f}"
            style = {"lw": 1.5, "ls": _DASHES[k % len(_DASHES)], "label": text}
            self.patches_.append(
                self.ax_.stairs(
                    self.counts_[k], self.edges_, color=colour(k), baseline=0, **style
                )
            )
            self.ax_.stairs(
                self.counts_[k], self.edges_, color=colour(k), fill=True, alpha=0.15
            )
        if self.level is not None:
            label = f"level {self.level:.1f}"
            self.ax_.axvline(self.level, color=INK, ls=":", lw=1.2, label=label)
        self.ax_.set(xlabel="log-likelihood of a row (nats)", ylabel="rows")
        if log:
            self.ax_.set_yscale("log")
            self.ax_.set_ylim(0.7, 1.5 * self.counts_.max())
        self.legend_ = self.ax_.legend(loc="upper left", fontsize="small")
        return self
