"""Decision boundaries of several classifiers in the plane, side by side."""

from __future__ import annotations

import numpy as np

from maxent.displays._axes import INK, colour, make_axes, marker
from maxent.displays.boundary import (
    MEDBoundaryDisplay,
    _codes,
    _leads,
    _level,
    _multipliers,
    _two_features,
)


class BoundaryComparisonDisplay:
    """Regions of several classifiers of the same rows, one panel each.

    For any classifiers with a decision function of two features: kernel machines,
    generative models, scikit-learn's own. Where a classifier has multipliers, markers
    show them as in :class:`MEDBoundaryDisplay`, each panel on its own scale; where its
    margins have a level, dashed lines show that.

    Parameters
    ----------
    displays : list of MEDBoundaryDisplay
        One a panel.
    names : list of str
        Their titles.
    errors : list of int
        Training rows on the wrong side.

    Attributes
    ----------
    ax_ : ndarray of Axes
        One a panel.
    figure_ : Figure
    legend_ : Legend or None

    See Also
    --------
    MEDBoundaryDisplay : One machine, with a legend of multipliers.
    sklearn.inspection.DecisionBoundaryDisplay : Any estimator, without rows.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.1.2, shows crabs in this manner.

    Examples
    --------
    >>> from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    >>> from maxent import MEDGaussianClassifier
    >>> from maxent.datasets import load_crabs
    >>> from maxent.displays import BoundaryComparisonDisplay
    >>> X, y = load_crabs(return_X_y=True)
    >>> Z = X[:, :2]
    >>> models = {
    ...     "maximum likelihood": QuadraticDiscriminantAnalysis().fit(Z, y),
    ...     "MED": MEDGaussianClassifier().fit(Z, y),
    ... }
    >>> display = BoundaryComparisonDisplay.from_estimators(models, Z, y)
    >>> display.names
    ['maximum likelihood', 'MED']
    """

    def __init__(self, displays, names, errors):
        self.displays = displays
        self.names = names
        self.errors = errors

    @classmethod
    def from_estimators(cls, estimators, X, y, *, grid_resolution=200, border=0.08):
        """Evaluate fitted classifiers on one grid around the training rows.

        Parameters
        ----------
        estimators : dict of str to classifier
            Fitted on X and y; pipelines are looked into for multipliers.
        X : array-like or DataFrame (n, 2)
        y : array-like (n,)
        grid_resolution : int, default=200
            Points along each side of the grid.
        border : float, default=0.08
            Space around the rows, as a share of their range.

        Returns
        -------
        display : BoundaryComparisonDisplay

        Raises
        ------
        ValueError
            If X has not two features, or an estimator no decision function.
        """
        from sklearn.utils.validation import check_is_fitted

        if not isinstance(estimators, dict) or not estimators:
            raise ValueError(
                "estimators must be a dict from titles to fitted classifiers, with one "
                "entry at least."
            )
        rows, names, framed = _two_features(X)
        low, high = rows.min(axis=0), rows.max(axis=0)
        space = border * np.where(high > low, high - low, 1.0)
        sides = np.linspace(low - space, high + space, grid_resolution).T
        xx0, xx1 = np.meshgrid(*sides)
        grid = framed(np.c_[xx0.ravel(), xx1.ravel()])
        displays, errors = [], []
        for title, estimator in estimators.items():
            check_is_fitted(estimator)
            if not hasattr(estimator, "decision_function"):
                raise ValueError(
                    f"{title!r} is a {type(estimator).__name__}, which has no decision "
                    "function; this picture needs one."
                )
            codes = _codes(y, estimator.classes_, len(rows))
            wins = _leads(estimator.decision_function(X)).argmax(axis=1)
            errors.append(int((wins != codes).sum()))
            f = estimator.decision_function(grid)
            multiplier, level = _multipliers_and_level(estimator, X, len(rows))
            displays.append(
                MEDBoundaryDisplay(
                    xx0,
                    xx1,
                    _leads(f).reshape(*xx0.shape, -1),
                    classes=estimator.classes_,
                    X=rows,
                    codes=codes,
                    multiplier=multiplier,
                    level=level,
                    feature_names=names,
                )
            )
        return cls(displays, list(estimators), errors)

    def plot(self, ax=None, *, max_size=90.0, legend=True):
        """Draw the panels.

        Parameters
        ----------
        ax : array-like of Axes, optional
            One a panel; None makes a figure with one row.
        max_size : float, default=90.0
            Area of the marker of a panel's largest multiplier, in points squared.
        legend : bool, default=True
            Explain classes and lines above the panels.

        Returns
        -------
        self
        """
        k = len(self.displays)
        size = (0.4 + 3.0 * k, 3.5)
        self.ax_ = make_axes(ax, (1, k), size, sharex=True, sharey=True)[0]
        self.figure_ = self.ax_[0].figure
        n = len(self.displays[0].X)
        for axis, display, name, wrong in zip(
            self.ax_, self.displays, self.names, self.errors, strict=True
        ):
            display.plot(axis, max_size=max_size, legend=False)
            axis.set_title(f"{name}\n{wrong} training errors of {n}", fontsize="medium")
            if axis is not self.ax_[0]:
                axis.set_ylabel("")
        self.legend_ = self._draw_legend() if legend else None
        return self

    def _draw_legend(self):
        from matplotlib.lines import Line2D

        first = self.displays[0]
        handles = [
            Line2D([], [], marker=marker(k), mfc=colour(k), mew=0, ls="", label=f"{c}")
            for k, c in enumerate(first.classes)
        ]
        handles.append(Line2D([], [], color=INK, lw=1.6, label="boundary"))
        if any(display.margin_lines_ for display in self.displays):
            text = "margin at its level"
            handles.append(Line2D([], [], color=INK, lw=0.9, ls="--", label=text))
        if any(display.multiplier.any() for display in self.displays):
            style = {"marker": "o", "mfc": "none", "mec": INK, "ms": 7, "ls": ""}
            text = "area: multiplier"
            handles.append(Line2D([], [], label=text, **style))
        return self.figure_.legend(
            handles=handles,
            loc="outside upper center",
            ncols=len(handles),
            frameon=False,
            fontsize="small",
        )


def _multipliers_and_level(estimator, X, n):
    """Multipliers of the rows and level of the margins; zeros where there are none."""
    steps = getattr(estimator, "steps", None)
    machine = estimator if steps is None else steps[-1][1]
    if not (hasattr(machine, "support_") and hasattr(machine, "dual_coef_")):
        return np.zeros(n), 0.0
    inside = X if steps is None else estimator[:-1].transform(X)
    if hasattr(machine, "level_"):
        level = machine.level_
    else:
        # scikit-learn's machines have the hinge, whose level is one
        level = _level(machine) if hasattr(machine, "sharpness") else 1.0
    return _multipliers(machine, np.asarray(inside)), level
