"""The decision boundary of a machine in the plane, with the multiplier of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent.displays._axes import INK, colour, figure_of, make_axes, marker
from maxent.displays._estimators import before_last
from maxent.displays._layout import fit, legend_outside
from maxent.displays._plane import (
    check_machine,
    class_codes,
    grid_around,
    leads_of,
    machine_level,
    multipliers_of,
    two_features,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

    from maxent.displays._estimators import ResponseMethod


class MEDBoundaryDisplay:
    """Decision regions, margins and multipliers of a machine with two features.

    Solid is the boundary between classes, dashed are the lines where the class wins by
    the margin's level (f = +-1 for two classes, with the default priors). The area of a
    row's marker is proportional to its multiplier: rows with large markers determine
    the boundary, and rows without a multiplier (small dots) have no influence on it.

    Parameters
    ----------
    xx0, xx1 : ndarray (r, r)
        The grid, as from ``numpy.meshgrid``.
    response : ndarray (r, r, n_classes)
        Score of each class less that of the best other class, at the grid.
    classes : ndarray (n_classes,)
    X : ndarray (n, 2)
        The training rows.
    codes : ndarray of int (n,)
        Their classes, as positions in `classes`.
    multiplier : ndarray (n,)
        The total multiplier of each row, >= 0.
    level : float, default=1.0
        Where to draw the margin lines; none if it is not positive.
    feature_names : sequence of two str

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    surfaces_ : list of QuadContourSet
        Regions, one per class.
    boundary_, margin_lines_ : list of QuadContourSet
        One per class; with two classes the boundary once.
    points_ : list of PathCollection
        Rows without, then with a multiplier, class by class.
    legend_ : Legend or None

    See Also
    --------
    sklearn.inspection.DecisionBoundaryDisplay : Any estimator, without multipliers.

    Notes
    -----
    The grid is evaluated here rather than by scikit-learn's display: margin lines
    need the decision values of all classes on one grid, which that display does not
    keep.

    Examples
    --------
    >>> from maxent import MEDClassifier
    >>> from maxent.datasets import load_crabs
    >>> from maxent.displays import MEDBoundaryDisplay
    >>> X, y = load_crabs(return_X_y=True)
    >>> model = MEDClassifier(C=10).fit(X[:, :2], y)
    >>> display = MEDBoundaryDisplay.from_estimator(model, X[:, :2], y)
    >>> bool(display.multiplier.max() < 10)
    True
    """

    ax_: Axes
    figure_: Figure
    surfaces_: list[QuadContourSet]
    boundary_: list[QuadContourSet]
    margin_lines_: list[QuadContourSet]
    points_: list[PathCollection]
    legend_: Legend | None

    def __init__(
        self,
        xx0: NDArray[np.float64],
        xx1: NDArray[np.float64],
        response: NDArray[np.float64],
        *,
        classes: NDArray[Any],
        X: NDArray[np.float64],
        codes: NDArray[np.intp],
        multiplier: NDArray[np.float64],
        level: float = 1.0,
        feature_names: Sequence[str] = ("feature 0", "feature 1"),
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.classes = classes
        self.X = X
        self.codes = codes
        self.multiplier = multiplier
        self.level = level
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        grid_resolution: int = 200,
        border: float = 0.08,
        response_method: ResponseMethod = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> MEDBoundaryDisplay:
        """Draw a fitted machine on a grid around its training rows.

        Parameters
        ----------
        estimator : MEDClassifier, MEDFeatureSelector, or a Pipeline that ends in one
            Fitted on X and y.
        X : array-like or DataFrame (n, 2)
            The training rows.
        y : array-like (n,)
            Their labels.
        grid_resolution : int, default=200
            Points along each side of the grid.
        border : float, default=0.08
            Space around the rows, as a share of their range.
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            What the regions are drawn from; "auto" is the decision function, which
            alone has margin lines.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : MEDBoundaryDisplay

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X has not two features, the machine has no multipliers or a precomputed
            kernel, or X is not what it was fitted on.
        """
        machine = check_machine(estimator)
        rows, names, framed = two_features(X)
        codes = class_codes(y, machine.classes_, len(rows))
        multiplier = multipliers_of(machine, np.asarray(before_last(estimator, X)))
        xx0, xx1 = grid_around(rows, grid_resolution, border)
        grid = framed(np.c_[xx0.ravel(), xx1.ravel()])
        method, leads = leads_of(estimator, grid, response_method)
        return cls(
            xx0,
            xx1,
            leads.reshape(*xx0.shape, -1),
            classes=machine.classes_,
            X=rows,
            codes=codes,
            multiplier=multiplier,
            level=machine_level(machine) if method == "decision_function" else 0.0,
            feature_names=names,
        ).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_size: float = 150.0,
        legend: bool = True,
        **kwargs: Any,
    ) -> MEDBoundaryDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        max_size : float, default=150.0
            Area of the marker of the largest multiplier, in points squared, > 0.
        legend : bool, default=True
            Explain classes, lines and sizes, at the right of wide axes and below
            others.
        **kwargs
            Properties of the regions, as ``alpha``; see ``Axes.contourf``.

        Returns
        -------
        self
        """
        v.check_positive("max_size", max_size)
        self.ax_ = make_axes(ax, (1, 1), (6.4, 4.4))[0, 0]
        self.figure_ = figure_of(self.ax_)
        self._draw_regions(kwargs)
        self._draw_rows(max_size)
        self.ax_.set(
            xlabel=self.feature_names[0],
            ylabel=self.feature_names[1],
            xlim=(self.xx0.min(), self.xx0.max()),
            ylim=(self.xx1.min(), self.xx1.max()),
        )
        self.legend_ = self._draw_legend(max_size) if legend else None
        fit(self.ax_)
        return self

    def _draw_regions(self, kwargs: dict[str, Any]) -> None:
        ax = self.ax_
        self.surfaces_, self.boundary_, self.margin_lines_ = [], [], []
        for k in range(len(self.classes)):
            lead = self.response[:, :, k]
            if not lead.max() > 0:
                continue
            grid = (self.xx0, self.xx1, lead)
            self.surfaces_.append(
                ax.contourf(
                    *grid,
                    levels=[0, lead.max()],
                    **{"colors": colour(k), "alpha": 0.18, **kwargs},
                )
            )
            if lead.min() < 0 and not (len(self.classes) == 2 and self.boundary_):
                self.boundary_.append(
                    ax.contour(*grid, levels=[0], colors=INK, linewidths=1.6)
                )
            if 0 < self.level < lead.max():
                self.margin_lines_.append(
                    ax.contour(
                        *grid,
                        levels=[self.level],
                        colors=INK,
                        linewidths=0.9,
                        linestyles="--",
                    )
                )

    def _size(self, multiplier: Any, max_size: float) -> Any:
        return max_size * multiplier / max(self.multiplier.max(), 1e-300)

    def _draw_rows(self, max_size: float) -> None:
        held = self.multiplier > 0
        self.points_ = []
        styles: tuple[tuple[Any, dict[str, Any]], ...] = (
            (~held, {"lw": 0, "alpha": 0.8}),
            (held, {"edgecolors": INK, "lw": 0.8, "alpha": 0.85}),
        )
        for rows, style in styles:
            for k in range(len(self.classes)):
                here = rows & (self.codes == k)
                # large markers first, so that none hides another
                here = np.flatnonzero(here)[np.argsort(-self.multiplier[here])]
                size = self._size(self.multiplier[here], max_size)
                self.points_.append(
                    self.ax_.scatter(
                        self.X[here, 0],
                        self.X[here, 1],
                        s=np.maximum(size, 9.0),
                        c=colour(k),
                        marker=marker(k),
                        zorder=2.5,
                        **style,
                    )
                )

    def _draw_legend(self, max_size: float) -> Legend:
        from matplotlib.lines import Line2D

        def point(
            area: float, label: str, k: int | None = None, **style: Any
        ) -> Line2D:
            shape = "o" if k is None else marker(k)
            style = {"mfc": "none", "mec": INK, "ls": "", "mew": 0.8, **style}
            return Line2D([], [], marker=shape, ms=np.sqrt(area), label=label, **style)

        handles = [
            point(40, f"{c}", k, mfc=colour(k), mew=0)
            for k, c in enumerate(self.classes)
        ]
        if self.boundary_:
            handles.append(Line2D([], [], color=INK, lw=1.6, label="boundary"))
        if self.margin_lines_:
            two = len(self.classes) == 2
            text = rf"$f=\pm{self.level:g}$" if two else f"wins by {self.level:g}"
            handles.append(Line2D([], [], color=INK, lw=0.9, ls="--", label=text))
        top = self.multiplier.max()
        for value in (top, top / 2, top / 8) if top > 0 else ():
            label = rf"$\lambda={value:.2g}$"
            handles.append(point(self._size(value, max_size), label))
        if (self.multiplier == 0).any():
            handles.append(point(9, r"$\lambda=0$", mfc=INK, mew=0))
        return legend_outside(self.ax_, handles, labelspacing=0.7)
