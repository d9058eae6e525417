"""Images with the windows that a model found in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.displays._axes import INK, colour, make_axes
from maxent.displays._estimators import check_fitted_one, refusal

if TYPE_CHECKING:
    from maxent.displays._axes import ManyAxes

_COLUMNS = 6  # of panels
_MOST = 48  # images in one figure


class HiddenPositionDisplay:
    """Images with the best window of each, and how sure the model is of it.

    Parameters
    ----------
    images : array-like (n, height, width)
        Grey images, one to a panel.
    windows : array-like (n, 4)
        First row and column of the best window, and how many rows and columns it has,
        in pixels; NaN where an image has none.
    coverage : array-like (n, R, C), optional
        Probability that the window covers a cell, cell by cell; drawn as a tint of the
        cells it is likely to cover.
    cell : int, default=1
        Pixels along a side of a cell.
    boxes : array-like (n, 4), optional
        Where the objects are, as `windows`: drawn as dashed boxes.
    titles : sequence of str (n,), optional
        Such as labels.

    Attributes
    ----------
    ax_ : ndarray of Axes (rows, columns)
    figure_ : Figure
    images_ : list of AxesImage
    windows_, boxes_ : list of Rectangle

    Raises
    ------
    ValueError
        For other shapes, and more images than a figure holds.

    See Also
    --------
    maxent.minentropy.M3EGridClassifier : Finds the windows.
    MotifLogoDisplay : Motifs in sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.displays import HiddenPositionDisplay
    >>> from maxent.minentropy import M3EGridClassifier
    >>> rng = np.random.default_rng(0)
    >>> y, X = np.arange(60) % 2, 0.3 * rng.standard_normal((60, 6, 6))
    >>> X[y == 1, 1:3, 2:4] += [[2.0, -2.0], [-2.0, 2.0]]
    >>> model = M3EGridClassifier((2, 2), alpha=2.0, C=50.0, random_state=0).fit(X, y)
    >>> display = HiddenPositionDisplay.from_estimator(model, X[1:6:2], X[1:6:2])
    >>> display.windows[0].tolist()
    [1.0, 2.0, 2.0, 2.0]
    """

    def __init__(
        self,
        images: ArrayLike,
        windows: ArrayLike,
        *,
        coverage: ArrayLike | None = None,
        cell: int = 1,
        boxes: ArrayLike | None = None,
        titles: Any = None,
    ) -> None:
        self.images = v.as_doubles("images", images)
        if self.images.ndim != 3 or not self.images.size:
            raise ValueError(
                f"images has shape {self.images.shape}; (n, height, width) is needed."
            )
        n = len(self.images)
        if n > _MOST:
            raise ValueError(
                f"images has {n} of them; one figure shows at most {_MOST}: choose "
                "some."
            )
        self.windows = _rectangles("windows", windows, n)
        self.boxes = None if boxes is None else _rectangles("boxes", boxes, n)
        self.cell = v.check_count("cell", cell)
        self.coverage = None
        if coverage is not None:
            self.coverage = _checked_coverage(coverage, n)
        self.titles = None if titles is None else [str(title) for title in titles]
        if self.titles is not None and len(self.titles) != n:
            raise ValueError(f"titles has {len(self.titles)} entries for {n} images.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        images: ArrayLike,
        *,
        y: ArrayLike | None = None,
        cell: int | None = None,
        boxes: ArrayLike | None = None,
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw images with the windows of a fitted estimator.

        Parameters
        ----------
        estimator : M3EGridClassifier
            Fitted.
        X : array-like (n, R, C, p) or (n, R, C)
            Cells of the images.
        images : array-like (n, height, width)
            The images themselves.
        y : array-like (n,), optional
            Classes whose windows are shown; the predicted ones by default.
        cell : int, optional
            Pixels along a side of a cell; height / R by default.
        boxes : array-like (n, 4), optional
            Where the objects are: first row, first column, rows and columns in pixels.
        ax : array-like of Axes, optional
            One for each image; None makes a figure.
        **kwargs
            Properties of the images, as for ``imshow``.

        Returns
        -------
        display : HiddenPositionDisplay
            Titles are the classes.

        Raises
        ------
        ValueError
            For another estimator, one that is not fitted, other numbers of images and
            cells, and cells whose side does not follow from the images.
        """
        from maxent.minentropy import M3EGridClassifier

        check_fitted_one(estimator)
        if not isinstance(estimator, M3EGridClassifier):
            raise refusal(estimator, "a fitted M3EGridClassifier.")
        cells, images = v.as_doubles("X", X), v.as_doubles("images", images)
        if len(cells) != len(images):
            raise ValueError(
                f"X has {len(cells)} images and images has {len(images)}; give the "
                "cells of the same ones."
            )
        side = _side_of_cells(cells, images, cell)
        labels = estimator.predict(X) if y is None else v.as_array("y", y)
        coverage = estimator.window_coverage(X, labels)
        windows = 1.0 * side * estimator.predict_window(X, labels)
        windows[~coverage.any(axis=(1, 2))] = np.nan  # a class without a template
        display = cls(
            images,
            windows,
            coverage=coverage,
            cell=side,
            boxes=boxes,
            titles=labels,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: ManyAxes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array-like of Axes, optional
            One for each image; None makes a figure.
        **kwargs
            Properties of the images, as for ``imshow``.

        Returns
        -------
        self
        """
        n = len(self.images)
        if ax is None:
            columns = min(n, _COLUMNS)
            rows = -(-n // columns)
            self.ax_ = make_axes(None, (rows, columns), (1.7 * columns, 1.8 * rows))
        else:
            self.ax_ = make_axes(ax, (1, n), (1.0, 1.0))
        self.figure_ = self.ax_.flat[0].figure
        self.images_: list[Any] = []
        self.windows_: list[Any] = []
        self.boxes_: list[Any] = []
        style = {"cmap": "gray", "interpolation": "nearest", **kwargs}
        for i, panel in enumerate(self.ax_.flat):
            panel.set_axis_off()
            if i < n:
                self._draw(panel, i, style)
        return self

    def _draw(self, ax, i, style):
        image = self.images[i]
        self.images_.append(ax.imshow(image, **style))
        limits = ax.get_xlim(), ax.get_ylim()
        if self.coverage is not None:
            self._tint(ax, self.coverage[i])
        parts = [(self.windows[i], self.windows_, colour(1), "-")]
        if self.boxes is not None:
            parts.append((self.boxes[i], self.boxes_, colour(4), "--"))
        for rectangle, kept, ink, dash in parts:
            if not np.isnan(rectangle).any():
                kept.append(_framed(ax, rectangle, ink, dash))
        if self.titles is not None:
            ax.set_title(self.titles[i], fontsize="small", color=INK)
        ax.set(xlim=limits[0], ylim=limits[1])

    def _tint(self, ax, coverage):
        from matplotlib.colors import to_rgb

        tint = np.empty((*coverage.shape, 4))
        tint[..., :3] = to_rgb(colour(1))
        tint[..., 3] = 0.45 * np.clip(coverage, 0.0, 1.0)
        height, width = self.cell * np.array(coverage.shape)
        extent = (-0.5, width - 0.5, height - 0.5, -0.5)
        ax.imshow(tint, extent=extent, interpolation="nearest", zorder=1.5)


def _framed(ax, rectangle, ink, dash):
    from matplotlib.patches import Rectangle

    row, column, height, width = rectangle
    frame = Rectangle(
        (column - 0.5, row - 0.5), width, height, fill=False, ec=ink, ls=dash, lw=1.8
    )
    return ax.add_patch(frame)


def _rectangles(name, given, n):
    table = v.as_doubles(name, given)
    if table.shape != (n, 4) or np.isinf(table).any():
        raise ValueError(
            f"{name} has shape {table.shape}; row, column, height and width of {n} "
            f"rectangles, ({n}, 4), are needed."
        )
    return table


def _checked_coverage(coverage, n):
    table = v.as_doubles("coverage", coverage)
    if table.ndim != 3 or len(table) != n or not np.isfinite(table).all():
        raise ValueError(
            f"coverage has shape {table.shape}; probabilities ({n}, R, C) are needed."
        )
    return table


def _side_of_cells(cells, images, cell):
    """Pixels along a side of a cell."""
    if cell is not None:
        return v.check_count("cell", cell)
    if cells.ndim < 3 or images.ndim != 3 or images.shape[1] % cells.shape[1]:
        raise ValueError(
            f"cell=None does not follow from images of shape {images.shape} and X of "
            f"shape {cells.shape}; give the pixels along a side of a cell."
        )
    return images.shape[1] // cells.shape[1]
