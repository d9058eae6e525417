"""Receiver operating characteristics of several scores of the same rows."""

from __future__ import annotations

import numpy as np

from maxent.displays._axes import GREY, colour, make_axes

_DASHES = ("-", "--", "-.", ":")


class ROCComparisonDisplay:
    """ROC curves with the areas below them and their standard errors.

    The area (AUC) is the chance that a row of the positive class scores above one of
    the other class, ties counted half. All scores judge the same rows, so their areas
    rise and fall together: compare them by :meth:`difference`, not by whether their
    standard errors overlap.

    Parameters
    ----------
    curves : list of tuple (false_positive, true_positive)
        Shares, ndarrays of one length, from 0 to 1.
    auc : ndarray (k,)
        Areas.
    covariance : ndarray (k, k)
        Covariance of the areas over draws of the rows.
    names : list of str

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    lines_ : list of Line2D
        One a curve.
    legend_ : Legend

    See Also
    --------
    sklearn.metrics.RocCurveDisplay : One curve, without a standard error.

    Notes
    -----
    The covariance is that of DeLong, DeLong & Clarke-Pearson (1988): the sample
    covariance of every row's share of rows of the other class that it is on the right
    side of, over the rows of each class. It says how far the area would move with other
    test rows, and nothing about other training rows.

    References
    ----------
    DeLong, E. R., DeLong, D. M. & Clarke-Pearson, D. L. (1988). *Comparing the areas
    under two or more correlated receiver operating characteristic curves.* Biometrics
    44, 837-845.

    Examples
    --------
    >>> from maxent.displays import ROCComparisonDisplay
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> scores = {"good": [1, 2, 3, 4, 5, 6], "fair": [1, 4, 2, 3, 6, 5]}
    >>> display = ROCComparisonDisplay.from_predictions(y, scores)
    >>> display.auc.round(3)
    array([1.   , 0.889])
    >>> difference, error = display.difference("good", "fair")
    >>> round(difference, 3), round(error, 3)
    (0.111, 0.157)
    """

    def __init__(self, curves, auc, covariance, names):
        self.curves = curves
        self.auc = auc
        self.covariance = covariance
        self.names = names

    @property
    def standard_error(self):
        """Standard errors of the areas, (k,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @classmethod
    def from_predictions(cls, y, scores, *, pos_label=None):
        """Curves of score vectors.

        Parameters
        ----------
        y : array-like (n,)
            Labels of two classes, two rows of each at least.
        scores : dict of str to array-like (n,)
            Larger for the positive class.
        pos_label : label, optional
            The positive class; None is the larger of the two labels.

        Returns
        -------
        display : ROCComparisonDisplay

        Raises
        ------
        ValueError
            For labels that are not two, or scores of another length or not finite.
        """
        positive = _positive(y, pos_label)
        if not isinstance(scores, dict) or not scores:
            raise ValueError(
                "scores must be a dict from names to score vectors, with one entry at "
                "least."
            )
        checked = [_check_scores(n, s, len(positive)) for n, s in scores.items()]
        inside, outside = zip(*(_placements(s, positive) for s in checked), strict=True)
        covariance = sum(
            np.atleast_2d(np.cov(np.array(part))) / len(part[0])
            for part in (inside, outside)
        )
        auc = np.array([part.mean() for part in inside])
        curves = [_curve(s, positive) for s in checked]
        return cls(curves, auc, covariance, list(scores))

    @classmethod
    def from_estimators(cls, estimators, X, y, *, pos_label=None):
        """Curves of fitted classifiers or outlier detectors on test rows.

        Parameters
        ----------
        estimators : dict of str to estimator
            With ``decision_function``, or else ``score_samples``.
        X : array-like (n, n_features)
            Test rows.
        y : array-like (n,)
            Their labels; for outlier detectors the positive class is the normal one.
        pos_label : label, optional
            The positive class; None is the larger of the two labels.

        Returns
        -------
        display : ROCComparisonDisplay

        Raises
        ------
        ValueError
            As `from_predictions`, and for a classifier of which `pos_label` is not a
            class.
        """
        if not isinstance(estimators, dict):
            raise ValueError("estimators must be a dict from names to estimators.")
        positive = _positive(y, pos_label)
        label = np.asarray(y)[positive][0]
        scores = {n: _scores_of(n, e, X, label) for n, e in estimators.items()}
        return cls.from_predictions(positive, scores)

    def difference(self, first, second):
        """Difference of two areas and its standard error, as of paired measurements.

        Parameters
        ----------
        first, second : str
            Names of curves.

        Returns
        -------
        difference, standard_error : float
        """
        for name in (first, second):
            if name not in self.names:
                raise ValueError(f"{name!r} is not a curve; there are {self.names}.")
        step = np.zeros(len(self.names))
        step[self.names.index(first)] += 1.0
        step[self.names.index(second)] -= 1.0
        variance = max(float(step @ self.covariance @ step), 0.0)
        return float(step @ self.auc), variance**0.5

    def plot(self, ax=None, *, max_false_positive=1.0):
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        max_false_positive : float, default=1.0
            Where the horizontal axis ends; smaller enlarges the corner of few false
            alarms.

        Returns
        -------
        self
        """
        if not 0 < max_false_positive <= 1:
            raise ValueError(
                f"max_false_positive={max_false_positive!r} must be in (0, 1]."
            )
        self.ax_ = make_axes(ax, (1, 1), (4.6, 4.4))[0, 0]
        self.figure_ = self.ax_.figure
        self.ax_.plot([0, 1], [0, 1], color=GREY, lw=0.8, zorder=1)
        self.lines_ = []
        for k, (name, (false, true)) in enumerate(
            zip(self.names, self.curves, strict=True)
        ):
            text = f"{name}\nAUC {self.auc[k]:.4f} ± {self.standard_error[k]:.4f}"
            self.lines_ += self.ax_.plot(
                false,
                true,
                color=colour(k),
                ls=_DASHES[k % len(_DASHES)],
                lw=1.6,
                label=text,
            )
        space = 0.02 * max_false_positive
        self.ax_.set(
            xlabel="share of false positives",
            ylabel="share of true positives",
            xlim=(-space, max_false_positive + space),
            ylim=(-0.02, 1.02),
        )
        self.ax_.grid(alpha=0.25)
        self.legend_ = self.ax_.legend(loc="lower right", fontsize="small")
        return self


# --------------------------------------------------------------------------- numbers


def _placements(scores, positive):
    """Of each row, the share of the other class that it is on the right side of."""
    up, down = np.sort(scores[positive]), np.sort(scores[~positive])

    def share(ordered, values):
        left = np.searchsorted(ordered, values, side="left")
        right = np.searchsorted(ordered, values, side="right")
        return 0.5 * (left + right) / len(ordered)

    return share(down, scores[positive]), 1.0 - share(up, scores[~positive])


def _curve(scores, positive):
    """False and true positives at every threshold, from 0 to 1."""
    order = np.argsort(-scores, kind="stable")
    s, hit = scores[order], positive[order]
    last = np.append(s[1:] != s[:-1], True)  # rows of one score enter together
    true = np.cumsum(hit)[last] / hit.sum()
    false = np.cumsum(~hit)[last] / (~hit).sum()
    return np.append(0.0, false), np.append(0.0, true)


# ----------------------------------------------------------------------------- input


def _positive(y, pos_label):
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; it must be a vector of labels.")
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(
            f"y has {len(labels)} different labels; a curve needs two classes."
        )
    if pos_label is None:
        pos_label = labels[1]
    if pos_label not in labels:
        raise ValueError(
            f"pos_label={pos_label!r} is not a label of y: {labels.tolist()}."
        )
    positive = y == pos_label
    if min(positive.sum(), (~positive).sum()) < 2:
        raise ValueError("a standard error needs two rows of each class at least.")
    return positive


def _check_scores(name, scores, n):
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (n,):
        raise ValueError(
            f"scores of {name!r} have shape {scores.shape}, but y has {n}."
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"scores of {name!r} contain NaN or infinity.")
    return scores


def _scores_of(name, estimator, X, label):
    """Scores that are larger for the class `label`."""
    for method in ("decision_function", "score_samples"):
        if hasattr(estimator, method):
            break
    else:
        raise ValueError(
            f"{name!r} is a {type(estimator).__name__}, which has neither "
            "decision_function nor score_samples."
        )
    values = np.asarray(getattr(estimator, method)(X))
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return values
    if label not in classes:
        raise ValueError(
            f"{name!r} has the classes {np.asarray(classes).tolist()}, without "
            f"pos_label={label!r}."
        )
    if values.ndim == 2:
        return values[:, list(classes).index(label)]
    return values if label == classes[1] else -values
