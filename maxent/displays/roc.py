"""Receiver operating characteristics of several scores of the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from maxent._support import validation as v
from maxent.displays._axes import GREY, colour, dashes, figure_of, line_style, make_axes
from maxent.displays._estimators import check_named, response
from maxent.displays._layout import fit, legend_outside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

    Curve: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

METHODS = ("decision_function", "predict_proba", "score_samples")


class ROCComparisonDisplay:
    """ROC curves with the areas below them and their standard errors.

    The area (AUC) is the chance that a row of the positive class scores above one of
    the other class, ties counted half. All scores are of the same rows, so their areas
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
        Names of the curves.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    lines_ : list of Line2D
        One per curve.
    legend_ : Legend

    See Also
    --------
    sklearn.metrics.RocCurveDisplay : One curve, without a standard error.

    Notes
    -----
    The covariance is that of DeLong, DeLong & Clarke-Pearson (1988): the sample
    covariance of every row's share of rows of the other class that it is on the right
    side of, over the rows of each class. It measures the variation over test rows, not
    over training rows.

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

    ax_: Axes
    figure_: Figure
    lines_: list[Line2D]
    legend_: Legend

    def __init__(
        self,
        curves: Sequence[Curve],
        auc: NDArray[np.float64],
        covariance: NDArray[np.float64],
        names: Sequence[str],
    ) -> None:
        self.curves = list(curves)
        self.auc = auc
        self.covariance = covariance
        self.names = list(names)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Standard errors of the areas, (k,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        pos_label: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ROCComparisonDisplay:
        """Draw curves of score vectors.

        Parameters
        ----------
        y : array-like (n,)
            Labels of two classes, two rows of each at least.
        scores : dict of str to array-like (n,)
            Larger for the positive class.
        pos_label : label, optional
            The positive class; None is the larger of the two labels.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : ROCComparisonDisplay

        Raises
        ------
        ValueError
            For labels that are not two, or scores of another length or not finite.
        """
        curves, auc, covariance = compare_scores(y, scores, pos_label=pos_label)
        return cls(curves, auc, covariance, list(scores)).plot(ax, **kwargs)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, BaseEstimator],
        X: ArrayLike,
        y: ArrayLike,
        *,
        response_method: Literal[
            "auto", "decision_function", "predict_proba", "score_samples"
        ] = "auto",
        pos_label: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ROCComparisonDisplay:
        """Draw curves of fitted classifiers or outlier detectors on test rows.

        Parameters
        ----------
        estimators : dict of str to estimator
            Fitted classifiers or outlier detectors.
        X : array-like (n, n_features)
            Test rows.
        y : array-like (n,)
            Their labels; for outlier detectors the positive class is the normal one.
        response_method : str, default="auto"
            "decision_function", "predict_proba" or "score_samples"; "auto" is the
            first of these that an estimator has. Probabilities that round to one tie.
        pos_label : label, optional
            The positive class; None is the larger of the two labels.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : ROCComparisonDisplay

        Raises
        ------
        ValueError
            As `from_predictions`, for an estimator that does not score rows, and for a
            classifier of which `pos_label` is not a class.
        """
        check_named("estimators", estimators, "fitted estimators")
        positive = _positive(y, pos_label)
        label = np.asarray(y)[positive][0]
        scores = {
            name: _scores_of(f"estimators[{name!r}]", e, X, label, response_method)
            for name, e in estimators.items()
        }
        return cls.from_predictions(positive, scores, ax=ax, **kwargs)

    def difference(self, first: str, second: str) -> tuple[float, float]:
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
                raise ValueError(f"{name!r} is not a curve; use two of {self.names}.")
        step = np.zeros(len(self.names))
        step[self.names.index(first)] += 1.0
        step[self.names.index(second)] -= 1.0
        variance = max(float(step @ self.covariance @ step), 0.0)
        return float(step @ self.auc), variance**0.5

    def plot(
        self, ax: Axes | None = None, *, max_false_positive: float = 1.0, **kwargs: Any
    ) -> ROCComparisonDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        max_false_positive : float, default=1.0
            Where the horizontal axis ends; smaller enlarges the corner of few false
            alarms.
        **kwargs
            Properties of the curves, as ``linewidth``; see ``Axes.plot``.

        Returns
        -------
        self
        """
        if not v.is_real(max_false_positive) or not 0 < max_false_positive <= 1:
            raise ValueError(
                f"max_false_positive={v.shown(max_false_positive)} must be in (0, 1]."
            )
        self.ax_ = make_axes(ax, (1, 1), (4.6, 4.4))[0, 0]
        self.figure_ = figure_of(self.ax_)
        self.ax_.plot([0, 1], [0, 1], color=GREY, lw=0.8, zorder=1)
        self.lines_ = []
        for k, (name, (false, true)) in enumerate(
            zip(self.names, self.curves, strict=True)
        ):
            text = f"{name}\nAUC {self.auc[k]:.4f} ± {self.standard_error[k]:.4f}"
            style = line_style(
                kwargs, color=colour(k), ls=dashes(k), lw=1.6, label=text
            )
            self.lines_ += self.ax_.plot(false, true, **style)
        space = 0.02 * max_false_positive
        self.ax_.set(
            xlabel="share of false positives",
            ylabel="share of true positives",
            xlim=(-space, max_false_positive + space),
            ylim=(-0.02, 1.02),
        )
        self.ax_.grid(alpha=0.25)
        fit(self.ax_)
        self.legend_ = self.ax_.legend(loc="lower right", fontsize="small")
        if self._is_hidden_by(self.legend_):
            self.legend_.remove()
            self.legend_ = legend_outside(self.ax_, self.lines_)
            fit(self.ax_)
        return self

    def _is_hidden_by(self, legend: Legend) -> bool:
        """True if a legend lies on a curve or reaches out of the axes."""
        box, frame = legend.get_window_extent(), self.ax_.get_window_extent()
        if box.x0 < frame.x0 or box.y1 > frame.y1:
            return True
        lines = (
            line.get_transform().transform_path(line.get_path()) for line in self.lines_
        )
        return any(path.intersects_bbox(box, filled=False) for path in lines)


# --------------------------------------------------------------------------- numbers


def compare_scores(
    y: ArrayLike, scores: Mapping[str, ArrayLike], *, pos_label: Any = None
) -> tuple[list[Curve], NDArray[np.float64], NDArray[np.float64]]:
    """Curves, areas and covariance of the areas, without a picture.

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
    curves : list of tuple (false_positive, true_positive)
    auc : ndarray (k,)
    covariance : ndarray (k, k)
        These and the names are what :class:`ROCComparisonDisplay` takes.
    """
    positive = _positive(y, pos_label)
    check_named("scores", scores, "score vectors")
    checked = [_check_scores(n, s, len(positive)) for n, s in scores.items()]
    inside, outside = zip(*(placements(s, positive) for s in checked), strict=True)
    covariance = np.zeros((len(checked), len(checked)))
    for part in (inside, outside):
        covariance += np.cov(np.array(part)) / len(part[0])
    auc = np.array([part.mean() for part in inside])
    return [_curve(s, positive) for s in checked], auc, covariance


def placements(
    scores: NDArray[np.float64], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each row, the share of the other class that it is on the right side of."""
    up, down = np.sort(scores[positive]), np.sort(scores[~positive])

    def share(
        ordered: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        left = np.searchsorted(ordered, values, side="left")
        right = np.searchsorted(ordered, values, side="right")
        return 0.5 * (left + right) / len(ordered)

    return share(down, scores[positive]), 1.0 - share(up, scores[~positive])


def _curve(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Curve:
    """False and true positives at every threshold, from 0 to 1."""
    order = np.argsort(-scores, kind="stable")
    s, hit = scores[order], positive[order]
    last = np.append(s[1:] != s[:-1], True)  # rows of one score enter together
    true = np.cumsum(hit)[last] / hit.sum()
    false = np.cumsum(~hit)[last] / (~hit).sum()
    return np.append(0.0, false), np.append(0.0, true)


# ----------------------------------------------------------------------------- input


def _positive(y: Any, pos_label: Any) -> NDArray[np.bool_]:
    y = v.as_array("y", y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; it must be a vector of labels.")
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(
            f"y has {len(labels)} different labels; a curve needs two classes: keep "
            "the rows of two, or give y == label."
        )
    if pos_label is None:
        pos_label = labels[1]
    if pos_label not in labels:
        raise ValueError(
            f"pos_label={pos_label!r} is not a label of y: {labels.tolist()}."
        )
    positive = np.asarray(y == pos_label)
    if min(positive.sum(), (~positive).sum()) < 2:
        raise ValueError("a standard error needs two rows of each class at least.")
    return positive


def _check_scores(name: str, scores: ArrayLike, n: int) -> NDArray[np.float64]:
    array: NDArray[np.float64] = v.as_doubles(f"scores[{name!r}]", scores)
    if array.shape != (n,):
        raise ValueError(
            f"scores[{name!r}] has shape {array.shape}, but y has {n} labels; give one "
            "score per label."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"scores[{name!r}] contains NaN or infinity.")
    return array


def _scores_of(
    name: str, estimator: BaseEstimator, X: ArrayLike, label: Any, response_method: str
) -> NDArray[np.float64]:
    """Scores that are larger for the class `label`."""
    _, values = response(estimator, X, response_method, METHODS, name)
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return values
    if label not in classes:
        raise ValueError(
            f"{name} has the classes {np.asarray(classes).tolist()}, without "
            f"pos_label={label!r}; give y the labels of its fit."
        )
    if values.ndim == 2:
        return np.asarray(values[:, list(classes).index(label)])
    return values if label == classes[1] else np.asarray(-values)
