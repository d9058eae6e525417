"""Decision boundaries of several classifiers in the plane, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent.displays._axes import INK, colour, figure_of, make_axes, marker
from maxent.displays._estimators import (
    before_last,
    check_fitted_one,
    check_named,
    last_step,
)
from maxent.displays._layout import fit_alike, legend_above
from maxent.displays._plane import (
    class_codes,
    grid_around,
    leads_of,
    machine_level,
    multipliers_of,
    two_features,
)
from maxent.displays.boundary import MEDBoundaryDisplay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

    from maxent.displays._axes import ManyAxes
    from maxent.displays._estimators import ResponseMethod


class BoundaryComparisonDisplay:
    """Regions of several classifiers of the same rows, one panel each.

    For any classifiers of two features: kernel machines, generative models,
    scikit-learn's own. Where a classifier has multipliers, markers
    show them as in :class:`MEDBoundaryDisplay`, each panel on its own scale; where its
    margins have a level, dashed lines show that.

    Parameters
    ----------
    displays : list of MEDBoundaryDisplay
        One per panel.
    names : list of str
        Their titles.
    errors : list of int
        Misclassified training rows.

    Attributes
    ----------
    ax_ : ndarray of Axes
        One per panel.
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

    ax_: NDArray[Any]
    figure_: Figure
    legend_: Legend | None

    def __init__(
        self,
        displays: Sequence[MEDBoundaryDisplay],
        names: Sequence[str],
        errors: Sequence[int],
    ) -> None:
        self.displays = list(displays)
        self.names = list(names)
        self.errors = list(errors)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, BaseEstimator],
        X: ArrayLike,
        y: ArrayLike,
        *,
        grid_resolution: int = 200,
        border: float = 0.08,
        response_method: ResponseMethod = "auto",
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> BoundaryComparisonDisplay:
        """Draw fitted classifiers on one grid around the training rows.

        Parameters
        ----------
        estimators : dict of str to classifier
            Fitted on X and y; multipliers are those of the last step of a pipeline.
        X : array-like or DataFrame (n, 2)
            The training rows.
        y : array-like (n,)
            Their labels.
        grid_resolution : int, default=200
            Points along each side of the grid.
        border : float, default=0.08
            Space around the rows, as a share of their range.
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            What the regions are drawn from; "auto" is the first that a classifier has.
            Only decision functions have margin lines.
        ax : array-like of Axes, optional
            One per panel; None makes a figure with one row.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : BoundaryComparisonDisplay

        Raises
        ------
        ValueError
            If X has not two features, or an estimator does not score classes.
        """
        models = check_named("estimators", estimators, "fitted classifiers")
        rows, names, framed = two_features(X)
        xx0, xx1 = grid_around(rows, grid_resolution, border)
        grid = framed(np.c_[xx0.ravel(), xx1.ravel()])
        displays, errors = [], []
        for title, estimator in models.items():
            name = f"estimators[{title!r}]"
            check_fitted_one(estimator, name)
            method, leads = leads_of(estimator, grid, response_method, name)
            codes = class_codes(y, estimator.classes_, len(rows))
            wins = leads_of(estimator, X, response_method, name)[1].argmax(axis=1)
            errors.append(int((wins != codes).sum()))
            multiplier, level = _multipliers_and_level(estimator, X, len(rows))
            displays.append(
                MEDBoundaryDisplay(
                    xx0,
                    xx1,
                    leads.reshape(*xx0.shape, -1),
                    classes=estimator.classes_,
                    X=rows,
                    codes=codes,
                    multiplier=multiplier,
                    level=level if method == "decision_function" else 0.0,
                    feature_names=names,
                )
            )
        return cls(displays, list(models), errors).plot(ax, **kwargs)

    def plot(
        self,
        ax: ManyAxes | None = None,
        *,
        max_size: float = 90.0,
        legend: bool = True,
        **kwargs: Any,
    ) -> BoundaryComparisonDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : array-like of Axes, optional
            One per panel; None makes a figure with one row.
        max_size : float, default=90.0
            Area of the marker of a panel's largest multiplier, in points squared.
        legend : bool, default=True
            Explain classes and lines above the panels.
        **kwargs
            Properties of the regions, as ``alpha``; see ``Axes.contourf``.

        Returns
        -------
        self
        """
        k = len(self.displays)
        size = (0.4 + 3.0 * k, 3.5)
        self.ax_ = make_axes(ax, (1, k), size, sharex=True, sharey=True)[0]
        self.figure_ = figure_of(self.ax_[0])
        n = len(self.displays[0].X)
        for axis, display, name, wrong in zip(
            self.ax_, self.displays, self.names, self.errors, strict=True
        ):
            display.plot(axis, max_size=max_size, legend=False, **kwargs)
            axis.set_title(f"{name}\n{wrong} training errors of {n}", fontsize="medium")
            if axis is not self.ax_[0]:
                axis.set_ylabel("")
        self.legend_, tops = None, None
        if legend:
            self.legend_, tops = legend_above(list(self.ax_), self._handles())
        fit_alike(list(self.ax_), tops)
        return self

    def _handles(self) -> list[Any]:
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
            style: dict[str, Any] = {"mfc": "none", "mec": INK, "ms": 7, "ls": ""}
            text = "area: multiplier"
            handles.append(Line2D([], [], marker="o", label=text, **style))
        return handles


def _multipliers_and_level(
    estimator: BaseEstimator, X: ArrayLike, n: int
) -> tuple[NDArray[np.float64], float]:
    """Multipliers of the rows and level of the margins; zeros where there are none."""
    machine = last_step(estimator)
    has_multipliers = hasattr(machine, "support_") and hasattr(machine, "dual_coef_")
    if not has_multipliers or getattr(machine, "approximation", None) is not None:
        return np.zeros(n), 0.0
    # scikit-learn's machines have the hinge, whose level is one
    known = hasattr(machine, "level_") or hasattr(machine, "sharpness")
    level = machine_level(machine) if known else 1.0
    return multipliers_of(machine, np.asarray(before_last(estimator, X))), level
