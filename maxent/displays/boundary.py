"""The decision boundary of a machine in the plane, with the multiplier of every row."""

from __future__ import annotations

import numpy as np

from maxent.displays._axes import INK, colour, make_axes, marker


class MEDBoundaryDisplay:
    """Decision regions, margins and multipliers of a machine with two features.

    Solid is the boundary between classes, dashed are the lines where the class wins
    by the margin's level (f = +-1 for two classes, with the default priors). The area
    of a row's marker is proportional to its multiplier: large rows hold the boundary
    in place, and rows without a multiplier (small dots) could be left out.

    Parameters
    ----------
    xx0, xx1 : ndarray (r, r)
        The grid, as from ``numpy.meshgrid``.
    response : ndarray (r, r, n_classes)
        By how much each class wins over the best other one, at the grid.
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
        Regions, one a class.
    boundary_, margin_lines_ : list of QuadContourSet
        One a class; with two classes the boundary once.
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

    def __init__(
        self,
        xx0,
        xx1,
        response,
        *,
        classes,
        X,
        codes,
        multiplier,
        level=1.0,
        feature_names=("feature 0", "feature 1"),
    ):
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
    def from_estimator(cls, estimator, X, y, *, grid_resolution=200, border=0.08):
        """Evaluate a fitted machine on a grid around its training rows.

        Parameters
        ----------
        estimator : MEDClassifier, MEDFeatureSelector, or a Pipeline that ends in one
            Fitted on X and y.
        X : array-like or DataFrame (n, 2)
        y : array-like (n,)
        grid_resolution : int, default=200
            Points along each side of the grid.
        border : float, default=0.08
            Space around the rows, as a share of their range.

        Returns
        -------
        display : MEDBoundaryDisplay

        Raises
        ------
        ValueError
            If X has not two features, the machine has no multipliers or a precomputed
            kernel, or X is not what it was fitted on.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        steps = getattr(estimator, "steps", None)
        machine = estimator if steps is None else steps[-1][1]
        rows, names, framed = _two_features(X)
        _check_machine(machine)
        codes = _codes(y, machine.classes_, len(rows))
        inside = X if steps is None else estimator[:-1].transform(X)
        multiplier = _multipliers(machine, np.asarray(inside))

        low, high = rows.min(axis=0), rows.max(axis=0)
        space = border * np.where(high > low, high - low, 1.0)
        sides = np.linspace(low - space, high + space, grid_resolution).T
        xx0, xx1 = np.meshgrid(*sides)
        f = estimator.decision_function(framed(np.c_[xx0.ravel(), xx1.ravel()]))
        return cls(
            xx0,
            xx1,
            _leads(f).reshape(*xx0.shape, -1),
            classes=machine.classes_,
            X=rows,
            codes=codes,
            multiplier=multiplier,
            level=_level(machine),
            feature_names=names,
        )

    def plot(self, ax=None, *, max_size=150.0, legend=True):
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        max_size : float, default=150.0
            Area of the marker of the largest multiplier, in points squared.
        legend : bool, default=True
            Explain classes, lines and sizes at the right of the axes.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (6.4, 4.4))[0, 0]
        self.figure_ = self.ax_.figure
        self._draw_regions()
        self._draw_rows(max_size)
        self.ax_.set(
            xlabel=self.feature_names[0],
            ylabel=self.feature_names[1],
            xlim=(self.xx0.min(), self.xx0.max()),
            ylim=(self.xx1.min(), self.xx1.max()),
        )
        self.legend_ = self._draw_legend(max_size) if legend else None
        return self

    def _draw_regions(self):
        ax = self.ax_
        self.surfaces_, self.boundary_, self.margin_lines_ = [], [], []
        for k in range(len(self.classes)):
            lead = self.response[:, :, k]
            if not lead.max() > 0:
                continue
            grid = (self.xx0, self.xx1, lead)
            self.surfaces_.append(
                ax.contourf(*grid, levels=[0, lead.max()], colors=colour(k), alpha=0.18)
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

    def _size(self, multiplier, max_size):
        return max_size * multiplier / max(self.multiplier.max(), 1e-300)

    def _draw_rows(self, max_size):
        held = self.multiplier > 0
        self.points_ = []
        for rows, style in (
            (~held, {"lw": 0, "alpha": 0.8}),
            (held, {"edgecolors": INK, "lw": 0.8, "alpha": 0.85}),
        ):
            for k in range(len(self.classes)):
                here = rows & (self.codes == k)
                # large markers first, so that none hides another
                here = np.flatnonzero(here)[np.argsort(-self.multiplier[here])]
                size = self._size(self.multiplier[here], max_size)
                self.points_.append(
                    self.ax_.scatter(
                        *self.X[here].T,
                        s=np.maximum(size, 9.0),
                        c=colour(k),
                        marker=marker(k),
                        zorder=2.5,
                        **style,
                    )
                )

    def _draw_legend(self, max_size):
        from matplotlib.lines import Line2D

        def point(area, label, k=None, **style):
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
        return self.ax_.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize="small",
            labelspacing=0.7,
        )


# ---------------------------------------------------------------------------- input


def _two_features(X):
    """Rows (n, 2), names of the features, and a maker of rows like X."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
        raise ValueError(
            f"X has shape {rows.shape}; a picture needs rows of two features. Choose "
            "two, or project the data (as on two principal axes) and fit on that."
        )
    if not hasattr(X, "columns"):
        return rows, ("feature 0", "feature 1"), lambda grid: grid
    names = list(X.columns)
    return rows, names, lambda grid: type(X)(grid, columns=names)


def _check_machine(machine):
    missing = [
        name
        for name in ("classes_", "support_", "dual_coef_", "decision_function")
        if not hasattr(machine, name)
    ]
    if missing:
        raise ValueError(
            f"{type(machine).__name__} has no {missing[0]}; this picture is of "
            "classifiers with multipliers, such as MEDClassifier."
        )
    if getattr(machine, "kernel", None) == "precomputed":
        raise ValueError(
            "a machine with kernel='precomputed' has no decision values between its "
            "rows; fit it on the two features with a named kernel or a callable."
        )


def _codes(y, classes, n):
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, but X has {n} rows.")
    strange = y[~np.isin(y, classes)].tolist()
    if strange:
        raise ValueError(
            f"y contains {strange[0]!r}, which is no class of the machine: "
            f"{np.asarray(classes).tolist()}."
        )
    return np.searchsorted(classes, y)


def _multipliers(machine, rows):
    """Total multiplier of every training row."""
    support = machine.support_
    vectors = getattr(machine, "support_vectors_", None)
    alien = support.max(initial=-1) >= len(rows)
    if not alien and vectors is not None:
        vectors = vectors.toarray() if hasattr(vectors, "toarray") else vectors
        found = np.asarray(rows[support], dtype=np.float64)
        alien = found.shape != vectors.shape or not np.allclose(found, vectors)
    if alien:
        raise ValueError(
            "X is not what the machine was fitted on: its support vectors are not "
            "among the rows. Pass the training rows, in their order."
        )
    out = np.zeros(len(rows))
    # of several classes each holds half a multiplier, the right one and the wrong one
    out[support] = np.abs(machine.dual_coef_).sum(axis=0)
    return out


def _leads(f):
    """By how much each class wins over the best other one, (n, n_classes)."""
    if f.ndim == 1:
        return np.column_stack([-f, f])
    order = np.sort(f, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    return f - np.where(f == best, second, best)


def _level(machine):
    """Level of the machine's margin prior."""
    from maxent.discrimination._margin_parameters import classification_margin

    if hasattr(machine, "level_"):  # chosen from the data
        return machine.level_
    if not hasattr(machine, "margin"):
        return 1.0
    return classification_margin(machine.margin, machine.sharpness).level
